//! Makes one HTTP exchange and records it exactly.
//!
//! Read in this order:
//! - [`FetchRequest`]: a URL to fetch, with validators and an [`AddressPolicy`];
//! - [`Fetcher`]: sends it and returns
//! - an [`Exchange`]: the bytes that went and came, or
//! - a [`FetchFailure`]: why there is none, a result to be recorded like any other;
//! - [`Memory`]: what all bodies together may take, and where large ones go;
//! - [`CookieJar`]: the cookies of a log-in, and where each goes;
//! - [`Road`]: the proxy, the address to send from, and which certificates will do;
//! - [`FetchOptions`]: who we say we are, and every limit with its reason;
//! - [`AddressKind`]: the guard, which every connection passes after its name was resolved;
//! - [`RobotsRules`]: what a robots.txt permits.
//!
//! Not here: when to fetch and how long to wait between requests, following redirects, fetching
//! robots.txt, undoing Content-Encoding, judging the answer. Sockets and the clock are used in
//! `http.rs` alone.

mod body;
mod connection;
mod cookies;
mod error;
mod exchange;
mod guard;
mod head;
mod http;
pub mod http_date;
mod memory;
mod options;
mod pool;
mod prepared;
mod request;
mod road;
mod robots;
mod tee;
mod trust;

pub use crate::http::Fetcher;
pub use body::{Body, BodyReader};
pub use cookies::CookieJar;
pub use error::{FetchError, FetchFailure, Waiting};
pub use exchange::{Exchange, MAX_RETRY_AFTER_S, Protocol, retry_after};
pub use guard::{AddressKind, AddressPolicy};
pub use head::{header_fields, redacted};
pub use memory::{Memory, Share};
pub use nenrin_urls::Validators;
pub use options::{FetchOptions, Permission};
pub use request::{BodyLimit, FetchRequest};
pub use road::Road;
pub use robots::{MAX_ROBOTS_BYTES, RobotsLine, RobotsRules, RobotsVerdict};
pub use trust::{certificates_in, system_certificates};
