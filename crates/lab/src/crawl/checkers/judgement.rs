use std::collections::BTreeMap;

use nenrin_crawl::{Look, ServerLearning, Trap};
use nenrin_state::{
    Change, Outcome, PageFilter, PageId, PageRecord, ServerId, State, StateError, VisitCommit,
};
use nenrin_urls::CanonicalUrl;

use super::Findings;
use crate::crawl::{
    oddities::{Honesty, Oddity, TRAP, Truth},
    web::Web,
};

/// Pages in a server's traps that may become known: the bounds of each kind, added up.
const TRAP_PAGES_MAX: usize = 200;
/// Visits that must have been compared before a sitemap is held to its honesty.
const COMPARED_MIN: u32 = 60;
/// Changes that it must have announced in time: one that is itself read rarely misses most of them.
const RIGHT_MIN: u32 = 10;

/// The law: what is not the page is not a version of it. A page that does not exist is never taken once
/// the server's look for such pages is known and a real page was seen after it, which looks otherwise;
/// a real page is never called gone; a challenge is a refusal; a change of a counter alone is noise;
/// traps end, and are counted; a sitemap is believed when it is honest, and never when it says "now" of
/// everything.
#[derive(Debug, Default)]
pub struct Judgement {
    /// Servers whose look for missing pages is committed, and when it first was. A visit that was made
    /// before may be committed later.
    looks: BTreeMap<ServerId, i64>,
    /// When a real page was first seen after that. Until then all pages may be shells.
    real: BTreeMap<ServerId, i64>,
    /// What was broken.
    pub findings: Findings,
}

impl Judgement {
    /// A change is committed.
    pub fn committed(&mut self, now_s: i64, change: &Change) {
        if let Change::Note(note) = change
            && note.name == "probe"
        {
            let notes = [(note.name.clone(), note.value.clone())].into();
            let known = match ServerLearning::of(&notes).probe.look {
                Look::Page(_) | Look::Redirect(_) => true,
                Look::Unknown | Look::Honest => false,
            };
            if known {
                self.looks.entry(note.server).or_insert(now_s);
            }
        }
    }

    /// A visit is committed, and this is the truth behind its answer.
    pub fn visited(&mut self, web: &Web, url: &CanonicalUrl, visit: &VisitCommit, truth: Truth) {
        let server = visit.page.number().map(PageId::server);
        let is_after = |times: &BTreeMap<ServerId, i64>| {
            server.and_then(|server| times.get(&server)).is_some_and(|&s| visit.at_s > s)
        };
        let shell = Web::server_of(url).is_some_and(|s| web.oddity(s) == Oddity::Shell);
        if truth.missing
            && visit.version.is_some()
            && is_after(&self.looks)
            && is_after(&self.real)
            && !shell
        {
            self.findings.note(|| format!("{url} does not exist and was taken as a version"));
        }
        if !truth.missing
            && visit.version.is_some()
            && is_after(&self.looks)
            && let Some(server) = server
        {
            self.real.entry(server).or_insert(visit.at_s);
        }
        if !truth.missing && visit.outcome == Outcome::Gone && web.exists(url) {
            self.findings.note(|| format!("{url} exists and was called gone: {:?}", visit.reason));
        }
        if truth.challenged && (visit.version.is_some() || visit.outcome != Outcome::Refused) {
            self.findings.note(|| format!("{url}: a challenge was taken for {}", visit.outcome));
        }
        if truth.noise && visit.version.as_ref().is_some_and(|row| row.is_significant()) {
            self.findings.note(|| format!("{url}: a counter was taken for a significant change"));
        }
    }

    /// What the state knows at the end.
    pub fn check(&mut self, web: &Web, state: &dyn State) -> Result<(), StateError> {
        for site in state.sites()? {
            let Some(top) = site.conditions.tops.first() else { continue };
            let (Some(number), Some(page)) = (Web::server_of(top), state.page(top)?) else {
                continue;
            };
            let Some(record) = state.servers(&[page.id.server()])?.pop() else { continue };
            let learnt = ServerLearning::of(&record.notes);
            self.check_traps(web, state, site.id, number, &learnt)?;
            self.check_sitemap(web, number, &learnt);
        }
        Ok(())
    }

    fn check_traps(
        &mut self,
        web: &Web,
        state: &dyn State,
        site: nenrin_state::SiteId,
        number: u32,
        learnt: &ServerLearning,
    ) -> Result<(), StateError> {
        if web.oddity(number) != Oddity::Trapped {
            return Ok(());
        }
        let filter = PageFilter { site: Some(site), after: None, limit: 100_000 };
        let pages = state.pages(filter)?;
        let is_trapped = |page: &&PageRecord| {
            Web::server_of(&page.url) == Some(number) && page.url.path().starts_with(TRAP)
        };
        let trapped = pages.iter().filter(is_trapped).count();
        if trapped > TRAP_PAGES_MAX {
            self.findings.note(|| format!("server {number}: {trapped} pages in its traps"));
        }
        let counted = |trap| learnt.traps.refused.get(&trap).is_some_and(|count| count.links > 0);
        // A server whose trap was hardly entered has nothing to count yet.
        let entered = trapped > 100;
        for trap in [Trap::Calendar, Trap::QueryCombinations, Trap::RepeatedSegments] {
            if entered && !counted(trap) {
                self.findings.note(|| format!("server {number}: {trap:?} was not counted"));
            }
        }
        Ok(())
    }

    fn check_sitemap(&mut self, web: &Web, number: u32, learnt: &ServerLearning) {
        for source in learnt.signals.sources.values() {
            let trust = source.trust;
            match web.honesty(number) {
                Honesty::Lying if trust.is_believed() => {
                    self.findings
                        .note(|| format!("server {number}: a liar is believed: {trust:?}"));
                }
                Honesty::Honest
                    if trust.compared() >= COMPARED_MIN
                        && trust.right >= RIGHT_MIN
                        && !trust.is_believed() =>
                {
                    self.findings.note(|| {
                        format!("server {number}: an honest sitemap is not believed: {trust:?}")
                    });
                }
                _ => {}
            }
        }
    }
}
