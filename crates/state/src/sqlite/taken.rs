//! Pages that become known by a visit of another collection. Everything about such a page is known
//! at once and nothing was known before, so that it is written once and nothing need be looked up:
//! a third of the statements that finding it and then visiting it take.

use rusqlite::params;

use super::{batch::Batch, discover, links, portion::Logged, rows, validators, versions};
use crate::{
    Change, Discovered, Origin, PageId, VisitCommit,
    rules::{self, PageBefore},
};

/// Whether a visit is about nothing but its own page.
pub(super) fn is_plain(visit: &VisitCommit) -> bool {
    visit.origin == Origin::Imported
        && visit.round.is_none()
        && visit.links.is_none()
        && visit.discovered.is_empty()
        && visit.new_tops.is_empty()
        && visit.importance_percent.is_none()
        && visit.estimate.is_none()
}

/// Whether a change is a visit of the page that the one before it visited, so that they can be
/// written together.
pub(super) fn is_same_page(change: &Change, next: &Change) -> bool {
    match (change, next) {
        (Change::Visit(visit), Change::Visit(next)) => {
            is_plain(visit) && is_plain(next) && visit.site == next.site && visit.page == next.page
        }
        _ => false,
    }
}

/// Enters a page that no site knows under its number, with its first visit.
pub(super) fn enter(
    b: &mut Batch<'_>,
    page: PageId,
    found: &Discovered,
    visit: &VisitCommit,
) -> rusqlite::Result<()> {
    let (update, path) = (&visit.update, found.url.path_and_query());
    let after = rules::visited(&PageBefore::unvisited(visit.site), &[visit]);
    let nth = links::enter(b.t, page, rules::reading_without_links(visit))?;
    b.t.prepare_cached(
        "INSERT INTO pages (id, path, site, discovered_s, due_s, nth, visited_s, outcome, visits,
            changes, significant, failures, etag, last_modified, mark, bytes, version, history)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 1, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
    )?
    .execute(params![
        page.0,
        path,
        visit.site.0,
        visit.at_s,
        update.due_s,
        nth,
        after.visited_s,
        rows::outcome_number(visit.outcome),
        after.changes,
        after.significant,
        update.failures,
        validators::etag_value(update.validators.etag.as_deref()),
        validators::date_value(update.validators.last_modified.as_deref()),
        update.mark.map(|mark| mark.0),
        update.bytes as i64,
        after.version.map(|version| version.0 as i64),
        Some(&update.history).filter(|h| !h.is_empty()),
    ])?;
    b.moves.go(page, None, update.due_s)?;
    b.entered.path(page, path);
    discover::enter_member(b, visit.site, page, found)?;
    if let Some(row) = &visit.version {
        let mime = b.mime(&row.mime)?;
        versions::enter(b.t, page, row, mime)?;
        b.entered.key(page, &found.url.key());
    }
    b.visits.push(Logged::new(page, visit));
    b.sums.count_visit(visit, 0);
    Ok(())
}
