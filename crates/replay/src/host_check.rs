//! Checks the host name of a request.

use crate::{ReplayOptions, ask::Ask};

/// What to do with a request, by its host name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HostCheck {
    /// The name is ours: answer.
    Own,
    /// A browser at a loopback address: redirect it to this URL under replay's own name.
    Redirect(String),
    /// The name is not ours.
    Foreign,
}

pub(crate) fn judge(options: &ReplayOptions, ask: &Ask) -> HostCheck {
    let name = name_of(ask.host());
    let own = options.origin.as_deref();
    if is_own(options, name) {
        return HostCheck::Own;
    }
    let is_loopback = is_loopback(name);
    if let Some(own) = own.filter(|_| is_loopback && is_opened_by_a_browser(ask)) {
        let path = ask.uri.path_and_query().map_or("/", |path| path.as_str());
        return HostCheck::Redirect(format!("{own}{path}"));
    }
    let is_known = name.is_empty() || is_loopback || is_address(name);
    if options.refuses_foreign_names && !is_known { HostCheck::Foreign } else { HostCheck::Own }
}

/// The interface's origin for someone who reached replay under this host. `None` where it is not
/// known: replay's public name does not reveal the interface's name, and someone on another machine
/// cannot reach an interface on loopback.
pub(crate) fn interface(options: &ReplayOptions, host: &str) -> Option<String> {
    let at = options.interface?;
    let name = name_of(host);
    let is_here = is_loopback(name) || is_own(options, name) && name.ends_with(".localhost");
    match (is_here, address(name)) {
        (true, _) if at.ip().is_unspecified() => Some(format!("http://127.0.0.1:{}", at.port())),
        (true, _) => Some(format!("http://{at}")),
        (false, Some(_)) if at.ip().is_loopback() => None,
        (false, Some(_)) if at.ip().is_unspecified() => {
            Some(format!("http://{name}:{}", at.port()))
        }
        (false, Some(_)) => Some(format!("http://{at}")),
        (false, None) => None,
    }
}

fn is_own(options: &ReplayOptions, name: &str) -> bool {
    let own = options.origin.as_deref().and_then(|origin| origin.split_once("://"));
    own.is_some_and(|(_, host)| name_of(host).eq_ignore_ascii_case(name))
}

/// Browsers send these headers where it is safe: on loopback always. Programs that use an address
/// mean it.
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

    fn judged(host: &'static str, is_browser: bool) -> HostCheck {
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
        let uri = "/web/2024/http://e.com/".parse().unwrap();
        judge(&options, &Ask { uri, headers, from: None, interface: None, posted: None })
    }

    #[test]
    fn browsers_are_led_from_loopback_to_the_own_name() {
        let there = "http://replay.localhost:8081/web/2024/http://e.com/";
        for host in ["127.0.0.1:8081", "localhost:8081", "[::1]:8081"] {
            assert_eq!(judged(host, true), HostCheck::Redirect(there.into()));
            assert_eq!(judged(host, false), HostCheck::Own, "programs mean the address");
        }
        assert_eq!(judged("replay.localhost:8081", true), HostCheck::Own);
        assert_eq!(judged("10.0.0.7:8081", true), HostCheck::Own);
    }

    #[test]
    fn the_interface_is_linked_where_it_is_known() {
        let linked = |at: &str, host: &str| {
            let options = ReplayOptions {
                origin: Some("http://replay.localhost:8081".into()),
                interface: Some(at.parse().unwrap()),
                ..ReplayOptions::default()
            };
            interface(&options, host)
        };
        let here = Some("http://127.0.0.1:8080".to_owned());
        for host in ["replay.localhost:8081", "127.0.0.1:8081", "localhost", "[::1]:8081"] {
            assert_eq!(linked("127.0.0.1:8080", host), here, "{host}");
            assert_eq!(linked("0.0.0.0:8080", host), here, "{host}");
        }
        assert_eq!(linked("127.0.0.1:8080", "10.0.0.7:8081"), None, "out of reach");
        let there = Some("http://10.0.0.7:8080".to_owned());
        assert_eq!(linked("0.0.0.0:8080", "10.0.0.7:8081"), there);
        assert_eq!(linked("10.0.0.7:8080", "10.0.0.7"), there);
        assert_eq!(linked("[::]:8080", "[fe80::1]:8081"), Some("http://[fe80::1]:8080".into()));
        for host in ["replay.example.org", "evil.localhost", "", "\"><script>"] {
            assert_eq!(linked("0.0.0.0:8080", host), None, "{host}");
        }
    }

    #[test]
    fn foreign_names_are_refused() {
        for host in ["evil.example:8081", "127.0.0.1.evil.example", "xreplay.localhost:8081"] {
            assert_eq!(judged(host, true), HostCheck::Foreign, "{host}");
            assert_eq!(judged(host, false), HostCheck::Foreign, "{host}");
        }
    }
}
