//! The times of single pages, and hints that pull them forward.

use nenrin_lang::Hint;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::due::{self, Moves};
use crate::{PageId, PullForward, rules};

pub(super) fn set_due(
    t: &Transaction<'_>,
    moves: &mut Moves<'_>,
    page: PageId,
    due_s: i64,
) -> rusqlite::Result<()> {
    let Some(before_s) = due_of(t, page)? else { return Ok(()) };
    t.prepare_cached("UPDATE pages SET due_s = ?2 WHERE id = ?1")?
        .execute(params![page.0, due_s])?;
    // A page that was never visited waits for its turn, not for a time.
    if due::is_new(t, page)? { Ok(()) } else { moves.go(page, Some(before_s), Some(due_s)) }
}

pub(super) fn due_of(t: &Transaction<'_>, page: PageId) -> rusqlite::Result<Option<i64>> {
    let due_s = t
        .prepare_cached("SELECT due_s FROM pages WHERE id = ?1")?
        .query_row([page.0], |row| row.get(0))
        .optional()?;
    Ok(due_s.flatten())
}

pub(super) fn pull_forward(
    t: &Transaction<'_>,
    moves: &mut Moves<'_>,
    pull: &PullForward,
) -> rusqlite::Result<()> {
    let Some(nearer_s) = rules::pulled_forward(due_of(t, pull.page)?, pull) else {
        return Ok(());
    };
    t.prepare_cached("INSERT OR REPLACE INTO pulled VALUES (?1, ?2)")?
        .execute(params![pull.page.0, pull.hint.to_json()])?;
    set_due(t, moves, pull.page, nearer_s)
}

/// Whether any page is pulled forward.
pub(super) fn has_pulls(c: &Connection) -> rusqlite::Result<bool> {
    c.prepare_cached("SELECT 1 FROM pulled LIMIT 1")?.exists([])
}

/// A visit was made: the hint has done its work.
pub(super) fn forget_pull(t: &Transaction<'_>, page: PageId) -> rusqlite::Result<()> {
    t.prepare_cached("DELETE FROM pulled WHERE page = ?1")?.execute([page.0])?;
    Ok(())
}

/// The hint that pulled a page forward; one that cannot be read is none.
pub(super) fn pulled(c: &Connection, page: PageId) -> rusqlite::Result<Option<Hint>> {
    let hint = c
        .prepare_cached("SELECT hint FROM pulled WHERE page = ?1")?
        .query_row([page.0], |row| Ok(Hint::from_json(row.get_ref(0)?.as_str()?)))
        .optional()?;
    Ok(hint.flatten())
}
