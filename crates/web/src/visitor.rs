//! The person who sends a request: language, role, and the token for their forms.

use std::net::IpAddr;

use nenrin_lang::Lang;

use crate::Role;

pub(crate) const SESSION_COOKIE: &str = "nenrin_session";

/// The person who sends a request, made once per request by the guard.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    pub(crate) lang: Lang,
    /// `None` if a password is needed and none was given.
    pub(crate) role: Option<Role>,
    /// Whether there is a password, so that people can log in and out.
    pub(crate) has_accounts: bool,
    /// Whether a password was given.
    pub(crate) is_logged_in: bool,
    pub(crate) session: String,
    /// The token that every form must carry.
    pub(crate) token: String,
    /// The origin of replayed pages.
    pub(crate) replay: String,
    /// Path and query of this request.
    pub(crate) here: String,
    /// Where the request comes from.
    pub(crate) from: Option<IpAddr>,
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

/// The token of a session's forms. Only our own pages can read it.
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

/// Whether this looks like an id from [`crate::session::Sessions`].
pub(crate) fn is_session_id(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|b| b.is_ascii_hexdigit())
}
