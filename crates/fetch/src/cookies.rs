//! The cookies of a log-in: which go where (RFC 6265), and what answers change.

use std::fmt;

use nenrin_urls::{CanonicalUrl, is_public_suffix};
use serde::{Deserialize, Serialize};

use crate::http_date;

/// Longer cookies are not taken, as in browsers.
const COOKIE_MAX_BYTES: usize = 4_096;
/// The most cookies of one jar; the oldest leave.
const COOKIES_MAX: usize = 1_000;
/// The longest time that an answer can keep a cookie: 400 days, as in browsers.
const MAX_AGE_S: i64 = 400 * 86_400;

/// A cookie.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cookie {
    name: String,
    value: String,
    /// In lower case, without a dot in front.
    domain: String,
    /// Whether hosts below the domain do not get it.
    host_only: bool,
    path: String,
    secure: bool,
    expires_s: Option<i64>,
}

/// Without the value: it may end up in a log.
impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cookie {} of {}{}", self.name, self.domain, self.path)
    }
}

impl Cookie {
    fn goes_to(&self, url: &CanonicalUrl, now_s: i64) -> bool {
        let host = url.host();
        let is_host = host == self.domain || !self.host_only && is_below(host, &self.domain);
        is_host
            && path_matches(url.path(), &self.path)
            && (!self.secure || url.as_url().scheme() == "https")
            && self.expires_s.is_none_or(|expires_s| expires_s > now_s)
    }

    fn is_same(&self, other: &Self) -> bool {
        (&self.name, &self.domain, &self.path) == (&other.name, &other.domain, &other.path)
    }

    /// What an answer sets, if this server may set it for itself.
    fn parse(url: &CanonicalUrl, line: &str, now_s: i64) -> Option<Self> {
        let mut parts = line.split(';');
        let (name, value) = parts.next()?.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        let is_bad =
            |text: &str| text.len() > COOKIE_MAX_BYTES || text.chars().any(char::is_control);
        if name.is_empty() || is_bad(line) {
            return None;
        }
        let mut cookie = Self {
            name: name.to_owned(),
            value: value.to_owned(),
            domain: url.host().to_owned(),
            host_only: true,
            path: default_path(url.path()),
            secure: false,
            expires_s: None,
        };
        let mut max_age = None;
        for part in parts {
            let (word, value) = part.split_once('=').unwrap_or((part, ""));
            let value = value.trim();
            match word.trim().to_ascii_lowercase().as_str() {
                "domain" => {
                    let domain = value.trim_start_matches('.').to_ascii_lowercase();
                    if domain.is_empty() || domain == url.host() && is_public_suffix(&domain) {
                        continue;
                    }
                    let is_own = domain == url.host() || is_below(url.host(), &domain);
                    if !is_own || is_public_suffix(&domain) {
                        return None;
                    }
                    (cookie.domain, cookie.host_only) = (domain, false);
                }
                "path" if value.starts_with('/') => cookie.path = value.to_owned(),
                "secure" => cookie.secure = true,
                "expires" => cookie.expires_s = date(value),
                "max-age" => max_age = value.parse::<i64>().ok(),
                _ => {}
            }
        }
        if let Some(age_s) = max_age {
            cookie.expires_s = Some(now_s.saturating_add(age_s.clamp(0, MAX_AGE_S)));
        }
        let is_https = url.as_url().scheme() == "https";
        let is_fair = (!cookie.secure || is_https)
            && (!name.starts_with("__Secure-") || cookie.secure)
            && (!name.starts_with("__Host-")
                || cookie.secure && cookie.host_only && cookie.path == "/");
        is_fair.then_some(cookie)
    }
}

/// Dates of cookies have dashes where those of HTTP have spaces.
fn date(text: &str) -> Option<i64> {
    http_date::parse(text).or_else(|| http_date::parse(&text.replace('-', " ")))
}

fn is_below(host: &str, domain: &str) -> bool {
    let is_address = host.starts_with('[') || host.parse::<std::net::Ipv4Addr>().is_ok();
    !is_address && host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
}

fn path_matches(path: &str, of_cookie: &str) -> bool {
    let rest = path.strip_prefix(of_cookie);
    rest.is_some_and(|rest| rest.is_empty() || of_cookie.ends_with('/') || rest.starts_with('/'))
}

fn default_path(path: &str) -> String {
    match path.rfind('/') {
        None | Some(0) => "/".to_owned(),
        Some(end) => path[..end].to_owned(),
    }
}

/// The cookies of a site's log-in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CookieJar(Vec<Cookie>);

impl CookieJar {
    /// Reads a `cookies.txt`, as browsers' add-ons and curl write it.
    ///
    /// # Errors
    /// A sentence that names the line, without what is in it.
    pub fn import(text: &str) -> Result<Self, String> {
        let mut jar = Self::default();
        for (number, line) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
            let wrong = |what: &str| {
                Err(format!(
                    "line {number} {what}; a cookies.txt has 7 fields with tabs between: \
                     domain, TRUE or FALSE, path, TRUE or FALSE, expiry, name, value"
                ))
            };
            let line = line.strip_prefix("#HttpOnly_").unwrap_or(line);
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let fields: Vec<&str> = line.split('\t').collect();
            let [domain, below, path, secure, expires, name, value] = fields[..] else {
                return wrong("does not have 7 fields");
            };
            let domain = domain.trim_start_matches('.').to_ascii_lowercase();
            if domain.is_empty() || name.is_empty() || !path.starts_with('/') {
                return wrong("has no domain, path or name");
            }
            if line.len() > COOKIE_MAX_BYTES || (name.chars().chain(value.chars())).any(is_unfit) {
                return wrong("is too long, or has characters that no cookie has");
            }
            let Ok(expires_s) = expires.trim().split('.').next().unwrap_or_default().parse() else {
                return wrong("has no expiry in seconds");
            };
            let is_wide = below.eq_ignore_ascii_case("TRUE") && !is_public_suffix(&domain);
            jar.insert(Cookie {
                name: name.to_owned(),
                value: value.to_owned(),
                domain,
                host_only: !is_wide,
                path: path.to_owned(),
                secure: secure.eq_ignore_ascii_case("TRUE"),
                expires_s: Some(expires_s).filter(|&at_s: &i64| at_s > 0),
            });
        }
        match jar.0.is_empty() {
            true => Err("there is no cookie in it".to_owned()),
            false => Ok(jar),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of the `Cookie` header of a request, if any cookie belongs there.
    pub fn header_for(&self, url: &CanonicalUrl, now_s: i64) -> Option<String> {
        let mut fitting: Vec<&Cookie> =
            self.0.iter().filter(|cookie| cookie.goes_to(url, now_s)).collect();
        // The longest path first; those of the same length in the order in which they came.
        fitting.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        let pairs: Vec<String> =
            fitting.iter().map(|cookie| format!("{}={}", cookie.name, cookie.value)).collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }

    /// Takes in one `Set-Cookie` of a server's answer. Returns whether that changed anything.
    pub fn set(&mut self, url: &CanonicalUrl, line: &str, now_s: i64) -> bool {
        let Some(cookie) = Cookie::parse(url, line, now_s) else { return false };
        // A server that is not secure cannot replace what a secure one set.
        let is_https = url.as_url().scheme() == "https";
        let stays = |old: &Cookie| old.secure && !is_https && old.name == cookie.name;
        if self.0.iter().any(|old| stays(old) && old.domain == cookie.domain) {
            return false;
        }
        let is_over = cookie.expires_s.is_some_and(|expires_s| expires_s <= now_s);
        let before = self.0.iter().position(|old| old.is_same(&cookie));
        match before {
            Some(at) if is_over => drop(self.0.remove(at)),
            Some(at) if self.0[at] == cookie => return false,
            Some(at) => self.0[at] = cookie,
            None if is_over => return false,
            None => self.insert(cookie),
        }
        true
    }

    fn insert(&mut self, cookie: Cookie) {
        self.0.retain(|old| !old.is_same(&cookie));
        if self.0.len() >= COOKIES_MAX {
            self.0.remove(0);
        }
        self.0.push(cookie);
    }
}

fn is_unfit(c: char) -> bool {
    c.is_control() || c == ';' || !c.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> CanonicalUrl {
        CanonicalUrl::parse(text).unwrap()
    }

    fn after(sets: &[(&str, &str)]) -> CookieJar {
        let mut jar = CookieJar::default();
        for (from, line) in sets {
            jar.set(&url(from), line, 100);
        }
        jar
    }

    #[test]
    fn a_cookie_goes_only_where_it_belongs() {
        let jar = after(&[
            ("https://www.e.com/a/b", "host=1"),
            ("https://www.e.com/", "wide=2; Domain=.E.com; Path=/; Secure"),
            ("https://www.e.com/", "deep=3; path=/a/b"),
            ("https://www.e.com/", "foreign=4; domain=other.com"),
            ("https://www.e.com/", "suffix=5; domain=com"),
            ("https://a.co.uk/", "suffix=6; domain=co.uk"),
            ("http://127.0.0.1/", "address=7; domain=0.0.1"),
            ("http://www.e.com/", "__Secure-x=8"),
            ("https://www.e.com/", "__Host-x=9; secure; path=/a"),
        ]);
        for (to, sent) in [
            ("https://www.e.com/a/b/c", Some("deep=3; host=1; wide=2")),
            ("https://www.e.com/a/b", Some("deep=3; host=1; wide=2")),
            ("https://www.e.com/a/bc", Some("host=1; wide=2")),
            ("https://www.e.com/ab", Some("wide=2")),
            ("http://www.e.com/a", Some("host=1")),
            ("https://e.com/a", Some("wide=2")),
            ("https://x.www.e.com/a", Some("wide=2")),
            ("https://evile.com/a", None),
            ("https://other.com/", None),
            ("https://b.co.uk/", None),
            ("https://com.evil.org/a", None),
        ] {
            assert_eq!(jar.header_for(&url(to), 100).as_deref(), sent, "{to}");
        }
        assert_eq!(jar.len(), 3, "{jar:?}");
        assert!(!format!("{jar:?}").contains('2'), "values are not shown");
    }

    #[test]
    fn answers_change_and_end_cookies() {
        let from = "https://e.com/";
        let mut jar = after(&[(from, "a=1; max-age=50"), (from, "b=1")]);
        let sent = |jar: &CookieJar, now_s| jar.header_for(&url(from), now_s).unwrap_or_default();
        assert_eq!(sent(&jar, 149), "a=1; b=1");
        assert_eq!(sent(&jar, 150), "b=1");
        assert!(jar.set(&url(from), "b=2; Expires=Wed, 21-Oct-2099 07:28:00 GMT", 100));
        assert!(!jar.set(&url(from), "b=2; Expires=Wed, 21 Oct 2099 07:28:00 GMT", 100));
        assert!(jar.set(&url(from), "a=; expires=Thu, 01 Jan 1970 00:00:00 GMT", 100));
        assert_eq!(sent(&jar, 100), "b=2");
        assert!(jar.set(&url(from), "c=s; secure", 100));
        assert!(!jar.set(&url("http://e.com/"), "c=stolen", 100));
        assert!(!jar.set(&url(from), &format!("long={}", "x".repeat(5_000)), 100));
        for n in 0..2_000 {
            jar.set(&url(from), &format!("n{n}=1"), 100);
        }
        assert_eq!(jar.len(), COOKIES_MAX);
    }

    #[test]
    fn a_cookies_txt_is_read_and_a_mistake_is_named_without_its_secret() {
        let text = "# Netscape HTTP Cookie File\n\n#HttpOnly_.e.com\tTRUE\t/\tTRUE\t0\tsid\tabc\n\
                    www.e.com\tFALSE\t/x\tFALSE\t200.5\tu\t\n";
        let jar = CookieJar::import(text).unwrap();
        let sent = |to, now_s| jar.header_for(&url(to), now_s);
        assert_eq!(sent("https://www.e.com/x", 100).as_deref(), Some("u=; sid=abc"));
        assert_eq!(sent("https://www.e.com/x", 200).as_deref(), Some("sid=abc"));
        assert_eq!(sent("http://a.e.com/", 100), None);
        for wrong in ["", "a b c", "e.com\tTRUE\t/\tTRUE\tsoon\tsid\ttopsecret"] {
            let why = CookieJar::import(wrong).unwrap_err();
            assert!(!why.contains("topsecret"), "{why}");
        }
    }
}
