use std::borrow::Cow;

use crate::translate;

/// The cookie with a reader's choice.
pub const LANG_COOKIE: &str = "nenrin_lang";

/// The languages for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Lang {
    /// English.
    #[default]
    En,
    /// Japanese.
    Ja,
}

impl Lang {
    /// The text in this language. Both are written side by side where they are used, so that a
    /// change of one is seen next to the other.
    pub fn t<'a>(self, en: &'a str, ja: &'a str) -> &'a str {
        match self {
            Self::En => en,
            Self::Ja => ja,
        }
    }

    /// A sentence that the program wrote in English, translated into this language if it is known.
    /// What came from the web stays unchanged: the result is text, to be escaped like any other.
    pub fn translate(self, noted: &str) -> Cow<'_, str> {
        match self {
            Self::En => Cow::Borrowed(noted),
            Self::Ja => translate::in_japanese(noted).map_or(Cow::Borrowed(noted), Cow::Owned),
        }
    }

    /// The code, as in `<html lang>`.
    pub fn code(self) -> &'static str {
        self.t("en", "ja")
    }

    /// The language with this code.
    pub fn from_code(code: &str) -> Option<Self> {
        [Self::En, Self::Ja].into_iter().find(|lang| lang.code() == code)
    }

    /// The language of a request: the one chosen before, else the one that the browser prefers.
    pub fn of_request(cookies: &str, accept_language: &str) -> Self {
        let pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
        let chosen = pairs.filter(|(name, _)| *name == LANG_COOKIE).map(|(_, code)| code).next();
        chosen.and_then(Self::from_code).unwrap_or_else(|| Self::preferred(accept_language))
    }

    /// The language preferred among these, by an `Accept-Language` header.
    fn preferred(accept_language: &str) -> Self {
        let mut best = (0.0, Self::En);
        for entry in accept_language.split(',').take(32) {
            let mut parts = entry.split(';');
            let tag = parts.next().unwrap_or_default().trim();
            let primary = tag.split('-').next().unwrap_or_default().to_ascii_lowercase();
            let weight = parts
                .find_map(|p| p.trim().strip_prefix("q=").map(|q| q.parse::<f32>().unwrap_or(0.0)))
                .unwrap_or(1.0);
            if let Some(lang) = Self::from_code(&primary)
                && weight > best.0
            {
                best = (weight, lang);
            }
        }
        best.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heaviest_known_language_wins() {
        for (header, expected) in [
            ("", Lang::En),
            ("ja", Lang::Ja),
            ("ja-JP,ja;q=0.9,en;q=0.8", Lang::Ja),
            ("en-GB,en;q=0.9,ja;q=0.8", Lang::En),
            ("fr;q=1.0,ja;q=0.5,en;q=0.4", Lang::Ja),
            ("ja;q=0,en;q=0.1", Lang::En),
            ("*;q=x,,;;", Lang::En),
        ] {
            assert_eq!(Lang::of_request("", header), expected, "{header}");
        }
    }

    #[test]
    fn a_choice_goes_before_the_browser() {
        assert_eq!(Lang::of_request("a=b; nenrin_lang=ja", "en"), Lang::Ja);
        assert_eq!(Lang::of_request("nenrin_lang=en", "ja"), Lang::En);
        assert_eq!(Lang::of_request("nenrin_lang=tlh", "ja"), Lang::Ja);
    }
}
