//! Servers: the queue of each, how soon it may be asked again, and what its robots.txt allows.

mod robots;

use std::collections::BTreeMap;

use nenrin_fetch::{AddressPolicy, Road};
use nenrin_frontier::{Feedback, Frontier, FrontierStats, Pace, Politeness};
use nenrin_lang::Reason;
use nenrin_revisit::Overflow;
use nenrin_state::{Change, DuePage, Outcome, ServerId, ServerPace, ServerRecord};
use nenrin_urls::{CanonicalUrl, Server};

use crate::{
    answer::{Answer, Fetched, Trouble},
    options::CrawlOptions,
    verdict::Verdict,
};

use self::robots::Rules;

/// A server that was not asked for this long is at rest: all that is known of it is committed.
const AT_REST_MS: i64 = 2 * 3_600_000;

/// robots.txt goes before any page of its server.
const ROBOTS_PRIORITY: u64 = 0;

/// The servers in memory, each with its queue.
#[derive(Debug)]
pub(crate) struct Servers {
    known: BTreeMap<ServerId, KnownServer>,
    queues: Frontier<Task>,
    /// The bucket in which servers at rest were last looked for.
    tidied_bucket: Option<i64>,
}

#[derive(Debug)]
struct KnownServer {
    record: ServerRecord,
    rules: Rules,
    /// Until when the rules hold.
    rules_until_s: i64,
    /// How far its pages' intervals are stretched.
    overflow: Overflow,
}

/// What is queued for a server.
#[derive(Debug)]
pub(crate) enum Task {
    Page(Box<DuePage>),
    Robots(RobotsRequest),
}

/// A request for a robots.txt.
#[derive(Debug)]
pub(crate) struct RobotsRequest {
    pub(crate) url: CanonicalUrl,
    /// Redirects followed so far.
    pub(crate) hops: u32,
    pub(crate) addresses: AddressPolicy,
    pub(crate) road: Road,
}

/// What a server's rules say about a page.
#[derive(Debug)]
pub(crate) enum RobotsAnswer {
    /// It may be fetched.
    Allowed,
    /// The rules must be fetched first.
    AskFirst,
    /// It may not be fetched.
    No(Verdict),
}

impl Servers {
    pub(crate) fn new(politeness: Politeness) -> Self {
        Self { known: BTreeMap::new(), queues: Frontier::new(politeness), tidied_bucket: None }
    }

    pub(crate) fn set_politeness(&mut self, politeness: Politeness) {
        self.queues.set_politeness(politeness);
    }

    pub(crate) fn knows(&self, server: ServerId) -> bool {
        self.known.contains_key(&server)
    }

    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// A server came from the state.
    pub(crate) fn meet(&mut self, now_ms: i64, record: ServerRecord, options: &CrawlOptions) {
        let mut pace = Pace::new();
        pace.asked_ms = record.asked_ms.max(options.asked_before_ms);
        pace.resting_until_ms = record.resting_until_ms;
        pace.strikes = record.strikes;
        pace.trouble_ms = record.asked_ms.filter(|_| record.strikes > 0);
        self.queues.set_pace(record.id.0, pace);
        let id = record.id;
        let overflow = Overflow::new(record.stretch_percent);
        let (rules, rules_until_s) = (Rules::Unknown, i64::MIN);
        self.known.insert(id, KnownServer { record, rules, rules_until_s, overflow });
        self.refresh_rules(now_ms, id, options);
    }

    /// Once in a bucket, leaves servers at rest to the state if there are many: their pages bring
    /// them along when their time comes. Returns those that were forgotten.
    pub(crate) fn forget_resting(
        &mut self,
        now_ms: i64,
        options: &CrawlOptions,
        may_forget: impl Fn(ServerId) -> bool,
    ) -> Vec<ServerId> {
        let bucket = options.bucket(now_ms);
        if self.known.len() <= options.servers_kept || self.tidied_bucket == Some(bucket) {
            return Vec::new();
        }
        self.tidied_bucket = Some(bucket);
        let quiet_ms = |pace: &Pace| {
            let last_ms = pace.asked_ms.max(pace.resting_until_ms);
            last_ms.map_or(0, |last_ms| now_ms - last_ms)
        };
        let at_rest = |server: &ServerId| {
            let pace = self.queues.pace(server.0);
            pace.is_some_and(|pace| quiet_ms(pace) >= AT_REST_MS) && may_forget(*server)
        };
        let surplus = self.known.len() - options.servers_kept;
        let mut resting: Vec<ServerId> =
            self.known.keys().copied().filter(at_rest).take(surplus).collect();
        resting.retain(|server| self.queues.forget(server.0));
        for server in &resting {
            self.known.remove(server);
        }
        resting
    }

    pub(crate) fn name(&self, server: ServerId) -> Option<&Server> {
        self.known.get(&server).map(|known| &known.record.server)
    }
}

/// The queues.
impl Servers {
    pub(crate) fn stats(&self, now_ms: i64) -> FrontierStats {
        self.queues.stats(now_ms)
    }

    pub(crate) fn queued(&self) -> usize {
        self.queues.queued()
    }

    pub(crate) fn queued_for(&self, server: ServerId) -> usize {
        self.queues.queued_for(server.0)
    }

    pub(crate) fn queued_new_for(&self, server: ServerId) -> usize {
        self.queues.queued_new_for(server.0)
    }

    /// Whether more pages of a server are to be loaded.
    pub(crate) fn is_low(&self, server: ServerId, options: &CrawlOptions) -> bool {
        self.queued_for(server) <= options.server_queue_max / 2
    }

    /// When the next server may be asked.
    pub(crate) fn next_ready_ms(&self) -> Option<i64> {
        self.queues.next_ready_ms()
    }

    /// Queues a known page that has been waiting since a time; smaller priorities go first.
    pub(crate) fn queue_known(&mut self, due: Box<DuePage>, priority: u64, since: u64) {
        self.queues.push_since(due.page.id.server().0, priority, since, Task::Page(due));
    }

    /// Queues a new page; no two of a server have the same mark.
    pub(crate) fn queue_new(&mut self, due: Box<DuePage>, priority: u64, mark: u64) {
        let (server, since) = (due.page.id.server().0, due.page.discovered_s.max(1).unsigned_abs());
        self.queues.push_new(server, (priority, mark), since, Task::Page(due));
    }

    /// Gives a new page that is queued another priority.
    pub(crate) fn reprioritise_new(&mut self, server: ServerId, mark: u64, from: u64, to: u64) {
        self.queues.reprioritise_new(server.0, mark, from, to);
    }

    /// Sets how many new pages of a server wait outside of its queue.
    pub(crate) fn set_resting_new(&mut self, server: ServerId, resting: usize) {
        self.queues.set_resting_new(server.0, resting);
    }

    /// Queues another request for a robots.txt, in front of everything else.
    pub(crate) fn queue_robots(&mut self, server: ServerId, request: RobotsRequest) {
        self.queues.push(server.0, ROBOTS_PRIORITY, Task::Robots(request));
    }

    /// The next thing to ask a server that may be asked now.
    pub(crate) fn take(&mut self, now_ms: i64) -> Option<(ServerId, Task)> {
        self.queues.take(now_ms).map(|(server, task)| (ServerId(server), task))
    }

    /// The page that was taken last from a server's queue is asked for.
    pub(crate) fn asked(&mut self, server: ServerId) {
        self.queues.asked(server.0);
    }

    /// The next thing queued for a server, which is not asked for it.
    pub(crate) fn take_waiting(&mut self, server: ServerId) -> Option<Task> {
        self.queues.take_from(server.0)
    }

    /// Takes all pages away that are queued for a server.
    pub(crate) fn drain(&mut self, server: ServerId) -> Vec<DuePage> {
        let pages = self.queues.drain(server.0).into_iter().filter_map(|task| match task {
            Task::Page(due) => Some(*due),
            Task::Robots(_) => None,
        });
        pages.collect()
    }
}

/// The pace.
impl Servers {
    /// The server that had its turn was not asked for anything after all.
    pub(crate) fn not_asked(&mut self, now_ms: i64, server: ServerId) {
        self.queues.done(server.0, now_ms, Feedback::NotAsked);
    }

    /// A request to a server has ended: its pace learns, and is to be committed.
    pub(crate) fn answered(
        &mut self,
        now_ms: i64,
        server: ServerId,
        feedback: Feedback,
    ) -> Option<Change> {
        self.queues.done(server.0, now_ms, feedback);
        let pace = self.queues.pace(server.0)?;
        let stretch_percent = self.known.get(&server).map_or(100, |known| known.overflow.percent());
        Some(Change::Pace(ServerPace {
            server,
            asked_ms: pace.asked_ms.unwrap_or(now_ms),
            resting_until_ms: pace.resting_until_ms,
            strikes: pace.strikes,
            stretch_percent,
        }))
    }

    /// A server is asked at the pace of the site whose page comes next.
    pub(crate) fn set_delay(&mut self, server: ServerId, delay_ms: Option<i64>) {
        if let Some(pace) = self.queues.pace(server.0)
            && pace.delay_ms != delay_ms
        {
            let pace = Pace { delay_ms, ..pace.clone() };
            self.queues.set_pace(server.0, pace);
        }
    }

    /// Whether a server must rest longer than a round is patient.
    pub(crate) fn rests_too_long(
        &self,
        now_ms: i64,
        server: ServerId,
        options: &CrawlOptions,
    ) -> bool {
        let resting_until_ms = self.queues.pace(server.0).and_then(|pace| pace.resting_until_ms);
        match (options.round_patience_ms, resting_until_ms) {
            (Some(patience_ms), Some(until_ms)) => until_ms - now_ms > patience_ms,
            _ => false,
        }
    }

    /// How many times as long as planned the intervals of a server's pages are.
    pub(crate) fn stretch(&self, server: ServerId) -> f64 {
        self.known.get(&server).map_or(1.0, |known| known.overflow.stretch())
    }

    /// A page was visited at `at_s` that was due at `due_s`: a server whose pages are visited late
    /// has its intervals stretched.
    pub(crate) fn note_lateness(
        &mut self,
        server: ServerId,
        at_s: i64,
        due_s: i64,
        interval_s: i64,
        options: &CrawlOptions,
    ) {
        if let Some(known) = self.known.get_mut(&server) {
            known.overflow.visited(at_s, due_s, interval_s, options.bucket_s);
        }
    }
}

/// The rules.
impl Servers {
    /// Takes the rules from the record again, and the crawl-delay into the pace.
    fn refresh_rules(&mut self, now_ms: i64, server: ServerId, options: &CrawlOptions) {
        let Some(known) = self.known.get_mut(&server) else { return };
        known.rules = robots::rules(&known.record, now_ms / 1000, options);
        known.rules_until_s = robots::rules_until_s(&known.record, now_ms / 1000, options);
        let crawl_delay_ms = match &known.rules {
            Rules::Known(rules) => rules.crawl_delay().map(|delay| delay.as_millis() as i64),
            _ => None,
        };
        if let Some(pace) = self.queues.pace(server.0)
            && pace.crawl_delay_ms != crawl_delay_ms
        {
            let pace = Pace { crawl_delay_ms, ..pace.clone() };
            self.queues.set_pace(server.0, pace);
        }
    }

    /// Whether a page may be fetched, by the rules that hold now.
    pub(crate) fn may_fetch(
        &mut self,
        now_ms: i64,
        url: &CanonicalUrl,
        server: ServerId,
        options: &CrawlOptions,
    ) -> RobotsAnswer {
        if self.known.get(&server).is_some_and(|known| now_ms / 1000 >= known.rules_until_s) {
            self.refresh_rules(now_ms, server, options);
        }
        match self.known.get(&server).map(|known| &known.rules) {
            None | Some(Rules::Unknown) => RobotsAnswer::AskFirst,
            Some(Rules::Unreachable) => {
                RobotsAnswer::No(Verdict::because(Outcome::Failed, Reason::RobotsUnreachable))
            }
            Some(Rules::Known(rules)) => {
                let answer = rules.allows(url.path_and_query());
                if answer.allowed {
                    return RobotsAnswer::Allowed;
                }
                let line = answer.rule.map(|line| (line.number as u64, line.text.clone()));
                RobotsAnswer::No(Verdict::because(Outcome::Refused, Reason::Robots { line }))
            }
        }
    }

    /// Whether the known rules allow a URL.
    pub(crate) fn allows(&self, server: ServerId, url: &CanonicalUrl) -> bool {
        match self.known.get(&server).map(|known| &known.rules) {
            Some(Rules::Known(rules)) => rules.allows(url.path_and_query()).allowed,
            _ => false,
        }
    }

    /// Where a server's robots.txt is.
    pub(crate) fn robots_url(&self, server: ServerId) -> Option<CanonicalUrl> {
        self.name(server)?.url("/robots.txt").ok()
    }

    /// The sitemaps that a server's robots.txt names.
    pub(crate) fn named_sitemaps(&self, server: ServerId) -> Vec<CanonicalUrl> {
        let rules = self.known.get(&server).map(|known| &known.rules);
        match (rules, self.robots_url(server)) {
            (Some(Rules::Known(rules)), Some(url)) => rules.sitemaps(&url),
            _ => Vec::new(),
        }
    }

    /// Whether nothing may be fetched because the rules cannot be had.
    pub(crate) fn is_without_rules(&self, server: ServerId) -> bool {
        self.known.get(&server).is_some_and(|known| matches!(known.rules, Rules::Unreachable))
    }

    /// A request for robots.txt has ended. Returns what is to be committed; nothing if it settles
    /// nothing, and then [`ask_rules_again`](Self::ask_rules_again) is due.
    pub(crate) fn robots_answered(
        &mut self,
        now_ms: i64,
        server: ServerId,
        fetched: &Fetched,
        options: &CrawlOptions,
    ) -> Option<Change> {
        let now_s = now_ms / 1000;
        let copy = robots::copy(now_s, &fetched.result);
        if let Some(known) = self.known.get_mut(&server) {
            known.record.robots_tried_s = Some(now_s);
            if copy.is_some() {
                known.record.robots.clone_from(&copy);
            }
        }
        let answered = matches!(robots_feedback(fetched), Feedback::Answered { .. });
        let has_good = self.known.get(&server).is_some_and(|known| {
            let good_s = known.record.robots.as_ref().map(|copy| copy.good_at_s);
            good_s.is_some_and(|good_s| now_s - good_s < options.robots_stale_s)
        });
        self.refresh_rules(now_ms, server, options);
        // Without an answer the last good copy serves for another day, as long as it may.
        let settled = answered || has_good;
        settled.then_some(Change::Robots { server, tried_s: now_s, copy })
    }

    /// Without any copy a server that could not be asked is asked for its rules again after its
    /// rest, not after a day; nor does the state remember the attempt, or the next process would
    /// wait a day.
    pub(crate) fn ask_rules_again(&mut self, server: ServerId) {
        if let Some(known) = self.known.get_mut(&server) {
            known.record.robots_tried_s = None;
            known.rules = Rules::Unknown;
        }
    }
}

/// Where a robots.txt has moved to, if it is followed there.
pub(crate) fn robots_moved(hops: u32, fetched: &Fetched) -> Option<CanonicalUrl> {
    let answer = fetched.result.as_ref().ok()?;
    let follows = (300..400).contains(&answer.status) && hops < robots::HOPS_MAX;
    answer.location.clone().filter(|_| follows)
}

/// What a request for robots.txt showed of its server. Without its robots.txt a server can't be
/// asked for anything, so its errors count as being unreachable (RFC 9309).
pub(crate) fn robots_feedback(fetched: &Fetched) -> Feedback {
    match &fetched.result {
        Ok(Answer { status: 500..=599, retry_after_s: None, .. }) => Feedback::Unreachable,
        _ => feedback(fetched),
    }
}

/// What a request showed of its server.
pub(crate) fn feedback(fetched: &Fetched) -> Feedback {
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
