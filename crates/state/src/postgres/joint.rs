//! Rounds, budgets and mail of sites over several partitions; and what a commit brings a few times
//! at most, with a statement each.

use super::{engine::Step, loads::NO_SITE, rows, work::Work};
use crate::{
    Change, Division, Mail, Need, Nth, PartitionId, PostgresState, RoundEnd, SiteId, StateError,
    rules::FarLink,
};

/// A snapshot of the crawl order is kept in parts of this size.
const PART_BYTES: usize = 4 << 20;

pub(super) fn apply(work: &mut Work<'_, '_>, change: &Change) -> Step<()> {
    match change {
        Change::MailDelivered { to, upto } => {
            let upto = i64::try_from(*upto).unwrap_or(i64::MAX);
            work.t.later(
                "DELETE FROM @outbox WHERE receiver = $1 AND number <= $2",
                vec![Box::new(to.0 as i32), Box::new(upto)],
            );
        }
        Change::Order { bytes, received, handed_on } => {
            keep_order(work, bytes);
            hand_on(work, handed_on)?;
            let places: Vec<i32> = received.iter().map(|(nth, _)| nth.0 as i32).collect();
            let micros: Vec<i64> = received.iter().map(|(_, micros)| *micros as i64).collect();
            if !places.is_empty() {
                work.t.later(
                    "UPDATE @received r SET kept = k.micros
                     FROM unnest($1::integer[], $2::bigint[]) k(nth, micros) WHERE r.nth = k.nth",
                    vec![Box::new(places), Box::new(micros)],
                );
            }
        }
        &Change::Need { site, day, need: asked } => {
            let is_new = need(work, work.settings.own, site, day, asked);
            if is_new {
                work.send_to_all(&Mail::Need { site, day, need: asked });
            }
        }
        Change::Structure(kept) => {
            let site = kept.site.map_or(0, |site| site.0 as i32);
            work.t.later(
                "INSERT INTO @structure VALUES ($1, $2)
                 ON CONFLICT (site) DO UPDATE SET state = excluded.state",
                vec![Box::new(site), Box::new(kept.bytes.clone())],
            );
        }
        Change::Shared { site, bytes } => {
            work.t.later(
                "INSERT INTO @shared VALUES ($1, $2)
                 ON CONFLICT (site) DO UPDATE SET state = excluded.state",
                vec![Box::new(site.0 as i32), Box::new(bytes.clone())],
            );
        }
        Change::RoundEnd(end) if work.is_divided() => {
            let ended = ended(work, end)? + 1;
            work.send_to_all(&Mail::RoundEnd { site: end.site, ended });
        }
        _ => {}
    }
    Ok(())
}

/// What a round leaves when it ends, after its visits were counted.
pub(super) fn end_round(work: &mut Work<'_, '_>, end: &RoundEnd) {
    work.t.later(
        "UPDATE @rounds SET ended_s = $2 WHERE id = $1 AND ended_s IS NULL",
        vec![Box::new(end.round.0), Box::new(end.at_s)],
    );
    let Some(skips) = &end.skips else { return };
    work.t.later(
        "UPDATE @rounds SET skipped = $2 WHERE id = $1",
        vec![Box::new(end.round.0), Box::new(skips.pages() as i64)],
    );
    // Reasons are plain data, which always has a JSON form.
    let reasons = serde_json::to_string(skips).unwrap_or_default();
    work.t.later(
        "INSERT INTO @skips VALUES ($1, $2)
         ON CONFLICT (round) DO UPDATE SET reasons = excluded.reasons",
        vec![Box::new(end.round.0), Box::new(reasons)],
    );
}

/// Pages handed score on: their links to other partitions get their shares by mail.
fn hand_on(work: &mut Work<'_, '_>, pages: &[(Nth, u64)]) -> Step<()> {
    if pages.is_empty() || !work.is_divided() {
        return Ok(());
    }
    work.load_far_links(pages.iter().map(|(nth, _)| *nth))?;
    for &(nth, micros) in pages {
        let links: Vec<FarLink> =
            work.far_links.get(&nth).map_or_else(Vec::new, |kept| kept.targets.clone());
        for FarLink { hash, to } in links {
            work.send(to, Mail::MoreShare { hash, micros });
        }
    }
    Ok(())
}

fn keep_order(work: &mut Work<'_, '_>, bytes: &[u8]) {
    work.t.later("DELETE FROM @crawl_order", Vec::new());
    for (part, bytes) in (0_i32..).zip(bytes.chunks(PART_BYTES)) {
        let sql = "INSERT INTO @crawl_order VALUES ($1, $2)";
        work.t.later(sql, vec![Box::new(part), Box::new(bytes.to_vec())]);
    }
}

/// Rounds of a site that have ended here, besides one.
fn ended(work: &mut Work<'_, '_>, end: &RoundEnd) -> Step<u64> {
    let found = work.t.query(
        "SELECT COUNT(*) FROM @rounds WHERE site = $1 AND id <> $2 AND ended_s IS NOT NULL",
        &[&(end.site.0 as i32), &end.round.0],
    )?;
    let count: i64 = found[0].try_get(0)?;
    Ok(count as u64)
}

/// Another partition has ended rounds of a site.
pub(super) fn round_ended(work: &mut Work<'_, '_>, from: PartitionId, site: SiteId, ended: u64) {
    work.t.later(
        "INSERT INTO @rounds_elsewhere AS r VALUES ($1, $2, $3)
         ON CONFLICT (site, partition) DO UPDATE SET ended = GREATEST(r.ended, excluded.ended)",
        vec![Box::new(site.0 as i32), Box::new(from.0 as i32), Box::new(ended as i64)],
    );
}

/// What the pages of a site, or of all, ask for on a day, here or in another partition. What was said first
/// holds, so that all partitions divide alike; returns whether this was it.
pub(super) fn need(
    work: &mut Work<'_, '_>,
    from: PartitionId,
    site: Option<SiteId>,
    day: i64,
    need: Need,
) -> bool {
    let site = site.unwrap_or(NO_SITE).0;
    let is_new = work.asked_for.insert((site, day, from));
    if is_new {
        work.new_needs.push((site, day, from, need));
    }
    is_new
}

impl PostgresState {
    pub(super) fn may_begin(&self, site: SiteId) -> Result<bool, StateError> {
        let others = i64::from(self.settings.partitioning.count.max(1)) - 1;
        if others == 0 {
            return Ok(true);
        }
        let found = self.read(
            "SELECT ended = 0 OR open OR
                (SELECT COUNT(*) FROM @rounds_elsewhere e
                 WHERE e.site = $1 AND e.ended >= own.ended) = $2
             FROM (SELECT COUNT(*) FILTER (WHERE ended_s IS NOT NULL) AS ended,
                    COALESCE(bool_or(ended_s IS NULL), false) AS open
                   FROM @rounds WHERE site = $1) own",
            &[&(site.0 as i32), &others],
        )?;
        self.one(&found, |row| rows::get(row, 0))
    }

    pub(super) fn divide(
        &self,
        site: Option<SiteId>,
        day: i64,
    ) -> Result<Option<Division>, StateError> {
        let site = site.unwrap_or(NO_SITE);
        let (partitioning, own) = (self.settings.partitioning, self.settings.own);
        if partitioning.count <= 1 {
            return Ok(None);
        }
        let found = self.read(
            "SELECT milli_visits, pages FROM @needs WHERE site = $1 AND day = $2 ORDER BY partition",
            &[&(site.0 as i32), &day],
        )?;
        let needs = self.all(&found, |row| {
            let (milli_visits, pages) = (rows::unsigned(row, 0)?, rows::unsigned(row, 1)?);
            Ok(Need { milli_visits, pages })
        })?;
        let all = partitioning.count as usize;
        let equal = || vec![Need { milli_visits: 1, pages: 1 }; all];
        let needs = Some(needs).filter(|needs| needs.len() == all).unwrap_or_else(equal);
        Ok(Some(Division { day, needs, own }))
    }
}
