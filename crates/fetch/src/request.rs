use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use nenrin_urls::{CanonicalUrl, Validators};

use crate::{AddressPolicy, FetchFailure, FetchOptions, Road};

/// A page to fetch.
#[derive(Debug, Clone)]
pub struct FetchRequest {
    /// The page.
    pub url: CanonicalUrl,
    /// Makes the request conditional, if set.
    pub validators: Validators,
    /// Which addresses may be contacted.
    pub addresses: AddressPolicy,
    /// A limit of the body for this request, in place of the one in the options.
    pub limit: Option<BodyLimit>,
    /// How long the exchange may take, from the first look-up to the last byte, where that is less
    /// than the options say.
    pub timeout: Option<Duration>,
    /// More request headers, such as `Cookie`. They replace the usual header of the same name.
    /// Headers that frame the message cannot be set.
    pub headers: Vec<(String, String)>,
    /// The body to POST; a GET without it. If the server had closed an idle connection in the
    /// meantime, it is sent once more, so it should carry an identifier.
    pub post: Option<Bytes>,
    /// How the request leaves this machine.
    pub road: Road,
}

impl FetchRequest {
    /// An unconditional request to a public address.
    pub fn new(url: CanonicalUrl) -> Self {
        Self {
            url,
            validators: Validators::default(),
            addresses: AddressPolicy::default(),
            limit: None,
            timeout: None,
            headers: Vec::new(),
            post: None,
            road: Road::default(),
        }
    }
}

impl FetchRequest {
    /// The same as a request that sends a body, to this URL.
    #[must_use]
    pub fn posting(mut self, url: CanonicalUrl, content_type: String, body: Bytes) -> Self {
        if !content_type.is_empty() {
            self.headers.push(("content-type".to_owned(), content_type));
        }
        Self { url, post: Some(body), ..self }
    }
}

/// How much of a body is received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyLimit {
    /// At most so many bytes; a longer body is a failure.
    Whole(u64),
    /// So many bytes from its beginning. The rest, however long, is never asked for: for files of
    /// which only the beginning counts.
    Front(u64),
}

impl BodyLimit {
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::Whole(bytes) | Self::Front(bytes) => bytes,
        }
    }
}

/// Headers of the connection or of the message's frame: only we set them.
const NOT_SETTABLE: [HeaderName; 7] = [
    header::HOST,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::TE,
    header::UPGRADE,
    header::EXPECT,
];

/// All headers of a request but `Host`.
pub(crate) fn request_headers(
    request: &FetchRequest,
    options: &FetchOptions,
) -> Result<HeaderMap, FetchFailure> {
    let mut headers = HeaderMap::new();
    let mut set = |name: HeaderName, value: Option<&str>| {
        // Options were checked. A validator that does not fit into a header is left out: the
        // request is then unconditional, which is always correct.
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
            headers.insert(name, value);
        }
    };
    set(header::USER_AGENT, Some(&options.user_agent));
    set(header::FROM, options.from.as_deref());
    set(header::ACCEPT, Some(&options.accept));
    set(header::ACCEPT_ENCODING, Some(&options.accept_encoding));
    set(header::IF_NONE_MATCH, request.validators.etag.as_deref());
    set(header::IF_MODIFIED_SINCE, request.validators.last_modified.as_deref());
    let mut extra = HeaderMap::new();
    for (name, value) in &request.headers {
        let refuse = |why| FetchFailure::Request { reason: format!("header `{name}` {why}") };
        let header =
            HeaderName::try_from(name.as_str()).map_err(|_| refuse("has an invalid name"))?;
        if NOT_SETTABLE.contains(&header) {
            return Err(refuse("frames the message and cannot be set"));
        }
        let value = HeaderValue::from_str(value).map_err(|_| refuse("has an invalid value"))?;
        extra.append(header, value);
    }
    for name in extra.keys() {
        headers.remove(name);
    }
    for (name, value) in &extra {
        headers.append(name, value.clone());
    }
    Ok(headers)
}

/// The `Host` of a URL: its port only where it is not the scheme's own.
pub(crate) fn host_header(url: &CanonicalUrl) -> String {
    match url.as_url().port() {
        Some(port) => format!("{}:{port}", url.host()),
        None => url.host().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn request(headers: &[(&str, &str)]) -> FetchRequest {
        let headers = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let url = CanonicalUrl::parse("http://example.com/").unwrap();
        FetchRequest { headers, ..FetchRequest::new(url) }
    }

    #[test]
    fn an_extra_header_replaces_the_usual_one() {
        let request = request(&[("accept", "text/html"), ("Cookie", "a=1"), ("Cookie", "b=2")]);
        let headers = request_headers(&request, &FetchOptions::default()).unwrap();
        assert_eq!(headers.get_all("accept").iter().collect::<Vec<_>>(), ["text/html"]);
        assert_eq!(headers.get_all("cookie").iter().collect::<Vec<_>>(), ["a=1", "b=2"]);
    }

    #[test]
    fn headers_that_could_split_or_frame_the_request_are_refused() {
        for header in [("X", "a\r\nB: c"), ("a b", "c"), ("Host", "x"), ("Content-Length", "1")] {
            let failure = request_headers(&request(&[header]), &FetchOptions::default());
            assert_eq!(failure.unwrap_err().kind(), "request", "{header:?}");
        }
    }

    #[test]
    fn a_validator_that_no_header_can_carry_is_left_out() {
        let mut request = request(&[]);
        request.validators.etag = Some("\"a\nb\"".to_owned());
        request.validators.last_modified = Some("Sun, 06 Nov 1994 08:49:37 GMT".to_owned());
        let headers = request_headers(&request, &FetchOptions::default()).unwrap();
        assert!(!headers.contains_key(header::IF_NONE_MATCH));
        assert!(headers.contains_key(header::IF_MODIFIED_SINCE));
    }

    proptest! {
        /// Whatever browsers allow in a URL must be sendable.
        #[test]
        fn every_canonical_url_makes_a_request_target(text in "https?://[a-z0-9_.-]{1,9}/[!-~ é]{0,20}") {
            if let Ok(url) = CanonicalUrl::parse(&text) {
                prop_assert!(url.path_and_query().parse::<http::Uri>().is_ok(), "{url}");
                prop_assert!(url.as_str().parse::<http::Uri>().is_ok(), "{url}");
            }
        }
    }
}
