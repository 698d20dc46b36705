//! The numbers of the experiment: the paper's tables and figures, and rounds under a budget.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::structure::StructureOptions;
use crate::structure::cross::{CrossResults, cross_validate};
use crate::structure::methods::{Method, Tally, count, sum, tallies, visits};
use crate::structure::prepared::Site;
use crate::structure::rounds::{AutoLearner, Budget, Rival};

/// Cuts of Cho's method in the paper's figures.
const CHO_SHARES: [f64; 10] = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0];
const DEPTHS: u32 = 12;
/// Budgets of the curves, as shares of all pages.
const CURVE_SHARES: [f64; 13] =
    [0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];

#[derive(Debug, Serialize)]
pub(crate) struct Results {
    pub(crate) sites: Vec<SiteRow>,
    pub(crate) spans: Vec<SpanResult>,
    pub(crate) by_site: Vec<SiteMethods>,
    pub(crate) update_counts: Vec<usize>,
    pub(crate) rounds: Option<RoundResults>,
    pub(crate) cross_validation: Option<CrossResults>,
}

#[derive(Debug, Serialize)]
pub(crate) struct SiteRow {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) visits: usize,
    pub(crate) pages: usize,
    pub(crate) unreached: usize,
    pub(crate) links: usize,
    pub(crate) changed_share: f64,
}

/// The results of a method, with its rates written out for readers of the file.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct MethodRow {
    pub(crate) name: String,
    #[serde(flatten)]
    pub(crate) tally: Tally,
    pub(crate) update_rate: f64,
    pub(crate) coverage: f64,
    pub(crate) visited_share: f64,
}

impl MethodRow {
    fn new(name: impl Into<String>, tally: Tally) -> Self {
        Self {
            name: name.into(),
            update_rate: tally.update_rate(),
            coverage: tally.coverage(),
            visited_share: tally.visited_share(),
            tally,
        }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct SpanResult {
    /// Number of visits between the two states compared.
    pub(crate) span: usize,
    pub(crate) mean_days: f64,
    /// Table 2: the share of changed pages, by kind of site.
    pub(crate) changed_by_kind: BTreeMap<String, f64>,
    /// Table 3: servers by their top page.
    pub(crate) tops: TopRow,
    pub(crate) methods: Vec<MethodRow>,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct TopRow {
    pub(crate) changed_pages_of_servers_with_changed_top: f64,
    pub(crate) update_rate_in_servers_with_changed_top: f64,
    pub(crate) update_rate_of_all: f64,
    pub(crate) servers_with_changed_top: f64,
}

#[derive(Debug, Serialize)]
pub(crate) struct SiteMethods {
    pub(crate) site: String,
    pub(crate) methods: Vec<MethodRow>,
}

#[derive(Debug, Serialize)]
pub(crate) struct RoundResults {
    pub(crate) learning_visits: usize,
    pub(crate) measured_rounds: usize,
    /// One budget a round over all sites: at the visits of A, B and C.
    pub(crate) shared_budget: Vec<BudgetRow>,
    /// Each site with its own budget: at the visits of A, B and C there.
    pub(crate) site_budget: Vec<SiteBudgetRow>,
    pub(crate) stopping: Vec<StopRow>,
    pub(crate) default_stop: StopRow,
    /// Coverage at shares of all pages, one budget over all sites.
    pub(crate) curves: BTreeMap<String, Vec<(f64, f64)>>,
}

#[derive(Debug, Serialize)]
pub(crate) struct BudgetRow {
    pub(crate) method: String,
    pub(crate) visits: usize,
    pub(crate) changed: usize,
    pub(crate) own: f64,
    pub(crate) auto: f64,
    pub(crate) rivals: BTreeMap<String, f64>,
    pub(crate) perfect: f64,
}

#[derive(Debug, Serialize)]
pub(crate) struct SiteBudgetRow {
    pub(crate) site: String,
    pub(crate) method: String,
    pub(crate) visits: usize,
    pub(crate) changed: usize,
    pub(crate) own_found: usize,
    pub(crate) auto_found: usize,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct StopRow {
    pub(crate) stop_below: f64,
    pub(crate) visits: usize,
    pub(crate) coverage: f64,
    pub(crate) update_rate: f64,
    pub(crate) share_of_a_visits: f64,
    pub(crate) share_of_a_coverage: f64,
}

pub(crate) fn results(sites: &[Site], options: &StructureOptions) -> Results {
    let visits = sites.iter().map(|site| site.visits.len()).max().unwrap_or(0);
    Results {
        sites: sites.iter().map(site_row).collect(),
        spans: (1..visits).map(|span| span_result(sites, span, visits, options)).collect(),
        by_site: by_site(sites, visits),
        update_counts: update_counts(sites),
        rounds: (visits > options.learning_visits).then(|| round_results(sites, visits, options)),
        cross_validation: (options.cross_validate && visits > options.learning_visits)
            .then(|| cross_validate(sites, options)),
    }
}

fn site_row(site: &Site) -> SiteRow {
    let mut tally = Tally::default();
    for from in 0..site.visits.len().saturating_sub(1) {
        tally.add(sum(&tallies(std::slice::from_ref(site), from, from + 1)));
    }
    let last = site.visits.last();
    let reached = last.map_or(0, |visit| visit.reached.len());
    let there = last.map_or(0, |visit| visit.content.iter().flatten().count());
    SiteRow {
        name: site.name.clone(),
        kind: site.kind.clone(),
        visits: site.visits.len(),
        pages: reached,
        unreached: there - reached.min(there),
        links: last.map_or(0, |visit| visit.graph.link_count()),
        changed_share: if tally.pages == 0 {
            0.0
        } else {
            tally.changed as f64 / tally.pages as f64
        },
    }
}

fn compared_methods() -> Vec<Method> {
    let mut methods = vec![Method::Everything, Method::A, Method::B, Method::C, Method::CThenB];
    methods.extend((1..=DEPTHS).map(Method::BreadthFirst));
    for share in CHO_SHARES {
        methods.extend([
            Method::Cho(share),
            Method::ChoA(share),
            Method::ChoB(share),
            Method::ChoC(share),
        ]);
    }
    methods
}

fn span_result(
    sites: &[Site],
    span: usize,
    visit_count: usize,
    options: &StructureOptions,
) -> SpanResult {
    let pairs: Vec<(usize, usize)> =
        (0..visit_count - span).map(|from| (from, from + span)).collect();
    let over_pairs = |visited: &mut dyn FnMut(usize, usize) -> Vec<nenrin_structure::PageRef>| {
        let mut total = Tally::default();
        for &(from, to) in &pairs {
            total.add(sum(&count(sites, from, to, &visited(from, to))));
        }
        total
    };
    let mut methods: Vec<MethodRow> = compared_methods()
        .into_iter()
        .map(|method| {
            let tally = over_pairs(&mut |from, to| visits(method, sites, from, to));
            MethodRow::new(method.name(), tally)
        })
        .collect();
    let auto = over_pairs(&mut |from, to| {
        let mut learner = AutoLearner::new(sites, &options.auto);
        for &(earlier, later) in pairs.iter().filter(|&&(_, later)| later <= from) {
            learner.round(sites, earlier, later, &Budget::Everything);
        }
        learner.round(sites, from, to, &Budget::StopBelow(options.auto.stop_below))
    });
    methods.push(MethodRow::new("auto", auto));
    SpanResult {
        span,
        mean_days: mean_days(sites, span),
        changed_by_kind: changed_by_kind(sites, &pairs),
        tops: top_row(sites, &pairs),
        methods,
    }
}

fn mean_days(sites: &[Site], span: usize) -> f64 {
    let gaps: Vec<f64> = sites
        .iter()
        .flat_map(|site| {
            let late = site.visits.iter().skip(span);
            site.visits.iter().zip(late).map(|(a, b)| (b.at_s - a.at_s) as f64 / 86_400.0)
        })
        .collect();
    if gaps.is_empty() { 0.0 } else { gaps.iter().sum::<f64>() / gaps.len() as f64 }
}

fn changed_by_kind(sites: &[Site], pairs: &[(usize, usize)]) -> BTreeMap<String, f64> {
    let mut kinds: BTreeMap<String, Tally> = BTreeMap::new();
    for &(from, to) in pairs {
        for (site, tally) in sites.iter().zip(tallies(sites, from, to)) {
            kinds.entry(site.kind.clone()).or_default().add(tally);
            kinds.entry("total".to_owned()).or_default().add(tally);
        }
    }
    let share = |tally: Tally| tally.changed as f64 / (tally.pages.max(1)) as f64;
    kinds.into_iter().map(|(kind, tally)| (kind, share(tally))).collect()
}

fn top_row(sites: &[Site], pairs: &[(usize, usize)]) -> TopRow {
    let (mut all, mut with_top) = (Tally::default(), Tally::default());
    let (mut servers, mut servers_with_top) = (0usize, 0usize);
    for &(from, to) in pairs {
        for (site, tally) in sites.iter().zip(tallies(sites, from, to)) {
            if tally.pages == 0 {
                continue;
            }
            let graph = &site.visits[from].graph;
            // A frameset's frames count as top pages.
            let tops = graph.top().into_iter().flat_map(|top| graph.frames(top).chain([top]));
            let top_changed = tops.into_iter().any(|top| site.is_changed(from, to, top));
            all.add(tally);
            servers += 1;
            if top_changed {
                with_top.add(tally);
                servers_with_top += 1;
            }
        }
    }
    let share = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
    TopRow {
        changed_pages_of_servers_with_changed_top: share(with_top.changed, all.changed),
        update_rate_in_servers_with_changed_top: share(with_top.changed, with_top.pages),
        update_rate_of_all: share(all.changed, all.pages),
        servers_with_changed_top: share(servers_with_top, servers),
    }
}

fn by_site(sites: &[Site], visit_count: usize) -> Vec<SiteMethods> {
    let methods = [Method::Everything, Method::A, Method::B, Method::C];
    let mut totals = vec![vec![Tally::default(); methods.len()]; sites.len()];
    for from in 0..visit_count.saturating_sub(1) {
        for (at, &method) in methods.iter().enumerate() {
            let tallies = count(sites, from, from + 1, &visits(method, sites, from, from + 1));
            for (total, tally) in totals.iter_mut().zip(tallies) {
                total[at].add(tally);
            }
        }
    }
    let row = |(site, totals): (&Site, Vec<Tally>)| SiteMethods {
        site: site.name.clone(),
        methods: methods.iter().zip(totals).map(|(m, t)| MethodRow::new(m.name(), t)).collect(),
    };
    sites.iter().zip(totals).map(row).collect()
}

/// How many pages changed how often, of those that were there at every visit (figs 10 and 11).
fn update_counts(sites: &[Site]) -> Vec<usize> {
    let most = sites.iter().map(|site| site.visits.len()).max().unwrap_or(1);
    let mut counts = vec![0; most];
    for site in sites {
        for page in site.visits.iter().take(1).flat_map(|visit| &visit.reached) {
            let at = page.0 as usize;
            if site.visits.iter().all(|visit| visit.content[at].is_some()) {
                let rounds = 0..site.visits.len() - 1;
                let changes = rounds.filter(|&v| site.is_changed(v, v + 1, *page)).count();
                counts[changes] += 1;
            }
        }
    }
    counts
}

/// The rounds that are measured: pairs of neighbouring visits after the learning ones.
struct Measured<'a> {
    sites: &'a [Site],
    pairs: Vec<(usize, usize)>,
    learner: AutoLearner,
    options: &'a StructureOptions,
}

impl Measured<'_> {
    fn tally(
        &self,
        visited: &mut dyn FnMut(usize, usize) -> Vec<nenrin_structure::PageRef>,
    ) -> Vec<Tally> {
        let mut totals = vec![Tally::default(); self.sites.len()];
        for &(from, to) in &self.pairs {
            let tallies = count(self.sites, from, to, &visited(from, to));
            totals.iter_mut().zip(tallies).for_each(|(total, tally)| total.add(tally));
        }
        totals
    }

    fn auto(&self, budget: &dyn Fn(usize, usize) -> Budget) -> Vec<Tally> {
        let mut learner = self.learner.clone();
        self.tally(&mut |from, to| learner.round(self.sites, from, to, &budget(from, to)))
    }

    fn method(&self, method: Method) -> Vec<Tally> {
        self.tally(&mut |from, to| visits(method, self.sites, from, to))
    }

    /// The coverage of a rival, averaged over random orders.
    fn rival(&self, rival: Rival, budget: &dyn Fn(usize, usize) -> usize) -> f64 {
        let runs = self.options.random_runs.max(1);
        let coverages = (0..runs as u64).map(|run| {
            let seed = self.options.seed.wrapping_add(run);
            let tallies = self
                .tally(&mut |from, to| rival.visits(self.sites, from, to, budget(from, to), seed));
            sum(&tallies).coverage()
        });
        coverages.sum::<f64>() / runs as f64
    }

    fn perfect(&self, budget: &dyn Fn(usize, usize) -> usize) -> f64 {
        let (mut found, mut changed) = (0, 0);
        for &(from, to) in &self.pairs {
            let there = sum(&tallies(self.sites, from, to)).changed;
            found += there.min(budget(from, to));
            changed += there;
        }
        found as f64 / changed.max(1) as f64
    }

    fn shared_budget(&self, method: Method) -> BudgetRow {
        let budget = |from, to| visits(method, self.sites, from, to).len();
        let own = sum(&self.method(method));
        let rivals = Rival::ALL
            .iter()
            .map(|&(rival, name)| (name.to_owned(), self.rival(rival, &budget)))
            .collect();
        BudgetRow {
            method: method.name(),
            visits: own.visits,
            changed: own.changed,
            own: own.coverage(),
            auto: sum(&self.auto(&|from, to| Budget::Shared(budget(from, to)))).coverage(),
            rivals,
            perfect: self.perfect(&budget),
        }
    }

    fn site_budget(&self, method: Method) -> Vec<SiteBudgetRow> {
        let own = self.method(method);
        let auto = self.auto(&|from, to| {
            let tallies = count(self.sites, from, to, &visits(method, self.sites, from, to));
            Budget::PerSite(tallies.iter().map(|tally| tally.visits).collect())
        });
        let row = |((site, own), auto): ((&Site, Tally), Tally)| SiteBudgetRow {
            site: site.name.clone(),
            method: method.name(),
            visits: own.visits,
            changed: own.changed,
            own_found: own.found,
            auto_found: auto.found,
        };
        self.sites.iter().zip(own).zip(auto).map(row).collect()
    }

    fn stop(&self, stop_below: f64, a: Tally) -> StopRow {
        let auto = sum(&self.auto(&|_, _| Budget::StopBelow(stop_below)));
        StopRow {
            stop_below,
            visits: auto.visits,
            coverage: auto.coverage(),
            update_rate: auto.update_rate(),
            share_of_a_visits: auto.visits as f64 / a.visits.max(1) as f64,
            share_of_a_coverage: auto.found as f64 / a.found.max(1) as f64,
        }
    }

    fn curves(&self) -> BTreeMap<String, Vec<(f64, f64)>> {
        let mut curves: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
        for share in CURVE_SHARES {
            let budget = |from, to| {
                (sum(&tallies(self.sites, from, to)).pages as f64 * share).round() as usize
            };
            let mut add = |name: &str, coverage| {
                curves.entry(name.to_owned()).or_default().push((share, coverage));
            };
            add("auto", sum(&self.auto(&|f, t| Budget::Shared(budget(f, t)))).coverage());
            add("perfect", self.perfect(&budget));
            for (rival, name) in Rival::ALL {
                add(name, self.rival(rival, &budget));
            }
        }
        curves
    }
}

fn round_results(sites: &[Site], visit_count: usize, options: &StructureOptions) -> RoundResults {
    let first = options.learning_visits.saturating_sub(1);
    let mut learner = AutoLearner::new(sites, &options.auto);
    for from in 0..first {
        learner.round(sites, from, from + 1, &Budget::Everything);
    }
    let pairs = (first..visit_count - 1).map(|from| (from, from + 1)).collect();
    let measured = Measured { sites, pairs, learner, options };
    let a = sum(&measured.method(Method::A));
    let methods = [Method::A, Method::B, Method::C];
    RoundResults {
        learning_visits: options.learning_visits,
        measured_rounds: measured.pairs.len(),
        shared_budget: methods.iter().map(|&method| measured.shared_budget(method)).collect(),
        site_budget: methods.iter().flat_map(|&method| measured.site_budget(method)).collect(),
        stopping: options.stop_thresholds.iter().map(|&t| measured.stop(t, a)).collect(),
        default_stop: measured.stop(options.auto.stop_below, a),
        curves: measured.curves(),
    }
}
