//! Rounds that choose their pages (paper 000, and `structure`'s own plan): the map is loaded, a plan
//! made of it, and pages are loaded as the plan asks for them. The work on maps and plans is handed
//! out ([`PlanWork`]), because on a large site it takes longer than a step may.

use std::collections::{BTreeMap, BTreeSet};

use nenrin_state::{
    Change, DuePage, KeptStructure, PageId, RoundEnd, ServerId, ServerRecord, SiteId, SitePages,
};

use nenrin_structure::Seen;

use super::Crawl;
use crate::{
    Command,
    planned::Planned,
    planning::{Beginning, Choice, Ended, Heard, PlanDone, PlanJob, PlanResult, PlanWork, Survey},
    round::Scan,
    signals::Signals,
};

impl Crawl {
    /// The site's map came: it is looked through before its round begins to choose.
    pub(super) fn map_loaded(
        &mut self,
        now_ms: i64,
        round: i64,
        map: Box<SitePages>,
        servers: Vec<ServerRecord>,
        out: &mut Vec<Command>,
    ) {
        self.meet_servers(now_ms, servers);
        let Some(site) = self.site_of_round(round) else { return };
        let sources = self.source_paths(site, &map);
        hand_out(round, PlanJob::Survey { map, sources }, out);
    }

    fn site_of_round(&self, round: i64) -> Option<SiteId> {
        self.rounds.values().map(|state| &state.round).find(|known| known.id == round)?.site.into()
    }

    /// What a site's servers are known to say, of those that say anything.
    fn signals<'a>(
        &'a self,
        map: &'a SitePages,
    ) -> impl Iterator<Item = (ServerId, &'a nenrin_urls::Server, &'a Signals)> {
        map.servers.keys().filter_map(|&id| {
            let state = self.servers.get(&id)?;
            let signals = &state.learnt.signals;
            (!signals.sources.is_empty()).then_some((id, &state.record.server, signals))
        })
    }

    /// Where a site's sitemaps and feeds lie. Every round visits them, whichever way it chooses: how
    /// far they can be believed is measured on what they say now.
    fn source_paths(&self, site: SiteId, map: &SitePages) -> BTreeMap<ServerId, BTreeSet<String>> {
        let heard = self.sites.get(&site).is_some_and(|site| site.conditions.hints.signals);
        let signals = self.signals(map).filter(|_| heard);
        let paths = signals.map(|(id, server, signals)| {
            let own = signals.sources.keys().filter(|url| url.server() == *server);
            (id, own.map(|url| url.path_and_query().to_owned()).collect())
        });
        paths.collect()
    }

    /// The driver did some work on a plan.
    pub(super) fn plan_done(&mut self, now_ms: i64, done: PlanDone, out: &mut Vec<Command>) {
        let Some(site) = self.site_of_round(done.round) else { return };
        match done.result {
            PlanResult::NothingKnown | PlanResult::NoPlan => self.visit_everything(site),
            PlanResult::Surveyed(survey) => self.surveyed(site, survey),
            PlanResult::Chosen { plan, pages, rest } => {
                if let Some(planned) = self.round_plan(site) {
                    planned.chose(plan, pages, rest);
                }
            }
            PlanResult::Ended(ended) => self.choice_ended(now_ms, site, ended, out),
        }
    }

    fn visit_everything(&mut self, site: SiteId) {
        if let Some(state) = self.rounds.get_mut(&site) {
            state.planned = None;
            state.scan = Scan::At(None);
            state.ending = false;
        }
    }

    fn surveyed(&mut self, site: SiteId, survey: Survey) {
        let servers = survey.map.servers.len();
        let ahead = (self.options.round_ahead * servers).min(self.options.parallel);
        if let Some(state) = self.rounds.get_mut(&site) {
            state.scan = Scan::Done { again: false };
            state.planned = Some(Planned::new(survey, ahead));
        }
    }

    /// Asks for the pages that a round has chosen, and lets it choose more.
    pub(super) fn load_chosen(&mut self, now_ms: i64, site: SiteId, out: &mut Vec<Command>) {
        let Some(state) = self.rounds.get_mut(&site).filter(|state| !state.page_limit_reached)
        else {
            return;
        };
        let Some(planned) = &mut state.planned else { return };
        let round = state.round.id;
        if let Some((map, choice)) = planned.take_map() {
            self.begin_choice(now_ms, site, map, choice, out);
        } else if let Some((plan, choice)) = planned.take_plan() {
            hand_out(round, PlanJob::Choose { plan, choice }, out);
        }
        self.load_wanted(site, out);
    }

    fn begin_choice(
        &mut self,
        now_ms: i64,
        site: SiteId,
        map: Box<SitePages>,
        choice: Choice,
        out: &mut Vec<Command>,
    ) {
        let (Some(state), Some(known)) = (self.rounds.get(&site), self.sites.get(&site)) else {
            return;
        };
        let signals = self.signals(&map);
        let signals = signals.map(|(id, server, signals)| (id, (server.clone(), signals.clone())));
        let beginning = Beginning {
            signals: signals.collect(),
            map,
            rounds_by: known.conditions.rounds_by,
            schedule: known.conditions.schedule.clone(),
            max_pages: known.conditions.max_pages,
            wanted: state.wanted,
            now_s: now_ms / 1000,
        };
        let beginning = Box::new(beginning);
        hand_out(state.round.id, PlanJob::Begin { beginning, choice }, out);
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

    /// What a round that chose has learnt is kept, and what it left out; then it ends.
    fn choice_ended(
        &mut self,
        now_ms: i64,
        site: SiteId,
        ended: Option<Ended>,
        out: &mut Vec<Command>,
    ) {
        let Some(state) = self.rounds.get_mut(&site) else { return };
        let mut skips = None;
        if let Some(ended) = ended {
            for (site, bytes) in [(Some(site), ended.kept), (None, ended.kept_of_all)] {
                let change = Change::Structure(KeptStructure { site, bytes });
                out.push(Command::Commit { ticket: None, change });
            }
            state.counts.skipped = ended.skips.pages();
            skips = Some(ended.skips);
        }
        let end = RoundEnd { round: state.round.id, site, at_s: now_ms / 1000, skips };
        out.push(Command::Commit { ticket: None, change: Change::RoundEnd(end) });
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
                planned.told(Heard { page, seen: Seen::Failed, lost: None });
            }
        }
        for due in pages {
            self.enqueue(now_ms, due);
        }
    }
}

/// Hands out work on a round's plan.
pub(super) fn hand_out(round: i64, job: PlanJob, out: &mut Vec<Command>) {
    out.push(Command::Plan(Box::new(PlanWork { round, job })));
}
