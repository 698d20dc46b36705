//! Fetches: a task is taken up, its answer is judged, and what is new goes to be stored.

use nenrin_frontier::Feedback;
use nenrin_state::{DuePage, Outcome, RobotsPolicy, ServerId};

use nenrin_structure::RoundsBy;

use super::{Crawl, Task, UnderWay, servers::RobotsAnswer};
use crate::{
    Answer, Command, FetchOrder, Fetched, Purpose, StoreOrder, Ticket,
    verdict::{self, Verdict},
};

impl Crawl {
    pub(super) fn start(
        &mut self,
        now_ms: i64,
        server: ServerId,
        task: Task,
        out: &mut Vec<Command>,
    ) {
        match task {
            Task::Page(due) => {
                self.unqueued(&due);
                self.start_page(now_ms, server, due, out);
            }
            Task::Robots { url, hops, allow_private } => {
                self.start_robots(server, url, hops, allow_private, out);
            }
        }
    }

    pub(super) fn start_page(
        &mut self,
        now_ms: i64,
        server: ServerId,
        due: Box<DuePage>,
        out: &mut Vec<Command>,
    ) {
        let Some(site) = self.sites.get(&due.site) else {
            self.frontier.done(server.0, now_ms, Feedback::NotAsked);
            self.taken.remove(&(due.site, due.page.id));
            self.not_visited(&due);
            return;
        };
        if !self.may_go(&due) {
            self.frontier.done(server.0, now_ms, Feedback::NotAsked);
            self.put_to_rest(&due);
            return;
        }
        let conditions = &site.conditions;
        let allow_private = conditions.allow_private;
        let blocks = conditions.rounds_by == RoundsBy::Auto;
        if conditions.robots == RobotsPolicy::Obey {
            match self.robots_allow(now_ms, server, &due.page.url) {
                RobotsAnswer::Allowed => {}
                RobotsAnswer::AskFirst => {
                    self.push_page(*due);
                    if let Ok(url) = self.servers[&server].record.server.url("/robots.txt") {
                        self.start_robots(server, url, 0, allow_private, out);
                    }
                    return;
                }
                RobotsAnswer::No(verdict) => {
                    self.frontier.done(server.0, now_ms, Feedback::NotAsked);
                    let ticket = self.new_ticket();
                    let visit = self.visit(now_ms, &due, verdict, None, 0, out);
                    self.commit_visit(ticket, due.page.url, Box::new(visit), None, out);
                    return;
                }
            }
        }
        if self.looks_first(now_ms, server, &due, out) {
            self.push_page(*due);
            return;
        }
        let ticket = self.new_ticket();
        let wanted = self.wanted_of(server, &due);
        // A page that was gone is asked for whole: coming back is a version.
        let has_version = due.page.version.is_some() && due.page.outcome != Some(Outcome::Gone);
        let conditional = has_version && !wanted.whole;
        let order = FetchOrder {
            ticket,
            purpose: Purpose::Page,
            url: due.page.url.clone(),
            etag: due.page.etag.clone().filter(|_| conditional),
            last_modified: due.page.last_modified.clone().filter(|_| conditional),
            allow_private,
            known_mark: due.page.mark.filter(|_| has_version),
            previous: due.page.version,
            fingerprint: wanted.fingerprint,
            sitemap: wanted.sitemap,
            blocks,
        };
        let asked_conditionally = order.asks_conditionally();
        self.count_visit(now_ms, due.site);
        self.fetching += 1;
        self.under_way
            .insert(ticket, UnderWay::Page { due, asked_ms: now_ms, asked_conditionally });
        out.push(Command::Fetch(Box::new(order)));
    }

    pub(super) fn fetched(
        &mut self,
        now_ms: i64,
        ticket: Ticket,
        fetched: Fetched,
        out: &mut Vec<Command>,
    ) {
        let Some(under_way) = self.under_way.remove(&ticket) else { return };
        self.fetching = self.fetching.saturating_sub(1);
        match under_way {
            UnderWay::Robots { server, hops, allow_private } => {
                self.robots_fetched(now_ms, server, hops, allow_private, fetched, out);
            }
            UnderWay::Look(look) => self.looked(now_ms, look, &fetched, out),
            UnderWay::Page { due, asked_ms, asked_conditionally } => {
                let server = due.page.id.server();
                self.server_done(now_ms, server, &fetched, out);
                let verdict = match &fetched.result {
                    Ok(answer) => self.judge(now_ms, &due, asked_conditionally, answer, out),
                    Err(trouble) => verdict::trouble(trouble),
                };
                self.visited(ticket, asked_ms, *due, verdict, fetched, out);
            }
            other => {
                self.under_way.insert(ticket, other);
            }
        }
    }

    pub(super) fn judge(
        &mut self,
        now_ms: i64,
        due: &DuePage,
        asked_conditionally: bool,
        answer: &Answer,
        out: &mut Vec<Command>,
    ) -> Verdict {
        let found = verdict::verdict(&due.page, asked_conditionally, answer);
        let found = self.judge_by_probe(due, answer, found, out);
        self.learn_from(now_ms, due, answer, found.outcome, out);
        let redirect = (300..400).contains(&answer.status) && found.outcome.is_seen();
        let Some(to) = answer.location.as_ref().filter(|_| redirect) else { return found };
        let hops_max = self.options.redirects_max;
        if due.hops >= hops_max {
            let detail = format!("more than {hops_max} redirects in a row");
            return Verdict { outcome: Outcome::Failed, detail: Some(detail) };
        }
        let Some(round) = self.rounds.get_mut(&due.site) else { return found };
        match round.redirected(&due.page.url, to, hops_max) {
            Some(detail) => Verdict { outcome: Outcome::Failed, detail: Some(detail) },
            None => found,
        }
    }

    /// A visit has its verdict: store what is new, then commit.
    pub(super) fn visited(
        &mut self,
        ticket: Ticket,
        asked_ms: i64,
        due: DuePage,
        verdict: Verdict,
        fetched: Fetched,
        out: &mut Vec<Command>,
    ) {
        let answer = fetched.result.ok();
        let elapsed_ms = fetched.elapsed_ms;
        let visit = self.visit(asked_ms, &due, verdict, answer.as_ref(), elapsed_ms, out);
        if visit.version.is_none() {
            self.commit_visit(ticket, due.page.url, Box::new(visit), None, out);
            return;
        }
        out.push(Command::Store(Box::new(StoreOrder {
            ticket,
            url: due.page.url.clone(),
            site: due.site,
            visited_at_s: visit.at_s,
            previous: due.page.version,
        })));
        let blocks = answer.and_then(|answer| answer.blocks);
        let storing = UnderWay::Storing { url: due.page.url, visit: Box::new(visit), blocks };
        self.under_way.insert(ticket, storing);
    }
}

impl FetchOrder {
    /// Whether a 304 may come.
    pub fn asks_conditionally(&self) -> bool {
        self.etag.is_some() || self.last_modified.is_some()
    }
}
