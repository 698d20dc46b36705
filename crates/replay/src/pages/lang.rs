use axum::http::{HeaderMap, header};

/// The languages of pages that compare versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lang {
    En,
    Ja,
}

impl Lang {
    /// The one that a reader's browser names first.
    pub(crate) fn preferred(headers: &HeaderMap) -> Self {
        let wanted = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
        let tags = wanted.unwrap_or_default().split(',').take(32);
        let known = |tag: &str| match tag.trim().get(..2) {
            Some("ja") => Some(Self::Ja),
            Some("en") => Some(Self::En),
            _ => None,
        };
        tags.into_iter().find_map(known).unwrap_or(Self::En)
    }

    /// The text in this language.
    pub(crate) fn t<'a>(self, en: &'a str, ja: &'a str) -> &'a str {
        match self {
            Self::En => en,
            Self::Ja => ja,
        }
    }

    /// The code, as in `<html lang>`.
    pub(crate) fn code(self) -> &'static str {
        self.t("en", "ja")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_language_that_is_spoken_here_is_taken() {
        for (wanted, lang) in [
            ("ja,en;q=0.5", Lang::Ja),
            ("fr, ja-JP;q=0.9, en;q=0.8", Lang::Ja),
            ("en-GB,ja;q=0.5", Lang::En),
            ("*", Lang::En),
            ("", Lang::En),
        ] {
            let headers =
                HeaderMap::from_iter([(header::ACCEPT_LANGUAGE, wanted.parse().unwrap())]);
            assert_eq!(Lang::preferred(&headers), lang, "{wanted}");
        }
        assert_eq!(Lang::preferred(&HeaderMap::new()), Lang::En);
    }
}
