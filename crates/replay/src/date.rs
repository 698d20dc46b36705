//! Dates as archives write them: up to fourteen digits, year first, UTC.

use std::fmt;

use nenrin_calendar::{DAY_S, MONTHS, date_of, day_of, days_in_month, write_http};

/// The last second of the four-digit years, since the epoch.
const LAST_S: i64 = 253_402_300_799;
/// The first second of the four-digit years, since the epoch.
const FIRST_S: i64 = -62_167_219_200;

/// A moment, written as fourteen digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stamp(pub(crate) i64);

/// A requested date: a period of time, from a year down to a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Period {
    /// Its first second.
    pub(crate) first_s: i64,
    /// Its last second; "as of a date" means as of the end of it.
    pub(crate) last_s: i64,
    /// Whether all fourteen digits were given.
    pub(crate) is_full: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Civil {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
}

impl Stamp {
    pub(crate) fn civil(self) -> Civil {
        let at_s = self.0.clamp(FIRST_S, LAST_S);
        let (days, rest) = (at_s.div_euclid(DAY_S), at_s.rem_euclid(DAY_S));
        let (year, month, day) = date_of(days);
        Civil { year, month, day, hour: rest / 3600, minute: rest / 60 % 60, second: rest % 60 }
    }

    /// As HTTP writes it: `Tue, 05 Mar 2024 12:00:00 GMT`.
    pub(crate) fn http(self) -> String {
        // The years 0 to 9999 have one.
        write_http(self.0.clamp(FIRST_S, LAST_S)).unwrap_or_default()
    }

    /// As people read it: `2024-03-05 12:00:00`.
    pub(crate) fn plain(self) -> String {
        let c = self.civil();
        format!(
            "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
            c.year, c.month, c.day, c.hour, c.minute, c.second
        )
    }

    /// Reads the date of an HTTP header, in the only form still in use.
    pub(crate) fn parse_http(text: &str) -> Option<Self> {
        let mut words = text.trim().split_ascii_whitespace();
        words.next()?.strip_suffix(',')?;
        let day: i64 = words.next()?.parse().ok()?;
        let month = words.next()?;
        let month = MONTHS.iter().position(|m| m.eq_ignore_ascii_case(month))? as i64 + 1;
        let year: i64 = words.next()?.parse().ok()?;
        let mut clock = words.next()?.split(':');
        let mut field = |below: i64| clock.next()?.parse().ok().filter(|n| (0..below).contains(n));
        let (hour, minute, second) = (field(24)?, field(60)?, field(61)?);
        let is_plausible = (1..=days_in_month(year, month)).contains(&day)
            && (0..=9999).contains(&year)
            && words.next() == Some("GMT");
        is_plausible.then(|| Self(seconds(Civil { year, month, day, hour, minute, second })))
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let c = self.civil();
        write!(
            f,
            "{:04}{:02}{:02}{:02}{:02}{:02}",
            c.year, c.month, c.day, c.hour, c.minute, c.second
        )
    }
}

impl Period {
    /// Reads one to fourteen digits, or seventeen, of which the last three are not used. Invalid parts (a thirteenth month) become the nearest valid
    /// ones, as other archives do, because old links contain such dates.
    pub(crate) fn parse(digits: &str) -> Option<Self> {
        if digits.len() == 17 && digits.bytes().all(|b| b.is_ascii_digit()) {
            // It leads to the address with fourteen.
            return Self::parse(&digits[..14]).map(|period| Self { is_full: false, ..period });
        }
        let is_date =
            (1..=14).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
        if !is_date {
            return None;
        }
        let bound = |fill: &str| {
            let text = format!("{digits}{}", &fill[digits.len()..]);
            let number = |from: usize, to: usize| text[from..to].parse::<i64>().unwrap_or(0);
            let (year, month) = (number(0, 4), number(4, 6).clamp(1, 12));
            seconds(Civil {
                year,
                month,
                day: number(6, 8).clamp(1, days_in_month(year, month)),
                hour: number(8, 10).min(23),
                minute: number(10, 12).min(59),
                second: number(12, 14).min(59),
            })
        };
        Some(Self {
            first_s: bound("00000000000000"),
            last_s: bound("99999999999999"),
            is_full: digits.len() == 14,
        })
    }

    pub(crate) fn contains(&self, at_s: i64) -> bool {
        (self.first_s..=self.last_s).contains(&at_s)
    }
}

pub(crate) fn seconds(c: Civil) -> i64 {
    day_of(c.year, c.month, c.day) * DAY_S + c.hour * 3600 + c.minute * 60 + c.second
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_short_date_names_a_whole_period() {
        let shown = |digits: &str| {
            let p = Period::parse(digits).unwrap();
            (Stamp(p.first_s).to_string(), Stamp(p.last_s).to_string())
        };
        for (digits, first, last) in [
            ("2024", "20240101000000", "20241231235959"),
            ("202402", "20240201000000", "20240229235959"),
            ("20240305", "20240305000000", "20240305235959"),
            ("20240305121314", "20240305121314", "20240305121314"),
            ("20241399", "20241231000000", "20241231235959"),
            ("2", "20000101000000", "29991231235959"),
        ] {
            assert_eq!(shown(digits), (first.to_owned(), last.to_owned()), "{digits}");
        }
    }

    #[test]
    fn only_digits_are_a_date() {
        for text in ["", "123456789012345", "2024-03", "２０２４", "20x4"] {
            assert_eq!(Period::parse(text), None, "{text}");
        }
    }

    #[test]
    fn http_dates_are_read_and_written() {
        let text = "Tue, 05 Mar 2024 12:13:14 GMT";
        let stamp = Stamp::parse_http(text).unwrap();
        assert_eq!(stamp.to_string(), "20240305121314");
        assert_eq!(stamp.http(), text);
        for bad in ["Tue, 05 Mar 2024", "yesterday", "Tue, 32 Mar 2024 12:13:14 GMT", ""] {
            assert_eq!(Stamp::parse_http(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_stamp_reads_back_as_itself(at_s in FIRST_S..=LAST_S) {
            let p = Period::parse(&Stamp(at_s).to_string()).unwrap();
            prop_assert_eq!((p.first_s, p.last_s), (at_s, at_s));
            prop_assert_eq!(Stamp::parse_http(&Stamp(at_s).http()), Some(Stamp(at_s)));
        }
    }
}
