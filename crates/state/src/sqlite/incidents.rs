//! What people should know of, the newest few, so that a restart does not forget it.

use nenrin_lang::IncidentDetail;
use rusqlite::{Connection, Transaction, params};

use super::open::has_table;
use crate::{Incident, IncidentKind, SiteId};

const NAME: &str = "incidents";
const TABLE: &str = "CREATE TABLE IF NOT EXISTS incidents (
    nth INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, event TEXT NOT NULL, at_s INTEGER NOT NULL,
    over_s INTEGER, site INTEGER, name TEXT NOT NULL, detail TEXT NOT NULL, cause TEXT NOT NULL)";

pub(super) fn keep(t: &Transaction<'_>, incidents: &[Incident]) -> rusqlite::Result<()> {
    if incidents.is_empty() {
        return Ok(());
    }
    t.execute_batch(TABLE)?;
    for one in incidents {
        t.prepare_cached(
            "INSERT INTO incidents (id, event, at_s, over_s, site, name, detail, cause)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT (id) DO UPDATE SET over_s = excluded.over_s",
        )?
        .execute(params![
            one.id,
            one.event.as_str(),
            one.at_s,
            one.over_s,
            one.site.map(|site| site.0),
            one.name,
            one.detail.as_ref().map(IncidentDetail::to_json).unwrap_or_default(),
            one.cause,
        ])?;
    }
    t.execute(
        "DELETE FROM incidents WHERE nth <= (SELECT MAX(nth) FROM incidents) - ?1",
        [Incident::KEPT as i64],
    )?;
    Ok(())
}

pub(super) fn end(t: &Transaction<'_>, ids: &[String], now_s: i64) -> rusqlite::Result<()> {
    if !has_table(t, NAME)? {
        return Ok(());
    }
    for id in ids {
        t.prepare_cached("UPDATE incidents SET over_s = ?2 WHERE id = ?1 AND over_s IS NULL")?
            .execute(params![id, now_s])?;
    }
    Ok(())
}

pub(super) fn all(c: &Connection) -> rusqlite::Result<Vec<Incident>> {
    if !has_table(c, NAME)? {
        return Ok(Vec::new());
    }
    let mut query = c.prepare_cached(
        "SELECT id, event, at_s, over_s, site, name, detail, cause FROM incidents
         ORDER BY nth DESC",
    )?;
    let mut found = query.query([])?;
    let mut incidents = Vec::new();
    while let Some(row) = found.next()? {
        // A kind of a later build is passed over.
        let Some(event) = IncidentKind::from_word(row.get_ref(1)?.as_str()?) else { continue };
        incidents.push(Incident {
            id: row.get(0)?,
            event,
            at_s: row.get(2)?,
            over_s: row.get(3)?,
            site: row.get::<_, Option<u32>>(4)?.map(SiteId),
            name: row.get(5)?,
            detail: IncidentDetail::from_json(row.get_ref(6)?.as_str()?),
            cause: row.get(7)?,
        });
    }
    Ok(incidents)
}
