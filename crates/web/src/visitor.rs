//! The person who asks: language, role, and the token their forms carry.

use nenrin_lang::Lang;

use crate::Role;

pub(crate) const SESSION_COOKIE: &str = "nenrin_session";

/// The person who asks, made once per request by the guard.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    pub(crate) lang: Lang,
    /// `None` where a password is needed and none was given.
    pub(crate) role: Option<Role>,
    /// Whether a password exists: then there is someone to log in or out.
    pub(crate) has_accounts: bool,
    /// Whether a password was given.
    pub(crate) is_logged_in: bool,
    pub(crate) session: String,
    /// What every form must carry.
    pub(crate) token: String,
    /// Where replayed pages live.
    pub(crate) replay: String,
    /// Path and query of this request.
    pub(crate) here: String,
    pub(crate) now_s: i64,
}

impl Visitor {
    pub(crate) fn t<'a>(&self, en: &'a str, ja: &'a str) -> &'a str {
        self.lang.t(en, ja)
    }

    pub(crate) fn is_admin(&self) -> bool {
        self.role == Some(Role::Admin)
    }
}

/// The token of a session's forms. Whoever can read it is on our own pages.
pub(crate) fn token(secret: &[u8; 32], session: &str) -> String {
    let mut hasher = blake3::Hasher::new_keyed(secret);
    hasher.update(b"form").update(session.as_bytes());
    hasher.finalize().to_hex()[..40].to_owned()
}

/// The value of a cookie.
pub(crate) fn cookie<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    header
        .split(';')
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
}

/// Session ids as [`crate::session::Sessions`] makes them; anything else is not ours.
pub(crate) fn is_session_id(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|b| b.is_ascii_hexdigit())
}
