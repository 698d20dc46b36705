//! Rows to records.

use nenrin_urls::{CanonicalUrl, Server};
use tokio_postgres::{Row, types::FromSql};

use crate::{
    ContentMark, DuePage, Estimate, Nth, Outcome, PageId, PageRecord, Reading, Removal, RobotsCopy,
    Round, RoundCounts, RoundId, ServerId, ServerRecord, Site, SiteCounts, SiteId, Validators,
    VersionId, VersionRow,
};

/// Why a row cannot be read.
#[derive(Debug)]
pub(super) enum Unreadable {
    Engine(tokio_postgres::Error),
    Value(String),
}

impl From<tokio_postgres::Error> for Unreadable {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Engine(error)
    }
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Engine(error) => error.fmt(f),
            Self::Value(why) => why.fmt(f),
        }
    }
}

/// What is read of a row.
pub(super) type Read<T> = Result<T, Unreadable>;

pub(super) fn get<'r, T: FromSql<'r>>(row: &'r Row, column: usize) -> Read<T> {
    Ok(row.try_get(column)?)
}

pub(super) fn unsigned(row: &Row, column: usize) -> Read<u64> {
    Ok(get::<i64>(row, column)? as u64)
}

/// A number that is kept as a larger or signed one.
pub(super) fn number(row: &Row, column: usize) -> Read<u32> {
    Ok(get::<i32>(row, column)? as u32)
}

fn wide(row: &Row, column: usize) -> Read<u32> {
    Ok(get::<i64>(row, column)? as u32)
}

pub(super) fn url(row: &Row, column: usize) -> Read<CanonicalUrl> {
    let text: &str = get(row, column)?;
    CanonicalUrl::parse(text).map_err(|e| Unreadable::Value(format!("{text}: {e}")))
}

/// A record that is kept as JSON.
pub(super) fn json<T: serde::de::DeserializeOwned>(row: &Row, column: usize) -> Read<T> {
    let text: &str = get(row, column)?;
    serde_json::from_str(text).map_err(|e| Unreadable::Value(e.to_string()))
}

pub(super) fn outcome_number(outcome: Outcome) -> i16 {
    Outcome::ALL.iter().position(|&o| o == outcome).unwrap_or(0) as i16
}

pub(super) fn outcome(row: &Row, column: usize) -> Read<Option<Outcome>> {
    let Some(number) = get::<Option<i16>>(row, column)? else { return Ok(None) };
    let known = usize::try_from(number).ok().and_then(|at| Outcome::ALL.get(at).copied());
    known.map(Some).ok_or_else(|| Unreadable::Value(format!("outcome {number} is unknown")))
}

pub(super) fn reading_number(reading: Reading) -> i16 {
    match reading {
        Reading::New => 0,
        Reading::Tried => 1,
        Reading::Unread => 2,
        Reading::Read => 3,
    }
}

pub(super) fn reading(row: &Row, column: usize) -> Read<Reading> {
    Ok(match get::<i16>(row, column)? {
        0 => Reading::New,
        1 => Reading::Tried,
        2 => Reading::Unread,
        _ => Reading::Read,
    })
}

/// The columns that [`page`] reads, in its order.
pub(super) const PAGE: &str = "p.id, s.name || p.path, p.site, p.discovered_s, p.visited_s, \
    p.outcome, p.due_s, p.visits, p.changes, p.failures, p.etag, p.last_modified, p.mark, p.bytes, \
    p.version, p.history, p.significant, p.nth, p.importance, p.rate, p.sure";

/// The join that [`PAGE`] needs: the server's number is part of the page's.
pub(super) const SERVER_OF_PAGE: &str = "JOIN @servers s ON s.id = (p.id >> 39)::integer";

pub(super) fn page(row: &Row) -> Read<PageRecord> {
    let mark: Option<&[u8]> = get(row, 12)?;
    let (rate, sure): (Option<i64>, Option<i16>) = (get(row, 19)?, get(row, 20)?);
    Ok(PageRecord {
        id: PageId(get(row, 0)?),
        url: url(row, 1)?,
        site: SiteId(number(row, 2)?),
        discovered_s: get(row, 3)?,
        visited_s: get(row, 4)?,
        outcome: outcome(row, 5)?,
        due_s: get(row, 6)?,
        visits: number(row, 7)?,
        changes: number(row, 8)?,
        failures: number(row, 9)?,
        validators: Validators { etag: get(row, 10)?, last_modified: get(row, 11)? },
        mark: mark.and_then(|mark| mark.try_into().ok()).map(ContentMark),
        bytes: unsigned(row, 13)?,
        version: get::<Option<i64>>(row, 14)?.map(|version| VersionId(version as u64)),
        history: get::<Option<Vec<u8>>>(row, 15)?.unwrap_or_default(),
        significant: number(row, 16)?,
        nth: Nth(number(row, 17)?),
        importance_percent: wide(row, 18)?,
        estimate: rate.map(|rate| Estimate {
            rate_micros: rate as u32,
            confidence_percent: sure.unwrap_or(0) as u8,
        }),
    })
}

/// [`PAGE`], then site, depth, hops, whether it was pulled forward, and whether a site meets a page
/// that another site keeps. Such a page is asked for as a whole: "not modified" would say nothing of
/// its links, which the site does not know yet.
pub(super) fn due_page(row: &Row) -> Read<DuePage> {
    let mut due = DuePage {
        page: page(row)?,
        site: SiteId(number(row, 21)?),
        depth: number(row, 22)?,
        hops: number(row, 23)?,
        pulled: get(row, 24)?,
    };
    if get(row, 25)? {
        due.page.validators = Validators::default();
    }
    Ok(due)
}

pub(super) const SERVER: &str = "s.id, s.name, s.robots_good_s, s.robots_status, s.robots_body, \
    s.robots_tried_s, s.asked_ms, s.resting_until_ms, s.strikes, s.stretch_percent";

pub(super) fn server(row: &Row) -> Read<ServerRecord> {
    let robots = match get::<Option<i64>>(row, 2)? {
        Some(good_at_s) => Some(RobotsCopy {
            good_at_s,
            status: number(row, 3)? as u16,
            body: get::<Option<Vec<u8>>>(row, 4)?.unwrap_or_default(),
        }),
        None => None,
    };
    Ok(ServerRecord {
        id: ServerId(number(row, 0)?),
        server: server_name(row, 1)?,
        robots,
        robots_tried_s: get(row, 5)?,
        asked_ms: get(row, 6)?,
        resting_until_ms: get(row, 7)?,
        strikes: number(row, 8)?,
        notes: Default::default(),
        stretch_percent: wide(row, 9)?,
    })
}

pub(super) fn server_name(row: &Row, column: usize) -> Read<Server> {
    Server::try_from(get::<String>(row, column)?).map_err(|e| Unreadable::Value(e.to_string()))
}

pub(super) const SITE: &str = "x.id, x.name, x.conditions, x.created_s, x.collected_s, x.paused, \
    x.pages, x.visits, x.versions, x.problems, x.raw_bytes, (SELECT r.removal FROM @removals r \
    WHERE r.site = x.id ORDER BY r.id DESC LIMIT 1), COALESCE((SELECT u.ended_s IS NULL \
    FROM @rounds u WHERE u.site = x.id ORDER BY u.id DESC LIMIT 1), false)";

pub(super) fn site(row: &Row) -> Read<Site> {
    Ok(Site {
        id: SiteId(number(row, 0)?),
        name: get(row, 1)?,
        conditions: json(row, 2)?,
        created_s: get(row, 3)?,
        collected_s: get(row, 4)?,
        round_open: get(row, 12)?,
        paused: get(row, 5)?,
        removed: get::<Option<&str>>(row, 11)?.and_then(Removal::from_word),
        counts: SiteCounts {
            pages: unsigned(row, 6)?,
            visits: unsigned(row, 7)?,
            versions: unsigned(row, 8)?,
            problems: unsigned(row, 9)?,
            raw_bytes: unsigned(row, 10)?,
        },
    })
}

pub(super) const ROUND: &str = "id, site, started_s, ended_s, new_pages, changed, same, \
    not_modified, gone, refused, failed, received_bytes, stored_bytes, trapped, skipped, first";

pub(super) fn round(row: &Row) -> Read<Round> {
    Ok(Round {
        id: RoundId(get(row, 0)?),
        site: SiteId(number(row, 1)?),
        started_s: get(row, 2)?,
        ended_s: get(row, 3)?,
        counts: RoundCounts {
            new_pages: unsigned(row, 4)?,
            changed: unsigned(row, 5)?,
            same: unsigned(row, 6)?,
            not_modified: unsigned(row, 7)?,
            gone: unsigned(row, 8)?,
            refused: unsigned(row, 9)?,
            failed: unsigned(row, 10)?,
            received_bytes: unsigned(row, 11)?,
            stored_bytes: unsigned(row, 12)?,
            trapped: unsigned(row, 13)?,
            skipped: unsigned(row, 14)?,
            first: unsigned(row, 15)?,
        },
    })
}

/// The columns that [`version`] reads, and their tables.
pub(super) const VERSION: &str = "s.name || p.path, v.at_s, v.version, v.status, m.name, v.bytes, \
    v.permille";
pub(super) const OF_VERSION: &str = "JOIN @pages p ON p.id = v.page \
    JOIN @servers s ON s.id = (p.id >> 39)::integer JOIN @mimes m ON m.id = v.mime";

pub(super) fn version_row(row: &Row, from: usize) -> Read<VersionRow> {
    Ok(VersionRow {
        at_s: get(row, from)?,
        version: VersionId(unsigned(row, from + 1)?),
        status: number(row, from + 2)? as u16,
        mime: get(row, from + 3)?,
        bytes: unsigned(row, from + 4)?,
        changed_permille: get::<Option<i16>>(row, from + 5)?.map(|permille| permille as u16),
    })
}

pub(super) fn version(row: &Row) -> Read<(CanonicalUrl, VersionRow)> {
    Ok((url(row, 0)?, version_row(row, 1)?))
}

/// A limit as the engine takes it.
pub(super) fn count(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Ids of several kinds as the engine takes them.
pub(super) fn ids<T>(from: &[T], id: impl Fn(&T) -> i64) -> Vec<i64> {
    from.iter().map(id).collect()
}
