/// The languages of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Lang {
    #[default]
    En,
    Ja,
}

impl Lang {
    /// The text in this language. Both stand side by side where they are used, so that a change of
    /// one is seen beside the other.
    pub(crate) fn t<'a>(self, en: &'a str, ja: &'a str) -> &'a str {
        match self {
            Self::En => en,
            Self::Ja => ja,
        }
    }

    /// The code, as in `<html lang>`.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Ja => "ja",
        }
    }

    pub(crate) fn from_code(code: &str) -> Option<Self> {
        [Self::En, Self::Ja].into_iter().find(|lang| lang.code() == code)
    }

    /// The language preferred among those of the interface, by an `Accept-Language` header.
    pub(crate) fn preferred(accept_language: &str) -> Self {
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
            assert_eq!(Lang::preferred(header), expected, "{header}");
        }
    }
}
