//! The heart of the archive: versions of pages, exactly as received, in packs that hold only
//! what is new.
//!
//! Read in this order:
//! - [`Store`]: put, sync, read; forget, verify, compact, stats;
//! - [`NewVersion`], [`VersionId`], [`VersionHead`], [`Version`]: what goes in and comes out;
//! - [`Digest`]: the identity of a body; [`Packing`]: a body that comes compressed;
//! - [`ContentBackend`]: where packs are stored, with [`LocalFolder`], [`ObjectBackend`],
//!   [`MemoryBackend`] and [`FaultyBackend`];
//! - `pack`, `chunk`, `bodies`, `rows`, `parity`, `directory`: the format, described in
//!   `docs/format.md`;
//! - `packfile`, `mend`, `listing`: a pack read as it is, over damaged locations, by its directory;
//! - `put`, `group`, `compress`, `cut`, `similar`: writing, and what a new page is compressed against;
//! - [`Effort`], [`EffortGauge`]: how much work a new body is worth;
//! - `compact`, `recode`: everything written again, small;
//! - `index`: where things are, made again from the packs at will;
//! - `catch_up`: what happens when an archive is opened, also after a crash;
//! - [`PaperCount`]: paper 001's own method, counted for comparison.
//!
//! It is not a database of pages or visits (that is `state`), it knows no schedule and no
//! network, and it never asks for the time.

mod backend;
mod bodies;
mod built_upon;
mod cache;
mod catch_up;
mod chunk;
mod compact;
mod compress;
mod cut;
mod decoded;
mod deflated;
mod digest;
mod directory;
mod effort;
mod error;
mod forget;
mod forgotten;
mod group;
mod heads;
mod http_date;
mod index;
mod listing;
mod locations;
mod lost;
mod media;
mod mend;
mod open_pack;
mod options;
mod pack;
mod packfile;
mod paper;
mod parity;
mod pieces;
mod prefix;
mod put;
mod quota;
mod read;
mod recode;
mod repair;
mod rows;
mod ruins;
mod share;
mod similar;
mod spare;
mod squeeze;
mod stats;
mod store;
mod underway;
mod verify;
mod version;
mod whole;
mod wire;
mod writer;

pub use backend::{
    ContentBackend, FaultPlan, FaultyBackend, GatheringBackend, LocalFolder, MemoryBackend,
    ObjectBackend, ObjectPlace,
};
pub use bodies::MAX_BODY_BYTES;
pub use compact::{CompactOptions, CompactReport};
pub use cut::cut;
pub use deflated::{Deflated, Packing};
pub use digest::Digest;
pub use effort::{Effort, EffortGauge};
pub use error::{BackendError, StoreError};
pub use heads::MAX_HEAD_BYTES;
pub use lost::LostVersions;
pub use media::Class;
pub use nenrin_urls::VersionId;
pub use options::{FirstNumbers, Steps, StoreOptions};
pub use paper::{PaperBytes, PaperCount};
pub use recode::panic_is_expected;
pub use rows::MAX_WORD_BYTES;
pub use stats::{SiteBytes, StoreStats};
pub use store::Store;
pub use verify::{Damage, VerifyReport};
pub use version::{Block, NewVersion, Put, Version, VersionHead};
