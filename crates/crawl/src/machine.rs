use std::collections::{BTreeMap, BTreeSet};

use nenrin_frontier::{Feedback, Frontier, FrontierStats, Pace};
use nenrin_state::{
    Change, Discovered, DuePage, NewPage, Outcome, PageId, PageUpdate, RobotsPolicy, Round,
    RoundEnd, Schedule, ServerId, ServerPace, ServerRecord, Site, SiteId, VersionRow, VisitCommit,
};
use nenrin_urls::CanonicalUrl;

use crate::{
    Answer, Command, CrawlOptions, Event, FetchOrder, Fetched, FoundLink, LinkRole, Purpose,
    RoundReport, StoreOrder, Ticket, Trouble,
    robots::{self, Rules},
    round::{RoundState, Scan},
    verdict::{self, Verdict},
};

/// The crawler as a machine: [`Crawl::step`] takes what happened and says what to do.
///
/// Invariants:
/// - a server has at most one request under way, and none before its pace allows;
/// - a page under way or queued is neither queued nor fetched a second time;
/// - a visit is committed only after its content is durable;
/// - whatever is lost with the process (queues, requests under way) is still due in the state.
pub struct Crawl {
    options: CrawlOptions,
    sites: BTreeMap<SiteId, Site>,
    rounds: BTreeMap<SiteId, RoundState>,
    /// Sites that someone wants collected now.
    wanted: BTreeSet<SiteId>,
    /// Sites whose round has been asked for and has not begun yet.
    beginning: BTreeSet<SiteId>,
    servers: BTreeMap<ServerId, ServerState>,
    frontier: Frontier<Task>,
    under_way: BTreeMap<Ticket, UnderWay>,
    /// Requests among `under_way`.
    fetching: usize,
    /// Pages queued or under way.
    taken: BTreeSet<(SiteId, PageId)>,
    last_ticket: u64,
    wake_ms: Option<i64>,
    stopping: bool,
}

#[derive(Debug)]
struct ServerState {
    record: ServerRecord,
    rules: Rules,
    /// Since when the rules hold, to know when to ask again.
    rules_checked_s: i64,
}

#[derive(Debug)]
enum Task {
    Page(Box<DuePage>),
    Robots { url: CanonicalUrl, hops: u32, allow_private: bool },
}

#[derive(Debug)]
enum UnderWay {
    Page { due: Box<DuePage>, asked_ms: i64, asked_conditionally: bool },
    Robots { server: ServerId, hops: u32, allow_private: bool },
    Storing { url: CanonicalUrl, visit: Box<VisitCommit> },
    Committing { url: CanonicalUrl, site: SiteId, page: PageId },
}

/// robots.txt goes before any page of its server.
const ROBOTS_PRIORITY: u64 = 0;

impl Crawl {
    /// A machine that knows no site yet; the first event is [`Event::Sites`].
    pub fn new(options: CrawlOptions) -> Self {
        let frontier = Frontier::new(options.politeness.clone());
        Self {
            options,
            sites: BTreeMap::new(),
            rounds: BTreeMap::new(),
            wanted: BTreeSet::new(),
            beginning: BTreeSet::new(),
            servers: BTreeMap::new(),
            frontier,
            under_way: BTreeMap::new(),
            fetching: 0,
            taken: BTreeSet::new(),
            last_ticket: 0,
            wake_ms: None,
            stopping: false,
        }
    }

    /// Takes one event and says what to do about it.
    pub fn step(&mut self, now_ms: i64, event: Event) -> Vec<Command> {
        let mut out = Vec::new();
        match event {
            Event::Sites(sites) => {
                self.sites = sites.into_iter().map(|site| (site.id, site)).collect();
            }
            Event::CollectNow(site) => {
                self.wanted.insert(site);
            }
            Event::RoundBegun(round) => self.round_begun(round),
            Event::PagesLoaded { round, pages, servers } => {
                self.pages_loaded(now_ms, round, pages, servers);
            }
            Event::Fetched { ticket, fetched } => self.fetched(now_ms, ticket, *fetched, &mut out),
            Event::Stored { ticket, version, stored_bytes } => {
                self.stored(ticket, version, stored_bytes, &mut out);
            }
            Event::Committed { tickets, rounds_ended, new_pages, servers } => {
                self.committed(now_ms, &tickets, &rounds_ended, new_pages, servers, &mut out);
            }
            Event::Wake => self.wake_ms = None,
            Event::Stop => self.stopping = true,
        }
        self.pump(now_ms, &mut out);
        out
    }

    /// How full the short-term queue is.
    pub fn frontier_stats(&self, now_ms: i64) -> FrontierStats {
        self.frontier.stats(now_ms)
    }

    /// Requests under way.
    pub fn fetching(&self) -> usize {
        self.fetching
    }

    /// The page whose visit is being committed under this ticket.
    pub fn committing(&self, ticket: Ticket) -> Option<&CanonicalUrl> {
        match self.under_way.get(&ticket) {
            Some(UnderWay::Committing { url, .. }) => Some(url),
            _ => None,
        }
    }

    /// Pages visited so far in the rounds under way, and pages waiting.
    pub fn round_progress(&self, site: SiteId) -> Option<(u64, u64)> {
        let round = self.rounds.get(&site)?;
        Some((round.round.counts.visits() + round.counts.visits(), round.open as u64))
    }

    fn pump(&mut self, now_ms: i64, out: &mut Vec<Command>) {
        if self.stopping {
            if self.under_way.is_empty() {
                out.push(Command::Stopped);
            }
            return;
        }
        self.begin_due_rounds(now_ms, out);
        self.load_more(out);
        while self.fetching < self.options.parallel
            && self.under_way.len() < self.options.parallel + self.options.unstored_max
        {
            let Some((server, task)) = self.frontier.take(now_ms) else { break };
            self.start(now_ms, ServerId(server), task, out);
        }
        self.end_rounds(now_ms, out);
        self.ask_to_wake(now_ms, out);
    }

    // Rounds.

    fn begin_round(&mut self, site: SiteId, out: &mut Vec<Command>) {
        let known = self.sites.contains_key(&site) && !self.rounds.contains_key(&site);
        if known && self.beginning.insert(site) {
            out.push(Command::BeginRound(site));
        }
    }

    fn begin_due_rounds(&mut self, now_ms: i64, out: &mut Vec<Command>) {
        let due: Vec<SiteId> = self
            .sites
            .values()
            .filter(|site| {
                let due = next_round_ms(site).is_some_and(|due_ms| due_ms <= now_ms);
                due || self.wanted.contains(&site.id)
            })
            .map(|site| site.id)
            .collect();
        for site in due {
            self.begin_round(site, out);
        }
    }

    fn round_begun(&mut self, round: Round) {
        self.beginning.remove(&round.site);
        self.wanted.remove(&round.site);
        if let Some(site) = self.sites.get_mut(&round.site) {
            site.collected_s = Some(round.started_s);
            self.rounds.entry(round.site).or_insert_with(|| RoundState::new(round));
        }
    }

    fn load_more(&mut self, out: &mut Vec<Command>) {
        for state in self.rounds.values_mut() {
            let room = self.options.queue_max.saturating_sub(self.frontier.queued());
            if room < self.options.load_batch {
                return;
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
    }

    fn pages_loaded(
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
    fn enqueue(&mut self, now_ms: i64, due: DuePage) {
        let Some(round) = self.rounds.get_mut(&due.site) else { return };
        let Some(site) = self.sites.get(&due.site) else { return };
        let place = (due.site, due.page.id);
        if self.taken.contains(&place) {
            return;
        }
        if site.conditions.max_pages.is_some_and(|max| round.taken >= max) {
            round.page_limit_reached = true;
            round.scan = Scan::Done { again: false };
            return;
        }
        if self.frontier.queued() >= self.options.queue_max {
            round.scan_again();
            return;
        }
        let server = due.page.id.server();
        if gives_up(&self.options, self.frontier.pace(server.0), now_ms) {
            round.left.entry(server).or_default().insert(due.page.id);
            return;
        }
        self.taken.insert(place);
        round.open += 1;
        round.taken += 1;
        let delay_ms = site.conditions.delay_ms.map(|ms| ms as i64);
        if let Some(pace) = self.frontier.pace(server.0)
            && pace.delay_ms != delay_ms
        {
            let pace = Pace { delay_ms, ..pace.clone() };
            self.frontier.set_pace(server.0, pace);
        }
        self.frontier.push(server.0, page_priority(&due), Task::Page(Box::new(due)));
    }

    fn end_rounds(&mut self, now_ms: i64, out: &mut Vec<Command>) {
        for state in self.rounds.values_mut() {
            if state.is_over() && !state.ending {
                state.ending = true;
                let end =
                    RoundEnd { round: state.round.id, site: state.round.site, at_s: now_ms / 1000 };
                out.push(Command::Commit { ticket: None, change: Change::RoundEnd(end) });
            }
        }
    }

    fn round_ended(&mut self, round: i64, out: &mut Vec<Command>) {
        let ended = self.rounds.iter().find(|(_, state)| state.round.id == round);
        let Some(site) = ended.map(|(&site, _)| site) else { return };
        let Some(state) = self.rounds.remove(&site) else { return };
        out.push(Command::RoundFinished(RoundReport {
            round,
            site,
            counts: state.counts,
            left: state.left.iter().map(|(&server, pages)| (server, pages.len() as u64)).collect(),
            page_limit_reached: state.page_limit_reached,
        }));
    }

    // Servers.

    fn meet_servers(&mut self, now_ms: i64, records: Vec<ServerRecord>) {
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
            let rules_checked_s = now_ms / 1000;
            self.servers.insert(id, ServerState { record, rules: Rules::Unknown, rules_checked_s });
            self.refresh_rules(now_ms, id);
        }
    }

    /// Takes the rules from the record anew, and the crawl-delay into the pace.
    fn refresh_rules(&mut self, now_ms: i64, server: ServerId) {
        let Some(state) = self.servers.get_mut(&server) else { return };
        state.rules = robots::rules(&state.record, now_ms / 1000, &self.options);
        state.rules_checked_s = now_ms / 1000;
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

    // Fetching.

    fn start(&mut self, now_ms: i64, server: ServerId, task: Task, out: &mut Vec<Command>) {
        match task {
            Task::Page(due) => self.start_page(now_ms, server, due, out),
            Task::Robots { url, hops, allow_private } => {
                self.start_robots(server, url, hops, allow_private, out);
            }
        }
    }

    fn start_page(
        &mut self,
        now_ms: i64,
        server: ServerId,
        due: Box<DuePage>,
        out: &mut Vec<Command>,
    ) {
        let Some(site) = self.sites.get(&due.site) else {
            self.frontier.done(server.0, now_ms, Feedback::NotAsked);
            self.taken.remove(&(due.site, due.page.id));
            return;
        };
        let conditions = &site.conditions;
        let allow_private = conditions.allow_private;
        if conditions.robots == RobotsPolicy::Obey {
            match self.robots_allow(now_ms, server, &due.page.url) {
                RobotsAnswer::Allowed => {}
                RobotsAnswer::AskFirst => {
                    self.frontier.push(server.0, page_priority(&due), Task::Page(due));
                    if let Ok(url) = self.servers[&server].record.server.url("/robots.txt") {
                        self.start_robots(server, url, 0, allow_private, out);
                    }
                    return;
                }
                RobotsAnswer::No(verdict) => {
                    self.frontier.done(server.0, now_ms, Feedback::NotAsked);
                    let ticket = self.new_ticket();
                    let visit = self.visit(now_ms, &due, verdict, None, 0);
                    self.commit_visit(ticket, due.page.url, Box::new(visit), out);
                    return;
                }
            }
        }
        let ticket = self.new_ticket();
        // A page that was gone is asked for whole: coming back is a version.
        let has_version = due.page.version.is_some() && due.page.outcome != Some(Outcome::Gone);
        let order = FetchOrder {
            ticket,
            purpose: Purpose::Page,
            url: due.page.url.clone(),
            etag: due.page.etag.clone().filter(|_| has_version),
            last_modified: due.page.last_modified.clone().filter(|_| has_version),
            allow_private,
            known_mark: due.page.mark.filter(|_| has_version),
        };
        let asked_conditionally = order.asks_conditionally();
        self.fetching += 1;
        self.under_way
            .insert(ticket, UnderWay::Page { due, asked_ms: now_ms, asked_conditionally });
        out.push(Command::Fetch(Box::new(order)));
    }

    fn robots_allow(&mut self, now_ms: i64, server: ServerId, url: &CanonicalUrl) -> RobotsAnswer {
        let now_s = now_ms / 1000;
        let old = |s: &ServerState| now_s - s.rules_checked_s >= self.options.robots_fresh_s;
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

    fn start_robots(
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
        })));
    }

    fn fetched(&mut self, now_ms: i64, ticket: Ticket, fetched: Fetched, out: &mut Vec<Command>) {
        let Some(under_way) = self.under_way.remove(&ticket) else { return };
        self.fetching = self.fetching.saturating_sub(1);
        match under_way {
            UnderWay::Robots { server, hops, allow_private } => {
                self.robots_fetched(now_ms, server, hops, allow_private, fetched, out);
            }
            UnderWay::Page { due, asked_ms, asked_conditionally } => {
                let server = due.page.id.server();
                self.server_done(now_ms, server, &fetched, out);
                let verdict = match &fetched.result {
                    Ok(answer) => self.judge(&due, asked_conditionally, answer),
                    Err(trouble) => verdict::trouble(trouble),
                };
                self.visited(ticket, asked_ms, *due, verdict, fetched, out);
            }
            other => {
                self.under_way.insert(ticket, other);
            }
        }
    }

    fn judge(&mut self, due: &DuePage, asked_conditionally: bool, answer: &Answer) -> Verdict {
        let found = verdict::verdict(&due.page, asked_conditionally, answer);
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
    fn visited(
        &mut self,
        ticket: Ticket,
        asked_ms: i64,
        due: DuePage,
        verdict: Verdict,
        fetched: Fetched,
        out: &mut Vec<Command>,
    ) {
        let outcome = verdict.outcome;
        let answer = fetched.result.ok();
        let mut visit = self.visit(asked_ms, &due, verdict, answer.as_ref(), fetched.elapsed_ms);
        let Some(answer) = answer.filter(|_| outcome == Outcome::Changed) else {
            self.commit_visit(ticket, due.page.url, Box::new(visit), out);
            return;
        };
        visit.version = Some(VersionRow {
            at_s: visit.at_s,
            version: 0,
            status: answer.status,
            mime: answer.mime,
            bytes: answer.body_bytes,
        });
        out.push(Command::Store(Box::new(StoreOrder {
            ticket,
            url: due.page.url.clone(),
            site: due.site,
            visited_at_s: visit.at_s,
            previous: due.page.version,
        })));
        let storing = UnderWay::Storing { url: due.page.url, visit: Box::new(visit) };
        self.under_way.insert(ticket, storing);
    }

    fn server_done(
        &mut self,
        now_ms: i64,
        server: ServerId,
        fetched: &Fetched,
        out: &mut Vec<Command>,
    ) {
        self.server_told(now_ms, server, feedback(fetched), out);
    }

    /// A request to a server has ended: its pace learns, and is kept.
    fn server_told(
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
            }),
        });
        if gives_up(&self.options, Some(pace), now_ms) {
            self.leave(server);
        }
    }

    /// Leaves a server's queued pages for the next round.
    fn leave(&mut self, server: ServerId) {
        for task in self.frontier.drain(server.0) {
            let Task::Page(due) = task else { continue };
            self.taken.remove(&(due.site, due.page.id));
            if let Some(round) = self.rounds.get_mut(&due.site) {
                round.open -= 1;
                round.taken -= 1;
                round.left.entry(server).or_default().insert(due.page.id);
            }
        }
    }

    fn robots_fetched(
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
        if answered {
            let change = Change::Robots { server, tried_s: now_s, copy };
            out.push(Command::Commit { ticket: None, change });
        }
        self.refresh_rules(now_ms, server);
        self.fail_first_waiting(now_ms, server, &fetched, out);
        self.server_told(now_ms, server, feedback, out);
        // A server that could not be asked is asked for its rules again after its rest, not after
        // a day; nor does the state remember the attempt, or the next process would wait a day.
        if let Some(state) = self.servers.get_mut(&server)
            && !answered
        {
            state.record.robots_tried_s = None;
            state.rules = Rules::Unknown;
        }
    }

    /// Without rules nothing may be fetched: the page whose turn it was gets the server's trouble
    /// as its outcome, so that a person sees why.
    fn fail_first_waiting(
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
        let verdict = match &fetched.result {
            Err(trouble) => verdict::trouble(trouble),
            Ok(answer) => Verdict {
                outcome: Outcome::Failed,
                detail: Some(format!("robots.txt answered with status {}", answer.status)),
            },
        };
        let ticket = self.new_ticket();
        let visit = self.visit(now_ms, &due, verdict, None, fetched.elapsed_ms);
        self.commit_visit(ticket, due.page.url, Box::new(visit), out);
    }

    // Visits.

    fn visit(
        &self,
        at_ms: i64,
        due: &DuePage,
        verdict: Verdict,
        answer: Option<&Answer>,
        elapsed_ms: i64,
    ) -> VisitCommit {
        let page = &due.page;
        let outcome = verdict.outcome;
        let fresh = answer.filter(|_| matches!(outcome, Outcome::Changed | Outcome::Same));
        let (discovered, new_tops) = match answer {
            Some(answer) if outcome.is_seen() => self.discovered(due, answer),
            _ => (Vec::new(), Vec::new()),
        };
        let kept = || PageUpdate {
            etag: page.etag.clone(),
            last_modified: page.last_modified.clone(),
            mark: page.mark,
            bytes: page.bytes,
            history: page.history.clone(),
            due_s: page.due_s,
            failures: if outcome == Outcome::Failed { page.failures + 1 } else { 0 },
        };
        let update = match fresh {
            Some(answer) => PageUpdate {
                etag: answer.etag.clone(),
                last_modified: answer.last_modified.clone(),
                mark: answer.mark,
                bytes: answer.body_bytes,
                ..kept()
            },
            None => kept(),
        };
        VisitCommit {
            page: page.id,
            site: due.site,
            round: self.rounds.get(&due.site).map(|state| state.round.id),
            at_s: at_ms / 1000,
            outcome,
            status: answer.map_or(0, |answer| answer.status),
            detail: verdict.detail,
            elapsed_ms: u32::try_from(elapsed_ms).unwrap_or(u32::MAX),
            received_bytes: answer.map_or(0, |answer| answer.body_bytes),
            stored_bytes: 0,
            version: None,
            update,
            discovered,
            new_tops,
        }
    }

    /// Pages that an answer makes known, inside the site's conditions.
    fn discovered(&self, due: &DuePage, answer: &Answer) -> (Vec<Discovered>, Vec<CanonicalUrl>) {
        let Some(site) = self.sites.get(&due.site) else { return Default::default() };
        let conditions = &site.conditions;
        if let (300..=399, Some(to)) = (answer.status, &answer.location) {
            let is_top = conditions.tops.contains(&due.page.url);
            let new_tops = if is_top { vec![to.clone()] } else { Vec::new() };
            let inside = is_top
                || conditions.scope.contains(&conditions.tops, to)
                || !conditions.scope.contains(&conditions.tops, &due.page.url);
            let target =
                Discovered { url: to.clone(), depth: due.depth, hops: due.hops + 1, due_s: None };
            return (if inside { vec![target] } else { Vec::new() }, new_tops);
        }
        let wanted = |link: &&FoundLink| {
            let inside = || conditions.scope.contains(&conditions.tops, &link.url);
            match link.role {
                LinkRole::Page => due.depth < conditions.depth && inside(),
                LinkRole::Frame => inside(),
                LinkRole::Embed => conditions.embeds || inside(),
            }
        };
        let found = answer.links.iter().filter(wanted).map(|link| Discovered {
            url: link.url.clone(),
            depth: due.depth + u32::from(link.role == LinkRole::Page),
            hops: 0,
            due_s: None,
        });
        (found.collect(), Vec::new())
    }

    fn stored(&mut self, ticket: Ticket, version: u64, stored_bytes: u64, out: &mut Vec<Command>) {
        match self.under_way.remove(&ticket) {
            Some(UnderWay::Storing { url, mut visit }) => {
                visit.stored_bytes = stored_bytes;
                if let Some(row) = &mut visit.version {
                    row.version = version;
                }
                self.commit_visit(ticket, url, visit, out);
            }
            Some(other) => {
                self.under_way.insert(ticket, other);
            }
            None => {}
        }
    }

    fn commit_visit(
        &mut self,
        ticket: Ticket,
        url: CanonicalUrl,
        visit: Box<VisitCommit>,
        out: &mut Vec<Command>,
    ) {
        if let Some(round) = self.rounds.get_mut(&visit.site) {
            round.counts.count(visit.outcome);
            round.counts.received_bytes += visit.received_bytes;
            round.counts.stored_bytes += visit.stored_bytes;
        }
        if let Some(site) = self.sites.get_mut(&visit.site) {
            for top in &visit.new_tops {
                if !site.conditions.tops.contains(top) {
                    site.conditions.tops.push(top.clone());
                }
            }
        }
        let under_way = UnderWay::Committing { url, site: visit.site, page: visit.page };
        self.under_way.insert(ticket, under_way);
        out.push(Command::Commit { ticket: Some(ticket), change: Change::Visit(visit) });
    }

    fn committed(
        &mut self,
        now_ms: i64,
        tickets: &[Ticket],
        rounds_ended: &[i64],
        new_pages: Vec<NewPage>,
        servers: Vec<ServerRecord>,
        out: &mut Vec<Command>,
    ) {
        self.meet_servers(now_ms, servers);
        for NewPage { due } in new_pages {
            if let Some(round) = self.rounds.get_mut(&due.site) {
                round.counts.new_pages += 1;
            }
            self.enqueue(now_ms, due);
        }
        for ticket in tickets {
            if let Some(UnderWay::Committing { site, page, .. }) = self.under_way.remove(ticket) {
                self.taken.remove(&(site, page));
                if let Some(round) = self.rounds.get_mut(&site) {
                    round.open -= 1;
                }
            }
        }
        for &round in rounds_ended {
            self.round_ended(round, out);
        }
    }

    fn new_ticket(&mut self) -> Ticket {
        self.last_ticket += 1;
        Ticket(self.last_ticket)
    }

    /// Asks to be called at the next moment when something can be done, once.
    fn ask_to_wake(&mut self, now_ms: i64, out: &mut Vec<Command>) {
        let has_place = self.fetching < self.options.parallel;
        let ready_ms = self.frontier.next_ready_ms().filter(|_| has_place);
        let round_ms = self
            .sites
            .values()
            .filter(|site| {
                !self.rounds.contains_key(&site.id) && !self.beginning.contains(&site.id)
            })
            .filter_map(next_round_ms)
            .min();
        let Some(next_ms) = ready_ms.into_iter().chain(round_ms).min() else { return };
        let next_ms = next_ms.max(now_ms + 1);
        if self.wake_ms.is_none_or(|asked_ms| next_ms < asked_ms) {
            self.wake_ms = Some(next_ms);
            out.push(Command::WakeAt(next_ms));
        }
    }
}

enum RobotsAnswer {
    Allowed,
    AskFirst,
    No(Verdict),
}

impl FetchOrder {
    /// Whether a 304 may come.
    pub fn asks_conditionally(&self) -> bool {
        self.etag.is_some() || self.last_modified.is_some()
    }
}

/// Pages nearer to a top page go first; among equals the one that was found first.
fn page_priority(due: &DuePage) -> u64 {
    1 + u64::from(due.depth)
}

fn next_round_ms(site: &Site) -> Option<i64> {
    let Schedule::Rounds { period_s } = site.conditions.schedule else { return None };
    let due_s = site.collected_s.map_or(i64::MIN / 2000, |last_s| last_s + period_s);
    (!site.paused).then(|| due_s * 1000)
}

fn gives_up(options: &CrawlOptions, pace: Option<&Pace>, now_ms: i64) -> bool {
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
