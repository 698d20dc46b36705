//! Finds pages by their text, title and address, and says when it was so.
//!
//! Read in this order:
//! - `units`: words and characters, as they are compared;
//! - `history`: the times of a page's versions, and when each block of text was there;
//! - [`Query`]: what people type, and what is wrong with it;
//! - `matching` and [`scan`]: what a query means, by looking at everything;
//! - `loans`: text that pages of a site share, indexed once;
//! - `index`: the same answers quickly, from words on disk and records of times;
//! - [`Keeper`]: brings the index up to date with the archive; [`Keeping`] does it in a thread;
//! - [`Search`]: pages with titles, dates and the sentence found;
//! - [`blame()`]: since when each block of a page is there.
//!
//! The library has no clock. The index is never the only place of anything: it can be deleted.

mod answer;
mod background;
mod blame;
mod error;
mod history;
mod index;
mod keeper;
mod language;
mod loans;
mod matching;
mod page_kind;
mod pdf;
mod query;
mod reading;
mod record;
pub mod scan;
mod snippet;
mod units;

pub use answer::{Answer, Ask, Marks, Search, SearchResult, Status};
pub use background::Keeping;
pub use blame::{Blame, BlamedBlock, blame};
pub use error::SearchError;
pub use history::{STILL, Slot, Span};
pub use index::{Order, damage, delete as delete_index};
pub use keeper::{Keeper, Step};
pub use language::Language;
pub use page_kind::PageKind;
pub use pdf::pdf_text;
pub use query::{Filters, Query, QueryError};
pub use snippet::Piece;
