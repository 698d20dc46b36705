//! What was written while the clock was ahead.

use rusqlite::{Transaction, params};

use super::{due::Moves, times};
use crate::PageId;

/// Times this far ahead are believed: clocks of two machines differ.
const AHEAD_S: i64 = 3_600;

/// Whether a server, a site or a round was last asked or begun in the future.
fn is_ahead(t: &Transaction<'_>, now_s: i64) -> rusqlite::Result<bool> {
    t.query_row(
        "SELECT EXISTS (SELECT 1 FROM servers WHERE asked_ms > ?1 * 1000 OR robots_tried_s > ?1)
             OR EXISTS (SELECT 1 FROM sites WHERE collected_s > ?1)
             OR EXISTS (SELECT 1 FROM rounds WHERE ended_s IS NULL AND started_s > ?1)",
        [now_s + AHEAD_S],
        |row| row.get(0),
    )
}

/// Makes everything due now that was visited or found in the future, and forgets what was learnt
/// from those times. Versions stay under the times that they were stored with. Returns how many
/// pages that were, or nothing if the clock never was ahead.
pub(super) fn set_back(
    t: &Transaction<'_>,
    bucket_s: i64,
    now_s: i64,
) -> rusqlite::Result<Option<u64>> {
    if !is_ahead(t, now_s)? {
        return Ok(None);
    }
    let pages: Vec<(PageId, bool)> = t
        .prepare(
            "SELECT id, due_s IS NOT NULL FROM pages WHERE visited_s > ?1 OR discovered_s > ?1",
        )?
        .query_map([now_s + AHEAD_S], |row| Ok((PageId(row.get(0)?), row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut moves = Moves::new(t, bucket_s)?;
    let mut set_back = t.prepare(
        "UPDATE pages SET visited_s = min(visited_s, ?2), discovered_s = min(discovered_s, ?2),
             history = CASE WHEN visited_s > ?2 THEN NULL ELSE history END WHERE id = ?1",
    )?;
    for &(page, is_due) in &pages {
        set_back.execute(params![page.0, now_s])?;
        if is_due {
            times::set_due(t, &mut moves, page, now_s)?;
        }
    }
    moves.finish()?;
    // What pages share and what was learnt of servers has times of its own: it is learnt again. What a
    // server shows for pages that do not exist is as it was: without it they would be stored.
    for forget in [
        "DELETE FROM notes WHERE name <> 'probe'
             AND server IN (SELECT id FROM servers WHERE asked_ms > ?1 * 1000)",
        "DELETE FROM shared WHERE site IN (SELECT site FROM pages WHERE visited_s = ?1)",
        "UPDATE servers SET resting_until_ms = NULL, strikes = 0, stretch_percent = 100
             WHERE asked_ms > ?1 * 1000",
        "UPDATE servers SET asked_ms = min(asked_ms, ?1 * 1000), robots_good_s = min(robots_good_s, ?1),
             robots_tried_s = min(robots_tried_s, ?1)",
        "UPDATE sites SET collected_s = min(collected_s, ?1), created_s = min(created_s, ?1)",
        "UPDATE rounds SET started_s = min(started_s, ?1) WHERE ended_s IS NULL",
    ] {
        t.execute(forget, [now_s])?;
    }
    Ok(Some(pages.len() as u64))
}
