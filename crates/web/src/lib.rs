//! The interface in which a person runs and reads the archive.
//!
//! Read in this order:
//! - [`router`]: all pages, forms, the API and the feeds, as one [`axum::Router`];
//! - [`WebApp`]: everything that the interface uses, passed in by the binary;
//! - [`Control`]: what it may request from the running program;
//! - [`WebOptions`]: who may come in; [`may_listen`] is the rule for listening beyond loopback;
//! - [`ReplayBase`]: where replayed pages and diffs live, always another origin than this one;
//! - [`serve`]: answers the connections of a listener, within bounds.
//!
//! It neither fetches nor stores anything, connects to nothing and knows no clock. What came from the web
//! (names, URLs, titles, causes) is shown as text and nothing else.

mod api;
mod app;
mod assets;
mod chart;
mod computed;
mod control;
mod downloads;
mod error;
mod feed;
mod form;
mod format;
mod guard;
mod layout;
mod metrics;
mod pages;
mod router;
mod scans;
mod serving;
mod session;
mod turns;
mod visitor;

pub use api::api_document;
pub use app::{ReplayBase, StoreSummary, WebApp, WebOptions};
pub use control::{Control, ControlError, NotRunningHere, UnderWay};
pub use error::WebError;
pub use metrics::metrics_document;
pub use router::router;
pub use serving::{listen, serve};
pub use session::{Role, hash_password, may_listen};
