//! The pages of the index: their records in SQLite, and a small table in memory.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use nenrin_state::{PageId, SiteId};
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

use super::{
    as_it_is,
    position::{FORMAT, Position},
};
use crate::{
    SearchError,
    language::Language,
    loans::{Loans, MAX_RUN},
    page_kind::PageKind,
    record::Record,
};

/// The file of the records.
pub(crate) const FILE: &str = "pages.sqlite";

const PAGE_BYTES: i64 = 2048;

const SCHEMA: &str = "
    CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
    CREATE TABLE pages (
        place INTEGER PRIMARY KEY, page INTEGER NOT NULL UNIQUE, site INTEGER NOT NULL,
        kind INTEGER NOT NULL, language INTEGER NOT NULL, importance INTEGER NOT NULL,
        changed_s INTEGER NOT NULL, batch INTEGER NOT NULL, loans BLOB NOT NULL, record BLOB NOT NULL);
    CREATE INDEX pages_by_batch ON pages (batch);
    CREATE TABLE dropped (place INTEGER PRIMARY KEY, batch INTEGER NOT NULL);";

/// What is known of a page without its record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PageInfo {
    pub(super) page: PageId,
    pub(super) site: SiteId,
    pub(super) kind: PageKind,
    pub(super) language: Language,
    pub(super) importance_percent: u32,
    /// When its newest version was received.
    pub(super) changed_s: i64,
}

/// The records of pages.
pub(super) struct Records(Connection);

impl Records {
    pub(super) fn open_to_read(folder: &Path) -> Result<Option<Self>, SearchError> {
        let path = folder.join(FILE);
        if !path.exists() {
            return Ok(None);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let readable = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        // Reading beside a writer needs the right to write the file of the shared memory.
        let open = Connection::open_with_flags(&path, flags)
            .or_else(|_| Connection::open_with_flags(&path, readable))?;
        open.busy_timeout(std::time::Duration::from_secs(5))?;
        let records = Self(open);
        let (records, format) = match records.format() {
            Err(error) if error.is_of_writing() => {
                let records = Self(as_it_is::records(&path)?);
                let format = records.format()?;
                (records, format)
            }
            format => (records, format?),
        };
        Ok((format == Some(FORMAT)).then_some(records))
    }

    pub(super) fn open_to_write(folder: &Path) -> Result<Self, SearchError> {
        std::fs::create_dir_all(folder)?;
        let open = Connection::open(folder.join(FILE))?;
        open.busy_timeout(std::time::Duration::from_secs(5))?;
        // Each table takes a page of the file at least.
        open.pragma_update(None, "page_size", PAGE_BYTES)?;
        open.pragma_update(None, "journal_mode", "WAL")?;
        open.pragma_update(None, "synchronous", "NORMAL")?;
        let records = Self(open);
        match records.format()? {
            Some(FORMAT) => Ok(records),
            Some(_) => Err(SearchError::Damaged("it is of another format".into())),
            None => {
                records.0.execute_batch(SCHEMA)?;
                records.set("format", FORMAT)?;
                Ok(records)
            }
        }
    }

    fn format(&self) -> Result<Option<i64>, SearchError> {
        let has = "SELECT 1 FROM sqlite_master WHERE name = 'meta'";
        match self.0.prepare(has)?.exists([])? {
            true => self.get("format"),
            false => Ok(None),
        }
    }

    fn get<T: rusqlite::types::FromSql>(&self, name: &str) -> Result<Option<T>, SearchError> {
        let mut select = self.0.prepare_cached("SELECT value FROM meta WHERE name = ?1")?;
        Ok(select.query_row([name], |row| row.get(0)).optional()?)
    }

    fn set(&self, name: &str, value: impl rusqlite::ToSql) -> Result<(), SearchError> {
        let mut put = self.0.prepare_cached("INSERT OR REPLACE INTO meta VALUES (?1, ?2)")?;
        put.execute(params![name, value])?;
        Ok(())
    }

    /// The number of the last commit.
    pub(super) fn batch(&self) -> Result<i64, SearchError> {
        Ok(self.get("batch")?.unwrap_or(0))
    }

    pub(super) fn position(&self) -> Result<Position, SearchError> {
        let text: Option<String> = self.get("position")?;
        let damaged = |_| SearchError::Damaged("its position cannot be read".into());
        text.map_or(Ok(Position::default()), |text| serde_json::from_str(&text).map_err(damaged))
    }

    pub(super) fn count(&self) -> Result<u64, SearchError> {
        let count: i64 = self.0.query_row("SELECT COUNT(*) FROM pages", [], |row| row.get(0))?;
        Ok(count as u64)
    }

    /// The record at a place.
    pub(super) fn record(&self, place: u32) -> Result<Option<Record>, SearchError> {
        let mut select = self.0.prepare_cached("SELECT record FROM pages WHERE place = ?1")?;
        let bytes: Option<Vec<u8>> = select.query_row([place], |row| row.get(0)).optional()?;
        bytes.map(|bytes| decoded(&bytes)).transpose()
    }

    /// Where a page is, its record and what it borrows.
    pub(super) fn of_page(&self, page: PageId) -> Result<Option<Indexed>, SearchError> {
        let mut select =
            self.0.prepare_cached("SELECT place, record, loans FROM pages WHERE page = ?1")?;
        let found: Option<(u32, Vec<u8>, Vec<u8>)> = select
            .query_row([page.0], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()?;
        let Some((place, record, loans)) = found else { return Ok(None) };
        Ok(Some(Indexed { place, record: decoded(&record)?, loans: decoded_loans(&loans)? }))
    }

    /// Pages that borrow from a page that is no longer there.
    pub(super) fn without_lender(&self) -> Result<Vec<PageId>, SearchError> {
        let mut select = self.0.prepare_cached("SELECT place FROM dropped")?;
        let dropped: Result<BTreeSet<u32>, _> = select.query_map([], |row| row.get(0))?.collect();
        let dropped = dropped?;
        let mut found = Vec::new();
        if dropped.is_empty() {
            return Ok(found);
        }
        let mut select =
            self.0.prepare_cached("SELECT page, loans FROM pages WHERE length(loans) > 0")?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let loans: Vec<u8> = row.get(1)?;
            if decoded_loans(&loans)?.list().iter().any(|loan| dropped.contains(&loan.lender)) {
                found.push(PageId(row.get(0)?));
            }
        }
        Ok(found)
    }

    /// Whether everything can be read.
    pub(super) fn check(&self) -> Result<(), SearchError> {
        let answer: String = self.0.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        if answer == "ok" { Ok(()) } else { Err(SearchError::Damaged(answer)) }
    }

    /// Gives back the space of records that were written again.
    pub(super) fn pack(&self) -> Result<(), SearchError> {
        Ok(self.0.execute_batch("VACUUM")?)
    }

    pub(super) fn begin(&self) -> Result<(), SearchError> {
        Ok(self.0.execute_batch("BEGIN IMMEDIATE")?)
    }

    pub(super) fn commit(&self, batch: i64, position: &Position) -> Result<(), SearchError> {
        self.set("batch", batch)?;
        self.set("position", serde_json::to_string(position).unwrap_or_default())?;
        Ok(self.0.execute_batch("COMMIT")?)
    }

    pub(super) fn put(
        &self,
        place: u32,
        info: &PageInfo,
        batch: i64,
        record: &Record,
        loans: &Loans,
    ) -> Result<(), SearchError> {
        self.0
            .prepare_cached(
                "INSERT OR REPLACE INTO pages VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            )?
            .execute(params![
                place,
                info.page.0,
                info.site.0,
                info.kind.number(),
                info.language.number(),
                info.importance_percent,
                info.changed_s,
                batch,
                loans.encode(),
                record.encode(),
            ])?;
        Ok(())
    }

    /// Takes a page out; returns where it was.
    pub(super) fn drop_page(&self, page: PageId, batch: i64) -> Result<Option<u32>, SearchError> {
        let mut delete =
            self.0.prepare_cached("DELETE FROM pages WHERE page = ?1 RETURNING place")?;
        let place: Option<u32> = delete.query_row([page.0], |row| row.get(0)).optional()?;
        if let Some(place) = place {
            self.0
                .prepare_cached("INSERT OR REPLACE INTO dropped VALUES (?1, ?2)")?
                .execute(params![place, batch])?;
        }
        Ok(place)
    }

    /// Reserves places, durably: those that a crash leaves unused are not used again. Returns the
    /// first and the one after the last.
    pub(super) fn reserve(&self, count: u32) -> Result<(u32, u32), SearchError> {
        let first: u32 = self.get("reserved")?.unwrap_or(0);
        let end = first.checked_add(count).ok_or(SearchError::Full)?;
        self.set("reserved", end)?;
        Ok((first, end))
    }
}

fn decoded(bytes: &[u8]) -> Result<Record, SearchError> {
    Record::decode(bytes).ok_or_else(|| SearchError::Damaged("a record cannot be read".into()))
}

fn decoded_loans(bytes: &[u8]) -> Result<Loans, SearchError> {
    Loans::decode(bytes).ok_or_else(|| SearchError::Damaged("a loan cannot be read".into()))
}

/// A page as it is indexed.
pub(crate) struct Indexed {
    pub(crate) place: u32,
    pub(crate) record: Record,
    pub(crate) loans: Loans,
}

/// Blocks that are lent to a page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Lent {
    /// The first of them, and how many.
    block: u32,
    count: u32,
    /// The page that borrows them, and the first of them there.
    place: u32,
    own: u32,
}

/// Every page by its place.
#[derive(Default)]
pub(super) struct PageTable {
    pages: Vec<Option<PageInfo>>,
    /// What pages lend, by their places.
    lent: BTreeMap<u32, Vec<Lent>>,
    batch: i64,
    /// The languages that pages have, as bits.
    pub(super) languages: u32,
    pub(super) newest_s: i64,
}

impl PageTable {
    pub(super) fn get(&self, place: u32) -> Option<&PageInfo> {
        self.pages.get(place as usize).and_then(Option::as_ref)
    }

    /// Hands each page that borrows a block to `take`, with the number of the block there.
    pub(super) fn borrowers(&self, place: u32, block: u32, take: &mut dyn FnMut(u32, u32)) {
        let Some(lent) = self.lent.get(&place) else { return };
        let first = lent.partition_point(|run| run.block + MAX_RUN <= block);
        for run in lent[first..].iter().take_while(|run| run.block <= block) {
            if block - run.block < run.count {
                take(run.place, run.own + (block - run.block));
            }
        }
    }

    pub(super) fn places(&self) -> usize {
        self.pages.len()
    }

    /// Takes in what was committed since; returns whether there was anything.
    pub(super) fn catch_up(&mut self, records: &Records) -> Result<bool, SearchError> {
        let batch = records.batch()?;
        if batch == self.batch {
            return Ok(false);
        }
        let since = self.batch;
        let mut dropped = records.0.prepare_cached("SELECT place FROM dropped WHERE batch > ?1")?;
        for place in dropped.query_map([since], |row| row.get::<_, u32>(0))? {
            let place = place?;
            if let Some(page) = self.pages.get_mut(place as usize) {
                *page = None;
            }
            self.lent.remove(&place);
        }
        let mut changed = records.0.prepare_cached(
            "SELECT place, page, site, kind, language, importance, changed_s, loans
             FROM pages WHERE batch > ?1",
        )?;
        let mut rows = changed.query([since])?;
        let mut lenders = BTreeSet::new();
        while let Some(row) = rows.next()? {
            let place: u32 = row.get(0)?;
            for loan in decoded_loans(&row.get::<_, Vec<u8>>(7)?)?.list() {
                let lent = Lent { block: loan.block, count: loan.count, place, own: loan.own };
                self.lent.entry(loan.lender).or_default().push(lent);
                lenders.insert(loan.lender);
            }
            let kind = PageKind::of_number(row.get(3)?);
            let kind = kind.ok_or_else(|| SearchError::Damaged("a page has no kind".into()))?;
            let info = PageInfo {
                page: PageId(row.get(1)?),
                site: SiteId(row.get(2)?),
                kind,
                language: Language::of_number(row.get(4)?),
                importance_percent: row.get(5)?,
                changed_s: row.get(6)?,
            };
            if self.pages.len() <= place as usize {
                self.pages.resize(place as usize + 1, None);
            }
            self.languages |= info.language.bit();
            self.newest_s = self.newest_s.max(info.changed_s);
            self.pages[place as usize] = Some(info);
        }
        // A page that changed again has all its loans again.
        for lender in lenders {
            if let Some(lent) = self.lent.get_mut(&lender) {
                lent.sort_unstable();
                lent.dedup();
            }
        }
        self.batch = batch;
        Ok(true)
    }
}
