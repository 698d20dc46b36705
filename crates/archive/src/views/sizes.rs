//! What an archive holds and what it takes on disk, by site.

use nenrin_lang::{Table, readable_bytes};
use nenrin_state::{Site, StateStats};
use nenrin_store::{SiteBytes, StoreStats};
use serde_json::{Value, json};

use crate::{Archive, Result};

/// What an archive holds, and what it takes on disk.
#[derive(Debug, Clone)]
pub struct ArchiveSizes {
    sites: Vec<Site>,
    store: StoreStats,
    state: StateStats,
    /// All files together.
    file_bytes: u64,
}

impl Archive {
    /// What the archive holds, and what it takes on disk.
    ///
    /// # Errors
    /// What state, store and file system say.
    pub fn sizes(&self) -> Result<ArchiveSizes> {
        Ok(ArchiveSizes {
            sites: self.state().sites()?,
            store: self.store().stats()?,
            state: self.state().stats()?,
            file_bytes: self.file_bytes()?,
        })
    }
}

impl ArchiveSizes {
    /// Everything on disk that is not content.
    fn index_bytes(&self) -> u64 {
        self.file_bytes.saturating_sub(self.store.html_bytes + self.store.other_bytes)
    }

    fn of_site(&self, site: &Site) -> SiteBytes {
        let found = self.store.sites.iter().find(|bytes| bytes.group == site.id.0);
        found.copied().unwrap_or_default()
    }

    /// For programs.
    pub fn as_json(&self) -> Value {
        let Self { store, state, file_bytes, .. } = self;
        let site = |site: &Site| {
            let bytes = self.of_site(site);
            json!({
                "site": site.id, "name": site.name, "pages": site.counts.pages,
                "visits": site.counts.visits, "versions": site.counts.versions,
                "raw_bytes": site.counts.raw_bytes, "unique_bytes": bytes.unique_bytes,
                "stored_bytes": bytes.stored_bytes(), "html_bytes": bytes.html_bytes,
                "other_bytes": bytes.other_bytes, "index_bytes": bytes.record_bytes,
            })
        };
        json!({
            "sites": self.sites.iter().map(site).collect::<Vec<_>>(), "servers": state.servers,
            "pages": state.pages, "visits": state.visits, "versions": state.versions,
            "raw_bytes": state.raw_bytes, "unique_bytes": store.unique_bytes,
            "stored_bytes": file_bytes, "html_bytes": store.html_bytes,
            "other_bytes": store.other_bytes, "index_bytes": self.index_bytes(),
        })
    }

    /// The sites, one a row, and all together.
    pub fn table(&self) -> Table {
        let Self { store, state, file_bytes, .. } = self;
        let mut table = Table::new(&[
            "site", "pages", "visits", "versions", "raw", "unique", "stored", "of raw", "html",
            "other", "index",
        ]);
        for site in &self.sites {
            let (counts, bytes) = (site.counts, self.of_site(site));
            let sizes = [
                counts.raw_bytes,
                bytes.unique_bytes,
                bytes.stored_bytes(),
                bytes.html_bytes,
                bytes.other_bytes,
                bytes.record_bytes,
            ];
            table.row(cells(&site.name, [counts.pages, counts.visits, counts.versions], sizes));
        }
        let sizes = [
            state.raw_bytes,
            store.unique_bytes,
            *file_bytes,
            store.html_bytes,
            store.other_bytes,
            self.index_bytes(),
        ];
        let counts = [state.pages, state.visits, state.versions];
        table.row(cells("in all, with indexes", counts, sizes));
        table
    }
}

fn cells(name: &str, counts: [u64; 3], sizes: [u64; 6]) -> Vec<String> {
    let [raw, unique, stored, html, other, index] = sizes;
    // While the index takes more than the content, a share would only confuse.
    let share = match raw == 0 || index > html + other {
        true => String::new(),
        false => format!("{:.1}%", 100.0 * stored as f64 / raw as f64),
    };
    let mut cells = vec![name.to_owned()];
    cells.extend(counts.map(|count| count.to_string()));
    cells.extend([raw, unique, stored].map(readable_bytes));
    cells.push(share);
    cells.extend([html, other, index].map(readable_bytes));
    cells
}
