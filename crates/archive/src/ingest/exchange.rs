use std::time::Duration;

use nenrin_fetch::{Exchange, Protocol};

/// A response as the machine reads it, whichever way it came in.
pub(super) fn exchange(status: u16, response_head: &[u8], body: Vec<u8>) -> Exchange {
    Exchange {
        status,
        protocol: Protocol::Http11,
        tls: None,
        server_address: None,
        request_head: Vec::new(),
        response_head: response_head.to_vec(),
        body: body.into(),
        time_to_head: Duration::ZERO,
        elapsed: Duration::ZERO,
    }
}
