//! What people look at that takes more than rows: deciders run over what the state keeps. They take
//! the state and not an archive, so that the interface can use them while an archive is collected.

mod joined;
mod learnt;
mod lines;
mod outlook;
mod page_search;
mod structure;
mod structure_tables;
mod worth;

pub use self::{
    joined::{joined_days, joined_rounds, joined_sites},
    learnt::{Learnt, learnt_of},
    lines::{PAGE_HEADER, ROUND_HEADER, round_cells},
    outlook::{DueReason, Outlook, Reasons, outlook},
    page_search::{FoundPage, PageDue, PageQuery, PageResult, PageSearch, PageSort},
    structure::{ChosenRound, SiteStructure, SkippedPages, site_structure},
    structure_tables::{families_table, tops_table},
    worth::{shown_worth, worth_lines},
};
