//! From format 1, where visits were rows and an index repeated every path, to format 2.

use rusqlite::{Connection, Transaction, types::Value};

use super::{
    bags::{self, Entered},
    due::{self, Moves},
    log,
    portion::Logged,
    rows, validators,
};
use crate::{PageId, SiteId};

/// What builds of format 1 added to states of earlier ones, each where its first table is missing.
const LEARNT: &str = "
CREATE TABLE notes (
    server INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (server, name)) WITHOUT ROWID;
ALTER TABLE pages ADD COLUMN significant INTEGER NOT NULL DEFAULT 0;
ALTER TABLE versions ADD COLUMN permille INTEGER;
UPDATE pages SET significant = changes;
";
const DAYS: &str = "
CREATE TABLE days (
    site INTEGER NOT NULL, day INTEGER NOT NULL, visits INTEGER NOT NULL, versions INTEGER NOT NULL,
    troubles INTEGER NOT NULL, raw_bytes INTEGER NOT NULL, received_bytes INTEGER NOT NULL,
    stored_bytes INTEGER NOT NULL, PRIMARY KEY (site, day)) WITHOUT ROWID;
CREATE TABLE site_sums (
    site INTEGER PRIMARY KEY, received_bytes INTEGER NOT NULL, stored_bytes INTEGER NOT NULL);
INSERT INTO days SELECT 0, at_s / 86400, COUNT(*), SUM(outcome = 0), SUM(outcome >= 4),
    SUM(received_bytes), SUM(received_bytes), 0 FROM visits GROUP BY 2;
INSERT INTO days SELECT site, at_s / 86400, COUNT(*), SUM(outcome = 0), SUM(outcome >= 4),
    SUM(received_bytes), SUM(received_bytes), 0 FROM visits GROUP BY 1, 2;
INSERT INTO site_sums SELECT site, SUM(received_bytes), 0 FROM visits GROUP BY 1;
";
const STRETCH: &str = "ALTER TABLE servers ADD COLUMN stretch_percent INTEGER NOT NULL DEFAULT 100";

/// Sets the old tables aside and makes the new ones.
const SET_ASIDE: &str = "
DROP INDEX IF EXISTS pages_by_path;
DROP INDEX IF EXISTS visits_by_site;
DROP INDEX IF EXISTS visits_by_page;
DROP INDEX IF EXISTS troubles_by_outcome;
ALTER TABLE pages RENAME TO pages_1;
ALTER TABLE visits RENAME TO visits_1;
ALTER TABLE keys RENAME TO keys_1;
ALTER TABLE due RENAME TO due_1;
CREATE TABLE due (
    bucket INTEGER NOT NULL, page INTEGER NOT NULL, PRIMARY KEY (bucket, page)) WITHOUT ROWID;
";
const DROP_OLD: &str =
    "DROP TABLE pages_1; DROP TABLE visits_1; DROP TABLE keys_1; DROP TABLE due_1;";

/// Pages and keys are entered in their lists in groups of this many.
const TOGETHER: usize = 100_000;

/// Rebuilds a state of format 1, all or nothing.
pub(super) fn from_format_1(t: &Transaction<'_>, bucket_s: i64) -> rusqlite::Result<()> {
    for (name, missing) in [("notes", LEARNT), ("days", DAYS)] {
        if !t.prepare("SELECT 1 FROM sqlite_master WHERE name = ?1")?.exists([name])? {
            t.execute_batch(missing)?;
        }
    }
    if !has_column(t, "servers", "stretch_percent")? {
        t.execute_batch(STRETCH)?;
    }
    t.execute_batch(SET_ASIDE)?;
    for schema in [super::open::PAGES, bags::SCHEMA, due::SCHEMA, log::SCHEMA] {
        t.execute_batch(schema)?;
    }
    pages(t)?;
    keys(t)?;
    visits(t)?;
    queue(t, bucket_s)?;
    t.execute_batch(DROP_OLD)
}

fn has_column(c: &Connection, table: &str, column: &str) -> rusqlite::Result<bool> {
    c.prepare("SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2")?.exists([table, column])
}

fn pages(t: &Transaction<'_>) -> rusqlite::Result<()> {
    let columns = "id, path, site, discovered_s, visited_s, outcome, due_s, visits, changes, \
        significant, failures, etag, last_modified, mark, bytes, version, history";
    let mut select = t.prepare(&format!("SELECT {columns} FROM pages_1"))?;
    let mut insert = t.prepare(&format!(
        "INSERT INTO pages ({columns}) VALUES
            (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)"
    ))?;
    let mut entered = Entered::default();
    let mut found = select.query([])?;
    while let Some(row) = found.next()? {
        for column in 0..17 {
            match column {
                11 => {
                    let etag: Option<String> = row.get(column)?;
                    let value = validators::etag_value(etag.as_deref());
                    insert.raw_bind_parameter(column + 1, value)?;
                }
                12 => {
                    let date: Option<String> = row.get(column)?;
                    let value = validators::date_value(date.as_deref());
                    insert.raw_bind_parameter(column + 1, value)?;
                }
                _ => insert.raw_bind_parameter(column + 1, row.get::<_, Value>(column)?)?,
            }
        }
        insert.raw_execute()?;
        entered.path(PageId(row.get(0)?), row.get_ref(1)?.as_str()?);
        if entered.len() >= TOGETHER {
            entered.write(t)?;
        }
    }
    entered.write(t)
}

fn keys(t: &Transaction<'_>) -> rusqlite::Result<()> {
    let mut select = t.prepare("SELECT page FROM keys_1")?;
    let mut found = select.query([])?;
    let mut entered = Entered::default();
    while let Some(row) = found.next()? {
        let page = PageId(row.get(0)?);
        if let Some(url) = bags::url(t, page)? {
            entered.key(page, &url.key());
        }
        if entered.len() >= TOGETHER {
            entered.write(t)?;
        }
    }
    entered.write(t)
}

fn visits(t: &Transaction<'_>) -> rusqlite::Result<()> {
    let mut select = t.prepare(
        "SELECT id, at_s, page, site, outcome, status, elapsed_ms, received_bytes, detail
         FROM visits_1 ORDER BY id",
    )?;
    let mut found = select.query([])?;
    let mut writer = log::Writer::new(t)?;
    while let Some(row) = found.next()? {
        writer.skip_to(row.get(0)?)?;
        writer.push(&Logged {
            at_s: row.get(1)?,
            page: PageId(row.get(2)?),
            site: SiteId(row.get(3)?),
            outcome: rows::outcome(4, row.get(4)?)?,
            status: row.get(5)?,
            elapsed_ms: row.get(6)?,
            received_bytes: row.get::<_, i64>(7)? as u64,
            detail: row.get(8)?,
        })?;
    }
    writer.finish()
}

fn queue(t: &Transaction<'_>, bucket_s: i64) -> rusqlite::Result<()> {
    let mut select = t.prepare("SELECT bucket, page FROM due_1")?;
    let mut found = select.query([])?;
    let mut moves = Moves::new(t, bucket_s)?;
    while let Some(row) = found.next()? {
        let due_s = row.get::<_, i64>(0)?.saturating_mul(bucket_s);
        moves.go(PageId(row.get(1)?), None, Some(due_s))?;
        if moves.waiting() >= TOGETHER {
            moves.finish()?;
        }
    }
    moves.finish()
}

#[cfg(test)]
mod tests {
    use nenrin_urls::CanonicalUrl;

    use crate::*;

    fn opened(fixture: &str) -> (tempfile::TempDir, SqliteState) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.sqlite");
        let old = rusqlite::Connection::open(&path).unwrap();
        old.execute_batch(fixture).unwrap();
        old.pragma_update(None, "user_version", 1).unwrap();
        drop(old);
        // Twice: what was rebuilt is opened as it is.
        drop(SqliteState::open(&path, 60).unwrap());
        let state = SqliteState::open(&path, 60).unwrap();
        assert_eq!(state.check().unwrap(), Vec::<String>::new());
        (folder, state)
    }

    #[test]
    fn a_state_of_format_1_keeps_all_it_knew() {
        let (_folder, state) = opened(include_str!("../../fixtures/format-1.sql"));
        let site = state.sites().unwrap().remove(0);
        assert_eq!((site.counts.pages, site.counts.visits, site.counts.versions), (20, 88, 28));
        let top = site.conditions.tops[0].clone();
        let page = state.page(&top).unwrap().unwrap();
        assert_eq!(page.etag.as_deref(), Some("\"273230ecffde4e4f\""));
        assert_eq!((page.visits, page.changes, page.due_s), (5, 5, Some(1_794_881_241)));

        let visits = state.visits(VisitFilter { limit: 1000, ..VisitFilter::default() }).unwrap();
        assert_eq!(visits.len(), 88);
        assert!(visits.iter().map(|visit| visit.id).eq((1..=88).rev()));
        assert_eq!(visits.iter().filter(|v| v.outcome == Outcome::Changed).count(), 28);
        let refused = VisitFilter {
            site: Some(site.id),
            outcome: Some(Outcome::Refused),
            limit: 99,
            ..VisitFilter::default()
        };
        assert_eq!(state.visits(refused).unwrap().len(), 5);
        assert_eq!(state.visits_of(&top, 0, i64::MAX).unwrap().len(), 5);

        assert_eq!(state.versions(&top.key(), VersionQuery::default()).unwrap().len(), 5);
        let servers = state.site_servers(site.id, 9).unwrap();
        let query = PathQuery {
            site: site.id,
            server: servers[0].id,
            prefix: "/".into(),
            after: None,
            limit: 99,
        };
        assert_eq!(state.pages_by_path(&query).unwrap().len(), 20);
        let due =
            DueQuery { until_s: 1_794_881_241, per_server: 99, limit: 99, ..DueQuery::default() };
        assert_eq!(state.load_due(&due).unwrap().pages.len(), 20);
        assert_eq!(state.bucket_s(), 3600);
    }

    #[test]
    fn a_state_of_the_first_builds_is_brought_all_the_way() {
        let (_folder, state) = opened(include_str!("../../fixtures/format-1-early.sql"));
        assert_eq!(
            state.visits(VisitFilter { limit: 99, ..VisitFilter::default() }).unwrap().len(),
            12
        );
        assert_eq!(state.site_sums(0).unwrap()[0].site, SiteId(1));
        let mut versions = 0;
        state.each_version(&mut |_: &CanonicalUrl, _| versions += 1).unwrap();
        assert_eq!(versions, 4);
        let urls = state.urls("", "~", 99).unwrap();
        assert_eq!(urls.len(), 4);
    }
}
