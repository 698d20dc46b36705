//! The first policy against each of the others at its visits, as the crawler has them: together,
//! each source alone, and under the same budget per day.

use std::collections::BTreeMap;

use nenrin_revisit::{NEWS, PolicySpec};
use serde_json::{Value, json};

use super::{Measures, Spending, Tally, is_ours, visits_by_source, walk_scheduled};
use crate::{parallel, updates::UpdateLog};

/// Draws of sources from which an interval is made, and the seed of the first.
const DRAWS: usize = 2_000;
const SEED: u64 = 0x6e65_6e72_696e;

/// Versions, and how many of them each of the two got, by source.
type BySource = BTreeMap<u32, [f64; 3]>;

/// Holds the first policy against the others.
pub(super) fn against_each(log: &UpdateLog, policies: &[PolicySpec]) -> Value {
    let (own, rivals) = policies.split_first().unwrap_or((&PolicySpec::AUTO, &[]));
    let compared = parallel::each(rivals, parallel::cores(), |rival| against(log, own, rival));
    json!({
        "pages": log.pages.len(),
        "versions": log.versions(),
        "resolution_s": log.window.resolution_s,
        "policy": own.to_string(),
        "compared": compared,
    })
}

fn run(log: &UpdateLog, spec: &PolicySpec, spending: Spending<'_>) -> Vec<Tally> {
    walk_scheduled(log, spec, is_ours(spec).then_some(NEWS), spending).tallies
}

fn against(log: &UpdateLog, own: &PolicySpec, rival: &PolicySpec) -> Value {
    let theirs = run(log, rival, Spending::Free);
    let visits = Measures::of(log, &theirs).visits;
    let mut by_source = BTreeMap::<u32, u64>::new();
    for (page, tally) in log.pages.iter().zip(&theirs) {
        *by_source.entry(page.source).or_default() += u64::from(tally.visits);
    }
    let together = run(log, own, Spending::Together(visits));
    let alone = run(log, own, Spending::Each(&by_source));
    let a_day = visits_by_source(log, &theirs);
    let (theirs_a_day, ours_a_day) =
        (run(log, rival, Spending::PerDay(&a_day)), run(log, own, Spending::PerDay(&a_day)));
    json!({
        "rival": rival.to_string(),
        "visits": visits,
        "together": held(log, &theirs, &together),
        "alone": held(log, &theirs, &alone),
        "per_day": held(log, &theirs_a_day, &ours_a_day),
    })
}

/// What the two reached, and by how much ours is better: in all, and as the mean of the sources.
fn held(log: &UpdateLog, theirs: &[Tally], ours: &[Tally]) -> Value {
    let mut sources = BySource::new();
    for ((page, theirs), ours) in log.pages.iter().zip(theirs).zip(ours) {
        let sums = sources.entry(page.source).or_default();
        sums[0] += page.updates.len() as f64;
        sums[1] += theirs.found.len() as f64;
        sums[2] += ours.found.len() as f64;
    }
    sources.retain(|_, sums| sums[0] > 0.0);
    let share = |sums: &[f64; 3], at: usize| sums[at] / sums[0];
    let by_source = sources.iter().map(|(source, sums)| {
        json!({
            "source": source,
            "versions": sums[0],
            "rival": share(sums, 1),
            "ours": share(sums, 2),
        })
    });
    let by_source: Vec<Value> = by_source.collect();
    let all: Vec<[f64; 3]> = sources.into_values().collect();
    let gain_of = |sums: &[f64; 3]| (sums[2] - sums[1]) / sums[0];
    let total = |some: &[[f64; 3]]| {
        let sum = |at: usize| some.iter().map(|sums| sums[at]).sum::<f64>();
        (sum(2) - sum(1)) / sum(0).max(1.0)
    };
    let mean = |some: &[[f64; 3]]| some.iter().map(gain_of).sum::<f64>() / some.len() as f64;
    let (rival, own) = (Measures::of(log, theirs), Measures::of(log, ours));
    json!({
        "rival": { "coverage_total": rival.coverage_total, "coverage": rival.coverage, "visits": rival.visits },
        "ours": { "coverage_total": own.coverage_total, "coverage": own.coverage, "visits": own.visits },
        "gain": total(&all),
        "gain_interval": interval(&all, total),
        "mean_gain": mean(&all),
        "mean_gain_interval": interval(&all, mean),
        "sources": all.len(),
        "lost": all.iter().filter(|sums| gain_of(sums) < 0.0).count(),
        "by_source": by_source,
    })
}

/// The range of the middle 90% of draws of the sources (bootstrap).
fn interval(sources: &[[f64; 3]], value: impl Fn(&[[f64; 3]]) -> f64) -> [f64; 2] {
    let mut state = SEED;
    let mut draw = || {
        // SplitMix64: the same draws in every process.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        sources[((mixed ^ (mixed >> 31)) % sources.len() as u64) as usize]
    };
    let mut values: Vec<f64> =
        (0..DRAWS).map(|_| value(&sources.iter().map(|_| draw()).collect::<Vec<_>>())).collect();
    values.sort_by(f64::total_cmp);
    [values[DRAWS / 20], values[DRAWS - 1 - DRAWS / 20]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_holds_the_value_and_narrows_where_sources_agree() {
        let mean = |some: &[[f64; 3]]| some.iter().map(|s| s[2]).sum::<f64>() / some.len() as f64;
        let alike = [[1.0, 0.0, 0.5]; 20];
        assert_eq!(interval(&alike, mean), [0.5, 0.5]);
        let apart: Vec<[f64; 3]> = (0..20).map(|n| [1.0, 0.0, f64::from(n)]).collect();
        let [low, high] = interval(&apart, mean);
        assert!(low < 9.5 && 9.5 < high && high - low < 8.0, "{low} {high}");
    }
}
