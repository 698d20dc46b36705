//! One visit: a page is asked for, its answer is judged, what is new is stored, and what the visit
//! makes true is committed.

use nenrin_fetch::{AddressPolicy, Road};
use nenrin_frontier::Feedback;
use nenrin_lang::Reason;
use nenrin_state::{
    Change, DuePage, Origin, Outcome, RobotsPolicy, ServerId, SiteConditions, Validators,
    VersionId, VisitCommit,
};
use nenrin_structure::RoundsBy;
use nenrin_urls::CanonicalUrl;

use crate::{
    answer::{Answer, FetchOrder, Fetched, SignalKind, Ticket},
    discovery::{Discovery, discover, links_of},
    events::{Command, StoreOrder},
    hops,
    learning::Links,
    plans::{VisitResult, seen},
    renderings::RenderCase,
    servers::{RobotsAnswer, RobotsRequest, Task, feedback},
    under_way::{Asked, Committing, NamedPage, Unstored, UnstoredVersion},
    update::page_update,
    verdict::{self, Verdict},
};

use super::Crawl;

/// What a visit makes true, before its content is stored.
struct Visited {
    commit: Box<VisitCommit>,
    /// The new version, if there is one.
    version: Option<UnstoredVersion>,
}

/// Sending requests to servers.
impl Crawl {
    /// Sends requests to servers that are ready, as far as answers can be held.
    pub(super) fn ask_servers(&mut self, now_ms: i64, out: &mut Vec<Command>) {
        let under_way_max = self.options.parallel + self.options.unstored_max;
        while self.under_way.fetching() < self.options.parallel
            && self.under_way.len() < under_way_max
            && let Some((server, task)) = self.servers.take(now_ms)
        {
            match task {
                Task::Page(due) => {
                    self.new_pages.unqueued(&due);
                    self.start_page(now_ms, server, due, out);
                }
                Task::Robots(request) => self.start_robots(server, request, out),
            }
            self.queue_shrank(server);
        }
    }

    fn start_page(
        &mut self,
        now_ms: i64,
        server: ServerId,
        due: Box<DuePage>,
        out: &mut Vec<Command>,
    ) {
        let Some(conditions) = self.sites.conditions(due.site) else {
            self.servers.not_asked(now_ms, server);
            self.release(due.site, due.page.id, out);
            self.new_pages.not_visited(&due);
            return;
        };
        let addresses = AddressPolicy::private_if(conditions.allows_private(&due.page.url));
        let obeys_robots = conditions.robots == RobotsPolicy::Obey;
        let road = road(conditions, &due.page.url);
        if !self.may_go(&due) {
            self.servers.not_asked(now_ms, server);
            self.put_to_rest(&due, out);
            return;
        }
        if conditions.leaves_out(&due.page.url) {
            // It was known before the patterns were.
            self.servers.not_asked(now_ms, server);
            let verdict = Verdict::because(Outcome::Refused, Reason::LeftOut);
            self.not_answered(now_ms, &due, verdict, 0, out);
            return;
        }
        if obeys_robots {
            match self.servers.may_fetch(now_ms, &due.page.url, server, &self.options) {
                RobotsAnswer::Allowed => {}
                RobotsAnswer::AskFirst => {
                    self.queue_page(now_ms, due);
                    if let Some(url) = self.servers.robots_url(server) {
                        let request = RobotsRequest { url, hops: 0, addresses, road };
                        self.start_robots(server, request, out);
                    }
                    return;
                }
                RobotsAnswer::No(verdict) => {
                    self.servers.not_asked(now_ms, server);
                    self.not_answered(now_ms, &due, verdict, 0, out);
                    return;
                }
            }
        }
        if self.looks_first(now_ms, &due, obeys_robots, addresses, out) {
            self.queue_page(now_ms, due);
            return;
        }
        self.ask_for_page(now_ms, due, out);
    }

    /// Whether a page may be asked for at this hour.
    fn may_go(&self, due: &DuePage) -> bool {
        let is_wanted = self.rounds.is_wanted(due.site) && !self.sites.is_full(due.site);
        is_wanted || self.schedules.is_open(due.site)
    }

    fn ask_for_page(&mut self, now_ms: i64, due: Box<DuePage>, out: &mut Vec<Command>) {
        let Some(conditions) = self.sites.conditions(due.site) else { return };
        let ticket = self.under_way.new_ticket();
        let mut wanted = self.learning.wanted_of(&due, self.sites.is_top(&due));
        wanted.fingerprint |= conditions.login_page.is_some();
        let addresses = AddressPolicy::private_if(conditions.allows_private(&due.page.url));
        let order = FetchOrder {
            blocks: conditions.rounds_by == RoundsBy::Auto,
            headers: conditions.headers_for(&due.page.url).to_vec(),
            ignored: ignored_parts(conditions, &due.page.url),
            road: road(conditions, &due.page.url),
            likely_urls: conditions.scripts.likely_urls,
            site: Some(due.site),
            ..FetchOrder::of_page(ticket, &due.page, &wanted, addresses)
        };
        let conditionally = order.asks_conditionally();
        if self.schedules.count_visit(now_ms / 1000, due.site, &self.options) {
            self.watch_sites(now_ms);
        }
        self.servers.asked(due.page.id.server());
        self.under_way.ask(ticket, Asked::Page { due, asked_ms: now_ms, conditionally });
        out.push(Command::Fetch(Box::new(order)));
    }
}

/// What came of it.
impl Crawl {
    pub(super) fn fetched(
        &mut self,
        now_ms: i64,
        ticket: Ticket,
        fetched: Fetched,
        out: &mut Vec<Command>,
    ) {
        match self.under_way.fetched(ticket) {
            Some(Asked::Robots { server, request }) => {
                self.robots_fetched(now_ms, server, request, &fetched, out);
            }
            Some(Asked::Look(look)) => self.looked(now_ms, &look, &fetched, out),
            Some(Asked::Page { due, asked_ms, conditionally }) => {
                self.server_answered(now_ms, due.page.id.server(), feedback(&fetched), out);
                let verdict = match &fetched.result {
                    Ok(answer) => self.judge(now_ms, &due, conditionally, answer, out),
                    Err(trouble) => {
                        if let reason @ Reason::LoginUnreadable(_) = &trouble.reason {
                            let (site, url) = (due.site, due.page.url.clone());
                            out.push(Command::LoggedOut { site, url, reason: reason.clone() });
                        }
                        verdict::trouble(trouble)
                    }
                };
                self.visited(ticket, asked_ms, &due, verdict, fetched, out);
            }
            None => {}
        }
    }

    /// A request to a server has ended: its pace learns, and is kept.
    pub(super) fn server_answered(
        &mut self,
        now_ms: i64,
        server: ServerId,
        feedback: Feedback,
        out: &mut Vec<Command>,
    ) {
        let change = self.servers.answered(now_ms, server, feedback);
        out.extend(change.map(Command::commit));
        if self.servers.rests_too_long(now_ms, server, &self.options) {
            self.leave_server(server, out);
        }
    }

    fn judge(
        &mut self,
        now_ms: i64,
        due: &DuePage,
        conditionally: bool,
        answer: &Answer,
        out: &mut Vec<Command>,
    ) -> Verdict {
        let conditions = self.sites.conditions(due.site);
        let out_of =
            conditions.and_then(|conditions| self.learning.logged_out(due, conditions, answer));
        if let Some(reason) = out_of {
            let url = due.page.url.clone();
            out.push(Command::LoggedOut { site: due.site, url, reason: reason.clone() });
            return Verdict::because(Outcome::Refused, reason);
        }
        let found = verdict::verdict(&due.page, conditionally, answer);
        let is_top = self.sites.is_top(due);
        let found = self.learning.judge_by_probe(due, is_top, answer, found, out);
        self.learn_from(now_ms / 1000, due, answer, found.outcome, out);
        let is_redirect = (300..400).contains(&answer.status) && found.outcome.is_seen();
        let Some(to) = answer.location.as_ref().filter(|_| is_redirect) else { return found };
        let hops_max = self.options.redirects_max.min(hops::REDIRECTS_MAX);
        let reason = if hops::redirects(due.hops) >= hops_max {
            Some(Reason::TooManyRedirects(hops_max))
        } else {
            self.rounds.redirected(due.site, &due.page.url, to, hops_max)
        };
        match reason {
            Some(reason) => Verdict::because(Outcome::Failed, reason),
            None => found,
        }
    }

    /// Learns what a page says of others, and brings those nearer that are said to have changed.
    fn learn_from(
        &mut self,
        now_s: i64,
        due: &DuePage,
        answer: &Answer,
        outcome: Outcome,
        out: &mut Vec<Command>,
    ) {
        if !outcome.is_seen() || !self.sites.takes_signals(due.site) {
            return;
        }
        let last_read_s = self.learning.learn_from(now_s, due, answer, outcome, out);
        let last_read_s = last_read_s.filter(|_| self.sites.is_continuous(due.site));
        let announced =
            last_read_s.and_then(|read_s| self.learning.announced(now_s, due, read_s, answer));
        if let Some(announced) = announced {
            self.pull(due.page.id.server(), Change::Announced(announced), out);
        }
    }
}

/// What it makes true.
impl Crawl {
    /// A page gets an outcome without having been asked for.
    pub(super) fn not_answered(
        &mut self,
        now_ms: i64,
        due: &DuePage,
        verdict: Verdict,
        elapsed_ms: i64,
        out: &mut Vec<Command>,
    ) {
        let ticket = self.under_way.new_ticket();
        let visited = self.visit(now_ms, due, verdict, None, elapsed_ms, out);
        self.commit_visit(ticket, NamedPage::of(due), visited.commit, (None, None), out);
    }

    /// A visit has its verdict: store what is new, then commit.
    fn visited(
        &mut self,
        ticket: Ticket,
        asked_ms: i64,
        due: &DuePage,
        verdict: Verdict,
        fetched: Fetched,
        out: &mut Vec<Command>,
    ) {
        let answer = fetched.result.ok();
        let elapsed_ms = fetched.elapsed_ms;
        let visited = self.visit(asked_ms, due, verdict, answer.as_ref(), elapsed_ms, out);
        let page = NamedPage::of(due);
        let Some(version) = visited.version else {
            return self.commit_visit(ticket, page, visited.commit, (None, None), out);
        };
        out.push(Command::Store(Box::new(StoreOrder {
            ticket,
            url: page.url.clone(),
            site: due.site,
            visited_at_s: visited.commit.at_s,
            previous: due.page.version,
        })));
        let scripts = answer.as_ref().and_then(|answer| answer.scripts);
        let render = scripts.filter(|_| self.is_rendered(due, scripts, version.status));
        let render = render.map(|scripts| (Box::new(due.clone()), scripts));
        let blocks = answer.and_then(|answer| answer.blocks);
        let is_first = due.page.version.is_none();
        let unstored = Unstored { page, visit: visited.commit, version, blocks, render, is_first };
        self.under_way.store(ticket, unstored);
    }

    fn visit(
        &mut self,
        at_ms: i64,
        due: &DuePage,
        verdict: Verdict,
        answer: Option<&Answer>,
        elapsed_ms: i64,
        out: &mut Vec<Command>,
    ) -> Visited {
        let (page, at_s, outcome) = (&due.page, at_ms / 1000, verdict.outcome);
        let site = self.sites.get(due.site);
        let Discovery { pages: mut discovered, new_tops, refused } = match (site, answer) {
            (Some(site), Some(answer)) if outcome.is_seen() => discover(site, due, answer, at_s),
            _ => Discovery::default(),
        };
        let is_sitemap = answer.is_some_and(|answer| answer.signal == Some(SignalKind::Sitemap));
        let mut trapped = self.learning.refuse(at_s, due, refused, out);
        let links = Links { found: &mut discovered, tops: &new_tops, is_sitemap };
        let not_now = self.learning.leave_traps(at_s, due, links, out);
        trapped += not_now.trapped;
        if page.visited_s.is_none() {
            self.learning.tried(due, out);
        }
        let in_round = self.taken.is_in_round(due.site, page.id);
        let mut visit = VisitCommit {
            page: page.id.into(),
            origin: Origin::Crawled,
            site: due.site,
            round: self.rounds.id(due.site).filter(|_| in_round),
            at_s,
            outcome,
            is_first: page.version.is_none(),
            status: answer.map_or(0, |answer| answer.status),
            reason: verdict.reason,
            elapsed_ms: u32::try_from(elapsed_ms).unwrap_or(u32::MAX),
            received_bytes: answer.map_or(0, |answer| answer.body_bytes),
            stored_bytes: 0,
            version: None,
            update: page_update(page, outcome, answer),
            discovered,
            new_tops,
            trapped,
            importance_percent: self.new_pages.weigh(page.nth),
            gives_micros: self.new_pages.gives_micros(page.nth),
            estimate: None,
            links: answer.filter(|_| outcome == Outcome::Changed).map(links_of),
        };
        if not_now.has_more {
            // Its list is read again although it has not changed.
            visit.update.validators = Validators::default();
        }
        let changed = answer.filter(|_| outcome == Outcome::Changed);
        let version = changed.map(|answer| UnstoredVersion {
            status: answer.status,
            mime: answer.mime.clone(),
            bytes: answer.body_bytes,
            changed_permille: self.learning.changed_permille(
                due,
                answer.comparison.as_deref(),
                out,
            ),
        });
        let counts = |version: &UnstoredVersion| {
            self.sites.counts_change(due.site, version.is_significant())
        };
        let changed = version.as_ref().is_some_and(counts);
        self.plan_next(due, &mut visit, changed, answer, out);
        Visited { commit: Box::new(visit), version }
    }

    /// Sets the page's next visit. `changed` is the change that drives the schedule.
    fn plan_next(
        &mut self,
        due: &DuePage,
        visit: &mut VisitCommit,
        changed: bool,
        answer: Option<&Answer>,
        out: &mut Vec<Command>,
    ) {
        let server = due.page.id.server();
        let stretch = self.servers.stretch(server);
        let planned_s = self.schedules.plan_next(due, visit, changed, answer, stretch, out);
        // A visit that failed does not show that its server keeps up, nor that it does not.
        if let Some(planned_s) = planned_s.filter(|_| visit.outcome != Outcome::Failed) {
            let interval_s = visit.update.due_s.map_or(0, |next_s| next_s - visit.at_s);
            let options = &self.options;
            self.servers.note_lateness(server, visit.at_s, planned_s, interval_s, options);
        }
    }

    /// The content of a visit is durable: the visit can be committed.
    pub(super) fn stored(
        &mut self,
        ticket: Ticket,
        version: VersionId,
        (stored_bytes, is_known): (u64, bool),
        out: &mut Vec<Command>,
    ) {
        let Some(unstored) = self.under_way.stored(ticket) else { return };
        let Unstored { page, mut visit, version: unnumbered, blocks, render, is_first } = unstored;
        if is_first && (200..300).contains(&visit.status) {
            let (server, links) = (page.id.server(), &visit.discovered);
            self.learning.brought(&page.url, server, (stored_bytes, is_known), links, out);
        }
        visit.stored_bytes = stored_bytes;
        visit.version = Some(unnumbered.stored(visit.at_s, version));
        let lost = blocks.as_ref().and_then(|blocks| blocks.lost.clone());
        if let Some(blocks) = blocks {
            out.push(Command::commit(Change::Blocks { page: page.id, blocks }));
        }
        let at_s = visit.at_s;
        let render = render
            .map(|(due, scripts)| RenderCase {
                due,
                version,
                at_s,
                scripts,
                pass: 1,
                found: Vec::new(),
            })
            .map(Box::new);
        self.commit_visit(ticket, page, visit, (lost, render), out);
    }

    /// Whether a page that changed is shown in a browser.
    pub(super) fn is_rendered(&self, due: &DuePage, scripts: Option<u64>, status: u16) -> bool {
        let conditions = self.sites.conditions(due.site);
        let when = conditions.map(|conditions| conditions.scripts.render(&due.page.url));
        let is_own = conditions.is_some_and(|conditions| conditions.collects(&due.page.url));
        let when = when.filter(|_| status == 200 && is_own).unwrap_or_default();
        let families = self.learning.families(due.page.id.server());
        self.renderings.wants(when, due, scripts, families)
    }

    fn commit_visit(
        &mut self,
        ticket: Ticket,
        page: NamedPage,
        visit: Box<VisitCommit>,
        (lost, render): (Option<Vec<u32>>, Option<Box<RenderCase>>),
        out: &mut Vec<Command>,
    ) {
        if visit.round.is_some() {
            self.rounds.count(&visit);
        }
        self.sites.add_tops(visit.site, &visit.new_tops);
        let is_significant = visit.version.as_ref().is_none_or(|row| row.is_significant());
        let counts = self.sites.counts_change(visit.site, is_significant);
        let seen = seen(visit.outcome, visit.update.failures, counts);
        let result = VisitResult { page: page.id, seen, lost };
        let committing = Committing::Visit { url: page.url, site: visit.site, result, render };
        self.under_way.commit(ticket, committing);
        out.push(Command::Commit { ticket: Some(ticket), change: Change::Visit(visit) });
    }

    /// Visits and hints are committed.
    pub(super) fn visits_committed(&mut self, tickets: &[Ticket], out: &mut Vec<Command>) {
        for &ticket in tickets {
            match self.under_way.committed(ticket) {
                Some(Committing::Visit { url, site, result, render }) => {
                    self.visit_committed(&url, (site, result), render, out);
                }
                Some(Committing::Parts { release }) => self.release_after(release, out),
                Some(Committing::Pull { server }) => self.more_of(server),
                None => {}
            }
        }
    }
}

/// How requests for a page of a site leave this machine. Only the site's own servers may have any
/// certificate.
pub(super) fn road(conditions: &SiteConditions, url: &CanonicalUrl) -> Road {
    let road = &conditions.road;
    Road {
        proxy: road.proxy.clone(),
        source: road.source,
        any_certificate: road.any_certificate.is_some() && conditions.is_own(url),
    }
}

/// The parts of a page whose changes its site calls noise.
fn ignored_parts(conditions: &SiteConditions, url: &CanonicalUrl) -> Vec<(String, u32)> {
    let of_page = conditions.ignored.iter().filter(|part| part.pages.matches(url));
    of_page.map(|part| (part.selector.clone(), part.nth)).collect()
}
