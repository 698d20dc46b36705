//! What people look at that takes more than rows: deciders run over what the state keeps. They take
//! the state and not an archive, so that the interface can use them while an archive is collected.

mod outlook;
mod structure;
mod worth;

pub use self::{
    outlook::{DueReason, Outlook, Reasons, outlook},
    structure::{ChosenRound, SiteStructure, SkippedPages, site_structure},
    worth::shown_worth,
};
