//! One commit: every change in its order, then what was gathered.

use rusqlite::{Transaction, params};

use super::{
    batch::Batch, discover, engine::Refusal, far, inbox, joint, links, mail, notes, received,
    schedule, servers, settings::Settings, structure, taken, times, visits, worth,
};
use crate::{
    Change, Committed, Mail, Origin,
    known::{Fresh, Known},
};

pub(super) fn commit(
    t: &Transaction<'_>,
    settings: Settings,
    changes: &[Change],
    known: &Known,
    fresh: &mut Vec<Fresh>,
) -> Result<Committed, Refusal> {
    let mut committed = Committed::default();
    let mut batch = Batch::new(t, settings)?;
    let b = &mut batch;
    for run in changes.chunk_by(taken::is_same_page) {
        match &run[0] {
            Change::Visit(visit) if visit.origin == Origin::Packs => {
                committed.adopted += u64::from(visits::adopt(b, visit)?);
            }
            Change::Visit(_) => visits::commit_visits(b, run, known, fresh, &mut committed)?,
            Change::Lessons(lessons) => visits::learn(b, lessons)?,
            Change::Robots { server, tried_s, copy } => {
                servers::update_robots(t, *server, *tried_s, copy.as_ref())?;
            }
            Change::Pace(pace) => servers::update_pace(t, pace)?,
            Change::Note(note) => notes::write(t, note)?,
            Change::Announced(announced) => servers::announced(b, announced)?,
            Change::Found(found) => {
                for page in &found.pages {
                    let page = discover::discover(b, found.site, page, found.at_s)?;
                    committed.new_pages.extend(page.and_then(|page| page.new_page));
                }
            }
            Change::MailTaken { from, mail } => {
                inbox::take(b, *from, mail, &mut committed)?;
            }
            Change::MailDelivered { to, upto } => mail::delivered(t, *to, *upto)?,
            Change::Due { page, due_s } => times::set_due(t, &mut b.moves, *page, *due_s)?,
            Change::PullForward(pull) => b.pull_forward(pull)?,
            Change::Links { page, links: urls } => {
                committed.linked.extend(links::read_outside(t, *page, urls, known)?);
            }
            Change::Weighed(pages) => worth::weigh(t, &mut b.sums.worth, pages)?,
            Change::Order { bytes, received: kept, handed_on } => {
                links::keep_order(t, bytes)?;
                if b.is_divided() {
                    received::keep(t, kept)?;
                    far::hand_on(b, handed_on)?;
                }
            }
            &Change::Need { site, day, need } => {
                if joint::need(t, settings.own, site, day, need)? {
                    b.send_to_all(&Mail::Need { site, day, need });
                }
            }
            Change::Blocks { page, blocks } => structure::keep_blocks(t, *page, blocks)?,
            Change::Structure(kept) => structure::keep(t, kept)?,
            Change::Shared { site, bytes } => schedule::keep_shared(t, *site, bytes)?,
            // A round may end in the same commit as its last visits: counts go first.
            Change::RoundEnd(end) => joint::round_ends(b, end)?,
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
