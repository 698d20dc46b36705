//! Kinds of changes, and how lists keep pages apart.

use nenrin_state::{PageChange, Site};
use nenrin_urls::CanonicalUrl;
use serde::Serialize;

/// The longest text that is searched for, in characters.
const TEXT_MAX_CHARS: usize = 200;

/// What happened to a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// Its first version.
    New,
    /// Another version.
    Changed,
    /// It is not there any more.
    Gone,
}

impl std::str::FromStr for ChangeKind {
    type Err = &'static str;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::from_word(word).ok_or("write new, changed or gone")
    }
}

impl ChangeKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::New, Self::Changed, Self::Gone];

    /// The word for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Changed => "changed",
            Self::Gone => "gone",
        }
    }

    /// The kind with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    pub(super) fn of(change: &PageChange) -> Self {
        match (&change.version, &change.previous) {
            (None, _) => Self::Gone,
            (Some(_), None) => Self::New,
            (Some(_), Some(_)) => Self::Changed,
        }
    }
}

/// A text as it is searched for.
pub fn searched(text: &str) -> String {
    text.trim().chars().take(TEXT_MAX_CHARS).collect::<String>().to_lowercase()
}

/// Whether this is a file that readers do not see for itself.
pub fn is_unseen_part(mime: &str) -> bool {
    let mime = mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    mime == "text/css"
        || mime.contains("javascript")
        || mime.contains("ecmascript")
        || mime.contains("font")
        || mime == "application/manifest+json"
}

/// The folder of a page that counts are made by: its server, where that is not the site's own, and the first
/// part of its path.
pub fn folder_of(site: &Site, url: &CanonicalUrl) -> String {
    let path = url.path();
    let first = path[1.min(path.len())..].find('/').map_or(1.min(path.len()), |end| end + 2);
    let own = site.conditions.tops.first().is_some_and(|top| top.server() == url.server());
    match own {
        true => path[..first].to_owned(),
        false => format!("{}{}", url.server().as_str(), &path[..first]),
    }
}
