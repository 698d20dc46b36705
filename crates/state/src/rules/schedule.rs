//! When pages with times of their own are due.

use crate::{PullForward, Schedule};

/// A page that was visited before its site let every page have its own time is due this long after
/// that visit, if its visits taught nothing.
const FIRST_WAIT_S: i64 = 86_400;

/// What a change of conditions does to the times of a site's pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Switch {
    /// Each page gets a time of its own.
    On,
    /// They lose their times.
    Off,
    /// Their times stay as they are.
    Stay,
}

/// What changing a site's schedule does to the times of its pages.
pub(crate) fn switch(before: Option<&Schedule>, after: &Schedule) -> Switch {
    let was = before.is_some_and(|schedule| schedule.continuous().is_some());
    match (was, after.continuous().is_some()) {
        (false, true) => Switch::On,
        (true, false) => Switch::Off,
        _ => Switch::Stay,
    }
}

/// When a page without a time of its own is due, once its site gives it one. `learnt_s` is when its
/// visits say that it should be visited again, if they taught anything.
pub(crate) fn due_when_scheduled(learnt_s: Option<i64>, visited_s: Option<i64>, now_s: i64) -> i64 {
    let usual_s = || visited_s.unwrap_or(0).saturating_add(FIRST_WAIT_S);
    now_s.max(learnt_s.unwrap_or_else(usual_s))
}

/// Where a page that gets a time of its own waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Among the new pages, of which a crawl order chooses.
    Turn,
    /// For its time.
    Time,
}

/// Where a page waits. Top pages have no links to be ordered by, and wait for their time like
/// visited ones.
pub(crate) fn wait(is_visited: bool, depth: u32) -> Wait {
    if is_visited || depth <= 1 { Wait::Time } else { Wait::Turn }
}

/// When a page is due after a hint: the share of its wait that the hint's odds make up falls away.
/// `None` if the hint brings it no nearer.
pub(crate) fn pulled_forward(due_s: Option<i64>, pull: &PullForward) -> Option<i64> {
    let due_s = due_s.filter(|&due_s| due_s > pull.to_s)?;
    let left = 100 - i64::from(pull.odds_percent.min(100));
    Some(pull.to_s + (due_s - pull.to_s) / 100 * left)
}

/// Whether an announced change is news: the page was visited, and not since.
pub(crate) fn is_news(visited_s: Option<i64>, changed_s: i64) -> bool {
    visited_s.is_some_and(|visited_s| visited_s < changed_s)
}

#[cfg(test)]
mod tests {
    use nenrin_lang::Hint;

    use super::*;
    use crate::PageId;

    #[test]
    fn a_hint_takes_its_share_of_the_wait() {
        for (due_s, odds_percent, expected) in [
            (None, 100, None),
            (Some(100), 100, None),
            (Some(99), 50, None),
            (Some(1_100), 100, Some(100)),
            (Some(1_100), 60, Some(500)),
            (Some(1_100), 0, Some(1_100)),
            (Some(1_100), 200, Some(100)),
        ] {
            let hint = Hint::AnnouncedBy(String::new());
            let pull = PullForward { page: PageId(1), to_s: 100, odds_percent, hint };
            assert_eq!(pulled_forward(due_s, &pull), expected, "{due_s:?} {odds_percent}");
        }
    }

    #[test]
    fn an_announced_change_is_news_after_the_last_visit_only() {
        for (visited_s, expected) in [(None, false), (Some(4), true), (Some(5), false)] {
            assert_eq!(is_news(visited_s, 5), expected);
        }
    }

    #[test]
    fn schedules_are_switched_on_and_off() {
        let rounds = Schedule::Rounds { period_s: 9 };
        let own = Schedule::Continuous(Default::default());
        for (before, after, expected) in [
            (None, &own, Switch::On),
            (Some(&rounds), &own, Switch::On),
            (Some(&own), &own, Switch::Stay),
            (Some(&own), &rounds, Switch::Off),
            (Some(&rounds), &Schedule::Manual, Switch::Stay),
        ] {
            assert_eq!(switch(before, after), expected);
        }
    }

    #[test]
    fn a_visited_page_is_due_a_day_later_and_a_new_one_at_once() {
        for (learnt_s, visited_s, expected) in [
            (None, None, 1_000_000),
            (None, Some(1), 1_000_000),
            (None, Some(990_000), 1_076_400),
            (Some(5_000_000), Some(990_000), 5_000_000),
            (Some(995_000), Some(990_000), 1_000_000),
        ] {
            assert_eq!(due_when_scheduled(learnt_s, visited_s, 1_000_000), expected);
        }
        assert_eq!(
            [(true, 9), (false, 1), (false, 2)].map(|(v, d)| wait(v, d)),
            [Wait::Time, Wait::Time, Wait::Turn]
        );
    }
}
