//! Random queries over the text of real or made pages, and the comparison of the index with a scan.
#![expect(clippy::unwrap_used, reason = "a query that cannot be made must fail its test")]
#![allow(dead_code, reason = "each test uses its part")]

use std::{collections::BTreeMap, sync::Arc};

use nenrin_archive::{Archive, digits14};
use nenrin_search::{
    Keeper, Query, STILL, Search, Step,
    scan::{ScannedPage, scan},
};

/// Small numbers in an order that looks random and is always the same.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % end.max(1)
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

pub(crate) fn pages(archive: &Archive) -> Vec<ScannedPage> {
    let mut pages = Vec::new();
    scan(archive, &mut |page| pages.push(page)).unwrap();
    pages
}

/// Brings the index up to date.
pub(crate) fn index(archive: &Arc<Archive>) -> Search {
    let mut keeper = Keeper::new(archive.clone());
    assert_eq!(keeper.catch_up(&mut |_, _| {}).unwrap(), Step::Idle);
    keeper.finish().unwrap();
    Search::new(archive.clone())
}

fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let chars: Vec<char> = word.chars().collect();
        if chars[0] < '\u{2E80}' {
            words.push(word.to_owned());
        } else {
            // Pieces of text without spaces, as people type them.
            words.extend(chars.chunks(3).map(|piece| piece.iter().collect::<String>()));
        }
    }
    words
}

/// A random query of one of many kinds, made of what is in a page.
pub(crate) fn query(dice: &mut Dice, pages: &[ScannedPage]) -> String {
    let page = loop {
        let page = dice.pick(pages);
        if page.texts().len() > 0 {
            break page;
        }
    };
    let block = |dice: &mut Dice| {
        let at = dice.below(page.texts().len());
        page.texts().nth(at).unwrap_or_default().to_owned()
    };
    let word = |dice: &mut Dice| {
        let words = words(&block(dice));
        if words.is_empty() { "a".to_owned() } else { dice.pick(&words).clone() }
    };
    let phrase = |dice: &mut Dice| {
        let text = block(dice);
        let words: Vec<&str> = text.split_whitespace().collect();
        let from = dice.below(words.len());
        let length = 1 + dice.below(4);
        let phrase: String = words[from..words.len().min(from + length)].join(" ");
        let phrase: String =
            phrase.chars().filter(|c| !"\"“”「」*".contains(*c)).take(40).collect();
        if phrase.chars().any(char::is_alphanumeric) { phrase } else { "a".to_owned() }
    };
    let other = |dice: &mut Dice| {
        let page = dice.pick(pages);
        let words: Vec<String> = page.texts().flat_map(words).take(300).collect();
        if words.is_empty() { "b".to_owned() } else { dice.pick(&words).clone() }
    };
    let mut text = match dice.below(10) {
        0 => word(dice),
        1 => format!("{} {}", word(dice), word(dice)),
        2 => format!("\"{}\"", phrase(dice)),
        3 => {
            let word = word(dice);
            let length = 2 + dice.below(3);
            format!(
                "{}*",
                word.chars().take(length).collect::<String>()
                    + if word.chars().count() < 2 { "a" } else { "" }
            )
        }
        4 => format!("{} -{}", word(dice), other(dice)),
        5 => format!("{} OR {}", word(dice), other(dice)),
        6 => format!("title:{}", word(dice)),
        7 => {
            let words = words(page.url());
            format!("url:{} {}", dice.pick(&words), word(dice))
        }
        8 => format!("\"{}\" {} {}", phrase(dice), word(dice), word(dice)),
        _ => format!("{} -\"{}\" -title:{}", word(dice), phrase(dice), other(dice)),
    };
    let slot = *dice.pick(&page.slots);
    let around = |dice: &mut Dice, at_s: i64| at_s + dice.below(200_000) as i64 - 100_000;
    let date = |at_s: i64| digits14(at_s.clamp(0, 4_000_000_000));
    let range = |dice: &mut Dice, at_s: i64| {
        let from = around(dice, at_s);
        format!("{}..{}", date(from), date(from + dice.below(40_000_000) as i64))
    };
    match dice.below(7) {
        0 => text += &format!(" at:{}", date(around(dice, slot.from_s))),
        1 => text += &format!(" during:{}", range(dice, slot.from_s)),
        2 => text += &format!(" appeared:{}", range(dice, slot.from_s)),
        3 if slot.until_s != STILL => text += &format!(" vanished:{}", range(dice, slot.until_s)),
        3 => text += " vanished:2000..2030",
        4 => text += " is:significant",
        5 => {
            text +=
                [" lang:en", " -lang:de", " lang:ja", " type:html", " -type:html"][dice.below(5)]
        }
        _ => {}
    }
    text
}

/// Asks random queries of both; returns how many answers were not empty.
pub(crate) fn compare(
    search: &Search,
    pages: &[ScannedPage],
    dice: &mut Dice,
    queries: usize,
) -> usize {
    let mut answered = 0;
    for _ in 0..queries {
        let text = query(dice, pages);
        // A word that was cut may have become too short for a beginning.
        let Ok(query) = Query::parse(&text) else { continue };
        let times = |spans: Vec<nenrin_search::Span>| {
            spans.iter().map(|s| (s.from_s, s.until_s)).collect::<Vec<_>>()
        };
        let expected: BTreeMap<String, Vec<(i64, i64)>> = pages
            .iter()
            .map(|page| (page.url().to_owned(), times(page.spans(&query))))
            .filter(|(_, spans)| !spans.is_empty())
            .collect();
        let found: BTreeMap<String, Vec<(i64, i64)>> = search
            .spans(&query)
            .unwrap()
            .into_iter()
            .map(|(url, spans)| (url.shown(), times(spans)))
            .collect();
        assert_eq!(found, expected, "{text}");
        answered += usize::from(!expected.is_empty());
    }
    answered
}
