//! What the links of a visit make known.

use crate::{Linked, Nth, Outcome, Reading, VisitCommit};

/// The links of a page as they are to be kept, and what became known by them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Links {
    /// All targets, ascending.
    pub(crate) targets: Vec<Nth>,
    /// For the crawl order.
    pub(crate) linked: Linked,
}

/// Compares the links of a page with those that were known; `None` if nothing changed. A link to
/// the page itself does not count.
pub(crate) fn linked(nth: Nth, before: Option<Vec<Nth>>, mut targets: Vec<Nth>) -> Option<Links> {
    targets.retain(|&target| target != nth);
    targets.sort_unstable();
    targets.dedup();
    let again = before.is_some();
    if before.as_ref() == Some(&targets) {
        return None;
    }
    let before = before.unwrap_or_default();
    let is_new = |target: &&Nth| before.binary_search(target).is_err();
    let fresh = targets.iter().filter(is_new).copied().collect();
    let linked = Linked { nth, targets: fresh, links: targets.len(), again };
    Some(Links { targets, linked })
}

/// How far a page is read after a visit that brought no links.
pub(crate) fn reading_without_links(visit: &VisitCommit) -> Reading {
    match visit.version.is_some() || visit.outcome == Outcome::Changed {
        true => Reading::Unread,
        false => Reading::Tried,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_that_were_not_known_are_new() {
        let numbers = |nths: Vec<u32>| nths.into_iter().map(Nth).collect::<Vec<_>>();
        for (before, targets, kept, fresh) in [
            (None, vec![3, 2, 3, 1], vec![2, 3], vec![2, 3]),
            (None, vec![], vec![], vec![]),
            (Some(vec![2]), vec![3, 2], vec![2, 3], vec![3]),
            (Some(vec![2, 3]), vec![3], vec![3], vec![]),
        ] {
            let [targets, kept, fresh] = [targets, kept, fresh].map(numbers);
            let again = before.is_some();
            let found = linked(Nth(1), before.map(numbers), targets).unwrap();
            assert_eq!((&found.targets, &found.linked.targets), (&kept, &fresh));
            assert_eq!((found.linked.links, found.linked.again), (kept.len(), again));
        }
        let (before, targets) = (numbers(vec![2, 3]), numbers(vec![3, 1, 2]));
        assert_eq!(linked(Nth(1), Some(before), targets), None, "as before");
    }
}
