//! Numbers, sizes and times for people.

use jiff::{Timestamp, tz::TimeZone};
use maud::{Markup, html};
use nenrin_lang::Lang;
use url::form_urlencoded;

pub(crate) const DAY_S: i64 = 86_400;

/// `1234567` as `1,234,567`.
pub(crate) fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A size in units of 1000.
pub(crate) fn bytes(n: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if n < 1000 {
        return format!("{n} B");
    }
    let mut value = n as f64;
    let mut unit = "B";
    for next in UNITS {
        if value < 999.5 {
            break;
        }
        value /= 1000.0;
        unit = next;
    }
    if value < 9.95 { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") }
}

/// The share of `raw` that was not stored, `None` where there is nothing to compare.
pub(crate) fn saving(raw: u64, stored: u64) -> Option<String> {
    if raw == 0 || stored > raw {
        return None;
    }
    Some(format!("{:.1}%", 100.0 * (1.0 - stored as f64 / raw as f64)))
}

/// A share from 0 to 1 in percent; a small one keeps a digit, so that it is not shown as 0.
pub(crate) fn share(share: f64) -> String {
    match share * 100.0 {
        percent if percent > 0.0 && percent < 0.05 => "< 0.1%".to_owned(),
        percent => format!("{percent:.1}%"),
    }
}

/// A page's importance as a multiple of the average page's.
pub(crate) fn importance(importance: f64) -> String {
    match importance {
        small if small < 10.0 => format!("{small:.2}"),
        large => number(large.round() as u64),
    }
}

/// Changes per day, with the digits that matter.
pub(crate) fn rate(per_day: f64) -> String {
    match per_day {
        seldom if seldom < 0.01 => format!("{seldom:.4}"),
        often if often >= 10.0 => format!("{often:.0}"),
        between => format!("{between:.2}"),
    }
}

/// A duration in words.
pub(crate) fn spoken_duration(lang: Lang, seconds: i64) -> String {
    let (n, en, ja) = match seconds {
        i64::MIN..60 => (seconds, "second", "秒"),
        60..3600 => (seconds / 60, "minute", "分"),
        3600..172_800 => (seconds / 3600, "hour", "時間"),
        _ => (seconds / DAY_S, "day", "日"),
    };
    match lang {
        Lang::En => format!("{n} {en}{}", if n == 1 { "" } else { "s" }),
        Lang::Ja => format!("{n}{ja}"),
    }
}

fn timestamp(at_s: i64) -> Timestamp {
    Timestamp::from_second(at_s).unwrap_or_default()
}

fn strftime(at_s: i64, pattern: &str) -> String {
    timestamp(at_s).to_zoned(TimeZone::UTC).strftime(pattern).to_string()
}

/// Fourteen digits, as in replay links.
pub(crate) fn digits(at_s: i64) -> String {
    strftime(at_s, "%Y%m%d%H%M%S")
}

/// `2026-11-15` (UTC).
pub(crate) fn date(at_s: i64) -> String {
    strftime(at_s, "%Y-%m-%d")
}

/// RFC 3339 in UTC.
pub(crate) fn rfc3339(at_s: i64) -> String {
    strftime(at_s, "%Y-%m-%dT%H:%M:%SZ")
}

/// A day with the name of its weekday.
pub(crate) fn weekday_date(lang: Lang, day: i64) -> String {
    let at_s = day.saturating_mul(DAY_S);
    match lang {
        Lang::En => strftime(at_s, "%A, %-d %B %Y"),
        Lang::Ja => {
            let weekday = ["月", "火", "水", "木", "金", "土", "日"][weekday(day) as usize];
            format!("{}（{weekday}）", strftime(at_s, "%Y年%-m月%-d日"))
        }
    }
}

/// The time of day below the head of its day; both are in UTC.
pub(crate) fn clock_time(at_s: i64) -> String {
    strftime(at_s, "%H:%M UTC")
}

/// A count with its noun, which in English has a plural.
pub(crate) fn counted(lang: Lang, count: u64, one: &str, many: &str, ja: &str) -> String {
    match lang {
        Lang::En => format!("{} {}", number(count), if count == 1 { one } else { many }),
        Lang::Ja => format!("{}{ja}", number(count)),
    }
}

/// The month of a day, short.
pub(crate) fn month(lang: Lang, day: i64) -> String {
    lang.t(&strftime(day * DAY_S, "%b"), &strftime(day * DAY_S, "%-m月")).to_owned()
}

/// The year of a day.
pub(crate) fn year(day: i64) -> i64 {
    month_number(day).div_euclid(12)
}

/// The first day of a year, as far as a calendar can tell it.
pub(crate) fn first_of_year(year: i64) -> i64 {
    let date = i16::try_from(year).ok().and_then(|year| jiff::civil::Date::new(year, 1, 1).ok());
    let first = date.and_then(|date| date.to_zoned(TimeZone::UTC).ok());
    first.map_or(i64::MAX / DAY_S, |first| first.timestamp().as_second().div_euclid(DAY_S))
}

/// Months since the year 0.
pub(crate) fn month_number(day: i64) -> i64 {
    let date = timestamp(day * DAY_S).to_zoned(TimeZone::UTC);
    i64::from(date.year()) * 12 + i64::from(date.month()) - 1
}

/// The day of the month.
pub(crate) fn day_of_month(day: i64) -> i64 {
    strftime(day * DAY_S, "%-d").parse().unwrap_or(1)
}

/// The day of the week, Monday 0.
pub(crate) fn weekday(day: i64) -> i64 {
    (day + 3).rem_euclid(7)
}

/// A time. It is written in UTC; a script turns it into the reader's time zone.
pub(crate) fn time(at_s: i64) -> Markup {
    html! {
        time datetime=(rfc3339(at_s)) { (strftime(at_s, "%Y-%m-%d %H:%M:%S")) " UTC" }
    }
}

/// A time to the minute, where seconds would only take space.
pub(crate) fn short_time(at_s: i64) -> Markup {
    html! {
        time.short datetime=(rfc3339(at_s)) { (strftime(at_s, "%Y-%m-%d %H:%M")) " UTC" }
    }
}

/// A time that may be missing, to the minute.
pub(crate) fn maybe_time(at_s: Option<i64>) -> Markup {
    match at_s {
        Some(at_s) => short_time(at_s),
        None => html! { span.muted { "–" } },
    }
}

/// Reads a date: `2024-03-01`, `2024-03-01T12:00`, RFC 3339, or 1 to 14 digits. A date without a
/// time means its last second: "as of that day" includes that day.
pub(crate) fn parse_date(text: &str) -> Option<i64> {
    let text = text.trim();
    if !text.is_empty() && text.len() <= 14 && text.bytes().all(|b| b.is_ascii_digit()) {
        return parse_digits(text);
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(at.as_second());
    }
    let civil = |at: jiff::civil::DateTime| at.to_zoned(TimeZone::UTC).ok();
    if text.len() == 10
        && let Ok(date) = text.parse::<jiff::civil::Date>()
    {
        return Some(civil(date.at(23, 59, 59, 0))?.timestamp().as_second());
    }
    Some(civil(text.parse().ok()?)?.timestamp().as_second())
}

fn parse_digits(text: &str) -> Option<i64> {
    const LAST: &str = "99991231235959";
    let year: i16 = text.get(..4)?.parse().ok()?;
    let mut parts = [12_i8, 31, 23, 59, 59];
    for (i, part) in parts.iter_mut().enumerate() {
        let at = 4 + 2 * i;
        if let Some(two) = text.get(at..(at + 2).min(text.len())).filter(|t| !t.is_empty()) {
            *part = format!("{two}{}", &LAST[at + two.len()..at + 2]).parse().ok()?;
        }
    }
    let [month, day, hour, minute, second] = parts;
    let first = jiff::civil::Date::new(year, month, 1).ok()?;
    let day = if text.len() <= 6 { first.days_in_month() } else { day };
    let at = jiff::civil::DateTime::new(year, month, day, hour, minute, second, 0).ok()?;
    Some(at.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second())
}

/// A value for a query string.
pub(crate) fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_numbers_are_short() {
        assert_eq!(number(0), "0");
        assert_eq!(number(999), "999");
        assert_eq!(number(1_234_567), "1,234,567");
        for (n, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (9_949, "9.9 kB"),
            (123_456, "123 kB"),
            (999_999, "1.0 MB"),
            (4_200_000_000, "4.2 GB"),
            (u64::MAX, "18 EB"),
        ] {
            assert_eq!(bytes(n), text);
        }
        assert_eq!(saving(1000, 100).as_deref(), Some("90.0%"));
        assert_eq!(saving(0, 0), None);
        assert_eq!(saving(10, 20), None);
    }

    #[test]
    fn dates_are_read_in_every_form() {
        let at = |text: &str| parse_date(text).map(rfc3339);
        assert_eq!(at("2024-03-01").as_deref(), Some("2024-03-01T23:59:59Z"));
        assert_eq!(at("2024-03-01T12:30").as_deref(), Some("2024-03-01T12:30:00Z"));
        assert_eq!(at("2024-03-01T12:30:00+09:00").as_deref(), Some("2024-03-01T03:30:00Z"));
        assert_eq!(at("20240301120000").as_deref(), Some("2024-03-01T12:00:00Z"));
        assert_eq!(at("2024").as_deref(), Some("2024-12-31T23:59:59Z"));
        assert_eq!(at("202402").as_deref(), Some("2024-02-29T23:59:59Z"));
        for bad in ["", "x", "2024-13-01", "2024-02-30", "20241301", "999999999999999", "日付"] {
            assert_eq!(at(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_epoch_was_a_thursday() {
        assert_eq!(weekday(0), 3);
        assert_eq!(weekday(-1), 2);
        assert_eq!(day_of_month(31), 1);
    }
}
