//! Watches: the parts of pages that people want messages about.

use nenrin_lang::Lang;
use nenrin_urls::CanonicalUrl;
use serde::{Deserialize, Serialize};

/// The number of a watch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WatchId(pub u32);

/// A part of a page that is looked at whenever the page has a new version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Watch {
    /// Its number; 0 before it is stored.
    #[serde(default)]
    pub id: WatchId,
    /// Its name for people; empty for none.
    #[serde(default)]
    pub name: String,
    /// The page.
    pub url: CanonicalUrl,
    /// The part of the page.
    pub part: WatchedPart,
    /// What is reported.
    pub on: WatchEvent,
    /// Whether it is not looked at for now.
    #[serde(default)]
    pub paused: bool,
    /// When it was made.
    #[serde(default)]
    pub created_s: i64,
    /// What was found last.
    #[serde(default)]
    pub last: Option<WatchFinding>,
    /// Why it cannot be evaluated any more, if it cannot.
    #[serde(default)]
    pub trouble: Option<WatchTrouble>,
}

impl Watch {
    /// The most watches of an archive.
    pub const MAX: usize = 1_000;
    /// The longest name and words.
    pub const TEXT_CHARS_MAX: usize = 300;

    /// What was found last, on one line of at most so many characters.
    pub fn found(&self, chars: usize) -> String {
        let text = self.last.as_ref().and_then(|last| last.text.as_deref()).unwrap_or("–");
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(chars) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line,
        }
    }

    /// The name, or the words or selector that it looks for.
    pub fn title(&self) -> String {
        let part = match &self.part {
            _ if !self.name.is_empty() => return self.name.clone(),
            WatchedPart::Page => String::new(),
            WatchedPart::Words(words) => format!("“{words}” – "),
            WatchedPart::Selector { selector, .. } => format!("{selector} – "),
        };
        format!("{part}{}", self.url.shown())
    }
}

/// Which part of a page is watched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum WatchedPart {
    /// The whole text that readers see.
    Page,
    /// The line that has these words.
    Words(String),
    /// The elements that a CSS selector names.
    Selector {
        /// The selector.
        selector: String,
        /// Which of them, from 1; 0 for all.
        #[serde(default)]
        nth: u32,
    },
}

/// What is reported.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WatchEvent {
    /// The part has another text, came or went.
    Changes,
    /// The part is there and was not.
    Appears,
    /// The part was there and is not.
    Vanishes,
    /// The first number of the part is now greater than this, and was not.
    Above(f64),
    /// The first number of the part is now less than this, and was not.
    Below(f64),
}

/// What was found in a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatchFinding {
    /// When the version was received.
    pub at_s: i64,
    /// The text of the part; `None` where it is not there.
    pub text: Option<String>,
}

/// Why a watch cannot be evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WatchTrouble {
    /// The page answers that it does not exist.
    PageGone,
    /// The page is an image or another file without text.
    NotText,
    /// The page is larger than what is read.
    TooLarge,
    /// The part is there no more, so it has no number to compare.
    PartGone,
    /// The part has no number.
    NoNumber,
    /// The version cannot be read from the store.
    Unreadable,
}

impl WatchTrouble {
    /// For people.
    pub fn text(self, lang: Lang) -> &'static str {
        let (en, ja) = match self {
            Self::PageGone => (
                "the page does not exist any more (404 or 410)",
                "ページが存在しなくなりました（404 または 410）",
            ),
            Self::NotText => {
                ("the page is not text any more", "ページがテキストではなくなりました")
            }
            Self::TooLarge => {
                ("the page is too large to be searched", "ページが大きすぎて調べられません")
            }
            Self::PartGone => (
                "the watched part is not on the page any more",
                "監視していた箇所がページにありません",
            ),
            Self::NoNumber => {
                ("the watched part has no number", "監視していた箇所に数値がありません")
            }
            Self::Unreadable => {
                ("the stored version cannot be read", "保存された版を読み取れません")
            }
        };
        lang.t(en, ja)
    }
}

/// What a watch reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatchHit {
    /// Its number, in the order of reports; 0 before it is stored.
    #[serde(default)]
    pub id: i64,
    /// The watch.
    pub watch: WatchId,
    /// The watch's title when it happened.
    pub title: String,
    /// The page.
    pub url: CanonicalUrl,
    /// When the version with it was received.
    pub at_s: i64,
    /// When the version before was received, if there was one.
    pub before_s: Option<i64>,
    /// The text before, if the part was there.
    pub before: Option<String>,
    /// The text now, if the part is there.
    pub after: Option<String>,
    /// Why the watch cannot be evaluated any more, if it is about that.
    pub trouble: Option<WatchTrouble>,
    /// Whether it was sent by e-mail, or was not to be.
    #[serde(default)]
    pub mailed: bool,
}

impl WatchHit {
    /// So many are kept, the newest.
    pub const KEPT: usize = 500;
    /// The longest text of a part that is stored and sent.
    pub const TEXT_BYTES_MAX: usize = 4_000;

    /// What happened, in a few words.
    pub fn what(&self, lang: Lang) -> &'static str {
        match (self.trouble, &self.before, &self.after) {
            (Some(_), ..) => lang.t("cannot be checked any more", "確認できなくなりました"),
            (None, None, Some(_)) => lang.t("appeared", "出現しました"),
            (None, Some(_), None) => lang.t("vanished", "消えました"),
            (None, ..) => lang.t("changed", "変わりました"),
        }
    }
}
