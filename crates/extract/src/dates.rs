//! Dates as feeds and sitemaps write them.
//!
//! Both families are read tolerantly, because a date is a hint and a missing one costs a signal:
//! RFC 822 and its successors (`Sat, 07 Sep 2002 00:00:01 GMT`, any weekday, two-digit years, named
//! zones), and RFC 3339 with what W3C's profile and habit allow (`2024`, `2024-03`, `2024-03-01`,
//! a space for `T`, no seconds, no zone). Without a zone, UTC is assumed.

use nenrin_calendar::{DAY_S, day_of, days_in_month};

/// Reads a date into seconds since the epoch.
pub(crate) fn parse_date(text: &str) -> Option<i64> {
    let text = text.trim();
    if !text.is_ascii() || text.len() > 80 {
        return None;
    }
    rfc3339(text).or_else(|| rfc822(text))
}

#[derive(Default)]
struct Moment {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    offset_s: i64,
}

impl Moment {
    fn seconds(&self) -> Option<i64> {
        let sound = (1900..=9999).contains(&self.year)
            && (1..=12).contains(&self.month)
            && (1..=days_in_month(self.year, self.month)).contains(&self.day)
            && (0..=24).contains(&self.hour)
            && (0..=59).contains(&self.minute)
            && (0..=60).contains(&self.second)
            && self.offset_s.abs() < 24 * 3600;
        let days = day_of(self.year, self.month, self.day);
        let of_day = self.hour * 3600 + self.minute * 60 + self.second;
        sound.then(|| days * DAY_S + of_day - self.offset_s)
    }
}

fn rfc3339(text: &str) -> Option<i64> {
    let mut moment = Moment { month: 1, day: 1, ..Moment::default() };
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], text[at + 1..].trim_start()),
        None => (text, ""),
    };
    let mut parts = date.split('-');
    moment.year = number(parts.next().filter(|year| year.len() == 4)?)?;
    if let Some(month) = parts.next() {
        moment.month = number(month)?;
    }
    if let Some(day) = parts.next() {
        moment.day = number(day)?;
    }
    if parts.next().is_some() {
        return None;
    }
    if !time.is_empty() {
        let zone_at = time.find(['Z', 'z', '+', '-', ' ']).unwrap_or(time.len());
        clock(&time[..zone_at], &mut moment)?;
        moment.offset_s = zone(&time[zone_at..])?;
    }
    moment.seconds()
}

fn rfc822(text: &str) -> Option<i64> {
    // The weekday adds nothing, and is often wrong.
    let text = text.split_once(',').map_or(text, |(_, rest)| rest);
    let words: Vec<&str> =
        text.split([' ', '-', '\t']).filter(|word| !word.is_empty()).take(8).collect();
    let mut moment = Moment::default();
    let at = words.iter().position(|word| month(word).is_some())?;
    moment.month = month(words[at])?;
    moment.day = number(at.checked_sub(1).and_then(|day| words.get(day))?)?;
    moment.year = full_year(words.get(at + 1)?)?;
    if let Some(time) = words.get(at + 2) {
        clock(time, &mut moment)?;
    }
    // The zone is read from the text itself: splitting removed the sign of "-0500".
    if let Some(time) = words.get(at + 2) {
        let behind = text.find(time)? + time.len();
        moment.offset_s = zone(&text[behind..])?;
    }
    moment.seconds()
}

fn full_year(word: &str) -> Option<i64> {
    let year = number(word)?;
    Some(match (word.len(), year) {
        (2, 0..=69) => 2000 + year,
        (2, _) => 1900 + year,
        _ => year,
    })
}

fn month(word: &str) -> Option<i64> {
    const NAMES: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let start = word.get(..3)?.to_ascii_lowercase();
    let at = NAMES.iter().position(|name| *name == start)?;
    i64::try_from(at + 1).ok()
}

/// `10:20:30.5` or `10:20`.
fn clock(text: &str, moment: &mut Moment) -> Option<()> {
    let mut parts = text.split(':');
    moment.hour = number(parts.next()?)?;
    moment.minute = number(parts.next()?)?;
    if let Some(second) = parts.next() {
        moment.second = number(second.split(['.', ',']).next()?)?;
    }
    parts.next().is_none().then_some(())
}

/// `Z`, `+09:00`, `-0500`, `GMT`, `EST` or nothing. An unknown name counts as UTC.
fn zone(text: &str) -> Option<i64> {
    let text = text.trim();
    let sign = match text.as_bytes().first() {
        Some(b'+') => 1,
        Some(b'-') => -1,
        _ => return Some(named_zone(text)),
    };
    let digits: String = text[1..].chars().filter(char::is_ascii_digit).take(4).collect();
    let (hours, minutes) = match digits.len() {
        4 => (number(&digits[..2])?, number(&digits[2..])?),
        1 | 2 => (number(&digits)?, 0),
        _ => return None,
    };
    Some(sign * (hours * 3600 + minutes * 60))
}

fn named_zone(name: &str) -> i64 {
    let hours = match name.to_ascii_uppercase().as_str() {
        "JST" | "KST" => 9,
        "CET" | "MEZ" | "BST" => 1,
        "CEST" | "MESZ" | "EET" => 2,
        "EDT" => -4,
        "EST" | "CDT" => -5,
        "CST" | "MDT" => -6,
        "MST" | "PDT" => -7,
        "PST" => -8,
        _ => 0,
    };
    hours * 3600
}

fn number(text: &str) -> Option<i64> {
    let digits = (1..=4).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn dates_of_the_wild_are_read() {
        for (text, expected) in [
            ("1970-01-01", 0),
            ("2024", 1_704_067_200),
            ("2024-03", 1_709_251_200),
            ("2024-03-01", 1_709_251_200),
            ("2024-02-29T12:30:45Z", 1_709_209_845),
            ("2024-02-29t12:30:45.123456+09:00", 1_709_177_445),
            ("2024-02-29 12:30:45 -0500", 1_709_227_845),
            ("2024-02-29T12:30", 1_709_209_800),
            ("Thu, 29 Feb 2024 12:30:45 GMT", 1_709_209_845),
            ("Mon, 29 Feb 2024 12:30:45 +0900", 1_709_177_445),
            ("29 Feb 24 12:30 EST", 1_709_227_800),
            ("Thursday, 29-Feb-24 12:30:45 GMT", 1_709_209_845),
            ("29 February 2024", 1_709_164_800),
            ("Sat, 7 Sep 2002 0:00:01 UT", 1_031_356_801),
            ("1999-12-31T23:59:60Z", 946_684_800),
        ] {
            assert_eq!(parse_date(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_text_that_is_not_a_date_gives_none() {
        for text in [
            "",
            "yesterday",
            "2024-13-01",
            "2023-02-29",
            "2024-03-01T25:00:00Z",
            "29 Feb",
            "0",
            "12345678",
            "0000-00-00",
            "2024-1-1-1",
            "令和6年",
            "Feb",
            "1 Jan 2024 aa:bb",
        ] {
            assert_eq!(parse_date(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "\\PC{0,40}") {
            let _ = parse_date(&text);
        }

        #[test]
        fn any_likely_text_is_read(text in "[0-9A-Za-z:+, -]{0,40}") {
            let _ = parse_date(&text);
        }

        #[test]
        fn days_count_up_by_one(year in 1900_i64..2400, month in 1_i64..=12) {
            let (next_year, next_month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
            let days = day_of(next_year, next_month, 1) - day_of(year, month, 1);
            prop_assert_eq!(days, days_in_month(year, month));
        }
    }
}
