use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use nenrin_lang::{Network, Step, Unfetched};

use crate::AddressKind;

/// Why a [`crate::Fetcher`] cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// An option has a value that cannot work.
    #[error("fetch.{option} cannot be used: {reason}")]
    Option {
        /// The field of [`crate::FetchOptions`].
        option: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

/// What the fetcher was waiting for when time ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// The host's addresses.
    Dns,
    /// A TCP connection.
    Connect,
    /// The TLS or HTTP/2 handshake.
    Handshake,
    /// The response's status and headers.
    Head,
    /// The next part of the body.
    Body,
    /// A body that arrives, but slower than the lowest rate allowed.
    BodyRate,
    /// The end of the whole exchange.
    Exchange,
}

/// Why a request brought no complete exchange. This is a result of the visit, to be recorded; it
/// holds only text and numbers so that it can be compared and stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchFailure {
    /// The request itself cannot be sent; no server was contacted.
    Request {
        /// What is wrong with it.
        reason: String,
    },
    /// The host has no address that the policy permits; no server was contacted.
    AddressRefused {
        /// The host in the URL.
        host: String,
        /// The first address refused.
        address: IpAddr,
        /// What kind of address that is.
        kind: AddressKind,
    },
    /// The host name has no address.
    Dns {
        /// The host in the URL.
        host: String,
        /// What the resolver says.
        reason: String,
    },
    /// No address of the host accepts a connection.
    Connect {
        /// The host in the URL.
        host: String,
        /// The port.
        port: u16,
        /// The error of the last address tried.
        reason: String,
    },
    /// The TLS handshake failed: a bad certificate, most often.
    Tls {
        /// The host in the URL.
        host: String,
        /// What went wrong.
        reason: String,
    },
    /// The server closed the connection without a complete response head.
    Closed {
        /// The host in the URL.
        host: String,
    },
    /// What the server sent is not HTTP.
    Protocol {
        /// The host in the URL.
        host: String,
        /// What went wrong.
        reason: String,
    },
    /// The response's status line and headers are too many or too long.
    HeadTooLarge {
        /// The host in the URL.
        host: String,
        /// The largest number of bytes read.
        limit_bytes: usize,
        /// The largest number of header lines read.
        limit_headers: usize,
    },
    /// The body is longer than the limit.
    BodyTooLarge {
        /// The host in the URL.
        host: String,
        /// The largest number of bytes read.
        limit: u64,
        /// The Content-Length, if that was over the limit.
        announced: Option<u64>,
    },
    /// The body ended too early or too late.
    BodyCut {
        /// The host in the URL.
        host: String,
        /// Number of bytes received.
        received: u64,
        /// What went wrong.
        reason: String,
    },
    /// The body came and could not be put into a file: most often because the disk is full.
    Unkept {
        /// The host in the URL.
        host: String,
        /// Number of bytes received.
        received: u64,
        /// What went wrong.
        reason: String,
        /// Whether the disk takes no more of anything.
        is_disk_full: bool,
    },
    /// Time ran out.
    Timeout {
        /// The host in the URL.
        host: String,
        /// What the fetcher was waiting for.
        waiting: Waiting,
        /// The limit that was reached.
        after: Duration,
    },
}

impl fmt::Display for FetchFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Unfetched::from(self).fmt(f)
    }
}

impl std::error::Error for FetchFailure {}

/// The words for people, in both languages.
impl From<&FetchFailure> for Unfetched {
    fn from(failure: &FetchFailure) -> Self {
        match failure.clone() {
            FetchFailure::Request { reason: why } => Unfetched::Request { why },
            FetchFailure::AddressRefused { host, address, kind } => {
                Unfetched::Address { host, address, network: network(kind) }
            }
            FetchFailure::Dns { host, reason: why } => Unfetched::Dns { host, why },
            FetchFailure::Connect { host, port, reason: why } => {
                Unfetched::Connect { host, port, why }
            }
            FetchFailure::Tls { host, reason: why } => Unfetched::Tls { host, why },
            FetchFailure::Closed { host } => Unfetched::Closed { host },
            FetchFailure::Protocol { host, reason: why } => Unfetched::Protocol { host, why },
            FetchFailure::HeadTooLarge { host, limit_bytes, limit_headers } => {
                let (limit_bytes, limit_headers) = (limit_bytes as u64, limit_headers as u64);
                Unfetched::HeadTooLarge { host, limit_bytes, limit_headers }
            }
            FetchFailure::BodyTooLarge { host, limit, announced } => {
                Unfetched::BodyTooLarge { host, limit_bytes: limit, announced_bytes: announced }
            }
            FetchFailure::BodyCut { host, received, reason: why } => {
                Unfetched::BodyCut { host, received_bytes: received, why }
            }
            FetchFailure::Unkept { host, received, reason: why, .. } => {
                Unfetched::Unkept { host, received_bytes: received, why }
            }
            FetchFailure::Timeout { host, waiting, after } => {
                let after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
                Unfetched::Timeout { host, step: step(waiting), after_ms }
            }
        }
    }
}

fn network(kind: AddressKind) -> Network {
    match kind {
        AddressKind::Public => Network::Public,
        AddressKind::Loopback => Network::Loopback,
        AddressKind::Private => Network::Private,
        AddressKind::CarrierNat => Network::CarrierNat,
        AddressKind::Benchmarking => Network::Benchmarking,
        AddressKind::Documentation => Network::Documentation,
        AddressKind::LinkLocal => Network::LinkLocal,
        AddressKind::Metadata => Network::Metadata,
        AddressKind::Multicast => Network::Multicast,
        AddressKind::Unspecified => Network::Unspecified,
        AddressKind::Reserved => Network::Reserved,
    }
}

fn step(waiting: Waiting) -> Step {
    match waiting {
        Waiting::Dns => Step::Dns,
        Waiting::Connect => Step::Connect,
        Waiting::Handshake => Step::Handshake,
        Waiting::Head => Step::Head,
        Waiting::Body => Step::Body,
        Waiting::BodyRate => Step::BodyRate,
        Waiting::Exchange => Step::Exchange,
    }
}

impl FetchFailure {
    /// Whether the server as a whole has a problem and should not be contacted for a while;
    /// otherwise the failure concerns this page only.
    pub fn is_server_trouble(&self) -> bool {
        match self {
            Self::Dns { .. } | Self::Connect { .. } | Self::Tls { .. } | Self::Closed { .. } => {
                true
            }
            // Only a body can take that long: the steps before it have their own, shorter limits.
            Self::Timeout { waiting, .. } => *waiting != Waiting::Exchange,
            Self::Request { .. }
            | Self::AddressRefused { .. }
            | Self::Protocol { .. }
            | Self::HeadTooLarge { .. }
            | Self::BodyTooLarge { .. }
            | Self::BodyCut { .. }
            | Self::Unkept { .. } => false,
        }
    }

    /// A short name for logs and rows, which never changes.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Request { .. } => "request",
            Self::AddressRefused { .. } => "address-refused",
            Self::Dns { .. } => "dns",
            Self::Connect { .. } => "connect",
            Self::Tls { .. } => "tls",
            Self::Closed { .. } => "closed",
            Self::Protocol { .. } => "protocol",
            Self::HeadTooLarge { .. } => "head-too-large",
            Self::BodyTooLarge { .. } => "too-large",
            Self::BodyCut { .. } => "body-cut",
            Self::Unkept { .. } => "unkept",
            Self::Timeout { .. } => "timeout",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> String {
        "example.com".to_owned()
    }

    #[test]
    fn failures_name_the_host_the_limit_and_the_way_out() {
        let address = IpAddr::from([127, 0, 0, 1]);
        let kind = AddressKind::Loopback;
        let refused = FetchFailure::AddressRefused { host: host(), address, kind };
        assert_eq!(
            refused.to_string(),
            "`example.com` is at 127.0.0.1, a loopback address, which may not be fetched; \
             if it is yours, make it a top page and allow it: `nenrin site set SITE --allow-private`"
        );
        let address = IpAddr::from([224, 0, 0, 1]);
        let kind = AddressKind::Multicast;
        let refused = FetchFailure::AddressRefused { host: host(), address, kind };
        assert_eq!(
            refused.to_string(),
            "`example.com` is at 224.0.0.1, a multicast address, which may not be fetched"
        );
        let large = FetchFailure::BodyTooLarge { host: host(), limit: 1000, announced: Some(5000) };
        assert_eq!(
            large.to_string(),
            "the body from `example.com` is announced as 5000 bytes, longer than the limit of 1000 bytes"
        );
        let slow = FetchFailure::Timeout {
            host: host(),
            waiting: Waiting::Head,
            after: Duration::from_millis(1500),
        };
        assert_eq!(
            slow.to_string(),
            "`example.com` took longer than 1.5 s: waited for the response head"
        );
    }

    #[test]
    fn a_page_that_never_ends_is_not_a_problem_of_its_server() {
        let timeout =
            |waiting| FetchFailure::Timeout { host: host(), waiting, after: Duration::ZERO };
        assert!(timeout(Waiting::Connect).is_server_trouble());
        assert!(!timeout(Waiting::Exchange).is_server_trouble());
        assert!(FetchFailure::Dns { host: host(), reason: String::new() }.is_server_trouble());
        let large = FetchFailure::BodyTooLarge { host: host(), limit: 1, announced: None };
        assert!(!large.is_server_trouble());
        assert_eq!((timeout(Waiting::Dns).kind(), large.kind()), ("timeout", "too-large"));
    }
}
