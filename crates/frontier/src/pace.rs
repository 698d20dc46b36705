/// How servers are treated.
#[derive(Debug, Clone, PartialEq)]
pub struct Politeness {
    /// Pause between two requests to a server, at least.
    pub delay_ms: i64,
    /// The pause is at least this many times the last response time: a slow server is asked less.
    pub response_factor: f64,
    /// The most that a slow response can add.
    pub response_pause_max_ms: i64,
    /// The longest crawl-delay that is honoured in full.
    pub crawl_delay_max_ms: i64,
    /// First rest after a failure without Retry-After; doubles each time.
    pub rest_first_ms: i64,
    /// The longest rest.
    pub rest_max_ms: i64,
    /// Failures are forgotten after this long without a new one.
    pub forgive_after_ms: i64,
    /// Share of a server's turns that new pages get while known ones wait as well; `None` goes by
    /// which have waited longer.
    pub new_percent: Option<u32>,
}

impl Default for Politeness {
    fn default() -> Self {
        Self {
            delay_ms: 1_000,
            response_factor: 2.0,
            response_pause_max_ms: 30_000,
            crawl_delay_max_ms: 300_000,
            rest_first_ms: 60_000,
            rest_max_ms: 86_400_000,
            forgive_after_ms: 1_800_000,
            new_percent: None,
        }
    }
}

/// What a request taught about its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feedback {
    /// It answered, after this long.
    Answered {
        /// From the request to the last byte.
        elapsed_ms: i64,
    },
    /// It asked to be left alone (429, 503).
    Overloaded {
        /// Seconds, as its Retry-After says.
        retry_after_s: Option<i64>,
    },
    /// It could not be reached (DNS, connection, TLS, time-out).
    Unreachable,
    /// No request was made after all.
    NotAsked,
}

/// How soon one server may be asked again.
#[derive(Debug, Clone, PartialEq)]
pub struct Pace {
    /// This site's own delay, where it differs from the archive's.
    pub delay_ms: Option<i64>,
    /// What robots.txt asks for.
    pub crawl_delay_ms: Option<i64>,
    /// When the last request ended.
    pub asked_ms: Option<i64>,
    /// How long the last answer took.
    pub elapsed_ms: i64,
    /// Until when the server is left alone.
    pub resting_until_ms: Option<i64>,
    /// Failures in a row.
    pub strikes: u32,
    /// When the last failure was.
    pub trouble_ms: Option<i64>,
}

impl Pace {
    /// A server never asked before.
    pub fn new() -> Self {
        Self {
            delay_ms: None,
            crawl_delay_ms: None,
            asked_ms: None,
            elapsed_ms: 0,
            resting_until_ms: None,
            strikes: 0,
            trouble_ms: None,
        }
    }

    /// The pause after a request: the largest of the configured delay, the server's crawl-delay and
    /// a multiple of its last response time.
    pub fn pause_ms(&self, politeness: &Politeness) -> i64 {
        let own = self.delay_ms.unwrap_or(politeness.delay_ms);
        let asked = self.crawl_delay_ms.unwrap_or(0).min(politeness.crawl_delay_max_ms);
        // Someone who sets the delay to nothing (a server of one's own) means it.
        let slow = if own == 0 {
            0
        } else {
            let multiple = (self.elapsed_ms as f64 * politeness.response_factor) as i64;
            multiple.min(politeness.response_pause_max_ms)
        };
        own.max(asked).max(slow).max(0)
    }

    /// The earliest time of the next request.
    pub fn ready_ms(&self, politeness: &Politeness) -> i64 {
        let rested = self.resting_until_ms.unwrap_or(i64::MIN);
        match self.asked_ms {
            Some(asked_ms) => rested.max(asked_ms.saturating_add(self.pause_ms(politeness))),
            None => rested,
        }
    }

    /// Learns from a request that ended at `now_ms`. `seed` spreads the rests of servers that fail
    /// together.
    pub fn learn(&mut self, now_ms: i64, feedback: Feedback, politeness: &Politeness, seed: u64) {
        match feedback {
            Feedback::NotAsked => return,
            Feedback::Answered { elapsed_ms } => {
                self.elapsed_ms = elapsed_ms.max(0);
                self.resting_until_ms = None;
                let quiet = self.trouble_ms.map_or(i64::MAX, |t| now_ms.saturating_sub(t));
                if quiet >= politeness.forgive_after_ms {
                    self.strikes = 0;
                    self.trouble_ms = None;
                }
            }
            Feedback::Overloaded { retry_after_s } => {
                let wished = retry_after_s.map(|s| s.max(0).saturating_mul(1000));
                self.rest(now_ms, wished, politeness, seed);
            }
            Feedback::Unreachable => self.rest(now_ms, None, politeness, seed),
        }
        self.asked_ms = Some(now_ms);
    }

    fn rest(&mut self, now_ms: i64, wished_ms: Option<i64>, politeness: &Politeness, seed: u64) {
        self.strikes = self.strikes.saturating_add(1);
        self.trouble_ms = Some(now_ms);
        let times = 2_i64.saturating_pow(self.strikes - 1);
        let doubled = politeness.rest_first_ms.saturating_mul(times);
        let length = match wished_ms {
            Some(wished) => wished,
            None => {
                with_jitter(doubled.min(politeness.rest_max_ms), seed ^ u64::from(self.strikes))
            }
        };
        self.resting_until_ms = Some(now_ms + length.min(politeness.rest_max_ms));
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self::new()
    }
}

/// Up to a tenth longer, the same for the same seed.
fn with_jitter(length_ms: i64, seed: u64) -> i64 {
    let mixed = (seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let share = (mixed >> 40) as f64 / (1_u64 << 24) as f64;
    length_ms + (length_ms as f64 * 0.1 * share) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learnt(feedback: &[(i64, Feedback)]) -> Pace {
        let mut pace = Pace::new();
        for &(at_ms, feedback) in feedback {
            pace.learn(at_ms, feedback, &Politeness::default(), 1);
        }
        pace
    }

    #[test]
    fn the_pause_is_the_largest_of_three() {
        let politeness = Politeness::default();
        let mut pace = learnt(&[(0, Feedback::Answered { elapsed_ms: 100 })]);
        assert_eq!(pace.ready_ms(&politeness), 1_000);
        pace.crawl_delay_ms = Some(5_000);
        assert_eq!(pace.ready_ms(&politeness), 5_000);
        pace.elapsed_ms = 4_000;
        assert_eq!(pace.ready_ms(&politeness), 8_000);
        pace.elapsed_ms = 400_000;
        assert_eq!(pace.ready_ms(&politeness), 30_000);
        pace.crawl_delay_ms = Some(9_000_000);
        assert_eq!(pace.ready_ms(&politeness), 300_000);
    }

    #[test]
    fn retry_after_is_honoured_up_to_a_day() {
        let politeness = Politeness::default();
        let short = learnt(&[(1_000, Feedback::Overloaded { retry_after_s: Some(120) })]);
        assert_eq!(short.ready_ms(&politeness), 121_000);
        let long = learnt(&[(0, Feedback::Overloaded { retry_after_s: Some(i64::MAX) })]);
        assert_eq!(long.ready_ms(&politeness), 86_400_000);
    }

    #[test]
    fn rests_double_up_to_a_day_and_are_forgiven() {
        let politeness = Politeness::default();
        let mut pace = Pace::new();
        let mut last = 0;
        for strike in 1..=70_u32 {
            pace.learn(0, Feedback::Unreachable, &politeness, 7);
            let rest = pace.ready_ms(&politeness);
            let expected = (60_000_i64 << (strike - 1).min(30)).min(86_400_000);
            let most = (expected + expected / 10).min(86_400_000);
            assert!((expected..=most).contains(&rest), "{strike}: {rest}");
            assert!(rest >= last);
            last = rest;
        }
        pace.learn(1_799_999, Feedback::Answered { elapsed_ms: 1 }, &politeness, 7);
        assert_eq!(pace.strikes, 70);
        pace.learn(1_800_000, Feedback::Answered { elapsed_ms: 1 }, &politeness, 7);
        assert_eq!(pace.strikes, 0);
    }

    #[test]
    fn servers_that_fail_together_do_not_come_back_together() {
        let politeness = Politeness::default();
        let ready = |seed| {
            let mut pace = Pace::new();
            pace.learn(0, Feedback::Unreachable, &politeness, seed);
            pace.ready_ms(&politeness)
        };
        let times: std::collections::BTreeSet<i64> = (0..50).map(ready).collect();
        assert!(times.len() > 40);
    }
}
