//! Durations as people write them: `90s`, `15m`, `12h`, `7d`.

use crate::{DAY_S, RevisitError};

const UNITS: [(char, i64); 4] = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];

/// A thousand years: longer is a typing error, and sums of such durations cannot overflow.
const MAX_DURATION_S: f64 = 1000.0 * 365.25 * 86_400.0;

/// Reads a duration in seconds; fractions of a unit are fine (`0.5d`).
pub fn parse_duration(text: &str) -> Result<i64, RevisitError> {
    let bad = || RevisitError::BadDuration { text: text.to_owned() };
    let unit = text.chars().last().ok_or_else(bad)?;
    let (_, unit_s) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(bad)?;
    let number: f64 = text[..text.len() - 1].parse().map_err(|_| bad())?;
    let seconds = number * *unit_s as f64;
    if !(0.0..=MAX_DURATION_S).contains(&seconds) {
        return Err(bad());
    }
    Ok(seconds.round() as i64)
}

/// Writes a duration in its largest unit that divides it: 86,400 seconds are `1d`.
pub fn format_duration(seconds: i64) -> String {
    for (name, unit_s) in UNITS {
        if seconds != 0 && seconds % unit_s == 0 {
            return format!("{}{name}", seconds / unit_s);
        }
    }
    format!("{seconds}s")
}

/// A duration for people, to a tenth of its unit: `3.1d` rather than `4483m`.
pub(crate) fn about(seconds: i64) -> String {
    let (unit_s, unit) = match seconds {
        ..120 => (1.0, 's'),
        120..7_200 => (60.0, 'm'),
        7_200..172_800 => (3_600.0, 'h'),
        _ => (DAY_S as f64, 'd'),
    };
    let tenths = (seconds as f64 / unit_s * 10.0).round() / 10.0;
    format!("{tenths}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_in_every_unit() {
        assert_eq!(parse_duration("90s"), Ok(90));
        assert_eq!(parse_duration("15m"), Ok(900));
        assert_eq!(parse_duration("12h"), Ok(43_200));
        assert_eq!(parse_duration("0.5d"), Ok(43_200));
    }

    #[test]
    fn people_are_told_durations_to_a_tenth() {
        let told = [30, 119, 600, 7_199, 10_000, 100_000, 268_980, 8_640_000].map(about);
        assert_eq!(told, ["30s", "119s", "10m", "120m", "2.8h", "27.8h", "3.1d", "100d"]);
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in ["", "d", "7", "-1d", "NaNd", "infd", "1e30d", "7 d", "7日"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_written_duration_reads_back() {
        for seconds in [0, 1, 59, 60, 3_600, 5_400, 86_400, 604_800, 31_536_000] {
            assert_eq!(parse_duration(&format_duration(seconds)), Ok(seconds));
        }
    }
}
