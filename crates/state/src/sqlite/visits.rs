//! What a visit writes.

use std::num::NonZeroU32;

use rusqlite::{Transaction, params};

use super::{
    batch::Batch,
    discover::{self, PageSlot},
    due,
    engine::Refusal,
    far, links,
    portion::Logged,
    prune, read, rows, sites, taken, times, validators, versions, worth,
};
use crate::{
    Change, Committed, Mail, NewPage, Outcome, PageId, PageLessons, Reading, StateError,
    VisitCommit, VisitedPage,
    known::{Fresh, Known},
    rules::{self, PageAfter},
};

/// Commits a visit, or visits of one page of another collection, which are written together.
pub(super) fn commit_visits(
    b: &mut Batch<'_>,
    run: &[Change],
    known: &Known,
    fresh: &mut Vec<Fresh>,
    committed: &mut Committed,
) -> Result<(), Refusal> {
    let visits: Vec<&VisitCommit> = run.iter().filter_map(Change::visit).collect();
    let (page, is_entered) = visited_page(b, visits[0])?;
    let rest = &visits[usize::from(is_entered)..];
    // Of several visits to the page in one commit, one whose links are still to be read counts.
    let has_unread = |visit: &&&VisitCommit| rules::reading_without_links(visit) == Reading::Unread;
    let Some(telling) = rest.iter().find(has_unread).or(rest.first()) else { return Ok(()) };
    let known_as = update_page(b, page, rest)?;
    let before = fresh.len();
    for visit in rest {
        committed.new_pages.extend(commit_visit(b, page, visit, known, fresh)?);
    }
    let places = links::Places { site: telling.site, known, fresh: &fresh[before..] };
    let mut linked = links::visited(b.t, known_as, telling, &places)?;
    if b.is_divided() {
        let near = match &linked {
            Some(linked) => linked.links,
            None => links::count(b.t, known_as.nth)?,
        };
        far::visited(b, known_as.nth, telling, near, linked.as_mut())?;
    }
    committed.linked.extend(linked);
    Ok(())
}

/// The number of a visit's page, which is known from now on, and whether it was entered together
/// with the visit.
fn visited_page(b: &mut Batch<'_>, visit: &VisitCommit) -> Result<(PageId, bool), Refusal> {
    let found = match &visit.page {
        VisitedPage::Known(page) => return Ok((*page, false)),
        VisitedPage::Url(found) => found,
    };
    if b.elsewhere(&found.url).is_some() {
        return Err(StateError::OtherPartition { url: found.url.to_string() }.into());
    }
    match discover::place(b, found)? {
        PageSlot::Free(page) if taken::is_plain(visit) => {
            taken::enter(b, page, found, visit)?;
            Ok((page, true))
        }
        PageSlot::Free(page) | PageSlot::Known(page) => {
            discover::discover(b, visit.site, found, visit.at_s)?;
            Ok((page, false))
        }
    }
}

fn commit_visit(
    b: &mut Batch<'_>,
    page: PageId,
    visit: &VisitCommit,
    known: &Known,
    fresh: &mut Vec<Fresh>,
) -> Result<Vec<NewPage>, Refusal> {
    let mut new_pages = Vec::new();
    if let Some(version) = &visit.version {
        versions::insert(b, page, version)?;
    }
    b.visits.push(Logged::new(page, visit));
    if let Some(round) = visit.round {
        b.t.prepare_cached("UPDATE members SET round = ?3 WHERE site = ?1 AND page = ?2")?
            .execute(params![visit.site.0, page.0, round])?;
    }
    for found in &visit.discovered {
        let key = Known::key(visit.site, &found.url);
        if known.get(&key).is_none_or(|(depth, _)| depth > found.depth) {
            let page = discover::discover(b, visit.site, found, visit.at_s)?;
            let place = page.as_ref().and_then(|page| NonZeroU32::new(page.nth.0));
            new_pages.extend(page.and_then(|page| page.new_page));
            fresh.push((key, found.depth, place));
        }
    }
    if !visit.new_tops.is_empty() {
        let (site, at_s) = (visit.site, visit.at_s);
        for url in sites::add_tops(b, site, &visit.new_tops, at_s)? {
            b.send_to_all(&Mail::Top { site, at_s, url });
        }
    }
    b.sums.count_visit(visit, new_pages.len() as u64);
    Ok(new_pages)
}

/// Writes what visits of one page, in the order in which they are taken in, leave of it.
fn update_page(
    b: &mut Batch<'_>,
    page: PageId,
    visits: &[&VisitCommit],
) -> rusqlite::Result<links::Visited> {
    let before = read::page_before(b.t, page)?;
    let mut after = rules::visited(&before, visits);
    if after.gets_turn {
        after.worth.turn = worth::next_turn(b.t, &mut b.sums.worth, before.worth.site)?;
    }
    for gone_s in &after.gone_s {
        enter_gone(b.t, page, *gone_s)?;
    }
    write_page(b.t, page, &after)?;
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

fn enter_gone(t: &Transaction<'_>, page: PageId, gone_s: i64) -> rusqlite::Result<()> {
    t.prepare_cached("INSERT OR IGNORE INTO gone VALUES (?1, ?2)")?
        .execute(params![page.0, gone_s])?;
    Ok(())
}

fn write_page(t: &Transaction<'_>, page: PageId, after: &PageAfter<'_>) -> rusqlite::Result<()> {
    let version = after.version.map(|version| version.0 as i64);
    let Some(VisitCommit { outcome, update, .. }) = after.last else {
        t.prepare_cached(
            "UPDATE pages SET visits = visits + ?2, changes = changes + ?3,
                significant = significant + ?4, version = ?5 WHERE id = ?1",
        )?
        .execute(params![
            page.0,
            after.visits,
            after.changes,
            after.significant,
            version
        ])?;
        return Ok(());
    };
    let worth = &after.worth;
    t.prepare_cached(
        "UPDATE pages SET visited_s = ?2, outcome = ?3, due_s = ?4, visits = visits + ?18,
            changes = changes + ?5, significant = significant + ?13, failures = ?6, etag = ?7,
            last_modified = ?8, mark = ?9, bytes = ?10, version = ?11,
            history = ?12, importance = ?14, rate = ?15, sure = ?16, turn = ?17
         WHERE id = ?1",
    )?
    .execute(params![
        page.0,
        after.visited_s,
        rows::outcome_number(*outcome),
        update.due_s,
        after.changes,
        update.failures,
        validators::etag_value(update.validators.etag.as_deref()),
        validators::date_value(update.validators.last_modified.as_deref()),
        update.mark.map(|mark| mark.0),
        update.bytes as i64,
        version,
        Some(&update.history).filter(|h| !h.is_empty()),
        after.significant,
        worth.importance_percent,
        worth.estimate.map(|estimate| estimate.rate_micros),
        worth.estimate.map(|estimate| estimate.confidence_percent),
        worth.turn,
        after.visits,
    ])?;
    Ok(())
}

/// Enters a version that was found in the packs; returns whether the index did not have it.
pub(super) fn adopt(b: &mut Batch<'_>, visit: &VisitCommit) -> Result<bool, Refusal> {
    let (page, _) = visited_page(b, visit)?;
    let (t, site) = (b.t, visit.site);
    let Some(row) = &visit.version else { return Ok(false) };
    let before = read::indexed(t, page)?;
    let is_new = !prune::is_pruning(t, row.version)? && versions::insert(b, page, row)?;
    if is_new {
        if let Some(after) = rules::adopted(&before, row.at_s, visit.outcome) {
            t.prepare_cached(
                "UPDATE pages SET version = ?2, bytes = ?3, visited_s = ?4, visits = ?5, outcome = ?6
                 WHERE id = ?1",
            )?
            .execute(params![
                page.0,
                row.version.0 as i64,
                row.bytes as i64,
                after.visited_s,
                after.visits,
                rows::outcome_number(after.outcome),
            ])?;
            if after.is_last {
                t.prepare_cached(
                    "UPDATE pages SET etag = ?2, last_modified = ?3, mark = ?4 WHERE id = ?1",
                )?
                .execute(params![
                    page.0,
                    validators::etag_value(visit.update.validators.etag.as_deref()),
                    validators::date_value(visit.update.validators.last_modified.as_deref()),
                    visit.update.mark.map(|mark| mark.0),
                ])?;
            }
        }
        if visit.outcome == Outcome::Gone {
            enter_gone(t, page, row.at_s)?;
        }
        links::adopted(t, page)?;
        if due::is_new(t, page)? {
            let due_s = times::due_of(t, page)?;
            b.moves.first_visited(page, due_s, due_s)?;
        }
        b.sums.count_adopted(site, row);
    }
    Ok(is_new)
}

/// Writes what visits that were made elsewhere taught of a page.
pub(super) fn learn(b: &mut Batch<'_>, lessons: &PageLessons) -> rusqlite::Result<()> {
    let PageLessons { page, ref history, failures, .. } = *lessons;
    let before = read::page_before(b.t, page)?;
    let Some(after) = rules::learnt(&before, lessons) else { return Ok(()) };
    let mut noise = 0;
    for &(version, permille) in &lessons.compared {
        let counted =
            b.t.prepare_cached(
                "UPDATE versions SET permille = ?3
                 WHERE page = ?1 AND version = ?2 AND permille IS NULL",
            )?
            .execute(params![page.0, version.0 as i64, permille])?;
        noise += i64::from(permille == 0 && counted > 0);
    }
    b.t.prepare_cached(
        "UPDATE pages SET history = ?2, failures = ?3, due_s = ?4, rate = ?5, sure = ?6,
            significant = significant - ?7 WHERE id = ?1",
    )?
    .execute(params![
        page.0,
        Some(history).filter(|history| !history.is_empty()),
        failures,
        after.due_s,
        after.worth.estimate.map(|estimate| estimate.rate_micros),
        after.worth.estimate.map(|estimate| estimate.confidence_percent),
        noise,
    ])?;
    b.sums.worth.replace(&before.worth, &after.worth);
    b.sums.worth.count_noise(before.worth.site, noise);
    b.moves.go(page, before.due_s, after.due_s)
}
