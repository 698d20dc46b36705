//! What is learnt of servers: how they answer for pages that do not exist, where their sitemaps
//! are and how far these can be believed, which links are traps, which blocks are noise.

mod notes;

use std::collections::{BTreeMap, BTreeSet};

use nenrin_extract::{Change as Difference, Comparison};
use nenrin_lang::{Hint, Reason};
use nenrin_state::{
    Announced, Discovered, DuePage, Outcome, ServerId, ServerRecord, SiteConditions, SiteId,
};
use nenrin_urls::{CanonicalUrl, Server};

use crate::{
    answer::{Answer, Fetched, LinkRole, Purpose, SignalKind, Wanted},
    events::Command,
    hops,
    logged_out::{LoginLook, logged_out},
    probe::{Probe, may_be_a_document, probe_url},
    renderings::Families,
    servers::Servers,
    signals::Signals,
    sites::takes_signals,
    traps::{Trap, Traps, without_session},
    verdict::Verdict,
};

use self::notes::Part;
pub use self::notes::ServerLearning;

/// Where sitemaps are by custom.
const CUSTOM_SITEMAP: &str = "/sitemap.xml";
/// Pages that one reading of a sitemap or feed pulls forward, the newest first.
const PULLED_MAX: usize = 1_000;
/// Dates without a time mean any moment of their day.
const DAY_S: i64 = 86_400;
/// Redirects to a session of its own that are followed on one server: each is a page of its own.
const SESSIONS_FOLLOWED_MAX: u64 = 50;

/// What is learnt of the servers in memory.
#[derive(Debug, Default)]
pub(crate) struct Learning {
    servers: BTreeMap<ServerId, ServerLearning>,
    /// Servers of which something was learnt that is not written down yet.
    unkept: BTreeSet<ServerId>,
}

/// A request to a server before its next page: a probe, a sitemap or a feed.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) server: ServerId,
    pub(crate) site: SiteId,
    pub(crate) url: CanonicalUrl,
    pub(crate) purpose: Purpose,
}

/// The links of a page that are about to become known.
pub(crate) struct Links<'a> {
    pub(crate) found: &'a mut Vec<Discovered>,
    /// Top pages, which are followed in any case.
    pub(crate) tops: &'a [CanonicalUrl],
    /// Whether a sitemap lists them.
    pub(crate) is_sitemap: bool,
}

/// What was left out of a page's links.
#[derive(Debug, Default)]
pub(crate) struct Left {
    pub(crate) trapped: u64,
    /// Some may be followed when fewer pages wait.
    pub(crate) has_more: bool,
}

impl Learning {
    /// A server came from the state, with what was learnt of it before.
    pub(crate) fn meet(&mut self, record: &ServerRecord) {
        self.servers.insert(record.id, ServerLearning::of(&record.notes));
    }

    /// A server is left to the state, with all that was learnt of it.
    pub(crate) fn forget(&mut self, server: ServerId, out: &mut Vec<Command>) {
        self.unkept.remove(&server);
        if let Some(mut learnt) = self.servers.remove(&server) {
            out.extend(learnt.unkept(server).into_iter().map(Command::commit));
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ServerLearning> {
        self.servers.values()
    }

    fn signals(&self, server: ServerId) -> Option<&Signals> {
        self.servers.get(&server).map(|learnt| &learnt.signals)
    }

    /// What the sitemaps and feeds of some servers say, of those that have any.
    pub(crate) fn signals_of<'a>(
        &'a self,
        servers: &'a BTreeMap<ServerId, Server>,
    ) -> impl Iterator<Item = (ServerId, &'a Server, &'a Signals)> {
        servers.iter().filter_map(|(&id, name)| {
            let signals = self.signals(id)?;
            (!signals.sources.is_empty()).then_some((id, name, signals))
        })
    }

    /// Something was learnt: it is written down at once, or when there is enough of it.
    fn learnt(&mut self, server: ServerId, part: Part, at_once: bool, out: &mut Vec<Command>) {
        let Some(learnt) = self.servers.get_mut(&server) else { return };
        match learnt.learnt(server, part, at_once) {
            Some(change) => out.push(Command::commit(change)),
            None => drop(self.unkept.insert(server)),
        }
    }

    /// Writes down all that was learnt.
    pub(crate) fn keep(&mut self, out: &mut Vec<Command>) {
        for server in std::mem::take(&mut self.unkept) {
            let Some(learnt) = self.servers.get_mut(&server) else { continue };
            out.extend(learnt.unkept(server).into_iter().map(Command::commit));
        }
    }
}

/// What is requested from a server before its pages: sitemaps, feeds, probes.
impl Learning {
    /// What to request before a page, if anything: nothing before a top page, or for pictures alone.
    pub(crate) fn look(
        &self,
        now_s: i64,
        due: &DuePage,
        conditions: &SiteConditions,
        servers: &Servers,
        probe_seed: u64,
    ) -> Option<Look> {
        let server = due.page.id.server();
        let learnt = self.servers.get(&server)?;
        let name = servers.name(server)?;
        let look = |url, purpose| Look { server, site: due.site, url, purpose };
        let login_page = conditions.login_page.as_ref().filter(|page| page.server() == *name);
        if let Some(page) = login_page.filter(|_| learnt.login.is_due(now_s)) {
            return Some(look(page.clone(), Purpose::LoginPage));
        }
        if conditions.tops.contains(&due.page.url) || !may_be_a_document(&due.page.url) {
            return None;
        }
        if learnt.probe.is_due(now_s) {
            let url = probe_url(name, probe_seed, now_s)?;
            return Some(look(url, Purpose::Probe));
        }
        let wanted = learnt.signals.custom_is_due(now_s)
            && takes_signals(conditions)
            && conditions.tops.iter().any(|top| top.server() == *name)
            && servers.named_sitemaps(server).is_empty();
        let url = wanted.then(|| name.url(CUSTOM_SITEMAP).ok())??;
        Some(look(url, Purpose::Sitemap))
    }

    /// A request before a page is not allowed.
    pub(crate) fn not_looked(&mut self, now_s: i64, look: &Look, out: &mut Vec<Command>) {
        let Some(learnt) = self.servers.get_mut(&look.server) else { return };
        let part = match look.purpose {
            Purpose::Probe => {
                learnt.probe.not_allowed(now_s);
                Part::Probe
            }
            Purpose::LoginPage => {
                learnt.login.asked_s = Some(now_s);
                Part::Login
            }
            _ => {
                learnt.signals.custom_s = Some(now_s);
                Part::Signals
            }
        };
        self.learnt(look.server, part, true, out);
    }

    /// A request before a page has ended.
    pub(crate) fn looked(
        &mut self,
        now_s: i64,
        look: &Look,
        fetched: &Fetched,
        out: &mut Vec<Command>,
    ) {
        let Some(learnt) = self.servers.get_mut(&look.server) else { return };
        let part = match look.purpose {
            Purpose::Probe => {
                learnt.probe.answered(now_s, &look.url, &fetched.result);
                Part::Probe
            }
            Purpose::LoginPage => {
                learnt.login.answered(now_s, &fetched.result);
                Part::Login
            }
            _ => {
                learnt.signals.custom_s = Some(now_s);
                Part::Signals
            }
        };
        self.learnt(look.server, part, true, out);
    }
}

/// What answers teach.
impl Learning {
    /// What is wanted of a page's answer.
    pub(crate) fn wanted_of(&self, due: &DuePage, is_top: bool) -> Wanted {
        let learnt = self.servers.get(&due.page.id.server());
        let source = learnt.and_then(|learnt| learnt.signals.sources.get(&due.page.url));
        Wanted {
            whole: is_top && learnt.is_some_and(|learnt| learnt.probe.wants_top()),
            fingerprint: is_top || learnt.is_some_and(|learnt| learnt.probe.wants_fingerprints()),
            sitemap: source.is_some_and(|source| source.kind == SignalKind::Sitemap),
        }
    }

    /// What is known of the families of a server's pages.
    pub(crate) fn families(&self, server: ServerId) -> Option<&Families> {
        self.servers.get(&server).map(|learnt| &learnt.families)
    }

    /// A rendering teaches something of a family.
    pub(crate) fn learn_families(
        &mut self,
        server: ServerId,
        learn: impl FnOnce(&mut Families),
        out: &mut Vec<Command>,
    ) {
        let Some(learnt) = self.servers.get_mut(&server) else { return };
        let before = learnt.families.clone();
        learn(&mut learnt.families);
        if learnt.families != before {
            self.learnt(server, Part::Families, true, out);
        }
    }

    /// What a page's scripts ask for.
    pub(crate) fn data_of(&self, server: ServerId, page: &CanonicalUrl) -> &[CanonicalUrl] {
        self.servers.get(&server).map_or(&[], |learnt| learnt.data.of(page))
    }

    /// A rendering says what a page's scripts ask for.
    pub(crate) fn learn_data(
        &mut self,
        server: ServerId,
        page: &CanonicalUrl,
        data: &[CanonicalUrl],
        out: &mut Vec<Command>,
    ) {
        let Some(learnt) = self.servers.get_mut(&server) else { return };
        if learnt.data.learn(page, data) {
            self.learnt(server, Part::Data, true, out);
        }
    }

    /// Why an answer means that nobody is logged in, if it does.
    pub(crate) fn logged_out(
        &self,
        due: &DuePage,
        conditions: &SiteConditions,
        answer: &Answer,
    ) -> Option<Reason> {
        let login_page = conditions.login_page.as_ref();
        let (own, unknown) = (due.page.id.server(), LoginLook::default());
        let known = self.servers.get(&own).map_or(&unknown, |learnt| &learnt.login);
        logged_out(&due.page.url, login_page, known, answer)
            .filter(|_| conditions.is_own(&due.page.url))
    }

    /// A good answer that is what the server shows for pages that do not exist means gone.
    pub(crate) fn judge_by_probe(
        &mut self,
        due: &DuePage,
        is_top: bool,
        answer: &Answer,
        found: Verdict,
        out: &mut Vec<Command>,
    ) -> Verdict {
        if !found.outcome.is_seen() {
            return found;
        }
        let server = due.page.id.server();
        let Some(learnt) = self.servers.get_mut(&server) else { return found };
        let probe = &mut learnt.probe;
        let was_untried = probe.is_untried();
        let counts = |probe: &Probe| (probe.judged, probe.called_gone);
        let before = counts(probe);
        let (corrected, has_learnt) = if is_top {
            let looks_otherwise = probe.saw_top(answer);
            (found, looks_otherwise)
        } else {
            let corrected = probe.correct(&due.page, answer, found);
            (corrected, counts(probe) != before)
        };
        // A crash must not lose that there are pages which look otherwise: until another is seen, what
        // does not exist would be stored.
        let at_once = was_untried && !probe.is_untried();
        if has_learnt {
            self.learnt(server, Part::Probe, at_once, out);
        }
        corrected
    }

    /// What a page says of others, and whether what others said of it was right. Returns when a
    /// sitemap or feed with new content was read before (0 for never).
    pub(crate) fn learn_from(
        &mut self,
        now_s: i64,
        due: &DuePage,
        answer: &Answer,
        outcome: Outcome,
        out: &mut Vec<Command>,
    ) -> Option<i64> {
        let server = due.page.id.server();
        let signals = &mut self.servers.get_mut(&server)?.signals;
        if let (Some(kind), Outcome::Changed) = (answer.signal, outcome) {
            let last_read_s = signals.sources.get(&due.page.url).map_or(0, |known| known.read_s);
            signals.read(now_s, &due.page.url, kind, &answer.announced);
            let further = answer.links.iter().filter(|link| link.role == LinkRole::Sitemap);
            further.for_each(|link| signals.name(&link.url));
            self.learnt(server, Part::Signals, true, out);
            return Some(last_read_s);
        }
        let seen_before = due.page.outcome.is_some_and(Outcome::is_seen);
        if let Some(last_s) = due.page.visited_s.filter(|_| seen_before)
            && signals.seen(now_s, &due.page.url, last_s, outcome == Outcome::Changed)
        {
            self.learnt(server, Part::Signals, false, out);
        }
        None
    }

    /// The pages that a sitemap or feed says have changed since it was last read, if it is believed.
    pub(crate) fn announced(
        &self,
        now_s: i64,
        due: &DuePage,
        last_read_s: i64,
        answer: &Answer,
    ) -> Option<Announced> {
        let source = self.signals(due.page.id.server())?.sources.get(&due.page.url)?;
        if !source.trust.is_believed() {
            return None;
        }
        let since_s = last_read_s - DAY_S;
        let mut pages: Vec<(CanonicalUrl, i64)> = (answer.announced.iter())
            .filter_map(|page| Some((page.url.clone(), page.modified_s?)))
            .filter(|&(_, modified_s)| modified_s > since_s && modified_s <= now_s)
            .collect();
        pages.sort_by_key(|&(_, modified_s)| std::cmp::Reverse(modified_s));
        pages.truncate(PULLED_MAX);
        let odds_percent = (source.trust.precision().unwrap_or(0.0) * 100.0) as u8;
        let hint = Hint::AnnouncedBy(due.page.url.to_string());
        (!pages.is_empty()).then_some(Announced { at_s: now_s, pages, odds_percent, hint })
    }

    /// Sitemaps of a server were named.
    pub(crate) fn name_sitemaps(&mut self, server: ServerId, urls: &[CanonicalUrl]) {
        if let Some(learnt) = self.servers.get_mut(&server) {
            urls.iter().for_each(|url| learnt.signals.name(url));
        }
    }

    /// Whether a page is known as a sitemap or feed.
    pub(crate) fn is_source(&self, due: &DuePage) -> bool {
        let signals = self.signals(due.page.id.server());
        signals.is_some_and(|signals| signals.is_source(&due.page.url))
    }

    /// How much of a page changed, by what is known of its server's noise, which learns from it.
    pub(crate) fn changed_permille(
        &mut self,
        due: &DuePage,
        comparison: Option<&Comparison>,
        out: &mut Vec<Command>,
    ) -> Option<u16> {
        // A page that comes back is not noise, even if it is as it was.
        let comparison = comparison.filter(|_| due.page.outcome != Some(Outcome::Gone))?;
        let server = due.page.id.server();
        let noise = &mut self.servers.get_mut(&server)?.noise;
        let difference = comparison.judge(noise);
        noise.learn(&due.page.url, comparison);
        self.learnt(server, Part::Noise, false, out);
        Some(match difference {
            // Other bytes under the content coding are noise as well.
            Difference::Identical | Difference::Noise => 0,
            Difference::Significant { changed_share } => {
                ((changed_share * 1000.0).ceil() as u16).clamp(1, 1000)
            }
        })
    }
}

/// Leaving out links that look like traps.
impl Learning {
    /// Takes the links out that look like traps, and the session ids out of the others.
    pub(crate) fn leave_traps(
        &mut self,
        now_s: i64,
        due: &DuePage,
        links: Links<'_>,
        out: &mut Vec<Command>,
    ) -> Left {
        let server = due.page.id.server();
        let Some(learnt) = self.servers.get_mut(&server) else { return Left::default() };
        let own = due.page.url.server();
        let elsewhere = Traps::default();
        let refused = &learnt.traps.refused;
        let sessions = refused.get(&Trap::SessionId).map_or(0, |count| count.links);
        let mut room = learnt.traps.room(links.is_sitemap);
        let mut met: Vec<(Trap, CanonicalUrl)> = Vec::new();
        links.found.retain_mut(|link| {
            if links.tops.contains(&link.url) {
                return true;
            }
            if let Some(bare) = without_session(&link.url) {
                // A redirect to a session is followed as it is, or it would lead to itself.
                if hops::redirects(link.hops) > 0 {
                    met.push((Trap::SessionId, link.url.clone()));
                    return sessions < SESSIONS_FOLLOWED_MAX;
                }
                met.push((Trap::SessionId, std::mem::replace(&mut link.url, bare)));
            }
            let is_own = link.url.server() == own;
            let traps = if is_own { &learnt.traps } else { &elsewhere };
            let checked = traps.check(&link.url, now_s).and_then(|()| match room.checked_sub(1) {
                Some(left) => {
                    room = left;
                    Ok(())
                }
                None if is_own => Err(Trap::Backlog),
                None => Ok(()),
            });
            checked.map_err(|trap| met.push((trap, link.url.clone()))).is_ok()
        });
        let has_more = met.iter().any(|(trap, _)| *trap == Trap::Backlog);
        Left { trapped: self.refuse(now_s, due, met, out), has_more }
    }

    /// Counts links that are not followed, or not as they are written. Returns how many are not.
    pub(crate) fn refuse(
        &mut self,
        now_s: i64,
        due: &DuePage,
        met: Vec<(Trap, CanonicalUrl)>,
        out: &mut Vec<Command>,
    ) -> u64 {
        let server = due.page.id.server();
        let mut trapped = 0;
        for (trap, url) in met {
            trapped += u64::from(trap != Trap::SessionId);
            let Some(learnt) = self.servers.get_mut(&server) else { break };
            let is_first = learnt.traps.refuse(trap, &url, now_s) == 1;
            self.learnt(server, Part::Traps, is_first, out);
            if is_first {
                out.push(Command::Trapped { server: due.page.url.server(), trap, url });
            }
        }
        trapped
    }

    /// A page was visited for the first time.
    pub(crate) fn tried(&mut self, due: &DuePage, out: &mut Vec<Command>) {
        let server = due.page.id.server();
        let Some(learnt) = self.servers.get_mut(&server) else { return };
        learnt.traps.tried();
        self.learnt(server, Part::Traps, false, out);
    }

    /// The first version of a page with these links took so much in the store, and its body may be
    /// known.
    pub(crate) fn brought(
        &mut self,
        url: &CanonicalUrl,
        server: ServerId,
        stored: (u64, bool),
        links: &[Discovered],
        out: &mut Vec<Command>,
    ) {
        let Some(learnt) = self.servers.get_mut(&server) else { return };
        learnt.traps.brought(url, stored, links.iter().map(|link| &link.url));
        self.learnt(server, Part::Traps, false, out);
    }

    /// A page became known: what bounds the traps counts it.
    pub(crate) fn count_new(&mut self, now_s: i64, due: &DuePage, out: &mut Vec<Command>) {
        let server = due.page.id.server();
        let Some(learnt) = self.servers.get_mut(&server) else { return };
        learnt.traps.met(&due.page.url, now_s);
        self.learnt(server, Part::Traps, false, out);
    }
}
