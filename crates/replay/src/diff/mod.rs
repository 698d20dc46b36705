//! Differences between two versions of a page: by blocks of the store, as text, and in the rendered
//! page.

mod compare;
mod lines;
mod marks;

pub(crate) use compare::{Change, compare};
pub(crate) use lines::lines;
pub(crate) use marks::{Side, marked};
