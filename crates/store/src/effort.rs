//! How much work a new body is worth: as much as the machine has time for.

use std::time::{Duration, Instant};

use crate::options::StoreOptions;

/// From so many waiting versions on, only the quickest way keeps up.
const LONG_QUEUE: usize = 48;
/// From so many on, a step less is done.
const GROWING_QUEUE: usize = 16;
/// Above this share of busy time, no time is left for better compression.
const BUSY: f64 = 0.7;
/// A step more must leave at least half of the time free.
const FREE: f64 = 0.5;
/// How long the load is measured before it counts.
const MEASURED: Duration = Duration::from_millis(250);

/// How well bodies are compressed while collecting. `compact` makes up for what was left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// As quickly as possible, compared with the page's last version only.
    Quick = 0,
    /// Compared with similar pages as well, at a low level.
    Usual = 1,
    /// As the options say.
    #[default]
    Thorough = 2,
}

impl Effort {
    /// The effort for what comes next: `waiting` versions wait to be stored, and `busy` is the share
    /// of the time in which the threads that store were busy lately, with this effort; none if it
    /// was not measured yet.
    fn next(self, waiting: usize, busy: Option<f64>) -> Self {
        if waiting >= LONG_QUEUE {
            return Self::Quick;
        }
        let Some(busy) = busy else { return self };
        if waiting >= GROWING_QUEUE || busy > BUSY {
            return self.less();
        }
        let more = self.more();
        if busy * more.cost() / self.cost() <= FREE { more } else { self }
    }

    /// About how many times the work of the quickest way, estimated, not measured.
    fn cost(self) -> f64 {
        match self {
            Self::Quick => 1.0,
            Self::Usual => 4.0,
            Self::Thorough => 12.0,
        }
    }

    fn less(self) -> Self {
        match self {
            Self::Thorough => Self::Usual,
            Self::Usual | Self::Quick => Self::Quick,
        }
    }

    fn more(self) -> Self {
        match self {
            Self::Quick => Self::Usual,
            Self::Usual | Self::Thorough => Self::Thorough,
        }
    }

    /// The zstd level of a body; `is_first` if its page has no version yet.
    pub(crate) fn level(self, options: &StoreOptions, is_first: bool) -> i32 {
        let most = match self {
            Self::Quick => 1,
            Self::Usual => 3,
            Self::Thorough => i32::MAX,
        };
        most.min(if is_first { options.first_level } else { options.level })
    }

    pub(crate) fn from_byte(byte: u8) -> Self {
        match byte {
            0 => Self::Quick,
            1 => Self::Usual,
            _ => Self::Thorough,
        }
    }
}

/// Measures how busy the threads that store are, and chooses the effort by it.
#[derive(Debug)]
pub struct EffortGauge {
    threads: u32,
    effort: Effort,
    since: Instant,
    busy: Duration,
}

impl EffortGauge {
    /// For so many threads, beginning now.
    pub fn new(threads: usize, now: Instant) -> Self {
        let threads = u32::try_from(threads).unwrap_or(u32::MAX).max(1);
        Self { threads, effort: Effort::default(), since: now, busy: Duration::ZERO }
    }

    /// A thread was busy for this long.
    pub fn add_busy(&mut self, busy: Duration) {
        self.busy += busy;
    }

    /// The effort for the next version, while so many wait.
    pub fn effort(&mut self, now: Instant, waiting: usize) -> Effort {
        let measured = now.saturating_duration_since(self.since);
        let share = self.busy.as_secs_f64() / (measured.as_secs_f64() * f64::from(self.threads));
        let is_measured = measured >= MEASURED;
        let next = self.effort.next(waiting, is_measured.then_some(share));
        if is_measured || next != self.effort {
            (self.since, self.busy) = (now, Duration::ZERO);
        }
        self.effort = next;
        next
    }
}

#[cfg(test)]
mod tests {
    use super::Effort::{Quick, Thorough, Usual};
    use super::*;

    #[test]
    fn the_queue_and_the_free_time_decide_step_by_step() {
        let table = [
            // effort, waiting, busy, next
            (Thorough, 0, None, Thorough),
            (Thorough, 47, None, Thorough),
            (Thorough, 48, None, Quick),
            (Usual, 320, Some(0.0), Quick),
            (Thorough, 1, Some(0.69), Thorough),
            (Thorough, 1, Some(0.71), Usual),
            (Thorough, 16, Some(0.1), Usual),
            (Usual, 1, Some(0.9), Quick),
            (Quick, 1, Some(0.9), Quick),
            (Quick, 1, Some(0.13), Quick),
            (Quick, 1, Some(0.12), Usual),
            (Usual, 1, Some(0.17), Usual),
            (Usual, 1, Some(0.16), Thorough),
            (Quick, 16, Some(0.0), Quick),
        ];
        for (effort, waiting, busy, next) in table {
            assert_eq!(effort.next(waiting, busy), next, "{effort:?} {waiting} {busy:?}");
        }
    }

    #[test]
    fn a_step_up_is_not_taken_back_at_the_same_pace() {
        for pace in 0..100 {
            let busy = |effort: Effort| Some((effort.cost() * f64::from(pace) / 100.0).min(1.0));
            let next = |effort: Effort| effort.next(0, busy(effort));
            let settled = next(next(Quick));
            assert_eq!(next(settled), settled, "at {pace}");
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "any moment to count from")]
    fn a_flood_is_met_at_once_and_quiet_is_believed_slowly() {
        let begin = Instant::now();
        let mut gauge = EffortGauge::new(2, begin);
        let mut at = |ms: u64, waiting: usize, busy_ms: u64| {
            gauge.add_busy(Duration::from_millis(busy_ms));
            gauge.effort(begin + Duration::from_millis(ms), waiting)
        };
        assert_eq!(at(1, 3, 1), Thorough);
        assert_eq!(at(20, 60, 30), Quick);
        assert_eq!(at(100, 2, 10), Quick, "not yet measured");
        assert_eq!(at(280, 2, 200), Quick, "still busy");
        assert_eq!(at(560, 2, 20), Usual);
        assert_eq!(at(820, 2, 70), Thorough);
        assert_eq!(at(1100, 2, 500), Usual);
    }

    #[test]
    fn a_level_is_never_above_the_options() {
        let options = StoreOptions { level: 2, first_level: 10, ..StoreOptions::default() };
        let levels = |effort: Effort| [effort.level(&options, true), effort.level(&options, false)];
        assert_eq!([levels(Quick), levels(Usual), levels(Thorough)], [[1, 1], [3, 2], [10, 2]]);
    }

    #[test]
    fn every_effort_comes_back_from_its_byte() {
        for effort in [Quick, Usual, Thorough] {
            assert_eq!(Effort::from_byte(effort as u8), effort);
        }
    }
}
