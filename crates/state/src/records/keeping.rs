//! How much of a site is kept: a quota, and a rule by which old versions are thinned out.

use std::fmt;
use std::str::FromStr;

use nenrin_calendar::{DAY_S, date_of, day_of};
use serde::{Deserialize, Serialize};

use crate::{PageId, SiteId, VersionId};

/// Thinnings in one rule; more than day, week, month and year make no sense.
const MAX_THINNINGS: usize = 8;

/// How much of a site is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Keeping {
    /// Collecting of the site pauses while its versions take this much in the packs, or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota_bytes: Option<u64>,
    /// Which versions may go; none without a rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prune: Option<PruneRule>,
}

impl Keeping {
    /// Whether everything is kept, without a limit.
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }
}

/// Keeps every version for a while, then one per day, week or month. Written
/// `30d,day:90d,month`: all for 30 days, then one per day until 90 days old, then one per month.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PruneRule {
    /// Versions younger than this all stay.
    pub keep_all_s: i64,
    /// What older ones are thinned out to, youngest first.
    pub then: Vec<Thinning>,
}

/// One version is kept of each day, week or month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thinning {
    /// Of what.
    pub one_per: OnePer,
    /// Until versions are this old; for ever in the last one.
    pub until_s: Option<i64>,
}

/// A stretch of the calendar, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnePer {
    /// A day.
    Day,
    /// A week, from Monday on.
    Week,
    /// A month.
    Month,
}

impl OnePer {
    const ALL: [Self; 3] = [Self::Day, Self::Week, Self::Month];

    fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    /// The number of the stretch that holds a time, and when it ends.
    fn stretch(self, at_s: i64) -> (i64, i64) {
        let day = at_s.div_euclid(DAY_S);
        let (number, end_day) = match self {
            Self::Day => (day, day + 1),
            // The first of January 1970 was a Thursday.
            Self::Week => ((day + 3).div_euclid(7), (day + 3).div_euclid(7) * 7 + 4),
            Self::Month => {
                let month = month_of(day);
                (month, first_day_of(month + 1))
            }
        };
        (number, end_day.saturating_mul(DAY_S))
    }
}

/// Months since January of the year 0.
fn month_of(day: i64) -> i64 {
    let (year, month, _) = date_of(day);
    year * 12 + month - 1
}

/// The day on which a month begins.
fn first_day_of(month: i64) -> i64 {
    day_of(month.div_euclid(12), month.rem_euclid(12) + 1, 1)
}

impl PruneRule {
    /// Which of a page's versions go, given when each was received, oldest first. The first and the
    /// newest stay whatever the rule says; of a stretch of the calendar the last version stays, and
    /// all do until the whole stretch is old enough.
    pub fn goes(&self, received_s: &[i64], now_s: i64) -> Vec<bool> {
        let stretch = |at_s: i64| {
            let age_s = now_s.saturating_sub(at_s);
            let fits = |then: &Thinning| then.until_s.is_none_or(|until_s| age_s < until_s);
            let place = self.then.iter().position(fits).or(self.then.len().checked_sub(1))?;
            let (number, end_s) = self.then[place].one_per.stretch(at_s);
            let is_old = now_s.saturating_sub(end_s) >= self.keep_all_s;
            is_old.then_some((place, number))
        };
        let last = received_s.len().saturating_sub(1);
        received_s
            .iter()
            .enumerate()
            .map(|(place, &at_s)| {
                let of = stretch(at_s);
                let is_end = place == 0 || place == last;
                !is_end && of.is_some() && of == stretch(received_s[place + 1])
            })
            .collect()
    }
}

impl fmt::Display for PruneRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Age(self.keep_all_s))?;
        self.then.iter().try_for_each(|then| write!(f, ",{then}"))
    }
}

impl fmt::Display for Thinning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.one_per.as_str())?;
        self.until_s.map_or(Ok(()), |until_s| write!(f, ":{}", Age(until_s)))
    }
}

/// Whole days where they are, seconds otherwise.
struct Age(i64);

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 % DAY_S {
            0 => write!(f, "{}d", self.0 / DAY_S),
            _ => write!(f, "{}s", self.0),
        }
    }
}

fn age_s(text: &str) -> Result<i64, String> {
    let age_s = nenrin_calendar::parse_duration(text);
    age_s.ok_or_else(|| format!("`{text}` is not an age; write one like 30d or 12h"))
}

impl FromStr for Thinning {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (word, until) = text.split_once(':').map_or((text, None), |(a, b)| (a, Some(b)));
        let word = word.strip_prefix("one-per-").unwrap_or(word);
        let one_per = OnePer::ALL
            .into_iter()
            .find(|one_per| one_per.as_str() == word)
            .ok_or_else(|| format!("`{text}`: write one-per-day, one-per-week or one-per-month"))?;
        Ok(Self { one_per, until_s: until.map(age_s).transpose()? })
    }
}

impl FromStr for PruneRule {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(',').map(str::trim);
        let keep_all_s = age_s(parts.next().unwrap_or_default())?;
        let then: Vec<Thinning> = parts.map(str::parse).collect::<Result<_, _>>()?;
        let ages: Vec<i64> = then.iter().map(|then| then.until_s.unwrap_or(i64::MAX)).collect();
        let is_in_order = ages.windows(2).all(|pair| pair[0] < pair[1]);
        match then.len() {
            0 => Err(format!(
                "`{text}` does not say what is kept afterwards; add for example one-per-month"
            )),
            n if n > MAX_THINNINGS => Err(format!("`{text}` has more than {MAX_THINNINGS} steps")),
            _ if !is_in_order => Err(format!(
                "`{text}`: every step but the last needs an age until which it applies, for example one-per-day:90d, each older than the one before"
            )),
            _ => Ok(Self { keep_all_s, then }),
        }
    }
}

impl TryFrom<String> for PruneRule {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<PruneRule> for String {
    fn from(rule: PruneRule) -> String {
        rule.to_string()
    }
}

/// A version of one of a site's pages, as far as a prune rule cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptVersion {
    /// The page.
    pub page: PageId,
    /// When it was received.
    pub at_s: i64,
    /// The store's number.
    pub version: VersionId,
    /// Length of its body.
    pub bytes: u64,
    /// Whether it is the one that the page's next visit is compared with.
    pub is_current: bool,
}

/// A pruning as it was done; what it says stays when the versions are gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PruneRow {
    /// The site.
    pub site: SiteId,
    /// When it was pruned, in seconds since the epoch.
    pub at_s: i64,
    /// By which rule.
    pub rule: String,
    /// Versions that went.
    pub versions: u64,
    /// Their bodies, as received.
    pub raw_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(rule: &str, now_day: i64, times_s: &[i64]) -> Vec<i64> {
        let rule: PruneRule = rule.parse().unwrap();
        let goes = rule.goes(times_s, now_day * DAY_S);
        times_s.iter().zip(goes).filter(|(_, goes)| !goes).map(|(at_s, _)| *at_s).collect()
    }

    /// So many versions a day from a day on, for so many days.
    fn versions(from_day: i64, days: i64, a_day: i64) -> Vec<i64> {
        (0..days * a_day).map(|n| from_day * DAY_S + n * DAY_S / a_day).collect()
    }

    #[test]
    fn months_and_weeks_begin_where_the_calendar_says() {
        // 2024-02-29 is day 19782, a Thursday; 2024-03-01 begins at 1709251200.
        assert_eq!(OnePer::Month.stretch(19_782 * DAY_S).1, 1_709_251_200);
        assert_eq!(OnePer::Month.stretch(1_709_251_200).1, 1_711_929_600);
        assert_eq!(OnePer::Week.stretch(19_782 * DAY_S).1, 19_786 * DAY_S, "until Monday");
        for day in -200_000..200_000 {
            let (number, end_s) = OnePer::Month.stretch(day * DAY_S);
            let days_left = end_s / DAY_S - day;
            assert!((1..=31).contains(&days_left), "day {day}");
            assert_eq!(OnePer::Month.stretch(end_s).0, number + 1);
            assert_eq!(OnePer::Month.stretch(end_s - 1).0, number);
        }
    }

    #[test]
    fn young_versions_all_stay_and_old_ones_one_per_day() {
        let times = versions(0, 10, 4);
        let kept = kept("5d,day", 10, &times);
        // Days 0 to 4 are wholly older than five days: the last of each, and the very first version.
        let first_days: Vec<i64> = kept.iter().copied().filter(|at_s| *at_s < 5 * DAY_S).collect();
        assert_eq!(first_days.len(), 6);
        assert_eq!(first_days[0], 0);
        assert!(first_days[1..].iter().all(|at_s| at_s % DAY_S == DAY_S * 3 / 4));
        assert_eq!(kept.len(), 6 + 5 * 4);
    }

    #[test]
    fn first_and_newest_stay_however_old() {
        assert_eq!(kept("0d,month", 40_000, &[5, 6, 7]), [5, 7]);
        assert_eq!(kept("0d,month", 40_000, &[5]), [5]);
        assert_eq!(kept("0d,month", 40_000, &[]), Vec::<i64>::new());
    }

    #[test]
    fn steps_hold_until_their_age() {
        let times = versions(0, 400, 2);
        let kept = kept("30d,day:100d,month", 400, &times);
        let of = |from: i64, to: i64| {
            kept.iter().filter(|at_s| (from * DAY_S..to * DAY_S).contains(at_s)).count()
        };
        assert_eq!(of(371, 400), 58, "all");
        assert_eq!(of(310, 360), 50, "one a day");
        assert!((10..=12).contains(&of(0, 290)), "one a month");
    }

    #[test]
    fn pruning_twice_takes_nothing_more() {
        let rule: PruneRule = "10d,day:40d,week:90d,month".parse().unwrap();
        let mut times = versions(3, 300, 5);
        let now_s = 301 * DAY_S;
        let goes = rule.goes(&times, now_s);
        let mut goes_iter = goes.iter();
        times.retain(|_| !goes_iter.next().unwrap());
        assert!(times.len() < 200);
        assert!(rule.goes(&times, now_s).iter().all(|goes| !goes));
    }

    #[test]
    fn rules_read_as_they_are_written_and_wrong_ones_are_refused() {
        for text in ["30d,day", "0d,month", "7d,day:30d,week:365d,month", "90s,week"] {
            assert_eq!(text.parse::<PruneRule>().unwrap().to_string(), text);
        }
        assert_eq!("1d,one-per-week".parse::<PruneRule>().unwrap().to_string(), "1d,week");
        for text in ["", "30d", "x,day", "30d,year", "30d,day,month", "30d,day:9d,week:3d,month"] {
            assert!(text.parse::<PruneRule>().is_err(), "{text}");
        }
    }
}
