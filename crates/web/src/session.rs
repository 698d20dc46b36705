//! Passwords, sessions and the limit on guessing.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Mutex, MutexGuard, PoisonError},
};

use argon2::{
    Argon2,
    password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString},
};

use crate::{WebError, WebOptions};

/// How long a log-in lasts, in seconds.
pub(crate) const SESSION_S: i64 = 14 * 86_400;
/// The most sessions; the oldest is dropped.
const MAX_SESSIONS: usize = 1_000;
/// Wrong passwords without a wait.
const FREE_TRIES: u32 = 4;
/// The longest wait after wrong passwords, in seconds.
const MAX_WAIT_S: i64 = 900;
/// The most addresses whose wrong passwords are remembered.
const MAX_GUESSERS: usize = 10_000;
/// The longest password; hashing takes time in proportion.
pub(crate) const MAX_PASSWORD_BYTES: usize = 1_000;

/// What someone may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Reads everything, changes nothing.
    Reader,
    /// Changes sites and starts collecting.
    Admin,
}

/// Whether the interface may listen on an address with these options: beyond loopback only with a
/// password.
pub fn may_listen(address: IpAddr, options: &WebOptions) -> Result<(), WebError> {
    match (address.is_loopback(), &options.admin_hash) {
        (true, None) => Ok(()),
        (false, None) => Err(WebError::NeedsPassword { address }),
        (_, Some(hash)) => parsed(hash).map(|_| ()),
    }
}

/// Hashes a password for the configuration (argon2id). The salt is random bytes from the operating
/// system.
pub fn hash_password(password: &str, salt: [u8; 16]) -> Result<String, WebError> {
    let refuse = |reason: String| WebError::PasswordHash { reason };
    if password.is_empty() || password.len() > MAX_PASSWORD_BYTES {
        return Err(refuse(format!("it must have 1 to {MAX_PASSWORD_BYTES} bytes")));
    }
    let salt = SaltString::encode_b64(&salt).map_err(|e| refuse(e.to_string()))?;
    let hash = Argon2::default()
        .hash_password(password.as_bytes(), &salt)
        .map_err(|e| refuse(e.to_string()))?;
    Ok(hash.to_string())
}

fn parsed(hash: &str) -> Result<PasswordHash<'_>, WebError> {
    PasswordHash::new(hash).map_err(|e| WebError::PasswordHash { reason: e.to_string() })
}

/// The result of a log-in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LogIn {
    /// Correct: the new session's id.
    Done(String),
    /// Wrong password.
    Wrong,
    /// Too many wrong ones; try again in this many seconds.
    Wait(i64),
}

/// Who is counted together when passwords are guessed and turns are shared out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Caller {
    /// An IPv4 address, or the first half of an IPv6 address: a whole /64 belongs to one customer.
    Address(IpAddr),
    /// Everyone whose address is not known, or for whom the table has no space left.
    Others,
}

impl Caller {
    pub(crate) fn of(from: Option<IpAddr>) -> Self {
        match from.map(|address| address.to_canonical()) {
            Some(IpAddr::V6(address)) => {
                let network = address.to_bits() & !u128::from(u64::MAX);
                Self::Address(Ipv6Addr::from_bits(network).into())
            }
            Some(address) => Self::Address(address),
            None => Self::Others,
        }
    }
}

/// Sessions and wrong guesses, in memory: a restart logs everyone out.
#[derive(Default)]
pub(crate) struct Sessions {
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    issued: u64,
    sessions: BTreeMap<String, (Role, i64)>,
    /// How many wrong passwords in a row, and when the last one came.
    guesses: BTreeMap<Caller, (u32, i64)>,
    /// Sessions of programs that send the password each time, by a keyed hash of it: checking it
    /// once per request would be slow.
    programs: BTreeMap<[u8; 32], String>,
}

impl Sessions {
    /// A new id that nobody can guess.
    pub(crate) fn new_id(&self, secret: &[u8; 32], now_s: i64) -> String {
        let mut held = locked(&self.held);
        held.issued += 1;
        let mut hasher = blake3::Hasher::new_keyed(secret);
        hasher.update(b"session").update(&held.issued.to_le_bytes()).update(&now_s.to_le_bytes());
        hasher.finalize().to_hex()[..40].to_owned()
    }

    pub(crate) fn role(&self, id: &str, now_s: i64) -> Option<Role> {
        locked(&self.held)
            .sessions
            .get(id)
            .filter(|(_, until_s)| *until_s > now_s)
            .map(|(role, _)| *role)
    }

    pub(crate) fn log_out(&self, id: &str) {
        locked(&self.held).sessions.remove(id);
    }

    pub(crate) fn log_in(
        &self,
        options: &WebOptions,
        password: &str,
        from: Option<IpAddr>,
        now_s: i64,
    ) -> LogIn {
        let wait_s = self.wait_s(from, now_s);
        if wait_s > 0 {
            return LogIn::Wait(wait_s);
        }
        let Some(role) = role_of(options, password) else {
            self.remember_guess(from, now_s);
            return LogIn::Wrong;
        };
        let id = self.new_id(&options.secret, now_s);
        let mut held = locked(&self.held);
        // Who has the reader's password may still be guessing the other one.
        if role == Role::Admin {
            held.guesses.remove(&Caller::of(from));
        }
        held.sessions.retain(|_, (_, until_s)| *until_s > now_s);
        if held.sessions.len() >= MAX_SESSIONS
            && let Some(oldest) = held
                .sessions
                .iter()
                .min_by_key(|(_, (_, until_s))| *until_s)
                .map(|(id, _)| id.clone())
        {
            held.sessions.remove(&oldest);
        }
        held.sessions.insert(id.clone(), (role, now_s + SESSION_S));
        LogIn::Done(id)
    }

    /// The session of a program that sends the password with every request and sent it before.
    /// An address that has to wait is not looked up: this answers in microseconds, so that guesses
    /// could be tried by the thousand.
    pub(crate) fn known_program(
        &self,
        options: &WebOptions,
        password: &str,
        from: Option<IpAddr>,
        now_s: i64,
    ) -> Option<String> {
        if self.wait_s(from, now_s) > 0 {
            return None;
        }
        let known = locked(&self.held).programs.get(&program_key(options, password)).cloned();
        known.filter(|id| self.role(id, now_s).is_some())
    }

    /// A new session for a program that sends the password with every request.
    pub(crate) fn new_program(
        &self,
        options: &WebOptions,
        password: &str,
        from: Option<IpAddr>,
        now_s: i64,
    ) -> LogIn {
        let done = self.log_in(options, password, from, now_s);
        if let LogIn::Done(id) = &done {
            // Only right passwords come here, so there are at most as many as roles.
            locked(&self.held).programs.insert(program_key(options, password), id.clone());
        }
        done
    }

    /// How long an address has to wait before its next guess is looked at.
    pub(crate) fn wait_s(&self, from: Option<IpAddr>, now_s: i64) -> i64 {
        let held = locked(&self.held);
        let guesser = Caller::of(from);
        // Where the table is full, whoever is not in it waits with all the others.
        let is_counted_apart = held.has_space() || held.guesses.contains_key(&guesser);
        let guesser = if is_counted_apart { guesser } else { Caller::Others };
        match held.guesses.get(&guesser) {
            Some((wrong, last_s)) if *wrong >= FREE_TRIES => {
                let wait_s = 1_i64 << (wrong - FREE_TRIES + 1).min(20);
                (last_s + wait_s.min(MAX_WAIT_S) - now_s).max(0)
            }
            _ => 0,
        }
    }

    fn remember_guess(&self, from: Option<IpAddr>, now_s: i64) {
        let mut held = locked(&self.held);
        if !held.has_space() {
            held.guesses.retain(|_, (_, last_s)| *last_s > now_s - MAX_WAIT_S);
        }
        let guesser = Caller::of(from);
        let is_counted_apart = held.has_space() || held.guesses.contains_key(&guesser);
        let guesser = if is_counted_apart { guesser } else { Caller::Others };
        let guess = held.guesses.entry(guesser).or_insert((0, now_s));
        *guess = (guess.0.saturating_add(1), now_s);
    }
}

impl Held {
    fn has_space(&self) -> bool {
        self.guesses.len() < MAX_GUESSERS
    }
}

/// Passwords are kept by a keyed hash alone.
fn program_key(options: &WebOptions, password: &str) -> [u8; 32] {
    *blake3::keyed_hash(&options.secret, password.as_bytes()).as_bytes()
}

fn role_of(options: &WebOptions, password: &str) -> Option<Role> {
    if password.len() > MAX_PASSWORD_BYTES {
        return None;
    }
    let fits = |hash: &Option<String>| {
        hash.as_deref().and_then(|hash| parsed(hash).ok()).is_some_and(|hash| {
            Argon2::default().verify_password(password.as_bytes(), &hash).is_ok()
        })
    };
    if fits(&options.admin_hash) {
        Some(Role::Admin)
    } else if fits(&options.reader_hash) {
        Some(Role::Reader)
    } else {
        None
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> WebOptions {
        WebOptions {
            admin_hash: Some(hash_password("right", [1; 16]).unwrap()),
            reader_hash: Some(hash_password("look", [2; 16]).unwrap()),
            ..WebOptions::new([7; 32])
        }
    }

    #[test]
    fn each_password_gives_its_role_until_the_session_ends() {
        let (sessions, options) = (Sessions::default(), options());
        for (password, role) in [("right", Role::Admin), ("look", Role::Reader)] {
            let LogIn::Done(id) = sessions.log_in(&options, password, None, 0) else { panic!() };
            assert_eq!(sessions.role(&id, 5), Some(role));
            assert_eq!(sessions.role(&id, SESSION_S), None);
            sessions.log_out(&id);
            assert_eq!(sessions.role(&id, 5), None);
        }
        assert_eq!(sessions.log_in(&options, "", None, 0), LogIn::Wrong);
    }

    #[test]
    fn wrong_guesses_make_that_address_wait_longer_and_longer() {
        let (sessions, options) = (Sessions::default(), options());
        let guesser = Some(IpAddr::from([192, 0, 2, 1]));
        let mut now_s = 100;
        let mut waits = Vec::new();
        for _ in 0..8 {
            match sessions.log_in(&options, "guess", guesser, now_s) {
                LogIn::Wait(s) => {
                    waits.push(s);
                    now_s += s;
                }
                other => assert_eq!(other, LogIn::Wrong),
            }
        }
        assert_eq!(waits, [2, 4]);
        assert!(matches!(
            sessions.log_in(&options, "right", guesser, now_s),
            LogIn::Wait(_) | LogIn::Done(_)
        ));
        let other = Some(IpAddr::from([192, 0, 2, 2]));
        assert!(matches!(sessions.log_in(&options, "right", other, now_s), LogIn::Done(_)));
    }

    #[test]
    fn beyond_loopback_a_password_is_needed() {
        let open = WebOptions::new([0; 32]);
        let home = IpAddr::from([127, 0, 0, 1]);
        let world = IpAddr::from([0, 0, 0, 0]);
        assert!(may_listen(home, &open).is_ok());
        assert!(matches!(may_listen(world, &open), Err(WebError::NeedsPassword { .. })));
        assert!(may_listen(world, &options()).is_ok());
        let broken = WebOptions { admin_hash: Some("secret".into()), ..open };
        assert!(matches!(may_listen(home, &broken), Err(WebError::PasswordHash { .. })));
    }

    #[test]
    fn a_program_keeps_its_session() {
        let (sessions, options) = (Sessions::default(), options());
        assert_eq!(sessions.known_program(&options, "right", None, 0), None);
        let LogIn::Done(id) = sessions.new_program(&options, "right", None, 0) else { panic!() };
        assert_eq!(sessions.known_program(&options, "right", None, 9), Some(id));
        assert_eq!(sessions.known_program(&options, "right", None, SESSION_S + 1), None);
        assert_eq!(sessions.new_program(&options, "guess", None, 0), LogIn::Wrong);
    }

    /// Guesses wrong as often as costs nothing, and once more.
    fn guess(sessions: &Sessions, options: &WebOptions, from: Option<IpAddr>, now_s: i64) {
        // Hashing is slow by design; what is tested is what is remembered.
        for _ in 0..=FREE_TRIES {
            sessions.remember_guess(from, now_s);
        }
        assert!(matches!(sessions.log_in(options, "right", from, now_s), LogIn::Wait(_)));
    }

    #[test]
    fn the_password_of_readers_does_not_end_the_count_of_wrong_guesses() {
        let (sessions, options) = (Sessions::default(), options());
        let guesser = Some(IpAddr::from([192, 0, 2, 1]));
        for (password, wait_s) in [("look", 2), ("right", 0)] {
            (1..FREE_TRIES).for_each(|_| sessions.remember_guess(guesser, 0));
            assert!(matches!(sessions.log_in(&options, password, guesser, 0), LogIn::Done(_)));
            sessions.remember_guess(guesser, 0);
            assert_eq!(sessions.wait_s(guesser, 0), wait_s, "{password}");
            locked(&sessions.held).guesses.clear();
        }
    }

    #[test]
    fn a_guesser_is_not_told_which_passwords_programs_use() {
        let (sessions, options) = (Sessions::default(), options());
        let (owner, guesser) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        assert!(matches!(sessions.new_program(&options, "right", Some(owner), 0), LogIn::Done(_)));
        guess(&sessions, &options, Some(guesser), 0);
        assert_eq!(sessions.known_program(&options, "right", Some(guesser), 1), None);
        assert!(sessions.known_program(&options, "right", Some(owner), 1).is_some());
    }

    #[test]
    fn addresses_of_one_network_are_one_guesser() {
        let (sessions, options) = (Sessions::default(), options());
        let at = |text: &str| Some(text.parse::<IpAddr>().unwrap());
        guess(&sessions, &options, at("2001:db8:1:2::1"), 0);
        assert!(sessions.wait_s(at("2001:db8:1:2:ffff::9"), 1) > 0);
        assert_eq!(sessions.wait_s(at("2001:db8:1:3::1"), 1), 0);
        guess(&sessions, &options, at("192.0.2.7"), 0);
        assert!(sessions.wait_s(at("::ffff:192.0.2.7"), 1) > 0);
    }

    #[test]
    fn with_a_full_table_everybody_new_waits() {
        let (sessions, options) = (Sessions::default(), options());
        for n in 0..MAX_GUESSERS as u32 {
            sessions.remember_guess(Some(IpAddr::from(n.to_be_bytes())), 0);
        }
        let others = (0..=FREE_TRIES).map(|n| IpAddr::from([203, 0, 113, n as u8]));
        others.for_each(|other| sessions.remember_guess(Some(other), 0));
        let fresh = Some(IpAddr::from([198, 51, 100, 1]));
        assert!(matches!(sessions.log_in(&options, "right", fresh, 1), LogIn::Wait(_)));
        assert!(locked(&sessions.held).guesses.len() <= MAX_GUESSERS + 1);
        assert_eq!(sessions.wait_s(fresh, MAX_WAIT_S + 1), 0);
    }

    #[test]
    fn ids_differ() {
        let sessions = Sessions::default();
        assert_ne!(sessions.new_id(&[0; 32], 1), sessions.new_id(&[0; 32], 1));
    }
}
