//! Dates as HTTP headers write them.

use std::time::{Duration, UNIX_EPOCH};

/// The last second that an HTTP date can name: 9999-12-31T23:59:59Z.
const LAST_S: u64 = 253_402_300_799;

/// Reads a date in any of the three forms of RFC 9110 into seconds since the epoch. Dates before
/// 1970 give `None`: no file on the web is that old.
pub fn parse(text: &str) -> Option<i64> {
    let time = httpdate::parse_http_date(text.trim()).ok()?;
    i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok()
}

/// Writes seconds since the epoch as servers do: `Sun, 06 Nov 1994 08:49:37 GMT`. A time outside
/// the years 1970 to 9999 becomes the nearest one inside.
pub fn format(time_s: i64) -> String {
    let since_epoch_s = u64::try_from(time_s).unwrap_or(0).min(LAST_S);
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(since_epoch_s))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn all_three_forms_are_read() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "  Sun, 06 Nov 1994 08:49:37 GMT ",
        ] {
            assert_eq!(parse(text), Some(784_111_777), "{text}");
        }
    }

    #[test]
    fn a_text_that_is_not_a_date_gives_none() {
        for text in ["", "0", "-1", "now", "Sun, 31 Feb 1994 08:49:37 GMT", "1994-11-06T08:49:37Z"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn times_beyond_the_calendar_are_clamped() {
        assert_eq!(format(i64::MIN), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(format(i64::MAX), "Fri, 31 Dec 9999 23:59:59 GMT");
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(time_s in 0..=LAST_S.cast_signed()) {
            prop_assert_eq!(parse(&format(time_s)), Some(time_s));
        }

        #[test]
        fn any_text_is_survived(text in "\\PC{0,40}") {
            let _ = parse(&text);
        }
    }
}
