//! What visits make of a page.

use super::worth::Part;
use crate::{Nth, Origin, Outcome, PageLessons, SiteId, VersionId, VersionRow, VisitCommit};

/// A page as visits find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageBefore {
    /// When it is due, if it has a time of its own.
    pub(crate) due_s: Option<i64>,
    /// When it was last tried.
    pub(crate) visited_s: Option<i64>,
    /// Its last version.
    pub(crate) version: Option<VersionId>,
    /// Its discovery number.
    pub(crate) nth: Nth,
    /// Its part in the sums.
    pub(crate) worth: Part,
}

impl PageBefore {
    /// A page of a site that was never tried. Its position does not matter here.
    pub(crate) fn unvisited(site: SiteId) -> Self {
        let worth = Part { site, importance_percent: 0, estimate: None, turn: 0 };
        Self { due_s: None, visited_s: None, version: None, nth: Nth(0), worth }
    }
}

/// What visits leave of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageAfter<'v> {
    /// When it was last tried.
    pub(crate) visited_s: Option<i64>,
    /// Its last version.
    pub(crate) version: Option<VersionId>,
    /// Its part in the sums. Where it [gets a turn](Self::gets_turn), that is still to be set.
    pub(crate) worth: Part,
    /// Whether it got its first version, in an order that we chose.
    pub(crate) gets_turn: bool,
    /// Visits made.
    pub(crate) visits: u32,
    /// Of these, the ones that saw new content.
    pub(crate) changes: u32,
    /// Of these, the ones that were not mere noise.
    pub(crate) significant: u32,
    /// When it was seen to be gone.
    pub(crate) gone_s: Vec<i64>,
    /// The last visit that is not older than what was known: what it found holds. `None` if all are
    /// of the past.
    pub(crate) last: Option<&'v VisitCommit>,
}

/// What visits of one page, in the order in which they are taken in, leave of it.
pub(crate) fn visited<'v>(before: &PageBefore, visits: &[&'v VisitCommit]) -> PageAfter<'v> {
    let mut after = PageAfter {
        visited_s: before.visited_s,
        version: before.version,
        worth: before.worth,
        gets_turn: false,
        visits: 0,
        changes: 0,
        significant: 0,
        gone_s: Vec::new(),
        last: None,
    };
    visits.iter().for_each(|visit| after.take(visit));
    after
}

impl<'v> PageAfter<'v> {
    fn take(&mut self, visit: &'v VisitCommit) {
        self.visits += 1;
        self.changes += u32::from(visit.outcome == Outcome::Changed);
        self.significant +=
            u32::from(visit.version.as_ref().is_some_and(VersionRow::is_significant));
        if visit.outcome == Outcome::Gone && self.version.is_some() {
            self.gone_s.push(visit.at_s);
        }
        let version = visit.version.as_ref().map(|row| row.version);
        let is_past = self.visited_s.is_some_and(|last_s| visit.at_s < last_s);
        if visit.origin == Origin::Imported && is_past {
            // A visit before the last one says nothing of the page as it is.
            self.version = self.version.or(version);
            return;
        }
        self.version = version.or(self.version);
        self.visited_s = self.visited_s.max(Some(visit.at_s));
        // Imported pages were not collected in our order.
        self.gets_turn |=
            self.worth.turn == 0 && version.is_some() && visit.origin == Origin::Crawled;
        self.worth.importance_percent =
            visit.importance_percent.unwrap_or(self.worth.importance_percent);
        self.worth.estimate = match visit.outcome {
            Outcome::Gone => None,
            _ => visit.estimate.or(self.worth.estimate),
        };
        self.last = Some(visit);
    }
}

/// A page as a version that was found in the packs finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Indexed {
    /// When its newest version was received.
    pub(crate) newest_s: Option<i64>,
    /// When it was last tried.
    pub(crate) visited_s: Option<i64>,
    /// Visits made.
    pub(crate) visits: u32,
    /// What the last one found.
    pub(crate) outcome: Option<Outcome>,
}

/// A page after a version of it was found in the packs that the index did not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Adopted {
    /// When it was last tried.
    pub(crate) visited_s: i64,
    /// Visits made.
    pub(crate) visits: u32,
    /// What the last one found.
    pub(crate) outcome: Outcome,
    /// Whether that one brought the version, so that validators and mark are the version's.
    pub(crate) is_last: bool,
}

/// What a version that was found in the packs, by a visit at `at_s` that found `outcome`, makes of its
/// page; `None` if a newer version is known, which says how the page is.
pub(crate) fn adopted(page: &Indexed, at_s: i64, outcome: Outcome) -> Option<Adopted> {
    if page.newest_s.is_some_and(|newest_s| newest_s > at_s) {
        return None;
    }
    // The log knows a later visit, which found nothing new or no page.
    let later = page.outcome.filter(|_| page.visited_s.is_some_and(|last_s| last_s > at_s));
    Some(Adopted {
        visited_s: page.visited_s.map_or(at_s, |visited_s| visited_s.max(at_s)),
        // A page with a version was visited.
        visits: page.visits.max(1),
        outcome: later.unwrap_or(outcome),
        is_last: later.is_none(),
    })
}

/// What lessons leave of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Learnt {
    /// When to visit it next.
    pub(crate) due_s: Option<i64>,
    /// Its part in the sums.
    pub(crate) worth: Part,
}

/// What visits that were made elsewhere teach of a page; `None` if it was visited since.
pub(crate) fn learnt(before: &PageBefore, lessons: &PageLessons) -> Option<Learnt> {
    if before.visited_s.is_some_and(|last_s| last_s > lessons.until_s) {
        return None;
    }
    let worth = Part { estimate: lessons.estimate, ..before.worth };
    // A page that was never visited here waits for its turn, whatever other collections say.
    let due_s = lessons.due_s.filter(|_| before.visited_s.is_some());
    Some(Learnt { due_s: due_s.or(before.due_s), worth })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Estimate, PageId};

    const ESTIMATE: Estimate = Estimate { rate_micros: 5, confidence_percent: 50 };

    fn before(visited_s: Option<i64>, version: Option<u64>) -> PageBefore {
        let version = version.map(VersionId);
        let mut page = PageBefore { visited_s, version, ..PageBefore::unvisited(SiteId(1)) };
        page.worth.importance_percent = 70;
        page
    }

    fn visit(origin: Origin, at_s: i64, outcome: Outcome, version: Option<u64>) -> VisitCommit {
        let version = version.map(|version| VersionRow {
            at_s,
            version: VersionId(version),
            status: 200,
            mime: String::new(),
            bytes: 1,
            changed_permille: (version % 2 == 0).then_some(0),
        });
        let estimate = Some(ESTIMATE);
        VisitCommit {
            origin,
            version,
            estimate,
            ..VisitCommit::new(PageId(1), SiteId(1), at_s, outcome)
        }
    }

    #[test]
    fn the_last_visit_says_how_a_page_is() {
        use Origin::{Crawled, Imported};
        use Outcome::{Changed, Gone, Same};
        // Origin, time, outcome and version of the visit; then the last try, the last version and
        // whether the visit's word holds. The page was visited at 10 and has version 5.
        for (origin, at_s, outcome, version, visited_s, last_version, holds) in [
            (Crawled, 20, Changed, Some(7), 20, 7, true),
            (Crawled, 20, Same, None, 20, 5, true),
            (Crawled, 20, Gone, None, 20, 5, true),
            // A clock that was put back.
            (Crawled, 9, Changed, Some(7), 10, 7, true),
            (Imported, 10, Changed, Some(7), 10, 7, true),
            (Imported, 9, Changed, Some(7), 10, 5, false),
            (Imported, 9, Gone, None, 10, 5, false),
        ] {
            let one = visit(origin, at_s, outcome, version);
            let after = visited(&before(Some(10), Some(5)), &[&one]);
            assert_eq!(
                (after.visited_s, after.version),
                (Some(visited_s), Some(VersionId(last_version)))
            );
            assert_eq!(after.last.is_some(), holds, "{origin:?} {at_s}");
            assert_eq!(after.gone_s.contains(&at_s), outcome == Gone);
            assert_eq!((after.visits, after.changes), (1, u32::from(outcome == Changed)));
        }
    }

    #[test]
    fn a_page_without_a_version_takes_one_of_the_past_and_was_never_gone() {
        let past = visit(Origin::Imported, 5, Outcome::Changed, Some(7));
        let after = visited(&before(Some(10), None), &[&past]);
        assert_eq!((after.version, after.last), (Some(VersionId(7)), None));
        assert_eq!((after.changes, after.significant), (1, 1), "it counts all the same");
        let gone = visit(Origin::Crawled, 20, Outcome::Gone, None);
        assert!(visited(&before(Some(10), None), &[&gone]).gone_s.is_empty());
    }

    #[test]
    fn a_version_from_the_packs_counts_if_none_is_newer() {
        use Outcome::{Changed, Gone, Same};
        // When the newest version was received and the page last tried, how often and what that
        // found; then the same after a version of second 10 that is a change, and whether that was
        // the last visit.
        for (newest_s, visited_s, visits, outcome, expected) in [
            (None, None, 0, None, Some((10, 1, Changed, true))),
            (Some(10), Some(9), 3, Some(Gone), Some((10, 3, Changed, true))),
            (Some(5), Some(20), 7, Some(Same), Some((20, 7, Same, false))),
            // Known by a state that lost what the visit found.
            (Some(5), Some(20), 0, None, Some((20, 1, Changed, true))),
            (Some(11), Some(20), 7, Some(Same), None),
        ] {
            let page = Indexed { newest_s, visited_s, visits, outcome };
            let found = adopted(&page, 10, Changed);
            let found = found.map(|p| (p.visited_s, p.visits, p.outcome, p.is_last));
            assert_eq!(found, expected, "{page:?}");
        }
        let unknown = Indexed { newest_s: None, visited_s: None, visits: 0, outcome: None };
        assert_eq!(adopted(&unknown, 10, Gone).unwrap().outcome, Gone);
    }

    #[test]
    fn lessons_count_unless_the_page_was_visited_since() {
        for (visited_s, due_s, expected) in [
            (Some(10), Some(50), Some(Some(50))),
            (Some(10), None, Some(Some(7))),
            (None, Some(50), Some(Some(7))),
            (Some(11), Some(50), None),
        ] {
            let page = PageBefore { due_s: Some(7), ..before(visited_s, Some(1)) };
            let lessons = PageLessons {
                page: PageId(1),
                until_s: 10,
                history: vec![1],
                failures: 0,
                due_s,
                estimate: Some(ESTIMATE),
                compared: Vec::new(),
            };
            let found = learnt(&page, &lessons);
            assert_eq!(found.map(|page| page.due_s), expected, "{visited_s:?} {due_s:?}");
            assert!(found.is_none_or(|page| page.worth.estimate == Some(ESTIMATE)));
        }
    }

    #[test]
    fn only_what_we_collect_gets_a_turn_and_only_once() {
        for (origin, turn, version, expected) in [
            (Origin::Crawled, 0, Some(1), true),
            (Origin::Crawled, 0, None, false),
            (Origin::Crawled, 9, Some(1), false),
            (Origin::Imported, 0, Some(1), false),
        ] {
            let mut page = before(None, None);
            page.worth.turn = turn;
            let one = visit(origin, 5, Outcome::Changed, version);
            assert_eq!(visited(&page, &[&one]).gets_turn, expected, "{origin:?} {turn}");
        }
    }

    #[test]
    fn visits_are_counted_and_a_page_that_is_gone_has_no_rate() {
        let seen = visit(Origin::Crawled, 5, Outcome::Changed, Some(1));
        let noise = visit(Origin::Crawled, 6, Outcome::Changed, Some(2));
        let gone = visit(Origin::Crawled, 7, Outcome::Gone, None);
        let after = visited(&before(None, None), &[&seen, &noise]);
        assert_eq!((after.visits, after.changes, after.significant), (2, 2, 1));
        assert_eq!((after.worth.estimate, after.worth.importance_percent), (Some(ESTIMATE), 70));
        assert_eq!(visited(&before(None, None), &[&seen, &gone]).worth.estimate, None);
    }
}
