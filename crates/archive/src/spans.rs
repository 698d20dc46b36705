//! Durations, sizes and dates as people write them.

use std::{fmt, str::FromStr, time::Duration};

use jiff::{Timestamp, civil, tz::TimeZone};
use serde::{Deserialize, Serialize};

/// A duration written `200ms`, `90s`, `15m`, `12h`, `7d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Span(pub Duration);

impl Span {
    /// Whole milliseconds.
    pub fn as_ms(self) -> i64 {
        i64::try_from(self.0.as_millis()).unwrap_or(i64::MAX)
    }

    /// Whole seconds.
    pub fn as_s(self) -> i64 {
        self.as_ms() / 1000
    }

    /// That many seconds.
    pub const fn secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }
}

impl FromStr for Span {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let ms = nenrin_calendar::parse_duration_ms(text);
        ms.map(|ms| Self(Duration::from_millis(ms))).ok_or_else(|| {
            format!("`{text}` is not a duration up to 100 years; write 200ms, 90s, 15m, 12h or 7d")
        })
    }
}

/// How far back: a duration before now, or the date to begin at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// So long before now.
    Ago(Span),
    /// From this moment on, in seconds since the epoch.
    From(i64),
}

impl Since {
    /// The first moment.
    pub fn begin_s(self, now_s: i64) -> i64 {
        match self {
            Self::Ago(span) => now_s.saturating_sub(span.as_s()),
            Self::From(from_s) => from_s,
        }
    }
}

impl FromStr for Since {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match (text.parse(), parse_date(text, Edge::First)) {
            (Ok(span), _) => Ok(Self::Ago(span)),
            (_, Ok(from_s)) => Ok(Self::From(from_s)),
            _ => Err(format!(
                "`{text}` is neither a duration nor a date; write 12h, 7d, 52w or 2024-03-01"
            )),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&nenrin_calendar::write_duration_ms(self.0.as_millis() as u64))
    }
}

impl TryFrom<String> for Span {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Span> for String {
    fn from(span: Span) -> String {
        span.to_string()
    }
}

/// A count with its noun: `1 pack`, `2 packs`.
pub fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Which end of an unfinished date is meant: `2024` begins on 1 January and ends on 31 December.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// The first second that the text can mean.
    First,
    /// The last second that the text can mean.
    Last,
}

/// Reads a date: RFC 3339, `2024-03-01`, `2024-03`, or 1 to 14 digits. UTC unless it says otherwise.
pub fn parse_date(text: &str, edge: Edge) -> Result<i64, String> {
    let text = text.trim();
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        return Ok(timestamp.as_second());
    }
    let digits: String = match text.parse::<civil::Date>() {
        Ok(_) if text.contains('-') => text.chars().filter(char::is_ascii_digit).collect(),
        _ => match text.split_once('-') {
            Some((year, month)) if year.len() == 4 && month.len() == 2 => format!("{year}{month}"),
            _ => text.to_owned(),
        },
    };
    let wrong = || {
        format!(
            "`{text}` is not a date; write 2024-03-01, 2024-03, 2024-03-01T12:00:00Z or \
             20240301120000"
        )
    };
    if digits.is_empty() || digits.len() > 14 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong());
    }
    from_digits(&digits, edge).ok_or_else(wrong)
}

/// The missing digits are as small or as large as they can be; a part that is cut in the middle is
/// brought back into its range.
fn from_digits(digits: &str, edge: Edge) -> Option<i64> {
    let filler = if edge == Edge::First { "0" } else { "9" };
    let padded = format!("{digits}{}", filler.repeat(14 - digits.len()));
    let part = |range: std::ops::Range<usize>, least: i16, most: i16| -> Option<i8> {
        let value: i16 = padded[range.clone()].parse().ok()?;
        let complete = digits.len() >= range.end;
        i8::try_from(if complete { value } else { value.clamp(least, most) }).ok()
    };
    let year: i16 = padded[..4].parse().ok()?;
    let month = part(4..6, 1, 12)?;
    let days = civil::Date::new(year, month, 1).ok()?.days_in_month();
    let day = part(6..8, 1, i16::from(days))?;
    let (hour, minute, second) = (part(8..10, 0, 23)?, part(10..12, 0, 59)?, part(12..14, 0, 59)?);
    civil::DateTime::new(year, month, day, hour, minute, second, 0)
        .ok()?
        .to_zoned(TimeZone::UTC)
        .ok()
        .map(|zoned| zoned.timestamp().as_second())
}

/// `2024-03-01 12:00:00`, UTC.
pub fn readable_date(at_s: i64) -> String {
    written(at_s, "%Y-%m-%d %H:%M:%S")
}

/// `2024-03-01T12:00:00Z`.
pub fn rfc3339(at_s: i64) -> String {
    written(at_s, "%Y-%m-%dT%H:%M:%SZ")
}

/// `20240301120000`.
pub fn digits14(at_s: i64) -> String {
    written(at_s, "%Y%m%d%H%M%S")
}

fn written(at_s: i64, format: &str) -> String {
    Timestamp::from_second(at_s)
        .map_or_else(|_| at_s.to_string(), |t| t.strftime(format).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_back_is_a_duration_or_a_date() {
        let begin = |text: &str| text.parse().map(|since: Since| since.begin_s(1_704_153_600));
        assert_eq!(begin("1d"), Ok(1_704_067_200));
        assert_eq!(begin("2024-01-01"), Ok(1_704_067_200));
        assert!(begin("yesterday").is_err_and(|why| why.contains("neither a duration nor a date")));
    }

    #[test]
    fn durations_are_read_and_written() {
        for text in ["200ms", "90s", "15m", "12h", "7d", "0s"] {
            assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
        }
        assert_eq!("120s".parse::<Span>().unwrap().to_string(), "2m");
        for text in ["", "5", "x", "5y", "-1s", "99999999999d", "１s"] {
            assert!(text.parse::<Span>().unwrap_err().contains(text), "{text}");
        }
    }

    #[test]
    fn unfinished_dates_mean_their_first_or_last_second() {
        for (text, first, last) in [
            ("2024", "2024-01-01 00:00:00", "2024-12-31 23:59:59"),
            ("202402", "2024-02-01 00:00:00", "2024-02-29 23:59:59"),
            ("2024-02", "2024-02-01 00:00:00", "2024-02-29 23:59:59"),
            ("20241", "2024-10-01 00:00:00", "2024-12-31 23:59:59"),
            ("2024-03-01", "2024-03-01 00:00:00", "2024-03-01 23:59:59"),
            ("2024030112", "2024-03-01 12:00:00", "2024-03-01 12:59:59"),
            ("20240301120507", "2024-03-01 12:05:07", "2024-03-01 12:05:07"),
            ("2024-03-01T12:05:07Z", "2024-03-01 12:05:07", "2024-03-01 12:05:07"),
            ("2024-03-01T12:05:07+09:00", "2024-03-01 03:05:07", "2024-03-01 03:05:07"),
            ("2", "2000-01-01 00:00:00", "2999-12-31 23:59:59"),
        ] {
            assert_eq!(readable_date(parse_date(text, Edge::First).unwrap()), first, "{text}");
            assert_eq!(readable_date(parse_date(text, Edge::Last).unwrap()), last, "{text}");
        }
        for text in [
            "",
            "yesterday",
            "20241301",
            "20240230",
            "2024-13",
            "2024-2",
            "202403011260",
            "123456789012345",
        ] {
            assert!(parse_date(text, Edge::Last).is_err(), "{text}");
        }
    }
}
