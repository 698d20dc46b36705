//! One file for each page that people see.

pub(crate) mod between;
pub(crate) mod changes;
pub(crate) mod charts;
pub(crate) mod lab;
pub(crate) mod log;
pub(crate) mod login;
pub(crate) mod overview;
pub(crate) mod page_history;
pub(crate) mod page_list;
pub(crate) mod picture;
pub(crate) mod progress;
pub(crate) mod register;
pub(crate) mod removal;
pub(crate) mod removals;
pub(crate) mod schedule;
mod sheet;
mod sheet_fields;
pub(crate) mod site;
pub(crate) mod site_pages;
pub(crate) mod structure;
pub(crate) mod timeline;
mod years;
