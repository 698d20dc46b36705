//! A round that chooses its pages: what it waits for, and what it has still to ask.

use std::collections::BTreeSet;

use nenrin_state::{Outcome, PageId, SitePages, Skips};
use nenrin_structure::{Seen, SitePlan, SiteStep};

/// A round that chooses its pages.
#[derive(Debug)]
pub(crate) struct Planned {
    stage: Stage,
    /// Pages to be visited whatever the plan says: new ones, sources of hints, and those that the
    /// queue had no room for.
    owed: BTreeSet<PageId>,
    /// Pages that are being loaded.
    loading: BTreeSet<PageId>,
    /// Pages that the plan asked for and was not told of yet.
    asked: BTreeSet<PageId>,
    /// How many those may be.
    ahead: usize,
}

#[derive(Debug)]
enum Stage {
    /// Sitemaps and feeds are visited first, because what they say is evidence.
    Sources(Sources),
    /// The plan chooses, until it is done.
    Choosing { plan: Box<SitePlan>, done: bool },
}

#[derive(Debug)]
struct Sources {
    map: Box<SitePages>,
    left: BTreeSet<PageId>,
    /// What was seen since the map was made.
    heard: Vec<(PageId, Seen)>,
}

impl Planned {
    pub(crate) fn new(
        map: SitePages,
        new: BTreeSet<PageId>,
        sources: BTreeSet<PageId>,
        ahead: usize,
    ) -> Self {
        let owed = new.union(&sources).copied().collect();
        let stage = Sources { map: Box::new(map), left: sources, heard: Vec::new() };
        Self {
            stage: Stage::Sources(stage),
            owed,
            loading: BTreeSet::new(),
            asked: BTreeSet::new(),
            ahead: ahead.max(1),
        }
    }

    /// The map, once every source of hints was heard.
    pub(crate) fn map_if_ready(&mut self) -> Option<SitePages> {
        match &mut self.stage {
            Stage::Sources(sources) if sources.left.is_empty() => {
                Some(*std::mem::take(&mut sources.map))
            }
            _ => None,
        }
    }

    /// Begins to choose.
    pub(crate) fn choose(&mut self, mut plan: SitePlan) {
        if let Stage::Sources(sources) = &self.stage {
            sources.heard.iter().for_each(|&(page, seen)| plan.seen(page.0, seen));
        }
        self.stage = Stage::Choosing { plan: Box::new(plan), done: false };
    }

    /// The pages to load now, at most `room`. `is_taken` tells the pages that are queued already.
    pub(crate) fn wanted(&mut self, room: usize, is_taken: impl Fn(PageId) -> bool) -> Vec<PageId> {
        let room = room.saturating_sub(self.loading.len());
        let mut wanted = Vec::new();
        while wanted.len() < room
            && let Some(page) = self.owed.pop_first()
        {
            wanted.push(page);
        }
        if let Stage::Choosing { plan, done } = &mut self.stage {
            while !*done && self.asked.len() < self.ahead && wanted.len() < room {
                match plan.next_step() {
                    SiteStep::Visit(key) => {
                        let page = PageId(key);
                        self.asked.insert(page);
                        let comes = self.loading.contains(&page) || wanted.contains(&page);
                        if !comes && !is_taken(page) {
                            wanted.push(page);
                        }
                    }
                    SiteStep::Wait => break,
                    SiteStep::Done => *done = true,
                }
            }
        }
        self.loading.extend(&wanted);
        wanted
    }

    pub(crate) fn loaded(&mut self, page: PageId) {
        self.loading.remove(&page);
    }

    /// The page is to be visited, but not yet.
    pub(crate) fn owe(&mut self, page: PageId) {
        self.owed.insert(page);
    }

    /// What a visit showed, or that there will be none.
    pub(crate) fn told(&mut self, page: PageId, seen: Seen) {
        self.asked.remove(&page);
        match &mut self.stage {
            Stage::Sources(sources) => {
                sources.left.remove(&page);
                sources.heard.push((page, seen));
            }
            Stage::Choosing { plan, .. } => plan.seen(page.0, seen),
        }
    }

    pub(crate) fn is_over(&self, limit_reached: bool) -> bool {
        let done = matches!(self.stage, Stage::Choosing { done: true, .. });
        self.loading.is_empty() && (limit_reached || (done && self.owed.is_empty()))
    }

    /// What was left out, and the plan for its memory.
    pub(crate) fn end(self) -> Option<(Skips, Box<SitePlan>)> {
        match self.stage {
            Stage::Choosing { plan, .. } => Some((Skips { reasons: plan.left_out() }, plan)),
            Stage::Sources(_) => None,
        }
    }
}

/// What a visit showed, as plans see it: a page that has just gone has changed, one that is still
/// gone has not. `counts` tells whether new content counts as a change.
pub(crate) fn seen(outcome: Outcome, failures: u32, counts: bool) -> Seen {
    match outcome {
        Outcome::Changed if counts => Seen::Changed,
        Outcome::Gone if failures <= 1 => Seen::Changed,
        Outcome::Changed | Outcome::Same | Outcome::NotModified | Outcome::Gone => Seen::Same,
        Outcome::Refused | Outcome::Failed => Seen::Failed,
    }
}
