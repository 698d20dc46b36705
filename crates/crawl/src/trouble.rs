//! What a failed request means, from the fetcher's error.

use nenrin_fetch::{AddressKind, FetchFailure, Waiting};
use nenrin_lang::{Network, Reason, Step, Unfetched};

use crate::answer::Trouble;

impl Trouble {
    /// The trouble behind a request that brought no answer.
    pub fn of(failure: &FetchFailure) -> Self {
        Self {
            reason: Reason::Unfetched(unfetched(failure)),
            of_server: failure.is_server_trouble(),
            refused: matches!(failure, FetchFailure::AddressRefused { .. }),
        }
    }

    /// The program failed while it read an answer.
    pub fn internal(why: String) -> Self {
        Self { reason: Reason::Internal(why), of_server: false, refused: false }
    }
}

fn unfetched(failure: &FetchFailure) -> Unfetched {
    match failure.clone() {
        FetchFailure::Request { reason: why } => Unfetched::Request { why },
        FetchFailure::AddressRefused { host, address, kind } => {
            Unfetched::Address { host, address, network: network(kind) }
        }
        FetchFailure::Dns { host, reason: why } => Unfetched::Dns { host, why },
        FetchFailure::Connect { host, port, reason: why } => Unfetched::Connect { host, port, why },
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

#[cfg(test)]
mod tests {
    use std::{net::IpAddr, time::Duration};

    use super::*;

    #[test]
    fn a_reason_says_what_the_failure_said() {
        let (host, reason) = (|| "e.com".to_owned(), || "x".to_owned());
        let address = IpAddr::from([127, 0, 0, 1]);
        let (waiting, after) = (Waiting::Head, Duration::from_millis(1_500));
        for failure in [
            FetchFailure::AddressRefused { host: host(), address, kind: AddressKind::Loopback },
            FetchFailure::AddressRefused { host: host(), address, kind: AddressKind::Metadata },
            FetchFailure::Dns { host: host(), reason: reason() },
            FetchFailure::Connect { host: host(), port: 80, reason: reason() },
            FetchFailure::BodyTooLarge { host: host(), limit: 7, announced: Some(9) },
            FetchFailure::BodyCut { host: host(), received: 7, reason: reason() },
            FetchFailure::Unkept {
                host: host(),
                received: 7,
                reason: reason(),
                is_disk_full: false,
            },
            FetchFailure::Timeout { host: host(), waiting, after },
        ] {
            assert_eq!(Trouble::of(&failure).reason.to_string(), failure.to_string());
        }
    }
}
