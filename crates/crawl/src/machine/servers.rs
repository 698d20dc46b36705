//! Servers: their rules, how they bear being asked, and when a round gives one up.

use nenrin_frontier::{Feedback, Pace};
use nenrin_revisit::Overflow;
use nenrin_state::{Change, Outcome, ServerId, ServerPace, ServerRecord};
use nenrin_urls::CanonicalUrl;

use super::{Crawl, ServerState, Task, UnderWay};
use crate::{
    Answer, Command, CrawlOptions, FetchOrder, Fetched, Purpose, ServerLearning, Trouble,
    robots::{self, Rules},
    verdict::{self, Verdict},
};

/// A server that was not asked for this long is at rest: all that is known of it is committed.
const AT_REST_MS: i64 = 2 * 3_600_000;

/// robots.txt goes before any page of its server.
const ROBOTS_PRIORITY: u64 = 0;

impl Crawl {
    pub(super) fn meet_servers(&mut self, now_ms: i64, records: Vec<ServerRecord>) {
        for record in records {
            if self.servers.contains_key(&record.id) {
                continue;
            }
            let mut pace = Pace::new();
            pace.asked_ms = record.asked_ms.max(self.options.asked_before_ms);
            pace.resting_until_ms = record.resting_until_ms;
            pace.strikes = record.strikes;
            pace.trouble_ms = record.asked_ms.filter(|_| record.strikes > 0);
            self.frontier.set_pace(record.id.0, pace);
            let id = record.id;
            let rules_until_s = i64::MIN;
            let overflow = Overflow::new(record.stretch_percent);
            let learnt = ServerLearning::of(&record.notes);
            let rules = Rules::Unknown;
            let state = ServerState { record, rules, rules_until_s, learnt, overflow };
            self.servers.insert(id, state);
            self.refresh_rules(now_ms, id);
        }
    }

    /// Once in a bucket, leaves servers at rest to the state if there are many: their pages bring
    /// them along when their time comes.
    pub(super) fn forget_servers(&mut self, now_ms: i64) {
        let bucket = self.bucket(now_ms);
        if self.servers.len() <= self.options.servers_kept || self.tidied_bucket == Some(bucket) {
            return;
        }
        self.tidied_bucket = Some(bucket);
        let at_rest = |server: &ServerId| {
            let pace = self.frontier.pace(server.0);
            let quiet_ms = |pace: &Pace| {
                let last_ms = pace.asked_ms.max(pace.resting_until_ms);
                last_ms.map_or(0, |last_ms| now_ms - last_ms)
            };
            pace.is_some_and(|pace| quiet_ms(pace) >= AT_REST_MS)
                && !self.unkept.contains(server)
                && !self.refresher.awaits(*server)
        };
        let resting: Vec<ServerId> = self.servers.keys().copied().filter(at_rest).collect();
        let surplus = self.servers.len() - self.options.servers_kept;
        for server in resting.into_iter().take(surplus) {
            if self.frontier.forget(server.0) {
                self.servers.remove(&server);
            }
        }
    }

    /// Takes the rules from the record anew, and the crawl-delay into the pace.
    pub(super) fn refresh_rules(&mut self, now_ms: i64, server: ServerId) {
        let Some(state) = self.servers.get_mut(&server) else { return };
        state.rules = robots::rules(&state.record, now_ms / 1000, &self.options);
        state.rules_until_s = robots::rules_until_s(&state.record, now_ms / 1000, &self.options);
        let crawl_delay_ms = match &state.rules {
            Rules::Known(rules) => rules.crawl_delay().map(|delay| delay.as_millis() as i64),
            _ => None,
        };
        if let Some(pace) = self.frontier.pace(server.0)
            && pace.crawl_delay_ms != crawl_delay_ms
        {
            let pace = Pace { crawl_delay_ms, ..pace.clone() };
            self.frontier.set_pace(server.0, pace);
        }
    }

    pub(super) fn robots_allow(
        &mut self,
        now_ms: i64,
        server: ServerId,
        url: &CanonicalUrl,
    ) -> RobotsAnswer {
        let now_s = now_ms / 1000;
        let old = |s: &ServerState| now_s >= s.rules_until_s;
        if self.servers.get(&server).is_some_and(old) {
            self.refresh_rules(now_ms, server);
        }
        match self.servers.get(&server).map(|state| &state.rules) {
            None | Some(Rules::Unknown) => RobotsAnswer::AskFirst,
            Some(Rules::Unreachable) => RobotsAnswer::No(Verdict {
                outcome: Outcome::Failed,
                detail: Some("robots.txt could not be fetched, so nothing else may be".into()),
            }),
            Some(Rules::Known(rules)) => {
                let answer = rules.allows(url.path_and_query());
                if answer.allowed {
                    return RobotsAnswer::Allowed;
                }
                let detail = match answer.rule {
                    Some(line) => format!("robots.txt line {}: {}", line.number, line.text),
                    None => "robots.txt forbids it".to_owned(),
                };
                RobotsAnswer::No(Verdict { outcome: Outcome::Refused, detail: Some(detail) })
            }
        }
    }

    pub(super) fn start_robots(
        &mut self,
        server: ServerId,
        url: CanonicalUrl,
        hops: u32,
        allow_private: bool,
        out: &mut Vec<Command>,
    ) {
        let ticket = self.new_ticket();
        self.fetching += 1;
        self.under_way.insert(ticket, UnderWay::Robots { server, hops, allow_private });
        out.push(Command::Fetch(Box::new(FetchOrder {
            ticket,
            purpose: Purpose::Robots,
            url,
            etag: None,
            last_modified: None,
            allow_private,
            known_mark: None,
            previous: None,
            fingerprint: false,
            sitemap: false,
            blocks: false,
        })));
    }

    pub(super) fn server_done(
        &mut self,
        now_ms: i64,
        server: ServerId,
        fetched: &Fetched,
        out: &mut Vec<Command>,
    ) {
        self.server_told(now_ms, server, feedback(fetched), out);
    }

    /// A request to a server has ended: its pace learns, and is kept.
    pub(super) fn server_told(
        &mut self,
        now_ms: i64,
        server: ServerId,
        feedback: Feedback,
        out: &mut Vec<Command>,
    ) {
        self.frontier.done(server.0, now_ms, feedback);
        let Some(pace) = self.frontier.pace(server.0) else { return };
        out.push(Command::Commit {
            ticket: None,
            change: Change::Pace(ServerPace {
                server,
                asked_ms: pace.asked_ms.unwrap_or(now_ms),
                resting_until_ms: pace.resting_until_ms,
                strikes: pace.strikes,
                stretch_percent: self.servers.get(&server).map_or(100, |s| s.overflow.percent()),
            }),
        });
        if gives_up(&self.options, Some(pace), now_ms) {
            self.leave(server);
        }
    }

    /// Leaves a server's queued pages for the next round.
    pub(super) fn leave(&mut self, server: ServerId) {
        for task in self.frontier.drain(server.0) {
            let Task::Page(due) = task else { continue };
            self.not_visited(&due);
            let in_round = self.taken.remove(&(due.site, due.page.id)).unwrap_or(false);
            if !in_round {
                self.look_again();
            }
            if let Some(round) = self.rounds.get_mut(&due.site).filter(|_| in_round) {
                round.open -= 1;
                round.taken -= 1;
                round.left.entry(server).or_default().insert(due.page.id);
                round.cannot_see(due.page.id);
            }
        }
    }

    pub(super) fn robots_fetched(
        &mut self,
        now_ms: i64,
        server: ServerId,
        hops: u32,
        allow_private: bool,
        fetched: Fetched,
        out: &mut Vec<Command>,
    ) {
        let now_s = now_ms / 1000;
        let moved = fetched.result.as_ref().ok().filter(|a| (300..400).contains(&a.status));
        if let Some(url) = moved.and_then(|answer| answer.location.clone())
            && hops < robots::HOPS_MAX
        {
            let task = Task::Robots { url, hops: hops + 1, allow_private };
            self.frontier.push(server.0, ROBOTS_PRIORITY, task);
            self.server_done(now_ms, server, &fetched, out);
            return;
        }
        let copy = robots::copy(now_s, &fetched.result);
        if let Some(state) = self.servers.get_mut(&server) {
            state.record.robots_tried_s = Some(now_s);
            if copy.is_some() {
                state.record.robots.clone_from(&copy);
            }
        }
        let feedback = robots_feedback(&fetched);
        let answered = matches!(feedback, Feedback::Answered { .. });
        let has_good = self.servers.get(&server).is_some_and(|state| {
            let good_s = state.record.robots.as_ref().map(|copy| copy.good_at_s);
            good_s.is_some_and(|good_s| now_s - good_s < self.options.robots_stale_s)
        });
        // Without an answer the last good copy serves for another day, as long as it may.
        let settled = answered || has_good;
        if settled {
            let change = Change::Robots { server, tried_s: now_s, copy };
            out.push(Command::Commit { ticket: None, change });
        }
        self.refresh_rules(now_ms, server);
        self.find_named_sitemaps(now_ms, server, out);
        self.fail_first_waiting(now_ms, server, &fetched, out);
        self.server_told(now_ms, server, feedback, out);
        // Without any copy a server that could not be asked is asked for its rules again after its
        // rest, not after a day; nor does the state remember the attempt, or the next process
        // would wait a day.
        if let Some(state) = self.servers.get_mut(&server)
            && !settled
        {
            state.record.robots_tried_s = None;
            state.rules = Rules::Unknown;
        }
    }

    /// Without rules nothing may be fetched: the page whose turn it was gets the server's trouble
    /// as its outcome, so that a person sees why.
    pub(super) fn fail_first_waiting(
        &mut self,
        now_ms: i64,
        server: ServerId,
        fetched: &Fetched,
        out: &mut Vec<Command>,
    ) {
        let unreachable =
            self.servers.get(&server).is_some_and(|s| matches!(s.rules, Rules::Unreachable));
        if !unreachable {
            return;
        }
        let Some(Task::Page(due)) = self.frontier.take_from(server.0) else { return };
        self.unqueued(&due);
        let verdict = match &fetched.result {
            Err(trouble) => verdict::trouble(trouble),
            Ok(answer) => Verdict {
                outcome: Outcome::Failed,
                detail: Some(format!("robots.txt answered with status {}", answer.status)),
            },
        };
        let ticket = self.new_ticket();
        let visit = self.visit(now_ms, &due, verdict, None, fetched.elapsed_ms, out);
        self.commit_visit(ticket, due.page.url, Box::new(visit), None, out);
    }
}

/// What a server's rules say about a page.
pub(super) enum RobotsAnswer {
    /// It may be fetched.
    Allowed,
    /// The rules must be fetched first.
    AskFirst,
    /// It may not be fetched.
    No(Verdict),
}

/// Whether a server must rest longer than the round is patient.
pub(super) fn gives_up(options: &CrawlOptions, pace: Option<&Pace>, now_ms: i64) -> bool {
    let resting_until_ms = pace.and_then(|pace| pace.resting_until_ms);
    match (options.round_patience_ms, resting_until_ms) {
        (Some(patience_ms), Some(until_ms)) => until_ms - now_ms > patience_ms,
        _ => false,
    }
}

/// Without its robots.txt a server can't be asked for anything, so its errors count as being
/// unreachable (RFC 9309).
fn robots_feedback(fetched: &Fetched) -> Feedback {
    match &fetched.result {
        Ok(Answer { status: 500..=599, retry_after_s: None, .. }) => Feedback::Unreachable,
        _ => feedback(fetched),
    }
}

/// What a request taught about its server.
fn feedback(fetched: &Fetched) -> Feedback {
    match &fetched.result {
        Ok(Answer { status: 429 | 503, retry_after_s, .. }) => {
            Feedback::Overloaded { retry_after_s: *retry_after_s }
        }
        Ok(_) => Feedback::Answered { elapsed_ms: fetched.elapsed_ms },
        Err(Trouble { refused: true, .. }) => Feedback::NotAsked,
        Err(Trouble { of_server: true, .. }) => Feedback::Unreachable,
        Err(_) => Feedback::Answered { elapsed_ms: fetched.elapsed_ms },
    }
}
