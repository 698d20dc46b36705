use std::io;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http::header::{self, HeaderMap, HeaderValue};
use http_body_util::Full;
use nenrin_urls::{CanonicalUrl, ProxyServer};
use tokio::time::Instant;

use crate::request::{BodyLimit, host_header};
use crate::road::basic;
use crate::{AddressKind, AddressPolicy, FetchFailure, FetchOptions, Road, Waiting};

/// A request ready to be sent, on a first and perhaps on a second connection.
pub(crate) struct Prepared<'a> {
    pub(crate) url: &'a CanonicalUrl,
    pub(crate) headers: HeaderMap,
    pub(crate) addresses: AddressPolicy,
    /// How it goes, with the options' own road where the request names none.
    pub(crate) road: Road,
    /// The body to POST; a GET without it.
    pub(crate) post: Option<&'a Bytes>,
    pub(crate) limit: BodyLimit,
    pub(crate) started: Instant,
}

impl Prepared<'_> {
    /// With the target alone, and the host in a header of its own. A proxy gets the whole URL.
    pub(crate) fn http1_request(
        &self,
        proxy: Option<&ProxyServer>,
    ) -> Result<Request<Full<Bytes>>, FetchFailure> {
        let target = if proxy.is_some() { self.url.as_str() } else { self.url.path_and_query() };
        let mut request = request_to(target, self.post)?;
        let host = HeaderValue::try_from(host_header(self.url)).map_err(unsendable)?;
        request.headers_mut().insert(header::HOST, host);
        request.headers_mut().extend(self.headers.clone());
        if let Some(login) = proxy.and_then(|proxy| proxy.login.as_ref()) {
            let value = HeaderValue::try_from(basic(login)).map_err(unsendable)?;
            request.headers_mut().insert(header::PROXY_AUTHORIZATION, value);
        }
        Ok(request)
    }

    /// With the whole URL, from which HTTP/2 makes its own host field.
    pub(crate) fn http2_request(&self) -> Result<Request<Full<Bytes>>, FetchFailure> {
        let mut request = request_to(self.url.as_str(), self.post)?;
        *request.headers_mut() = self.headers.clone();
        Ok(request)
    }

    pub(crate) fn host(&self) -> String {
        self.url.host().to_owned()
    }

    pub(crate) fn timeout(&self, waiting: Waiting, after: Duration) -> FetchFailure {
        FetchFailure::Timeout { host: self.host(), waiting, after }
    }

    pub(crate) fn refused(&self, address: Option<IpAddr>) -> FetchFailure {
        match address {
            Some(address) => {
                let kind = AddressKind::of(address);
                FetchFailure::AddressRefused { host: self.host(), address, kind }
            }
            None => self.unresolved("the name has no address".to_owned()),
        }
    }

    pub(crate) fn unresolved(&self, reason: String) -> FetchFailure {
        FetchFailure::Dns { host: self.host(), reason }
    }

    pub(crate) fn unconnected(&self, reason: String) -> FetchFailure {
        FetchFailure::Connect { host: self.host(), port: self.url.port(), reason }
    }

    /// The proxy did not bring a connection.
    pub(crate) fn not_through(&self, proxy: &ProxyServer, why: &str) -> FetchFailure {
        self.unconnected(format!("the proxy {proxy}: {why}"))
    }

    pub(crate) fn insecure(&self, reason: String) -> FetchFailure {
        FetchFailure::Tls { host: self.host(), reason }
    }

    pub(crate) fn protocol(&self, reason: String) -> FetchFailure {
        FetchFailure::Protocol { host: self.host(), reason }
    }

    pub(crate) fn head_too_large(&self, options: &FetchOptions) -> FetchFailure {
        FetchFailure::HeadTooLarge {
            host: self.host(),
            limit_bytes: options.max_head_bytes,
            limit_headers: options.max_headers,
        }
    }

    pub(crate) fn body_too_large(&self, announced: Option<u64>) -> FetchFailure {
        FetchFailure::BodyTooLarge { host: self.host(), limit: self.limit.bytes(), announced }
    }

    pub(crate) fn body_cut(&self, received: u64, reason: String) -> FetchFailure {
        FetchFailure::BodyCut { host: self.host(), received, reason }
    }

    pub(crate) fn unkept(&self, received: u64, error: &io::Error) -> FetchFailure {
        // What this program itself sets aside is less than the whole disk.
        let is_system = error.raw_os_error().is_some();
        let is_disk_full = is_system && error.kind() == io::ErrorKind::StorageFull;
        let reason = error.to_string();
        FetchFailure::Unkept { host: self.host(), received, reason, is_disk_full }
    }
}

fn request_to(uri: &str, post: Option<&Bytes>) -> Result<Request<Full<Bytes>>, FetchFailure> {
    match post {
        None => Request::get(uri).body(Full::default()),
        Some(body) => Request::post(uri).body(Full::new(body.clone())),
    }
    .map_err(unsendable)
}

fn unsendable(error: impl Into<http::Error>) -> FetchFailure {
    FetchFailure::Request { reason: error.into().to_string() }
}
