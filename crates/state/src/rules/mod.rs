//! The rules of a commit: rows and changes in, writes out. Nothing here knows an engine.
//!
//! An engine loads the rows that a change needs, asks these rules, and writes what they say. One
//! engine does so row by row, another may load and write for a whole commit at once: a rule sees
//! only the rows it is given.

mod discovery;
mod far;
mod links;
mod prune;
mod removal;
mod schedule;
mod sums;
mod visit;
mod worth;

pub(crate) use self::{
    discovery::{Finding, due_when_found, finding, loses_validators},
    far::{FarLink, far_links, share_micros},
    links::{linked, reading_without_links},
    prune::may_go,
    removal::{remove, shows_pages},
    schedule::{Switch, Wait, due_when_scheduled, is_news, pulled_forward, switch, wait},
    sums::Sums,
    visit::{Indexed, PageAfter, PageBefore, adopted, learnt, visited},
    worth::{ALL_SITES, Part, WorthSums},
};
