//! `/_nenrin/lang/<code>/<path>`: stores the reader's choice of a language in a cookie.

use axum::{
    body::Body,
    http::{HeaderValue, Response, StatusCode, header},
};
use nenrin_lang::{LANG_COOKIE, Lang};

use crate::{
    ReplayError,
    ask::Ask,
    served::{Replay, redirect},
};

const YEAR_S: u32 = 365 * 86_400;

/// Stores the choice and redirects back. The path begins with exactly one slash, so that it stays
/// on this origin.
pub(crate) fn answer(replay: &Replay, ask: &Ask) -> Result<Response<Body>, ReplayError> {
    let (code, path) = ask.rest("/_nenrin/lang/").split_once('/').unwrap_or_default();
    let mut answer =
        redirect(StatusCode::FOUND, &format!("/{}", path.trim_start_matches(['/', '\\'])));
    if let Some(lang) = Lang::from_code(code) {
        // Archived scripts do not need it, and cannot read it.
        // Banners on the origins of archived servers are in this language, too.
        let below = replay.origins.as_ref().map(|origins| format!("; Domain={}", origins.name()));
        let cookie = format!(
            "{LANG_COOKIE}={}; Path=/; Max-Age={YEAR_S}; SameSite=Lax; HttpOnly{}",
            lang.code(),
            below.unwrap_or_default()
        );
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            answer.headers_mut().insert(header::SET_COOKIE, cookie);
        }
    }
    Ok(answer)
}
