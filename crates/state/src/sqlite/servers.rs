//! What is known of servers, and what they announce.

use nenrin_urls::CanonicalUrl;
use rusqlite::{Transaction, params};

use super::{batch::Batch, read};
use crate::{Announced, Mail, PullForward, RobotsCopy, ServerId, ServerPace, rules};

pub(super) fn update_robots(
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

pub(super) fn update_pace(t: &Transaction<'_>, pace: &ServerPace) -> rusqlite::Result<()> {
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

/// Brings pages nearer that were not visited since they are said to have changed.
pub(super) fn announced(b: &mut Batch<'_>, announced: &Announced) -> rusqlite::Result<()> {
    let t = b.t;
    for (url, changed_s) in &announced.pages {
        if let Some(partition) = b.elsewhere(url) {
            b.outbox.send(partition, hint(announced, url, *changed_s));
            continue;
        }
        let Some(page) = read::find_page(t, url)? else { continue };
        let visited_s: Option<i64> = t
            .prepare_cached("SELECT visited_s FROM pages WHERE id = ?1")?
            .query_row([page.0], |row| row.get(0))?;
        if rules::is_news(visited_s, *changed_s) {
            let pull = PullForward {
                page,
                to_s: announced.at_s,
                odds_percent: announced.odds_percent,
                hint: announced.hint.clone(),
            };
            b.pull_forward(&pull)?;
        }
    }
    Ok(())
}

fn hint(announced: &Announced, url: &CanonicalUrl, changed_s: i64) -> Mail {
    let Announced { at_s, odds_percent, ref hint, .. } = *announced;
    Mail::Hint { at_s, url: url.clone(), changed_s, odds_percent, hint: hint.clone() }
}
