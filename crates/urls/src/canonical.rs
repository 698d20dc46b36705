use std::fmt;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::{Server, UrlKey};

/// The longest URL that is kept. Longer ones are traps or tokens far more often than pages.
pub const MAX_URL_BYTES: usize = 4000;

/// Why a text is not a URL that can be archived.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Nothing was given.
    #[error("no web address given; write one like https://example.org/")]
    Empty,
    /// The text does not parse as a URL.
    #[error("`{text}` is not a web address: {reason}")]
    Malformed {
        /// The text given, shortened.
        text: String,
        /// What is wrong with it, for the person who typed it.
        reason: String,
    },
    /// A URL whose scheme is neither http nor https.
    #[error(
        "`{text}` begins with `{scheme}:`; only web pages can be archived; write http:// or https://"
    )]
    Scheme {
        /// The text given, shortened.
        text: String,
        /// The scheme found.
        scheme: String,
    },
    /// A user name or password was typed. It would be stored where every reader can see it.
    #[error(
        "there is a user name or password before `{host}`; only what every reader can see is \
         collected; leave out everything up to the @"
    )]
    Credentials {
        /// The host after the `@`.
        host: String,
    },
    /// A URL that is too long to be kept.
    #[error("a URL of {bytes} bytes is longer than the limit of {MAX_URL_BYTES}")]
    TooLong {
        /// Length of the URL in bytes.
        bytes: usize,
    },
}

/// What is wrong with the text, in words for the person who typed it.
pub(crate) fn malformed(text: &str, error: url::ParseError) -> UrlError {
    use url::ParseError as E;
    let reason = match error {
        E::EmptyHost => "the host name is missing".to_owned(),
        E::InvalidPort => "ports go from 1 to 65535".to_owned(),
        E::IdnaError | E::InvalidDomainCharacter => {
            "write one like https://example.com/".to_owned()
        }
        E::InvalidIpv4Address | E::InvalidIpv6Address => "this is not an IP address".to_owned(),
        E::RelativeUrlWithoutBase => "it does not begin with http:// or https://".to_owned(),
        other => other.to_string(),
    };
    UrlError::Malformed { text: shortened(text), reason }
}

pub(crate) fn shortened(text: &str) -> String {
    const SHOWN: usize = 120;
    match text.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

/// An http or https URL, parsed and written as browsers do (WHATWG), without fragment and without
/// user name and password. Canonicalising twice is the same as once.
///
/// This is the URL that is fetched and stored. URLs that a server could answer differently stay
/// different; [`UrlKey`] is the coarser form.
///
/// ```
/// use nenrin_urls::CanonicalUrl;
///
/// let url = CanonicalUrl::parse("HTTP://Example.com:80/a/../b?q=1#top")?;
/// assert_eq!(url.as_str(), "http://example.com/b?q=1");
/// assert_eq!(url.join("c.html")?.as_str(), "http://example.com/c.html");
/// # Ok::<(), nenrin_urls::UrlError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CanonicalUrl(Url);

impl CanonicalUrl {
    /// Parses an absolute URL.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        Self::from_url(Url::parse(text.trim()).map_err(|e| malformed(text, e))?)
    }

    /// Resolves a reference found on this page.
    pub fn join(&self, reference: &str) -> Result<Self, UrlError> {
        if reference.len() > MAX_URL_BYTES {
            return Err(UrlError::TooLong { bytes: reference.len() });
        }
        let url = self.0.join(reference.trim()).map_err(|e| malformed(reference, e))?;
        Self::from_url(url)
    }

    fn from_url(mut url: Url) -> Result<Self, UrlError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(UrlError::Scheme {
                text: shortened(url.as_str()),
                scheme: shortened(url.scheme()),
            });
        }
        url.set_fragment(None);
        // Both setters fail only on URLs without a host, which http and https always have.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        if url.query() == Some("") {
            url.set_query(None);
        }
        if url.as_str().len() > MAX_URL_BYTES {
            return Err(UrlError::TooLong { bytes: url.as_str().len() });
        }
        Ok(Self(url))
    }

    /// The URL as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &str {
        self.0.scheme()
    }

    /// Host name or address, as in the URL (IPv6 in brackets).
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    /// The port, the scheme's default when the URL names none.
    pub fn port(&self) -> u16 {
        self.0.port_or_known_default().unwrap_or(if self.scheme() == "https" { 443 } else { 80 })
    }

    /// The path, starting with `/`.
    pub fn path(&self) -> &str {
        self.0.path()
    }

    /// The query, without `?`.
    pub fn query(&self) -> Option<&str> {
        self.0.query()
    }

    /// Path and query, as in a request line.
    pub fn path_and_query(&self) -> &str {
        &self.as_str()[self.0[..url::Position::BeforePath].len()..]
    }

    /// The directory: the path up to and including its last `/`.
    pub fn directory(&self) -> &str {
        let path = self.path();
        &path[..=path.rfind('/').unwrap_or(0)]
    }

    /// The file of a directory, where mirrors keep its page: `/docs/index.html` of `/docs/`.
    pub fn index_file(&self) -> Option<Self> {
        let is_directory = self.query().is_none() && self.path().ends_with('/');
        is_directory.then(|| self.join("index.html").ok()).flatten()
    }

    /// The server that answers for this URL.
    pub fn server(&self) -> Server {
        Server::of(self)
    }

    /// The key under which versions of this URL are looked up.
    pub fn key(&self) -> UrlKey {
        UrlKey::of(self)
    }

    /// The parsed URL.
    pub fn as_url(&self) -> &Url {
        &self.0
    }
}

impl fmt::Display for CanonicalUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for CanonicalUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}>", self.as_str())
    }
}

impl TryFrom<String> for CanonicalUrl {
    type Error = UrlError;
    fn try_from(text: String) -> Result<Self, UrlError> {
        Self::parse(&text)
    }
}

impl From<CanonicalUrl> for String {
    fn from(url: CanonicalUrl) -> String {
        url.0.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn url(text: &str) -> CanonicalUrl {
        CanonicalUrl::parse(text).unwrap()
    }

    #[test]
    fn fragment_credentials_and_empty_query_are_dropped() {
        assert_eq!(url("HTTP://u:p@Example.COM:80/a?#top").as_str(), "http://example.com/a");
    }

    #[test]
    fn urls_that_a_server_could_answer_differently_stay_different() {
        for text in
            ["http://example.com/A%7eb", "http://www.example.com/a/", "http://e.com/?b=1&a=2"]
        {
            assert_eq!(url(text).as_str(), text);
        }
    }

    #[test]
    fn other_schemes_are_named_in_the_error() {
        let error = CanonicalUrl::parse("ftp://example.com/").unwrap_err();
        assert!(error.to_string().contains("`ftp:`"), "{error}");
        assert!(CanonicalUrl::parse("mailto:a@example.com").is_err());
        assert!(url("http://e.com/").join("javascript:void(0)").is_err());
    }

    #[test]
    fn a_url_beyond_the_limit_is_refused() {
        let long = format!("http://e.com/{}", "a".repeat(MAX_URL_BYTES));
        assert!(matches!(CanonicalUrl::parse(&long), Err(UrlError::TooLong { .. })));
    }

    #[test]
    fn the_limit_is_exact_for_urls_and_for_references() {
        let of = |bytes: usize| format!("http://e.com/{}", "a".repeat(bytes - 13));
        assert_eq!(url(&of(MAX_URL_BYTES)).as_str().len(), MAX_URL_BYTES);
        assert!(CanonicalUrl::parse(&of(MAX_URL_BYTES + 1)).is_err());
        // A fragment is dropped, so only the length of the reference counts.
        let fragment = |bytes: usize| format!("#{}", "a".repeat(bytes - 1));
        let page = url("http://e.com/");
        assert_eq!(page.join(&fragment(MAX_URL_BYTES)), Ok(page.clone()));
        assert!(page.join(&fragment(MAX_URL_BYTES + 1)).is_err());
        assert!(page.join(&fragment(MAX_URL_BYTES + 2)).is_err());
    }

    #[test]
    fn scheme_and_port_are_those_that_are_asked() {
        for (text, scheme, port) in [
            ("http://e.com/", "http", 80),
            ("https://e.com/", "https", 443),
            ("http://e.com:8080/", "http", 8080),
        ] {
            assert_eq!((url(text).scheme(), url(text).port()), (scheme, port));
        }
    }

    #[test]
    fn a_url_is_written_as_itself() {
        let url = url("http://e.com/a");
        assert_eq!(url.to_string(), "http://e.com/a");
        assert_eq!(format!("{url:?}"), "<http://e.com/a>");
        assert_eq!(String::from(url), "http://e.com/a");
    }

    #[test]
    fn path_and_query_is_the_request_target() {
        assert_eq!(url("http://e.com:8080/a/b.html?x=1").path_and_query(), "/a/b.html?x=1");
        assert_eq!(url("http://e.com").path_and_query(), "/");
        assert_eq!(url("http://e.com/a/b.html?x=1").directory(), "/a/");
    }

    #[test]
    fn only_a_directory_has_an_index_file() {
        let file = |text| url(text).index_file().map(|file| file.as_str().to_owned());
        assert_eq!(file("http://e.com"), Some("http://e.com/index.html".into()));
        assert_eq!(file("http://e.com/a/"), Some("http://e.com/a/index.html".into()));
        assert_eq!(file("http://e.com/a"), None);
        assert_eq!(file("http://e.com/a/?b"), None);
    }

    proptest! {
        #[test]
        fn canonicalising_twice_is_once(text in "(https?|HTTP)://[a-zA-Z0-9.-]{1,12}(:[0-9]{1,4})?/?\\PC{0,30}") {
            if let Ok(once) = CanonicalUrl::parse(&text) {
                prop_assert_eq!(CanonicalUrl::parse(once.as_str()).unwrap(), once);
            }
        }

        #[test]
        fn joining_any_text_never_panics(reference in "\\PC{0,60}") {
            let _ = url("http://example.com/a/b?c").join(&reference);
        }
    }
}
