//! Pictures of the archive, as small as they are shown in lists. They are sent from here and not by replay, so that
//! the interface loads nothing from elsewhere; only kinds that cannot contain scripts are sent.

use axum::{
    http::header,
    response::{IntoResponse, Response},
};
use maud::{Markup, html};
use nenrin_state::VersionRow;
use nenrin_urls::CanonicalUrl;

use crate::{WebApp, WebError, format, guard::Fields};

/// Larger pictures are not shown in lists.
const MAX_BYTES: u64 = 2 << 20;
const SHOWN: [&str; 6] =
    ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"];

fn kind_of(row: &VersionRow) -> Option<&'static str> {
    let mime = row.mime.split(';').next().unwrap_or_default().trim();
    SHOWN.into_iter().find(|kind| kind.eq_ignore_ascii_case(mime))
}

/// Whether a version is shown as a picture.
pub(crate) fn is_shown(row: &VersionRow) -> bool {
    kind_of(row).is_some() && row.bytes <= MAX_BYTES && row.status == 200
}

/// The picture of a page as of a time.
pub(crate) fn thumbnail(at_s: i64, url: &CanonicalUrl) -> Markup {
    html! { img src=(address(at_s, url)) alt="" loading="lazy" decoding="async"; }
}

/// Where the picture of a page as of a time is to be had.
pub(crate) fn address(at_s: i64, url: &CanonicalUrl) -> String {
    format!("/picture?at={at_s}&url={}", format::encoded(url.as_str()))
}

pub(crate) fn picture(app: &WebApp, query: &Fields) -> Result<Response, WebError> {
    let none = || WebError::not_found("such picture");
    let url = CanonicalUrl::parse_typed(query.get("url")).map_err(|_| none())?;
    let at_s = query.number("at").ok_or_else(none)?;
    let found = app.state.version_as_of(&url.key(), at_s)?;
    let (_, row) = found.filter(|(_, row)| is_shown(row)).ok_or_else(none)?;
    let kind = kind_of(&row).ok_or_else(none)?;
    let body = app.changes.body(row.version, MAX_BYTES).ok_or_else(none)?;
    let headers = [
        (header::CONTENT_TYPE, kind),
        // Whatever the bytes are, they run nothing.
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
        (header::CACHE_CONTROL, "private, max-age=86400"),
    ];
    Ok((headers, body).into_response())
}
