//! What people look at that takes more than rows: deciders run over what the state keeps. They take
//! the state and not an archive, so that the interface can use them while an archive is collected.

mod collected;
mod due_by;
mod joined;
mod learnt;
mod lines;
mod outlook;
mod page_search;
mod rendered;
mod site;
mod sizes;
mod structure;
mod structure_tables;
mod worth;

pub use self::{
    collected::Collected,
    due_by::DueBy,
    joined::{joined_days, joined_rounds, joined_sites},
    learnt::{Learnt, learnt_of},
    lines::{
        PAGE_HEADER, ROUND_HEADER, VISIT_HEADER, first_versions, round_cells, round_json,
        rounds_table, version_json, versions_table, visit_json, visit_rows,
    },
    outlook::{DueReason, Outlook, Reasons, outlook},
    page_search::{FoundPage, PageDue, PageQuery, PageResult, PageSearch, PageSort},
    rendered::{PageRenderings, renderings_of},
    site::{site_json, site_lines, sites_table},
    sizes::ArchiveSizes,
    structure::{ChosenRound, SiteStructure, SkippedPages, site_structure},
    structure_tables::{families_table, structure_line, tops_table},
    worth::{WorthOfSite, shown_worth, worth_of},
};
