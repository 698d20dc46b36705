//! Why a page is visited sooner than its schedule says.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Lang;

/// Why a page is visited sooner than its schedule says: data, put into words where it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hint {
    /// This sitemap or feed says that it changed.
    AnnouncedBy(String),
    /// This page changed, and the page tends to change with it.
    ChangesWith(String),
    /// The scripts of this page, which was visited, ask for it.
    DataOf(String),
}

impl Hint {
    /// Why the page is due, in words. `otherwise` says why it would have been due without the hint.
    pub fn text(&self, lang: Lang, otherwise: &str) -> String {
        match (lang, self) {
            (Lang::En, _) => format!("visited sooner: {self}; otherwise {otherwise}"),
            (Lang::Ja, Self::AnnouncedBy(source)) => {
                format!("{source} の予告により前倒し。通常は：{otherwise}")
            }
            (Lang::Ja, Self::ChangesWith(page)) => {
                format!("{page} とともに変わることが多いため前倒し。通常は：{otherwise}")
            }
            (Lang::Ja, Self::DataOf(page)) => {
                format!("訪問した {page} が使うデータのため前倒し。通常は：{otherwise}")
            }
        }
    }

    /// The hint as its JSON text, as it is stored.
    pub fn to_json(&self) -> String {
        // Plain data always has a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The hint of a stored JSON text, if it is one.
    pub fn from_json(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AnnouncedBy(source) => write!(f, "announced by {source}"),
            Self::ChangesWith(page) => write!(f, "tends to change with {page}"),
            Self::DataOf(page) => write!(f, "{page} was visited, and its scripts ask for this"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_have_words_in_both_languages_and_come_back() {
        let feed = "http://e.com/feed".to_owned();
        for (hint, en, ja) in [
            (
                Hint::AnnouncedBy(feed.clone()),
                "visited sooner: announced by http://e.com/feed; otherwise x",
                "http://e.com/feed の予告により前倒し。通常は：x",
            ),
            (
                Hint::DataOf(feed.clone()),
                "visited sooner: http://e.com/feed was visited, and its scripts ask for this; otherwise x",
                "訪問した http://e.com/feed が使うデータのため前倒し。通常は：x",
            ),
            (
                Hint::ChangesWith(feed),
                "visited sooner: tends to change with http://e.com/feed; otherwise x",
                "http://e.com/feed とともに変わることが多いため前倒し。通常は：x",
            ),
        ] {
            assert_eq!(
                (hint.text(Lang::En, "x").as_str(), hint.text(Lang::Ja, "x").as_str()),
                (en, ja)
            );
            assert_eq!(Hint::from_json(&hint.to_json()), Some(hint));
        }
        assert_eq!(Hint::from_json("announced by nobody"), None);
    }
}
