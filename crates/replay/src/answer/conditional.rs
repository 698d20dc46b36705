use axum::http::{HeaderMap, header};

use crate::date::Stamp;

/// Whether the client already has exactly this answer (RFC 9110, 13.1).
pub(crate) fn is_unchanged(request: &HeaderMap, etag: &str, received_s: i64) -> bool {
    let text = |name| request.get(name).and_then(|v: &axum::http::HeaderValue| v.to_str().ok());
    if let Some(wanted) = text(header::IF_NONE_MATCH) {
        return wanted
            .split(',')
            .map(|tag| tag.trim().trim_start_matches("W/"))
            .any(|tag| tag == "*" || tag == etag);
    }
    // The date of the version is the date of the last change: versions do not change.
    text(header::IF_MODIFIED_SINCE)
        .and_then(Stamp::parse_http)
        .is_some_and(|since| since.0 >= received_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unchanged(name: &'static str, value: &'static str) -> bool {
        let mut request = HeaderMap::new();
        request.insert(name, value.parse().unwrap());
        is_unchanged(&request, "\"7\"", 1_709_640_794)
    }

    #[test]
    fn a_known_tag_or_a_later_date_needs_no_body() {
        assert!(unchanged("if-none-match", "\"6\", W/\"7\""));
        assert!(unchanged("if-none-match", "*"));
        assert!(!unchanged("if-none-match", "\"8\""));
        assert!(unchanged("if-modified-since", "Tue, 05 Mar 2024 12:13:14 GMT"));
        assert!(!unchanged("if-modified-since", "Tue, 05 Mar 2024 12:13:13 GMT"));
        assert!(!unchanged("if-modified-since", "nonsense"));
    }
}
