//! Dates in URLs: `/2031/05/12/`, `?date=2031-05-12`, `?year=2031&month=5`, `20310512`.

use nenrin_calendar::{DAY_S, day_of};
use nenrin_urls::CanonicalUrl;

/// A date in a URL, at least a month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UrlDate {
    pub(super) at_s: i64,
    pub(super) in_query: bool,
}

/// The first date in the query, or else in the path.
pub(super) fn url_date(url: &CanonicalUrl) -> Option<UrlDate> {
    let query = url.query().unwrap_or_default();
    let in_query = named_date(query).or_else(|| written_date(query));
    match in_query {
        Some(at_s) => Some(UrlDate { at_s, in_query: true }),
        None => written_date(url.path()).map(|at_s| UrlDate { at_s, in_query: false }),
    }
}

/// `year=2031&month=5`.
fn named_date(query: &str) -> Option<i64> {
    let value = |names: &[&str]| {
        query.split('&').find_map(|argument| {
            let (name, value) = argument.split_once('=')?;
            names.iter().any(|n| name.eq_ignore_ascii_case(n)).then(|| value.parse().ok())?
        })
    };
    month_start(value(&["year", "y", "yr", "yyyy"])?, value(&["month", "m", "mo", "mm"])?)
}

/// Runs of digits that are a year and a month, with the same mark between them, or eight digits.
fn written_date(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let end = at + bytes[at..].iter().take_while(|b| b.is_ascii_digit()).count();
        if let Some(found) = date_at(&text[at..], end - at) {
            return Some(found);
        }
        at = end;
    }
    None
}

/// The date that begins with a run of that many digits.
fn date_at(text: &str, digits: usize) -> Option<i64> {
    if digits == 8 {
        let day: i64 = text[6..8].parse().ok()?;
        return month_start(text[..4].parse().ok()?, text[4..6].parse().ok()?)
            .filter(|_| (1..=31).contains(&day));
    }
    if digits != 4 {
        return None;
    }
    let rest = text[4..].strip_prefix(['-', '/', '_', '.'])?;
    let month = rest.bytes().take_while(u8::is_ascii_digit).count();
    if !(1..=2).contains(&month) {
        return None;
    }
    month_start(text[..4].parse().ok()?, rest[..month].parse().ok()?)
}

/// Years that people write about.
fn month_start(year: i64, month: i64) -> Option<i64> {
    if !(1000..=9999).contains(&year) || !(1..=12).contains(&month) {
        return None;
    }
    Some(day_of(year, month, 1) * DAY_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(path: &str) -> Option<(i64, bool)> {
        let url = CanonicalUrl::parse(&format!("http://e.com{path}")).unwrap();
        url_date(&url).map(|date| (date.at_s, date.in_query))
    }

    #[test]
    fn dates_are_found_as_people_write_them() {
        const MARCH_2024: i64 = 1_709_251_200;
        assert_eq!(date("/2024/03/12/title"), Some((MARCH_2024, false)));
        assert_eq!(date("/a-2024-3.html"), Some((MARCH_2024, false)));
        assert_eq!(date("/log/20240312"), Some((MARCH_2024, false)));
        assert_eq!(date("/cal?year=2024&month=3"), Some((MARCH_2024, true)));
        assert_eq!(date("/cal?date=2024-03-12"), Some((MARCH_2024, true)));
        assert_eq!(date("/1969/12/"), Some((-31 * 86_400, false)));
    }

    #[test]
    fn other_numbers_are_no_dates() {
        for path in ["/2024/", "/12345678", "/2024/13/", "/p/2024-99", "/v1.2.3", "/x?y=2024"] {
            assert_eq!(date(path), None, "{path}");
        }
    }
}
