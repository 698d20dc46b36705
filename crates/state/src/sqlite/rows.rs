//! Rows to records and back.

use nenrin_urls::{CanonicalUrl, Server};
use rusqlite::types::{FromSql, FromSqlResult, ToSql, ToSqlOutput, Type, ValueRef};
use rusqlite::{Connection, Row, Rows, Transaction, params};

use super::validators;
use crate::{
    ContentMark, DuePage, Estimate, Nth, Outcome, PageId, PageRecord, Removal, RobotsCopy, Round,
    RoundCounts, RoundId, ServerId, ServerRecord, Site, SiteCounts, SiteId, Validators, VersionId,
    VersionRow,
};

impl ToSql for Nth {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

impl FromSql for Nth {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        u32::column_result(value).map(Self)
    }
}

impl ToSql for RoundId {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

impl FromSql for RoundId {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        i64::column_result(value).map(Self)
    }
}

/// The columns that [`page`] reads, in its order.
pub(super) const PAGE: &str = "p.id, s.name || p.path, p.site, p.discovered_s, p.visited_s, \
    p.outcome, p.due_s, p.visits, p.changes, p.failures, p.etag, p.last_modified, p.mark, p.bytes, \
    p.version, p.history, p.significant, p.nth, p.importance, \
    p.rate, p.sure";

/// The join that [`PAGE`] needs: the server's number is part of the page's.
pub(super) const PAGE_SERVER: &str = "JOIN servers s ON s.id = p.id >> 39";

pub(super) fn page(row: &Row<'_>) -> rusqlite::Result<PageRecord> {
    Ok(PageRecord {
        id: PageId(row.get(0)?),
        url: url(row, 1)?,
        site: SiteId(row.get(2)?),
        discovered_s: row.get(3)?,
        visited_s: row.get(4)?,
        outcome: optional_outcome(row, 5)?,
        due_s: row.get(6)?,
        visits: row.get(7)?,
        changes: row.get(8)?,
        significant: row.get(16)?,
        nth: row.get(17)?,
        importance_percent: row.get(18)?,
        estimate: estimate(row, 19)?,
        failures: row.get(9)?,
        validators: Validators {
            etag: validators::etag(row, 10)?,
            last_modified: validators::date(row, 11)?,
        },
        mark: row.get::<_, Option<[u8; 16]>>(12)?.map(ContentMark),
        bytes: unsigned(row, 13)?,
        version: row.get::<_, Option<i64>>(14)?.map(|v| VersionId(v as u64)),
        history: row.get::<_, Option<Vec<u8>>>(15)?.unwrap_or_default(),
    })
}

/// A rate and how sure it is.
pub(super) fn estimate(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<Estimate>> {
    let (rate, sure): (Option<u32>, Option<u8>) = (row.get(at)?, row.get(at + 1)?);
    Ok(rate.map(|rate_micros| Estimate { rate_micros, confidence_percent: sure.unwrap_or(0) }))
}

/// [`PAGE`], then site, depth, hops and whether it was pulled forward.
pub(super) fn due_page(row: &Row<'_>) -> rusqlite::Result<DuePage> {
    Ok(DuePage {
        page: page(row)?,
        site: SiteId(row.get(21)?),
        depth: row.get(22)?,
        hops: row.get(23)?,
        pulled: row.get(24)?,
    })
}

/// Whether a site meets a page that another site keeps: the last column of [`due_page_of_round`].
pub(super) const MEETS: &str = "p.site <> m.site AND m.round IS NULL";

/// As [`due_page`], then [`MEETS`]. Such a page is asked for as a whole: "not modified" would say
/// nothing of its links, which the site does not know yet.
pub(super) fn due_page_of_round(row: &Row<'_>) -> rusqlite::Result<DuePage> {
    let mut due = due_page(row)?;
    if row.get(25)? {
        due.page.validators = Validators::default();
    }
    Ok(due)
}

pub(super) const SERVER: &str = "id, name, robots_good_s, robots_status, robots_body, \
    robots_tried_s, asked_ms, resting_until_ms, strikes, stretch_percent";

pub(super) fn server(row: &Row<'_>) -> rusqlite::Result<ServerRecord> {
    let robots = match row.get::<_, Option<i64>>(2)? {
        Some(good_at_s) => Some(RobotsCopy {
            good_at_s,
            status: row.get(3)?,
            body: row.get::<_, Option<Vec<u8>>>(4)?.unwrap_or_default(),
        }),
        None => None,
    };
    Ok(ServerRecord {
        id: ServerId(row.get(0)?),
        server: Server::try_from(row.get::<_, String>(1)?).map_err(|e| unreadable(1, e))?,
        robots,
        robots_tried_s: row.get(5)?,
        asked_ms: row.get(6)?,
        resting_until_ms: row.get(7)?,
        strikes: row.get(8)?,
        notes: std::collections::BTreeMap::new(),
        stretch_percent: row.get(9)?,
    })
}

pub(super) const SITE: &str = "id, name, conditions, created_s, collected_s, paused, pages, \
    visits, versions, problems, raw_bytes, (SELECT r.removal FROM removals r \
    WHERE r.site = sites.id ORDER BY r.id DESC LIMIT 1), COALESCE((SELECT u.ended_s IS NULL \
    FROM rounds u WHERE u.site = sites.id ORDER BY u.id DESC LIMIT 1), 0)";

pub(super) fn site(row: &Row<'_>) -> rusqlite::Result<Site> {
    let conditions: String = row.get(2)?;
    Ok(Site {
        id: SiteId(row.get(0)?),
        name: row.get(1)?,
        conditions: serde_json::from_str(&conditions).map_err(|e| unreadable(2, e))?,
        created_s: row.get(3)?,
        collected_s: row.get(4)?,
        round_open: row.get(12)?,
        paused: row.get(5)?,
        removed: row.get::<_, Option<String>>(11)?.as_deref().and_then(Removal::from_word),
        counts: SiteCounts {
            pages: unsigned(row, 6)?,
            visits: unsigned(row, 7)?,
            versions: unsigned(row, 8)?,
            problems: unsigned(row, 9)?,
            raw_bytes: unsigned(row, 10)?,
        },
    })
}

pub(super) const ROUND: &str = "id, site, started_s, ended_s, counts";

pub(super) fn round(row: &Row<'_>) -> rusqlite::Result<Round> {
    let counts: String = row.get(4)?;
    Ok(Round {
        id: row.get(0)?,
        site: SiteId(row.get(1)?),
        started_s: row.get(2)?,
        ended_s: row.get(3)?,
        counts: serde_json::from_str(&counts).map_err(|e| unreadable(4, e))?,
    })
}

/// What a round found so far.
pub(super) fn round_counts(c: &Connection, round: RoundId) -> rusqlite::Result<RoundCounts> {
    let text: String = c
        .prepare_cached("SELECT counts FROM rounds WHERE id = ?1")?
        .query_row([round], |row| row.get(0))?;
    json(&text, 0)
}

pub(super) fn keep_round_counts(
    t: &Transaction<'_>,
    round: RoundId,
    counts: &RoundCounts,
) -> rusqlite::Result<()> {
    t.prepare_cached("UPDATE rounds SET counts = ?2 WHERE id = ?1")?
        .execute(params![round, counts_text(counts)])?;
    Ok(())
}

pub(super) fn counts_text(counts: &RoundCounts) -> String {
    // Numbers always have a JSON form. What is 0 is left out.
    let mut counts = serde_json::to_value(counts).unwrap_or_default();
    if let Some(counts) = counts.as_object_mut() {
        counts.retain(|_, count| *count != 0);
    }
    counts.to_string()
}

/// URL, then at_s, version, status, mime name, bytes, permille.
pub(super) fn version(row: &Row<'_>) -> rusqlite::Result<(CanonicalUrl, VersionRow)> {
    let version = VersionRow {
        at_s: row.get(1)?,
        version: VersionId(unsigned(row, 2)?),
        status: row.get(3)?,
        mime: row.get(4)?,
        bytes: unsigned(row, 5)?,
        changed_permille: row.get(6)?,
    };
    Ok((url(row, 0)?, version))
}

pub(super) fn outcome_number(outcome: Outcome) -> u8 {
    Outcome::ALL.iter().position(|&o| o == outcome).unwrap_or(0) as u8
}

pub(super) fn optional_outcome(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Outcome>> {
    row.get::<_, Option<u8>>(column)?.map(|number| outcome(column, number)).transpose()
}

pub(super) fn outcome(column: usize, number: u8) -> rusqlite::Result<Outcome> {
    Outcome::ALL
        .get(usize::from(number))
        .copied()
        .ok_or_else(|| rusqlite::Error::IntegralValueOutOfRange(column, i64::from(number)))
}

pub(super) fn url(row: &Row<'_>, column: usize) -> rusqlite::Result<CanonicalUrl> {
    CanonicalUrl::parse(row.get_ref(column)?.as_str().map_err(|e| unreadable(column, e))?)
        .map_err(|e| unreadable(column, e))
}

/// Behind so many versions no further page is begun: a page may have very many.
const ENOUGH_VERSIONS: usize = 100_000;

/// The versions of whole pages, whose first column is the page and which come in the order of pages:
/// those of fewer pages than asked for if they have many.
pub(super) fn whole_pages<T>(
    mut found: Rows<'_>,
    read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    let (mut versions, mut last) = (Vec::new(), None);
    while let Some(row) = found.next()? {
        let page: Option<i64> = row.get(0)?;
        if versions.len() >= ENOUGH_VERSIONS && page != last {
            break;
        }
        last = page;
        versions.push(read(row)?);
    }
    Ok(versions)
}

pub(super) fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(column)? as u64)
}

/// A record that is kept as JSON.
pub(super) fn json<T: serde::de::DeserializeOwned>(
    text: &str,
    column: usize,
) -> rusqlite::Result<T> {
    serde_json::from_str(text).map_err(|e| unreadable(column, e))
}

fn unreadable(
    column: usize,
    error: impl std::error::Error + Send + Sync + 'static,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
}
