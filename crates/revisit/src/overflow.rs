//! A server with more due pages than politeness allows (paper 004): its intervals are stretched
//! evenly until it keeps up, and restored afterwards.

/// Lateness is looked at once in this many buckets.
const LOOK_BUCKETS: i64 = 6;
/// By how much one step may stretch, and the share that stays when the server keeps up again.
const STEP: (f64, f64) = (1.1, 4.0);
const RECOVERY: f64 = 0.9;
/// A server without a visit for so long, or for two buckets, was away or had nothing due.
const AWAY_S: i64 = 3_600;
/// Weight of a visit in the mean interval.
const NEWEST: f64 = 0.05;
const NOT_AT_ALL: u32 = 100;
const MOST_PERCENT: u32 = 100_000;

/// How far one server's intervals are stretched.
///
/// Pages are taken in the order of their due times, so all of a server's pages come equally late,
/// and those with short intervals suffer most. If pages planned τ apart come L late, they are in
/// truth τ + L apart: planned (τ + L)/τ times as far apart they would be on time. A step shows its
/// effect only after a round of intervals, so the next one waits that long.
#[derive(Debug, Clone, PartialEq)]
pub struct Overflow {
    percent: u32,
    /// Mean planned interval of the pages visited.
    interval_s: f64,
    /// Lateness since the last look: sum and number.
    late_s: (f64, u32),
    looked_s: Option<i64>,
    /// Mean lateness at the look before.
    late_before_s: f64,
    hold_until_s: i64,
    /// The newest visit, and the first one after the last time without any.
    seen_s: (i64, i64),
}

impl Overflow {
    /// As stored with the server; 100 percent means not stretched.
    pub fn new(percent: u32) -> Self {
        Self {
            percent: percent.clamp(NOT_AT_ALL, MOST_PERCENT),
            interval_s: 0.0,
            late_s: (0.0, 0),
            looked_s: None,
            late_before_s: 0.0,
            hold_until_s: i64::MIN,
            seen_s: (i64::MIN, i64::MIN),
        }
    }

    /// How far intervals are stretched now.
    pub fn percent(&self) -> u32 {
        self.percent
    }

    /// The factor on intervals.
    pub fn stretch(&self) -> f64 {
        f64::from(self.percent) / 100.0
    }

    /// A page planned for `due_s` is visited now, for the next time after `interval_s`. Returns
    /// whether the stretching changed.
    pub fn visited(&mut self, now_s: i64, due_s: i64, interval_s: i64, bucket_s: i64) -> bool {
        let newest = if self.interval_s == 0.0 { 1.0 } else { NEWEST };
        self.interval_s += newest * (interval_s as f64 - self.interval_s);
        // What became due while the server was away is late, but not because there is too much of it.
        let (last_s, resumed_s) = self.seen_s;
        let is_away = now_s.saturating_sub(last_s) > AWAY_S.max(2 * bucket_s);
        self.seen_s = (now_s, if is_away { now_s } else { resumed_s });
        let since_s = due_s.max(self.seen_s.1);
        self.late_s = (self.late_s.0 + (now_s - since_s).max(0) as f64, self.late_s.1 + 1);
        let looked_s = *self.looked_s.get_or_insert(now_s);
        if now_s - looked_s < LOOK_BUCKETS * bucket_s.max(1) {
            return false;
        }
        self.looked_s = Some(now_s);
        let (sum_s, visits) = std::mem::take(&mut self.late_s);
        let late_s = sum_s / f64::from(visits.max(1));
        let before_s = std::mem::replace(&mut self.late_before_s, late_s);
        if now_s < self.hold_until_s {
            return false;
        }
        self.step(now_s, late_s, before_s, bucket_s as f64)
    }

    /// Pages of one bucket come up to a bucket late by themselves; lateness that shrinks already
    /// needs no step.
    fn step(&mut self, now_s: i64, late_s: f64, before_s: f64, bucket_s: f64) -> bool {
        let percent = self.percent;
        if late_s > bucket_s && late_s > 0.9 * before_s {
            let step = (1.0 + late_s / self.interval_s.max(1.0)).clamp(STEP.0, STEP.1);
            self.set(f64::from(percent) * step);
            self.hold_until_s = now_s + (self.interval_s * step + late_s) as i64;
        } else if late_s <= bucket_s && percent > NOT_AT_ALL {
            self.set(f64::from(percent) * RECOVERY);
            self.hold_until_s = now_s + (self.interval_s / 2.0) as i64;
        }
        self.percent != percent
    }

    fn set(&mut self, percent: f64) {
        self.percent = (percent.round() as u32).clamp(NOT_AT_ALL, MOST_PERCENT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const HOUR_S: i64 = 3_600;

    /// Pages that want a visit every day on a server that allows one in `pause_s`; returns the
    /// stretching and the longest gap of a page at the end of each of `days`.
    fn run(
        overflow: &mut Overflow,
        queue: &mut BTreeSet<(i64, usize)>,
        from_day: i64,
        days: i64,
        pause_s: i64,
    ) -> (u32, i64) {
        let end_s = (from_day + days) * 86_400;
        let mut now_s = from_day * 86_400;
        let mut latest_s = 0;
        while now_s < end_s {
            match queue.pop_first() {
                Some((due_s, page)) if due_s <= now_s => {
                    if now_s > end_s - 86_400 {
                        latest_s = latest_s.max(now_s - due_s);
                    }
                    let interval_s = (86_400.0 * overflow.stretch()) as i64;
                    overflow.visited(now_s, due_s, interval_s, HOUR_S);
                    queue.insert((now_s + interval_s, page));
                    now_s += pause_s;
                }
                Some(early) => {
                    now_s = early.0.max(now_s + 1);
                    queue.insert(early);
                }
                None => return (overflow.percent(), latest_s),
            }
        }
        (overflow.percent(), latest_s)
    }

    #[test]
    fn a_server_that_was_away_is_not_overloaded() {
        let mut overflow = Overflow::new(100);
        // 100 pages a day, an hour's work; the server is away for twenty days.
        let mut queue: BTreeSet<(i64, usize)> = (0..100).map(|n| (n as i64 * 30, n)).collect();
        run(&mut overflow, &mut queue, 0, 10, 30);
        let (percent, _) = run(&mut overflow, &mut queue, 30, 10, 30);
        assert_eq!(percent, 100);
    }

    #[test]
    fn a_server_that_cannot_keep_up_is_stretched_evenly_and_recovers() {
        let mut overflow = Overflow::new(100);
        let mut queue: BTreeSet<(i64, usize)> = (0..2_880).map(|n| (n as i64 * 30, n)).collect();
        // 2880 pages a day; 1440 can be visited.
        let (percent, latest_s) = run(&mut overflow, &mut queue, 0, 40, 60);
        assert!((150..=400).contains(&percent), "{percent}%");
        assert_eq!(queue.len(), 2_880);
        assert!(latest_s < 3 * 86_400, "a page waited {latest_s} s beyond its time");
        // The server allows four times as much now.
        let (percent, latest_s) = run(&mut overflow, &mut queue, 40, 60, 15);
        assert_eq!(percent, 100);
        assert!(latest_s < 2 * HOUR_S, "{latest_s}");
    }

    #[test]
    fn a_burst_on_a_server_with_time_to_spare_is_soon_forgotten() {
        let mut overflow = Overflow::new(100);
        let mut queue: BTreeSet<(i64, usize)> = (0..1_000).map(|n| (0, n)).collect();
        assert_eq!(run(&mut overflow, &mut queue, 0, 60, 60).0, 100);
    }
}
