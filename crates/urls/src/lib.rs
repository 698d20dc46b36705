//! URLs as the archive sees them.
//!
//! Read in this order:
//! - [`CanonicalUrl`]: a URL that can be fetched, always written the same way;
//! - [`Server`]: scheme, host and port of a URL, the unit of politeness;
//! - [`UrlKey`]: the key under which versions of a URL are looked up (SURT), coarser than the URL;
//! - [`Scope`]: which URLs belong to a site, given its top pages;
//! - [`VersionId`] and [`Validators`]: what tells one version of a URL from another.
//! - [`UrlPattern`]: addresses with `*` for what differs;
//! - [`PostedUrl`]: requests other than GET, as addresses;
//! - [`RenderedRecord`]: what a rendering of a page leaves behind;
//! - [`Proxy`]: how requests leave this machine.
//!
//! Nothing here touches the network: host names are text until `fetch` resolves them.

mod canonical;
mod key;
mod pattern;
mod posted;
mod proxy;
mod rendered;
mod scope;
mod server;
mod shown;
mod typed;
mod version;

pub use canonical::{CanonicalUrl, MAX_URL_BYTES, UrlError};
pub use key::UrlKey;
pub use pattern::UrlPattern;
pub use posted::PostedUrl;
pub use proxy::{Proxy, ProxyKind, ProxyServer};
pub use rendered::RenderedRecord;
pub use scope::{Scope, is_public_suffix};
pub use server::Server;
pub use shown::shown_text;
pub use version::{Validators, VersionId};
