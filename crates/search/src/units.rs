//! Text as units that can be compared: words, and single characters of scripts without spaces
//! between words.
//!
//! Differences that a reader would not type are folded away: letter case, accents, full and half
//! width, katakana and hiragana.

use icu_normalizer::{
    ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed,
    properties::CanonicalCombiningClassMapBorrowed,
};

const DECOMPOSER: DecomposingNormalizerBorrowed<'static> =
    DecomposingNormalizerBorrowed::new_nfkd();
const COMPOSER: ComposingNormalizerBorrowed<'static> = ComposingNormalizerBorrowed::new_nfc();
const CLASSES: CanonicalCombiningClassMapBorrowed<'static> =
    CanonicalCombiningClassMapBorrowed::new();

/// Longer words are compared by their first characters.
const MAX_WORD_BYTES: usize = 64;
/// The marks that make か into が and は into ぱ; they are part of the letter.
const KANA_MARKS: [char; 2] = ['\u{3099}', '\u{309A}'];
const HALF_WIDTH_MARKS: [char; 2] = ['\u{FF9E}', '\u{FF9F}'];

/// A word, or a character of a script without spaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unit {
    /// Where its folded form is.
    start: u32,
    end: u32,
    /// Where it is in the text.
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// Whether it is a character of a script without spaces.
    pub(crate) is_character: bool,
    /// Whether it follows another such character directly.
    pub(crate) is_joined: bool,
}

/// The units of a text. It can be used again for the next text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Units {
    folded: String,
    units: Vec<Unit>,
    /// Whether the last unit is a word that may go on.
    open: bool,
    /// Whether the last unit is a character, with nothing behind it yet.
    touching: bool,
}

impl Units {
    pub(crate) fn of(text: &str) -> Self {
        let mut units = Self::default();
        units.read(text);
        units
    }

    pub(crate) fn read(&mut self, text: &str) {
        self.folded.clear();
        self.units.clear();
        (self.open, self.touching) = (false, false);
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            let is_plain = byte.is_ascii() && bytes.get(at + 1).is_none_or(u8::is_ascii);
            if is_plain {
                self.push(char::from(byte.to_ascii_lowercase()), (at, at + 1));
                at += 1;
                continue;
            }
            let end = at + group_length(&text[at..]);
            self.push_group(&text[at..end], (at, end));
            at = end;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.units.len()
    }

    pub(crate) fn get(&self, at: usize) -> Option<Unit> {
        self.units.get(at).copied()
    }

    /// The folded form of a unit.
    pub(crate) fn text(&self, at: usize) -> &str {
        self.units.get(at).map_or("", |unit| &self.folded[unit.start as usize..unit.end as usize])
    }

    fn push_group(&mut self, group: &str, place: (usize, usize)) {
        let mut chars = group.chars();
        if let (Some(only), None) = (chars.next(), chars.next())
            && is_settled(only)
        {
            return self.push(without_katakana(only), place);
        }
        let keeps = |c: &char| KANA_MARKS.contains(c) || CLASSES.get_u8(*c) == 0;
        let plain = DECOMPOSER.normalize_iter(group.chars()).filter(keeps);
        let folded: Vec<char> = COMPOSER.normalize_iter(plain).collect();
        for c in folded {
            match latin(c) {
                Some(letters) => letters.chars().for_each(|c| self.push(c, place)),
                None => c.to_lowercase().for_each(|c| self.push(without_katakana(c), place)),
            }
        }
    }

    fn push(&mut self, c: char, (from, to): (usize, usize)) {
        let (from, to) = (from as u32, to as u32);
        if !c.is_alphanumeric() {
            (self.open, self.touching) = (false, false);
            return;
        }
        let is_character = is_of_script_without_spaces(c);
        let start = self.folded.len() as u32;
        if self.open && !is_character {
            if let Some(word) = self.units.last_mut() {
                word.to = to;
                if (word.end - word.start) as usize + c.len_utf8() <= MAX_WORD_BYTES {
                    self.folded.push(c);
                    word.end = self.folded.len() as u32;
                }
            }
            return;
        }
        self.folded.push(c);
        let end = self.folded.len() as u32;
        let is_joined = is_character && self.touching;
        self.units.push(Unit { start, end, from, to, is_character, is_joined });
        (self.open, self.touching) = (!is_character, is_character);
    }
}

/// Bytes of the first character and the marks that belong to it.
fn group_length(text: &str) -> usize {
    // Vowels and finals of Korean syllables that are written as single letters.
    let is_jamo = |c: char| matches!(c, '\u{1160}'..='\u{11FF}');
    let is_mark = |c: char| HALF_WIDTH_MARKS.contains(&c) || is_jamo(c) || CLASSES.get_u8(c) != 0;
    let mut chars = text.chars();
    let first = chars.next().map_or(0, char::len_utf8);
    first + chars.take_while(|c| !c.is_ascii() && is_mark(*c)).map(char::len_utf8).sum::<usize>()
}

/// Characters that folding leaves as they are, but for katakana.
fn is_settled(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{3096}' | '\u{30A1}'..='\u{30FA}' | '\u{30FC}' | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7A3}' | '、' | '。')
}

fn without_katakana(c: char) -> char {
    match c {
        '\u{30A1}'..='\u{30F6}' => char::from_u32(c as u32 - 0x60).unwrap_or(c),
        _ => c,
    }
}

/// Letters that have no accent to take off and are still typed without it.
fn latin(c: char) -> Option<&'static str> {
    Some(match c {
        'ß' | 'ẞ' => "ss",
        'æ' | 'Æ' => "ae",
        'œ' | 'Œ' => "oe",
        'ø' | 'Ø' => "o",
        'ł' | 'Ł' => "l",
        'đ' | 'Đ' | 'ð' | 'Ð' => "d",
        'þ' | 'Þ' => "th",
        'ı' | 'İ' => "i",
        _ => return None,
    })
}

/// Whether words of the character's script are not separated: Japanese, Chinese, Thai. Korean is
/// treated alike, since its words carry endings.
fn is_of_script_without_spaces(c: char) -> bool {
    matches!(c,
        '\u{0E00}'..='\u{0EFF}'
        | '\u{1000}'..='\u{109F}'
        | '\u{1100}'..='\u{11FF}'
        | '\u{1780}'..='\u{17FF}'
        | '\u{3005}'..='\u{3007}'
        | '\u{3041}'..='\u{312F}'
        | '\u{3400}'..='\u{9FFF}'
        | '\u{AC00}'..='\u{D7AF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn folded(text: &str) -> Vec<String> {
        let units = Units::of(text);
        (0..units.len()).map(|at| units.text(at).to_owned()).collect()
    }

    #[test]
    fn what_readers_do_not_tell_apart_is_the_same() {
        for (one, other) in [
            ("Café STRASSE", "cafe straße"),
            ("ＡＢＣ１２", "abc12"),
            ("ﾊﾞﾅﾅ", "バナナ"),
            ("ねんりん", "ネンリン"),
            ("e\u{301}tude", "étude"),
            ("か\u{3099}", "が"),
            ("ﬁne", "fine"),
            ("한국", "\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}"),
            ("ÅNGSTRÖM", "angstrom"),
        ] {
            assert_eq!(folded(one), folded(other), "{one} {other}");
        }
        assert_ne!(folded("か"), folded("が"));
        assert_eq!(folded("don't foo_bar 3.14"), ["don", "t", "foo", "bar", "3", "14"]);
    }

    #[test]
    fn characters_know_whether_they_follow_another_directly() {
        let units = Units::of("年輪、木 ABC木の");
        let joined: Vec<bool> =
            (0..units.len()).filter_map(|at| units.get(at)).map(|unit| unit.is_joined).collect();
        assert_eq!(joined, [false, true, false, false, false, true]);
    }

    #[test]
    fn units_know_where_they_are_in_the_text() {
        let text = "Ein Öl, ﾊﾞﾅﾅ x";
        let units = Units::of(text);
        let places: Vec<&str> = (0..units.len())
            .filter_map(|at| units.get(at))
            .map(|unit| &text[unit.from as usize..unit.to as usize])
            .collect();
        assert_eq!(places, ["Ein", "Öl", "ﾊﾞ", "ﾅ", "ﾅ", "x"]);
    }

    #[test]
    fn long_words_are_cut() {
        let units = Units::of(&"a".repeat(1_000_000));
        assert_eq!((units.len(), units.text(0).len()), (1, MAX_WORD_BYTES));
    }

    proptest! {
        #[test]
        fn folding_twice_is_folding_once(text in "\\PC{0,30}") {
            let once = folded(&text);
            prop_assert_eq!(folded(&once.join(" ")), once);
        }

        #[test]
        fn any_text_has_units_at_places_in_it(text: String) {
            let units = Units::of(&text);
            for at in 0..units.len() {
                let unit = units.get(at).unwrap();
                prop_assert!(text.get(unit.from as usize..unit.to as usize).is_some());
                prop_assert!(!units.text(at).is_empty());
            }
        }
    }
}
