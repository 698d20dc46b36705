//! Sites, their removal, incidents and watches.

use std::collections::BTreeSet;

use nenrin_lang::IncidentDetail;
use nenrin_revisit::PageRevisitScheduler;

use super::{
    engine::{PostgresState, Step, Tx},
    loads::Needs,
    rows::{self, get, number},
    work::Work,
};
use crate::{
    Incident, IncidentKind, PageId, Registry, Removal, RemovalRow, Site, SiteConditions, SiteId,
    StateError, Watch, WatchHit, WatchId,
    rules::{self, Switch},
};

/// A document as JSON: plain data with text keys always has such a form.
fn written(document: &impl serde::Serialize) -> String {
    serde_json::to_string(document).unwrap_or_default()
}

fn known_site(changed_rows: u64, site: SiteId) -> Step<()> {
    match changed_rows {
        0 => Err(StateError::NoSuchSite { name: site.0.to_string() }.into()),
        _ => Ok(()),
    }
}

fn read_sites(t: &mut Tx<'_>) -> Step<Vec<Site>> {
    let found = t.query(&format!("SELECT {} FROM @sites x ORDER BY x.id", rows::SITE), &[])?;
    found.iter().map(|row| rows::site(row).map_err(|e| t.damaged(e))).collect()
}

fn free_name(t: &mut Tx<'_>, name: &str, besides: SiteId) -> Step<()> {
    let sql = "SELECT 1 FROM @sites WHERE name = $1 AND id <> $2";
    if t.query(sql, &[&name, &(besides.0 as i32)])?.is_empty() {
        return Ok(());
    }
    Err(StateError::SiteExists { name: name.to_owned() }.into())
}

fn add_site(t: &mut Tx<'_>, name: &str, conditions: &SiteConditions, now_s: i64) -> Step<SiteId> {
    free_name(t, name, SiteId(0))?;
    let found = t.query(
        "INSERT INTO @sites (id, name, conditions, created_s)
         SELECT COALESCE(MAX(id), 0) + 1, $1, $2, $3 FROM @sites RETURNING id",
        &[&name, &written(conditions), &now_s],
    )?;
    let site = SiteId(found[0].try_get::<_, i32>(0)? as u32);
    let mut work = work_on_tops(t, [site])?;
    work.enter_tops(site, now_s)?;
    work.finish_now()?;
    Ok(site)
}

/// The rows for entering the top pages of sites.
fn work_on_tops<'t, 'l>(
    t: &'t mut Tx<'l>,
    sites: impl IntoIterator<Item = SiteId>,
) -> Step<Work<'t, 'l>> {
    let sites: BTreeSet<SiteId> = sites.into_iter().collect();
    let needs = Needs { tops: sites.clone(), sites, mailboxes: true, ..Needs::default() };
    Work::load(t, &needs)
}

/// Changes a site's conditions, and the times of its pages where they begin or cease to have some.
fn set_site(t: &mut Tx<'_>, site: SiteId, conditions: &SiteConditions, now_s: i64) -> Step<()> {
    let before = read_sites(t)?;
    let before_site = before.iter().find(|known| known.id == site);
    let schedule_before = before_site.map(|site| &site.conditions.schedule);
    let switch = rules::switch(schedule_before, &conditions.schedule);
    let sql = "UPDATE @sites SET conditions = $2 WHERE id = $1";
    known_site(t.execute(sql, &[&(site.0 as i32), &written(conditions)])?, site)?;
    if switch == Switch::Off {
        unschedule_site(t, site)?;
    }
    let continuous: Vec<SiteId> = match switch {
        Switch::On => vec![site],
        // Pages that other sites know as well keep a time of their own there.
        Switch::Off => before.iter().map(|known| known.id).filter(|id| *id != site).collect(),
        Switch::Stay => Vec::new(),
    };
    let mut work = work_on_tops(t, [site].into_iter().chain(continuous.iter().copied()))?;
    work.enter_tops(site, now_s)?;
    for id in continuous {
        schedule_site(&mut work, id, now_s)?;
    }
    work.finish_now()
}

/// Gives every page of a site a time of its own, where it has none: by what its visits taught, which
/// other collections may have made.
fn schedule_site(work: &mut Work<'_, '_>, site: SiteId, now_s: i64) -> Step<()> {
    let Some(settings) = work.site(site)?.conditions.schedule.continuous().cloned() else {
        return Ok(());
    };
    let id = site.0 as i32;
    let mut scheduler = PageRevisitScheduler::new(settings, work.settings.bucket_s);
    let kept = work.t.query("SELECT state FROM @shared WHERE site = $1", &[&id])?;
    if let Some(row) = kept.first() {
        // What is damaged, or another policy's, is learnt anew.
        let _ = scheduler.restore(row.try_get(0)?);
    }
    work.load_where(
        "p.due_s IS NULL AND p.id IN (SELECT m.page FROM @members m WHERE m.site = $1)",
        &id,
    )?;
    let found = work.t.query(
        "SELECT m.site, m.page, m.depth, m.hops FROM @members m
         JOIN @pages p ON p.id = m.page WHERE m.site = $1 AND p.due_s IS NULL",
        &[&id],
    )?;
    work.take_members(&found)?;
    let of_site = (site, PageId(i64::MIN))..=(site, PageId(i64::MAX));
    let depths: Vec<(PageId, u32)> =
        work.members.range(of_site).map(|((_, page), member)| (*page, member.depth)).collect();
    for (page, depth) in depths {
        let Some(row) = work.pages.get(&page) else { continue };
        let learnt_s = scheduler.due_again(&row.page.known());
        let due_s = rules::due_when_scheduled(learnt_s, row.page.visited_s, now_s);
        work.schedule_page(site, page, depth, due_s)?;
    }
    Ok(())
}

/// Takes the times of a site's pages away.
fn unschedule_site(t: &mut Tx<'_>, site: SiteId) -> Step<()> {
    let id = site.0 as i32;
    t.execute(
        "UPDATE @pages SET due_s = NULL, bucket = NULL
         WHERE site = $1 AND due_s IS NOT NULL
         AND id IN (SELECT m.page FROM @members m WHERE m.site = $1)",
        &[&id],
    )?;
    t.execute("DELETE FROM @shared WHERE site = $1", &[&id])?;
    Ok(())
}

fn remove(
    t: &mut Tx<'_>,
    site: SiteId,
    removal: Option<Removal>,
    reason: &str,
    now_s: i64,
) -> Step<()> {
    let id = site.0 as i32;
    let sites = read_sites(t)?;
    let before = sites.iter().find(|known| known.id == site).and_then(|known| known.removed);
    let effect = rules::remove(site, before, removal)?;
    if effect.pauses {
        let sql = "UPDATE @sites SET paused = true WHERE id = $1";
        known_site(t.execute(sql, &[&id])?, site)?;
    }
    t.execute(
        "INSERT INTO @removals (site, removal, reason, at_s) VALUES ($1, $2, $3, $4)",
        &[&id, &removal.map(Removal::as_str), &reason, &now_s],
    )?;
    if effect.denies {
        let shows = |other: &&Site| other.id != site && rules::shows_pages(other.removed);
        let others: Vec<i32> = sites.iter().filter(shows).map(|other| other.id.0 as i32).collect();
        t.execute(
            "UPDATE @pages p SET denied = $1, key = NULL FROM @members m
             WHERE m.site = $1 AND m.page = p.id AND p.denied IS NULL AND NOT EXISTS
                (SELECT 1 FROM @members o WHERE o.site = ANY($2) AND o.page = p.id)",
            &[&id, &others],
        )?;
        return Ok(());
    }
    allow(t, id)
}

/// Restores what was denied: pages that have versions are found by their keys again.
fn allow(t: &mut Tx<'_>, site: i32) -> Step<()> {
    let found = t.query(
        "UPDATE @pages p SET denied = NULL FROM @servers s
         WHERE p.denied = $1 AND s.id = (p.id >> 39)::integer
         RETURNING p.id, s.name || p.path,
            EXISTS (SELECT 1 FROM @versions v WHERE v.page = p.id)",
        &[&site],
    )?;
    let (mut pages, mut keys) = (Vec::new(), Vec::new());
    for row in &found {
        if row.try_get(2)? {
            let url = rows::url(row, 1).map_err(|e| t.damaged(e))?;
            pages.push(row.try_get::<_, i64>(0)?);
            keys.push(url.key().as_str().to_owned());
        }
    }
    t.execute(
        "UPDATE @pages p SET key = k.key FROM unnest($1::bigint[], $2::text[]) k(id, key)
         WHERE p.id = k.id",
        &[&pages, &keys],
    )?;
    Ok(())
}

impl PostgresState {
    /// Documents of a later build are passed over.
    fn documents<T: serde::de::DeserializeOwned>(&self, sql: &str) -> Result<Vec<T>, StateError> {
        let found = self.read(sql, &[])?;
        let texts = self.all(&found, |row| get::<String>(row, 0))?;
        Ok(texts.iter().filter_map(|text| serde_json::from_str(text).ok()).collect())
    }
}

impl Registry for PostgresState {
    fn add_site(
        &self,
        name: &str,
        conditions: &SiteConditions,
        now_s: i64,
    ) -> Result<Site, StateError> {
        self.write(|t| {
            let id = add_site(t, name, conditions, now_s)?;
            let site = read_sites(t)?.into_iter().find(|site| site.id == id);
            site.ok_or_else(|| t.damaged("a site that was just entered is not there"))
        })
    }

    fn set_site(
        &self,
        site: SiteId,
        conditions: &SiteConditions,
        now_s: i64,
    ) -> Result<(), StateError> {
        self.write(|t| set_site(t, site, conditions, now_s))
    }

    fn rename_site(&self, site: SiteId, name: &str) -> Result<(), StateError> {
        self.write(|t| {
            free_name(t, name, site)?;
            let sql = "UPDATE @sites SET name = $2 WHERE id = $1";
            known_site(t.execute(sql, &[&(site.0 as i32), &name])?, site)
        })
    }

    fn pause_site(&self, site: SiteId, paused: bool) -> Result<(), StateError> {
        self.write(|t| {
            let sql = "UPDATE @sites SET paused = $2 WHERE id = $1";
            known_site(t.execute(sql, &[&(site.0 as i32), &paused])?, site)
        })
    }

    fn remove_site(
        &self,
        site: SiteId,
        removal: Option<Removal>,
        reason: &str,
        now_s: i64,
    ) -> Result<(), StateError> {
        self.write(|t| remove(t, site, removal, reason, now_s))
    }

    fn removals(&self) -> Result<Vec<RemovalRow>, StateError> {
        let found =
            self.read("SELECT site, removal, reason, at_s FROM @removals ORDER BY id DESC", &[])?;
        self.all(&found, |row| {
            Ok(RemovalRow {
                site: SiteId(number(row, 0)?),
                removal: get::<Option<&str>>(row, 1)?.and_then(Removal::from_word),
                reason: get(row, 2)?,
                at_s: get(row, 3)?,
            })
        })
    }

    fn sites(&self) -> Result<Vec<Site>, StateError> {
        let found =
            self.read(&format!("SELECT {} FROM @sites x ORDER BY x.id", rows::SITE), &[])?;
        self.all(&found, rows::site)
    }

    fn keep_incidents(&self, incidents: &[Incident]) -> Result<(), StateError> {
        self.write(|t| {
            for one in incidents {
                let detail = one.detail.as_ref().map(IncidentDetail::to_json).unwrap_or_default();
                t.execute(
                    "INSERT INTO @incidents (id, event, at_s, over_s, site, name, detail, cause)
                     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
                     ON CONFLICT (id) DO UPDATE SET over_s = excluded.over_s",
                    &[
                        &one.id,
                        &one.event.as_str(),
                        &one.at_s,
                        &one.over_s,
                        &one.site.map(|site| site.0 as i32),
                        &one.name,
                        &detail,
                        &one.cause,
                    ],
                )?;
            }
            t.execute(
                "DELETE FROM @incidents WHERE nth NOT IN
                    (SELECT nth FROM @incidents ORDER BY nth DESC LIMIT $1)",
                &[&(Incident::KEPT as i64)],
            )?;
            Ok(())
        })
    }

    fn end_incidents(&self, ids: &[String], now_s: i64) -> Result<(), StateError> {
        self.write(|t| {
            t.execute(
                "UPDATE @incidents SET over_s = $2 WHERE id = ANY($1) AND over_s IS NULL",
                &[&ids, &now_s],
            )?;
            Ok(())
        })
    }

    fn incidents(&self) -> Result<Vec<Incident>, StateError> {
        let found = self.read(
            "SELECT id, event, at_s, over_s, site, name, detail, cause FROM @incidents
             ORDER BY nth DESC",
            &[],
        )?;
        let read = self.all(&found, |row| {
            // A kind of a later build is passed over.
            let Some(event) = IncidentKind::from_word(get(row, 1)?) else { return Ok(None) };
            Ok(Some(Incident {
                id: get(row, 0)?,
                event,
                at_s: get(row, 2)?,
                over_s: get(row, 3)?,
                site: get::<Option<i32>>(row, 4)?.map(|site| SiteId(site as u32)),
                name: get(row, 5)?,
                detail: IncidentDetail::from_json(get(row, 6)?),
                cause: get(row, 7)?,
            }))
        })?;
        Ok(read.into_iter().flatten().collect())
    }

    fn keep_watch(&self, watch: &Watch) -> Result<Watch, StateError> {
        self.write(|t| {
            let mut kept = watch.clone();
            if kept.id.0 == 0 {
                let found = t.query("SELECT COALESCE(MAX(id), 0) + 1 FROM @watches", &[])?;
                kept.id = WatchId(found[0].try_get::<_, i32>(0)? as u32);
            }
            t.execute(
                "INSERT INTO @watches VALUES ($1, $2)
                 ON CONFLICT (id) DO UPDATE SET watch = excluded.watch",
                &[&(kept.id.0 as i32), &written(&kept)],
            )?;
            Ok(kept)
        })
    }

    fn drop_watch(&self, watch: WatchId) -> Result<bool, StateError> {
        self.write(|t| {
            Ok(t.execute("DELETE FROM @watches WHERE id = $1", &[&(watch.0 as i32)])? > 0)
        })
    }

    fn watches(&self) -> Result<Vec<Watch>, StateError> {
        self.documents("SELECT watch FROM @watches ORDER BY id")
    }

    fn keep_watch_hits(&self, hits: &[WatchHit]) -> Result<(), StateError> {
        self.write(|t| {
            let found = t.query("SELECT COALESCE(MAX(id), 0) FROM @watch_hits", &[])?;
            let mut last: i64 = found[0].try_get(0)?;
            let (mut ids, mut texts) = (Vec::new(), Vec::new());
            for hit in hits {
                let mut kept = hit.clone();
                if kept.id == 0 {
                    kept.id = last + 1;
                }
                last = last.max(kept.id);
                ids.push(kept.id);
                texts.push(written(&kept));
            }
            t.execute(
                "INSERT INTO @watch_hits SELECT * FROM unnest($1::bigint[], $2::text[])
                 ON CONFLICT (id) DO UPDATE SET hit = excluded.hit",
                &[&ids, &texts],
            )?;
            let sql = "DELETE FROM @watch_hits WHERE id <= $1";
            t.execute(sql, &[&(last - WatchHit::KEPT as i64)])?;
            Ok(())
        })
    }

    fn watch_hits(&self) -> Result<Vec<WatchHit>, StateError> {
        self.documents("SELECT hit FROM @watch_hits ORDER BY id DESC")
    }
}
