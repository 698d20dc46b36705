//! The origin on which each archived server is shown: one for every server and date, so that the
//! browser keeps archived sites apart and their own addresses work.
//!
//! `http://<date>[m][s][p<port>]-<host>.replay.localhost:8081`, where the host's dots are written
//! `-` and its dashes `--`. `m` is a page without a banner, `s` is https. A host for which this is
//! too long or not reversible is written as `<date>[m]x-<hash>`, and looked up in a table.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, PoisonError},
};

use nenrin_urls::{CanonicalUrl, Server};

use crate::date::{Period, Stamp};

/// The longest label of a host name.
const MAX_LABEL: usize = 63;
/// The most servers in the table. Each is there because a page linked to it.
const MAX_HASHED: usize = 20_000;

/// One archived server as of a date, as an origin names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shelf {
    pub(crate) at_s: i64,
    /// Whether pages are shown without a banner.
    pub(crate) is_bare: bool,
    pub(crate) server: Server,
}

/// What the host of a request names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Named {
    Shelf(Shelf),
    /// A name of ours whose server is not known: it was made before this program began.
    Forgotten,
}

/// The names below the origin of replay.
#[derive(Debug)]
pub(crate) struct Origins {
    /// `http`, or `https` behind a proxy that speaks TLS.
    scheme: String,
    /// `replay.localhost:8081`.
    host: String,
    hashed: Mutex<Hashed>,
}

#[derive(Debug, Default)]
struct Hashed {
    servers: BTreeMap<String, Server>,
    order: VecDeque<String>,
}

impl Origins {
    /// The names below an origin such as `http://replay.localhost:8081`.
    pub(crate) fn below(origin: &str) -> Option<Self> {
        let (scheme, host) = origin.split_once("://")?;
        let host = host.trim_end_matches('/').to_ascii_lowercase();
        Some(Self { scheme: scheme.to_owned(), host, hashed: Mutex::default() })
    }

    /// The origin of replay itself.
    pub(crate) fn home(&self) -> String {
        format!("{}://{}", self.scheme, self.host)
    }

    /// Whether a request came to the origin of replay itself.
    pub(crate) fn is_home(&self, host: &str) -> bool {
        without_port(host).eq_ignore_ascii_case(self.name())
    }

    /// The host name of replay itself.
    pub(crate) fn name(&self) -> &str {
        without_port(&self.host)
    }

    /// All of them, as a policy writes it.
    pub(crate) fn pattern(&self) -> String {
        format!("{}://*.{}", self.scheme, self.host)
    }

    /// The origin of a server as of a date.
    pub(crate) fn of(&self, shelf: &Shelf) -> String {
        format!("{}://{}.{}", self.scheme, self.label(shelf), self.host)
    }

    fn label(&self, shelf: &Shelf) -> String {
        let bare = if shelf.is_bare { "m" } else { "" };
        let date = Stamp(shelf.at_s);
        let server = shelf.server.as_str();
        if let Some(written) = written(server) {
            let label = format!("{date}{bare}{written}");
            if label.len() <= MAX_LABEL && read(&written).as_ref() == Some(&shelf.server) {
                return label;
            }
        }
        let hash = blake3::hash(server.as_bytes()).to_hex()[..32].to_owned();
        let mut hashed = self.hashed.lock().unwrap_or_else(PoisonError::into_inner);
        if hashed.servers.insert(hash.clone(), shelf.server.clone()).is_none() {
            hashed.order.push_back(hash.clone());
            if hashed.order.len() > MAX_HASHED
                && let Some(oldest) = hashed.order.pop_front()
            {
                hashed.servers.remove(&oldest);
            }
        }
        format!("{date}{bare}x-{hash}")
    }

    /// What a host name with its port means; `None` if it is not below our own. The port is not
    /// compared: a proxy may listen on another one.
    pub(crate) fn read(&self, host: &str) -> Option<Named> {
        let name = without_port(&self.host);
        let asked = without_port(host);
        let label = asked.len().checked_sub(name.len() + 1).and_then(|length| {
            let is_below = asked.get(length + 1..)?.eq_ignore_ascii_case(name);
            let label = asked.get(..length)?;
            (is_below && asked.as_bytes()[length] == b'.').then(|| label.to_ascii_lowercase())
        })?;
        Some(self.named(&label).unwrap_or(Named::Forgotten))
    }

    fn named(&self, label: &str) -> Option<Named> {
        let (digits, rest) = label.split_at_checked(14)?;
        let at_s = Period::parse(digits).filter(|period| period.is_full)?.last_s;
        let (is_bare, rest) = match rest.strip_prefix('m') {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let server = match rest.strip_prefix("x-") {
            Some(hash) => {
                let hashed = self.hashed.lock().unwrap_or_else(PoisonError::into_inner);
                hashed.servers.get(hash).cloned()
            }
            None => read(rest),
        };
        Some(Named::Shelf(Shelf { at_s, is_bare, server: server? }))
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    }
}

/// A server as part of a label: `[s][p<port>]-<host>`.
fn written(server: &str) -> Option<String> {
    let (scheme, host) = server.split_once("://")?;
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) => (name, format!("p{port}")),
        None => (host, String::new()),
    };
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let secure = if scheme == "https" { "s" } else { "" };
    let name = name.replace('-', "--").replace('.', "-");
    let is_label = name.bytes().all(is_plain) && !name.ends_with('-');
    is_label.then(|| format!("{secure}{port}-{name}"))
}

/// The reverse of [`written`].
fn read(text: &str) -> Option<Server> {
    let (flags, host) = text.split_once('-')?;
    let (scheme, flags) = match flags.strip_prefix('s') {
        Some(flags) => ("https", flags),
        None => ("http", flags),
    };
    let port = match flags.strip_prefix('p') {
        Some(digits) => format!(":{}", digits.parse::<u16>().ok()?),
        None if flags.is_empty() => String::new(),
        None => return None,
    };
    let host = host.replace("--", "\u{0}").replace('-', ".").replace('\u{0}', "-");
    Some(CanonicalUrl::parse(&format!("{scheme}://{host}{port}/")).ok()?.server())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn origins() -> Origins {
        Origins::below("http://replay.localhost:8081").unwrap()
    }

    fn shelf(url: &str) -> Shelf {
        let server = CanonicalUrl::parse(url).unwrap().server();
        Shelf { at_s: 1_709_640_794, is_bare: false, server }
    }

    #[test]
    fn ordinary_servers_can_be_read_in_their_origin() {
        for (url, label) in [
            ("http://e.com/", "20240305121314-e-com"),
            ("https://www.e.com/", "20240305121314s-www-e-com"),
            ("http://my-site.example.org/", "20240305121314-my--site-example-org"),
            ("http://127.0.0.1:8080/", "20240305121314p8080-127-0-0-1"),
            ("https://e.com:8443/", "20240305121314sp8443-e-com"),
            ("http://xn--wgv71a.jp/", "20240305121314-xn----wgv71a-jp"),
            ("http://localhost/", "20240305121314-localhost"),
        ] {
            let (origins, shelf) = (origins(), shelf(url));
            let origin = origins.of(&shelf);
            assert_eq!(origin, format!("http://{label}.replay.localhost:8081"));
            let host = origin.strip_prefix("http://").unwrap();
            assert_eq!(self::origins().read(host), Some(Named::Shelf(shelf)), "{url}");
        }
        let bare = Shelf { is_bare: true, ..shelf("https://e.com/") };
        let origin = origins().of(&bare);
        assert_eq!(origin, "http://20240305121314ms-e-com.replay.localhost:8081");
    }

    #[test]
    fn other_servers_are_in_the_table() {
        let long = format!("http://{}.example.org/", "a-very-long-name.".repeat(4));
        for url in [&long, "http://[::1]:80/", "http://a_b.example.org/", "http://a.-b.org/"] {
            let (origins, shelf) = (origins(), shelf(url));
            let origin = origins.of(&shelf);
            let host = origin.strip_prefix("http://").unwrap();
            assert!(host.starts_with("20240305121314x-") && host.len() < 80, "{host}");
            assert_eq!(origins.read(host), Some(Named::Shelf(shelf)), "{url}");
            assert_eq!(self::origins().read(host), Some(Named::Forgotten), "{url}");
        }
    }

    #[test]
    fn names_that_are_not_ours_are_not_read() {
        for host in ["replay.localhost:8081", "localhost", "", "e.com", "xreplay.localhost", "é"] {
            assert_eq!(origins().read(host), None, "{host}");
        }
        for host in ["www.replay.localhost", "2024-e-com.replay.localhost", ".replay.localhost"] {
            assert_eq!(origins().read(host), Some(Named::Forgotten), "{host}");
        }
        let shouted = origins().read("20240305121314-E-COM.Replay.Localhost:9");
        assert_eq!(shouted, Some(Named::Shelf(shelf("http://e.com/"))));
    }

    proptest! {
        #[test]
        fn no_two_servers_share_an_origin(
            a in "(http|https)://[a-z0-9.-]{1,12}(:[1-9][0-9]{0,3})?/",
            b in "(http|https)://[a-z0-9.-]{1,12}(:[1-9][0-9]{0,3})?/",
        ) {
            let parsed = (CanonicalUrl::parse(&a), CanonicalUrl::parse(&b));
            if let (Ok(a), Ok(b)) = parsed {
                let (a, b) = (shelf(a.as_str()), shelf(b.as_str()));
                let origins = origins();
                prop_assert_eq!(origins.of(&a) == origins.of(&b), a == b);
                let host = origins.of(&a)[7..].to_owned();
                prop_assert_eq!(origins.read(&host), Some(Named::Shelf(a)));
            }
        }

        #[test]
        fn any_host_is_read_without_harm(host in "\\PC{0,80}") {
            let _ = origins().read(&host);
            let _ = origins().read(&format!("{host}.replay.localhost"));
        }
    }
}
