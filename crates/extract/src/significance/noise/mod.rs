//! What differs without being a change: dates, counters, tokens, cache breakers.
//!
//! A segment is taken apart into [`Atom`]s. Those of dates become one ([`dates`]), those of tags
//! leave out cache breakers ([`tags`]), and numbers are compared as counts.

mod dates;
mod tags;

use super::segment::{Segment, SegmentKind};
use crate::hash::{mixed, stable_hash};

use dates::fold_dates;
pub(super) use tags::is_url_attribute;
use tags::tag_atoms;

/// The smallest parts of a segment that are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Atom {
    /// Letters, or a whole attribute value, that must be equal.
    Word(String),
    /// Digits, with their separators; a rising count is noise, a price is not.
    Number(String),
    /// A date, a time, an age ("3 hours ago").
    Date,
    /// Random or machine-made text: identifiers, nonces, digests.
    Token,
    /// Any other character but white space.
    Mark(char),
}

/// The parts of a segment, with noise that is visible from one side alone folded.
pub(super) fn atoms(segment: &Segment<'_>) -> Vec<Atom> {
    match segment.kind {
        SegmentKind::Text => text_atoms(segment.text),
        SegmentKind::Tag => tag_atoms(segment.text),
        SegmentKind::Script { .. } | SegmentKind::Style => {
            text_atoms(segment.text).into_iter().map(Atom::without_number).collect()
        }
        SegmentKind::Comment => Vec::new(),
    }
}

/// Equal for segments that may differ by noise alone.
pub(super) fn noise_free_hash(segment: &Segment<'_>) -> u64 {
    atoms(segment).iter().fold(kind_salt(segment.kind), |hash, atom| {
        mixed(hash.rotate_left(5) ^ atom.noise_free_hash())
    })
}

fn kind_salt(kind: SegmentKind) -> u64 {
    match kind {
        SegmentKind::Text => 1,
        SegmentKind::Tag => 2,
        SegmentKind::Script { .. } => 3,
        SegmentKind::Style => 4,
        SegmentKind::Comment => 5,
    }
}

/// Whether two segments differ by noise alone.
pub(super) fn differ_by_noise(old: &Segment<'_>, new: &Segment<'_>) -> bool {
    let (a, b) = (atoms(old), atoms(new));
    let counts_people = b.iter().any(|atom| atom.is_word(is_count_word));
    let agree = |at: usize| match (&a[at], &b[at]) {
        (Atom::Number(old), Atom::Number(new)) => {
            old == new || !is_priced(&b, at) && is_count(old, new, counts_people)
        }
        (old, new) => old == new,
    };
    old.kind == new.kind && a.len() == b.len() && (0..a.len()).all(agree)
}

impl Atom {
    fn without_number(self) -> Self {
        if matches!(self, Self::Number(_)) { Self::Token } else { self }
    }

    fn noise_free_hash(&self) -> u64 {
        match self {
            Self::Word(word) => stable_hash(word.bytes()),
            Self::Number(_) => 1,
            Self::Date => 2,
            Self::Token => 3,
            Self::Mark(c) => 4 + u64::from(u32::from(*c)),
        }
    }

    fn is_word(&self, test: impl Fn(&str) -> bool) -> bool {
        matches!(self, Self::Word(word) if test(word))
    }
}

/// Whether a number that changed is a running count: visitors, comments, views. Counts of people
/// may also fall. Numbers with decimals are content.
fn is_count(old: &str, new: &str, counts_people: bool) -> bool {
    let (Some(old), Some(new)) = (whole_number(old), whole_number(new)) else { return false };
    let rises = new >= old && new - old <= (old / 4).max(100);
    rises || counts_people
}

/// Whether there is a currency or per cent sign beside a number: then it is content.
fn is_priced(atoms: &[Atom], at: usize) -> bool {
    let beside = [at.checked_sub(1), Some(at + 1)];
    beside.into_iter().flatten().filter_map(|at| atoms.get(at)).any(|atom| {
        matches!(atom, Atom::Mark('$' | '€' | '£' | '¥' | '￥' | '%' | '％' | '‰'))
            || atom.is_word(|word| ["eur", "usd", "gbp", "jpy", "chf", "円", "元"].contains(&word))
    })
}

/// Words beside numbers that may also fall.
fn is_count_word(word: &str) -> bool {
    const WORDS: [&str; 14] = [
        "online",
        "visitors",
        "visitor",
        "users",
        "guests",
        "views",
        "viewers",
        "hits",
        "members",
        "besucher",
        "aufrufe",
        "visites",
        "アクセス",
        "閲覧",
    ];
    WORDS.contains(&word)
}

/// The value of digits with or without separators of thousands.
fn whole_number(text: &str) -> Option<u64> {
    let mut groups = text.split([',', '.', '\'', '\u{a0}']);
    let first = groups.next()?;
    let mut digits = first.to_owned();
    for group in groups {
        if group.len() != 3 || first.len() > 3 {
            return None;
        }
        digits.push_str(group);
    }
    digits.parse().ok().filter(|_| digits.len() <= 15)
}

fn text_atoms(text: &str) -> Vec<Atom> {
    let mut atoms = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            c if c.is_whitespace() => c.len_utf8(),
            c if c.is_ascii_alphanumeric() => push_run(rest, &mut atoms),
            c if c.is_alphabetic() => push_word(rest, &mut atoms),
            c => {
                atoms.push(Atom::Mark(c));
                c.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    fold_dates(atoms)
}

/// A run of ASCII letters and digits: a token, or words and numbers.
fn push_run(text: &str, atoms: &mut Vec<Atom>) -> usize {
    let is_part = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    let run = &text[..text.bytes().take_while(|b| is_part(*b)).count()];
    if is_token(run) {
        atoms.push(Atom::Token);
        return run.len();
    }
    let part = &run[..run.bytes().take_while(u8::is_ascii_alphanumeric).count()];
    if is_token(part) {
        atoms.push(Atom::Token);
        return part.len();
    }
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        push_number(text, atoms)
    } else {
        push_word(text, atoms)
    }
}

fn push_word(text: &str, atoms: &mut Vec<Atom>) -> usize {
    let end = text.find(|c: char| !c.is_alphabetic()).unwrap_or(text.len());
    atoms.push(Atom::Word(text[..end].to_lowercase()));
    end
}

/// Digits, and separators followed by digits.
fn push_number(text: &str, atoms: &mut Vec<Atom>) -> usize {
    let bytes = text.as_bytes();
    let mut end = 0;
    while let Some(byte) = bytes.get(end) {
        let goes_on = byte.is_ascii_digit()
            || matches!(byte, b'.' | b',' | b'\'')
                && bytes.get(end + 1).is_some_and(u8::is_ascii_digit);
        if !goes_on {
            break;
        }
        end += 1;
    }
    atoms.push(Atom::Number(text[..end].to_owned()));
    end
}

/// Whether a run of letters and digits was made by a machine: a digest, an identifier, a nonce.
pub(super) fn is_token(run: &str) -> bool {
    let count = |test: fn(&u8) -> bool| run.bytes().filter(test).count();
    let digits = count(u8::is_ascii_digit);
    let letters = count(u8::is_ascii_alphabetic);
    let hex = count(u8::is_ascii_hexdigit);
    let plain = digits + letters == run.len();
    let upper = count(u8::is_ascii_uppercase);
    let is_digest = plain && hex == run.len() && run.len() >= 8 && digits >= 2 && letters >= 1;
    let is_mixed = plain && run.len() >= 16 && digits >= 3 && letters >= 4;
    let turns = run.as_bytes().windows(2).filter(|w| is_turn(w[0], w[1])).count();
    let is_base64 = run.len() >= 20 && digits >= 1 && upper >= 2 && turns * 3 >= run.len();
    is_digest || is_mixed || is_base64 || is_uuid(run)
}

/// Between capital and small letter, or letter and digit: frequent only in random text.
fn is_turn(a: u8, b: u8) -> bool {
    a.is_ascii_digit() != b.is_ascii_digit() || a.is_ascii_uppercase() != b.is_ascii_uppercase()
}

fn is_uuid(run: &str) -> bool {
    let lengths = [8, 4, 4, 4, 12];
    run.len() == 36
        && run.split('-').zip(lengths).all(|(part, length)| {
            part.len() == length && part.bytes().all(|b| b.is_ascii_hexdigit())
        })
}

#[cfg(test)]
mod tests {
    use super::super::segment::markup_segments;
    use super::*;

    fn noise(old: &str, new: &str) -> bool {
        let (a, b) = (markup_segments(old), markup_segments(new));
        assert_eq!((a.len(), b.len()), (1, 1), "{old} / {new}");
        let by_pair = differ_by_noise(&a[0], &b[0]);
        let by_hash = noise_free_hash(&a[0]) == noise_free_hash(&b[0]);
        assert!(
            by_hash || !by_pair,
            "segments that differ by noise must have one hash: {old} / {new}"
        );
        by_pair
    }

    #[test]
    fn dates_and_ages_are_noise() {
        for (old, new) in [
            ("Updated 2024-03-01", "Updated 2024-04-12"),
            ("Last change: Mon, 3 Mar 2024 10:30", "Last change: Tuesday, 4 April 2024, 11:05"),
            ("Stand: 01.03.2024 10:30 Uhr", "Stand: 12.04.2024 9:05 Uhr"),
            ("3. März 2024", "14. April 2024"),
            ("March 3rd, 2024", "April 14, 2024"),
            ("3/1/2024", "12/14/2024"),
            ("3 hours ago", "25 minutes ago"),
            ("vor 3 Stunden", "vor 20 Minuten"),
            ("2024年3月1日更新", "2024年4月12日更新"),
            ("3分前", "58分前"),
            ("2024-03-01T10:00:00Z", "2024-03-02T11:00:00Z"),
            ("It is 10:30 am", "It is 9:05 pm"),
        ] {
            assert!(noise(old, new), "{old} / {new}");
        }
    }

    #[test]
    fn counters_and_tokens_are_noise() {
        for (old, new) in [
            ("You are visitor 12,345", "You are visitor 12,401"),
            ("3 comments", "5 comments"),
            ("37 users online", "12 users online"),
            ("© 2023 Tree Ltd", "© 2024 Tree Ltd"),
            ("アクセス 10234", "アクセス 10240"),
            ("Request 8f3a91bc77", "Request 00ff12ab9e"),
            ("id 550e8400-e29b-41d4-a716-446655440000", "id 650e8400-e29b-41d4-a716-446655440001"),
            ("key dGhpcyBpcyBhIHRlc3Qx", "key eHhpcyBpcyBhIHRlc3Q5"),
            ("a  b", "a b"),
        ] {
            assert!(noise(old, new), "{old} / {new}");
        }
    }

    #[test]
    fn markup_that_machines_write_is_noise() {
        for (old, new) in [
            ("<script nonce=abc>", "<script nonce=xyz>"),
            ("<script src='/a.js?v=12'>", "<script src='/a.js?v=13'>"),
            ("<link href='/app.3f2a9c1d.css'>", "<link href='/app.99ee11aa.css'>"),
            (
                "<input type=hidden name=csrf_token value=abc>",
                "<input type=hidden name=csrf_token value=def>",
            ),
            ("<meta name='csrf-token' content='abc'>", "<meta name='csrf-token' content='xyz'>"),
            ("<a href='/x?PHPSESSID=1a'>", "<a href='/x?PHPSESSID=2b'>"),
            ("<a href='/x;jsessionid=1?a=b'>", "<a href='/x;jsessionid=2?a=b'>"),
            ("<img src='/i.png?1709251200'>", "<img src='/i.png?1709251300'>"),
            ("<div data-time=1709251200 id=w12>", "<div data-time=1709251300 id=w13>"),
        ] {
            assert!(noise(old, new), "{old} / {new}");
        }
        let (old, new) = ("<!-- made in 0.3 s -->", "<!-- something else -->");
        assert!(noise(old, new));
    }

    #[test]
    fn content_is_not_noise() {
        for (old, new) in [
            ("The oak", "The ash"),
            ("$19", "$24"),
            ("19.99", "24.99"),
            ("Version 1.2.3", "Version 1.3.0"),
            ("12 %", "14 %"),
            ("1200円", "1300円"),
            ("Chapter 3", "Chapter 900"),
            ("2024年 oak", "2024年 ash"),
            ("Meet on Monday with Ann", "Meet on Monday with Bob"),
            ("<a href='/article/12'>", "<a href='/article/13'>"),
            ("<img src=a.png>", "<img src=b.png>"),
            ("<img alt='an oak'>", "<img alt='an ash'>"),
            ("<p>", "<div>"),
            ("May I", "June I"),
        ] {
            assert!(!noise(old, new), "{old} / {new}");
        }
    }
}
