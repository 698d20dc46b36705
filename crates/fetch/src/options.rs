use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use nenrin_urls::Proxy;

use crate::FetchError;

/// The longest time limit allowed: a longer one would limit nothing, and adding it to the clock
/// could overflow.
const MAX_DURATION: Duration = Duration::from_secs(24 * 60 * 60);

/// How we identify ourselves, and a limit for everything that a server could make large or slow.
#[derive(Debug, Clone)]
pub struct FetchOptions {
    /// `User-Agent`. Should contain the robots.txt product token and a URL where server operators
    /// can find a contact. The default has the token alone, as only the operator knows the URL.
    pub user_agent: String,
    /// `From`: the operator's e-mail address, as RFC 9110 recommends for robots. None by default:
    /// only the operator knows it.
    pub from: Option<String>,
    /// `Accept`. Default `*/*`: an archive accepts every type, and must not get a 406.
    pub accept: String,
    /// `Accept-Encoding`. Default: the codings that browsers accept, so that servers send what they
    /// would send to a browser.
    pub accept_encoding: String,
    /// Limit for looking up a host name. Default 10 s: resolvers give up or answer well before.
    pub dns_timeout: Duration,
    /// Limit for connecting, over all addresses tried. Default 10 s, as other crawlers do: a server
    /// that has not accepted by then is down or drops our packets.
    pub connect_timeout: Duration,
    /// Limit for the TLS handshake. Default 10 s, for the same reason.
    pub tls_timeout: Duration,
    /// Limit from the request to the end of the response head. Default 30 s: slow dynamic pages
    /// need some 20 s, and most servers themselves give up at 30 or 60.
    pub head_timeout: Duration,
    /// Limit between two parts of the body. Default 20 s (Heritrix's socket timeout).
    pub idle_timeout: Duration,
    /// The lowest mean rate of a body, checked once it has taken `idle_timeout`. Default 200 bytes
    /// per second: slower than any modem, so only servers that are slow on purpose fall below.
    pub min_body_bytes_per_s: u64,
    /// Limit for the whole exchange. Default 20 minutes (Heritrix's): a large file on a slow line
    /// may take that long, and an endless stream must not take longer.
    pub total_timeout: Duration,
    /// Limit for status line and headers, including interim responses. Default 64 KiB: servers and
    /// browsers break above 8 to 256 KiB.
    pub max_head_bytes: usize,
    /// Limit for header lines. Default 256: real responses stay below 100.
    pub max_headers: usize,
    /// Limit for the body as sent. Default 100 MiB, because without a [`Memory`](crate::Memory) it
    /// is held in memory; with one it can be much higher.
    pub max_body_bytes: u64,
    /// How many addresses of a host are tried. Default 4: two of each family.
    pub max_addresses: usize,
    /// The largest number of idle connections. Default 256: well under the usual 1024 file
    /// descriptors of a process.
    pub max_idle_connections: usize,
    /// How long a connection may stay idle. Default 60 s: most servers close after 5 to 75 s, and a
    /// polite delay is shorter.
    pub max_idle_age: Duration,
    /// Certificates (DER) of authorities that are trusted in addition to the public ones: for sites
    /// with a private authority. None by default.
    pub extra_roots_der: Vec<Vec<u8>>,
    /// The roots (DER) that the system trusts, asked for with the first connection that needs them;
    /// those that cannot be understood are left out. None by default.
    pub system_roots_der: fn() -> Vec<Vec<u8>>,
    /// The proxy for requests that name none. None by default.
    pub proxy: Option<Proxy>,
    /// Proxies with logins, for requests that name one of them without. None by default.
    pub proxies: Vec<Proxy>,
    /// The address to send from, for requests that name none. None by default: the system chooses.
    pub source: Option<IpAddr>,
    /// Addresses of host names that are not looked up: for names that only this machine knows. The
    /// address policy applies to them too. None by default.
    pub hosts: Vec<(String, IpAddr)>,
    /// Whether servers may be asked at this moment. Always by default.
    pub permission: Permission,
}

/// Whether servers may be asked at this moment: one of several workers may ask only while it holds
/// them. It is looked at with every write, as a process can be stopped for a while at any place.
#[derive(Clone, Default)]
pub struct Permission(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl Permission {
    /// Asks this each time.
    pub fn new(holds: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(holds)))
    }

    /// Whether servers may be asked now.
    pub fn holds(&self) -> bool {
        self.0.as_ref().is_none_or(|holds| holds())
    }

    pub(crate) fn check(&self) -> io::Result<()> {
        match self.holds() {
            true => Ok(()),
            false => Err(io::Error::other("this server is asked by another worker now")),
        }
    }
}

impl fmt::Debug for Permission {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Permission").field(&self.holds()).finish()
    }
}

impl Default for FetchOptions {
    fn default() -> Self {
        Self {
            user_agent: concat!("nenrin/", env!("CARGO_PKG_VERSION")).to_owned(),
            from: None,
            accept: "*/*".to_owned(),
            accept_encoding: "gzip, deflate, br, zstd".to_owned(),
            dns_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(10),
            tls_timeout: Duration::from_secs(10),
            head_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(20),
            min_body_bytes_per_s: 200,
            total_timeout: Duration::from_secs(20 * 60),
            max_head_bytes: 64 * 1024,
            max_headers: 256,
            max_body_bytes: 100 * 1024 * 1024,
            max_addresses: 4,
            max_idle_connections: 256,
            max_idle_age: Duration::from_secs(60),
            extra_roots_der: Vec::new(),
            system_roots_der: Vec::new,
            proxy: None,
            proxies: Vec::new(),
            source: None,
            hosts: Vec::new(),
            permission: Permission::default(),
        }
    }
}

impl FetchOptions {
    /// Refuses options that could not work, at the start instead of at the first fetch.
    pub(crate) fn check(&self) -> Result<(), FetchError> {
        let refuse =
            |option, reason: &str| Err(FetchError::Option { option, reason: reason.to_owned() });
        if self.user_agent.trim().is_empty() {
            return refuse("user_agent", "it is empty, but servers must know who is visiting");
        }
        for (option, value) in [
            ("user_agent", Some(&self.user_agent)),
            ("from", self.from.as_ref()),
            ("accept", Some(&self.accept)),
            ("accept_encoding", Some(&self.accept_encoding)),
        ] {
            if value.is_some_and(|value| HeaderValue::from_str(value).is_err()) {
                return refuse(option, "it contains characters that are not allowed in a header");
            }
        }
        for (option, duration) in [
            ("dns_timeout", self.dns_timeout),
            ("connect_timeout", self.connect_timeout),
            ("tls_timeout", self.tls_timeout),
            ("head_timeout", self.head_timeout),
            ("idle_timeout", self.idle_timeout),
            ("total_timeout", self.total_timeout),
            ("max_idle_age", self.max_idle_age),
        ] {
            if duration.is_zero() {
                return refuse(option, "a limit of zero would fail every request");
            }
            if duration > MAX_DURATION {
                return refuse(option, "it must not be more than a day");
            }
        }
        let before_body = [self.connect_timeout, self.tls_timeout, self.head_timeout]
            .into_iter()
            .fold(self.dns_timeout, Duration::saturating_add);
        if self.total_timeout < before_body {
            return refuse(
                "total_timeout",
                "it is shorter than the limits of the steps before the body together",
            );
        }
        for (option, count) in [
            ("max_head_bytes", self.max_head_bytes),
            ("max_headers", self.max_headers),
            ("max_addresses", self.max_addresses),
        ] {
            if count == 0 {
                return refuse(option, "a limit of zero would fail every request");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_accepted() {
        assert_eq!(FetchOptions::default().check(), Ok(()));
    }

    #[test]
    fn an_option_that_cannot_work_is_named() {
        let refused = |options: FetchOptions| options.check().unwrap_err().to_string();
        let message = refused(FetchOptions { user_agent: "  ".into(), ..Default::default() });
        assert!(message.contains("fetch.user_agent "), "{message}");
        let message = refused(FetchOptions { from: Some("a\r\nb".into()), ..Default::default() });
        assert!(message.contains("fetch.from "), "{message}");
        let message = refused(FetchOptions { head_timeout: Duration::ZERO, ..Default::default() });
        assert!(message.contains("fetch.head_timeout "), "{message}");
        let message = refused(FetchOptions { max_idle_age: Duration::MAX, ..Default::default() });
        assert!(message.contains("fetch.max_idle_age "), "{message}");
        let total_timeout = Duration::from_secs(30);
        let message = refused(FetchOptions { total_timeout, ..Default::default() });
        assert!(message.contains("fetch.total_timeout "), "{message}");
    }
}
