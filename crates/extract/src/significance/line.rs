//! The one line that says most about a change.

use std::collections::{BTreeMap, BTreeSet};

use super::noise::{differ_by_noise, noise_free_hash};
use super::segment::{Segment, SegmentKind};
use crate::hash::stable_hash;
use crate::{ContentKind, visible_text};

/// Text of a version that is compared, in bytes.
const MAX_TEXT_BYTES: usize = 1 << 20;
/// The longest line that is returned, in characters.
const MAX_CHARS: usize = 180;
/// What is kept in front of the first new word of a longer line.
const LEAD_CHARS: usize = 40;
/// A word counts by its letters, up to this many: an endless one is not a sentence.
const MAX_WORD_WEIGHT: usize = 12;
/// Where a title is looked for.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// A new page is introduced by its first line of at least this length.
const INTRODUCTION_CHARS: usize = 30;

/// A line of text that was added to a page or taken out of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedLine {
    /// The line, or its part with the change; never empty.
    pub text: String,
    /// Whether it was taken out, rather than added.
    pub removed: bool,
}

/// The line that says most about the change from one version of a page to the next: the one with most
/// words that were not there before. Lines that differ by dates, counters and tokens alone do not
/// count. If nothing was added, it is one that was taken out. Without a version before, it is the first
/// line that introduces the page. `None` where no text changed.
pub fn changed_line(
    kind: ContentKind,
    content_type: Option<&str>,
    previous: Option<&[u8]>,
    new: &[u8],
) -> Option<ChangedLine> {
    let text = |body| visible_text(kind, content_type, body, MAX_TEXT_BYTES);
    let (body, new) = (new, text(new));
    let Some(previous) = previous else {
        let is_long = |line: &&str| line.chars().count() >= INTRODUCTION_CHARS;
        // The first line is the title, if there is one, and headings repeat it.
        let title = new.lines().next().filter(|_| has_title(kind, body)).unwrap_or_default();
        let mut lines = new.lines().filter(|line| !title.contains(*line));
        let line = lines.clone().find(is_long).or_else(|| lines.next())?;
        return Some(ChangedLine { text: shortened(line, 0), removed: false });
    };
    let old = text(previous);
    let line = |removed: bool| {
        let (side, other) = if removed { (&old, &new) } else { (&new, &old) };
        most_telling(side, other, removed).map(|text| ChangedLine { text, removed })
    };
    line(false).or_else(|| line(true))
}

fn has_title(kind: ContentKind, body: &[u8]) -> bool {
    let head = &body[..body.len().min(MAX_HEAD_BYTES)];
    kind.is_page() && head.windows(6).any(|tag| tag.eq_ignore_ascii_case(b"<title"))
}

/// Of the lines that only one side has, the one that says most; `is_old` says which side that is.
fn most_telling(side: &str, other: &str, is_old: bool) -> Option<String> {
    let there: BTreeSet<&str> = other.lines().collect();
    let own: BTreeSet<&str> = side.lines().collect();
    let mut only_there: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    for line in there.iter().filter(|line| !own.contains(*line)) {
        only_there.entry(noise_free_hash(&segment(line))).or_default().push(line);
    }
    let is_noise = |line: &str| {
        let alike = only_there.get(&noise_free_hash(&segment(line)));
        // Counts rise: which one is older matters.
        let differs = |other: &&str| match is_old {
            true => differ_by_noise(&segment(line), &segment(other)),
            false => differ_by_noise(&segment(other), &segment(line)),
        };
        alike.is_some_and(|alike| alike.iter().take(MAX_ALIKE).any(differs))
    };
    let known: BTreeSet<u64> = words(other).map(|(_, hash, _)| hash).collect();
    let mut best: Option<(usize, usize, &str)> = None;
    for line in side.lines().filter(|line| !there.contains(line)) {
        let (news, length) = (news_in(line, &known), line.chars().count());
        let is_better = best.is_none_or(|(most, longest, _)| {
            (news, length.min(MAX_CHARS)) > (most, longest.min(MAX_CHARS))
        });
        if is_better && !is_noise(line) {
            best = Some((news, length, line));
        }
    }
    let (_, length, line) = best?;
    if length <= MAX_CHARS {
        return Some(line.to_owned());
    }
    let mut sentences: Vec<&str> = sentences(line).collect();
    sentences.sort_by_key(|sentence| std::cmp::Reverse(news_in(sentence, &known)));
    let sentence = sentences.first().copied().unwrap_or(line);
    let first_new = words(sentence).find(|(_, hash, _)| !known.contains(hash));
    Some(shortened(sentence, first_new.map_or(0, |(at, ..)| at)))
}

/// Lines of equal form that a line is compared with.
const MAX_ALIKE: usize = 64;

fn segment(line: &str) -> Segment<'_> {
    Segment { kind: SegmentKind::Text, text: line, hash: 0, context: 0 }
}

/// How much of a line was not there before: the letters of its new words.
fn news_in(line: &str, known: &BTreeSet<u64>) -> usize {
    let mut counted = BTreeSet::new();
    let is_new =
        |(_, hash, _): &(usize, u64, usize)| !known.contains(hash) && counted.insert(*hash);
    words(line).filter(is_new).map(|(_, _, letters)| letters).sum()
}

/// The words of a text: where each begins, its hash, and its weight. Scripts that write without spaces
/// have pairs of characters instead.
fn words(text: &str) -> impl Iterator<Item = (usize, u64, usize)> + '_ {
    let mut rest = text.char_indices().peekable();
    std::iter::from_fn(move || {
        while let Some((at, c)) = rest.next() {
            if !c.is_alphanumeric() {
                continue;
            }
            let mut word: String = c.to_lowercase().collect();
            if is_written_without_spaces(c) {
                word.extend(rest.peek().map(|(_, next)| *next));
                return Some((at, stable_hash(word.bytes()), 2));
            }
            while let Some((_, next)) =
                rest.next_if(|(_, c)| c.is_alphanumeric() && !is_written_without_spaces(*c))
            {
                word.extend(next.to_lowercase());
            }
            let letters = word.chars().count().min(MAX_WORD_WEIGHT);
            return Some((at, stable_hash(word.bytes()), letters));
        }
        None
    })
}

fn is_written_without_spaces(c: char) -> bool {
    matches!(u32::from(c), 0x0e00..=0x0eff | 0x2e80..=0x9fff | 0xac00..=0xd7af | 0xf900..=0xfaff | 0x20000..=0x3ffff)
}

/// The sentences of a line.
fn sentences(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let ends = |(at, c): (usize, char)| {
            let after = rest[at + c.len_utf8()..].chars().next();
            let is_end = matches!(c, '。' | '！' | '？')
                || matches!(c, '.' | '!' | '?') && after.is_none_or(char::is_whitespace);
            is_end.then(|| at + c.len_utf8())
        };
        let end = rest.char_indices().find_map(ends).unwrap_or(rest.len());
        let (sentence, after) = rest.split_at(end);
        rest = after.trim_start();
        Some(sentence)
    })
}

/// At most [`MAX_CHARS`], with what begins at the byte `from`.
fn shortened(line: &str, from: usize) -> String {
    if line.chars().count() <= MAX_CHARS {
        return line.to_owned();
    }
    let before = line[..from].chars().count();
    let skipped = if before <= MAX_CHARS / 2 { 0 } else { before - LEAD_CHARS };
    let mut text: String = line.chars().skip(skipped).take(MAX_CHARS - 2).collect();
    if skipped > 0 {
        text.insert(0, '…');
    }
    if skipped + MAX_CHARS - 2 < line.chars().count() {
        text.truncate(text.trim_end().len());
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(old: &str, new: &str) -> Option<(String, bool)> {
        let found = changed_line(ContentKind::Html, None, Some(old.as_bytes()), new.as_bytes());
        found.map(|line| (line.text, line.removed))
    }

    #[test]
    fn the_line_with_most_new_words_is_chosen() {
        let old = "<title>News</title><h1>News</h1><p>Today is 2024-03-01</p><p>Old story</p><p>12 visitors</p>";
        let new = "<title>News</title><h1>News</h1><p>Today is 2024-03-02</p><p>Big</p>\
                   <p>The library opens on Sundays from <b>April</b> on.</p><p>Old story</p><p>13 visitors</p>";
        let expected = "The library opens on Sundays from April on.";
        assert_eq!(line(old, new), Some((expected.to_owned(), false)));
        assert_eq!(line(new, old), Some((expected.to_owned(), true)), "what was taken out");
        assert_eq!(line(old, old), None);
    }

    #[test]
    fn dates_counters_and_tokens_are_not_news_but_prices_are() {
        let page = |date: &str, price: &str| {
            format!("<p>As of {date}</p><p>{price} € a month</p><p>1,204 visitors online</p>")
        };
        assert_eq!(line(&page("2024-03-01", "12.50"), &page("2024-03-02", "12.50")), None);
        assert_eq!(line("<p>edition 2</p>", "<p>edition 3</p>"), None, "a count that rises");
        let dearer = line(&page("2024-03-01", "12.50"), &page("2024-03-02", "13.90"));
        assert_eq!(dearer, Some(("13.90 € a month".to_owned(), false)));
    }

    #[test]
    fn japanese_is_read_without_spaces() {
        let old = "<p>図書館は月曜日に休みます。</p>";
        let new = "<p>図書館は月曜日に休みます。</p><p>来月から日曜日も開館します。</p>";
        assert_eq!(line(old, new), Some(("来月から日曜日も開館します。".to_owned(), false)));
    }

    #[test]
    fn a_long_line_is_cut_to_the_sentence_with_the_news() {
        let filler = "This sentence was here before and will stay for a while longer. ".repeat(20);
        let old = format!("<p>{filler}</p>");
        let new =
            format!("<p>{filler} The bridge across the river is closed until May. {filler}</p>");
        let expected = "The bridge across the river is closed until May.";
        assert_eq!(line(&old, &new), Some((expected.to_owned(), false)));
        let endless = format!("<p>{} end</p>", "word ".repeat(5_000));
        let (text, _) = line("<p>x</p>", &endless).unwrap();
        assert!(text.chars().count() <= MAX_CHARS && text.ends_with('…'), "{text}");
    }

    #[test]
    fn a_new_page_is_introduced_by_its_first_long_line() {
        let page = "<title>A bakery for the whole of the old town | Rolls</title><nav>Home</nav>\
            <h1>A bakery for the whole of the old town</h1><p>Bread from rye and spelt, baked every morning.</p>";
        let found = changed_line(ContentKind::Html, None, None, page.as_bytes()).unwrap();
        assert_eq!(found.text, "Bread from rye and spelt, baked every morning.");
        let plain = b"<p>Without a title</p><p>x</p>";
        let found = changed_line(ContentKind::Html, None, None, plain).unwrap();
        assert_eq!(found.text, "Without a title");
        assert_eq!(changed_line(ContentKind::Image, None, None, b"GIF89a"), None);
    }

    proptest::proptest! {
        #[test]
        fn any_two_texts_are_compared_within_bounds(old in "\\PC{0,400}", new in "\\PC{0,400}") {
            let found = changed_line(
                ContentKind::Text, Some("text/plain; charset=utf-8"),
                Some(old.as_bytes()), new.as_bytes(),
            );
            if let Some(line) = found {
                proptest::prop_assert!(!line.text.is_empty());
                proptest::prop_assert!(line.text.chars().count() <= MAX_CHARS + 1);
            }
        }
    }
}
