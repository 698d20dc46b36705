//! Where pages with times of their own wait: in buckets, as far as the queue was laid out, and
//! beyond that in coarse buckets.
//!
//! A coarse bucket is a day of buckets (24 of them) to which pages are only ever added, so that
//! setting a thousand pages' times touches a few dozen rows instead of a thousand. When its time
//! comes it is laid out into buckets. The page's own record says when it is due: a page that was
//! given another time meanwhile is left out then.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::settings;
use crate::{PageId, rules::Wait};

const COARSE_BUCKETS: i64 = 24;
const NUMBER_BYTES: usize = 8;
/// Bytes of a part of a coarse bucket: eight to a page of the database, and none outgrows its cell.
const PART_BYTES: usize = 60 * NUMBER_BYTES;
/// Parts laid out in one transaction, so that commits get their turn.
const PARTS_TOGETHER: i64 = 500;

/// The coarse bucket of a time.
pub(super) fn coarse(bucket_s: i64, due_s: i64) -> i64 {
    due_s.div_euclid(bucket_s.saturating_mul(COARSE_BUCKETS))
}

/// The last coarse bucket that was laid out.
pub(super) fn laid_out(c: &Connection) -> rusqlite::Result<i64> {
    Ok(settings::get(c, LAID_OUT)?.unwrap_or(i64::MIN))
}

const LAID_OUT: &str = "laid_out";
/// The coarse bucket of which a part is in buckets and the rest not yet.
const LAYING_OUT: &str = "laying_out";

/// The last bucket of a coarse one.
pub(super) fn last_bucket(coarse: i64) -> i64 {
    coarse.saturating_add(1).saturating_mul(COARSE_BUCKETS).saturating_sub(1)
}

/// Where pages wait that a visit found and that were not visited yet: a crawl order chooses among
/// them, and a scan of the buckets of time need not pass them by.
pub(super) const NEW_BUCKET: i64 = i64::MAX - 1;

/// Whether a page waits among the new ones.
pub(super) fn is_new(c: &Connection, page: PageId) -> rusqlite::Result<bool> {
    c.prepare_cached("SELECT 1 FROM due WHERE bucket = ?1 AND page = ?2")?
        .exists([NEW_BUCKET, page.0])
}

/// Pages on their way into buckets and coarse buckets.
pub(super) struct Moves<'t> {
    t: &'t Transaction<'t>,
    bucket_s: i64,
    laid_out: i64,
    laying_out: Option<i64>,
    coarse: BTreeMap<i64, Vec<PageId>>,
}

impl<'t> Moves<'t> {
    pub(super) fn new(t: &'t Transaction<'t>, bucket_s: i64) -> rusqlite::Result<Self> {
        let (laid_out, laying_out) = (laid_out(t)?, settings::get(t, LAYING_OUT)?);
        Ok(Self { t, bucket_s, laid_out, laying_out, coarse: BTreeMap::new() })
    }

    /// Gives a page another time.
    pub(super) fn go(
        &mut self,
        page: PageId,
        before_s: Option<i64>,
        after_s: Option<i64>,
    ) -> rusqlite::Result<()> {
        let bucket = |due_s: i64| due_s.div_euclid(self.bucket_s);
        if before_s.map(bucket) == after_s.map(bucket) {
            return Ok(());
        }
        let coarse_of = |due_s: i64| coarse(self.bucket_s, due_s);
        let (from, to) = (before_s.map(coarse_of), after_s.map(coarse_of));
        if let (Some(before_s), Some(from)) = (before_s, from)
            && (from <= self.laid_out || Some(from) == self.laying_out)
        {
            self.t
                .prepare_cached("DELETE FROM due WHERE bucket = ?1 AND page = ?2")?
                .execute(params![bucket(before_s), page.0])?;
        }
        let (Some(after_s), Some(to)) = (after_s, to) else { return Ok(()) };
        if to <= self.laid_out {
            self.t
                .prepare_cached("INSERT OR IGNORE INTO due VALUES (?1, ?2)")?
                .execute(params![bucket(after_s), page.0])?;
        } else if from != Some(to) {
            self.coarse.entry(to).or_default().push(page);
        }
        Ok(())
    }

    /// A page that waited nowhere gets a time of its own.
    pub(super) fn enter(&mut self, page: PageId, wait: Wait, due_s: i64) -> rusqlite::Result<()> {
        if wait == Wait::Time {
            return self.go(page, None, Some(due_s));
        }
        self.t
            .prepare_cached("INSERT OR IGNORE INTO due VALUES (?1, ?2)")?
            .execute([NEW_BUCKET, page.0])?;
        Ok(())
    }

    /// A page was visited for the first time; `due_before` is the time it had until then.
    pub(super) fn first_visited(
        &mut self,
        page: PageId,
        due_before: Option<i64>,
        due_s: Option<i64>,
    ) -> rusqlite::Result<()> {
        let left = self
            .t
            .prepare_cached("DELETE FROM due WHERE bucket = ?1 AND page = ?2")?
            .execute([NEW_BUCKET, page.0])?;
        self.go(page, due_before.filter(|_| left == 0), due_s)
    }

    /// Writes what goes to coarse buckets.
    pub(super) fn finish(&mut self) -> rusqlite::Result<()> {
        for (coarse, pages) in std::mem::take(&mut self.coarse) {
            let numbers: Vec<u8> = pages.iter().flat_map(|page| page.0.to_le_bytes()).collect();
            add(self.t, coarse, &numbers)?;
        }
        Ok(())
    }
}

fn add(t: &Transaction<'_>, coarse: i64, numbers: &[u8]) -> rusqlite::Result<()> {
    let last: Option<(i64, Vec<u8>)> = t
        .prepare_cached(
            "SELECT part, pages FROM coarse_buckets WHERE coarse = ?1 ORDER BY part DESC LIMIT 1",
        )?
        .query_row([coarse], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let (mut part, mut pages) = last.unwrap_or_default();
    if pages.len() >= PART_BYTES {
        (part, pages) = (part + 1, Vec::new());
    }
    let mut rest = numbers;
    while !rest.is_empty() {
        let (here, later) = rest.split_at(rest.len().min(PART_BYTES - pages.len()));
        pages.extend_from_slice(here);
        t.prepare_cached("INSERT OR REPLACE INTO coarse_buckets VALUES (?1, ?2, ?3)")?
            .execute(params![coarse, part, pages])?;
        (part, rest) = (part + 1, later);
        pages.clear();
    }
    Ok(())
}

/// Splits some of the earliest coarse bucket at or before `last` into buckets. Returns whether that
/// one, or every one when there is none, is in buckets now.
pub(super) fn lay_out(t: &Transaction<'_>, bucket_s: i64, last: i64) -> rusqlite::Result<bool> {
    let first: Option<i64> = t
        .prepare_cached("SELECT MIN(coarse) FROM coarse_buckets WHERE coarse <= ?1")?
        .query_row([last], |row| row.get(0))?;
    let Some(coarse) = first else { return set_laid_out(t, last) };
    let parts: Vec<(i64, Vec<u8>)> = t
        .prepare_cached(
            "SELECT part, pages FROM coarse_buckets WHERE coarse = ?1 ORDER BY part LIMIT ?2",
        )?
        .query_map([coarse, PARTS_TOGETHER], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut places = Vec::new();
    let mut due = t.prepare_cached("SELECT due_s FROM pages WHERE id = ?1")?;
    for page in parts.iter().flat_map(|(_, pages)| numbers(pages)) {
        let due_s: Option<Option<i64>> = due.query_row([page], |row| row.get(0)).optional()?;
        if let Some(due_s) =
            due_s.flatten().filter(|&due_s| self::coarse(bucket_s, due_s) == coarse)
        {
            places.push((due_s.div_euclid(bucket_s), page));
        }
    }
    places.sort_unstable();
    let mut insert = t.prepare_cached("INSERT OR IGNORE INTO due VALUES (?1, ?2)")?;
    for (bucket, page) in places {
        insert.execute([bucket, page])?;
    }
    let end = parts.last().map_or(0, |(part, _)| *part);
    t.prepare_cached("DELETE FROM coarse_buckets WHERE coarse = ?1 AND part <= ?2")?
        .execute([coarse, end])?;
    if (parts.len() as i64) < PARTS_TOGETHER {
        return set_laid_out(t, coarse);
    }
    settings::set(t, LAYING_OUT, coarse)?;
    Ok(false)
}

fn set_laid_out(t: &Transaction<'_>, coarse: i64) -> rusqlite::Result<bool> {
    settings::set(t, LAID_OUT, coarse.max(laid_out(t)?))?;
    Ok(true)
}

fn numbers(pages: &[u8]) -> impl Iterator<Item = i64> {
    pages.chunks_exact(NUMBER_BYTES).map(|bytes| {
        let mut number = [0; NUMBER_BYTES];
        number.copy_from_slice(bytes);
        i64::from_le_bytes(number)
    })
}

/// How many pages have a due time and are neither in its bucket nor in its coarse one.
pub(super) fn lost(c: &Connection, bucket_s: i64) -> rusqlite::Result<u64> {
    let mut in_coarse = Vec::new();
    let mut parts = c.prepare("SELECT coarse, pages FROM coarse_buckets")?;
    let mut rows = parts.query([])?;
    while let Some(row) = rows.next()? {
        let coarse: i64 = row.get(0)?;
        let pages = row.get_ref(1)?.as_blob().unwrap_or_default();
        in_coarse.extend(numbers(pages).map(|page| (page, coarse)));
    }
    in_coarse.sort_unstable();
    let laid_out = laid_out(c)?;
    let mut in_bucket = c.prepare("SELECT 1 FROM due WHERE bucket = ?1 AND page = ?2")?;
    let mut lost = 0;
    let new = format!(
        "SELECT id, due_s FROM pages p WHERE due_s IS NOT NULL AND NOT (visited_s IS NULL
            AND EXISTS (SELECT 1 FROM due d WHERE d.bucket = {NEW_BUCKET} AND d.page = p.id))"
    );
    let mut all = c.prepare(&new)?;
    let mut rows = all.query([])?;
    while let Some(row) = rows.next()? {
        let (page, due_s): (i64, i64) = (row.get(0)?, row.get(1)?);
        let coarse = coarse(bucket_s, due_s);
        let is_queued = if coarse <= laid_out {
            in_bucket.exists([due_s.div_euclid(bucket_s), page])?
        } else {
            in_coarse.binary_search(&(page, coarse)).is_ok()
        };
        lost += u64::from(!is_queued);
    }
    Ok(lost)
}
