//! A site and the conditions under which it is collected.

use nenrin_revisit::{CollectingWindow, RevisitSettings};
use nenrin_structure::RoundsBy;
use nenrin_urls::{CanonicalUrl, RenderedRecord, Scope};
use serde::{Deserialize, Serialize};

use crate::{
    IgnoredPart, Keeping, PagePatterns, Removal, SiteHeader, SiteId, SiteLabels, SiteRoad,
    SiteScripts,
};

/// When a site's pages are visited again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Schedule {
    /// Only when someone asks.
    Manual,
    /// All pages in one round after another, each beginning `period_s` after the last began.
    Rounds {
        /// Seconds from the beginning of a round to the next.
        period_s: i64,
    },
    /// Every page on its own schedule (paper 004).
    Continuous(RevisitSettings),
}

impl Schedule {
    /// How pages are revisited, where each has its own schedule.
    pub fn continuous(&self) -> Option<&RevisitSettings> {
        match self {
            Self::Continuous(settings) => Some(settings),
            _ => None,
        }
    }
}

/// Whether robots.txt is obeyed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum RobotsPolicy {
    /// robots.txt decides.
    Obey,
    /// robots.txt is not asked for, for a reason that is kept.
    Ignore {
        /// Who allowed it, or why it is right.
        reason: String,
    },
}

/// The conditions under which a site is collected: paper 001's table row, and ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteConditions {
    /// Where collecting begins. A top page that redirects adds its target here.
    pub tops: Vec<CanonicalUrl>,
    /// Which pages belong to the site.
    pub scope: Scope,
    /// Links followed from a top page; a top page has depth 1 (paper 000).
    pub depth: u32,
    /// The most pages visited in a round.
    pub max_pages: Option<u64>,
    /// Images, styles and scripts of a page are collected wherever they are.
    pub embeds: bool,
    /// When pages are visited again.
    pub schedule: Schedule,
    /// When the site may be asked; at any time if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<CollectingWindow>,
    /// Milliseconds between two requests to one server, at least; `None` takes the archive's.
    pub delay_ms: Option<u64>,
    /// Whether the hosts of the top pages may be at private and loopback addresses.
    pub allow_private: bool,
    /// Whether robots.txt is obeyed.
    pub robots: RobotsPolicy,
    /// How the site's own hints are used.
    #[serde(default)]
    pub hints: SiteHints,
    /// How much of the site is kept.
    #[serde(default, skip_serializing_if = "Keeping::is_everything")]
    pub keeping: Keeping,
    /// Which pages a round visits.
    #[serde(default, skip_serializing_if = "is_all")]
    pub rounds_by: RoundsBy,
    /// Which pages inside the scope are collected; all without any.
    #[serde(default, skip_serializing_if = "PagePatterns::is_empty")]
    pub pages: PagePatterns,
    /// Headers that are sent to the site's own servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<SiteHeader>,
    /// Parts of pages whose changes are noise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<IgnoredPart>,
    /// Group and tags.
    #[serde(default, skip_serializing_if = "SiteLabels::is_empty")]
    pub labels: SiteLabels,
    /// How the site is reached.
    #[serde(default, skip_serializing_if = "SiteRoad::is_usual")]
    pub road: SiteRoad,
    /// What is done for its scripts.
    #[serde(default, skip_serializing_if = "SiteScripts::is_nothing")]
    pub scripts: SiteScripts,
    /// Where visitors are led who are not logged in. The log-in itself is kept elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login_page: Option<CanonicalUrl>,
}

fn is_all(by: &RoundsBy) -> bool {
    !by.chooses()
}

/// How a site's sitemaps and feeds are used, and changes that only machines see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SiteHints {
    /// Whether sitemaps and feeds add pages and pull changed ones forward.
    pub signals: bool,
    /// Which changes drive the schedule.
    pub schedule_by: ScheduleBy,
}

impl Default for SiteHints {
    fn default() -> Self {
        Self { signals: true, schedule_by: ScheduleBy::Any }
    }
}

/// Which changes of a page drive its schedule; every version is kept either way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScheduleBy {
    /// Any other byte.
    #[default]
    Any,
    /// Only what a reader would call a change.
    Significant,
}

impl std::str::FromStr for ScheduleBy {
    type Err = &'static str;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "any" => Ok(Self::Any),
            "significant" => Ok(Self::Significant),
            _ => Err("write any or significant"),
        }
    }
}

impl SiteConditions {
    /// Whether a page is collected: inside the scope, and admitted by the patterns. A top page always
    /// is.
    pub fn collects(&self, url: &CanonicalUrl) -> bool {
        self.tops.contains(url) || self.scope.contains(&self.tops, url) && self.pages.admit(url)
    }

    /// Whether a page is not visited: the patterns leave it out although it is inside the scope, or it
    /// is a record of a rendering, which is on no server.
    pub fn leaves_out(&self, url: &CanonicalUrl) -> bool {
        RenderedRecord::is_one(url)
            || !self.pages.is_empty() && self.scope.contains(&self.tops, url) && !self.collects(url)
    }

    /// The headers for a request: only the site's own servers get them.
    pub fn headers_for(&self, url: &CanonicalUrl) -> &[SiteHeader] {
        if self.is_own(url) { &self.headers } else { &[] }
    }

    /// Whether a page is on one of the site's own servers. The others are images, scripts and the
    /// like that its pages embed.
    pub fn is_own(&self, url: &CanonicalUrl) -> bool {
        let servers = match self.scope {
            Scope::List | Scope::Prefix => Scope::Host,
            wider => wider,
        };
        servers.contains(&self.tops, url)
    }

    /// The depth of a site for which none is given. Old pages often hang on chains of lists (“next
    /// page”), each a link deeper, so that a small depth would lose them unseen. Endless sites are
    /// held by the recognition of traps, and by this depth at last.
    pub const DEFAULT_DEPTH: u32 = 100;

    /// The least that can be said of a site: its top pages, collected when asked.
    pub fn new(tops: Vec<CanonicalUrl>) -> Self {
        Self {
            tops,
            scope: Scope::Host,
            depth: Self::DEFAULT_DEPTH,
            max_pages: None,
            embeds: true,
            schedule: Schedule::Manual,
            windows: Vec::new(),
            delay_ms: None,
            allow_private: false,
            robots: RobotsPolicy::Obey,
            hints: SiteHints::default(),
            keeping: Keeping::default(),
            rounds_by: RoundsBy::default(),
            pages: PagePatterns::default(),
            headers: Vec::new(),
            ignored: Vec::new(),
            labels: SiteLabels::default(),
            road: SiteRoad::default(),
            scripts: SiteScripts::default(),
            login_page: None,
        }
    }

    /// Whether a page may be at a private or loopback address: only on the site's own hosts, because
    /// any page of the site could link to whatever else is in that network.
    pub fn allows_private(&self, url: &CanonicalUrl) -> bool {
        self.allow_private && self.tops.iter().any(|top| top.host() == url.host())
    }
}

/// A registered site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Site {
    /// Its number.
    pub id: SiteId,
    /// Its name, unique.
    pub name: String,
    /// How it is collected.
    pub conditions: SiteConditions,
    /// When it was registered.
    pub created_s: i64,
    /// When its last round began.
    pub collected_s: Option<i64>,
    /// Whether that round is not finished: under way, or cut short with its process.
    #[serde(skip)]
    pub round_open: bool,
    /// Whether collecting is paused.
    pub paused: bool,
    /// How it was removed, if it was.
    pub removed: Option<Removal>,
    /// Running totals.
    pub counts: SiteCounts,
}

/// Running totals of a site, kept with every commit so that no one has to count rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SiteCounts {
    /// Known pages.
    pub pages: u64,
    /// Visits made.
    pub visits: u64,
    /// Versions kept.
    pub versions: u64,
    /// Visits that failed or were refused.
    pub problems: u64,
    /// What a mirror of every visit would take.
    pub raw_bytes: u64,
}
