//! What changed: pages that are new, have changed or are gone, by time or between two dates of a site, each with
//! its title and the line that says most about the change.
//!
//! - [`list`]: changes by time, with filters, in portions;
//! - [`ChangeReader`]: titles and lines, read from the content of versions once and kept in the state;
//! - [`between`] and [`SiteDifference`]: a site on two dates;
//! - [`digest()`]: changes as the text of a message; [`lines`]: for a terminal.

mod between;
mod digest;
mod kind;
mod list;
mod listing;
mod reader;

pub use self::{
    between::{Between, FolderCounts, PageDifference, SiteDifference, between},
    digest::{Digest, DigestLinks, digest},
    kind::{ChangeKind, folder_of, is_unseen_part, searched},
    list::{ChangeFilter, ListedChange, ListedChanges, Wanted, list},
    listing::{changed_text, lines},
    reader::{ChangeReader, Content, Contents},
};

#[cfg(test)]
mod tests;
