//! Durations in the specifications of policies, and for people.

use crate::{DAY_S, RevisitError};

/// Reads a duration in seconds (`90s`, `15m`, `0.5d`).
pub(crate) fn parse_duration(text: &str) -> Result<i64, RevisitError> {
    let seconds = nenrin_calendar::parse_duration(text);
    seconds.ok_or_else(|| RevisitError::BadDuration { text: text.to_owned() })
}

/// A duration for people, to a tenth of its unit: `3.1d` rather than `4483m`.
pub(crate) fn about(seconds: i64) -> String {
    let (number, unit) = rounded(seconds);
    format!("{number}{unit}")
}

/// A duration as a number, to a tenth, and its unit: `s`, `m`, `h` or `d`.
pub fn rounded(seconds: i64) -> (f64, char) {
    let (unit_s, unit) = match seconds {
        ..120 => (1.0, 's'),
        120..3_600 => (60.0, 'm'),
        3_600..172_800 => (3_600.0, 'h'),
        _ => (DAY_S as f64, 'd'),
    };
    ((seconds as f64 / unit_s * 10.0).round() / 10.0, unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_for_people_have_one_decimal() {
        let shown = [30, 119, 600, 3_599, 3_600, 10_000, 100_000, 268_980, 8_640_000].map(about);
        assert_eq!(shown, ["30s", "119s", "10m", "60m", "1h", "2.8h", "27.8h", "3.1d", "100d"]);
    }

    #[test]
    fn a_bad_duration_is_named() {
        assert_eq!(parse_duration("0.5d"), Ok(43_200));
        let bad = RevisitError::BadDuration { text: "soon".into() };
        assert_eq!(parse_duration("soon"), Err(bad));
    }
}
