//! The machine that joins frontier, deciders, fetch, extract, store and state.
//!
//! Read in this order:
//! - [`Crawl::step`]: an event at a time goes in, commands come out;
//! - [`Event`] and [`Command`]: what happened, and what is to be done about it;
//! - [`answer_load`] and [`commit_batch`]: how the state answers a [`Load`] and takes a commit;
//! - [`take_mail`]: how a partition takes in what others found for it;
//! - [`PlanWork`]: work on the plan of a round, which the driver does because it takes long;
//! - [`Answer`]: all that the machine learns of an exchange, made by [`read_exchange`];
//! - [`verdict`](crate::verdict::verdict): what an answer means for the page;
//! - [`ServerLearning`]: what is learnt of a server: its [`Probe`] (what it shows for pages that do
//!   not exist), its [`Traps`], and its [`Signals`] with the [`Trust`] that they earned;
//! - [`Teacher`]: what visits that were made elsewhere teach, by the parts that learn from our own.
//!
//! The machine is made of components, each of which owns its fields: `sites`, `schedules` (when to
//! visit again, and whether now is a time to collect), `rounds` with their `plans`, `due_pages` (what
//! the long-term queue holds), `new_pages` (which new page first), `servers` (their queues, pace and
//! rules), `learning` (what is learnt of servers), `taken` and `under_way`. `machine` routes events
//! to them and leads a visit from one to the next.
//!
//! `step` has no clock, no randomness, no I/O and no order that differs between runs. The caller
//! (the binary with sockets and threads, the lab with an event queue) carries out the
//! commands and answers with events. Content never passes through the machine: the driver holds it
//! while the step runs that takes the answer, and drops it if that step does not have it stored.

mod answer;
mod answering;
mod discovery;
mod due_pages;
mod events;
mod gone;
mod hops;
mod learning;
mod logged_out;
mod machine;
mod near;
mod new_pages;
mod options;
mod plans;
mod probe;
mod reading;
mod renderings;
mod rounds;
mod schedules;
mod servers;
mod signals;
mod sites;
mod taken;
mod teaching;
mod traps;
mod trouble;
mod under_way;
mod update;
pub mod verdict;

pub use answer::{
    Announcement, Answer, FetchOrder, Fetched, FoundLink, LinkRole, Purpose, SignalKind, Ticket,
    Trouble,
};
pub use answering::{
    Batch, MAIL_MAX, answer_load, commit_batch, drop_taken_mail, take_in, take_mail,
};
pub use events::{Command, Event, Load, RenderOrder, RoundReport, StoreOrder};
pub use learning::ServerLearning;
pub use logged_out::{LoginLook, logged_out, logs_out};
pub use machine::Crawl;
pub use near::{NearQuery, load_near};
pub use new_pages::OrderStats;
pub use options::CrawlOptions;
pub use plans::{PlanDone, PlanWork};
pub use probe::{Look, Probe};
pub use reading::{
    Appetite, COMPARED_MAX_BYTES, PreviousBody, content_mark, mime, read_exchange, stored_links,
};
pub use renderings::{DATA_MAX, DataOfPages, Families, Family, Rendered, TRIALS};
pub use signals::{Signals, Source, Trust};
pub use teaching::{MissingPages, PastVisit, Taught, Teacher, learn_pass};
pub use traps::{Trap, TrapCount, Traps};
pub use update::page_update;
