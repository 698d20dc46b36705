use serde::{Deserialize, Serialize};

use crate::SiteId;

/// Removing a site is three different things; each includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Removal {
    /// Out of the lists; collecting stops; what was kept can still be opened by its address.
    Hide,
    /// Nobody can open it any more; it is still stored.
    Deny,
    /// Its content is deleted from storage. This cannot be undone.
    Delete,
}

impl Removal {
    /// Every removal, the mildest first.
    pub const ALL: [Self; 3] = [Self::Hide, Self::Deny, Self::Delete];

    /// Its word, as it is stored, shown and typed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hide => "hide",
            Self::Deny => "deny",
            Self::Delete => "delete",
        }
    }

    /// The removal with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|removal| removal.as_str() == word)
    }
}

impl std::str::FromStr for Removal {
    type Err = &'static str;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::from_word(word).ok_or("write hide, deny or delete")
    }
}

/// A removal as it was done, or undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RemovalRow {
    /// The site.
    pub site: SiteId,
    /// What was done to it; `None` where it was restored.
    pub removal: Option<Removal>,
    /// Why, as the person who did it said.
    pub reason: String,
    /// When it was done, in seconds since the epoch.
    pub at_s: i64,
}
