//! Rounds that choose their pages: the machine visits what the pure plan says, over restarts too.

use crate::world;

use std::{collections::BTreeMap, sync::Arc};

use nenrin_crawl::{Crawl, CrawlOptions, Event, PlanWork};
use nenrin_revisit::RevisitSettings;
use nenrin_state::{Outcome, PageId, Schedule, SiteId};
use nenrin_structure::{
    AutoOptions, AutoRound, AutoServer, Beliefs, Evidence, GatedPlan, MappedSite, PageIndex,
    PageRef, RoundPlan, RoundsBy, Seen, SharedBeliefs, SiteGraph, SiteSplit, SplitOptions,
    UpperSites, run_round, templates_from_links,
};
use world::{BEGIN_MS, DAY_MS, HOUR_MS, World};

const DIRECTORIES: usize = 6;
const MEMBERS: usize = 5;

fn members(directory: usize) -> impl Iterator<Item = String> {
    (0..MEMBERS).map(move |n| format!("/d{directory}/{n}.html"))
}

/// A top page, directories with an index each, and pages below that the index links to.
fn world(by: RoundsBy, change: impl FnOnce(&mut nenrin_state::SiteConditions)) -> World {
    let options = CrawlOptions { round_ahead: 1, ..CrawlOptions::default() };
    let mut world = World::with(options, RevisitSettings::default(), |conditions| {
        conditions.schedule = Schedule::Rounds { period_s: DAY_MS / 1000 };
        conditions.hints.signals = false;
        conditions.rounds_by = by;
        change(conditions);
    });
    let indexes = (0..DIRECTORIES).map(|d| format!("/d{d}/")).collect();
    world.links.insert("/".to_owned(), indexes);
    for directory in 0..DIRECTORIES {
        world.links.insert(format!("/d{directory}/"), members(directory).collect());
    }
    world
}

/// Pages that change before a round: one directory as a whole, and single pages of others.
fn changes(round: usize) -> Vec<String> {
    let whole = round % DIRECTORIES;
    let mut changed: Vec<String> = members(whole).collect();
    changed.push(format!("/d{whole}/"));
    changed.push("/d0/1.html".to_owned());
    if round.is_multiple_of(2) {
        changed.push("/".to_owned());
    }
    changed.sort();
    changed.dedup();
    changed
}

/// The paths asked for in a round, in order; the probe of missing pages is none of them.
fn asked(world: &World, from: usize) -> Vec<String> {
    let known = |path: &&(i64, String)| path.1 == "/" || path.1.starts_with("/d");
    world.asked[from..].iter().filter(known).map(|(_, path)| path.clone()).collect()
}

fn pass_round(world: &mut World, round: usize) -> Vec<String> {
    for path in changes(round) {
        *world.revisions.entry(path).or_default() += 1;
    }
    let from = world.asked.len();
    world.pass(BEGIN_MS + round as i64 * DAY_MS + 4 * HOUR_MS);
    asked(world, from)
}

/// The same site, built by hand.
struct Pure {
    paths: Vec<String>,
    graph: Arc<SiteGraph>,
    beliefs: Beliefs,
    shared: SharedBeliefs,
    /// Rounds since each page was last seen.
    unseen: Vec<u32>,
}

impl Pure {
    fn new(world: &World) -> Self {
        let site = world.state.site_pages(SiteId(1)).unwrap();
        let paths: Vec<String> = site.pages.iter().map(|page| page.path.clone()).collect();
        let number: BTreeMap<&str, u32> = paths.iter().map(String::as_str).zip(0..).collect();
        let mut graph = SiteGraph::new();
        for path in &paths {
            graph.add_page(&path[1..]).unwrap();
        }
        graph.set_top(PageIndex(number["/"])).unwrap();
        for (from, to) in &world.links {
            let to: Vec<PageIndex> = to.iter().map(|to| PageIndex(number[to.as_str()])).collect();
            graph.set_links(PageIndex(number[from.as_str()]), &to, &[]).unwrap();
        }
        graph.refresh_depths();
        let options = AutoOptions::default();
        Self {
            unseen: vec![0; paths.len()],
            paths,
            graph: Arc::new(graph),
            beliefs: Beliefs::new(&options),
            shared: SharedBeliefs::new(&options),
        }
    }

    fn gated(&self, by: RoundsBy) -> GatedPlan {
        let graph = Arc::clone(&self.graph);
        let options = SplitOptions::default();
        match by {
            RoundsBy::A => {
                let split = Arc::new(SiteSplit::by_directory(&graph, options));
                GatedPlan::new(0, graph, split)
            }
            RoundsBy::B => {
                let split = Arc::new(SiteSplit::by_links(&graph, options));
                GatedPlan::new(0, graph, split)
            }
            _ => {
                let split = Arc::new(SiteSplit::by_links(&graph, options));
                let upper = Arc::new(UpperSites::new(&graph, &split));
                GatedPlan::under_upper_sites(0, graph, split, upper)
            }
        }
    }

    fn auto(&self) -> AutoRound {
        let templates = templates_from_links(&self.graph);
        let evidence = templates.iter().zip(&self.unseen).map(|(&template, &rounds_unseen)| {
            Evidence { template: Some(template), rounds_unseen, ..Evidence::default() }
        });
        let server = AutoServer {
            server: 0,
            graph: Arc::clone(&self.graph),
            beliefs: self.beliefs.clone(),
            pages: (0..self.paths.len() as u32).map(PageIndex).collect(),
            evidence: evidence.collect(),
            fragments: Vec::new(),
            budget: None,
        };
        AutoRound::new(AutoOptions::default(), self.shared.clone(), vec![server])
    }

    fn run(
        &mut self,
        plan: &mut dyn RoundPlan,
        last_seen: &BTreeMap<String, u8>,
        world: &World,
    ) -> Vec<String> {
        let now = |path: &String| world.revisions.get(path).copied().unwrap_or(0);
        let visited = run_round(plan, usize::MAX, |page: PageRef| {
            let path = &self.paths[page.page.0 as usize];
            let before = last_seen.get(path).copied().unwrap_or(0);
            if now(path) == before { Seen::Same } else { Seen::Changed }
        });
        self.unseen.iter_mut().for_each(|rounds| *rounds += 1);
        for page in &visited {
            self.unseen[page.page.0 as usize] = 0;
        }
        visited.iter().map(|page| self.paths[page.page.0 as usize].clone()).collect()
    }
}

#[test]
fn a_round_visits_exactly_what_the_plan_says_on_the_same_history() {
    for by in [RoundsBy::A, RoundsBy::B, RoundsBy::C, RoundsBy::Auto] {
        let mut world = world(by, |_| {});
        let first = pass_round(&mut world, 0);
        assert_eq!(first.len(), 1 + DIRECTORIES * (MEMBERS + 1), "the first round is a full one");
        let mut pure = Pure::new(&world);
        let mut last_seen = world.revisions.clone();
        let mut left_out = 0;
        for round in 1..8 {
            let visited = pass_round(&mut world, round);
            let planned = if by == RoundsBy::Auto {
                let mut plan = pure.auto();
                let planned = pure.run(&mut plan, &last_seen, &world);
                let (mut beliefs, shared) = plan.finish();
                pure.beliefs = beliefs.pop().unwrap().1;
                pure.shared = shared;
                planned
            } else {
                let mut plan = pure.gated(by);
                pure.run(&mut plan, &last_seen, &world)
            };
            let mut sorted = [visited.clone(), planned.clone()];
            sorted.iter_mut().for_each(|paths| paths.sort());
            assert_eq!(sorted[0], sorted[1], "{by}, round {round}");
            if by == RoundsBy::Auto {
                assert_eq!(visited, planned, "in the plan's order, round {round}");
            }
            for path in visited {
                let revision = world.revisions.get(&path).copied().unwrap_or(0);
                last_seen.insert(path, revision);
            }
            let row = &world.state.rounds(Some(SiteId(1)), 1).unwrap()[0];
            assert!(row.ended_s.is_some(), "{by}, round {round}");
            assert_eq!(row.counts.visits() as usize, planned.len());
            assert_eq!(row.counts.skipped as usize, pure.paths.len() - planned.len());
            left_out += row.counts.skipped;
        }
        assert!(left_out > 0, "{by} left nothing out");
    }
}

#[test]
fn pages_found_in_a_round_are_visited_whatever_the_plan_says() {
    for by in [RoundsBy::A, RoundsBy::C, RoundsBy::Auto] {
        let mut world = world(by, |_| {});
        pass_round(&mut world, 0);
        pass_round(&mut world, 1);
        world.links.get_mut("/").unwrap().push("/d9/new.html".to_owned());
        world.links.insert("/d9/new.html".to_owned(), vec!["/d9/newer.html".to_owned()]);
        let visited = pass_round(&mut world, 2);
        for path in ["/d9/new.html", "/d9/newer.html"] {
            assert_eq!(visited.iter().filter(|asked| *asked == path).count(), 1, "{by}: {path}");
        }
    }
}

#[test]
fn a_round_taken_up_by_another_process_visits_nothing_twice() {
    for by in [RoundsBy::A, RoundsBy::B, RoundsBy::C, RoundsBy::Auto] {
        let mut whole = world(by, |_| {});
        let mut stopped = world(by, |_| {});
        for world in [&mut whole, &mut stopped] {
            pass_round(world, 0);
            pass_round(world, 1);
            for path in changes(2) {
                *world.revisions.entry(path).or_default() += 1;
            }
        }
        let from = stopped.asked.len();
        let begun_ms = BEGIN_MS + 2 * DAY_MS;
        stopped.pass(begun_ms + 8_000);
        let before = asked(&stopped, from);
        assert!((3..12).contains(&before.len()), "{by}: {before:?}");
        stopped.machine = Crawl::new(CrawlOptions { round_ahead: 1, ..CrawlOptions::default() });
        stopped.tell_sites();
        stopped.pass(begun_ms + 4 * HOUR_MS);
        let mut visited = asked(&stopped, from);
        let visits = visited.len();
        visited.sort();
        visited.dedup();
        assert_eq!(visited.len(), visits, "{by}: {visited:?}");
        if by != RoundsBy::Auto {
            let from = whole.asked.len();
            whole.pass(begun_ms + 4 * HOUR_MS);
            let mut all = asked(&whole, from);
            all.sort();
            assert_eq!(visited, all, "{by}");
        }
        let rounds = stopped.state.rounds(Some(SiteId(1)), 10).unwrap();
        assert_eq!(rounds.len(), 3);
        assert!(rounds[0].ended_s.is_some() && rounds[0].counts.visits() as usize == visits);
    }
}

/// A second round whose plan is not made yet, with another site beside it.
fn waiting_for_its_plan(by: RoundsBy) -> (World, usize) {
    let mut world = world(by, |_| {});
    pass_round(&mut world, 0);
    let mut other = nenrin_state::SiteConditions::new(vec![world::url("http://f.com/")]);
    other.schedule = Schedule::Rounds { period_s: HOUR_MS / 1000 };
    other.hints.signals = false;
    world.state.add_site("f", &other, world.now_ms / 1000).unwrap();
    world.hold_plans = true;
    let from = world.asked.len();
    world.tell_sites();
    pass_round(&mut world, 1);
    (world, from)
}

fn last_round(world: &World, site: u32) -> nenrin_state::Round {
    world.state.rounds(Some(SiteId(site)), 1).unwrap().remove(0)
}

#[test]
fn a_round_waits_for_its_plan_while_other_sites_go_on() {
    for by in [RoundsBy::A, RoundsBy::B, RoundsBy::C, RoundsBy::Auto] {
        let (mut world, from) = waiting_for_its_plan(by);
        // The steps themselves make no plan: without the work that they hand out nothing is chosen.
        let of_other = asked(&world, from);
        assert!(of_other.len() > 20 && of_other.iter().all(|path| path == "/"), "{by}");
        let waiting = last_round(&world, 1);
        assert!(waiting.ended_s.is_none() && waiting.counts.visits() == 0, "{by}");
        let meanwhile = world.state.rounds(Some(SiteId(2)), 10).unwrap();
        let meanwhile = meanwhile.iter().filter(|round| round.started_s > waiting.started_s);
        assert!(meanwhile.filter(|round| round.ended_s.is_some()).count() >= 3, "{by}");
        assert_eq!(world.plans_held.len(), 1, "{by}");

        world.hold_plans = false;
        for work in std::mem::take(&mut world.plans_held) {
            world.happen(Event::PlanDone(Box::new(work.carry_out())));
        }
        world.pass(BEGIN_MS + DAY_MS + 8 * HOUR_MS);
        let ended = last_round(&world, 1);
        assert!(ended.ended_s.is_some() && ended.counts.visits() > 0, "{by}");
    }
}

#[test]
fn a_round_whose_plan_cannot_be_made_visits_everything() {
    let (mut world, from) = waiting_for_its_plan(RoundsBy::Auto);
    for work in std::mem::take(&mut world.plans_held) {
        world.happen(Event::PlanDone(Box::new(PlanWork::failed(work.round()))));
    }
    world.pass(BEGIN_MS + DAY_MS + 8 * HOUR_MS);
    let mut visited = asked(&world, from);
    visited.retain(|path| path != "/");
    assert_eq!(visited.len(), DIRECTORIES * (MEMBERS + 1), "{visited:?}");
    assert!(last_round(&world, 1).ended_s.is_some());
}

#[test]
fn the_page_limit_is_the_budget_of_a_round() {
    for by in [RoundsBy::A, RoundsBy::Auto] {
        let mut world = world(by, |_| {});
        pass_round(&mut world, 0);
        let mut site = world.state.sites().unwrap().remove(0);
        site.conditions.max_pages = Some(5);
        world.state.set_site(site.id, &site.conditions, BEGIN_MS / 1000).unwrap();
        world.tell_sites();
        let visited = pass_round(&mut world, 1);
        assert_eq!(visited.len(), 5, "{by}: {visited:?}");
        let round = &world.state.rounds(Some(SiteId(1)), 1).unwrap()[0];
        assert!(round.ended_s.is_some(), "{by}");
    }
}

#[test]
fn what_was_left_out_and_what_changed_together_can_be_seen() {
    let mut world = world(RoundsBy::A, |_| {});
    for round in 0..4 {
        pass_round(&mut world, round);
    }
    let site = world.state.sites().unwrap().remove(0);
    let rounds = world.state.rounds(Some(site.id), 9).unwrap();
    let chosen = rounds.iter().find_map(|round| {
        world.state.skips(round.id).unwrap().map(|skips| (round.counts.skipped, skips))
    });
    let (skipped, skips) = chosen.unwrap();
    assert_eq!(skipped, skips.reasons.iter().map(|left| left.pages).sum::<u64>());
    let example = world.state.url_of(PageId(skips.reasons[0].examples[0])).unwrap().unwrap();
    assert!(example.as_str().starts_with("http://e.com/d"));
    let pages = world.state.site_pages(site.id).unwrap();
    let map = pages.map(|page| page.outcome != Some(Outcome::Gone));
    let mapped = MappedSite::new(map, &pages.kept, &AutoOptions::default()).unwrap();
    let view = mapped.view(RoundsBy::A);
    assert_eq!(view.rounds, 3);
    let third = view.sites.iter().find(|site| site.tops == ["/d3/"]).unwrap();
    assert_eq!((third.top_seen, third.top_changed, third.member_count), (3, 1, MEMBERS));
    assert_eq!(third.under_changed, (MEMBERS as u32, MEMBERS as u32));
}
