//! The index on disk: words of blocks in `tantivy`, and times of pages beside them in SQLite.
//!
//! A document is one block of one page and never changes: it has the page's place, the block's
//! number and its kind. When the block was there is in the page's record. So a new version of a page
//! adds documents for its new blocks alone, and a block that vanishes costs nothing. Text that other
//! pages of the site have as well is a document of the first of them; the others borrow it.
//!
//! The words are committed first, then the records; whatever a crash leaves of the words alone has
//! places that no record names. A page whose versions changed in the past gets a new place.

mod as_it_is;
mod finding;
mod opened;
mod pages;
mod position;
mod words;
mod writing;

pub use finding::Order;
pub(crate) use finding::{Found, Wanted};
pub(crate) use opened::Index;
pub(crate) use pages::FILE as RECORDS;
pub(crate) use position::Position;
pub(crate) use writing::{NewBlock, PageEntry, Writer};

use std::path::{Path, PathBuf};

use crate::SearchError;

/// The folder in the archive.
const FOLDER: &str = "search";

/// The folder of an archive's index.
pub(crate) fn folder(archive: &Path) -> PathBuf {
    archive.join(FOLDER)
}

/// What is damaged in the index of an archive, given its folder; every byte is read. The next keeper
/// finds it, too, and builds the index again.
pub fn damage(archive: &Path) -> Option<String> {
    let folder = folder(archive);
    let check = || {
        // An index that was begun and holds nothing yet may have one part alone.
        let words_batch = words::check(&folder)?;
        let Some(records) = pages::Records::open_to_read(&folder)? else {
            return match words_batch {
                0 => Ok(()),
                _ => Err(SearchError::Damaged("its records are missing".into())),
            };
        };
        records.check()?;
        words::belong(words_batch, records.batch()?)
    };
    // A keeper may have replaced files in the meantime.
    check().or_else(|_| check()).err().map(|error| error.to_string())
}

/// Deletes the index of an archive, given its folder. The next keeper builds it again.
pub fn delete(archive: &Path) -> Result<(), SearchError> {
    match std::fs::remove_dir_all(folder(archive)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}
