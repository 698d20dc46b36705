//! Writing: every function runs inside one transaction.

use std::collections::BTreeMap;

use nenrin_urls::CanonicalUrl;
use rusqlite::{OptionalExtension, Transaction, params};

use super::{
    Refusal,
    known::{Known, KnownKey},
    learnt, links,
    overview::DaySums,
    read, rows, schedule,
};
use crate::{
    Change, Committed, Discovered, DuePage, NewPage, Outcome, PageId, RobotsCopy, Round,
    RoundCounts, ServerId, ServerPace, Site, SiteConditions, SiteCounts, SiteId, StateError,
    VersionRow, VisitCommit,
};

pub(super) fn add_site(
    t: &Transaction<'_>,
    bucket_s: i64,
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
    enter_tops(t, bucket_s, site, conditions, now_s)?;
    Ok(read_site(t, site)?)
}

pub(super) fn set_site(
    t: &Transaction<'_>,
    bucket_s: i64,
    site: SiteId,
    conditions: &SiteConditions,
    now_s: i64,
) -> Result<(), Refusal> {
    let before = read_site(t, site).optional()?;
    let changed = t.execute(
        "UPDATE sites SET conditions = ?2 WHERE id = ?1",
        params![site.0, written(conditions)],
    )?;
    known_site(changed, site)?;
    enter_tops(t, bucket_s, site, conditions, now_s)?;
    let was = before.is_some_and(|site| site.conditions.schedule.continuous().is_some());
    match (was, conditions.schedule.continuous().is_some()) {
        (false, true) => schedule::schedule_site(t, bucket_s, site, now_s)?,
        (true, false) => {
            schedule::unschedule_site(t, bucket_s, site)?;
            // Pages that other sites know as well keep a time of their own there.
            for other in read::sites(t)? {
                if other.conditions.schedule.continuous().is_some() {
                    schedule::schedule_site(t, bucket_s, other.id, now_s)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
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
    t: &Transaction<'_>,
    bucket_s: i64,
    site: SiteId,
    conditions: &SiteConditions,
    now_s: i64,
) -> rusqlite::Result<()> {
    let due_s = conditions.schedule.continuous().map(|_| now_s);
    for top in &conditions.tops {
        let found = Discovered { url: top.clone(), depth: 1, hops: 0, due_s };
        discover(t, bucket_s, site, &found, now_s)?;
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
        t.execute("UPDATE sites SET collected_s = ?2 WHERE id = ?1", params![site.0, now_s])?;
    known_site(changed, site)?;
    let counts = RoundCounts::default();
    t.execute(
        "INSERT INTO rounds (site, started_s, counts) VALUES (?1, ?2, ?3)",
        params![site.0, now_s, counts_text(&counts)],
    )?;
    Ok(Round { id: t.last_insert_rowid(), site, started_s: now_s, ended_s: None, counts })
}

fn counts_text(counts: &RoundCounts) -> String {
    serde_json::to_string(counts).unwrap_or_default()
}

/// Sums over one commit, written once at its end.
#[derive(Default)]
struct Sums {
    sites: BTreeMap<SiteId, SiteCounts>,
    rounds: BTreeMap<i64, RoundCounts>,
    days: DaySums,
}

pub(super) fn commit(
    t: &Transaction<'_>,
    bucket_s: i64,
    changes: &[Change],
    known: &Known,
    learnt_known: &mut Vec<(KnownKey, u32, u32)>,
) -> Result<Committed, Refusal> {
    let mut committed = Committed::default();
    let mut sums = Sums::default();
    for change in changes {
        match change {
            Change::Visit(visit) | Change::Imported(visit) => {
                let is_imported = matches!(change, Change::Imported(_));
                update_page(t, bucket_s, visit, is_imported)?;
                let kept = learnt_known.len();
                let new_pages = commit_visit(t, bucket_s, visit, known, learnt_known, &mut sums)?;
                committed.new_pages.extend(new_pages);
                let places =
                    links::Places { site: visit.site, known, fresh: &learnt_known[kept..] };
                committed.linked.extend(links::visited(t, visit, &places)?);
            }
            Change::Robots { server, tried_s, copy } => {
                update_robots(t, *server, *tried_s, copy.as_ref())?;
            }
            Change::Pace(pace) => update_pace(t, pace)?,
            Change::Note(note) => learnt::write(t, note)?,
            Change::Announced(announced) => learnt::announced(t, bucket_s, announced)?,
            Change::Found(found) => {
                for page in &found.pages {
                    let (new, _) = discover(t, bucket_s, found.site, page, found.at_s)?;
                    committed.new_pages.extend(new);
                }
            }
            Change::Due { page, due_s } => schedule::set_due(t, bucket_s, *page, *due_s)?,
            Change::PullForward(pull) => schedule::pull_forward(t, bucket_s, pull)?,
            Change::Links { page, links: urls } => {
                committed.linked.extend(links::read_outside(t, *page, urls, known)?);
            }
            Change::Order(bytes) => links::keep_order(t, bytes)?,
            Change::Shared { site, bytes } => schedule::keep_shared(t, *site, bytes)?,
            // A round may end in the same commit as its last visits: counts go first.
            Change::RoundEnd(_) => {}
        }
    }
    add_sums(t, &sums)?;
    for change in changes {
        if let Change::RoundEnd(end) = change {
            t.prepare_cached("UPDATE rounds SET ended_s = ?2 WHERE id = ?1 AND ended_s IS NULL")?
                .execute(params![end.round, end.at_s])?;
        }
    }
    Ok(committed)
}

fn commit_visit(
    t: &Transaction<'_>,
    bucket_s: i64,
    visit: &VisitCommit,
    known: &Known,
    learnt_known: &mut Vec<(KnownKey, u32, u32)>,
    sums: &mut Sums,
) -> Result<Vec<NewPage>, Refusal> {
    let mut new_pages = Vec::new();
    if let Some(version) = &visit.version {
        insert_version(t, visit.page, version)?;
    }
    t.prepare_cached(
        "INSERT INTO visits (at_s, page, site, outcome, status, elapsed_ms, received_bytes, detail)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute(params![
        visit.at_s,
        visit.page.0,
        visit.site.0,
        rows::outcome_number(visit.outcome),
        visit.status,
        visit.elapsed_ms,
        visit.received_bytes as i64,
        visit.detail,
    ])?;
    if let Some(round) = visit.round {
        t.prepare_cached("UPDATE members SET round = ?3 WHERE site = ?1 AND page = ?2")?
            .execute(params![visit.site.0, visit.page.0, round])?;
    }
    for found in &visit.discovered {
        let key = Known::key(visit.site, &found.url);
        if known.get(&key).is_none_or(|(depth, _)| depth > found.depth) {
            let (new, nth) = discover(t, bucket_s, visit.site, found, visit.at_s)?;
            new_pages.extend(new);
            learnt_known.push((key, found.depth, nth));
        }
    }
    if !visit.new_tops.is_empty() {
        let mut conditions = read_site(t, visit.site)?.conditions;
        for top in &visit.new_tops {
            if !conditions.tops.contains(top) {
                conditions.tops.push(top.clone());
            }
        }
        set_site(t, bucket_s, visit.site, &conditions, visit.at_s)?;
    }

    sums.days.count_visit(visit);
    let site = sums.sites.entry(visit.site).or_default();
    site.visits += 1;
    site.versions += u64::from(visit.version.is_some());
    site.troubles += u64::from(matches!(visit.outcome, Outcome::Failed | Outcome::Refused));
    if visit.outcome.is_seen() {
        site.raw_bytes += visit.update.bytes;
    }
    if let Some(round) = visit.round {
        let round = sums.rounds.entry(round).or_default();
        round.count(visit.outcome);
        round.new_pages += new_pages.len() as u64;
        round.received_bytes += visit.received_bytes;
        round.stored_bytes += visit.stored_bytes;
        round.trapped += visit.trapped;
    }
    Ok(new_pages)
}

fn update_page(
    t: &Transaction<'_>,
    bucket_s: i64,
    visit: &VisitCommit,
    is_imported: bool,
) -> rusqlite::Result<()> {
    let update = &visit.update;
    let (due_before, visited_before, version_before): (Option<i64>, Option<i64>, Option<i64>) = t
        .prepare_cached("SELECT due_s, visited_s, version FROM pages WHERE id = ?1")?
        .query_row([visit.page.0], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    if visit.outcome == Outcome::Gone && version_before.is_some() {
        t.prepare_cached("INSERT OR IGNORE INTO gone VALUES (?1, ?2)")?
            .execute(params![visit.page.0, visit.at_s])?;
    }
    if is_imported && visited_before.is_some_and(|last_s| visit.at_s < last_s) {
        return add_to_past(t, visit);
    }
    t.prepare_cached(
        "UPDATE pages SET visited_s = ?2, outcome = ?3, due_s = ?4, visits = visits + 1,
            changes = changes + ?5, significant = significant + ?13, failures = ?6, etag = ?7, last_modified = ?8, mark = ?9,
            bytes = ?10, version = COALESCE(?11, version), history = ?12
         WHERE id = ?1",
    )?
    .execute(params![
        visit.page.0,
        visit.at_s.max(visited_before.unwrap_or(i64::MIN)),
        rows::outcome_number(visit.outcome),
        update.due_s,
        u8::from(visit.outcome == Outcome::Changed),
        update.failures,
        update.etag,
        update.last_modified,
        update.mark.map(|mark| mark.0),
        update.bytes as i64,
        visit.version.as_ref().map(|v| v.version as i64),
        Some(&update.history).filter(|h| !h.is_empty()),
        u8::from(visit.version.as_ref().is_some_and(VersionRow::is_significant)),
    ])?;
    if visited_before.is_none() {
        schedule::no_longer_new(t, visit.page)?;
    }
    schedule::forget_pull(t, visit.page)?;
    schedule::move_due(t, bucket_s, visit.page, due_before, update.due_s)
}

/// A visit before the last one.
fn add_to_past(t: &Transaction<'_>, visit: &VisitCommit) -> rusqlite::Result<()> {
    t.prepare_cached(
        "UPDATE pages SET visits = visits + 1, changes = changes + ?2,
            version = COALESCE(version, ?3) WHERE id = ?1",
    )?
    .execute(params![
        visit.page.0,
        u8::from(visit.outcome == Outcome::Changed),
        visit.version.as_ref().map(|v| v.version as i64),
    ])?;
    Ok(())
}

fn insert_version(t: &Transaction<'_>, page: PageId, row: &VersionRow) -> rusqlite::Result<bool> {
    t.prepare_cached("INSERT OR IGNORE INTO mimes (name) VALUES (?1)")?.execute([&row.mime])?;
    let inserted = t
        .prepare_cached(
            "INSERT OR IGNORE INTO versions
             VALUES (?1, ?2, ?3, ?4, (SELECT id FROM mimes WHERE name = ?5), ?6, ?7)",
        )?
        .execute(params![
            page.0,
            row.at_s,
            row.version as i64,
            row.status,
            row.mime,
            row.bytes as i64,
            row.changed_permille,
        ])?;
    let url = read::page_by_id(t, page)?.url;
    // What was denied stays so, whoever finds it again.
    t.prepare_cached(
        "INSERT OR IGNORE INTO keys SELECT ?1, ?2
         WHERE NOT EXISTS (SELECT 1 FROM denied WHERE page = ?2)",
    )?
    .execute(params![url.key().as_str(), page.0])?;
    Ok(inserted > 0)
}

fn update_robots(
    t: &Transaction<'_>,
    server: ServerId,
    tried_s: i64,
    copy: Option<&RobotsCopy>,
) -> rusqlite::Result<()> {
    t.prepare_cached("UPDATE servers SET robots_tried_s = ?2 WHERE id = ?1")?
        .execute(params![server.0, tried_s])?;
    if let Some(copy) = copy {
        t.prepare_cached(
            "UPDATE servers SET robots_good_s = ?2, robots_status = ?3, robots_body = ?4
             WHERE id = ?1",
        )?
        .execute(params![
            server.0,
            copy.good_at_s,
            copy.status,
            Some(copy.body.as_slice()).filter(|body| !body.is_empty()),
        ])?;
    }
    Ok(())
}

fn update_pace(t: &Transaction<'_>, pace: &ServerPace) -> rusqlite::Result<()> {
    t.prepare_cached(
        "UPDATE servers SET asked_ms = ?2, resting_until_ms = ?3, strikes = ?4,
            stretch_percent = ?5 WHERE id = ?1",
    )?
    .execute(params![
        pace.server.0,
        pace.asked_ms,
        pace.resting_until_ms,
        pace.strikes,
        pace.stretch_percent
    ])?;
    Ok(())
}

pub(super) fn make_known(
    t: &Transaction<'_>,
    bucket_s: i64,
    site: SiteId,
    pages: &[Discovered],
    now_s: i64,
) -> rusqlite::Result<Vec<PageId>> {
    pages
        .iter()
        .map(|found| {
            discover(t, bucket_s, site, found, now_s)?;
            read::find_page(t, &found.url)?.ok_or(rusqlite::Error::QueryReturnedNoRows)
        })
        .collect()
}

/// Makes a page known to a site. Returns it when the site did not know it yet, and its place in the
/// order of discovery.
fn discover(
    t: &Transaction<'_>,
    bucket_s: i64,
    site: SiteId,
    found: &Discovered,
    now_s: i64,
) -> rusqlite::Result<(Option<NewPage>, u32)> {
    let (page, nth) = enter_page(t, bucket_s, site, found, now_s)?;
    let before: Option<u32> = t
        .prepare_cached("SELECT depth FROM members WHERE site = ?1 AND page = ?2")?
        .query_row(params![site.0, page.0], |row| row.get(0))
        .optional()?;
    match before {
        Some(depth) if depth <= found.depth => Ok((None, nth)),
        Some(_) => {
            t.prepare_cached(
                "UPDATE members SET depth = ?3, hops = ?4 WHERE site = ?1 AND page = ?2",
            )?
            .execute(params![site.0, page.0, found.depth, found.hops])?;
            // Its links may lie inside the site's depth now: the next visit must bring the body,
            // so it is asked for without validators.
            t.prepare_cached("UPDATE pages SET etag = NULL, last_modified = NULL WHERE id = ?1")?
                .execute([page.0])?;
            Ok((None, nth))
        }
        None => {
            t.prepare_cached("INSERT INTO members VALUES (?1, ?2, ?3, ?4, NULL)")?
                .execute(params![site.0, page.0, found.depth, found.hops])?;
            t.prepare_cached("UPDATE sites SET pages = pages + 1 WHERE id = ?1")?
                .execute([site.0])?;
            // Where pages have times of their own, each needs one, whoever found it.
            if found.due_s.is_some() || schedule::is_continuous(t, site)? {
                let due_s = found.due_s.unwrap_or(now_s);
                schedule::schedule_page(t, bucket_s, site, page, found.depth, due_s)?;
            }
            let page = read::page_by_id(t, page)?;
            let (depth, hops) = (found.depth, found.hops);
            let due = DuePage { page, site, depth, hops, pulled: false };
            Ok((Some(NewPage { due }), nth))
        }
    }
}

fn enter_page(
    t: &Transaction<'_>,
    bucket_s: i64,
    site: SiteId,
    found: &Discovered,
    now_s: i64,
) -> rusqlite::Result<(PageId, u32)> {
    let server = enter_server(t, &found.url)?;
    if let Some(page) = read::find_on_server(t, server, &found.url)? {
        return Ok((page, links::place(t, page)?));
    }
    let first = read::first_number(server, &found.url);
    let taken: Vec<i64> = t
        .prepare_cached("SELECT id FROM pages WHERE id >= ?1 AND id < ?1 + ?2")?
        .query_map(params![first, read::PROBES], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let Some(id) = (first..first + read::PROBES).find(|id| !taken.contains(id)) else {
        // Eight pages of one server within eight of 2^39 numbers: the engine's own constraint
        // error says it, and the commit is given up.
        return Err(rusqlite::Error::StatementChangedRows(0));
    };
    let nth = links::enter(t, PageId(id))?;
    t.prepare_cached(
        "INSERT INTO pages (id, path, site, discovered_s, due_s, nth)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![id, found.url.path_and_query(), site.0, now_s, found.due_s, nth])?;
    if let Some(due_s) = found.due_s {
        schedule::enter_new(t, bucket_s, PageId(id), found.depth, due_s)?;
    }
    Ok((PageId(id), nth))
}

fn enter_server(t: &Transaction<'_>, url: &CanonicalUrl) -> rusqlite::Result<ServerId> {
    let server = url.server();
    let known: Option<u32> = t
        .prepare_cached("SELECT id FROM servers WHERE name = ?1")?
        .query_row([server.as_str()], |row| row.get(0))
        .optional()?;
    match known {
        Some(id) => Ok(ServerId(id)),
        None => {
            t.prepare_cached("INSERT INTO servers (name) VALUES (?1)")?
                .execute([server.as_str()])?;
            Ok(ServerId(t.last_insert_rowid() as u32))
        }
    }
}

fn add_sums(t: &Transaction<'_>, sums: &Sums) -> rusqlite::Result<()> {
    sums.days.write(t)?;
    for (site, counts) in &sums.sites {
        t.prepare_cached(
            "UPDATE sites SET visits = visits + ?2, versions = versions + ?3,
                troubles = troubles + ?4, raw_bytes = raw_bytes + ?5 WHERE id = ?1",
        )?
        .execute(params![
            site.0,
            counts.visits as i64,
            counts.versions as i64,
            counts.troubles as i64,
            counts.raw_bytes as i64
        ])?;
    }
    for (round, counts) in &sums.rounds {
        let text: String = t
            .prepare_cached("SELECT counts FROM rounds WHERE id = ?1")?
            .query_row([round], |row| row.get(0))?;
        let mut total: RoundCounts = serde_json::from_str(&text).unwrap_or_default();
        total.add(counts);
        t.prepare_cached("UPDATE rounds SET counts = ?2 WHERE id = ?1")?
            .execute(params![round, counts_text(&total)])?;
    }
    Ok(())
}

pub(super) fn adopt_version(
    t: &Transaction<'_>,
    bucket_s: i64,
    site: SiteId,
    url: &CanonicalUrl,
    row: &VersionRow,
) -> Result<bool, Refusal> {
    let found = Discovered { url: url.clone(), depth: 1, hops: 0, due_s: None };
    discover(t, bucket_s, site, &found, row.at_s)?;
    let Some(page) = read::find_page(t, url)? else { return Ok(false) };
    if !insert_version(t, page, row)? {
        return Ok(false);
    }
    t.prepare_cached(
        "UPDATE pages SET version = ?2, bytes = ?3, visited_s = MAX(COALESCE(visited_s, ?4), ?4),
            visits = MAX(visits, 1), outcome = COALESCE(outcome, 0)
         WHERE id = ?1 AND NOT EXISTS
            (SELECT 1 FROM versions v WHERE v.page = ?1 AND v.at_s > ?4)",
    )?
    .execute(params![page.0, row.version as i64, row.bytes as i64, row.at_s])?;
    links::adopted(t, page)?;
    t.prepare_cached(
        "UPDATE sites SET versions = versions + 1, raw_bytes = raw_bytes + ?2 WHERE id = ?1",
    )?
    .execute(params![site.0, row.bytes as i64])?;
    let mut days = DaySums::default();
    days.count_adopted(site, row);
    days.write(t)?;
    Ok(true)
}
