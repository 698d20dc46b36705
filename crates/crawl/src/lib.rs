//! The machine that joins frontier, deciders, fetch, extract, store and state.
//!
//! Read in this order:
//! - [`Crawl::step`]: an event at a time goes in, commands come out;
//! - [`Event`] and [`Command`]: what happened, and what is to be done about it;
//! - [`PlanWork`]: work on the plan of a round, which the driver does because it takes long;
//! - [`Answer`]: all that the machine learns of an exchange, made by [`read_exchange`];
//! - [`verdict`](crate::verdict::verdict): what an answer means for the page;
//! - [`ServerLearning`]: what is learnt of a server: its [`Probe`] (what it shows for pages that do
//!   not exist), its [`Traps`], and its [`Signals`] with the [`Trust`] that they earned.
//!
//! `step` has no clock, no randomness, no I/O and no order that differs between runs. Whoever
//! drives it (the binary with sockets and threads, the lab with an event queue) carries out the
//! commands and answers with events. Content never passes through the machine: the driver keeps it
//! under the fetch's [`Ticket`] until the visit is committed or dropped.

mod answer;
mod events;
mod machine;
mod near;
mod notes;
mod options;
mod planned;
mod planning;
mod probe;
mod robots;
mod round;
mod signals;
mod traps;
pub mod verdict;

pub use answer::{PreviousBody, content_mark, mime, read_exchange, stored_links};
pub use events::{
    Announcement, Answer, Command, Event, FetchOrder, Fetched, FoundLink, LinkRole, Purpose,
    RoundReport, SignalKind, StoreOrder, Ticket, Trouble,
};
pub use machine::{Crawl, OrderStats};
pub use near::{NearQuery, load_near};
pub use notes::ServerLearning;
pub use options::CrawlOptions;
pub use planning::{PlanDone, PlanWork};
pub use probe::{Look, Probe};
pub use signals::{Signals, Source, Trust};
pub use traps::{Trap, TrapCount, Traps};
