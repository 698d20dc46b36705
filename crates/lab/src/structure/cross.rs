//! Cross-validation: what `auto` finds on sites on which its constants were not chosen.

use nenrin_structure::AutoOptions;
use serde::Serialize;

use crate::structure::StructureOptions;
use crate::structure::methods::{Method, Tally, count, sum, visits};
use crate::structure::prepared::Site;
use crate::structure::rounds::{AutoLearner, Budget};

/// With more sites than this, several share a fold.
const FOLDS_MAX: usize = 10;

/// One site (or several, when there are many) left out.
#[derive(Debug, Serialize)]
pub(crate) struct Fold {
    /// The sites left out.
    pub(crate) sites: Vec<String>,
    /// The constants that did best on all others.
    pub(crate) chosen: String,
    /// Their coverage there, mean over the budgets of A, B and C.
    pub(crate) others: f64,
    /// What they find on the sites left out, when all sites share A's budget.
    pub(crate) held_out: Tally,
    /// The same with the constants in use.
    pub(crate) as_they_are: Tally,
}

/// All folds, and their sums.
#[derive(Debug, Serialize)]
pub(crate) struct CrossResults {
    /// Every set of constants tried: its name, and its mean coverage at the visits of A, B and C over
    /// all sites.
    pub(crate) candidates: Vec<(String, f64)>,
    pub(crate) folds: Vec<Fold>,
    pub(crate) held_out: Tally,
    pub(crate) as_they_are: Tally,
}

/// The constants that are tried: those in use, and each of the less certain ones changed both ways.
fn candidates(base: &AutoOptions) -> Vec<(String, AutoOptions)> {
    type Constant = (&'static str, fn(&mut AutoOptions) -> &mut f64);
    let constants: [Constant; 8] = [
        ("shared_spread_prior", |options| &mut options.shared_spread_prior),
        ("spread_prior_rounds", |options| &mut options.spread_prior_rounds),
        ("page_spread_prior", |options| &mut options.page_spread_prior),
        ("guide_variance", |options| &mut options.guide_variance),
        ("family_variance", |options| &mut options.family_variance),
        ("history_variance", |options| &mut options.history_variance),
        ("round_server_variance", |options| &mut options.round_server_variance),
        ("drift", |options| &mut options.drift),
    ];
    let mut candidates = vec![("as they are".to_owned(), base.clone())];
    for (name, constant) in constants {
        for factor in [0.25, 4.0] {
            let mut options = base.clone();
            let value = constant(&mut options);
            *value *= factor;
            candidates.push((format!("{name} {:.3}", *value), options));
        }
    }
    candidates
}

/// Tallies site by site over the measured rounds, at the visits of `method` on the sites that take
/// part.
fn at_visits_of(
    method: Method,
    sites: &[Site],
    takes_part: &dyn Fn(&Site) -> bool,
    auto: &AutoOptions,
    options: &StructureOptions,
) -> Vec<Tally> {
    let visit_count = sites.iter().map(|site| site.visits.len()).max().unwrap_or(0);
    let first = options.learning_visits.saturating_sub(1);
    let mut learner = AutoLearner::new(sites, auto);
    let mut totals = vec![Tally::default(); sites.len()];
    for from in 0..visit_count.saturating_sub(1) {
        let mut budget = Budget::Everything;
        if from >= first {
            let budgeted = visits(method, sites, from, from + 1);
            let theirs = budgeted.iter().filter(|page| takes_part(&sites[page.server as usize]));
            budget = Budget::Shared(theirs.count());
        }
        let visited = learner.round_of(sites, takes_part, from, from + 1, &budget);
        if from >= first {
            let tallies = count(sites, from, from + 1, &visited);
            totals.iter_mut().zip(tallies).for_each(|(total, tally)| total.add(tally));
        }
    }
    totals
}

fn mean_coverage(
    sites: &[Site],
    takes_part: &dyn Fn(&Site) -> bool,
    auto: &AutoOptions,
    options: &StructureOptions,
) -> f64 {
    let methods = [Method::A, Method::B, Method::C];
    let coverage = |method| {
        let tallies = at_visits_of(method, sites, takes_part, auto, options);
        let taking_part = sites.iter().zip(tallies).filter(|(site, _)| takes_part(site));
        sum(&taking_part.map(|(_, tally)| tally).collect::<Vec<_>>()).coverage()
    };
    methods.map(coverage).iter().sum::<f64>() / methods.len() as f64
}

/// For every fold the best constants on the other sites, and what they find on the fold.
pub(crate) fn cross_validate(sites: &[Site], options: &StructureOptions) -> CrossResults {
    let candidates = candidates(&options.auto);
    let everyone = |_: &Site| true;
    let per_site: Vec<Vec<Tally>> = candidates
        .iter()
        .map(|(_, auto)| at_visits_of(Method::A, sites, &everyone, auto, options))
        .collect();
    let fold_count = sites.len().min(FOLDS_MAX);
    let folds: Vec<Fold> = (0..fold_count)
        .map(|fold| {
            let left_out = |site: &Site| site.number as usize % fold_count == fold;
            let (mut best, mut others) = (0, f64::MIN);
            for (at, (_, auto)) in candidates.iter().enumerate() {
                let coverage = mean_coverage(sites, &|site| !left_out(site), auto, options);
                if coverage > others {
                    (best, others) = (at, coverage);
                }
            }
            let of_fold = |tallies: &[Tally]| {
                let theirs = sites.iter().zip(tallies).filter(|(site, _)| left_out(site));
                sum(&theirs.map(|(_, &tally)| tally).collect::<Vec<_>>())
            };
            Fold {
                sites: sites.iter().filter(|s| left_out(s)).map(|s| s.name.clone()).collect(),
                chosen: candidates[best].0.clone(),
                others,
                held_out: of_fold(&per_site[best]),
                as_they_are: of_fold(&per_site[0]),
            }
        })
        .collect();
    let total = |tally: fn(&Fold) -> Tally| sum(&folds.iter().map(tally).collect::<Vec<_>>());
    CrossResults {
        held_out: total(|fold| fold.held_out),
        as_they_are: total(|fold| fold.as_they_are),
        candidates: candidates
            .iter()
            .map(|(name, auto)| (name.clone(), mean_coverage(sites, &everyone, auto, options)))
            .collect(),
        folds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::prepared::prepare;
    use crate::structure::synthetic::SyntheticWeb;

    #[test]
    fn every_site_is_left_out_once_and_counted_once() {
        let web = SyntheticWeb { servers: 3, people: 3, pages: 3, ..SyntheticWeb::default() };
        let sites = prepare(&web.history()).unwrap();
        let options = StructureOptions::default();
        let cross = cross_validate(&sites, &options);
        assert_eq!(cross.folds.len(), 3);
        let changed: usize = cross.folds.iter().map(|fold| fold.held_out.changed).sum();
        assert!(changed > 0);
        assert_eq!(changed, cross.as_they_are.changed);
        assert!(cross.candidates.len() > 10);
    }
}
