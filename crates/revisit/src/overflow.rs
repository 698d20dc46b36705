//! A server with more due pages than politeness allows (paper 004): its intervals are stretched
//! evenly until it keeps up, and restored afterwards.

/// Lateness is looked at once in this many buckets, and that many buckets late is too late.
const LOOK_BUCKETS: i64 = 6;
/// By how much one step may stretch, and the share that stays when the server keeps up again.
const STEP: (f64, f64) = (1.1, 4.0);
const RECOVERY: f64 = 0.9;
/// Weight of a visit in the mean interval.
const NEWEST: f64 = 0.05;
const NOT_AT_ALL: u32 = 100;
const MOST_PERCENT: u32 = 100_000;

/// How far one server's intervals are stretched.
///
/// Pages are taken in the order of their due times. If pages become due r times as fast as they
/// can be visited, the lateness of the page at the head grows by 1 − 1/r seconds a second: that
/// shows r, and stretching all intervals by r brings the server into balance. A step shows its
/// effect only after a round of intervals, so the next one waits that long.
#[derive(Debug, Clone, PartialEq)]
pub struct Overflow {
    percent: u32,
    /// Mean planned interval of the pages visited.
    interval_s: f64,
    /// When lateness was last looked at, and what it was.
    looked: Option<(i64, i64)>,
    hold_until_s: i64,
}

impl Overflow {
    /// As kept with the server; 100 percent is no stretching.
    pub fn new(percent: u32) -> Self {
        let percent = percent.clamp(NOT_AT_ALL, MOST_PERCENT);
        Self { percent, interval_s: 0.0, looked: None, hold_until_s: i64::MIN }
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
        let late_s = (now_s - due_s).max(0);
        let look_s = LOOK_BUCKETS * bucket_s.max(1);
        let Some((looked_s, late_before_s)) = self.looked else {
            self.looked = Some((now_s, late_s));
            return false;
        };
        if now_s - looked_s < look_s {
            return false;
        }
        self.looked = Some((now_s, late_s));
        if now_s < self.hold_until_s {
            return false;
        }
        let before = self.percent;
        let growth = (late_s - late_before_s) as f64 / (now_s - looked_s) as f64;
        if late_s > look_s && growth > 0.0 {
            let step = (1.0 / (1.0 - growth).max(0.1)).clamp(STEP.0, STEP.1);
            self.set(f64::from(before) * step);
            self.hold_until_s = now_s + self.interval_s as i64 + late_s;
        } else if late_s <= bucket_s && before > NOT_AT_ALL {
            self.set(f64::from(before) * RECOVERY);
            self.hold_until_s = now_s + self.interval_s as i64 / 2;
        }
        self.percent != before
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
