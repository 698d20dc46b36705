//! Web addresses as people type them.

use url::{Host, Url};

use crate::{
    CanonicalUrl, UrlError,
    canonical::{malformed, shortened},
};

impl CanonicalUrl {
    /// Parses what a person typed. Without a scheme, https is assumed; on this computer and on
    /// private networks http, because hardly any server there has a certificate.
    pub fn parse_typed(text: &str) -> Result<Self, UrlError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(UrlError::Empty);
        }
        let url = match start(text) {
            Start::Scheme => Url::parse(text).map_err(|e| malformed(text, e))?,
            Start::Host => without_scheme(text)?,
            Start::Foreign(scheme) => {
                return Err(UrlError::Scheme { text: shortened(text), scheme: shortened(scheme) });
            }
            Start::Incomplete { reason, rest } => {
                let rest = if rest.is_empty() { "example.org/" } else { rest };
                let reason = format!("{reason}; write https://{}", shortened(rest));
                return Err(UrlError::Malformed { text: shortened(text), reason });
            }
        };
        if !url.username().is_empty() || url.password().is_some() {
            let host = url.host_str().unwrap_or_default();
            return Err(UrlError::Credentials { host: shortened(host) });
        }
        if url.port() == Some(0) {
            let reason = "port 0 cannot be used; ports go from 1 to 65535".to_owned();
            return Err(UrlError::Malformed { text: shortened(text), reason });
        }
        Self::parse(url.as_str())
    }

    /// Whether the address itself shows that it is on this computer or a private network. Names
    /// that resolve to such addresses are checked by the fetcher.
    pub fn is_on_private_network(&self) -> bool {
        is_on_private_network(self.as_url())
    }
}

/// How a typed address begins.
enum Start<'a> {
    /// With `http:` or `https:`.
    Scheme,
    /// With a host.
    Host,
    /// With another scheme, or a misspelt one.
    Foreign(&'a str),
    /// With an incomplete scheme.
    Incomplete { reason: &'static str, rest: &'a str },
}

fn start(text: &str) -> Start<'_> {
    let end = text.find([':', '/', '\\', '?', '#', '@']).unwrap_or(text.len());
    let (head, tail) = text.split_at(end);
    let is_web = ["http", "https"].iter().any(|scheme| head.eq_ignore_ascii_case(scheme));
    if let Some(rest) = tail.strip_prefix("//").filter(|_| is_web) {
        return Start::Incomplete { reason: "a colon is missing before the slashes", rest };
    }
    let Some(rest) = tail.strip_prefix(':') else { return Start::Host };
    if head.is_empty() {
        let rest = rest.trim_start_matches('/');
        return Start::Incomplete { reason: "the scheme before the colon is missing", rest };
    }
    if is_web {
        return Start::Scheme;
    }
    let is_port = rest.starts_with(|c: char| c.is_ascii_digit()) || rest.is_empty();
    // `name:password@host`; only mail addresses look the same.
    let names_user = !head.eq_ignore_ascii_case("mailto")
        && rest.find('@').is_some_and(|at| !rest[..at].contains('/'));
    let is_host = head.contains('.') || !is_scheme(head);
    if !rest.starts_with("//") && (is_port || names_user || is_host) {
        Start::Host
    } else {
        Start::Foreign(head)
    }
}

fn is_scheme(head: &str) -> bool {
    head.starts_with(|c: char| c.is_ascii_alphabetic())
        && head.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
}

fn without_scheme(text: &str) -> Result<Url, UrlError> {
    let parsed = |scheme: &str| {
        let host = text.trim_start_matches('/');
        Url::parse(&format!("{scheme}://{host}")).map_err(|e| malformed(text, e))
    };
    let secure = parsed("https")?;
    if !is_on_private_network(&secure) {
        return Ok(secure);
    }
    let plain = parsed("http")?;
    Ok(if plain.port() == Some(443) { secure } else { plain })
}

fn is_on_private_network(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
        Some(Host::Ipv6(ip)) => ip.is_loopback() || ip.is_unique_local(),
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_people_mean_is_taken() {
        for (typed, meant) in [
            ("example.com/x", "https://example.com/x"),
            ("  example.com\n", "https://example.com/"),
            ("//example.com/x", "https://example.com/x"),
            ("example.com:8080", "https://example.com:8080/"),
            ("intranet:8000/a", "https://intranet:8000/a"),
            ("http:/example.com", "http://example.com/"),
            ("http:example.com", "http://example.com/"),
            ("HTTP://Example.COM/A", "http://example.com/A"),
            ("http:\\\\example.com\\a", "http://example.com/a"),
            ("日本語.jp/年輪", "https://xn--wgv71a119e.jp/%E5%B9%B4%E8%BC%AA"),
            ("example.com/a:b@c", "https://example.com/a:b@c"),
            ("example.com?u=ftp://x", "https://example.com/?u=ftp://x"),
            ("localhost", "http://localhost/"),
            ("localhost:8000", "http://localhost:8000/"),
            ("127.0.0.1:8000/a", "http://127.0.0.1:8000/a"),
            ("192.168.1.7", "http://192.168.1.7/"),
            ("[::1]:8000", "http://[::1]:8000/"),
            ("127.0.0.1:443", "https://127.0.0.1/"),
            ("https://localhost", "https://localhost/"),
        ] {
            assert_eq!(CanonicalUrl::parse_typed(typed).unwrap().as_str(), meant, "{typed}");
        }
    }

    #[test]
    fn a_text_that_is_not_an_address_is_explained() {
        for (typed, message) in [
            ("", "no web address given; write one like https://example.org/"),
            (" \t\n", "no web address given; write one like https://example.org/"),
            (
                "htp:/x",
                "`htp:/x` begins with `htp:`; only web pages can be archived; write http:// or https://",
            ),
            (
                "ftp://x/",
                "`ftp://x/` begins with `ftp:`; only web pages can be archived; write http:// or https://",
            ),
            (
                "mailto:a@example.com",
                "`mailto:a@example.com` begins with `mailto:`; only web pages can be archived; write http:// or https://",
            ),
            (
                "file:///etc/passwd",
                "`file:///etc/passwd` begins with `file:`; only web pages can be archived; write http:// or https://",
            ),
            (
                "C:\\site",
                "`C:\\site` begins with `C:`; only web pages can be archived; write http:// or https://",
            ),
            (
                "https//example.org",
                "`https//example.org` is not a web address: a colon is missing before the slashes; write https://example.org",
            ),
            (
                "://example.org",
                "`://example.org` is not a web address: the scheme before the colon is missing; write https://example.org",
            ),
            (
                "://",
                "`://` is not a web address: the scheme before the colon is missing; write https://example.org/",
            ),
            ("http://", "`http://` is not a web address: the host name is missing"),
            (
                "example.org:99999",
                "`example.org:99999` is not a web address: ports go from 1 to 65535",
            ),
            (
                "http://example.org:0/",
                "`http://example.org:0/` is not a web address: port 0 cannot be used; ports go from 1 to 65535",
            ),
            (
                "http://exa mple.org/",
                "`http://exa mple.org/` is not a web address: write one like https://example.com/",
            ),
            ("1.2.3.999", "`1.2.3.999` is not a web address: this is not an IP address"),
            (
                "me:secret@example.org",
                "there is a user name or password before `example.org`; only what every reader can see is collected; leave out everything up to the @",
            ),
            (
                "https://me@example.org/",
                "there is a user name or password before `example.org`; only what every reader can see is collected; leave out everything up to the @",
            ),
        ] {
            let error = CanonicalUrl::parse_typed(typed).unwrap_err().to_string();
            assert_eq!(error, message, "{typed}");
        }
    }

    #[test]
    fn a_misspelt_scheme_without_slashes_is_not_a_host() {
        for typed in ["htp:x", "htttp://example.org", "hxxps://example.org", "javascript:void(0)"] {
            let error = CanonicalUrl::parse_typed(typed).unwrap_err();
            assert!(matches!(error, UrlError::Scheme { .. }), "{typed}: {error}");
        }
    }

    #[test]
    fn no_scheme_begins_with_a_digit() {
        let error = CanonicalUrl::parse_typed("9x:y").unwrap_err();
        assert!(!matches!(error, UrlError::Scheme { .. }), "{error}");
    }

    #[test]
    fn an_address_shows_that_it_is_private() {
        for (text, is_private) in [
            ("http://127.0.0.1/", true),
            ("http://192.168.1.1/", true),
            ("http://localhost/", true),
            ("http://93.184.216.34/", false),
            ("http://example.org/", false),
        ] {
            let url = CanonicalUrl::parse(text).unwrap();
            assert_eq!(url.is_on_private_network(), is_private, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_an_address_or_an_error(text in "\\PC{0,60}") {
            if let Ok(url) = CanonicalUrl::parse_typed(&text) {
                prop_assert_eq!(CanonicalUrl::parse_typed(url.as_str()).unwrap(), url);
            }
        }
    }
}
