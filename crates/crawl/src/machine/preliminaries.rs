//! What a server is asked before its pages: its robots.txt, what it shows for a page that does not
//! exist, and its sitemap.

use nenrin_fetch::{AddressPolicy, Road};
use nenrin_lang::Reason;
use nenrin_state::{Change, Discovered, DuePage, FoundPages, Outcome, ServerId, SiteId};
use nenrin_urls::CanonicalUrl;

use crate::{
    answer::{FetchOrder, Fetched, Purpose},
    events::Command,
    learning::Look,
    servers::{RobotsRequest, Task, feedback, robots_feedback, robots_moved},
    under_way::Asked,
    verdict::{self, Verdict},
};

use super::{Crawl, visiting::road};

/// Sitemaps of one robots.txt that are visited; an index names the others.
const NAMED_SITEMAPS_MAX: usize = 10;

/// robots.txt.
impl Crawl {
    pub(super) fn start_robots(
        &mut self,
        server: ServerId,
        request: RobotsRequest,
        out: &mut Vec<Command>,
    ) {
        let ticket = self.under_way.new_ticket();
        let plain =
            FetchOrder::plain(ticket, Purpose::Robots, request.url.clone(), request.addresses);
        let order = FetchOrder { road: request.road.clone(), ..plain };
        self.under_way.ask(ticket, Asked::Robots { server, request });
        out.push(Command::Fetch(Box::new(order)));
    }

    /// A request for robots.txt has ended.
    pub(super) fn robots_fetched(
        &mut self,
        now_ms: i64,
        server: ServerId,
        asked: RobotsRequest,
        fetched: &Fetched,
        out: &mut Vec<Command>,
    ) {
        if let Some(url) = robots_moved(asked.hops, fetched) {
            // Another host is not the site's own.
            let is_own = self.servers.name(server).is_some_and(|name| name.host() == url.host());
            let addresses = if is_own { asked.addresses } else { AddressPolicy::Public };
            let any_certificate = asked.road.any_certificate && is_own;
            let road = Road { any_certificate, ..asked.road };
            let request = RobotsRequest { url, hops: asked.hops + 1, addresses, road };
            self.servers.queue_robots(server, request);
            self.server_answered(now_ms, server, feedback(fetched), out);
            return;
        }
        let change = self.servers.robots_answered(now_ms, server, fetched, &self.options);
        let is_settled = change.is_some();
        out.extend(change.map(Command::commit));
        self.find_named_sitemaps(now_ms, server, out);
        if self.servers.is_without_rules(server) {
            self.fail_first_waiting(now_ms, server, fetched, out);
        }
        self.server_answered(now_ms, server, robots_feedback(fetched), out);
        if !is_settled {
            self.servers.ask_rules_again(server);
        }
    }

    /// Without rules nothing may be fetched: the page whose turn it was gets the server's problem
    /// as its outcome, so that a person sees why.
    fn fail_first_waiting(
        &mut self,
        now_ms: i64,
        server: ServerId,
        fetched: &Fetched,
        out: &mut Vec<Command>,
    ) {
        let Some(Task::Page(due)) = self.servers.take_waiting(server) else { return };
        self.new_pages.unqueued(&due);
        let verdict = match &fetched.result {
            Err(trouble) => verdict::robots_trouble(trouble),
            Ok(answer) => Verdict::because(Outcome::Failed, Reason::RobotsStatus(answer.status)),
        };
        self.not_answered(now_ms, &due, verdict, fetched.elapsed_ms, out);
    }
}

/// Probes and sitemaps.
impl Crawl {
    /// Whether the server is asked something else first; then the page must wait.
    pub(super) fn looks_first(
        &mut self,
        now_ms: i64,
        due: &DuePage,
        obeys_robots: bool,
        addresses: AddressPolicy,
        out: &mut Vec<Command>,
    ) -> bool {
        let now_s = now_ms / 1000;
        let Some(conditions) = self.sites.conditions(due.site) else { return false };
        let seed = self.options.probe_seed;
        while let Some(look) = self.learning.look(now_s, due, conditions, &self.servers, seed) {
            if obeys_robots && !self.servers.allows(look.server, &look.url) {
                self.learning.not_looked(now_s, &look, out);
                continue;
            }
            let ticket = self.under_way.new_ticket();
            let order = FetchOrder {
                fingerprint: matches!(look.purpose, Purpose::Probe | Purpose::LoginPage),
                site: (look.purpose != Purpose::LoginPage).then_some(look.site),
                sitemap: look.purpose == Purpose::Sitemap,
                headers: conditions.headers_for(&look.url).to_vec(),
                road: road(conditions, &look.url),
                ..FetchOrder::plain(ticket, look.purpose, look.url.clone(), addresses)
            };
            out.push(Command::Fetch(Box::new(order)));
            self.under_way.ask(ticket, Asked::Look(look));
            return true;
        }
        false
    }

    /// A request before a page has ended.
    pub(super) fn looked(
        &mut self,
        now_ms: i64,
        look: &Look,
        fetched: &Fetched,
        out: &mut Vec<Command>,
    ) {
        let now_s = now_ms / 1000;
        // The sitemap goes first: a note that it was looked for must not outlive it.
        let is_sitemap = matches!(&fetched.result, Ok(answer) if answer.signal.is_some());
        if look.purpose == Purpose::Sitemap && is_sitemap {
            self.find_sitemaps(now_s, look.server, look.site, vec![look.url.clone()], out);
        }
        self.learning.looked(now_s, look, fetched, out);
        self.server_answered(now_ms, look.server, feedback(fetched), out);
    }

    /// Makes the sitemaps known that a server's robots.txt names.
    fn find_named_sitemaps(&mut self, now_ms: i64, server: ServerId, out: &mut Vec<Command>) {
        let mut named = self.servers.named_sitemaps(server);
        named.truncate(NAMED_SITEMAPS_MAX);
        let Some(name) = self.servers.name(server).filter(|_| !named.is_empty()) else { return };
        for site in self.sites.taking_signals_of(name) {
            self.find_sitemaps(now_ms / 1000, server, site, named.clone(), out);
        }
    }

    fn find_sitemaps(
        &mut self,
        now_s: i64,
        server: ServerId,
        site: SiteId,
        urls: Vec<CanonicalUrl>,
        out: &mut Vec<Command>,
    ) {
        self.learning.name_sitemaps(server, &urls);
        let due_s = self.sites.is_continuous(site).then_some(now_s);
        let pages = urls.into_iter().map(|url| Discovered { url, depth: 1, hops: 0, due_s });
        let found = FoundPages { site, at_s: now_s, pages: pages.collect() };
        out.push(Command::commit(Change::Found(found)));
    }
}
