//! The parts of a request that matter to replay.

use axum::http::{HeaderMap, HeaderValue, Method, Uri, header};
use bytes::Bytes;
use nenrin_lang::Lang;
use nenrin_urls::{CanonicalUrl, PostedUrl};

/// The parts of a request that matter here.
pub(crate) struct Ask {
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    /// The reader's address.
    pub(crate) from: Option<std::net::IpAddr>,
    /// The interface's origin, as this reader can reach it.
    pub(crate) interface: Option<String>,
    /// Method and body of a request that is not a GET.
    pub(crate) posted: Option<(Method, Bytes)>,
}

impl Ask {
    /// The host of the request, with its port.
    pub(crate) fn host(&self) -> &str {
        self.header_str(header::HOST.as_str())
            .or_else(|| self.uri.authority().map(|authority| authority.as_str()))
            .unwrap_or_default()
    }

    /// The address in the archive of a request to this URL.
    pub(crate) fn archived(&self, sent: CanonicalUrl) -> CanonicalUrl {
        let Some((method, body)) = &self.posted else { return sent };
        let content_type = self.header_str("content-type").unwrap_or_default();
        PostedUrl::of(&sent, method.as_str(), content_type, body).unwrap_or(sent)
    }

    /// Path and query after a prefix, as in the request line.
    pub(crate) fn rest(&self, prefix: &str) -> &str {
        let whole = self.uri.path_and_query().map_or("", |p| p.as_str());
        whole.strip_prefix(prefix).unwrap_or_default()
    }

    /// A value of the query; empty if it is not there.
    pub(crate) fn value(&self, name: &str) -> String {
        let query = self.uri.query().unwrap_or_default();
        let mut pairs = url::form_urlencoded::parse(query.as_bytes());
        let found = pairs.find(|(found, _)| found == name);
        found.map_or(String::new(), |(_, value)| value.into_owned())
    }

    pub(crate) fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.get(name).map(HeaderValue::as_bytes)
    }

    /// The language of the reader.
    pub(crate) fn lang(&self) -> Lang {
        let text = |name: &str| self.header_str(name).unwrap_or_default();
        Lang::of_request(text("cookie"), text("accept-language"))
    }

    pub(crate) fn header_str(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|v| v.to_str().ok())
    }
}
