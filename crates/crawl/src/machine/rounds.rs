//! Rounds: when one begins, which of its pages are queued, when it is over.

use nenrin_frontier::Pace;
use nenrin_state::{Change, DuePage, Round, RoundEnd, Schedule, ServerRecord, Site, SiteId};

use super::{Crawl, Door, SiteSchedule, planned::hand_out, servers::gives_up, weighing::LOOKS_MAX};
use crate::{
    Command, RoundReport,
    round::{RoundState, Scan, gone_rest_s},
};

impl Crawl {
    pub(super) fn begin_round(&mut self, site: SiteId, out: &mut Vec<Command>) {
        let ready = self.schedules.get(&site).is_none_or(SiteSchedule::is_ready);
        let known = ready && self.sites.contains_key(&site) && !self.rounds.contains_key(&site);
        if known && self.beginning.insert(site) {
            out.push(Command::BeginRound(site));
        }
    }

    pub(super) fn begin_due_rounds(&mut self, now_ms: i64, out: &mut Vec<Command>) {
        let due: Vec<SiteId> = self
            .sites
            .values()
            .filter(|site| {
                let due = next_round_ms(site).is_some_and(|due_ms| due_ms <= now_ms);
                // Who asks for a round now does not mean to wait for the site's hours.
                let is_time = (due && self.is_open(site.id)) || self.wanted.contains(&site.id);
                is_time && !self.full.contains(&site.id)
            })
            .map(|site| site.id)
            .collect();
        for site in due {
            self.begin_round(site, out);
        }
    }

    pub(super) fn round_begun(&mut self, round: Round) {
        self.beginning.remove(&round.site);
        let wanted = self.wanted.remove(&round.site);
        if let Some(site) = self.sites.get_mut(&round.site) {
            site.collected_s = Some(round.started_s);
            let chooses = site.conditions.rounds_by.chooses();
            let begin = || RoundState::new(round.clone(), wanted, chooses);
            self.rounds.entry(round.site).or_insert_with(begin);
        }
    }

    pub(super) fn load_more(&mut self, now_ms: i64, out: &mut Vec<Command>) {
        let mut choosing = Vec::new();
        for (&site, state) in &mut self.rounds {
            let ready = state.wanted || self.doors.get(&site).is_none_or(Door::is_open);
            if !ready || self.full.contains(&site) {
                continue;
            }
            let room = self.options.queue_max.saturating_sub(self.frontier.queued());
            if room < self.options.load_batch {
                break;
            }
            if state.planned.is_some() {
                choosing.push(site);
                continue;
            }
            if state.scan == Scan::Unmapped {
                state.scan = Scan::Loading;
                out.push(Command::LoadMap(state.round.clone()));
            }
            if state.scan == (Scan::Done { again: true }) {
                state.scan = Scan::At(None);
            }
            if let Scan::At(after) = state.scan
                && !state.page_limit_reached
            {
                state.scan = Scan::Loading;
                let (round, limit) = (state.round.clone(), self.options.load_batch);
                out.push(Command::LoadRound { round, after, limit });
            }
        }
        for site in choosing {
            self.load_chosen(now_ms, site, out);
        }
    }

    pub(super) fn pages_loaded(
        &mut self,
        now_ms: i64,
        round: i64,
        pages: Vec<DuePage>,
        servers: Vec<ServerRecord>,
    ) {
        let Some(state) = self.rounds.values_mut().find(|state| state.round.id == round) else {
            return;
        };
        state.scan = match pages.last() {
            Some(last) if pages.len() >= self.options.load_batch => Scan::At(Some(last.page.id)),
            _ => Scan::Done { again: false },
        };
        self.meet_servers(now_ms, servers);
        for due in pages {
            self.enqueue(now_ms, due);
        }
    }

    /// Queues a page for its round, unless it is taken up already or the round has no place for it.
    pub(super) fn enqueue(&mut self, now_ms: i64, due: DuePage) {
        let Some(round) = self.rounds.get_mut(&due.site) else { return };
        let Some(site) = self.sites.get(&due.site) else { return };
        let place = (due.site, due.page.id);
        if let Some(in_round) = self.taken.get_mut(&place) {
            // It was due by itself: the round waits for it as well.
            if !std::mem::replace(in_round, true) {
                round.open += 1;
                round.taken += 1;
            }
            return;
        }
        if rests_while_gone(site, &due, round.wanted, now_ms) {
            round.cannot_see(due.page.id);
            return;
        }
        if site.conditions.max_pages.is_some_and(|max| round.taken >= max) {
            round.page_limit_reached = true;
            round.scan = Scan::Done { again: false };
            return;
        }
        if self.frontier.queued() >= self.options.queue_max {
            round.not_queued(due.page.id);
            return;
        }
        let server = due.page.id.server();
        if gives_up(&self.options, self.frontier.pace(server.0), now_ms) {
            round.left.entry(server).or_default().insert(due.page.id);
            round.cannot_see(due.page.id);
            return;
        }
        self.taken.insert(place, true);
        round.open += 1;
        round.taken += 1;
        self.set_delay(&due);
        self.push_page(due);
    }

    /// A page's server is asked at its site's own pace.
    pub(super) fn set_delay(&mut self, due: &DuePage) {
        let server = due.page.id.server();
        let Some(site) = self.sites.get(&due.site) else { return };
        let delay_ms = site.conditions.delay_ms.map(|ms| ms as i64);
        if let Some(pace) = self.frontier.pace(server.0)
            && pace.delay_ms != delay_ms
        {
            let pace = Pace { delay_ms, ..pace.clone() };
            self.frontier.set_pace(server.0, pace);
        }
    }

    /// A page whose site has closed goes back to rest: it stays due in the state.
    pub(super) fn put_to_rest(&mut self, due: &DuePage) {
        self.not_visited(due);
        let in_round = self.taken.remove(&(due.site, due.page.id)).unwrap_or(false);
        if let Some(round) = self.rounds.get_mut(&due.site).filter(|_| in_round) {
            round.open -= 1;
            round.taken -= 1;
            round.not_queued(due.page.id);
        }
    }

    /// Whether a page may be asked for at this hour.
    pub(super) fn may_go(&self, due: &DuePage) -> bool {
        let wanted = self.rounds.get(&due.site).is_some_and(|round| round.wanted);
        (wanted && !self.full.contains(&due.site)) || self.is_open(due.site)
    }

    pub(super) fn end_rounds(&mut self, now_ms: i64, out: &mut Vec<Command>) {
        let mut is_any_over = false;
        for state in self.rounds.values_mut() {
            if state.is_over() && !state.ending {
                state.ending = true;
                is_any_over = true;
                let (round, site) = (state.round.id, state.round.site);
                match state.planned.take() {
                    Some(planned) => hand_out(round, planned.end(), out),
                    None => {
                        let end = RoundEnd { round, site, at_s: now_ms / 1000, skips: None };
                        out.push(Command::Commit { ticket: None, change: Change::RoundEnd(end) });
                    }
                }
            }
        }
        // Whoever waits for the round may end right after it.
        if is_any_over {
            self.weigh_all(LOOKS_MAX, out);
        }
    }

    pub(super) fn round_ended(&mut self, round: i64, out: &mut Vec<Command>) {
        let ended = self.rounds.iter().find(|(_, state)| state.round.id == round);
        let Some(site) = ended.map(|(&site, _)| site) else { return };
        let Some(state) = self.rounds.remove(&site) else { return };
        if let Some(site) = self.sites.get_mut(&site) {
            site.round_open = false;
        }
        self.keep_learnt(out);
        out.push(Command::RoundFinished(RoundReport {
            round,
            site,
            counts: state.counts,
            left: state.left.iter().map(|(&server, pages)| (server, pages.len() as u64)).collect(),
            page_limit_reached: state.page_limit_reached,
        }));
    }
}

/// A page that was found gone several times in a row is left out of some rounds, ever more of them.
fn rests_while_gone(site: &Site, due: &DuePage, wanted: bool, now_ms: i64) -> bool {
    let page = &due.page;
    let rest_s = gone_rest_s(&site.conditions.schedule, page.outcome, page.failures);
    let rests = |(rest_s, visited_s): (i64, i64)| now_ms / 1000 < visited_s + rest_s;
    !wanted && rest_s.zip(page.visited_s).is_some_and(rests)
}

/// When a site's next round is due, if it is collected in rounds and not paused. One that was cut
/// short goes on at once.
pub(super) fn next_round_ms(site: &Site) -> Option<i64> {
    let Schedule::Rounds { period_s } = site.conditions.schedule else { return None };
    let last_s = site.collected_s.filter(|_| !site.round_open);
    let due_s = last_s.map_or(i64::MIN / 2000, |last_s| last_s + period_s);
    (!site.paused).then(|| due_s * 1000)
}
