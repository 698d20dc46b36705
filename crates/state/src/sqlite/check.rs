//! What can be checked from inside.

use rusqlite::Connection;

use super::{due, worth};

pub(super) fn check(c: &Connection, bucket_s: i64) -> rusqlite::Result<Vec<String>> {
    let mut wrong = Vec::new();
    let found: String = c.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if found != "ok" {
        wrong.push(format!("the database is damaged: {found}"));
    }
    let laws = [
        ("SELECT COUNT(*) FROM versions v LEFT JOIN pages p ON p.id = v.page WHERE p.id IS NULL",
         "versions belong to no page"),
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
    let lost = due::lost(c, bucket_s)?;
    if lost > 0 {
        wrong.push(format!("{lost} pages have a due time but are in no bucket"));
    }
    Ok(wrong)
}
