//! Dates as WARC, ARC and CDXJ write them, in seconds since the epoch, UTC.

use nenrin_calendar::{DAY_S, date_of, day_of};

/// `2024-03-01T12:00:00Z`.
pub fn iso_date(at_s: i64) -> String {
    let (year, month, day, second) = civil(at_s);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// `20240301120000`.
pub fn date_digits(at_s: i64) -> String {
    let (year, month, day, second) = civil(at_s);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}")
}

/// Reads a WARC-Date (`2024-03-01T12:00:00.123456Z` and shorter forms) or the digits of ARC and
/// CDXJ (4 to 17). Missing parts take their smallest value; fractions of a second are dropped.
pub fn parse_date(text: &str) -> Option<i64> {
    let text = text.trim();
    let is_form = |byte: u8| byte.is_ascii_digit() || b"-:T. Zz+".contains(&byte);
    if !text.bytes().all(is_form) || text.contains('+') {
        return None;
    }
    let whole = text.split('.').next().unwrap_or_default();
    let digits: Vec<i64> =
        whole.bytes().filter(u8::is_ascii_digit).map(|digit| i64::from(digit - b'0')).collect();
    if !(4..=17).contains(&digits.len()) {
        return None;
    }
    let part = |from: usize, to: usize, least: i64| match digits.get(from..to) {
        Some(part) => part.iter().fold(0, |number, digit| number * 10 + digit),
        None => least,
    };
    let (year, month, day) = (part(0, 4, 0), part(4, 6, 1), part(6, 8, 1));
    let (hour, minute, second) = (part(8, 10, 0), part(10, 12, 0), part(12, 14, 0));
    let is_sound = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    is_sound.then(|| day_of(year, month, day) * DAY_S + hour * 3600 + minute * 60 + second.min(59))
}

/// Year, month, day and second of the day.
fn civil(at_s: i64) -> (i64, i64, i64, i64) {
    let (year, month, day) = date_of(at_s.div_euclid(DAY_S));
    (year, month, day, at_s.rem_euclid(DAY_S))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn dates_of_all_forms_are_read() {
        for (text, at_s) in [
            ("2024-03-01T12:00:00Z", Some(1_709_294_400)),
            ("2024-03-01T12:00:00.123456789Z", Some(1_709_294_400)),
            ("2024-03-01", Some(1_709_251_200)),
            ("2024", Some(1_704_067_200)),
            ("20240301120000", Some(1_709_294_400)),
            ("20240301120000123", Some(1_709_294_400)),
            ("19691231235959", Some(-1)),
            ("2016-12-31T23:59:60Z", Some(1_483_228_799)),
            ("2024-13-01T12:00:00Z", None),
            ("yesterday", None),
            ("", None),
            ("202", None),
            ("2024-03-01T12:00:00+09:00", None),
        ] {
            assert_eq!(parse_date(text), at_s, "{text}");
        }
        assert_eq!(iso_date(951_782_400), "2000-02-29T00:00:00Z");
    }

    proptest! {
        #[test]
        fn dates_come_back(at_s in -62_135_596_800_i64..253_402_300_800) {
            prop_assert_eq!(parse_date(&iso_date(at_s)), Some(at_s));
            prop_assert_eq!(parse_date(&date_digits(at_s)), Some(at_s));
        }
    }
}
