//! What can be checked from inside.

use rusqlite::Connection;

use super::{bags, due, log, read, worth};
use crate::PageId;

/// Faults that the engine lists.
const FAULTS_MAX: u32 = 20;

pub(super) fn check(c: &Connection, bucket_s: i64) -> rusqlite::Result<Vec<String>> {
    let mut wrong = Vec::new();
    let mut check = c.prepare(&format!("PRAGMA integrity_check({FAULTS_MAX})"))?;
    for fault in check.query_map([], |row| row.get::<_, String>(0))? {
        let fault = fault?;
        if fault != "ok" {
            wrong.push(format!("the database is damaged: {fault}"));
        }
    }
    if !wrong.is_empty() {
        // What is read from a damaged database says nothing.
        return Ok(wrong);
    }
    read::sites(c)?;
    let laws = [
        ("SELECT COUNT(*) FROM versions v LEFT JOIN pages p ON p.id = v.page WHERE p.id IS NULL",
         "versions belong to no page"),
        ("SELECT COUNT(*) FROM versions v LEFT JOIN mimes m ON m.id = v.mime WHERE m.id IS NULL",
         "versions have no media type"),
        ("SELECT COUNT(*) FROM pages p WHERE p.version IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.page = p.id AND v.version = p.version)",
         "pages name a last version that is not listed"),
        ("SELECT COUNT(*) FROM pages p WHERE NOT EXISTS
            (SELECT 1 FROM members m WHERE m.page = p.id AND m.site = p.site)",
         "pages belong to no site"),
        ("SELECT COUNT(*) FROM pages p LEFT JOIN servers s ON s.id = p.id >> 39 WHERE s.id IS NULL",
         "pages belong to no server"),
        ("SELECT COUNT(*) FROM pages p WHERE NOT EXISTS
            (SELECT 1 FROM found f WHERE f.nth = p.nth AND f.page = p.id)",
         "pages have no place in the order of discovery"),
        ("SELECT COUNT(*) <> COALESCE(MAX(nth), 0) FROM found",
         "gap is in the order of discovery"),
        ("SELECT COUNT(*) FROM pages p JOIN found f ON f.nth = p.nth
            WHERE (p.visited_s IS NULL) <> (f.reading = 0)",
         "pages are new in one place and visited in another"),
        ("SELECT COUNT(*) FROM found f WHERE (f.reading = 3)
            <> EXISTS (SELECT 1 FROM links l WHERE l.nth = f.nth)",
         "pages are read for links that are not kept"),
        (worth::LAW, "sites have sums of rates and importance that are not their pages'"),
    ];
    for (sql, what) in laws {
        let found: i64 = c.query_row(sql, [], |row| row.get(0))?;
        if found > 0 {
            wrong.push(format!("{found} {what}"));
        }
    }
    wrong.extend(log::damaged_portions(c)?);
    let hidden = hidden_pages(c)?;
    if hidden > 0 {
        wrong.push(format!("{hidden} pages with versions are not found by their addresses"));
    }
    let lost = due::lost(c, bucket_s)?;
    if lost > 0 {
        wrong.push(format!("{lost} pages have a due time but are in no bucket"));
    }
    Ok(wrong)
}

/// Pages with versions that a look-up by their address does not find.
fn hidden_pages(c: &Connection) -> rusqlite::Result<u64> {
    let mut hidden = 0;
    let mut pages = c.prepare(
        "SELECT DISTINCT page FROM versions WHERE page NOT IN (SELECT page FROM denied)",
    )?;
    for page in pages.query_map([], |row| row.get(0).map(PageId))? {
        let page = page?;
        let is_found = match bags::url(c, page)? {
            Some(url) => bags::pages_of_key(c, &url.key())?.contains(&page),
            None => false,
        };
        hidden += u64::from(!is_found);
    }
    Ok(hidden)
}
