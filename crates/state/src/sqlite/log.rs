//! The log of visits: portions of consecutive visits, and which sites and outcomes each holds.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use nenrin_lang::Reason;
use nenrin_urls::CanonicalUrl;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params, types::Type};

use super::{
    bags,
    portion::{self, Logged, Portion},
    read, rows,
};
use crate::{
    Outcome, PageId, ProblemGroup, ServerId, SiteId, VisitCommit, VisitFilter, VisitRow,
    rules::ALL_SITES,
};

/// Outcomes rare enough to be looked for: gone, refused, failed.
const PROBLEMS: u8 = 0b11_1000;

/// Pairs that are sorted together where the index of pages is made.
const PAIRS_MAX: usize = 1_000_000;

impl Logged {
    pub(super) fn new(page: PageId, visit: &VisitCommit) -> Self {
        Self {
            at_s: visit.at_s,
            page,
            site: visit.site,
            outcome: visit.outcome,
            status: visit.status,
            elapsed_ms: visit.elapsed_ms,
            received_bytes: visit.received_bytes,
            detail: visit.reason.as_ref().map(Reason::to_json),
        }
    }
}

fn bit(outcome: Outcome) -> u8 {
    1 << rows::outcome_number(outcome)
}

/// Writes visits at the end of the log.
pub(super) struct Writer<'t> {
    t: &'t Transaction<'t>,
    open: Portion,
    outcomes: BTreeMap<(u32, i64), u8>,
    /// Where the index of pages is kept: what is to be entered there.
    by_page: Option<BTreeSet<(i64, i64)>>,
}

impl<'t> Writer<'t> {
    pub(super) fn new(t: &'t Transaction<'t>) -> rusqlite::Result<Self> {
        let last = t
            .prepare_cached("SELECT first, visits FROM visits ORDER BY first DESC LIMIT 1")?
            .query_row([], |row| {
                Portion::resume(row.get(0)?, row.get(1)?).ok_or_else(|| damaged(row))
            })
            .optional()?;
        let open = last.unwrap_or_else(|| Portion::begin(1));
        let by_page = has_pages(t)?.then(BTreeSet::new);
        Ok(Self { t, open, outcomes: BTreeMap::new(), by_page })
    }

    pub(super) fn push(&mut self, visit: &Logged) -> rusqlite::Result<()> {
        if !self.open.push(visit) {
            self.close(self.open.id + self.open.count)?;
            self.open.push(visit);
        }
        let portion = self.open.id;
        let bit = bit(visit.outcome);
        *self.outcomes.entry((visit.site.0, portion)).or_default() |= bit;
        if bit & PROBLEMS != 0 {
            *self.outcomes.entry((ALL_SITES, portion)).or_default() |= bit;
        }
        if let Some(pairs) = &mut self.by_page {
            pairs.insert((visit.page.0, portion));
        }
        Ok(())
    }

    fn close(&mut self, next: i64) -> rusqlite::Result<()> {
        let full = std::mem::replace(&mut self.open, Portion::begin(next));
        self.write(&full)
    }

    fn write(&self, portion: &Portion) -> rusqlite::Result<()> {
        if portion.count > 0 {
            self.t
                .prepare_cached("INSERT OR REPLACE INTO visits VALUES (?1, ?2)")?
                .execute(params![portion.id, portion.bytes])?;
        }
        Ok(())
    }

    pub(super) fn finish(self) -> rusqlite::Result<()> {
        self.write(&self.open)?;
        let mut insert = self.t.prepare_cached(
            "INSERT INTO visits_by_site VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET outcomes = outcomes | ?3",
        )?;
        for ((site, portion), outcomes) in &self.outcomes {
            insert.execute(params![site, portion, outcomes])?;
        }
        if let Some(pairs) = &self.by_page {
            enter_pages(self.t, pairs.iter())?;
        }
        Ok(())
    }
}

fn has_pages(c: &Connection) -> rusqlite::Result<bool> {
    c.prepare_cached("SELECT 1 FROM sqlite_master WHERE name = 'visits_by_page'")?.exists([])
}

fn enter_pages<'a>(
    t: &Connection,
    pairs: impl Iterator<Item = &'a (i64, i64)>,
) -> rusqlite::Result<()> {
    let mut insert = t.prepare_cached("INSERT OR IGNORE INTO visits_by_page VALUES (?1, ?2)")?;
    for (page, portion) in pairs {
        insert.execute([page, portion])?;
    }
    Ok(())
}

/// Makes the index that [`visits_of`] needs, unless it is there.
pub(super) fn index_pages(t: &Transaction<'_>) -> rusqlite::Result<()> {
    match has_pages(t)? {
        true => Ok(()),
        false => make_index(t, "TABLE"),
    }
}

/// Makes it in memory, for this connection, where nothing can be written.
pub(super) fn index_pages_in_memory(c: &Connection) -> rusqlite::Result<()> {
    c.pragma_update(None, "query_only", false)?;
    let made = make_index(c, "TEMP TABLE");
    c.pragma_update(None, "query_only", true)?;
    made
}

fn make_index(t: &Connection, table: &str) -> rusqlite::Result<()> {
    t.execute_batch(&format!(
        "CREATE {table} visits_by_page (
            page INTEGER NOT NULL, portion INTEGER NOT NULL,
            PRIMARY KEY (page, portion)) WITHOUT ROWID"
    ))?;
    let mut pairs = BTreeSet::new();
    let mut all = t.prepare("SELECT first, visits FROM visits")?;
    let mut portions = all.query([])?;
    while let Some(row) = portions.next()? {
        let (first, visits) = portion(row)?;
        pairs.extend(visits.iter().map(|visit| (visit.page.0, first)));
        if pairs.len() >= PAIRS_MAX {
            enter_pages(t, pairs.iter())?;
            pairs.clear();
        }
    }
    enter_pages(t, pairs.iter())
}

fn portion(row: &Row<'_>) -> rusqlite::Result<(i64, Vec<Logged>)> {
    let bytes = row.get_ref(1)?.as_blob().map_err(|_| damaged(row))?;
    Ok((row.get(0)?, portion::read(bytes).ok_or_else(|| damaged(row))?))
}

fn damaged(row: &Row<'_>) -> rusqlite::Error {
    let first: i64 = row.get(0).unwrap_or_default();
    let what = format!("the log's portion from visit {first} on is damaged");
    rusqlite::Error::FromSqlConversionFailure(1, Type::Blob, what.into())
}

/// Damaged portions that are named.
const DAMAGED_NAMED: usize = 20;

/// Portions of the log that cannot be read.
pub(super) fn damaged_portions(c: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut select = c.prepare("SELECT first, visits FROM visits ORDER BY first")?;
    let mut rows = select.query([])?;
    let mut damaged = Vec::new();
    while let Some(row) = rows.next()? {
        if portion(row).is_err() && damaged.len() < DAMAGED_NAMED {
            let first: i64 = row.get(0)?;
            damaged.push(format!("the log's portion from visit {first} on is damaged"));
        }
    }
    Ok(damaged)
}

/// Shows the visits that a query is for, newest first, until `look` has seen enough.
fn backwards(
    c: &Connection,
    query: VisitFilter,
    look: &mut dyn FnMut(i64, Logged) -> bool,
) -> rusqlite::Result<()> {
    let before = query.before.unwrap_or(i64::MAX);
    let wanted = query.outcome.map_or(u8::MAX, bit);
    let listed = match query.site {
        Some(site) => Some(site.0),
        // The other outcomes are common enough to be met on the way back.
        None => (wanted & !PROBLEMS == 0).then_some(ALL_SITES),
    };
    let mut select = c.prepare_cached(match listed {
        Some(_) => {
            "SELECT v.first, v.visits FROM visits_by_site b CROSS JOIN visits v ON v.first = b.portion
             WHERE b.portion < ?1 AND b.site = ?2 AND b.outcomes & ?3 ORDER BY b.portion DESC"
        }
        None => {
            "SELECT first, visits FROM visits
             WHERE first < ?1 AND ?2 IS NULL AND ?3 ORDER BY first DESC"
        }
    })?;
    let mut portions = select.query(params![before, listed, wanted])?;
    while let Some(row) = portions.next()? {
        let (first, visits) = portion(row)?;
        for (nth, visit) in visits.into_iter().enumerate().rev() {
            let id = first + nth as i64;
            let is_meant = id < before
                && query.site.is_none_or(|site| site == visit.site)
                && bit(visit.outcome) & wanted != 0;
            if is_meant && !look(id, visit) {
                return Ok(());
            }
        }
    }
    Ok(())
}

pub(super) fn log(c: &Connection, query: VisitFilter) -> rusqlite::Result<Vec<VisitRow>> {
    let mut found = Vec::new();
    if query.limit > 0 {
        backwards(c, query, &mut |id, visit| {
            found.push((id, visit));
            found.len() < query.limit
        })?;
    }
    with_urls(c, found)
}

fn with_urls(c: &Connection, visits: Vec<(i64, Logged)>) -> rusqlite::Result<Vec<VisitRow>> {
    let row = |(id, visit): (i64, Logged)| {
        Ok(VisitRow {
            id,
            at_s: visit.at_s,
            url: bags::url(c, visit.page)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?,
            site: visit.site,
            outcome: visit.outcome,
            status: visit.status,
            reason: visit.detail.as_deref().and_then(Reason::from_json),
            elapsed_ms: visit.elapsed_ms,
            received_bytes: visit.received_bytes,
        })
    };
    visits.into_iter().map(row).collect()
}

pub(super) fn visits_of(
    c: &Connection,
    url: &CanonicalUrl,
    from_s: i64,
    to_s: i64,
) -> rusqlite::Result<Vec<VisitRow>> {
    let Some(page) = read::find_page(c, url)? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    let mut select = c.prepare_cached(
        "SELECT v.first, v.visits FROM visits_by_page b CROSS JOIN visits v ON v.first = b.portion
         WHERE b.page = ?1 ORDER BY b.portion",
    )?;
    let mut portions = select.query([page.0])?;
    while let Some(row) = portions.next()? {
        let (first, visits) = portion(row)?;
        let is_meant = |(_, visit): &(i64, Logged)| {
            visit.page == page && (from_s..=to_s).contains(&visit.at_s)
        };
        found.extend((first..).zip(visits).filter(is_meant));
    }
    found.sort_by_key(|(id, visit)| (visit.at_s, *id));
    with_urls(c, found)
}

/// The visits of one page, newest first: by the index of pages where there is one, else by reading
/// back through the log.
pub(super) fn recent_visits(
    c: &Connection,
    page: PageId,
    before: Option<i64>,
    looked_at: usize,
) -> rusqlite::Result<(Vec<VisitRow>, Option<i64>)> {
    let before = before.unwrap_or(i64::MAX);
    let mut select = c.prepare_cached(if has_pages(c)? {
        "SELECT v.first, v.visits FROM visits_by_page b CROSS JOIN visits v ON v.first = b.portion
         WHERE b.portion < ?1 AND b.page = ?2 ORDER BY b.portion DESC"
    } else {
        "SELECT first, visits FROM visits WHERE first < ?1 AND ?2 IS NOT NULL ORDER BY first DESC"
    })?;
    let mut portions = select.query(params![before, page.0])?;
    let (mut found, mut looked, mut next) = (Vec::new(), 0, None);
    while let Some(row) = portions.next()? {
        if looked >= looked_at {
            return Ok((with_urls(c, found)?, next));
        }
        let (first, visits) = portion(row)?;
        looked += visits.len();
        next = Some(first);
        let meant = (first..).zip(visits).filter(|(id, visit)| visit.page == page && *id < before);
        found.extend(meant.collect::<Vec<_>>().into_iter().rev());
    }
    Ok((with_urls(c, found)?, None))
}

pub(super) fn problems(
    c: &Connection,
    site: SiteId,
    looked_at: usize,
) -> rusqlite::Result<Vec<ProblemGroup>> {
    type Cause = (u8, u16, Option<String>);
    let Some(site) = read::site(c, site)? else { return Ok(Vec::new()) };
    let mut groups: BTreeMap<(Cause, ServerId), (u64, i64, PageId)> = BTreeMap::new();
    for outcome in [Outcome::Gone, Outcome::Refused, Outcome::Failed] {
        let query =
            VisitFilter { site: Some(site.id), outcome: Some(outcome), ..VisitFilter::default() };
        let mut left = looked_at;
        if left == 0 {
            break;
        }
        backwards(c, query, &mut |_, visit| {
            let cause = (rows::outcome_number(outcome), visit.status, visit.detail);
            let group = groups.entry((cause, visit.page.server()));
            group.or_insert((0, visit.at_s, visit.page)).0 += 1;
            left -= 1;
            left > 0
        })?;
    }
    let mut by_cause: BTreeMap<(Cause, bool), ProblemGroup> = BTreeMap::new();
    for ((cause, _), (count, last_s, page)) in groups {
        let last_url = bags::url(c, page)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
        let own = site.conditions.is_own(&last_url);
        let group = ProblemGroup {
            outcome: Outcome::ALL[usize::from(cause.0)],
            own,
            status: cause.1,
            reason: cause.2.as_deref().and_then(Reason::from_json),
            count,
            last_s,
            last_url,
        };
        match by_cause.entry((cause, own)) {
            Entry::Vacant(free) => {
                free.insert(group);
            }
            Entry::Occupied(mut known) => {
                let count = known.get().count + group.count;
                if group.last_s > known.get().last_s {
                    known.insert(group);
                }
                known.get_mut().count = count;
            }
        }
    }
    let mut groups: Vec<ProblemGroup> = by_cause.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse((group.count, group.last_s)));
    Ok(groups)
}
