//! Under which host name a request came, and whether that is the right one.

use axum::http::header;

use crate::{ReplayOptions, router::Ask};

/// What to do with a request, by the name it came under.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Answer it.
    Right,
    /// A browser that reached a loopback address: lead it to replay's own name.
    Elsewhere(String),
    /// A name that is not ours.
    Foreign,
}

pub(crate) fn judge(options: &ReplayOptions, ask: &Ask) -> Place {
    let host = ask
        .header_str(header::HOST.as_str())
        .or_else(|| ask.uri.authority().map(|authority| authority.as_str()))
        .unwrap_or_default();
    let name = name_of(host);
    let own = options.origin.as_deref();
    let own_name = own.and_then(|origin| origin.split_once("://")).map(|(_, host)| name_of(host));
    if own_name.is_some_and(|own| own.eq_ignore_ascii_case(name)) {
        return Place::Right;
    }
    let is_loopback = is_loopback(name);
    if let Some(own) = own.filter(|_| is_loopback && is_opened_by_a_browser(ask)) {
        let path = ask.uri.path_and_query().map_or("/", |path| path.as_str());
        return Place::Elsewhere(format!("{own}{path}"));
    }
    let is_known = name.is_empty() || is_loopback || is_address(name);
    if options.refuses_foreign_names && !is_known { Place::Foreign } else { Place::Right }
}

/// Browsers say so where it is safe to: on loopback always. Programs that name an address mean it.
fn is_opened_by_a_browser(ask: &Ask) -> bool {
    ask.header("sec-fetch-mode") == Some(b"navigate")
        && ask.header("sec-fetch-dest") == Some(b"document")
}

fn name_of(host: &str) -> &str {
    match host.rfind(':') {
        Some(colon) if !host[colon..].contains(']') => &host[..colon],
        _ => host,
    }
}

fn address(name: &str) -> Option<std::net::IpAddr> {
    name.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

fn is_address(name: &str) -> bool {
    address(name).is_some()
}

fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost") || address(name).is_some_and(|a| a.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderMap, HeaderValue};

    fn judged(host: &'static str, is_browser: bool) -> Place {
        let options = ReplayOptions {
            origin: Some("http://replay.localhost:8081".into()),
            refuses_foreign_names: true,
            ..ReplayOptions::default()
        };
        let mut headers = HeaderMap::new();
        headers.insert("host", HeaderValue::from_static(host));
        if is_browser {
            headers.insert("sec-fetch-mode", HeaderValue::from_static("navigate"));
            headers.insert("sec-fetch-dest", HeaderValue::from_static("document"));
        }
        judge(&options, &Ask { uri: "/web/2024/http://e.com/".parse().unwrap(), headers })
    }

    #[test]
    fn browsers_are_led_from_loopback_to_the_own_name() {
        let there = "http://replay.localhost:8081/web/2024/http://e.com/";
        for host in ["127.0.0.1:8081", "localhost:8081", "[::1]:8081"] {
            assert_eq!(judged(host, true), Place::Elsewhere(there.into()));
            assert_eq!(judged(host, false), Place::Right, "programs mean the address");
        }
        assert_eq!(judged("replay.localhost:8081", true), Place::Right);
        assert_eq!(judged("10.0.0.7:8081", true), Place::Right);
    }

    #[test]
    fn foreign_names_are_refused() {
        for host in ["evil.example:8081", "127.0.0.1.evil.example", "xreplay.localhost:8081"] {
            assert_eq!(judged(host, true), Place::Foreign, "{host}");
            assert_eq!(judged(host, false), Place::Foreign, "{host}");
        }
    }
}
