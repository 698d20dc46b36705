//! What visits that were made elsewhere teach: the same as our own, by the same parts of the machine.

use nenrin_fetch::AddressPolicy;
use std::collections::BTreeMap;

use nenrin_revisit::RevisitSettings;
use nenrin_state::{
    Change, DuePage, Estimate, Outcome, PageId, PageRecord, PageUpdate, Schedule, ServerId,
    ServerNote, ServerRecord, Site, SiteId, SitePages, VisitCommit,
};
use nenrin_structure::{PageFragments, Seen};
use nenrin_urls::{CanonicalUrl, Server};

use crate::{
    answer::{Answer, FetchOrder, Ticket},
    discovery::links_of,
    events::Command,
    learning::{Learning, ServerLearning},
    plans::{VisitResult, learn_round, seen},
    probe::Probe,
    schedules::Schedules,
    sites::{Sites, takes_signals},
    update::page_update,
    verdict::Verdict,
};

/// Learns from visits to the pages of one site, in the order of their times. What a visit teaches of
/// its page is returned at once; what it teaches of its server and of the site's schedule is kept
/// until [`finish`](Self::finish).
pub struct Teacher {
    site: SiteId,
    sites: Sites,
    schedules: Schedules,
    learning: Learning,
    shared: Option<Vec<u8>>,
    notes: BTreeMap<(ServerId, String), ServerNote>,
}

/// A visit to learn from.
#[derive(Debug, Clone, Copy)]
pub struct PastVisit<'a> {
    /// When it was made.
    pub at_s: i64,
    /// What it found.
    pub outcome: Outcome,
    /// The Last-Modified header as a time.
    pub last_modified_s: Option<i64>,
    /// The answer, if its content was read.
    pub answer: Option<&'a Answer>,
}

/// What a visit taught of its page.
#[derive(Debug, Clone, PartialEq)]
pub struct Taught {
    /// The page's record after it: with its history, and with the time of the next visit if the
    /// pages of the site have times of their own.
    pub update: PageUpdate,
    /// What the schedule believes of the page now.
    pub estimate: Option<Estimate>,
    /// How much of the content changed, in thousandths, where that was compared.
    pub changed_permille: Option<u16>,
    /// Where its links lead, if its content was read.
    pub links: Option<Vec<CanonicalUrl>>,
    /// The blocks that it may share with other pages, if its content was read.
    pub blocks: Option<PageFragments>,
    /// The visit as the site's structure sees it.
    pub seen: Seen,
}

impl Teacher {
    /// With what the site's pages share and what is known of their servers.
    pub fn new(site: &Site, shared: &[u8], bucket_s: i64, servers: &[ServerRecord]) -> Self {
        let mut known = site.clone();
        if known.conditions.schedule.continuous().is_none() {
            // Its pages may get times of their own one day: by the usual policy.
            known.conditions.schedule = Schedule::Continuous(RevisitSettings::default());
        }
        let mut sites = Sites::default();
        sites.replace(vec![known]);
        let mut schedules = Schedules::default();
        schedules.follow(&sites, bucket_s, &mut Vec::new());
        schedules.loaded(0, site.id, shared, [0, 0]);
        let mut learning = Learning::default();
        servers.iter().for_each(|record| learning.meet(record));
        let (shared, notes) = (None, BTreeMap::new());
        Self { site: site.id, sites, schedules, learning, shared, notes }
    }

    /// How a version of a page is read, with [`read_exchange`](crate::read_exchange).
    pub fn reading(&self, due: &DuePage) -> FetchOrder {
        let wanted = self.learning.wanted_of(due, self.sites.is_top(due));
        FetchOrder {
            blocks: true,
            ..FetchOrder::of_page(Ticket(0), &due.page, &wanted, AddressPolicy::Public)
        }
    }

    /// Learns from a visit to a page, which is as it was before it.
    pub fn visited(&mut self, due: &DuePage, past: &PastVisit<'_>) -> Taught {
        let PastVisit { at_s, outcome, last_modified_s, answer } = *past;
        let unread = Answer { last_modified_s, ..Answer::default() };
        let mut out = Vec::new();
        if outcome.is_seen() {
            self.learn_from(due, at_s, outcome, answer.unwrap_or(&unread), &mut out);
        }
        let changed = answer.filter(|_| outcome == Outcome::Changed);
        let changed_permille = changed.and_then(|answer| {
            self.learning.changed_permille(due, answer.comparison.as_deref(), &mut out)
        });
        let counts = outcome == Outcome::Changed
            && self.sites.counts_change(self.site, changed_permille != Some(0));
        let mut visit = VisitCommit {
            update: page_update(&due.page, outcome, answer),
            ..VisitCommit::new(due.page.id, self.site, at_s, outcome)
        };
        let known = Some(answer.unwrap_or(&unread));
        self.schedules.plan_next(due, &mut visit, counts, known, 1.0, &mut out);
        self.keep(out);
        Taught {
            seen: seen(outcome, visit.update.failures, counts),
            update: visit.update,
            estimate: visit.estimate,
            changed_permille,
            links: changed.map(links_of),
            blocks: changed.and_then(|answer| answer.blocks.clone()),
        }
    }

    fn learn_from(
        &mut self,
        due: &DuePage,
        at_s: i64,
        outcome: Outcome,
        answer: &Answer,
        out: &mut Vec<Command>,
    ) {
        if self.sites.is_top(due) {
            let found = Verdict { outcome, reason: None };
            self.learning.judge_by_probe(due, true, answer, found, out);
        }
        if self.sites.conditions(self.site).is_some_and(takes_signals) {
            self.learning.learn_from(at_s, due, answer, outcome, out);
        }
    }

    /// Later notes replace earlier ones; pages near a changed one are not looked for.
    fn keep(&mut self, out: Vec<Command>) {
        for command in out {
            match command {
                Command::Commit { change: Change::Shared { bytes, .. }, .. } => {
                    self.shared = Some(bytes);
                }
                Command::Commit { change: Change::Note(note), .. } => {
                    self.notes.insert((note.server, note.name.clone()), note);
                }
                _ => {}
            }
        }
    }

    /// What was learnt of the site's schedule and its servers, to be committed.
    pub fn finish(mut self) -> Vec<Change> {
        let mut out = Vec::new();
        self.schedules.keep_all(&mut out);
        self.learning.keep(&mut out);
        self.keep(out);
        let shared = self.shared.map(|bytes| Change::Shared { site: self.site, bytes });
        shared.into_iter().chain(self.notes.into_values().map(Change::Note)).collect()
    }
}

/// What a pass over a site that was made elsewhere teaches of its structure: each page once, with the
/// blocks that it lost, if it changed and that is known. `is_known` are the pages that were seen
/// before the pass. The map takes up what was learnt; returns whether anything was.
pub fn learn_pass(
    map: &mut SitePages,
    pass: &[(PageId, Seen, Option<Vec<u32>>)],
    is_known: impl Fn(PageId) -> bool,
) -> bool {
    if !pass.iter().any(|(page, ..)| is_known(*page)) {
        return false;
    }
    let results: Vec<VisitResult> = pass
        .iter()
        .map(|(page, seen, lost)| VisitResult { page: *page, seen: *seen, lost: lost.clone() })
        .collect();
    let Some((kept, kept_of_all)) = learn_round(map, &results, is_known) else { return false };
    (map.kept, map.kept_of_all) = (kept, kept_of_all);
    true
}

/// What the servers of a site show for pages that do not exist, where that is known: an answer that
/// looks like it means gone, also where another site received it.
#[derive(Debug, Default)]
pub struct MissingPages {
    probes: BTreeMap<Server, Probe>,
    tops: Vec<CanonicalUrl>,
}

impl MissingPages {
    /// As the servers of a site were last found to answer.
    pub fn of(site: &Site, servers: &[ServerRecord]) -> Self {
        let probes = servers.iter().map(|record| {
            let learnt = ServerLearning::of(&record.notes);
            (record.server.clone(), learnt.probe)
        });
        let probes = probes.filter(|(_, probe)| probe.is_disguised()).collect();
        Self { probes, tops: site.conditions.tops.clone() }
    }

    /// Whether the answer of a page is to be read for its fingerprint.
    pub fn wants_fingerprint(&self, url: &CanonicalUrl) -> bool {
        !self.probes.is_empty()
            && self.probes.get(&url.server()).is_some_and(Probe::wants_fingerprints)
    }

    /// Corrects what an answer was taken for.
    pub fn correct(&mut self, page: &PageRecord, answer: &Answer, found: Verdict) -> Verdict {
        if self.probes.is_empty() || self.tops.contains(&page.url) {
            return found;
        }
        match self.probes.get_mut(&page.url.server()) {
            Some(probe) => probe.correct(page, answer, found),
            None => found,
        }
    }
}
