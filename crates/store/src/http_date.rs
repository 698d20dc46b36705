//! Dates in HTTP headers, only in the one form that can be written back exactly.

/// Seconds since the epoch, if writing them gives the same bytes again.
pub(crate) fn parse(text: &[u8]) -> Option<i64> {
    nenrin_calendar::parse_http(std::str::from_utf8(text).ok()?)
}

/// The date as HTTP writes it; none outside the years 0 to 9999.
pub(crate) fn write(time_s: i64) -> Option<Vec<u8>> {
    nenrin_calendar::write_http(time_s).map(String::into_bytes)
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
