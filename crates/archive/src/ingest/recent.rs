//! What was taken in and may not be committed yet: the state does not know of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use nenrin_state::{Outcome, PageRecord, PageUpdate, VersionId};
use nenrin_store::Digest;
use nenrin_urls::CanonicalUrl;

/// Captures that are remembered: more than can be under way to their commit.
pub(crate) const REMEMBERED: usize = 16_384;

/// A URL, hashed: comparing and keeping millions of them would take longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct UrlMark([u8; 16]);

impl UrlMark {
    pub(super) fn of(url: &CanonicalUrl) -> Self {
        let mut mark = [0; 16];
        mark.copy_from_slice(&Digest::of(url.as_str().as_bytes()).0[..16]);
        Self(mark)
    }
}

/// A capture: URL, time, status and content.
pub(super) type CaptureMark = (UrlMark, i64, u16, Digest);

/// A page after its last visit that was taken in.
pub(super) struct LastVisit {
    pub(super) at_s: i64,
    pub(super) outcome: Outcome,
    /// The page's newest version.
    pub(super) version: Option<VersionId>,
    pub(super) update: PageUpdate,
}

/// What was taken in last.
#[derive(Default)]
pub(super) struct Recent {
    order: VecDeque<CaptureMark>,
    captures: BTreeSet<CaptureMark>,
    last: BTreeMap<UrlMark, LastVisit>,
}

impl Recent {
    pub(super) fn has(&self, capture: &CaptureMark) -> bool {
        self.captures.contains(capture)
    }

    pub(super) fn knows(&self, url: UrlMark) -> bool {
        self.last.contains_key(&url)
    }

    /// Brings a page's record up to what was taken in since.
    pub(super) fn bring_up(&self, url: UrlMark, page: &mut PageRecord) {
        if let Some(last) = self.last.get(&url) {
            move_on(page, (last.at_s, last.outcome), last.version, &last.update);
        }
    }

    /// Remembers a capture, and what it makes of its page unless it is older than the last.
    pub(super) fn remember(&mut self, capture: CaptureMark, last: Option<LastVisit>) {
        if let Some(last) = last {
            self.last.insert(capture.0, last);
        }
        self.order.push_back(capture);
        self.captures.insert(capture);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.captures.remove(&oldest);
            if !self.has_any(oldest.0) {
                self.last.remove(&oldest.0);
            }
        }
    }

    fn has_any(&self, url: UrlMark) -> bool {
        let first = (url, i64::MIN, 0, Digest([0; 32]));
        self.captures.range(first..).next().is_some_and(|capture| capture.0 == url)
    }
}

/// The page's record after a visit; one that is older than the last leaves it as it is.
pub(crate) fn move_on(
    page: &mut PageRecord,
    (at_s, outcome): (i64, Outcome),
    version: Option<VersionId>,
    update: &PageUpdate,
) {
    if page.visited_s.is_some_and(|last_s| last_s > at_s) {
        page.version = page.version.or(version);
        return;
    }
    page.version = version.or(page.version);
    page.visited_s = Some(at_s);
    page.outcome = Some(outcome);
    page.validators.clone_from(&update.validators);
    page.mark = update.mark;
    page.bytes = update.bytes;
    page.history.clone_from(&update.history);
    page.failures = update.failures;
}
