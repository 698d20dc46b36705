//! Writing: every function runs inside one transaction.

use rusqlite::{OptionalExtension, Transaction, params};

use super::{
    bags,
    batch::Batch,
    due,
    engine::Refusal,
    known::{Known, KnownKey},
    learnt, links,
    portion::Logged,
    read, rows, schedule, structure, taken, validators,
    worth::{self, Part},
};
use crate::{
    Change, Committed, Discovered, DuePage, NewPage, Origin, Outcome, PageId, PageRecord, Reading,
    RobotsCopy, Round, RoundCounts, ServerId, ServerPace, Site, SiteConditions, SiteId, StateError,
    VersionRow, VisitCommit, VisitedPage,
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
    let mut batch = Batch::new(t, bucket_s)?;
    enter_tops(&mut batch, site, conditions, now_s)?;
    batch.finish()?;
    Ok(read_site(t, site)?)
}

pub(super) fn set_site(
    t: &Transaction<'_>,
    bucket_s: i64,
    site: SiteId,
    conditions: &SiteConditions,
    now_s: i64,
) -> Result<(), Refusal> {
    let mut batch = Batch::new(t, bucket_s)?;
    change_site(&mut batch, site, conditions, now_s)?;
    Ok(batch.finish()?)
}

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
    let was = before.is_some_and(|site| site.conditions.schedule.continuous().is_some());
    match (was, conditions.schedule.continuous().is_some()) {
        (false, true) => schedule::schedule_site(b, site, now_s)?,
        (true, false) => {
            schedule::unschedule_site(t, b.bucket_s, site)?;
            // Pages that other sites know as well keep a time of their own there.
            for other in read::sites(t)? {
                if other.conditions.schedule.continuous().is_some() {
                    schedule::schedule_site(b, other.id, now_s)?;
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
    b: &mut Batch<'_>,
    site: SiteId,
    conditions: &SiteConditions,
    now_s: i64,
) -> rusqlite::Result<()> {
    let due_s = conditions.schedule.continuous().map(|_| now_s);
    for top in &conditions.tops {
        let found = Discovered { url: top.clone(), depth: 1, hops: 0, due_s };
        discover(b, site, &found, now_s)?;
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

pub(super) fn counts_text(counts: &RoundCounts) -> String {
    serde_json::to_string(counts).unwrap_or_default()
}

pub(super) fn commit(
    t: &Transaction<'_>,
    bucket_s: i64,
    changes: &[Change],
    known: &Known,
    fresh: &mut Vec<(KnownKey, u32, u32)>,
) -> Result<Committed, Refusal> {
    let mut committed = Committed::default();
    let mut batch = Batch::new(t, bucket_s)?;
    let b = &mut batch;
    for run in changes.chunk_by(taken::is_same_page) {
        match &run[0] {
            Change::Visit(visit) if visit.origin == Origin::Packs => {
                committed.adopted += u64::from(adopt(b, visit)?);
            }
            Change::Visit(_) => commit_visits(b, run, known, fresh, &mut committed)?,
            Change::Robots { server, tried_s, copy } => {
                update_robots(t, *server, *tried_s, copy.as_ref())?;
            }
            Change::Pace(pace) => update_pace(t, pace)?,
            Change::Note(note) => learnt::write(t, note)?,
            Change::Announced(announced) => learnt::announced(b, announced)?,
            Change::Found(found) => {
                for page in &found.pages {
                    let (new, _) = discover(b, found.site, page, found.at_s)?;
                    committed.new_pages.extend(new);
                }
            }
            Change::Due { page, due_s } => schedule::set_due(t, &mut b.moves, *page, *due_s)?,
            Change::PullForward(pull) => b.pull_forward(pull)?,
            Change::Links { page, links: urls } => {
                committed.linked.extend(links::read_outside(t, *page, urls, known)?);
            }
            Change::Weighed(pages) => worth::weigh(t, &mut b.sums.worth, pages)?,
            Change::Order(bytes) => links::keep_order(t, bytes)?,
            Change::Blocks { page, blocks } => structure::keep_blocks(t, *page, blocks)?,
            Change::Structure(kept) => structure::keep(t, kept)?,
            Change::Shared { site, bytes } => schedule::keep_shared(t, *site, bytes)?,
            // A round may end in the same commit as its last visits: counts go first.
            Change::RoundEnd(_) => {}
        }
    }
    batch.finish()?;
    for change in changes {
        if let Change::RoundEnd(end) = change {
            t.prepare_cached("UPDATE rounds SET ended_s = ?2 WHERE id = ?1 AND ended_s IS NULL")?
                .execute(params![end.round, end.at_s])?;
            structure::skipped(t, end)?;
        }
    }
    Ok(committed)
}

/// Commits a visit, or visits of one page of another collection, which are written together.
fn commit_visits(
    b: &mut Batch<'_>,
    run: &[Change],
    known: &Known,
    fresh: &mut Vec<(KnownKey, u32, u32)>,
    committed: &mut Committed,
) -> Result<(), Refusal> {
    let visits: Vec<&VisitCommit> = run.iter().filter_map(Change::visit).collect();
    let (page, is_entered) = visited_page(b, visits[0])?;
    let rest = &visits[usize::from(is_entered)..];
    // What says most about the page's links speaks for all.
    let has_unread = |visit: &&&VisitCommit| links::without_links(visit) == Reading::Unread;
    let Some(telling) = rest.iter().find(has_unread).or(rest.first()) else { return Ok(()) };
    let known_as = update_page(b, page, rest)?;
    let before = fresh.len();
    for visit in rest {
        committed.new_pages.extend(commit_visit(b, page, visit, known, fresh)?);
    }
    let places = links::Places { site: telling.site, known, fresh: &fresh[before..] };
    committed.linked.extend(links::visited(b.t, known_as, telling, &places)?);
    Ok(())
}

/// The number of a visit's page, which is known from now on, and whether it was entered together
/// with the visit.
fn visited_page(b: &mut Batch<'_>, visit: &VisitCommit) -> rusqlite::Result<(PageId, bool)> {
    let found = match &visit.page {
        VisitedPage::Known(page) => return Ok((*page, false)),
        VisitedPage::Url(found) => found,
    };
    let server = b.server(&found.url)?;
    let first_number = read::first_number(server, &found.url);
    match place(b.t, first_number, found.url.path_and_query())? {
        Place::Free(page) if taken::is_plain(visit) => {
            taken::enter(b, page, found, visit)?;
            Ok((page, true))
        }
        Place::Free(page) | Place::Known(page) => {
            discover(b, visit.site, found, visit.at_s)?;
            Ok((page, false))
        }
    }
}

fn commit_visit(
    b: &mut Batch<'_>,
    page: PageId,
    visit: &VisitCommit,
    known: &Known,
    fresh: &mut Vec<(KnownKey, u32, u32)>,
) -> Result<Vec<NewPage>, Refusal> {
    let mut new_pages = Vec::new();
    if let Some(version) = &visit.version {
        insert_version(b, page, version)?;
    }
    b.visits.push(Logged::new(page, visit));
    if let Some(round) = visit.round {
        b.t.prepare_cached("UPDATE members SET round = ?3 WHERE site = ?1 AND page = ?2")?
            .execute(params![visit.site.0, page.0, round])?;
    }
    for found in &visit.discovered {
        let key = Known::key(visit.site, &found.url);
        if known.get(&key).is_none_or(|(depth, _)| depth > found.depth) {
            let (new, nth) = discover(b, visit.site, found, visit.at_s)?;
            new_pages.extend(new);
            fresh.push((key, found.depth, nth));
        }
    }
    if !visit.new_tops.is_empty() {
        let mut conditions = read_site(b.t, visit.site)?.conditions;
        for top in &visit.new_tops {
            if !conditions.tops.contains(top) {
                conditions.tops.push(top.clone());
            }
        }
        change_site(b, visit.site, &conditions, visit.at_s)?;
    }
    b.sums.count_visit(visit, new_pages.len() as u64);
    Ok(new_pages)
}

/// What a visit's commit must know of its page, then the columns of its [`Part`].
const BEFORE: &str = "SELECT due_s, visited_s, version, nth, site, importance, rate, sure, turn
    FROM pages WHERE id = ?1";

/// A page as a visit's commit finds it.
struct Before {
    due_s: Option<i64>,
    visited_s: Option<i64>,
    version: Option<i64>,
    nth: u32,
    worth: Part,
}

impl Before {
    fn load(t: &Transaction<'_>, page: PageId) -> rusqlite::Result<Self> {
        t.prepare_cached(BEFORE)?.query_row([page.0], |row| {
            Ok(Self {
                due_s: row.get(0)?,
                visited_s: row.get(1)?,
                version: row.get(2)?,
                nth: row.get(3)?,
                worth: Part::read(row, 4)?,
            })
        })
    }
}

/// Writes what visits of one page, in the order in which they are taken in, leave of it.
fn update_page(
    b: &mut Batch<'_>,
    page: PageId,
    visits: &[&VisitCommit],
) -> rusqlite::Result<links::Visited> {
    let before = Before::load(b.t, page)?;
    let mut after = After {
        visited_s: before.visited_s,
        version: before.version,
        worth: before.worth,
        changes: 0,
        significant: 0,
        last: None,
    };
    for visit in visits {
        after.visit(b, page, visit)?;
    }
    after.write(b, page, visits.len() as u32)?;
    b.sums.worth.replace(&before.worth, &after.worth);
    if let Some(last) = after.last {
        b.forget_pull(page)?;
        match before.visited_s {
            Some(_) => b.moves.go(page, before.due_s, last.update.due_s)?,
            None => b.moves.first_visited(page, before.due_s, last.update.due_s)?,
        }
    }
    Ok(links::Visited { nth: before.nth, is_new: before.visited_s.is_none() })
}

/// What visits make of a page.
struct After<'v> {
    visited_s: Option<i64>,
    version: Option<i64>,
    worth: Part,
    changes: u32,
    significant: u32,
    /// The last that is not older than what was known; its word on the page holds.
    last: Option<&'v VisitCommit>,
}

impl<'v> After<'v> {
    fn visit(
        &mut self,
        b: &mut Batch<'_>,
        page: PageId,
        visit: &'v VisitCommit,
    ) -> rusqlite::Result<()> {
        if visit.outcome == Outcome::Gone && self.version.is_some() {
            b.t.prepare_cached("INSERT OR IGNORE INTO gone VALUES (?1, ?2)")?
                .execute(params![page.0, visit.at_s])?;
        }
        self.changes += u32::from(visit.outcome == Outcome::Changed);
        let version = visit.version.as_ref().map(|row| row.version as i64);
        if visit.origin == Origin::Imported
            && self.visited_s.is_some_and(|last_s| visit.at_s < last_s)
        {
            // A visit before the last one says nothing of the page as it is.
            self.version = self.version.or(version);
            return Ok(());
        }
        self.version = version.or(self.version);
        self.visited_s = self.visited_s.max(Some(visit.at_s));
        self.significant +=
            u32::from(visit.version.as_ref().is_some_and(VersionRow::is_significant));
        self.worth = worth_now(b, visit, self.worth)?;
        self.last = Some(visit);
        Ok(())
    }

    fn write(&self, b: &Batch<'_>, page: PageId, visits: u32) -> rusqlite::Result<()> {
        let Some(VisitCommit { outcome, update, .. }) = self.last else {
            b.t.prepare_cached(
                "UPDATE pages SET visits = visits + ?2, changes = changes + ?3, version = ?4
                 WHERE id = ?1",
            )?
            .execute(params![page.0, visits, self.changes, self.version])?;
            return Ok(());
        };
        b.t.prepare_cached(
            "UPDATE pages SET visited_s = ?2, outcome = ?3, due_s = ?4, visits = visits + ?18,
                changes = changes + ?5, significant = significant + ?13, failures = ?6, etag = ?7,
                last_modified = ?8, mark = ?9, bytes = ?10, version = ?11,
                history = ?12, importance = ?14, rate = ?15, sure = ?16, turn = ?17
             WHERE id = ?1",
        )?
        .execute(params![
            page.0,
            self.visited_s,
            rows::outcome_number(*outcome),
            update.due_s,
            self.changes,
            update.failures,
            validators::etag_value(update.etag.as_deref()),
            validators::date_value(update.last_modified.as_deref()),
            update.mark.map(|mark| mark.0),
            update.bytes as i64,
            self.version,
            Some(&update.history).filter(|h| !h.is_empty()),
            self.significant,
            self.worth.importance_percent,
            self.worth.estimate.map(|estimate| estimate.rate_micros),
            self.worth.estimate.map(|estimate| estimate.confidence_percent),
            self.worth.turn,
            visits,
        ])?;
        Ok(())
    }
}

/// A page's part in the sums after a visit.
fn worth_now(b: &mut Batch<'_>, visit: &VisitCommit, before: Part) -> rusqlite::Result<Part> {
    // What is imported was collected in an order that nobody here chose.
    let is_first = before.turn == 0 && visit.version.is_some() && visit.origin == Origin::Crawled;
    Ok(Part {
        site: before.site,
        importance_percent: visit.importance_percent.unwrap_or(before.importance_percent),
        estimate: match visit.outcome {
            Outcome::Gone => None,
            _ => visit.estimate.or(before.estimate),
        },
        turn: if is_first { b.sums.worth.next_turn(b.t, before.site)? } else { before.turn },
    })
}

fn insert_version(b: &mut Batch<'_>, page: PageId, row: &VersionRow) -> rusqlite::Result<bool> {
    let mime = b.mime(&row.mime)?;
    let is_first =
        !b.t.prepare_cached("SELECT 1 FROM versions WHERE page = ?1 LIMIT 1")?.exists([page.0])?;
    let inserted = enter_version(b.t, page, row, mime)?;
    // What was denied stays so, whoever finds it again.
    let is_denied = || b.t.prepare_cached("SELECT 1 FROM denied WHERE page = ?1")?.exists([page.0]);
    if is_first
        && !is_denied()?
        && let Some(url) = bags::url(b.t, page)?
    {
        b.entered.key(page, &url.key());
    }
    Ok(inserted > 0)
}

pub(super) fn enter_version(
    t: &Transaction<'_>,
    page: PageId,
    row: &VersionRow,
    mime: i64,
) -> rusqlite::Result<usize> {
    t.prepare_cached("INSERT OR IGNORE INTO versions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?.execute(
        params![
            page.0,
            row.at_s,
            row.version as i64,
            row.status,
            mime,
            row.bytes as i64,
            row.changed_permille,
        ],
    )
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

/// Makes a page known to a site. Returns it when the site did not know it yet, and its place in the
/// order of discovery.
fn discover(
    b: &mut Batch<'_>,
    site: SiteId,
    found: &Discovered,
    now_s: i64,
) -> rusqlite::Result<(Option<NewPage>, u32)> {
    let t = b.t;
    let server = b.server(&found.url)?;
    // Where pages have times of their own, each needs one, whoever found it.
    let due_s = match found.due_s {
        Some(due_s) => Some(due_s),
        None => b.is_continuous(site)?.then_some(now_s),
    };
    let first = read::first_number(server, &found.url);
    let place = place(t, first, found.url.path_and_query())?;
    let page = match place {
        Place::Known(page) => {
            if is_known_to_site(t, site, page, found)? {
                return Ok((None, links::place(t, page)?));
            }
            enter_member(b, site, page, found)?;
            if let Some(due_s) = due_s {
                schedule::schedule_page(b, site, page, found.depth, due_s)?;
            }
            read::page_by_id(t, page)?
        }
        Place::Free(page) => {
            let nth = links::enter(t, page, Reading::New)?;
            t.prepare_cached(
                "INSERT INTO pages (id, path, site, discovered_s, due_s, nth)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![
                page.0,
                found.url.path_and_query(),
                site.0,
                now_s,
                due_s,
                nth
            ])?;
            if let Some(due_s) = due_s {
                b.moves.enter_new(page, found.depth, due_s)?;
            }
            b.entered.path(page, found.url.path_and_query());
            enter_member(b, site, page, found)?;
            PageRecord::unvisited((page, nth), found.url.clone(), site, now_s, due_s)
        }
    };
    let (depth, hops) = (found.depth, found.hops);
    let nth = page.nth;
    Ok((Some(NewPage { due: DuePage { page, site, depth, hops, pulled: false } }), nth))
}

pub(super) fn enter_member(
    b: &mut Batch<'_>,
    site: SiteId,
    page: PageId,
    found: &Discovered,
) -> rusqlite::Result<()> {
    b.t.prepare_cached("INSERT INTO members VALUES (?1, ?2, ?3, ?4, NULL)")?.execute(params![
        site.0,
        page.0,
        found.depth,
        found.hops
    ])?;
    b.sums.count_page(site);
    Ok(())
}

/// Whether a site knows a page already; a shorter way to it is noted.
fn is_known_to_site(
    t: &Transaction<'_>,
    site: SiteId,
    page: PageId,
    found: &Discovered,
) -> rusqlite::Result<bool> {
    let before: Option<u32> = t
        .prepare_cached("SELECT depth FROM members WHERE site = ?1 AND page = ?2")?
        .query_row(params![site.0, page.0], |row| row.get(0))
        .optional()?;
    let Some(depth) = before else { return Ok(false) };
    if found.depth < depth {
        t.prepare_cached("UPDATE members SET depth = ?3, hops = ?4 WHERE site = ?1 AND page = ?2")?
            .execute(params![site.0, page.0, found.depth, found.hops])?;
        // Links below it may lie inside the site's depth now: the next visit must bring the body,
        // so it is asked for without validators.
        if depth + LEVELS_BELOW > depth_limit(t, site)? {
            t.prepare_cached("UPDATE pages SET etag = NULL, last_modified = NULL WHERE id = ?1")?
                .execute([page.0])?;
        }
    }
    Ok(true)
}

/// No site has more levels than these below a page that is found on two ways: with so many left
/// before the site's limit, nothing below the page was cut off.
const LEVELS_BELOW: u32 = 32;

fn depth_limit(t: &Transaction<'_>, site: SiteId) -> rusqlite::Result<u32> {
    t.prepare_cached("SELECT json_extract(conditions, '$.depth') FROM sites WHERE id = ?1")?
        .query_row([site.0], |row| row.get(0))
}

/// Where a path has its number.
enum Place {
    Known(PageId),
    Free(PageId),
}

fn place(t: &Transaction<'_>, first: i64, path: &str) -> rusqlite::Result<Place> {
    let mut query = t.prepare_cached("SELECT id, path FROM pages WHERE id >= ?1 AND id < ?2")?;
    let mut neighbours = query.query([first, first + read::PROBES])?;
    let mut free = first;
    while let Some(row) = neighbours.next()? {
        let id: i64 = row.get(0)?;
        if row.get_ref(1)?.as_str()? == path {
            return Ok(Place::Known(PageId(id)));
        }
        // They come in order, so the first gap is passed only once it was found.
        if id == free {
            free += 1;
        }
    }
    if free >= first + read::PROBES {
        // Eight pages of one server within eight of 2^39 numbers: the engine's own constraint
        // error says it, and the commit is given up.
        return Err(rusqlite::Error::StatementChangedRows(0));
    }
    Ok(Place::Free(PageId(free)))
}

/// Enters a version that was found in the packs; returns whether the index did not have it.
fn adopt(b: &mut Batch<'_>, visit: &VisitCommit) -> Result<bool, Refusal> {
    let (page, _) = visited_page(b, visit)?;
    let (t, site) = (b.t, visit.site);
    let Some(row) = &visit.version else { return Ok(false) };
    let is_new = !super::prune::is_pruning(t, row.version)? && insert_version(b, page, row)?;
    if is_new {
        t.prepare_cached(
            "UPDATE pages SET version = ?2, bytes = ?3,
                visited_s = MAX(COALESCE(visited_s, ?4), ?4), visits = MAX(visits, 1),
                outcome = COALESCE(outcome, 0)
             WHERE id = ?1 AND NOT EXISTS
                (SELECT 1 FROM versions v WHERE v.page = ?1 AND v.at_s > ?4)",
        )?
        .execute(params![page.0, row.version as i64, row.bytes as i64, row.at_s])?;
        links::adopted(t, page)?;
        if due::is_new(t, page)? {
            let due_s = schedule::due_of(t, page)?;
            b.moves.first_visited(page, due_s, due_s)?;
        }
        b.sums.count_adopted(site, row);
    }
    Ok(is_new)
}
