use std::borrow::Cow;
use std::net::IpAddr;
use std::time::Duration;

use crate::Body;
use crate::head::{as_text, header_fields};
use crate::http_date;

/// The version of HTTP that was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
    /// HTTP/2
    Http2,
}

/// One request and its complete response, as they went over the wire.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// The status code.
    pub status: u16,
    /// The version of HTTP in which the server answered.
    pub protocol: Protocol,
    /// The version of TLS as rustls names it, such as `TLSv1_3`; none over plain HTTP.
    pub tls: Option<String>,
    /// The address that answered; none if only a proxy knows it.
    pub server_address: Option<IpAddr>,
    /// The request's bytes as sent; over HTTP/2, the same request written as HTTP/1.1.
    pub request_head: Vec<u8>,
    /// The final response's status line and header lines as received, with the empty line that
    /// ends them and with any Transfer-Encoding; over HTTP/2, written as HTTP/1.1.
    pub response_head: Vec<u8>,
    /// The body, without its transfer coding (chunks) and with its content coding (gzip, …).
    pub body: Body,
    /// From sending the request to the end of the response head: the time that the server itself
    /// took.
    pub time_to_head: Duration,
    /// Duration of the whole exchange, including name lookup and connecting.
    pub elapsed: Duration,
}

impl Exchange {
    /// The first value of a response header; bytes that are not UTF-8 are read as Latin-1.
    pub fn header(&self, name: &str) -> Option<Cow<'_, str>> {
        self.header_values(name).next()
    }

    /// All values of a response header, in order.
    pub fn header_values(&self, name: &str) -> impl Iterator<Item = Cow<'_, str>> {
        header_fields(&self.response_head)
            .filter(move |(found, _)| found.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, value)| as_text(value))
    }
}

/// The longest that a Retry-After is obeyed: one day. Longer ones are mistakes more often than not.
pub const MAX_RETRY_AFTER_S: i64 = 24 * 60 * 60;

/// The seconds to wait according to the response's Retry-After (a number or a date), at most
/// [`MAX_RETRY_AFTER_S`]; 0 for a date that has passed. `None` without a header that can be
/// understood.
pub fn retry_after(exchange: &Exchange, now_s: i64) -> Option<i64> {
    let value = exchange.header("retry-after")?;
    let value = value.trim();
    let wait_s = if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        value.parse().unwrap_or(i64::MAX)
    } else {
        http_date::parse(value)?.saturating_sub(now_s)
    };
    Some(wait_s.clamp(0, MAX_RETRY_AFTER_S))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(head: &[u8]) -> Exchange {
        Exchange {
            status: 200,
            protocol: Protocol::Http11,
            tls: None,
            server_address: Some(IpAddr::from([127, 0, 0, 1])),
            request_head: Vec::new(),
            response_head: head.to_vec(),
            body: Body::default(),
            time_to_head: Duration::ZERO,
            elapsed: Duration::ZERO,
        }
    }

    #[test]
    fn headers_are_found_in_any_case_and_in_their_order() {
        let exchange =
            exchange(b"HTTP/1.1 200 OK\r\nSet-Cookie: a\r\nX: \xE9\r\nSET-COOKIE:b\r\n\r\n");
        assert_eq!(exchange.header("set-cookie").as_deref(), Some("a"));
        assert_eq!(exchange.header_values("Set-Cookie").collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(exchange.header("x").as_deref(), Some("é"));
        assert_eq!(exchange.header("http/1.1 200 ok"), None);
    }

    #[test]
    fn retry_after_is_read_as_seconds_or_date_and_capped() {
        let now_s = 784_111_777;
        for (value, wait_s) in [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("99999999999999999999999", Some(MAX_RETRY_AFTER_S)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("Sat, 06 Nov 2094 08:00:00 GMT", Some(MAX_RETRY_AFTER_S)),
            ("-5", None),
            ("soon", None),
            ("", None),
        ] {
            let head = format!("HTTP/1.1 503 No\r\nRetry-After: {value}\r\n\r\n");
            assert_eq!(retry_after(&exchange(head.as_bytes()), now_s), wait_s, "{value}");
        }
        assert_eq!(retry_after(&exchange(b"HTTP/1.1 503 No\r\n\r\n"), now_s), None);
    }
}
