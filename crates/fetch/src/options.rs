use std::net::IpAddr;
use std::time::Duration;

use http::HeaderValue;

use crate::FetchError;

/// No limit of time may be longer: it would not be one, and adding it to the clock could overflow.
const MAX_DURATION: Duration = Duration::from_secs(24 * 60 * 60);

/// Who we say we are, and the limit of everything that a server could make large or slow.
#[derive(Debug, Clone)]
pub struct FetchOptions {
    /// `User-Agent`. Should carry the robots.txt product token and a URL where server operators
    /// learn whom to ask: the default has the token alone, as only the operator knows the URL.
    pub user_agent: String,
    /// `From`: the operator's e-mail address, as RFC 9110 recommends for robots. None by default:
    /// only the operator knows it.
    pub from: Option<String>,
    /// `Accept`. Default `*/*`: an archive takes every type, and must not meet 406.
    pub accept: String,
    /// `Accept-Encoding`. Default: the codings that browsers ask for, so that servers answer with
    /// what they would send to a browser.
    pub accept_encoding: String,
    /// Looking up a host name. Default 10 s: resolvers give up or answer well before.
    pub dns_timeout: Duration,
    /// Connecting, over all addresses tried. Default 10 s, as other crawlers do: who has not
    /// accepted by then is down or drops our packets.
    pub connect_timeout: Duration,
    /// The TLS handshake. Default 10 s, for the same reason.
    pub tls_timeout: Duration,
    /// From the request to the end of the response head. Default 30 s: slow dynamic pages need
    /// some 20 s, and most servers themselves give up at 30 or 60.
    pub head_timeout: Duration,
    /// Between two parts of the body. Default 20 s (Heritrix's socket timeout).
    pub idle_timeout: Duration,
    /// The least mean rate of a body, looked at once it has taken `idle_timeout`. Default 200
    /// bytes per second: slower than any modem, so only servers that drip on purpose fall below.
    pub min_body_bytes_per_s: u64,
    /// The whole exchange. Default 20 minutes (Heritrix's): a large file on a slow line may take
    /// that long, an endless stream must not take longer.
    pub total_timeout: Duration,
    /// Status line and headers, with interim responses. Default 64 KiB: servers and browsers
    /// break above 8 to 256 KiB.
    pub max_head_bytes: usize,
    /// Header lines. Default 256: real responses stay below 100.
    pub max_headers: usize,
    /// The body as sent. Default 100 MiB, as it is held in memory: larger files are mostly videos
    /// and disc images.
    pub max_body_bytes: u64,
    /// How many addresses of a host are tried. Default 4: two of each family.
    pub max_addresses: usize,
    /// How many connections may rest in all. Default 256: well under the usual 1024 file
    /// descriptors of a process.
    pub max_idle_connections: usize,
    /// How long a connection may rest. Default 60 s: most servers close after 5 to 75 s, and a
    /// polite delay is shorter.
    pub max_idle_age: Duration,
    /// Certificates (DER) of authorities that are trusted besides the public ones: for sites with
    /// a private authority. None by default.
    pub extra_roots_der: Vec<Vec<u8>>,
    /// Addresses of host names that are not looked up: for names that only this machine knows.
    /// The address policy holds for them too. None by default.
    pub hosts: Vec<(String, IpAddr)>,
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
            hosts: Vec::new(),
        }
    }
}

impl FetchOptions {
    /// Refuses what could not work, so that it is known at the start and not at the first fetch.
    pub(crate) fn check(&self) -> Result<(), FetchError> {
        let refuse =
            |option, reason: &str| Err(FetchError::Option { option, reason: reason.to_owned() });
        if self.user_agent.trim().is_empty() {
            return refuse("user_agent", "it is empty, but servers must know who asks");
        }
        for (option, value) in [
            ("user_agent", Some(&self.user_agent)),
            ("from", self.from.as_ref()),
            ("accept", Some(&self.accept)),
            ("accept_encoding", Some(&self.accept_encoding)),
        ] {
            if value.is_some_and(|value| HeaderValue::from_str(value).is_err()) {
                return refuse(option, "it has characters that no header may carry");
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
                return refuse(option, "no time at all lets nothing through");
            }
            if duration > MAX_DURATION {
                return refuse(option, "more than a day bounds nothing");
            }
        }
        let before_body = [self.connect_timeout, self.tls_timeout, self.head_timeout]
            .into_iter()
            .fold(self.dns_timeout, Duration::saturating_add);
        if self.total_timeout < before_body {
            return refuse("total_timeout", "the steps before the body alone may take longer");
        }
        for (option, count) in [
            ("max_head_bytes", self.max_head_bytes),
            ("max_headers", self.max_headers),
            ("max_addresses", self.max_addresses),
        ] {
            if count == 0 {
                return refuse(option, "zero lets nothing through");
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
        assert!(message.contains("`user_agent`"), "{message}");
        let message = refused(FetchOptions { from: Some("a\r\nb".into()), ..Default::default() });
        assert!(message.contains("`from`"), "{message}");
        let message = refused(FetchOptions { head_timeout: Duration::ZERO, ..Default::default() });
        assert!(message.contains("`head_timeout`"), "{message}");
        let message = refused(FetchOptions { max_idle_age: Duration::MAX, ..Default::default() });
        assert!(message.contains("`max_idle_age`"), "{message}");
        let total_timeout = Duration::from_secs(30);
        let message = refused(FetchOptions { total_timeout, ..Default::default() });
        assert!(message.contains("`total_timeout`"), "{message}");
    }
}
