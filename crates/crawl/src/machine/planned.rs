//! Rounds that choose their pages (paper 000, and `structure`'s own plan): the map is loaded, a plan
//! made of it, and pages are loaded as the plan asks for them.

use std::collections::{BTreeMap, BTreeSet};

use nenrin_fetch::http_date;
use nenrin_state::{
    Change, DuePage, KeptStructure, MappedPage, PageId, ServerRecord, SiteId, SitePages,
};
use nenrin_structure::{AutoOptions, Evidence, Hint, MappedSite, SharedBeliefs, SitePlan};
use nenrin_urls::{CanonicalUrl, Server};

use super::{Crawl, rounds::gone_rest_s};
use crate::{
    Command,
    planned::{Planned, seen},
    round::{RoundState, Scan},
};

impl Crawl {
    /// The site's map came: its round begins to choose, or visits everything if it is the first.
    pub(super) fn map_loaded(
        &mut self,
        now_ms: i64,
        round: i64,
        map: SitePages,
        servers: Vec<ServerRecord>,
    ) {
        self.meet_servers(now_ms, servers);
        let Some(state) = self.rounds.values().find(|state| state.round.id == round) else {
            return;
        };
        let site = state.round.site;
        if !map.pages.iter().any(|page| was_known(page, round)) {
            if let Some(state) = self.rounds.get_mut(&site) {
                state.scan = Scan::At(None);
            }
            return;
        }
        let sources = self.sources(site, &map, round);
        let new = map.pages.iter().filter(|page| page.visited_s.is_none()).map(|page| page.id);
        let new: BTreeSet<PageId> = new.collect();
        let ahead = (self.options.round_ahead * map.servers.len()).min(self.options.parallel);
        if let Some(state) = self.rounds.get_mut(&site) {
            state.scan = Scan::Done { again: false };
            state.planned = Some(Planned::new(map, new, sources, ahead));
        }
    }

    /// Sitemaps and feeds of a site that are to be heard before a plan is made. Every round visits them,
    /// whichever way it chooses: how far they can be believed is measured on what they say now.
    fn sources(&self, site: SiteId, map: &SitePages, round: i64) -> BTreeSet<PageId> {
        let heard = self.sites.get(&site).is_some_and(|site| site.conditions.hints.signals);
        let untried = |page: &&MappedPage| heard && page.round != Some(round);
        let is_source = |page: &&MappedPage| {
            let state = self.servers.get(&page.id.server());
            let state = state.filter(|state| !state.learnt.signals.sources.is_empty());
            state.is_some_and(|state| {
                let url = url_of(&state.record.server, page);
                url.is_some_and(|url| state.learnt.signals.is_source(&url))
            })
        };
        map.pages.iter().filter(untried).filter(is_source).map(|page| page.id).collect()
    }

    /// Asks for the pages that rounds have chosen.
    pub(super) fn load_chosen(&mut self, now_ms: i64, site: SiteId, out: &mut Vec<Command>) {
        let Some(state) = self.rounds.get_mut(&site).filter(|state| !state.page_limit_reached)
        else {
            return;
        };
        let Some(map) = state.planned.as_mut().and_then(Planned::map_if_ready) else {
            return self.load_wanted(site, out);
        };
        match self.plan(now_ms, site, &map) {
            Some(plan) => {
                if let Some(planned) = self.round_plan(site) {
                    planned.choose(plan);
                }
                self.load_wanted(site, out);
            }
            // More pages than a plan takes: all of them are visited.
            None => {
                if let Some(state) = self.rounds.get_mut(&site) {
                    state.planned = None;
                    state.scan = Scan::At(None);
                }
            }
        }
    }

    fn round_plan(&mut self, site: SiteId) -> Option<&mut Planned> {
        self.rounds.get_mut(&site)?.planned.as_mut()
    }

    fn load_wanted(&mut self, site: SiteId, out: &mut Vec<Command>) {
        let taken = &self.taken;
        let Some(state) = self.rounds.get_mut(&site) else { return };
        let Some(planned) = &mut state.planned else { return };
        let is_taken = |page| taken.get(&(site, page)).copied().unwrap_or(false);
        let pages = planned.wanted(self.options.load_batch, is_taken);
        if !pages.is_empty() {
            out.push(Command::LoadPages { round: state.round.clone(), pages });
        }
    }

    fn plan(&self, now_ms: i64, site: SiteId, map: &SitePages) -> Option<SitePlan> {
        let state = self.rounds.get(&site)?;
        let conditions = &self.sites.get(&site)?.conditions;
        let round = state.round.id;
        let rests = |page: &MappedPage| {
            page.round != Some(round)
                && gone_rest_s(&conditions.schedule, page.outcome, page.failures)
                    .zip(page.visited_s)
                    .is_some_and(|(rest_s, at_s)| !state.wanted && now_ms / 1000 < at_s + rest_s)
        };
        let budget = conditions.max_pages.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
        let options = AutoOptions { budget, ..AutoOptions::default() };
        let shared = SharedBeliefs::from_bytes(&map.kept_of_all);
        let shared = shared.unwrap_or_else(|_| SharedBeliefs::new(&options));
        let mapped = MappedSite::new(map.map(|page| !rests(page)), &map.kept, &options);
        let places: BTreeMap<i64, &MappedPage> =
            map.pages.iter().map(|page| (page.id.0, page)).collect();
        let evidence = |key: i64| {
            let page = places.get(&key).filter(|page| was_known(page, round))?;
            Some(self.evidence(page, round, &map.rounds_s))
        };
        let mut plan = SitePlan::new(conditions.rounds_by, mapped.ok()?, evidence, shared, options);
        for page in map.pages.iter().filter(|page| page.round == Some(round)) {
            if let Some(outcome) = page.outcome {
                plan.seen(page.id.0, seen(outcome, page.failures, true));
            }
        }
        Some(plan)
    }

    /// What is known of a page beside its place, as of the beginning of the round.
    fn evidence(&self, page: &MappedPage, round: i64, rounds_s: &[i64]) -> Evidence {
        let Some(visited_s) = page.visited_s.filter(|_| page.round != Some(round)) else {
            return Evidence::default();
        };
        let modified_s = page.last_modified.as_deref().and_then(http_date::parse);
        let since = rounds_s.len() - rounds_s.partition_point(|&begun_s| begun_s <= visited_s);
        let signals = self.servers.get(&page.id.server()).and_then(|state| {
            let signals = &state.learnt.signals;
            let url = (!signals.sources.is_empty()).then(|| url_of(&state.record.server, page));
            signals.says(&url??, visited_s)
        });
        Evidence {
            age_at_last_visit_s: modified_s.map(|modified_s| visited_s - modified_s),
            hint: match signals {
                None => Hint::Silent,
                Some(true) => Hint::SaysChanged,
                Some(false) => Hint::SaysSame,
            },
            // The round under way is one of those that began since.
            rounds_unseen: u32::try_from(since.saturating_sub(1)).unwrap_or(u32::MAX),
            template: None,
        }
    }

    /// Pages that a plan asked for came from the state.
    pub(super) fn chosen_loaded(
        &mut self,
        now_ms: i64,
        round: i64,
        asked: &[PageId],
        pages: Vec<DuePage>,
        servers: Vec<ServerRecord>,
    ) {
        self.meet_servers(now_ms, servers);
        let Some(state) = self.rounds.values_mut().find(|state| state.round.id == round) else {
            return;
        };
        let Some(planned) = &mut state.planned else { return };
        let came: BTreeSet<PageId> = pages.iter().map(|due| due.page.id).collect();
        for &page in asked {
            planned.loaded(page);
            if !came.contains(&page) {
                planned.told(page, nenrin_structure::Seen::Failed);
            }
        }
        for due in pages {
            self.enqueue(now_ms, due);
        }
    }
}

/// Ends a round that chose: what it learnt is kept, and what it left out.
pub(super) fn end_choice(
    state: &mut RoundState,
    out: &mut Vec<Command>,
) -> Option<nenrin_state::Skips> {
    let (skips, plan) = state.planned.take()?.end()?;
    let (bytes, shared) = plan.finish();
    let site = Some(state.round.site);
    for kept in
        [KeptStructure { site, bytes }, KeptStructure { site: None, bytes: shared.to_bytes() }]
    {
        out.push(Command::Commit { ticket: None, change: Change::Structure(kept) });
    }
    state.counts.skipped = skips.pages();
    Some(skips)
}

/// Whether a page was seen before this round.
fn was_known(page: &MappedPage, round: i64) -> bool {
    page.visits > 1 || (page.visits == 1 && page.round != Some(round))
}

fn url_of(server: &Server, page: &MappedPage) -> Option<CanonicalUrl> {
    CanonicalUrl::parse(&format!("{server}{}", page.path)).ok()
}
