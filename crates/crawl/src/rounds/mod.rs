//! Rounds: when one begins, which of its pages are queued, when it is over.

mod round;

use std::collections::{BTreeMap, BTreeSet};

use nenrin_lang::Reason;
use nenrin_state::{
    Change, DuePage, KeptStructure, PageId, Round, RoundId, Schedule, ServerId, Site, SiteId,
    SitePages, VisitCommit,
};
use nenrin_urls::CanonicalUrl;

use crate::{
    events::{Command, Load, RoundReport},
    gone::rests_while_gone,
    learning::Learning,
    options::CrawlOptions,
    plans::{Beginning, Ended, PlanDone, PlanJob, PlanResult, PlanWork, VisitResult},
    schedules::Schedules,
    servers::Servers,
    sites::Sites,
    taken::{TakenPages, Taker},
};

use self::round::{Ending, RunningRound};

/// The rounds under way, at most one for each site.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    running: BTreeMap<SiteId, RunningRound>,
    /// Sites that someone wants collected now.
    wanted: BTreeSet<SiteId>,
    /// Sites whose round has been asked for and has not begun yet.
    beginning: BTreeSet<SiteId>,
    /// Sites whose round waits for other partitions.
    held: BTreeSet<SiteId>,
}

/// What decides which pages a round takes up.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    pub(crate) options: &'a CrawlOptions,
    pub(crate) sites: &'a Sites,
    pub(crate) schedules: &'a Schedules,
    pub(crate) learning: &'a Learning,
    pub(crate) servers: &'a Servers,
}

impl Rounds {
    /// Someone wants a site collected now.
    pub(crate) fn want(&mut self, site: SiteId) {
        self.wanted.insert(site);
    }

    /// Asks for the rounds whose time has come.
    pub(crate) fn begin_due(
        &mut self,
        now_ms: i64,
        sites: &Sites,
        schedules: &Schedules,
        out: &mut Vec<Command>,
    ) {
        for site in sites.iter() {
            let is_due = next_round_ms(site).is_some_and(|due_ms| due_ms <= now_ms);
            // A round that was asked for does not wait for the site's hours.
            let is_time = is_due && schedules.is_open(site.id) || self.wanted.contains(&site.id);
            let may_begin = is_time
                && !sites.is_full(site.id)
                && schedules.is_ready(site.id)
                && !self.running.contains_key(&site.id)
                && !self.held.contains(&site.id);
            if may_begin && self.beginning.insert(site.id) {
                out.push(Command::Load(Load::BeginRound(site.id)));
            }
        }
    }

    /// When the next round is due.
    pub(crate) fn next_ms(&self, sites: &Sites, schedules: &Schedules) -> Option<i64> {
        let waits = |site: SiteId| {
            let is_under_way = self.running.contains_key(&site) || self.beginning.contains(&site);
            !is_under_way && !self.held.contains(&site) && schedules.is_open(site)
        };
        let due = |site: &Site| next_round_ms(site).filter(|_| waits(site.id));
        sites.iter().filter_map(due).min()
    }

    /// A round cannot begin until other partitions have ended theirs.
    pub(crate) fn hold(&mut self, site: SiteId) {
        self.beginning.remove(&site);
        self.held.insert(site);
    }

    /// Sites changed, or rounds ended in other partitions: rounds that waited are tried again.
    pub(crate) fn sites_changed(&mut self) {
        self.held.clear();
    }

    /// A round has begun, or goes on after a restart.
    pub(crate) fn begun(&mut self, round: Round, sites: &mut Sites) {
        self.beginning.remove(&round.site);
        let wanted = self.wanted.remove(&round.site);
        let Some(site) = sites.round_began(round.site, round.started_s) else { return };
        let chooses = site.conditions.rounds_by.chooses();
        let begin = || RunningRound::new(round, wanted, chooses);
        self.running.entry(site.id).or_insert_with(begin);
    }

    /// The number of a site's round.
    pub(crate) fn id(&self, site: SiteId) -> Option<RoundId> {
        self.running.get(&site).map(RunningRound::id)
    }

    /// When a site's round began.
    pub(crate) fn started_s(&self, site: SiteId) -> Option<i64> {
        self.running.get(&site).map(RunningRound::started_s)
    }

    /// Whether someone asked for a site's round, whatever its hours.
    pub(crate) fn is_wanted(&self, site: SiteId) -> bool {
        self.running.get(&site).is_some_and(RunningRound::is_wanted)
    }

    /// Pages visited so far in a site's round, and pages waiting.
    pub(crate) fn progress(&self, site: SiteId) -> Option<(u64, u64)> {
        self.running.get(&site).map(RunningRound::progress)
    }

    fn by_id(&mut self, round: RoundId) -> Option<&mut RunningRound> {
        self.running.values_mut().find(|running| running.id() == round)
    }

    pub(crate) fn site_of(&self, round: RoundId) -> Option<SiteId> {
        self.running.iter().find(|(_, running)| running.id() == round).map(|(&site, _)| site)
    }

    /// Ends the rounds that are over. Returns whether there are any.
    pub(crate) fn end_over(&mut self, now_s: i64, out: &mut Vec<Command>) -> bool {
        let mut is_any_over = false;
        for running in self.running.values_mut() {
            let Some(ending) = running.end(now_s) else { continue };
            is_any_over = true;
            match ending {
                Ending::Plan(job) => hand_out(running.id(), job, out),
                Ending::Commit(end) => out.push(Command::commit(Change::RoundEnd(end))),
            }
        }
        is_any_over
    }

    /// The end of a round is committed.
    pub(crate) fn ended(&mut self, round: RoundId, sites: &mut Sites) -> Option<RoundReport> {
        let site = self.site_of(round)?;
        sites.round_ended(site);
        self.running.remove(&site).map(RunningRound::report)
    }
}

/// Loading pages.
impl Rounds {
    /// Loads pages of the rounds that may continue, as far as the queue has capacity.
    pub(crate) fn load_more(
        &mut self,
        now_ms: i64,
        taken: &TakenPages,
        around: Surroundings<'_>,
        out: &mut Vec<Command>,
    ) {
        let Surroundings { options, sites, schedules, servers, .. } = around;
        if options.queue_max.saturating_sub(servers.queued()) < options.load_batch {
            return;
        }
        let mut choosing = Vec::new();
        for (&site, running) in &mut self.running {
            let is_open = running.is_wanted() || schedules.is_open(site);
            if !running.has_more() || !is_open || sites.is_full(site) {
                continue;
            }
            if running.chooses() {
                choosing.push(site);
            } else {
                out.extend(running.next_load(options.load_batch).map(Command::Load));
            }
        }
        for site in choosing {
            self.load_chosen(now_ms, site, taken, around, out);
        }
    }

    /// Asks for the pages that a round has chosen, and lets it choose more.
    fn load_chosen(
        &mut self,
        now_ms: i64,
        site: SiteId,
        taken: &TakenPages,
        around: Surroundings<'_>,
        out: &mut Vec<Command>,
    ) {
        let Some(running) = self.running.get_mut(&site) else { return };
        let (round, wanted) = (running.id(), running.is_wanted());
        let Some(planned) = running.plan_with_room() else { return };
        if let Some((map, choice)) = planned.take_map() {
            if let Some(site) = around.sites.get(site) {
                let beginning = Box::new(beginning(now_ms, site, map, wanted, around.learning));
                hand_out(round, PlanJob::Begin { beginning, choice }, out);
            }
        } else if let Some((plan, choice)) = planned.take_plan() {
            hand_out(round, PlanJob::Choose { plan, choice }, out);
        }
        let is_taken = |page| taken.is_in_round(site, page);
        out.extend(running.load_chosen(around.options.load_batch, is_taken).map(Command::Load));
    }

    /// Pages of a round's scan came from the state.
    pub(crate) fn loaded(
        &mut self,
        round: RoundId,
        pages: &[DuePage],
        options: &CrawlOptions,
    ) -> bool {
        let Some(running) = self.by_id(round) else { return false };
        running.loaded(pages, options.load_batch);
        true
    }

    /// Pages that a plan asked for came from the state. Returns whether they are still wanted.
    pub(crate) fn chosen_loaded(
        &mut self,
        round: RoundId,
        asked: &[PageId],
        pages: &[DuePage],
    ) -> bool {
        let Some(running) = self.by_id(round).filter(|running| running.chooses()) else {
            return false;
        };
        running.chosen_loaded(asked, pages);
        true
    }

    /// The site's map came: it is looked through before its round begins to choose.
    pub(crate) fn map_loaded(
        &self,
        round: RoundId,
        map: Box<SitePages>,
        sites: &Sites,
        learning: &Learning,
        out: &mut Vec<Command>,
    ) {
        let Some(site) = self.site_of(round) else { return };
        let conditions = sites.conditions(site);
        let takes_signals = conditions.is_some_and(|conditions| conditions.hints.signals);
        let sources = if takes_signals { source_paths(&map, learning) } else { BTreeMap::new() };
        hand_out(round, PlanJob::Survey { map, sources }, out);
    }

    /// Some work on a plan was done.
    pub(crate) fn plan_done(
        &mut self,
        now_ms: i64,
        done: PlanDone,
        options: &CrawlOptions,
        out: &mut Vec<Command>,
    ) {
        let Some(running) = self.by_id(done.round) else { return };
        match done.result {
            PlanResult::NothingKnown | PlanResult::NoPlan => running.visit_everything(),
            PlanResult::Surveyed(survey) => {
                let ahead = (options.round_ahead * survey.map.servers.len()).min(options.parallel);
                running.choose(survey, ahead);
            }
            PlanResult::Chosen { plan, pages, rest } => {
                if let Some(planned) = running.plan() {
                    planned.chose(plan, pages, rest);
                }
            }
            PlanResult::Ended(ended) => choice_ended(now_ms, running, ended, out),
        }
    }
}

/// The pages of a round.
impl Rounds {
    /// Admits a page to its round. Returns whether it is to be queued: not if it is already, or if
    /// the round is full.
    pub(crate) fn admit(
        &mut self,
        now_ms: i64,
        due: &DuePage,
        taken: &mut TakenPages,
        around: Surroundings<'_>,
    ) -> bool {
        let Surroundings { options, sites, servers, .. } = around;
        let Some(running) = self.running.get_mut(&due.site) else { return false };
        let Some(site) = sites.get(due.site) else { return false };
        let page = due.page.id;
        if let Some(has_joined) = taken.join_round(due.site, page) {
            // It was due by itself: the round waits for it as well.
            if has_joined {
                running.take();
            }
            return false;
        }
        if !running.is_wanted() && rests_while_gone(site, due, now_ms / 1000) {
            running.cannot_see(page);
            return false;
        }
        if site.conditions.leaves_out(&due.page.url) {
            running.cannot_see(page);
            return false;
        }
        if !running.has_room(site.conditions.max_pages) {
            return false;
        }
        if servers.queued() >= options.queue_max {
            running.not_queued(page);
            return false;
        }
        if servers.rests_too_long(now_ms, page.server(), options) {
            running.leave_out(page);
            return false;
        }
        running.take();
        taken.take(page, Taker { site: due.site, in_round: true, new: None })
    }

    /// Loads a page that a round counts again: it was visited for another site meanwhile.
    pub(crate) fn load_again(&self, site: SiteId, page: PageId) -> Option<Load> {
        let running = self.running.get(&site)?;
        Some(Load::Chosen { round: running.round(), pages: vec![page] })
    }

    /// A page that a round counted goes back to rest.
    pub(crate) fn rest(&mut self, site: SiteId, page: PageId) {
        if let Some(running) = self.running.get_mut(&site) {
            running.rest(page);
        }
    }

    /// A page that a round counted is left for the next round.
    pub(crate) fn leave(&mut self, site: SiteId, page: PageId) {
        if let Some(running) = self.running.get_mut(&site) {
            running.leave(page);
        }
    }

    /// A page of a site became known. Returns whether a round is under way that may take it up.
    pub(crate) fn count_new_page(&mut self, site: SiteId) -> bool {
        let Some(running) = self.running.get_mut(&site) else { return false };
        running.count_new_page();
        true
    }

    /// A visit of a round goes to be committed.
    pub(crate) fn count(&mut self, visit: &VisitCommit) {
        if let Some(running) = self.running.get_mut(&visit.site) {
            running.count(visit);
        }
    }

    /// A visit of a round is committed.
    pub(crate) fn visited(&mut self, site: SiteId, result: VisitResult) {
        if let Some(running) = self.running.get_mut(&site) {
            running.visited(result);
        }
    }

    /// Remembers a redirect and describes the loop that it closes, if it closes one.
    pub(crate) fn redirected(
        &mut self,
        site: SiteId,
        from: &CanonicalUrl,
        to: &CanonicalUrl,
        hops_max: u32,
    ) -> Option<Reason> {
        self.running.get_mut(&site)?.redirected(from, to, hops_max)
    }
}

/// When a site's next round is due, if it is collected in rounds and not paused. One that was cut
/// short goes on at once.
fn next_round_ms(site: &Site) -> Option<i64> {
    let Schedule::Rounds { period_s } = site.conditions.schedule else { return None };
    let last_s = site.collected_s.filter(|_| !site.round_open);
    let due_s = last_s.map_or(i64::MIN / 2000, |last_s| last_s + period_s);
    (!site.paused).then(|| due_s * 1000)
}

/// Where a site's sitemaps and feeds are. Every round visits them, whichever way it chooses: how
/// far they can be believed is measured on what they say now.
fn source_paths(map: &SitePages, learning: &Learning) -> BTreeMap<ServerId, BTreeSet<String>> {
    let paths = learning.signals_of(&map.servers).map(|(id, server, signals)| {
        let own = signals.sources.keys().filter(|url| url.server() == *server);
        (id, own.map(|url| url.path_and_query().to_owned()).collect())
    });
    paths.collect()
}

fn beginning(
    now_ms: i64,
    site: &Site,
    map: Box<SitePages>,
    wanted: bool,
    learning: &Learning,
) -> Beginning {
    let signals = learning.signals_of(&map.servers);
    let signals = signals.map(|(id, server, signals)| (id, (server.clone(), signals.clone())));
    Beginning {
        signals: signals.collect(),
        map,
        rounds_by: site.conditions.rounds_by,
        schedule: site.conditions.schedule.clone(),
        max_pages: site.conditions.max_pages,
        wanted,
        now_s: now_ms / 1000,
    }
}

/// What a round that chose has learnt is kept, and what it left out; then it ends.
fn choice_ended(
    now_ms: i64,
    running: &mut RunningRound,
    ended: Option<Ended>,
    out: &mut Vec<Command>,
) {
    let skips = ended.map(|Ended { skips, kept, kept_of_all }| {
        for (site, bytes) in [(Some(running.site()), kept), (None, kept_of_all)] {
            out.push(Command::commit(Change::Structure(KeptStructure { site, bytes })));
        }
        skips
    });
    let end = running.plan_ended(now_ms / 1000, skips);
    out.push(Command::commit(Change::RoundEnd(end)));
}

/// Hands out work on a round's plan.
fn hand_out(round: RoundId, job: PlanJob, out: &mut Vec<Command>) {
    out.push(Command::Plan(Box::new(PlanWork { round, job })));
}
