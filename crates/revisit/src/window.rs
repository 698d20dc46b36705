//! The hours and days in which a site may be asked.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use jiff::{
    Timestamp, ToSpan, Zoned,
    civil::{Date, Time, Weekday},
    tz::{TimeZone, TimeZoneDatabase},
};
use serde::{Deserialize, Serialize};

use crate::RevisitError;

const NAMES: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const ALL_DAYS: u8 = 0x7f;
const MINUTES: u16 = 24 * 60;

/// The zones that the program brings along, so that every machine decides the same.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// When a site may be collected: `mon-fri 22:00-06:00 Asia/Tokyo`.
///
/// Days, hours and the time zone may each be left out: every day, the whole day, UTC. Hours that
/// end before they begin last until the next morning and belong to the day they begin on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CollectingWindow {
    /// One bit per day from Monday.
    days: u8,
    /// Minutes since midnight; the same twice is the whole day.
    from_min: u16,
    to_min: u16,
    zone: String,
}

impl CollectingWindow {
    /// Whether it is open.
    pub fn is_open(&self, at_s: i64) -> bool {
        let Some(local) = self.local(at_s) else { return true };
        let minute = local.hour() as u16 * 60 + local.minute() as u16;
        let today = self.has(local.weekday());
        let yesterday = self.has(local.weekday().previous());
        match self.from_min.cmp(&self.to_min) {
            std::cmp::Ordering::Less => today && (self.from_min..self.to_min).contains(&minute),
            std::cmp::Ordering::Equal => today,
            std::cmp::Ordering::Greater => {
                (today && minute >= self.from_min) || (yesterday && minute < self.to_min)
            }
        }
    }

    /// When it opens or closes next after `at_s`; at least hourly, so that a caller may simply ask
    /// again then.
    pub fn next_turn_s(&self, at_s: i64) -> i64 {
        let hour_s = at_s + 3600;
        let Some(local) = self.local(at_s) else { return hour_s };
        let turns = [0, 1].into_iter().flat_map(|day| {
            let date = local.date().saturating_add(day.days());
            [self.from_min, self.to_min, 0].map(|minute| self.moment_s(date, minute))
        });
        turns.flatten().filter(|&turn_s| turn_s > at_s).min().map_or(hour_s, |s| s.min(hour_s))
    }

    fn moment_s(&self, date: Date, minute: u16) -> Option<i64> {
        let time = Time::new((minute / 60 % 24) as i8, (minute % 60) as i8, 0, 0).ok()?;
        let zoned = self.time_zone()?.to_zoned(date.to_datetime(time)).ok()?;
        Some(zoned.timestamp().as_second())
    }

    fn local(&self, at_s: i64) -> Option<Zoned> {
        Some(Timestamp::from_second(at_s).ok()?.to_zoned(self.time_zone()?))
    }

    fn time_zone(&self) -> Option<TimeZone> {
        ZONES.get(&self.zone).ok()
    }

    fn has(&self, day: Weekday) -> bool {
        self.days & (1 << day.to_monday_zero_offset()) != 0
    }
}

/// Whether one of the windows is open; without any, always.
pub fn is_open(windows: &[CollectingWindow], at_s: i64) -> bool {
    windows.is_empty() || windows.iter().any(|window| window.is_open(at_s))
}

/// When to look again whether the windows are open.
pub fn next_turn_s(windows: &[CollectingWindow], at_s: i64) -> Option<i64> {
    windows.iter().map(|window| window.next_turn_s(at_s)).min()
}

impl FromStr for CollectingWindow {
    type Err = RevisitError;

    fn from_str(text: &str) -> Result<Self, RevisitError> {
        let bad = |problem: String| RevisitError::BadWindow { text: text.to_owned(), problem };
        let mut window = Self { days: ALL_DAYS, from_min: 0, to_min: 0, zone: "UTC".to_owned() };
        let mut said = false;
        for word in text.split_whitespace() {
            said = true;
            if let Some(days) = days(word) {
                window.days = days;
            } else if let Some((from_min, to_min)) = hours(word) {
                (window.from_min, window.to_min) = (from_min, to_min);
            } else if let Ok(zone) = ZONES.get(word) {
                window.zone = zone.iana_name().unwrap_or(word).to_owned();
            } else {
                return Err(bad(format!("'{word}' is neither days, hours nor a time zone")));
            }
        }
        if said { Ok(window) } else { Err(bad("it is empty".to_owned())) }
    }
}

/// `mon-fri`, `sat,sun`, `daily`.
fn days(word: &str) -> Option<u8> {
    let number = |name: &str| NAMES.iter().position(|known| *known == name);
    let word = word.to_ascii_lowercase();
    if word == "daily" {
        return Some(ALL_DAYS);
    }
    let mut days = 0;
    for part in word.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        let length = (last + 7 - first) % 7;
        (0..=length).for_each(|step| days |= 1 << ((first + step) % 7));
    }
    Some(days)
}

/// `22:00-06:00`, `0:00-24:00`.
fn hours(word: &str) -> Option<(u16, u16)> {
    let minute = |text: &str| -> Option<u16> {
        let (hours, minutes) = text.split_once(':')?;
        let (hours, minutes): (u16, u16) = (hours.parse().ok()?, minutes.parse().ok()?);
        let all = hours.checked_mul(60)?.checked_add(minutes)?;
        (minutes < 60 && all <= MINUTES).then_some(all)
    };
    let (from, to) = word.split_once('-')?;
    let (from_min, to_min) = (minute(from)?, minute(to)?);
    Some(if from_min == to_min % MINUTES { (0, 0) } else { (from_min % MINUTES, to_min) })
}

impl fmt::Display for CollectingWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.days == ALL_DAYS {
            f.write_str("daily")?;
        } else {
            let named = (0..7).filter(|day| self.days & (1 << day) != 0).map(|day| NAMES[day]);
            f.write_str(&named.collect::<Vec<_>>().join(","))?;
        }
        let clock = |minute: u16| format!("{:02}:{:02}", minute / 60, minute % 60);
        let to_min = if self.from_min == self.to_min { MINUTES } else { self.to_min };
        write!(f, " {}-{} {}", clock(self.from_min), clock(to_min), self.zone)
    }
}

impl TryFrom<String> for CollectingWindow {
    type Error = RevisitError;

    fn try_from(text: String) -> Result<Self, RevisitError> {
        text.parse()
    }
}

impl From<CollectingWindow> for String {
    fn from(window: CollectingWindow) -> Self {
        window.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_second()
    }

    fn window(text: &str) -> CollectingWindow {
        text.parse().unwrap()
    }

    #[test]
    fn a_night_belongs_to_the_day_it_begins_on() {
        let nights = window("fri 22:00-06:00 Asia/Tokyo");
        // Friday 1 March 2024, 22:00 in Tokyo is 13:00 in UTC.
        for (moment, open) in [
            ("2024-03-01T12:59:00Z", false),
            ("2024-03-01T13:00:00Z", true),
            ("2024-03-01T20:59:59Z", true),
            ("2024-03-01T21:00:00Z", false),
            ("2024-03-02T14:00:00Z", false),
        ] {
            assert_eq!(nights.is_open(at(moment)), open, "{moment}");
        }
        assert_eq!(nights.next_turn_s(at("2024-03-01T12:30:00Z")), at("2024-03-01T13:00:00Z"));
    }

    #[test]
    fn summer_time_moves_the_window_with_the_clocks_on_the_wall() {
        let morning = window("03:00-05:00 Europe/Berlin");
        assert!(morning.is_open(at("2024-01-10T02:30:00Z")));
        assert!(!morning.is_open(at("2024-07-10T03:30:00Z")));
        assert!(morning.is_open(at("2024-07-10T01:30:00Z")));
    }

    #[test]
    fn windows_read_and_write_back() {
        for text in ["daily 00:00-24:00 UTC", "mon,tue,sun 22:00-06:00 Asia/Tokyo"] {
            assert_eq!(window(text).to_string(), text);
        }
        assert_eq!(window("sun-tue").to_string(), "mon,tue,sun 00:00-24:00 UTC");
        assert_eq!(window("7:30-24:00").to_string(), "daily 07:30-24:00 UTC");
        for text in ["", "someday", "25:00-26:00", "mon-xyz", "10:00", "Mars/Olympus"] {
            assert!(text.parse::<CollectingWindow>().is_err(), "{text}");
        }
    }
}
