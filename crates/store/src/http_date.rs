//! Dates in HTTP headers, only in the one form that can be written back exactly.

/// "Sun, 06 Nov 1994 08:49:37 GMT".
pub(crate) const DATE_BYTES: usize = 29;

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Seconds since the epoch, if writing them gives the same bytes again.
pub(crate) fn parse(text: &[u8]) -> Option<i64> {
    if text.len() != DATE_BYTES || !text.ends_with(b" GMT") {
        return None;
    }
    let number = |from: usize, to: usize| -> Option<i64> {
        std::str::from_utf8(text.get(from..to)?).ok()?.parse().ok()
    };
    let month = MONTHS.iter().position(|month| month.as_bytes() == &text[8..11])? as i64 + 1;
    let days = days_from_civil(number(12, 16)?, month, number(5, 7)?);
    let time_s = days * 86_400 + number(17, 19)? * 3600 + number(20, 22)? * 60 + number(23, 25)?;
    (write(time_s).as_deref() == Some(text)).then_some(time_s)
}

/// The date as HTTP writes it; none outside the years 0 to 9999.
pub(crate) fn write(time_s: i64) -> Option<Vec<u8>> {
    let days = time_s.div_euclid(86_400);
    let (year, month, day) = civil_from_days(days);
    if !(0..=9999).contains(&year) {
        return None;
    }
    let second = time_s.rem_euclid(86_400);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let weekday = DAYS[days.rem_euclid(7) as usize];
    let month = MONTHS[(month - 1) as usize];
    let text =
        format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT");
    Some(text.into_bytes())
}

/// Days since the epoch in the Gregorian calendar (Howard Hinnant's algorithm).
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days.clamp(-1_000_000_000, 1_000_000_000) + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = (shifted + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_example_of_the_rfc_is_understood() {
        assert_eq!(parse(b"Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(parse(b"Thu, 29 Feb 2024 23:59:59 GMT"), Some(1_709_251_199));
    }

    #[test]
    fn what_would_be_written_differently_is_not_a_date() {
        for odd in [
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sun, +6 Nov 1994 08:49:37 GMT",
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "0",
        ] {
            assert_eq!(parse(odd.as_bytes()), None, "{odd}");
        }
    }

    proptest! {
        #[test]
        fn writing_and_parsing_are_inverse(time_s in -60_000_000_000i64..250_000_000_000) {
            prop_assert_eq!(write(time_s).and_then(|text| parse(&text)), Some(time_s));
        }

        #[test]
        fn junk_never_panics(junk in proptest::collection::vec(any::<u8>(), 29), time_s: i64) {
            let _ = parse(&junk);
            let _ = write(time_s);
        }
    }
}
