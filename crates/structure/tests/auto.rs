//! How the learning plan behaves over rounds.
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::collections::BTreeSet;
use std::sync::Arc;

use nenrin_structure::{
    AutoOptions, AutoRound, AutoServer, Beliefs, Evidence, GatedPlan, Hint, PageIndex, PageRef,
    RoundPlan, Seen, SharedBeliefs, SiteGraph, SiteSplit, Skipped, SplitOptions, Step, run_round,
};
use proptest::prelude::*;

/// `news/n-K.html` and `docs/d-K.html`, alternately, all linked from the top.
fn server(pages: u32) -> Arc<SiteGraph> {
    let mut graph = SiteGraph::new();
    let top = graph.add_page("index.html").unwrap();
    let targets: Vec<PageIndex> = (1..pages)
        .map(|page| {
            let path = if page % 2 == 0 {
                format!("news/n-{page}.html")
            } else {
                format!("docs/d-{page}.html")
            };
            graph.add_page(&path).unwrap()
        })
        .collect();
    graph.set_links(top, &targets, &[]).unwrap();
    graph.set_top(top).unwrap();
    graph.refresh_depths();
    Arc::new(graph)
}

fn pages(graph: &SiteGraph) -> Vec<PageIndex> {
    (0..graph.page_count() as u32).map(PageIndex).collect()
}

struct Site {
    graph: Arc<SiteGraph>,
    beliefs: Beliefs,
    shared: SharedBeliefs,
}

impl Site {
    fn new(pages: u32) -> Self {
        let options = AutoOptions::default();
        Self {
            graph: server(pages),
            beliefs: Beliefs::new(&options),
            shared: SharedBeliefs::new(&options),
        }
    }

    fn begin(&self, options: AutoOptions) -> AutoRound {
        let input =
            AutoServer::new(0, Arc::clone(&self.graph), self.beliefs.clone(), pages(&self.graph));
        AutoRound::new(options, self.shared.clone(), vec![input])
    }

    /// One round; the pages that were visited.
    fn round(&mut self, options: AutoOptions, changed: impl Fn(u32) -> bool) -> Vec<u32> {
        let mut plan = self.begin(options);
        let visited = run_round(&mut plan, usize::MAX, |page| look(&changed, page));
        let (mut beliefs, shared) = plan.finish();
        self.beliefs = beliefs.pop().unwrap().1;
        self.shared = shared;
        visited.into_iter().map(|page| page.page.0).collect()
    }
}

fn look(changed: impl Fn(u32) -> bool, page: PageRef) -> Seen {
    if changed(page.page.0) { Seen::Changed } else { Seen::Same }
}

fn everything() -> AutoOptions {
    AutoOptions { stop_below: 0.0, ..AutoOptions::default() }
}

#[test]
fn a_server_that_changes_as_a_whole_or_not_at_all_is_found_out_by_a_few_probes() {
    let mut site = Site::new(200);
    for round in 0..4 {
        site.round(everything(), |_| round % 2 == 0);
    }
    let quiet = site.round(AutoOptions::default(), |_| false).len();
    let busy = site.round(AutoOptions::default(), |_| true).len();
    assert!(quiet < 20, "{quiet} visits where nothing changed");
    assert_eq!(busy, 200);
}

#[test]
fn a_family_that_changes_is_visited_and_the_other_left_alone() {
    let mut site = Site::new(200);
    for round in 0..4u32 {
        site.round(everything(), |page| page % 2 == round % 2);
    }
    let visited = site.round(AutoOptions::default(), |page| page % 2 == 0 && page > 0);
    let news = visited.iter().filter(|&&page| page % 2 == 0 && page > 0).count();
    assert_eq!(news, 99);
    assert!(visited.len() < 130, "{} visits", visited.len());
}

#[test]
fn pages_that_always_change_come_first() {
    let mut site = Site::new(100);
    let busy = |page: u32| page % 10 == 3;
    for _ in 0..4 {
        site.round(everything(), busy);
    }
    let options = AutoOptions { budget: Some(10), ..AutoOptions::default() };
    let visited = site.round(options, busy);
    assert_eq!(visited.len(), 10);
    assert!(visited.iter().filter(|&&page| busy(page)).count() >= 9, "{visited:?}");
}

#[test]
fn one_budget_over_all_servers_goes_where_pages_change() {
    let options = AutoOptions { budget: Some(110), ..AutoOptions::default() };
    let (quiet, busy) = (Site::new(100), Site::new(100));
    let input = |number, site: &Site| {
        AutoServer::new(number, Arc::clone(&site.graph), site.beliefs.clone(), pages(&site.graph))
    };
    let inputs = vec![input(7, &quiet), input(9, &busy)];
    let mut plan = AutoRound::new(options, quiet.shared.clone(), inputs);
    let visited =
        run_round(
            &mut plan,
            usize::MAX,
            |page| {
                if page.server == 9 { Seen::Changed } else { Seen::Same }
            },
        );
    assert_eq!(visited.iter().filter(|page| page.server == 9).count(), 100);
    assert!(visited.len() <= 110);
}

#[test]
fn several_visits_may_be_under_way_and_the_end_waits_for_them() {
    let site = Site::new(4);
    let mut plan = site.begin(everything());
    let asked: Vec<Step> = (0..4).map(|_| plan.next()).collect();
    assert_eq!(plan.next(), Step::Wait);
    let distinct: BTreeSet<PageRef> = asked
        .iter()
        .map(|step| match step {
            Step::Visit(page) => *page,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(distinct.len(), 4);
    for page in distinct {
        plan.seen(page, Seen::Failed);
    }
    assert_eq!(plan.next(), Step::Done);
}

#[test]
fn a_page_left_out_is_given_its_reason() {
    let mut site = Site::new(100);
    for _ in 0..4 {
        site.round(everything(), |_| false);
    }
    let mut plan = site.begin(AutoOptions::default());
    let visited = run_round(&mut plan, usize::MAX, |_| Seen::Same);
    let left = (0..100).find(|&page| !visited.contains(&PageRef::new(0, page))).unwrap();
    assert!(
        matches!(plan.skipped(PageRef::new(0, left)), Skipped::Unlikely(chance) if chance < 0.06)
    );
    assert_eq!(plan.skipped(PageRef::new(3, 0)), Skipped::NotReached);
    let mut poor = site.begin(AutoOptions { budget: Some(0), ..AutoOptions::default() });
    assert_eq!(poor.next(), Step::Done);
    assert_eq!(poor.skipped(PageRef::new(0, left)), Skipped::NoBudget);
}

#[test]
fn a_feed_that_names_a_page_brings_it_forward() {
    let mut site = Site::new(50);
    for _ in 0..3 {
        site.round(everything(), |_| false);
    }
    let mut input =
        AutoServer::new(0, Arc::clone(&site.graph), site.beliefs.clone(), pages(&site.graph));
    input.evidence[33] = Evidence { hint: Hint::SaysChanged, ..input.evidence[33] };
    let mut plan = AutoRound::new(everything(), site.shared.clone(), vec![input]);
    assert_eq!(plan.next(), Step::Visit(PageRef::new(0, 33)));
}

/// A round over a site of which every fourth page has the menu 7, the others the menu 8, and each a
/// fragment of its own.
fn with_menus(site: &Site) -> AutoRound {
    let mut input =
        AutoServer::new(0, Arc::clone(&site.graph), site.beliefs.clone(), pages(&site.graph));
    let menu = |page: &PageIndex| if page.0.is_multiple_of(4) { 7 } else { 8 };
    input.fragments = input.pages.iter().map(|page| vec![menu(page), 100 + page.0]).collect();
    AutoRound::new(everything(), site.shared.clone(), vec![input])
}

fn chances(plan: &AutoRound) -> [f64; 2] {
    [44, 46].map(|page| plan.chance(PageRef::new(0, page)).unwrap())
}

#[test]
fn a_shared_fragment_that_was_lost_raises_the_pages_that_have_it() {
    let mut site = Site::new(50);
    for _ in 0..3 {
        site.round(everything(), |_| false);
    }
    let mut plan = with_menus(&site);
    plan.saw(PageRef::new(0, 8), Seen::Changed, Some(&[7]));
    let [with_it, without] = chances(&plan);
    assert!(with_it > without + 0.02, "{with_it} {without}");
    assert!(matches!(plan.next(), Step::Visit(page) if page.page.0.is_multiple_of(4)));
    let mut other = with_menus(&site);
    other.saw(PageRef::new(0, 8), Seen::Changed, None);
    let [with_it, without] = chances(&other);
    assert!((with_it - without).abs() < 0.01, "{with_it} {without}");
}

#[test]
fn a_change_that_leaves_shared_fragments_alone_says_less_of_the_others() {
    let site = Site::new(50);
    let [mut own, mut other] = [with_menus(&site), with_menus(&site)];
    own.saw(PageRef::new(0, 8), Seen::Changed, Some(&[108]));
    other.saw(PageRef::new(0, 8), Seen::Changed, None);
    assert!(chances(&own)[0] < chances(&other)[0]);
    assert!((chances(&own)[1] - chances(&other)[1]).abs() < 1e-9);
}

#[test]
fn where_lost_fragments_say_nothing_that_is_learnt_and_kept() {
    let mut site = Site::new(50);
    let mut raised = Vec::new();
    for _ in 0..8 {
        let mut plan = with_menus(&site);
        plan.saw(PageRef::new(0, 8), Seen::Changed, Some(&[7]));
        let [with_it, without] = chances(&plan);
        raised.push(with_it - without);
        while let Step::Visit(page) = plan.next() {
            plan.saw(page, Seen::Same, None);
        }
        let (mut beliefs, shared) = plan.finish();
        let bytes = beliefs.remove(0).1.to_bytes();
        site.beliefs = Beliefs::from_bytes(&bytes, "site").unwrap();
        site.shared = SharedBeliefs::from_bytes(&shared.to_bytes()).unwrap();
    }
    assert!(raised[7] < raised[0] / 4.0, "{raised:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_page_comes_once_and_about_in_the_order_of_chances(
        outcomes in prop::collection::vec(any::<bool>(), 60), rounds in 1usize..4
    ) {
        let mut site = Site::new(60);
        for round in 0..rounds {
            site.round(everything(), |page| outcomes[(page as usize * 7 + round) % 60]);
        }
        let mut plan = site.begin(everything());
        let mut left: BTreeSet<u32> = (0..60).collect();
        while let Step::Visit(page) = plan.next() {
            let chance = plan.chance(page).unwrap();
            let best = left
                .iter()
                .map(|&other| plan.chance(PageRef::new(0, other)).unwrap())
                .fold(0.0, f64::max);
            prop_assert!(left.remove(&page.page.0));
            // The index comes early because it says much about the pages it links to.
            prop_assert!(page.page.0 == 0 || chance > best - 0.15, "{} while {} was there", chance, best);
            plan.seen(page, look(|page| outcomes[page as usize], page));
        }
        prop_assert!(left.is_empty());
    }
}

/// Pages of a small server in directories of four, each with an index that the top page links to.
fn small_server(directories: u32) -> Arc<SiteGraph> {
    let mut graph = SiteGraph::new();
    let top = graph.add_page("index.html").unwrap();
    let mut tops = Vec::new();
    for directory in 0..directories {
        let index = graph.add_page(&format!("d{directory}/index.html")).unwrap();
        let members: Vec<PageIndex> = ["a", "b", "c"]
            .iter()
            .map(|name| graph.add_page(&format!("d{directory}/{name}.html")).unwrap())
            .collect();
        graph.set_links(index, &members, &[]).unwrap();
        tops.push(index);
    }
    graph.set_links(top, &tops, &[]).unwrap();
    graph.set_top(top).unwrap();
    graph.refresh_depths();
    Arc::new(graph)
}

#[test]
fn a_small_quiet_server_is_visited_at_least_as_by_method_a() {
    let mut site = Site { graph: small_server(12), ..Site::new(2) };
    for _ in 0..6 {
        site.round(everything(), |_| false);
    }
    // Directory 7: its index is page 29, its members 30 to 32.
    let changed = |page: u32| page == 29 || page == 31;
    let split = Arc::new(SiteSplit::by_directory(&site.graph, SplitOptions::default()));
    let mut by_a = GatedPlan::new(0, Arc::clone(&site.graph), split);
    let by_a = run_round(&mut by_a, usize::MAX, |page| look(changed, page));
    let visited: BTreeSet<u32> = site.round(AutoOptions::default(), changed).into_iter().collect();
    assert!(by_a.iter().all(|page| visited.contains(&page.page.0)), "{visited:?}");
    assert!(visited.contains(&31) && visited.len() < site.graph.page_count(), "{visited:?}");
}

proptest! {
    #[test]
    fn a_round_that_stops_later_makes_the_same_visits_and_more(
        pages in 70u32..200,
        rounds in prop::collection::vec(0u64..u64::MAX, 2..5),
        small in 0.01f64..0.3,
        more in 0.01f64..0.3,
    ) {
        let mut site = Site::new(pages);
        let changed = |draw: u64| move |page: u32| draw >> (page % 61) & 7 == 0;
        let (last, before) = rounds.split_last().unwrap();
        for draw in before {
            site.round(everything(), changed(*draw));
        }
        let stop = |stop_below: f64| {
            let mut plan = site.begin(AutoOptions { stop_below, ..AutoOptions::default() });
            run_round(&mut plan, usize::MAX, |page| look(changed(*last), page))
        };
        let (later, sooner) = (stop(small), stop(small + more));
        prop_assert_eq!(&later[..sooner.len().min(later.len())], &sooner[..]);
    }
}
