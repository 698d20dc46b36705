//! Cross-validation over sources: constants are chosen on other sources than they are tried on.

use std::collections::BTreeMap;

use nenrin_revisit::{AutoPolicy, AutoTuning, ClockTuning, Limits, PolicySpec};
use serde_json::{Value, json};

use super::{Measures, Spending, Tally, walk, walk_scheduled, walk_with};
use crate::updates::UpdateLog;

/// Shares of the chance of no change that neighbours must reach, among which other sources choose.
const NEWS: [f64; 3] = [0.5, 0.7, 0.85];

/// Some sources, and all others.
struct Fold {
    sources: Vec<u32>,
    test: UpdateLog,
    others: UpdateLog,
}

/// Constants of `auto` among which other sources choose.
fn candidates() -> Vec<(&'static str, AutoTuning)> {
    let usual = AutoTuning::default();
    vec![
        ("as shipped", usual),
        ("quick price", AutoTuning { price_days: 10.0, caution: 2.5, ..usual }),
        ("slow price", AutoTuning { price_days: 40.0, caution: 1.0, ..usual }),
        ("less curious", AutoTuning { curiosity: 0.5, ..usual }),
        ("clocks held twice as firmly", AutoTuning { clocks: held(2.0), ..usual }),
        ("clocks held half as firmly", AutoTuning { clocks: held(0.5), ..usual }),
    ]
}

/// Clocks that follow what visits show more or less than usual.
fn held(firmness: f32) -> ClockTuning {
    let usual = ClockTuning::default();
    ClockTuning {
        server_hold: usual.server_hold * firmness,
        group_hold: usual.group_hold * firmness,
        ..usual
    }
}

/// Sources in an order that has nothing to do with their numbers, dealt out one by one.
fn deal(log: &UpdateLog, folds: usize) -> Vec<Vec<u32>> {
    let mut sources: Vec<u32> = log.pages.iter().map(|page| page.source).collect();
    sources.sort_unstable();
    sources.dedup();
    sources.sort_by_key(|source| *blake3::hash(&source.to_le_bytes()).as_bytes());
    let mut dealt = vec![Vec::new(); folds.min(sources.len().max(2))];
    let hands = dealt.len();
    sources.into_iter().enumerate().for_each(|(at, source)| dealt[at % hands].push(source));
    dealt.retain(|sources| !sources.is_empty());
    dealt
}

fn split(log: &UpdateLog, folds: usize) -> Vec<Fold> {
    let some = |wanted: &dyn Fn(u32) -> bool| UpdateLog {
        window: log.window,
        pages: log.pages.iter().filter(|page| wanted(page.source)).cloned().collect(),
        left_out: 0,
    };
    deal(log, folds)
        .into_iter()
        .map(|sources| Fold {
            test: some(&|source| sources.contains(&source)),
            others: some(&|source| !sources.contains(&source)),
            sources,
        })
        .collect()
}

/// `auto` against each rival at the rival's visits, on sources that had no say in its constants.
///
/// Twice: `gain` is of the experiment itself, all sources together at the rival's visits in all, each
/// part counted in the run with the constants that the other parts chose; `gain_alone` is of each
/// part run for itself at the visits that the rival made on it.
pub(super) fn cross_validate(log: &UpdateLog, policies: &[PolicySpec], folds: usize) -> Value {
    let folds = split(log, folds);
    let is_ours = |spec: &&PolicySpec| matches!(spec, PolicySpec::Auto { .. });
    let mut ours: Vec<PolicySpec> = policies.iter().filter(is_ours).copied().collect();
    if ours.is_empty() {
        ours.push(PolicySpec::AUTO);
    }
    let rivals = policies.iter().filter(|spec| !is_ours(spec));
    let compared = rivals.flat_map(|rival| ours.iter().map(|own| against(log, &folds, own, rival)));
    json!({
        "pages": log.pages.len(),
        "versions": log.versions(),
        "folds": folds.len(),
        "compared": compared.collect::<Vec<_>>(),
    })
}

/// One comparison: our policy's knobs and what it is to reach.
struct Comparison<'a> {
    own: &'a PolicySpec,
    rival: &'a PolicySpec,
}

impl Comparison<'_> {
    fn fair(&self) -> f64 {
        match self.own {
            PolicySpec::Auto { fair, .. } => *fair,
            _ => 0.0,
        }
    }

    /// The measure that the policy is for.
    fn aim(&self, measures: &Measures) -> f64 {
        if self.fair() > 0.0 { measures.coverage } else { measures.coverage_total }
    }

    /// How much a part counts in that measure.
    fn weight(&self, log: &UpdateLog) -> f64 {
        let weight = if self.fair() > 0.0 { log.pages.len() as u64 } else { log.versions() };
        weight as f64
    }

    fn ours_on(&self, log: &UpdateLog, tuning: AutoTuning, visits: u64) -> Vec<Tally> {
        let last_modified = matches!(self.own, PolicySpec::Auto { last_modified: true, .. });
        let limits = Limits::experiment(log.window.resolution_s);
        let mut policy = AutoPolicy::new(self.fair(), last_modified, limits, tuning);
        walk_with(log, &mut policy, Some(visits)).0
    }

    fn rival_on(&self, log: &UpdateLog) -> Vec<Tally> {
        walk(log, self.rival, None).0
    }

    /// The number of the candidate that does best on some sources.
    fn choose(&self, log: &UpdateLog) -> usize {
        let visits = Measures::of(log, &self.rival_on(log)).visits;
        let reached = candidates()
            .into_iter()
            .map(|(_, tuning)| self.aim(&Measures::of(log, &self.ours_on(log, tuning, visits))));
        let best = reached.enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
        best.map_or(0, |(number, _)| number)
    }
}

/// What a policy reached on the pages of a fold in a run over all.
fn part(log: &UpdateLog, tallies: &[Tally], fold: &Fold) -> Measures {
    let pages = log.pages.iter().zip(tallies);
    let inside = pages.filter(|(page, _)| fold.sources.contains(&page.source));
    Measures::of_pages(log.window.resolution_s, inside)
}

fn against(log: &UpdateLog, folds: &[Fold], own: &PolicySpec, rival: &PolicySpec) -> Value {
    let comparison = Comparison { own, rival };
    let aim = |measures: &Measures| comparison.aim(measures);
    let theirs_on_all = comparison.rival_on(log);
    let visits = Measures::of(log, &theirs_on_all).visits;
    let mut runs = BTreeMap::<usize, Vec<Tally>>::new();
    let (mut gain, mut gain_alone, mut visits_made, mut reports) = (0.0, 0.0, 0, Vec::new());
    for fold in folds {
        let number = comparison.choose(&fold.others);
        let (chosen, tuning) = candidates()[number];
        let theirs = part(log, &theirs_on_all, fold);
        let run = runs.entry(number).or_insert_with(|| comparison.ours_on(log, tuning, visits));
        let ours = part(log, run, fold);
        let alone = comparison.ours_on(&fold.test, tuning, theirs.visits);
        let alone = Measures::of(&fold.test, &alone);
        let weight = comparison.weight(&fold.test) / comparison.weight(log).max(1.0);
        gain += weight * (aim(&ours) - aim(&theirs));
        gain_alone += weight * (aim(&alone) - aim(&theirs));
        visits_made += ours.visits;
        reports.push(json!({
            "sources": fold.sources,
            "pages": fold.test.pages.len(),
            "versions": fold.test.versions(),
            "chosen": chosen,
            "rival": aim(&theirs),
            "rival_visits": theirs.visits,
            "ours": aim(&ours),
            "visits": ours.visits,
            "ours_alone": aim(&alone),
            "visits_alone": alone.visits,
        }));
    }
    json!({
        "policy": own.to_string(),
        "rival": rival.to_string(),
        "measure": if comparison.fair() > 0.0 { "coverage" } else { "coverage_total" },
        "visits_budget": visits,
        "visits": visits_made,
        "gain": gain,
        "gain_alone": gain_alone,
        "folds": reports,
    })
}

/// Versions and visits of some sources.
#[derive(Debug, Clone, Copy, Default)]
struct Got {
    versions: f64,
    found: f64,
    visits: f64,
    pages: f64,
}

fn got(log: &UpdateLog, tallies: &[Tally]) -> BTreeMap<u32, Got> {
    let mut by_source = BTreeMap::<u32, Got>::new();
    for (page, tally) in log.pages.iter().zip(tallies) {
        let got = by_source.entry(page.source).or_default();
        got.versions += page.updates.len() as f64;
        got.found += tally.found.len() as f64;
        got.visits += f64::from(tally.visits);
        got.pages += 1.0;
    }
    by_source
}

fn sum_of(by_source: &BTreeMap<u32, Got>, wanted: impl Fn(u32) -> bool) -> Got {
    let chosen = by_source.iter().filter(|(source, _)| wanted(**source));
    chosen.fold(Got::default(), |sum, (_, got)| Got {
        versions: sum.versions + got.versions,
        found: sum.found + got.found,
        visits: sum.visits + got.visits,
        pages: sum.pages + got.pages,
    })
}

impl Got {
    /// Versions that the signal brought beyond what as many visits more would have brought at the
    /// policy's usual yield, per version.
    fn net(&self, alone: &Self) -> f64 {
        let usual = alone.found / (alone.visits - alone.pages).max(1.0);
        let more = self.visits - alone.visits;
        (self.found - alone.found - usual * more) / alone.versions.max(1.0)
    }
}

/// What pages that change together gain, on sources that had no say in when they pull.
pub(super) fn cross_validate_pulls(
    log: &UpdateLog,
    policies: &[PolicySpec],
    folds: usize,
) -> Value {
    let dealt = deal(log, folds);
    let pulled = policies.iter().map(|spec| pulls_of(log, spec, &dealt));
    json!({
        "pages": log.pages.len(),
        "versions": log.versions(),
        "folds": dealt.len(),
        "together": pulled.collect::<Vec<_>>(),
    })
}

fn pulls_of(log: &UpdateLog, spec: &PolicySpec, dealt: &[Vec<u32>]) -> Value {
    let alone = got(log, &walk_scheduled(log, spec, None, Spending::Free).tallies);
    let together = NEWS.map(|news| {
        let crawled = walk_scheduled(log, spec, Some(news), Spending::Free);
        (news, got(log, &crawled.tallies))
    });
    let (mut held_out, mut reports) = (BTreeMap::new(), Vec::new());
    for sources in dealt {
        let others = |source: u32| !sources.contains(&source);
        let usual = sum_of(&alone, others);
        let value = |runs: &BTreeMap<u32, Got>| sum_of(runs, others).net(&usual);
        let best = together.iter().max_by(|a, b| value(&a.1).total_cmp(&value(&b.1)));
        let Some((news, runs)) = best else { continue };
        let inside = |source: u32| sources.contains(&source);
        held_out.extend(runs.iter().filter(|(source, _)| inside(**source)).map(|(s, g)| (*s, *g)));
        let mut fold = gain(&sum_of(&alone, inside), &sum_of(runs, inside));
        fold["sources"] = json!(sources);
        fold["news"] = json!(news);
        reports.push(fold);
    }
    let mut all = gain(&sum_of(&alone, |_| true), &sum_of(&held_out, |_| true));
    all["policy"] = json!(spec.to_string());
    all["folds"] = json!(reports);
    all
}

fn gain(alone: &Got, together: &Got) -> Value {
    json!({
        "visits": [alone.visits, together.visits],
        "coverage_total": [alone.found / alone.versions.max(1.0), together.found / together.versions.max(1.0)],
        "gain": (together.found - alone.found) / alone.versions.max(1.0),
        "gain_beyond_its_visits": together.net(alone),
    })
}
