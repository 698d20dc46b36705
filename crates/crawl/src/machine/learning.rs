//! What is learnt of servers: how they answer for pages that do not exist, where their sitemaps
//! lie and how far these can be believed, which links are traps, which blocks are noise.

use nenrin_extract::{Change as Difference, Comparison};
use nenrin_state::{
    Announced, Change, Discovered, DuePage, FoundPages, Outcome, RobotsPolicy, ScheduleBy,
    ServerId, Site, SiteConditions, SiteId, VersionRow,
};
use nenrin_urls::CanonicalUrl;

use super::{Crawl, UnderWay};
use crate::{
    Announcement, Answer, Command, FetchOrder, Fetched, Probe, Purpose, Trap, Traps,
    notes::Part,
    probe::{may_be_a_document, probe_url},
    robots::Rules,
    traps::without_session,
    verdict::Verdict,
};

/// Sitemaps of one robots.txt that are visited; an index names the others.
const NAMED_SITEMAPS_MAX: usize = 10;
/// Where sitemaps lie by custom.
const CUSTOM_SITEMAP: &str = "/sitemap.xml";

/// Pages that one reading of a sitemap or feed pulls forward, the newest first.
const PULLED_MAX: usize = 1_000;
/// Dates without a time mean any moment of their day.
const DAY_S: i64 = 86_400;
/// Redirects to a session of its own that are followed on one server: each is a page of its own.
const SESSIONS_FOLLOWED_MAX: u64 = 50;

/// A look at a server before its next page.
#[derive(Debug)]
pub(super) struct Look {
    server: ServerId,
    site: SiteId,
    url: CanonicalUrl,
    purpose: Purpose,
}

/// What is wanted of an answer beyond its content.
pub(super) struct Wanted {
    /// The whole page, changed or not.
    pub(super) whole: bool,
    pub(super) fingerprint: bool,
    pub(super) sitemap: bool,
}

impl Crawl {
    /// Whether the server is asked something else first; then the page must wait.
    pub(super) fn looks_first(
        &mut self,
        now_ms: i64,
        server: ServerId,
        due: &DuePage,
        out: &mut Vec<Command>,
    ) -> bool {
        let Some(conditions) = self.sites.get(&due.site).map(|site| &site.conditions) else {
            return false;
        };
        let (allow_private, obeys) =
            (conditions.allow_private, conditions.robots == RobotsPolicy::Obey);
        let Some(look) = self.look(now_ms / 1000, server, due, conditions) else { return false };
        let allowed = !obeys || self.allows(server, &look.url);
        if !allowed {
            self.not_looked(now_ms / 1000, &look, out);
            return self.looks_first(now_ms, server, due, out);
        }
        let ticket = self.new_ticket();
        self.fetching += 1;
        out.push(Command::Fetch(Box::new(FetchOrder {
            ticket,
            purpose: look.purpose,
            url: look.url.clone(),
            etag: None,
            last_modified: None,
            allow_private,
            known_mark: None,
            previous: None,
            fingerprint: look.purpose == Purpose::Probe,
            sitemap: look.purpose == Purpose::Sitemap,
            blocks: false,
        })));
        self.under_way.insert(ticket, UnderWay::Look(look));
        true
    }

    /// What there is to look at before a page: nothing before a top page, or for pictures alone.
    fn look(
        &self,
        now_s: i64,
        server: ServerId,
        due: &DuePage,
        conditions: &SiteConditions,
    ) -> Option<Look> {
        let state = self.servers.get(&server)?;
        if conditions.tops.contains(&due.page.url) || !may_be_a_document(&due.page.url) {
            return None;
        }
        let look = |url, purpose| Look { server, site: due.site, url, purpose };
        if state.learnt.probe.is_due(now_s) {
            let url = probe_url(&state.record.server, self.options.probe_seed, now_s)?;
            return Some(look(url, Purpose::Probe));
        }
        let names_none = match &state.rules {
            Rules::Known(rules) => rules.sitemaps(&due.page.url).is_empty(),
            _ => true,
        };
        let wanted = takes_signals(conditions)
            && names_none
            && conditions.tops.iter().any(|top| top.server() == state.record.server);
        if wanted && state.learnt.signals.custom_is_due(now_s) {
            let url = state.record.server.url(CUSTOM_SITEMAP).ok()?;
            return Some(look(url, Purpose::Sitemap));
        }
        None
    }

    fn allows(&self, server: ServerId, url: &CanonicalUrl) -> bool {
        match self.servers.get(&server).map(|state| &state.rules) {
            Some(Rules::Known(rules)) => rules.allows(url.path_and_query()).allowed,
            _ => false,
        }
    }

    fn not_looked(&mut self, now_s: i64, look: &Look, out: &mut Vec<Command>) {
        let Some(state) = self.servers.get_mut(&look.server) else { return };
        let part = match look.purpose {
            Purpose::Probe => {
                state.learnt.probe.not_allowed(now_s);
                Part::Probe
            }
            _ => {
                state.learnt.signals.custom_s = Some(now_s);
                Part::Signals
            }
        };
        self.learnt_of(look.server, part, true, out);
    }

    /// A look has ended.
    pub(super) fn looked(
        &mut self,
        now_ms: i64,
        look: Look,
        fetched: &Fetched,
        out: &mut Vec<Command>,
    ) {
        let now_s = now_ms / 1000;
        let Some(state) = self.servers.get_mut(&look.server) else { return };
        match look.purpose {
            Purpose::Probe => {
                state.learnt.probe.answered(now_s, &look.url, &fetched.result);
                self.learnt_of(look.server, Part::Probe, true, out);
            }
            _ => {
                state.learnt.signals.custom_s = Some(now_s);
                // The sitemap goes first: a note that it was looked for must not outlive it.
                if matches!(&fetched.result, Ok(answer) if answer.signal.is_some()) {
                    self.find_sitemaps(now_s, look.server, look.site, vec![look.url.clone()], out);
                }
                self.learnt_of(look.server, Part::Signals, true, out);
            }
        }
        self.server_done(now_ms, look.server, fetched, out);
    }

    /// Makes the sitemaps known that a server's robots.txt names.
    pub(super) fn find_named_sitemaps(
        &mut self,
        now_ms: i64,
        server: ServerId,
        out: &mut Vec<Command>,
    ) {
        let Some(state) = self.servers.get(&server) else { return };
        let Rules::Known(rules) = &state.rules else { return };
        let Ok(robots_url) = state.record.server.url("/robots.txt") else { return };
        let mut named = rules.sitemaps(&robots_url);
        named.truncate(NAMED_SITEMAPS_MAX);
        if named.is_empty() {
            return;
        }
        let own = |top: &CanonicalUrl| top.server() == state.record.server;
        let sites: Vec<SiteId> = (self.sites.values())
            .filter(|site| takes_signals(&site.conditions) && site.conditions.tops.iter().any(own))
            .map(|site| site.id)
            .collect();
        for site in sites {
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
        let Some(state) = self.servers.get_mut(&server) else { return };
        urls.iter().for_each(|url| state.learnt.signals.name(url));
        let conditions = self.sites.get(&site).map(|site| &site.conditions);
        let due_s = conditions.and_then(|c| c.schedule.continuous()).map(|_| now_s);
        let page = |url| Discovered { url, depth: 1, hops: 0, due_s };
        let pages = urls.into_iter().map(page).collect();
        let change = Change::Found(FoundPages { site, at_s: now_s, pages });
        out.push(Command::Commit { ticket: None, change });
    }

    /// What is wanted of a page's answer.
    pub(super) fn wanted_of(&self, server: ServerId, due: &DuePage) -> Wanted {
        let is_top = self.is_top(due);
        let learnt = self.servers.get(&server).map(|state| &state.learnt);
        let source = learnt.and_then(|learnt| learnt.signals.sources.get(&due.page.url));
        Wanted {
            whole: is_top && learnt.is_some_and(|learnt| learnt.probe.wants_top()),
            fingerprint: is_top || learnt.is_some_and(|learnt| learnt.probe.wants_fingerprints()),
            sitemap: source.is_some_and(|source| source.kind == crate::SignalKind::Sitemap),
        }
    }

    fn is_top(&self, due: &DuePage) -> bool {
        self.sites.get(&due.site).is_some_and(|site| site.conditions.tops.contains(&due.page.url))
    }

    /// A good answer that is what the server shows for pages that do not exist means gone.
    pub(super) fn judge_by_probe(
        &mut self,
        due: &DuePage,
        answer: &Answer,
        found: Verdict,
        out: &mut Vec<Command>,
    ) -> Verdict {
        let shown = matches!(found.outcome, Outcome::Changed | Outcome::Same);
        if !shown && found.outcome != Outcome::NotModified {
            return found;
        }
        let is_top = self.is_top(due);
        let server = due.page.id.server();
        let Some(state) = self.servers.get_mut(&server) else { return found };
        let probe = &mut state.learnt.probe;
        if is_top {
            if probe.saw_top(answer) {
                self.learnt_of(server, Part::Probe, false, out);
            }
            return found;
        }
        let counts = |probe: &Probe| (probe.judged, probe.called_gone);
        let before = counts(probe);
        let why = match shown {
            true => probe.judge(&due.page, answer),
            false => {
                probe.stayed();
                None
            }
        };
        if counts(probe) != before {
            self.learnt_of(server, Part::Probe, false, out);
        }
        match why {
            Some(detail) => Verdict { outcome: Outcome::Gone, detail: Some(detail) },
            None => found,
        }
    }

    /// What a page says of others, and whether what others said of it was right.
    pub(super) fn learn_from(
        &mut self,
        now_ms: i64,
        due: &DuePage,
        answer: &Answer,
        outcome: Outcome,
        out: &mut Vec<Command>,
    ) {
        let server = due.page.id.server();
        let takes = self.sites.get(&due.site).is_some_and(|site| takes_signals(&site.conditions));
        let Some(state) = self.servers.get_mut(&server).filter(|_| takes && outcome.is_seen())
        else {
            return;
        };
        let signals = &mut state.learnt.signals;
        if let (Some(kind), Outcome::Changed) = (answer.signal, outcome) {
            let last_read_s = signals.sources.get(&due.page.url).map_or(0, |known| known.read_s);
            signals.read(now_ms / 1000, &due.page.url, kind, &answer.announced);
            let further = answer.links.iter().filter(|l| l.role == crate::LinkRole::Sitemap);
            further.for_each(|link| signals.name(&link.url));
            self.learnt_of(server, Part::Signals, true, out);
            self.pull_announced(now_ms / 1000, due, last_read_s, &answer.announced, out);
            return;
        }
        let seen_before = due.page.outcome.is_some_and(Outcome::is_seen);
        if let Some(last_s) = due.page.visited_s.filter(|_| seen_before)
            && signals.seen(&due.page.url, last_s, outcome == Outcome::Changed)
        {
            self.learnt_of(server, Part::Signals, false, out);
        }
    }

    /// Whether a page is known as a sitemap or feed.
    pub(super) fn is_source(&self, due: &DuePage) -> bool {
        let state = self.servers.get(&due.page.id.server());
        state.is_some_and(|state| state.learnt.signals.is_source(&due.page.url))
    }

    /// Whether a new version counts for the page's schedule.
    pub(super) fn counts(&self, site: SiteId, version: &VersionRow) -> bool {
        let hints = self.sites.get(&site).map(|site| site.conditions.hints).unwrap_or_default();
        hints.schedule_by == ScheduleBy::Any || version.is_significant()
    }

    /// Brings the pages nearer that a believed source says have changed since it was last read.
    fn pull_announced(
        &mut self,
        now_s: i64,
        due: &DuePage,
        last_read_s: i64,
        announced: &[Announcement],
        out: &mut Vec<Command>,
    ) {
        let server = due.page.id.server();
        let continuous = |site: &Site| site.conditions.schedule.continuous().is_some();
        if !self.sites.get(&due.site).is_some_and(continuous) {
            return;
        }
        let Some(state) = self.servers.get(&server) else { return };
        let Some(source) = state.learnt.signals.sources.get(&due.page.url) else { return };
        if !source.trust.is_believed() {
            return;
        }
        let since_s = last_read_s - DAY_S;
        let mut pages: Vec<(CanonicalUrl, i64)> = announced
            .iter()
            .filter_map(|page| Some((page.url.clone(), page.modified_s?)))
            .filter(|&(_, modified_s)| modified_s > since_s && modified_s <= now_s)
            .collect();
        pages.sort_by_key(|&(_, modified_s)| std::cmp::Reverse(modified_s));
        pages.truncate(PULLED_MAX);
        if pages.is_empty() {
            return;
        }
        let odds_percent = (source.trust.precision().unwrap_or(0.0) * 100.0) as u8;
        let why = format!("announced by {}", due.page.url);
        let change = Change::Announced(Announced { at_s: now_s, pages, odds_percent, why });
        let ticket = self.new_ticket();
        self.under_way.insert(ticket, UnderWay::Pulling { server });
        out.push(Command::Commit { ticket: Some(ticket), change });
    }

    /// How much of a page changed, by what is known of its server's noise, which learns from it.
    pub(super) fn changed_permille(
        &mut self,
        due: &DuePage,
        comparison: Option<&Comparison>,
        out: &mut Vec<Command>,
    ) -> Option<u16> {
        // A page that comes back is no noise, even if it is as it was.
        let comparison = comparison.filter(|_| due.page.outcome != Some(Outcome::Gone))?;
        let server = due.page.id.server();
        let noise = &mut self.servers.get_mut(&server)?.learnt.noise;
        let difference = comparison.judge(noise);
        noise.learn(&due.page.url, comparison);
        self.learnt_of(server, Part::Noise, false, out);
        Some(match difference {
            // Other bytes under the content coding are noise as well.
            Difference::Identical | Difference::Noise => 0,
            Difference::Significant { changed_share } => {
                ((changed_share * 1000.0).ceil() as u16).clamp(1, 1000)
            }
        })
    }

    /// Takes the links out that look like traps, and the session ids out of the others. Answers how
    /// many were not followed.
    pub(super) fn leave_traps(
        &mut self,
        now_s: i64,
        due: &DuePage,
        tops: &[CanonicalUrl],
        found: &mut Vec<Discovered>,
        out: &mut Vec<Command>,
    ) -> u64 {
        let server = due.page.id.server();
        let Some(state) = self.servers.get_mut(&server) else { return 0 };
        let own = state.record.server.clone();
        let elsewhere = Traps::default();
        let refused = &state.learnt.traps.refused;
        let sessions = refused.get(&Trap::SessionId).map_or(0, |count| count.links);
        let mut met: Vec<(Trap, CanonicalUrl)> = Vec::new();
        found.retain_mut(|link| {
            if tops.contains(&link.url) {
                return true;
            }
            if let Some(bare) = without_session(&link.url) {
                // A redirect to a session is followed as it stands, or it would lead to itself.
                if link.hops > 0 {
                    met.push((Trap::SessionId, link.url.clone()));
                    return sessions < SESSIONS_FOLLOWED_MAX;
                }
                met.push((Trap::SessionId, std::mem::replace(&mut link.url, bare)));
            }
            let traps = if link.url.server() == own { &state.learnt.traps } else { &elsewhere };
            match traps.check(&link.url, now_s) {
                Ok(()) => true,
                Err(trap) => {
                    met.push((trap, link.url.clone()));
                    false
                }
            }
        });
        let mut trapped = 0;
        for (trap, url) in met {
            trapped += u64::from(trap != Trap::SessionId);
            let Some(state) = self.servers.get_mut(&server) else { break };
            let is_first = state.learnt.traps.refuse(trap, &url, now_s) == 1;
            self.learnt_of(server, Part::Traps, is_first, out);
            if is_first {
                out.push(Command::Trapped { server: own.clone(), trap, url });
            }
        }
        trapped
    }

    /// A page became known: what bounds the traps counts it.
    pub(super) fn count_new(&mut self, now_s: i64, due: &DuePage, out: &mut Vec<Command>) {
        let server = due.page.id.server();
        let Some(state) = self.servers.get_mut(&server) else { return };
        if state.learnt.traps.met(&due.page.url, now_s) {
            self.learnt_of(server, Part::Traps, false, out);
        }
    }

    fn learnt_of(&mut self, server: ServerId, part: Part, at_once: bool, out: &mut Vec<Command>) {
        let Some(state) = self.servers.get_mut(&server) else { return };
        match state.learnt.learnt(server, part, at_once) {
            Some(change) => out.push(Command::Commit { ticket: None, change }),
            None => drop(self.unkept.insert(server)),
        }
    }

    /// Writes down all that was learnt.
    pub(super) fn keep_learnt(&mut self, out: &mut Vec<Command>) {
        for server in std::mem::take(&mut self.unkept) {
            let Some(state) = self.servers.get_mut(&server) else { continue };
            for change in state.learnt.unkept(server) {
                out.push(Command::Commit { ticket: None, change });
            }
        }
    }
}

/// A site of its top pages alone wants no others.
fn takes_signals(conditions: &SiteConditions) -> bool {
    conditions.hints.signals && conditions.depth > 1
}
