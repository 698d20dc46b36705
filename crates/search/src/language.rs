//! Languages of pages, and the forms of words in them.

use std::borrow::Cow;

use frostem::{Algorithm, Stemmer};
use nenrin_extract::{PageText, TextKind};
use whichlang::Lang;

/// A language that pages can be searched by. 0 is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Language(u8);

/// Codes of languages, and how their words are reduced to stems. Their places are stored: new ones
/// go to the end. At most 32.
const LANGUAGES: [(&str, Option<Algorithm>); 23] = [
    ("", None),
    ("en", Some(Algorithm::English)),
    ("de", Some(Algorithm::German)),
    ("fr", Some(Algorithm::French)),
    ("es", Some(Algorithm::Spanish)),
    ("it", Some(Algorithm::Italian)),
    ("pt", Some(Algorithm::Portuguese)),
    ("nl", Some(Algorithm::Dutch)),
    ("sv", Some(Algorithm::Swedish)),
    ("da", Some(Algorithm::Danish)),
    ("no", Some(Algorithm::Norwegian)),
    ("fi", Some(Algorithm::Finnish)),
    ("ru", Some(Algorithm::Russian)),
    ("hu", Some(Algorithm::Hungarian)),
    ("ro", Some(Algorithm::Romanian)),
    ("pl", Some(Algorithm::Polish)),
    ("tr", Some(Algorithm::Turkish)),
    ("ja", None),
    ("zh", None),
    ("ko", None),
    ("ar", None),
    ("hi", None),
    ("vi", None),
];

/// Text of a page that is looked at to find its language.
const LOOKED_AT_BYTES: usize = 4_000;
/// With fewer letters than this a page's own word counts more than its text.
const SURE_LETTERS: usize = 200;
/// With fewer letters than this nothing is guessed.
const MIN_LETTERS: usize = 20;
/// A form has the first letters of the stem, but for this many at its end.
const STEM_END: usize = 2;
/// But at least this many.
const MIN_COMMON: usize = 3;
/// Shorter words have no forms.
const MIN_STEMMED: usize = 3;

impl Language {
    /// The language of a code such as `de` or `de-AT`.
    pub fn named(code: &str) -> Option<Self> {
        let code = code.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase();
        let code = if matches!(code.as_str(), "nb" | "nn") { "no" } else { &code };
        let at = LANGUAGES.iter().skip(1).position(|(known, _)| *known == code)?;
        u8::try_from(at + 1).ok().map(Self)
    }

    /// Its code; empty if it is unknown.
    pub fn code(self) -> &'static str {
        LANGUAGES.get(usize::from(self.0)).map_or("", |(code, _)| code)
    }

    /// Its number.
    pub(crate) fn number(self) -> u8 {
        self.0
    }

    pub(crate) fn of_number(number: u8) -> Self {
        Self(if usize::from(number) < LANGUAGES.len() { number } else { 0 })
    }

    pub(crate) fn bit(self) -> u32 {
        1 << self.0
    }

    /// The language of a page, by its text and by what it says of itself.
    pub(crate) fn of(page: &PageText) -> Self {
        let mut sample = String::new();
        let readable = |kind| matches!(kind, TextKind::Body | TextKind::Heading | TextKind::Title);
        for block in page.blocks.iter().filter(|block| readable(block.kind)) {
            sample.push_str(&block.text);
            sample.push(' ');
            if sample.len() >= LOOKED_AT_BYTES {
                break;
            }
        }
        let letters = sample.chars().filter(|c| c.is_alphabetic()).count();
        let named = page.lang.as_deref().and_then(Self::named);
        let guessed = || guess(&sample);
        match named {
            Some(named) if !can_guess(named) || letters < SURE_LETTERS => named,
            Some(_) => guessed(),
            None if letters >= MIN_LETTERS => guessed(),
            None => Self(0),
        }
    }

    fn stem(self, word: &str) -> Option<Cow<'_, str>> {
        let (_, algorithm) = LANGUAGES.get(usize::from(self.0))?;
        algorithm.map(|algorithm| Stemmer::new(algorithm).stem(word))
    }
}

fn guess(sample: &str) -> Language {
    let code = match whichlang::detect_language(sample) {
        Lang::Ara => "ar",
        Lang::Cmn => "zh",
        Lang::Deu => "de",
        Lang::Eng => "en",
        Lang::Fra => "fr",
        Lang::Hin => "hi",
        Lang::Ita => "it",
        Lang::Jpn => "ja",
        Lang::Kor => "ko",
        Lang::Nld => "nl",
        Lang::Por => "pt",
        Lang::Rus => "ru",
        Lang::Spa => "es",
        Lang::Swe => "sv",
        Lang::Tur => "tr",
        Lang::Vie => "vi",
    };
    Language::named(code).unwrap_or_default()
}

/// Whether the language can be recognised reliably.
fn can_guess(language: Language) -> bool {
    !matches!(language.code(), "da" | "no" | "fi" | "hu" | "ro" | "pl")
}

/// The forms that a word has in each language: `rings` also finds `ring` on an English page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WordForms {
    word: String,
    stems: Vec<(Language, String, String)>,
}

impl WordForms {
    pub(crate) fn of(word: &str) -> Self {
        let has_forms = is_stemmed(word);
        let languages = (1..LANGUAGES.len() as u8).map(Language).filter(|_| has_forms);
        let stem = |language: Language| {
            let stem = language.stem(word)?.into_owned();
            let letters = stem.chars().count();
            let common = letters.saturating_sub(STEM_END).max(MIN_COMMON);
            let common = stem.chars().take(common).collect();
            Some((language, stem, common))
        };
        Self { word: word.to_owned(), stems: languages.filter_map(stem).collect() }
    }

    /// Whether the word has forms in any language.
    pub(crate) fn has_any(&self) -> bool {
        !self.stems.is_empty()
    }

    /// The word itself.
    pub(crate) fn word(&self) -> &str {
        &self.word
    }

    /// What all forms in these languages begin with.
    pub(crate) fn common(&self, languages: u32) -> &str {
        let mut common = self.word.as_str();
        for (_, _, begins) in self.stems.iter().filter(|(lang, ..)| lang.bit() & languages != 0) {
            let same = common.char_indices().zip(begins.chars()).take_while(|((_, a), b)| a == b);
            common = &common[..same.last().map_or(0, |((at, c), _)| at + c.len_utf8())];
        }
        common
    }

    /// The languages, as bits, in which a word on a page is a form of this one.
    pub(crate) fn languages(&self, found: &str, among: u32) -> u32 {
        if found == self.word {
            return u32::MAX;
        }
        if !is_stemmed(found) {
            return 0;
        }
        let is_form = |(language, stem, common): &&(Language, String, String)| {
            language.bit() & among != 0
                && found.starts_with(common.as_str())
                && language.stem(found).is_some_and(|found| found == stem.as_str())
        };
        self.stems.iter().filter(is_form).map(|(language, ..)| language.bit()).sum()
    }
}

fn is_stemmed(word: &str) -> bool {
    word.chars().all(char::is_alphabetic) && word.chars().count() >= MIN_STEMMED
}

#[cfg(test)]
mod tests {
    use nenrin_extract::PageBlock;

    use super::*;

    fn page(lang: Option<&str>, text: &str) -> Language {
        let block = PageBlock { kind: TextKind::Body, text: text.to_owned() };
        Language::of(&PageText { lang: lang.map(str::to_owned), blocks: vec![block] })
    }

    #[test]
    fn a_page_has_the_language_of_its_text_or_the_one_it_names() {
        assert_eq!(page(None, "Die Jahrringe eines Baumes zählen seine Jahre").code(), "de");
        assert_eq!(
            page(None, "年輪は木の年齢を示す。樹木が成長する過程で毎年できる。").code(),
            "ja"
        );
        assert_eq!(page(Some("de-AT"), "ok").code(), "de");
        assert_eq!(page(Some("x"), "ok").code(), "");
        let long = "The rings of a tree count its years. ".repeat(10);
        assert_eq!(page(Some("ja"), &long).code(), "en", "a template's mistake");
        assert_eq!(page(Some("da"), &long).code(), "da");
        assert_eq!(Language::named("nb-NO").unwrap().code(), "no");
        assert!(LANGUAGES.len() <= 32);
    }

    #[test]
    fn forms_of_a_word_depend_on_the_language() {
        let forms = WordForms::of("rings");
        let (en, de) = (Language::named("en").unwrap(), Language::named("de").unwrap());
        assert!(forms.languages("ring", u32::MAX) & en.bit() != 0);
        assert_eq!(forms.languages("rings", 0), u32::MAX);
        assert_eq!(forms.languages("king", u32::MAX), 0);
        assert_eq!(forms.languages("ringer", u32::MAX) & en.bit(), 0);
        assert!("ring".starts_with(forms.common(u32::MAX)));
        let forms = WordForms::of("baumes");
        assert!(forms.languages("baum", u32::MAX) & de.bit() != 0);
        assert_eq!(WordForms::of("a1").languages("a", u32::MAX), 0);
    }
}
