use nenrin_lang::{IncidentDetail, serialize_incident_detail};
use serde::{Deserialize, Serialize};

use crate::SiteId;

/// Something that people should know of: no page changed, but a site is not collected as it should
/// be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Incident {
    /// The same wherever it is shown.
    pub id: String,
    /// What happened.
    pub event: IncidentKind,
    /// When it began, in seconds since the epoch.
    pub at_s: i64,
    /// Since when it is over, if it is.
    pub over_s: Option<i64>,
    /// The site; `None` where the whole archive is meant.
    pub site: Option<SiteId>,
    /// Its name.
    pub name: String,
    /// What it is about, if there is more to say. It may hold what came from the web.
    #[serde(flatten, serialize_with = "serialize_incident_detail")]
    pub detail: Option<IncidentDetail>,
    /// What it is about, for the process that has to notice its end; opaque here.
    #[serde(skip)]
    pub cause: String,
}

impl Incident {
    /// So many are kept, the newest.
    pub const KEPT: usize = 200;
}

/// What can happen to a site, besides a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IncidentKind {
    /// Several visits in a row failed.
    Failing,
    /// Several visits in a row were turned away.
    Blocked,
    /// Collecting paused because the site or the archive has reached its quota.
    Quota,
    /// A server cannot keep up: its pages wait longer than their schedules say.
    Overflow,
    /// A sitemap or feed that was followed does not answer any more.
    SignalLost,
}

impl IncidentKind {
    /// Every kind.
    pub const ALL: [Self; 5] =
        [Self::Failing, Self::Blocked, Self::Quota, Self::Overflow, Self::SignalLost];

    /// Its word, as it is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failing => "failing",
            Self::Blocked => "blocked",
            Self::Quota => "quota",
            Self::Overflow => "overflow",
            Self::SignalLost => "signal-lost",
        }
    }

    /// The kind with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}
