//! Days of the Gregorian calendar, counted from 1 January 1970, dates as HTTP writes them, and
//! durations. All times are UTC.
//!
//! Read in this order:
//! - [`day_of`] and [`date_of`]: from a date to a day and back;
//! - [`write_http`] and [`parse_http`]: the one form of a date that HTTP headers still use;
//! - [`parse_duration`] and [`write_duration`]: durations as people write them.
//!
//! Reading the other forms (feeds, WARC, ARC, what people type) is for the crates that meet them.

mod duration;

pub use duration::{
    MAX_DURATION_MS, parse_duration, parse_duration_ms, write_duration, write_duration_ms,
};

/// Seconds of a day.
pub const DAY_S: i64 = 86_400;

/// The months as HTTP writes them.
pub const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The first day of 1970 was a Thursday.
const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];

/// The day of a year, month (from 1) and day. Days beyond the end of a month lead into the next.
///
/// Years begin in March here, so that a leap day is the last of its year; eras of 400 years are
/// alike.
pub fn day_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Year, month (from 1) and day of a day.
pub fn date_of(day: i64) -> (i64, i64, i64) {
    let shifted = day.saturating_add(719_468);
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let (day, month) = (day_of_year - (153 * from_march + 2) / 5 + 1, (from_march + 2) % 12 + 1);
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// The number of days of a month (from 1).
pub fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Hour, minute and second of a time.
pub fn clock_of(at_s: i64) -> (i64, i64, i64) {
    let second = at_s.rem_euclid(DAY_S);
    (second / 3_600, second / 60 % 60, second % 60)
}

/// A time as HTTP writes it, `Sun, 06 Nov 1994 08:49:37 GMT`; `None` outside the years 0 to 9999.
pub fn write_http(at_s: i64) -> Option<String> {
    let day = at_s.div_euclid(DAY_S);
    let (year, month, of_month) = date_of(day);
    if !(0..=9999).contains(&year) {
        return None;
    }
    let (hour, minute, second) = clock_of(at_s);
    let weekday = WEEKDAYS[day.rem_euclid(7) as usize];
    let month = MONTHS[(month - 1) as usize];
    Some(format!(
        "{weekday}, {of_month:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT"
    ))
}

/// The time of a text that [`write_http`] writes exactly so.
pub fn parse_http(text: &str) -> Option<i64> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let month = MONTHS.iter().position(|month| text.get(8..11) == Some(month))? as i64 + 1;
    let day = day_of(number(12, 16)?, month, number(5, 7)?);
    let at_s = day * DAY_S + number(17, 19)? * 3_600 + number(20, 22)? * 60 + number(23, 25)?;
    (write_http(at_s).as_deref() == Some(text)).then_some(at_s)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (date, day) in [
            ((1970, 1, 1), 0),
            ((1969, 12, 31), -1),
            ((2000, 2, 29), 11_016),
            ((2024, 3, 1), 19_783),
            ((0, 1, 1), -719_528),
        ] {
            let (year, month, of_month) = date;
            assert_eq!((day_of(year, month, of_month), date_of(day)), (day, date));
        }
        assert_eq!(day_of(2023, 2, 29), day_of(2023, 3, 1));
        assert_eq!([1900, 2000, 2023, 2024].map(|year| days_in_month(year, 2)), [28, 29, 28, 29]);
    }

    #[test]
    fn the_example_of_the_rfc_is_understood() {
        assert_eq!(parse_http("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(parse_http("Thu, 29 Feb 2024 23:59:59 GMT"), Some(1_709_251_199));
    }

    #[test]
    fn what_would_be_written_differently_is_not_a_date() {
        for odd in [
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sun, +6 Nov 1994 08:49:37 GMT",
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 GMT ",
            "日曜日",
            "0",
            "",
        ] {
            assert_eq!(parse_http(odd), None, "{odd}");
        }
        assert_eq!((write_http(i64::MAX), write_http(i64::MIN)), (None, None));
    }

    proptest! {
        #[test]
        fn days_and_dates_are_inverse(day in -1_000_000_i64..10_000_000) {
            let (year, month, of_month) = date_of(day);
            prop_assert_eq!(day_of(year, month, of_month), day);
            prop_assert!((1..=days_in_month(year, month)).contains(&of_month));
        }

        #[test]
        fn writing_and_parsing_are_inverse(at_s in -60_000_000_000_i64..250_000_000_000) {
            prop_assert_eq!(write_http(at_s).and_then(|text| parse_http(&text)), Some(at_s));
        }

        #[test]
        fn no_text_is_too_strange(text in "\\PC{0,40}") {
            let _ = parse_http(&text);
        }
    }
}
