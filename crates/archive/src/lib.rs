//! The archive as a library: what commands, the interface and programs of others use.
//!
//! Read in this order:
//! - [`Archive`]: a folder that is opened to read or to write;
//! - `read`: a page as of a date, and all its versions;
//! - [`Ingest`]: the one way in, for mirrors, WARC files and programs;
//! - [`sites`]: finding and naming sites; [`bulk`]: lists of many;
//! - `history`: dates and digests without contents, of pages that were not visited yet;
//! - `mirror`: folders of files, in and out;
//! - `warc`: WARC, ARC, WACZ and CDXJ, in and out;
//! - `tables`: visits, versions, text, pages and links as Parquet files;
//! - [`Download`]: a site or a page as one file;
//! - `upkeep`: verify, reindex, compact;
//! - `retention`: pruning by rule, removing sites;
//! - [`SpaceGuard`] with [`QuotaGuard`] and [`DiskGuard`]: when collecting pauses for want of space;
//! - [`doctor`]: what is wrong with the machine or the archive, and what to do;
//! - [`changes`]: what changed, by time and between two dates, with titles and the lines that say most;
//! - [`PageSearch`]: looking for pages by any part of address or title;
//! - [`noticing`]: what happened that people or programs should know of;
//! - [`watching`]: parts of pages that people marked, evaluated on new versions;
//! - [`outlook`], [`site_structure`] and [`Reasons`]: what to expect of a site, and why a page is due;
//! - [`preview`]: a first look at a site before it is registered;
//! - `visiting`: reading and storing what a fetcher brought;
//! - [`Logins`]: the secrets of sites behind a log-in, sealed on disk;
//! - [`RenderWork`]: pages in a browser that gets everything from the archive;
//! - `spans`: durations, sizes and dates as people write them.
//!
//! The library has no clock and prints nothing: times are arguments, progress goes to a closure.

mod archive;
mod backup;
mod bucket_backup;
pub mod bulk;
pub mod changes;
mod committing;
mod disk;
pub mod doctor;
mod download;
mod error;
mod figures;
mod head;
mod history;
mod ingest;
mod lock;
mod logins;
mod mark;
mod migrate;
mod mirror;
mod noted;
pub mod noticing;
mod posts;
pub mod preview;
mod quota;
mod read;
mod rendering;
mod retention;
mod retry;
mod shared;
pub mod sites;
mod space;
mod spans;
mod storing;
mod tables;
mod upkeep;
mod views;
mod visiting;
mod warc;
pub mod watching;

pub use archive::{Archive, OpenOptions, folder_bytes, uncached_store};
pub use backup::BackedUp;
pub use committing::{StateJob, StateWork};
pub use disk::DiskGuard;
pub use download::Download;
pub use error::{ArchiveError, Result, advice};
pub use figures::{Figures, Labels, Metric, MetricKind};
pub use head::field as head_field;
pub use history::{HistoryImportOptions, ImportedHistory};
pub use ingest::{Capture, Ingest};
pub use logins::{
    GivenLogin, LoggedOut, LoginKey, Logins, NewCookies, log_in_window, logged_out_of, redact,
};
pub use migrate::Migrated;
pub use mirror::{
    ExportedMirror, ImportedMirror, MirrorImportOptions, MirrorPath, mime_by_name, path_of, urls,
};
pub use nenrin_lang::readable_bytes;
pub use posts::Posts;
pub use quota::{QuotaGuard, Quotas, Reached, SitesTaken};
pub use read::{PageVersion, stored_url};
pub use rendering::RenderWork;
pub use retention::Pruned;
pub use retry::retried;
pub use shared::{
    Arrived, LEASE, LEASE_SAFE, LoadGauge, PAUSES, Pauses, SharedArchive, SharedPlaces, Turn,
    UNSTORED_MAX, Worker, left_by, taken_by,
};
pub use space::SpaceGuard;
pub use spans::{Edge, Since, Span, counted, digits14, parse_date, readable_date, rfc3339};
pub use storing::{StoreJob, StoreWork};
pub use tables::WrittenTables;
pub use upkeep::{AcceptedLoss, Reindexed, Verified};
pub use views::{
    ArchiveSizes, ChosenRound, Collected, DueBy, DueReason, FoundPage, Learnt, Outlook,
    PAGE_HEADER, PageDue, PageQuery, PageRenderings, PageResult, PageSearch, PageSort,
    ROUND_HEADER, Reasons, SiteStructure, SkippedPages, VISIT_HEADER, WorthOfSite, families_table,
    first_versions, joined_days, joined_rounds, joined_sites, learnt_of, outlook, renderings_of,
    round_cells, round_json, rounds_table, shown_worth, site_json, site_lines, site_structure,
    sites_table, structure_line, tops_table, version_json, versions_table, visit_json, visit_rows,
    worth_of,
};
pub use visiting::{LargeThread, ReadingThreads, links_of_stored, put_exchange, read_fetched};
pub use warc::{
    CdxjIndex, ExportOptions, Exported, Imported, WarcFiles, WarcImportOptions, index_warc,
};

/// How far a long piece of work has come: what is done, and all there is to do.
pub type Progress<'a> = dyn FnMut(u64, u64) + 'a;
