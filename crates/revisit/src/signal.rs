//! Hints that a page changed, from elsewhere than the page.

use crate::{Next, PageHistory, Reason, Rule};

/// Where a hint came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalKind {
    /// An entry of a feed names the page.
    Feed,
    /// A sitemap gives its last modification.
    Sitemap,
    /// The top page above it changed.
    TopPage,
    /// The site sent a message.
    Push,
}

/// A hint that a page changed at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signal {
    /// Where it came from.
    pub kind: SignalKind,
    /// When the page is said to have changed.
    pub changed_s: i64,
}

impl Signal {
    /// The plan with the hint taken in: a change after the last visit makes the page due at once.
    ///
    /// A change before it was seen already, and one in the future is not believed. A changed top
    /// page says little of one page below it, so it only halves the wait that is left.
    pub(crate) fn hasten(&self, now_s: i64, history: &PageHistory, planned: Next) -> Option<Next> {
        let last_s = history.last_visit_s()?;
        if self.changed_s <= last_s || self.changed_s > now_s {
            return None;
        }
        let wait_s = planned.due_s - now_s;
        let due_s = match self.kind {
            SignalKind::TopPage => now_s + wait_s / 2,
            SignalKind::Feed | SignalKind::Sitemap | SignalKind::Push => now_s + 1,
        };
        let why = Reason { rule: Rule::Signal, interval_s: due_s - last_s, ..planned.why };
        (due_s < planned.due_s).then_some(Next { due_s, why })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DAY_S, Limits, Observation, PageGroups, PolicySpec};

    #[test]
    fn a_feed_entry_after_the_last_visit_makes_the_page_due_at_once() {
        let spec: PolicySpec = "every(30d)".parse().unwrap();
        let mut policy = spec.build(Limits::default());
        let mut history = PageHistory::default();
        policy.next(10 * DAY_S, &mut history, Observation::changed());
        let now_s = 12 * DAY_S;
        let hint = |kind, changed_s| {
            let signal = Signal { kind, changed_s };
            policy.signalled(now_s, &history, PageGroups::NONE, &signal).map(|next| next.due_s)
        };
        assert_eq!(hint(SignalKind::Feed, 11 * DAY_S), Some(now_s + 1));
        assert_eq!(hint(SignalKind::Sitemap, 9 * DAY_S), None);
        assert_eq!(hint(SignalKind::Push, 13 * DAY_S), None);
        assert_eq!(hint(SignalKind::TopPage, 11 * DAY_S), Some(now_s + 14 * DAY_S));
    }
}
