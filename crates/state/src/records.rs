use std::{collections::BTreeMap, fmt};

use nenrin_revisit::{CollectingWindow, Found, KnownPage, RevisitSettings};
use nenrin_structure::RoundsBy;
use nenrin_urls::{CanonicalUrl, Scope, Server};
use serde::{Deserialize, Serialize};

use crate::{Estimate, Keeping, KeptStructure, Removal, Skips};

/// The number of a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SiteId(pub u32);

/// The number of a server, given when its first page becomes known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ServerId(pub u32);

/// The number of a page: its server's number above [`PageId::HASH_BITS`] bits of the URL's hash, so
/// that pages of a server lie together in every table and queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PageId(pub i64);

impl PageId {
    /// Bits below the server's number.
    pub const HASH_BITS: u32 = 39;

    /// The server of this page.
    pub fn server(self) -> ServerId {
        ServerId((self.0 >> Self::HASH_BITS) as u32)
    }
}

/// The first half of a content's digest: enough to tell same from changed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ContentMark(pub [u8; 16]);

impl fmt::Debug for ContentMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// What a visit found. Only the first three teach the revisit schedule; only `Changed` makes a
/// version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// New content, or the first.
    Changed,
    /// The same content was sent again.
    Same,
    /// The server said that nothing changed (304).
    NotModified,
    /// The server says that there is no such page (404, 410), or shows what it shows for pages that
    /// do not exist.
    Gone,
    /// Not got: robots.txt, scope or the address guard forbade it, or a guard's challenge came
    /// instead of the page.
    Refused,
    /// No usable answer.
    Failed,
}

impl Outcome {
    /// Every outcome, in the order of their stored numbers.
    pub const ALL: [Self; 6] =
        [Self::Changed, Self::Same, Self::NotModified, Self::Gone, Self::Refused, Self::Failed];

    /// The outcome as far as a schedule cares; only new content is a change.
    pub fn found(self) -> Found {
        match self {
            Self::Changed => Found::Changed,
            Self::Same | Self::NotModified => Found::Same,
            Self::Gone => Found::Gone,
            Self::Refused => Found::Refused,
            Self::Failed => Found::Failed,
        }
    }

    /// Whether the page was seen alive.
    pub fn is_seen(self) -> bool {
        matches!(self, Self::Changed | Self::Same | Self::NotModified)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Changed => "changed",
            Self::Same => "same",
            Self::NotModified => "not-modified",
            Self::Gone => "gone",
            Self::Refused => "refused",
            Self::Failed => "failed",
        })
    }
}

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
    /// Images, styles and scripts of a page are collected wherever they lie.
    pub embeds: bool,
    /// When to come again.
    pub schedule: Schedule,
    /// When the site may be asked; at any time if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<CollectingWindow>,
    /// Milliseconds between two requests to one server, at least; `None` takes the archive's.
    pub delay_ms: Option<u64>,
    /// Whether private and loopback addresses may be asked.
    pub allow_private: bool,
    /// Whether robots.txt is obeyed.
    pub robots: RobotsPolicy,
    /// What is made of the site's own hints.
    #[serde(default)]
    pub hints: SiteHints,
    /// How much of the site is kept.
    #[serde(default, skip_serializing_if = "Keeping::is_everything")]
    pub keeping: Keeping,
    /// Which pages a round visits.
    #[serde(default, skip_serializing_if = "is_all")]
    pub rounds_by: RoundsBy,
}

fn is_all(by: &RoundsBy) -> bool {
    !by.chooses()
}

/// What is made of a site's sitemaps and feeds, and of changes that only machines see.
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

impl SiteConditions {
    /// The depth of a site of which none is told. Old pages often hang on chains of lists (“next
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
        }
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
    pub troubles: u64,
    /// What a mirror of every visit would take.
    pub raw_bytes: u64,
}

/// One pass over a site; a row of the collection log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Round {
    /// Its number.
    pub id: i64,
    /// The site.
    pub site: SiteId,
    /// When it began.
    pub started_s: i64,
    /// When it was finished, if it is.
    pub ended_s: Option<i64>,
    /// What it found.
    pub counts: RoundCounts,
}

/// What a round found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundCounts {
    /// Pages that became known.
    pub new_pages: u64,
    /// Visits with new content.
    pub changed: u64,
    /// Visits with the same content sent again.
    pub same: u64,
    /// Visits answered by 304.
    pub not_modified: u64,
    /// Visits to pages that are gone.
    pub gone: u64,
    /// Visits that were not allowed.
    pub refused: u64,
    /// Visits without a usable answer.
    pub failed: u64,
    /// Bytes of bodies received.
    pub received_bytes: u64,
    /// Bytes added to packs.
    pub stored_bytes: u64,
    /// Links not followed because they look like a trap.
    #[serde(default)]
    pub trapped: u64,
    /// Pages that were not worth a visit in a round that chooses.
    #[serde(default)]
    pub skipped: u64,
}

impl RoundCounts {
    /// All visits.
    pub fn visits(&self) -> u64 {
        self.changed + self.same + self.not_modified + self.gone + self.refused + self.failed
    }

    /// Counts one visit.
    pub fn count(&mut self, outcome: Outcome) {
        *match outcome {
            Outcome::Changed => &mut self.changed,
            Outcome::Same => &mut self.same,
            Outcome::NotModified => &mut self.not_modified,
            Outcome::Gone => &mut self.gone,
            Outcome::Refused => &mut self.refused,
            Outcome::Failed => &mut self.failed,
        } += 1;
    }

    /// Adds another round's counts.
    pub fn add(&mut self, other: &Self) {
        self.new_pages += other.new_pages;
        self.changed += other.changed;
        self.same += other.same;
        self.not_modified += other.not_modified;
        self.gone += other.gone;
        self.refused += other.refused;
        self.failed += other.failed;
        self.received_bytes += other.received_bytes;
        self.stored_bytes += other.stored_bytes;
        self.trapped += other.trapped;
        self.skipped += other.skipped;
    }
}

/// A copy of a server's robots.txt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RobotsCopy {
    /// When the last good answer (2xx or 4xx) came.
    pub good_at_s: i64,
    /// Its status.
    pub status: u16,
    /// Its body; empty unless 2xx.
    pub body: Vec<u8>,
}

/// What is known of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerRecord {
    /// Its number.
    pub id: ServerId,
    /// Its name.
    pub server: Server,
    /// The last good robots.txt.
    pub robots: Option<RobotsCopy>,
    /// When robots.txt was last asked for, with or without success.
    pub robots_tried_s: Option<i64>,
    /// When the server was last asked for anything.
    pub asked_ms: Option<i64>,
    /// Until when it is left alone.
    pub resting_until_ms: Option<i64>,
    /// Troubles in a row: doubles the rest.
    pub strikes: u32,
    /// What was learnt of it, by name: JSON that the state only keeps.
    pub notes: BTreeMap<String, String>,
    /// How far its pages' intervals are stretched because it cannot keep up; 100 is not at all.
    pub stretch_percent: u32,
}

/// When a server was asked and how it bore it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerPace {
    /// The server.
    pub server: ServerId,
    /// When the last request ended.
    pub asked_ms: i64,
    /// Until when it is left alone.
    pub resting_until_ms: Option<i64>,
    /// Troubles in a row.
    pub strikes: u32,
    /// How far its pages' intervals are stretched; 100 is not at all.
    pub stretch_percent: u32,
}

/// All that is known of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRecord {
    /// Its number.
    pub id: PageId,
    /// Its place in the order of discovery; see [`FoundPage`].
    pub nth: u32,
    /// Its URL.
    pub url: CanonicalUrl,
    /// The site that keeps its schedule: the one that found it first, or else the first of those
    /// that know it and let every page have its own.
    pub site: SiteId,
    /// When it became known.
    pub discovered_s: i64,
    /// How important the crawl order thought it at its last visit, in percent of the mean of all
    /// known pages; 0 if nobody said.
    pub importance_percent: u32,
    /// What its schedule believed of it after its last visit.
    pub estimate: Option<Estimate>,
    /// When it was last tried.
    pub visited_s: Option<i64>,
    /// What the last visit found.
    pub outcome: Option<Outcome>,
    /// When it is to be visited again, if it has a time of its own.
    pub due_s: Option<i64>,
    /// Visits made.
    pub visits: u32,
    /// Visits that saw new content.
    pub changes: u32,
    /// Of these, the ones that were not mere noise.
    pub significant: u32,
    /// Visits in a row that did not see it.
    pub failures: u32,
    /// The validators of the last version.
    pub etag: Option<String>,
    /// The validators of the last version.
    pub last_modified: Option<String>,
    /// Mark of the last content.
    pub mark: Option<ContentMark>,
    /// Size of the last content.
    pub bytes: u64,
    /// The store's number of the last version.
    pub version: Option<u64>,
    /// The revisit policy's memory, opaque here.
    pub history: Vec<u8>,
}

impl PageRecord {
    /// A page that became known and was not tried yet.
    pub(crate) fn unvisited(
        (id, nth): (PageId, u32),
        url: CanonicalUrl,
        site: SiteId,
        discovered_s: i64,
        due_s: Option<i64>,
    ) -> Self {
        Self {
            id,
            nth,
            url,
            site,
            discovered_s,
            importance_percent: 0,
            estimate: None,
            visited_s: None,
            outcome: None,
            due_s,
            visits: 0,
            changes: 0,
            significant: 0,
            failures: 0,
            etag: None,
            last_modified: None,
            mark: None,
            bytes: 0,
            version: None,
            history: Vec::new(),
        }
    }

    /// Its importance, if it is known; the average known page has 1.
    pub fn importance(&self) -> Option<f64> {
        (self.importance_percent > 0).then(|| f64::from(self.importance_percent) / 100.0)
    }

    /// The page as its schedule sees it.
    pub fn known(&self) -> KnownPage<'_> {
        KnownPage {
            server: u64::from(self.id.server().0),
            path: self.url.path_and_query(),
            history: &self.history,
            found: self.outcome.map(Outcome::found),
            failures: self.failures,
            importance_percent: if self.importance_percent == 0 {
                100
            } else {
                self.importance_percent
            },
        }
    }
}

/// A page that is to be visited for a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuePage {
    /// The page.
    pub page: PageRecord,
    /// The site for which it is visited.
    pub site: SiteId,
    /// Its depth in that site.
    pub depth: u32,
    /// Redirects followed to reach it.
    pub hops: u32,
    /// Whether a signal pulled it forward.
    pub pulled: bool,
}

/// A hint that a page changed brings its next visit nearer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullForward {
    /// The page.
    pub page: PageId,
    /// When it is worth a visit if the hint is right.
    pub to_s: i64,
    /// How likely the hint is right, in percent: this share of the wait beyond `to_s` falls away.
    pub odds_percent: u8,
    /// Where the hint came from, for the person who asks why the page is due.
    pub why: String,
}

/// A page that a visit made known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discovered {
    /// Its URL.
    pub url: CanonicalUrl,
    /// Its depth in the visiting site.
    pub depth: u32,
    /// Redirects followed to reach it.
    pub hops: u32,
    /// When it is due, if it has a time of its own.
    pub due_s: Option<i64>,
}

/// What a visit changes in the page's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageUpdate {
    /// The validators to send next time.
    pub etag: Option<String>,
    /// The validators to send next time.
    pub last_modified: Option<String>,
    /// Mark of the content last seen.
    pub mark: Option<ContentMark>,
    /// Size of the content last seen.
    pub bytes: u64,
    /// The revisit policy's memory.
    pub history: Vec<u8>,
    /// When to come again, if the page has a time of its own.
    pub due_s: Option<i64>,
    /// Visits in a row that did not see the page.
    pub failures: u32,
}

/// A version of a page, in the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VersionRow {
    /// When it was received.
    pub at_s: i64,
    /// The store's number.
    pub version: u64,
    /// HTTP status.
    pub status: u16,
    /// Content type without parameters.
    pub mime: String,
    /// Size of the body as received.
    pub bytes: u64,
    /// How much of the content changed against the version before, in thousandths; 0 is noise that
    /// no reader would call a change. `None` where it was not compared.
    pub changed_permille: Option<u16>,
}

impl VersionRow {
    /// Whether the change to this version is one for readers; what was not compared counts as one.
    pub fn is_significant(&self) -> bool {
        self.changed_permille != Some(0)
    }
}

/// All that one visit makes true, committed at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisitCommit {
    /// The page.
    pub page: PageId,
    /// The site for which it was visited.
    pub site: SiteId,
    /// The round, if it belongs to one.
    pub round: Option<i64>,
    /// When.
    pub at_s: i64,
    /// What was found.
    pub outcome: Outcome,
    /// HTTP status, 0 without an answer.
    pub status: u16,
    /// Why, for outcomes that need a reason.
    pub detail: Option<String>,
    /// From the request to the last byte.
    pub elapsed_ms: u32,
    /// Bytes of the body received.
    pub received_bytes: u64,
    /// Bytes added to packs.
    pub stored_bytes: u64,
    /// The new version, if there is one; its content is durable already.
    pub version: Option<VersionRow>,
    /// The page's new record.
    pub update: PageUpdate,
    /// Pages found by this visit.
    pub discovered: Vec<Discovered>,
    /// Top pages that the site gains (a top page was redirected).
    pub new_tops: Vec<CanonicalUrl>,
    /// Links of this visit that were not followed because they look like a trap.
    pub trapped: u64,
    /// Where the page's links lead, inside the site or not, if the visit could tell. Those that
    /// lead to known pages are kept, for the crawl order.
    pub links: Option<Vec<CanonicalUrl>>,
    /// How important the crawl order thinks the page, in percent of the mean; `None` leaves what
    /// is known.
    pub importance_percent: Option<u32>,
    /// What the page's schedule believes of it now; `None` leaves what is known. A page that is gone
    /// has no rate.
    pub estimate: Option<Estimate>,
}

/// A known page by its place in the order of discovery.
///
/// Places are counted from 1 without gaps: whoever keeps something for every page in memory needs
/// no map from page numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundPage {
    /// Its place.
    pub nth: u32,
    /// Its server.
    pub server: ServerId,
    /// Whether it was visited, and what is known of its links.
    pub reading: Reading,
}

/// How far a page has been read for links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// It was never visited.
    New,
    /// It was visited and nothing was got.
    Tried,
    /// It has a version whose links were never read: it came from elsewhere, or an earlier build.
    Unread,
    /// Its links are kept.
    Read,
}

/// The links of a page, as far as they lead to known pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageLinks {
    /// The page's place in the order of discovery.
    pub nth: u32,
    /// The places of the pages that it links to, ascending; `None` if they were never read.
    pub targets: Option<Vec<u32>>,
    /// Its last version and URL, to read them from.
    pub page: PageId,
    /// The URL.
    pub url: CanonicalUrl,
    /// The version, if there is one.
    pub version: Option<u64>,
}

/// Links that a commit made known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Linked {
    /// The page's place in the order of discovery.
    pub nth: u32,
    /// The pages that it links to now and did not before, ascending.
    pub targets: Vec<u32>,
    /// How many pages it links to.
    pub links: usize,
    /// Whether its links were known before.
    pub again: bool,
}

/// What a commit made true, for whoever goes on from there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Committed {
    /// Pages that became known, or nearer to a top page.
    pub new_pages: Vec<NewPage>,
    /// Links that became known.
    pub linked: Vec<Linked>,
}

/// Something learnt of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerNote {
    /// The server.
    pub server: ServerId,
    /// What it is about.
    pub name: String,
    /// What was learnt, as JSON; empty forgets it.
    pub value: String,
}

/// Pages that a believed sitemap or feed says have changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announced {
    /// When it was read.
    pub at_s: i64,
    /// The pages, and when each is said to have changed. One that is not known, or was visited
    /// since, is passed over.
    pub pages: Vec<(CanonicalUrl, i64)>,
    /// How likely it is right, in percent.
    pub odds_percent: u8,
    /// Where it stands, for the person who asks why a page is due.
    pub why: String,
}

/// Pages that became known to a site outside a visit: a robots.txt named a sitemap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPages {
    /// The site.
    pub site: SiteId,
    /// When.
    pub at_s: i64,
    /// The pages.
    pub pages: Vec<Discovered>,
}

/// The end of a round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundEnd {
    /// The round.
    pub round: i64,
    /// The site.
    pub site: SiteId,
    /// When.
    pub at_s: i64,
    /// The pages that it left out, if it chose.
    pub skips: Option<Skips>,
}

/// One element of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A visit was made.
    Visit(Box<VisitCommit>),
    /// A visit of another collection was taken in. If it lies before the page's last visit, it is
    /// counted, and what is known of the page stays what the last visit found.
    Imported(Box<VisitCommit>),
    /// A server was asked for its robots.txt. Without a copy the last good one stays.
    Robots {
        /// The server.
        server: ServerId,
        /// When it was asked.
        tried_s: i64,
        /// What it answered, if the answer counts.
        copy: Option<RobotsCopy>,
    },
    /// A server was asked for anything.
    Pace(ServerPace),
    /// Something was learnt of a server.
    Note(ServerNote),
    /// Pages became known outside a visit.
    Found(FoundPages),
    /// A sitemap or feed brings its pages' next visits nearer, if they have times of their own.
    Announced(Announced),
    /// A round was finished.
    RoundEnd(RoundEnd),
    /// A page with a time of its own is to be visited at another, without a visit now.
    Due {
        /// The page.
        page: PageId,
        /// Its new time.
        due_s: i64,
    },
    /// A hint brings a page's next visit nearer, if it has a time of its own.
    PullForward(PullForward),
    /// The links of a page's last version were read, outside a visit.
    Links {
        /// The page.
        page: PageId,
        /// Where they lead.
        links: Vec<CanonicalUrl>,
    },
    /// The crawl order thinks otherwise of some pages than when they were last visited: places in
    /// the order of discovery and importance in percent of the mean.
    Weighed(Vec<(u32, u32)>),
    /// What the crawl order knows, in place of what it knew.
    Order(Vec<u8>),
    /// What rounds learnt of a site's structure.
    Structure(KeptStructure),
    /// What a site's pages share, for its revisit policy.
    Shared {
        /// The site.
        site: SiteId,
        /// Opaque here.
        bytes: Vec<u8>,
    },
}

/// A page that a commit made known or brought nearer to a top page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPage {
    /// The page, ready to be visited.
    pub due: DuePage,
}

/// A visit, in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VisitRow {
    /// Its place in the log; larger is later.
    pub id: i64,
    /// When.
    pub at_s: i64,
    /// The page.
    pub url: CanonicalUrl,
    /// The site for which it was visited.
    pub site: SiteId,
    /// What was found.
    pub outcome: Outcome,
    /// HTTP status, 0 without an answer.
    pub status: u16,
    /// Why.
    pub detail: Option<String>,
    /// From the request to the last byte.
    pub elapsed_ms: u32,
    /// Bytes of the body received.
    pub received_bytes: u64,
}

/// Totals of the whole state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct StateStats {
    /// Registered sites.
    pub sites: u64,
    /// Known servers.
    pub servers: u64,
    /// Known pages.
    pub pages: u64,
    /// Visits made.
    pub visits: u64,
    /// Versions kept.
    pub versions: u64,
    /// What a mirror of every visit would take.
    pub raw_bytes: u64,
    /// Bytes of the database on disk.
    pub file_bytes: u64,
}
