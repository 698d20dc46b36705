//! What a watch finds in a version of its page. Pure, and bounded by the size of the page.

use std::borrow::Cow;

use nenrin_extract::{
    ContentKind, PartSelector, SelectorError, charset, content_kind, selected_texts, visible_text,
};
use nenrin_state::{Watch, WatchEvent, WatchHit, WatchTrouble, WatchedPart};
use nenrin_urls::CanonicalUrl;

/// The largest page that is searched, decoded.
pub(super) const MAX_PAGE_BYTES: usize = 8 << 20;
/// Digits of a number that are read.
const MAX_NUMBER_CHARS: usize = 40;

/// Whether a watch can be evaluated at all.
///
/// # Errors
/// What its selector has that is not understood.
pub fn check_watch(watch: &Watch) -> Result<(), SelectorError> {
    match &watch.part {
        WatchedPart::Selector { selector, .. } => PartSelector::parse(selector).map(drop),
        WatchedPart::Words(words) if words.trim().is_empty() => Err(SelectorError::Empty),
        WatchedPart::Words(_) | WatchedPart::Page => Ok(()),
    }
}

/// The text of the watched part; `None` where it is not there.
///
/// # Errors
/// Why the page cannot be searched.
pub(super) fn watched_text(
    watch: &Watch,
    url: &CanonicalUrl,
    content_type: Option<&str>,
    body: &[u8],
) -> Result<Option<String>, WatchTrouble> {
    let kind = content_kind(content_type, url, body);
    if matches!(kind, ContentKind::Image | ContentKind::Other) {
        return Err(WatchTrouble::NotText);
    }
    let text = || visible_text(kind, content_type, body, MAX_PAGE_BYTES);
    let found = match &watch.part {
        WatchedPart::Page => Some(text()).filter(|text| !text.is_empty()),
        WatchedPart::Words(words) => {
            let wants_number = matches!(watch.on, WatchEvent::Above(_) | WatchEvent::Below(_));
            line_with(&text(), words, wants_number)
        }
        WatchedPart::Selector { selector, nth } => {
            let Ok(selector) = PartSelector::parse(selector) else { return Ok(None) };
            let html = charset(content_type, body).decode(body).0;
            let mut texts = selected_texts(&html, &selector);
            match *nth as usize {
                0 if texts.is_empty() => None,
                0 => Some(texts.join("\n")),
                nth if nth <= texts.len() => Some(texts.swap_remove(nth - 1)),
                _ => None,
            }
        }
    };
    Ok(found.map(|text| shortened(&text)))
}

/// The first line that has the words, without regard to capitals and white space. Where a number is
/// wanted, the first such line with a number comes before others: a title may have the words as well.
fn line_with(text: &str, words: &str, wants_number: bool) -> Option<String> {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let words = plain(words);
    let lines = || text.lines().filter(|line| plain(line).contains(&words));
    let with_number = lines().find(|line| wants_number && number_after(line, &words).is_some());
    let line = with_number.or_else(|| lines().next());
    // Words may go over several lines, as where each is an element of its own.
    let everywhere = || plain(text).contains(&words).then(|| words.clone());
    line.map(str::to_owned).or_else(everywhere)
}

/// The text as it is stored and sent.
fn shortened(text: &str) -> String {
    let most = WatchHit::TEXT_BYTES_MAX;
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}…", &text[..end])
}

/// Whether a finding is what the watch waits for, given the one before.
///
/// # Errors
/// Why there is nothing to compare with a bound.
pub(super) fn is_reported(
    watch: &Watch,
    before: Option<&str>,
    now: Option<&str>,
) -> Result<bool, WatchTrouble> {
    let number = |text: Option<&str>| match (text, &watch.part) {
        (Some(text), WatchedPart::Words(words)) => number_after(text, words),
        (Some(text), _) => first_number(text),
        (None, _) => None,
    };
    let passes = |is_past: &dyn Fn(f64) -> bool| match (now, number(now)) {
        (None, _) => Err(WatchTrouble::PartGone),
        (Some(_), None) => Err(WatchTrouble::NoNumber),
        (Some(_), Some(value)) => Ok(is_past(value) && !number(before).is_some_and(is_past)),
    };
    match watch.on {
        WatchEvent::Changes => Ok(before != now),
        WatchEvent::Appears => Ok(before.is_none() && now.is_some()),
        WatchEvent::Vanishes => Ok(before.is_some() && now.is_none()),
        WatchEvent::Above(bound) => passes(&|value| value > bound),
        WatchEvent::Below(bound) => passes(&|value| value < bound),
    }
}

/// The number behind the words, or else the first of the line.
fn number_after(line: &str, words: &str) -> Option<f64> {
    let (lower, words) = (line.to_lowercase(), words.trim().to_lowercase());
    let behind = lower.find(&words).map(|at| &lower[at + words.len()..]);
    behind.and_then(first_number).or_else(|| first_number(line))
}

/// The first number of a text: `1,234.5`, `1.234,5`, `1 234`, `１２３`, with its sign. A single
/// separator before exactly three digits divides thousands.
pub fn first_number(text: &str) -> Option<f64> {
    let text: Cow<'_, str> = match text.is_ascii() {
        true => Cow::Borrowed(text),
        false => text.chars().map(plain_digit).collect::<String>().into(),
    };
    let start = text.find(|c: char| c.is_ascii_digit())?;
    let is_negative = text[..start].ends_with(['-', '−']);
    let mut run: String = text[start..]
        .chars()
        .take_while(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '\'' | '\u{a0}'))
        .filter(|c| !matches!(c, '\'' | '\u{a0}'))
        .take(MAX_NUMBER_CHARS)
        .collect();
    while run.ends_with(['.', ',']) {
        run.pop();
    }
    let (points, commas) = (run.matches('.').count(), run.matches(',').count());
    let has_thousands = |separator: char| {
        run.rsplit(separator).next().is_some_and(|group| group.len() == 3) && run.len() > 4
            || run.split(separator).skip(1).all(|group| group.len() == 3)
    };
    let decimal = match (points, commas) {
        (0, 0) => None,
        (0, 1) if !has_thousands(',') => Some(','),
        (0, _) => None,
        (1, 0) => Some('.'),
        (_, 0) => None,
        _ => run.rfind(['.', ',']).map(|at| run.as_bytes()[at] as char),
    };
    let digits: String = run
        .chars()
        .filter_map(|c| match c {
            c if c.is_ascii_digit() => Some(c),
            c if Some(c) == decimal => Some('.'),
            _ => None,
        })
        .collect();
    let value: f64 = digits.parse().ok()?;
    Some(if is_negative { -value } else { value })
}

/// Full-width digits and signs as plain ones.
fn plain_digit(c: char) -> char {
    match c {
        '０'..='９' => char::from(b'0' + (u32::from(c) - u32::from('０')) as u8),
        '，' => ',',
        '．' => '.',
        '－' => '-',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_people_write_them() {
        for (text, number) in [
            ("Price: 1,234.50 EUR", Some(1234.5)),
            ("1.234,50 €", Some(1234.5)),
            ("¥１２，３４５", Some(12345.0)),
            ("8,123 people", Some(8123.0)),
            ("3,5 km", Some(3.5)),
            ("1,234,567", Some(1_234_567.0)),
            ("1.234.567", Some(1_234_567.0)),
            ("−4.5 °C", Some(-4.5)),
            ("v2.", Some(2.0)),
            ("none", None),
            ("", None),
            ("0.125", Some(0.125)),
        ] {
            assert_eq!(first_number(text), number, "{text}");
        }
        assert!(first_number(&"9".repeat(10_000)).is_some());
    }

    #[test]
    fn the_number_behind_the_words_counts() {
        assert_eq!(number_after("Room 12: Price 99 EUR", "price"), Some(99.0));
        assert_eq!(number_after("12 in stock", "in stock"), Some(12.0));
    }

    #[test]
    fn words_are_found_without_capitals_and_over_lines() {
        let text = "Title\nIn Stock:   5 left\nBuy\nnow";
        assert_eq!(line_with(text, "in stock", false).as_deref(), Some("In Stock:   5 left"));
        assert_eq!(line_with(text, "buy now", false).as_deref(), Some("buy now"));
        assert_eq!(line_with(text, "sold out", false), None);
        // A title with the words comes before the line with the number.
        let prices = "Prices\nThe price is 80 euro.\nThe old price was 90 euro.";
        let found = |wants_number| line_with(prices, "price", wants_number);
        assert_eq!(found(true).as_deref(), Some("The price is 80 euro."));
        assert_eq!(found(false).as_deref(), Some("Prices"));
        assert_eq!(line_with("Prices", "price", true).as_deref(), Some("Prices"));
    }
}
