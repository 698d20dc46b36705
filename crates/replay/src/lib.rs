//! Shows any archived page as of any date, safely.
//!
//! Read in this order:
//! - [`Archive`], [`Capture`], [`Content`]: the interface to the code that holds the versions;
//! - [`router`] and [`ReplayOptions`]: everything that is answered over HTTP;
//! - [`page_changes`]: what changed between two versions, for programs;
//! - [`steady_script`]: time and chance of a page made repeatable, for rendering, too;
//! - [`MemoryArchive`]: an archive for tests and demonstrations.
//!
//! Inside, a request becomes a target (`target`), a target and a date become a version (`choose`),
//! and a version becomes an answer (`answer`) whose URLs lead into the archive (`rewrite`).
//!
//! Nothing here collects or stores: missing pages stay missing, and the live web is never
//! contacted. The router must be served on an origin of its own, because other people's scripts run
//! in it.

mod answer;
mod archive;
mod ask;
mod assets;
mod busters;
mod cdx;
mod choose;
mod compare;
mod date;
mod diff;
mod error;
mod fences;
mod head;
mod host_check;
mod hosted;
mod language;
mod makers;
mod memento;
mod memory;
mod modifier;
mod neighbours;
mod options;
mod origins;
mod pages;
mod rewrite;
mod router;
mod scripts;
mod served;
mod span;
mod stage;
mod stored;
mod target;
mod timemap;
mod web;

pub use archive::{Archive, Capture, Content, ContentBlock, ContentHead};
pub use compare::{Line, PageChanges, hunks, page_changes};
pub use error::{ArchiveError, ReplayError};
pub use memory::MemoryArchive;
pub use options::ReplayOptions;
pub use router::router;
pub use scripts::steady_script;
