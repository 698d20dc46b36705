//! Under which host name a request came, and whether that is the right one.

use crate::{ReplayOptions, ask::Ask};

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
    let name = name_of(ask.host());
    let own = options.origin.as_deref();
    if is_own(options, name) {
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

/// The interface's origin for someone who reached replay under this host. None where it is not
/// known: a public name says nothing of the name by which the interface goes, and whoever comes from
/// another machine does not reach an interface on loopback.
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
        let uri = "/web/2024/http://e.com/".parse().unwrap();
        judge(&options, &Ask { uri, headers, interface: None })
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
    fn the_way_back_to_the_interface_is_told_where_it_is_known() {
        let told = |at: &str, host: &str| {
            let options = ReplayOptions {
                origin: Some("http://replay.localhost:8081".into()),
                interface: Some(at.parse().unwrap()),
                ..ReplayOptions::default()
            };
            interface(&options, host)
        };
        let here = Some("http://127.0.0.1:8080".to_owned());
        for host in ["replay.localhost:8081", "127.0.0.1:8081", "localhost", "[::1]:8081"] {
            assert_eq!(told("127.0.0.1:8080", host), here, "{host}");
            assert_eq!(told("0.0.0.0:8080", host), here, "{host}");
        }
        assert_eq!(told("127.0.0.1:8080", "10.0.0.7:8081"), None, "out of reach");
        let there = Some("http://10.0.0.7:8080".to_owned());
        assert_eq!(told("0.0.0.0:8080", "10.0.0.7:8081"), there);
        assert_eq!(told("10.0.0.7:8080", "10.0.0.7"), there);
        assert_eq!(told("[::]:8080", "[fe80::1]:8081"), Some("http://[fe80::1]:8080".into()));
        for host in ["replay.example.org", "evil.localhost", "", "\"><script>"] {
            assert_eq!(told("0.0.0.0:8080", host), None, "{host}");
        }
    }

    #[test]
    fn foreign_names_are_refused() {
        for host in ["evil.example:8081", "127.0.0.1.evil.example", "xreplay.localhost:8081"] {
            assert_eq!(judged(host, true), Place::Foreign, "{host}");
            assert_eq!(judged(host, false), Place::Foreign, "{host}");
        }
    }
}
