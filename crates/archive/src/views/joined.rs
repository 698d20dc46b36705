//! What the partitions of an archive say together: each keeps its own rounds and sums, and they are put
//! together when they are read.

use std::collections::BTreeMap;

use nenrin_state::{DayCounts, DayQuery, Round, Site, SiteId, State};

use crate::Result;

/// The sites, with the counts of all partitions. A round is open until it has ended everywhere.
pub fn joined_sites(partitions: &[&dyn State]) -> Result<Vec<Site>> {
    let mut joined: BTreeMap<SiteId, Site> = BTreeMap::new();
    for state in partitions {
        for part in state.sites()? {
            let Some(site) = joined.get_mut(&part.id) else {
                joined.insert(part.id, part);
                continue;
            };
            site.counts.pages += part.counts.pages;
            site.counts.visits += part.counts.visits;
            site.counts.versions += part.counts.versions;
            site.counts.problems += part.counts.problems;
            site.counts.raw_bytes += part.counts.raw_bytes;
            site.collected_s = site.collected_s.max(part.collected_s);
            site.round_open |= part.round_open;
        }
    }
    Ok(joined.into_values().collect())
}

/// The rounds of a site over all partitions, oldest first, with the numbers of the first partition. One
/// is over when it is over in all of them.
pub fn joined_rounds(partitions: &[&dyn State], site: SiteId) -> Result<Vec<Round>> {
    let mut parts = Vec::with_capacity(partitions.len());
    for state in partitions {
        let mut rounds = state.rounds(Some(site), usize::MAX)?;
        rounds.reverse();
        parts.push(rounds);
    }
    let longest = parts.iter().map(Vec::len).max().unwrap_or(0);
    let nth = |n: usize| parts.iter().map(move |rounds| rounds.get(n));
    Ok((0..longest).filter_map(|n| joined_round(nth(n))).collect())
}

fn joined_round<'r>(parts: impl Iterator<Item = Option<&'r Round>>) -> Option<Round> {
    let mut joined: Option<Round> = None;
    let mut is_open = false;
    for part in parts {
        let Some(part) = part else {
            is_open = true;
            continue;
        };
        is_open |= part.ended_s.is_none();
        match &mut joined {
            None => joined = Some(part.clone()),
            Some(round) => {
                round.started_s = round.started_s.min(part.started_s);
                round.ended_s = round.ended_s.max(part.ended_s);
                round.counts.add(&part.counts);
            }
        }
    }
    joined.map(|round| Round { ended_s: round.ended_s.filter(|_| !is_open), ..round })
}

/// Sums per day over all partitions, oldest first.
pub fn joined_days(partitions: &[&dyn State], query: DayQuery) -> Result<Vec<DayCounts>> {
    let mut joined: BTreeMap<i64, DayCounts> = BTreeMap::new();
    for state in partitions {
        for part in state.days(query)? {
            let day = joined
                .entry(part.day)
                .or_insert(DayCounts { day: part.day, ..DayCounts::default() });
            day.visits += part.visits;
            day.versions += part.versions;
            day.problems += part.problems;
            day.raw_bytes += part.raw_bytes;
            day.received_bytes += part.received_bytes;
            day.stored_bytes += part.stored_bytes;
        }
    }
    Ok(joined.into_values().collect())
}
