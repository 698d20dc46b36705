//! Sites: registering them, changing their conditions, beginning their rounds.

use nenrin_urls::CanonicalUrl;
use rusqlite::{OptionalExtension, Transaction, params};

use super::{batch::Batch, discover, engine::Refusal, read, rows, schedule, settings::Settings};
use crate::{
    Discovered, Round, RoundCounts, RoundId, Site, SiteConditions, SiteId, StateError,
    rules::{self, Switch},
};

pub(super) fn add_site(
    t: &Transaction<'_>,
    settings: Settings,
    name: &str,
    conditions: &SiteConditions,
    now_s: i64,
) -> Result<Site, Refusal> {
    let taken: Option<u32> =
        t.query_row("SELECT id FROM sites WHERE name = ?1", [name], |row| row.get(0)).optional()?;
    if taken.is_some() {
        return Err(StateError::SiteExists { name: name.to_owned() }.into());
    }
    t.execute(
        "INSERT INTO sites (name, conditions, created_s) VALUES (?1, ?2, ?3)",
        params![name, written(conditions), now_s],
    )?;
    let site = SiteId(t.last_insert_rowid() as u32);
    let mut batch = Batch::new(t, settings)?;
    enter_tops(&mut batch, site, conditions, now_s)?;
    batch.finish()?;
    Ok(read_site(t, site)?)
}

pub(super) fn set_site(
    t: &Transaction<'_>,
    settings: Settings,
    site: SiteId,
    conditions: &SiteConditions,
    now_s: i64,
) -> Result<(), Refusal> {
    let mut batch = Batch::new(t, settings)?;
    change_site(&mut batch, site, conditions, now_s)?;
    Ok(batch.finish()?)
}

/// Changes a site's conditions, and the times of its pages where they begin or cease to have some.
fn change_site(
    b: &mut Batch<'_>,
    site: SiteId,
    conditions: &SiteConditions,
    now_s: i64,
) -> Result<(), Refusal> {
    let t = b.t;
    let before = read_site(t, site).optional()?;
    let changed = t.execute(
        "UPDATE sites SET conditions = ?2 WHERE id = ?1",
        params![site.0, written(conditions)],
    )?;
    known_site(changed, site)?;
    b.forget_schedules();
    enter_tops(b, site, conditions, now_s)?;
    let schedule_before = before.as_ref().map(|site| &site.conditions.schedule);
    let schedule = |b: &mut Batch<'_>, site: SiteId, conditions: &SiteConditions| {
        let settings = conditions.schedule.continuous();
        settings.map_or(Ok(()), |settings| schedule::schedule_site(b, site, settings, now_s))
    };
    match rules::switch(schedule_before, &conditions.schedule) {
        Switch::On => schedule(b, site, conditions)?,
        Switch::Off => {
            schedule::unschedule_site(t, b.settings.bucket_s, site)?;
            // Pages that other sites know as well keep a time of their own there.
            for other in read::sites(t)? {
                schedule(b, other.id, &other.conditions)?;
            }
        }
        Switch::Stay => {}
    }
    Ok(())
}

/// Adds top pages to a site; returns those that it did not have.
pub(super) fn add_tops(
    b: &mut Batch<'_>,
    site: SiteId,
    tops: &[CanonicalUrl],
    now_s: i64,
) -> Result<Vec<CanonicalUrl>, Refusal> {
    let mut conditions = read_site(b.t, site)?.conditions;
    let is_new = |top: &&CanonicalUrl| !conditions.tops.contains(top);
    let new: Vec<CanonicalUrl> = tops.iter().filter(is_new).cloned().collect();
    conditions.tops.extend(new.iter().cloned());
    change_site(b, site, &conditions, now_s)?;
    Ok(new)
}

pub(super) fn rename_site(t: &Transaction<'_>, site: SiteId, name: &str) -> Result<(), Refusal> {
    let taken: Option<u32> = t
        .query_row(
            "SELECT id FROM sites WHERE name = ?1 AND id <> ?2",
            params![name, site.0],
            |row| row.get(0),
        )
        .optional()?;
    if taken.is_some() {
        return Err(StateError::SiteExists { name: name.to_owned() }.into());
    }
    let changed = t.execute("UPDATE sites SET name = ?2 WHERE id = ?1", params![site.0, name])?;
    known_site(changed, site)
}

pub(super) fn pause_site(t: &Transaction<'_>, site: SiteId, paused: bool) -> Result<(), Refusal> {
    let changed =
        t.execute("UPDATE sites SET paused = ?2 WHERE id = ?1", params![site.0, paused])?;
    known_site(changed, site)
}

fn known_site(changed_rows: usize, site: SiteId) -> Result<(), Refusal> {
    match changed_rows {
        0 => Err(StateError::NoSuchSite { name: site.0.to_string() }.into()),
        _ => Ok(()),
    }
}

fn written(conditions: &SiteConditions) -> String {
    // The conditions are plain data with text keys, which always has a JSON form.
    serde_json::to_string(conditions).unwrap_or_default()
}

fn enter_tops(
    b: &mut Batch<'_>,
    site: SiteId,
    conditions: &SiteConditions,
    now_s: i64,
) -> rusqlite::Result<()> {
    let due_s = conditions.schedule.continuous().map(|_| now_s);
    for top in &conditions.tops {
        // Every partition has the site, and enters its own.
        if b.elsewhere(top).is_some() {
            continue;
        }
        let found = Discovered { url: top.clone(), depth: 1, hops: 0, due_s };
        discover::discover(b, site, &found, now_s)?;
    }
    Ok(())
}

fn read_site(t: &Transaction<'_>, site: SiteId) -> rusqlite::Result<Site> {
    t.query_row(&format!("SELECT {} FROM sites WHERE id = ?1", rows::SITE), [site.0], rows::site)
}

pub(super) fn begin_round(t: &Transaction<'_>, site: SiteId, now_s: i64) -> Result<Round, Refusal> {
    let unfinished = t
        .query_row(
            &format!(
                "SELECT {} FROM rounds WHERE site = ?1 AND ended_s IS NULL ORDER BY id LIMIT 1",
                rows::ROUND
            ),
            [site.0],
            rows::round,
        )
        .optional()?;
    if let Some(round) = unfinished {
        return Ok(round);
    }
    let changed =
        // An old mirror may be imported after newer visits.
        t.execute(
            "UPDATE sites SET collected_s = max(coalesce(collected_s, ?2), ?2) WHERE id = ?1",
            params![site.0, now_s],
        )?;
    known_site(changed, site)?;
    let counts = RoundCounts::default();
    t.execute(
        "INSERT INTO rounds (site, started_s, counts) VALUES (?1, ?2, ?3)",
        params![site.0, now_s, rows::counts_text(&counts)],
    )?;
    Ok(Round { id: RoundId(t.last_insert_rowid()), site, started_s: now_s, ended_s: None, counts })
}
