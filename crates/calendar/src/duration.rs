//! Durations as people write them: `200ms`, `90s`, `15m`, `12h`, `7d`, `2w`, `0.5d`.

/// The units, in milliseconds. Durations are written in the largest of them that divides them, but
/// not in weeks.
const UNITS_MS: [(&str, u64); 6] = [
    ("w", 7 * 86_400_000),
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

/// A hundred years: longer is a typing error, and sums of such durations cannot overflow.
pub const MAX_DURATION_MS: u64 = 36_500 * 86_400_000;

/// Reads a duration in milliseconds: a number, which may have a fraction, and a unit. `None` if it is
/// not written so, or longer than [`MAX_DURATION_MS`].
pub fn parse_duration_ms(text: &str) -> Option<u64> {
    let text = text.trim();
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
    let (_, unit_ms) = UNITS_MS.into_iter().find(|(name, _)| *name == unit)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let part_ms = format!("0.{fraction}").parse::<f64>().ok()? * unit_ms as f64;
    let ms = whole.parse::<u64>().ok()?.checked_mul(unit_ms)?.checked_add(part_ms.round() as u64);
    ms.filter(|&ms| ms <= MAX_DURATION_MS)
}

/// Reads a duration in whole seconds, as [`parse_duration_ms`] reads it.
pub fn parse_duration(text: &str) -> Option<i64> {
    let ms = parse_duration_ms(text)?;
    ms.is_multiple_of(1_000).then_some((ms / 1_000) as i64)
}

/// Writes a duration in the largest unit that divides it: 86,400,000 milliseconds are `1d`.
pub fn write_duration_ms(ms: u64) -> String {
    let mut written = UNITS_MS[1..].iter().filter(|(_, unit_ms)| ms.is_multiple_of(*unit_ms));
    match written.next() {
        Some((unit, unit_ms)) if ms > 0 => format!("{}{unit}", ms / unit_ms),
        _ => "0s".to_owned(),
    }
}

/// Writes a duration of whole seconds, as [`write_duration_ms`] does.
pub fn write_duration(seconds: i64) -> String {
    let sign = if seconds < 0 { "-" } else { "" };
    format!("{sign}{}", write_duration_ms(seconds.unsigned_abs().saturating_mul(1_000)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_read_in_every_unit() {
        for (text, ms) in [
            ("200ms", 200),
            ("90s", 90_000),
            (" 15m ", 900_000),
            ("12h", 43_200_000),
            ("0.5d", 43_200_000),
            ("1.5s", 1_500),
            ("0.1d", 8_640_000),
            ("2w", 14 * 86_400_000),
            ("0s", 0),
            ("36500d", MAX_DURATION_MS),
        ] {
            assert_eq!(parse_duration_ms(text), Some(ms), "{text}");
            let seconds = ms.is_multiple_of(1_000).then_some((ms / 1_000) as i64);
            assert_eq!(parse_duration(text), seconds, "{text}");
        }
    }

    #[test]
    fn what_is_not_a_duration_is_refused() {
        for text in [
            "",
            "d",
            "7",
            "-1d",
            "+1d",
            "NaNd",
            "infd",
            "1e3d",
            "1e30d",
            "7 d",
            "7日",
            "１s",
            "7y",
            "1.d",
            ".5d",
            "1.2.3d",
            "36501d",
            "99999999999999999999d",
            "7days",
            "7D",
        ] {
            assert_eq!(parse_duration_ms(text), None, "{text}");
        }
    }

    #[test]
    fn durations_are_written_in_their_largest_unit() {
        for (ms, text) in [
            (0, "0s"),
            (1, "1ms"),
            (1_500, "1500ms"),
            (90_000, "90s"),
            (5_400_000, "90m"),
            (86_400_000, "1d"),
            (14 * 86_400_000, "14d"),
        ] {
            assert_eq!(write_duration_ms(ms), text);
        }
        assert_eq!(write_duration(-3_600), "-1h");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(ms in 0..=MAX_DURATION_MS) {
            prop_assert_eq!(parse_duration_ms(&write_duration_ms(ms)), Some(ms));
        }

        #[test]
        fn no_text_is_too_strange(text in "[0-9.]{0,30}\\PC{0,4}") {
            let _ = parse_duration_ms(&text);
        }
    }
}
