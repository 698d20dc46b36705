//! What a commit is made of, and what it makes true.

use nenrin_lang::Hint;
use nenrin_urls::CanonicalUrl;

use crate::{
    Discovered, Estimate, KeptStructure, Linked, Need, NewPage, Nth, NumberedMail, PageId,
    PartitionId, RobotsCopy, RoundEnd, ServerId, ServerNote, ServerPace, SiteId, VersionId,
    VisitCommit,
};

/// A hint that a page changed brings its next visit nearer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullForward {
    /// The page.
    pub page: PageId,
    /// When it is worth a visit if the hint is right.
    pub to_s: i64,
    /// How likely the hint is right, in percent: this share of the wait beyond `to_s` falls away.
    pub odds_percent: u8,
    /// Where the hint came from.
    pub hint: Hint,
}

/// What a commit made true.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Committed {
    /// Pages that became known, or nearer to a top page.
    pub new_pages: Vec<NewPage>,
    /// Links that became known.
    pub linked: Vec<Linked>,
    /// Pages that got shares of scores from other partitions, and all that each got so far, in
    /// millionths.
    pub received: Vec<(Nth, u64)>,
    /// Versions found in packs that the index did not have.
    pub adopted: u64,
}

impl Change {
    /// The visit, if it is one.
    pub fn visit(&self) -> Option<&VisitCommit> {
        match self {
            Self::Visit(visit) => Some(visit),
            _ => None,
        }
    }
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
    /// Where it was read.
    pub hint: Hint,
}

/// Pages that became known to a site outside a visit: a robots.txt named a sitemap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPages {
    /// The site.
    pub site: SiteId,
    /// When they were found, in seconds since the epoch.
    pub at_s: i64,
    /// The pages.
    pub pages: Vec<Discovered>,
}

/// What visits that were made elsewhere taught of a page, after they were committed. If the page was
/// visited since the last of them, what that visit taught holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageLessons {
    /// The page.
    pub page: PageId,
    /// When the last of the visits was made.
    pub until_s: i64,
    /// The revisit policy's memory.
    pub history: Vec<u8>,
    /// Visits in a row that did not see the page.
    pub failures: u32,
    /// When to visit it next; `None` leaves it as it is.
    pub due_s: Option<i64>,
    /// What the schedule believes of the page now.
    pub estimate: Option<Estimate>,
    /// Versions that were compared with the ones before them, and how much of each changed, in
    /// thousandths.
    pub compared: Vec<(VersionId, u16)>,
}

/// One element of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A visit was made, by us or by another collection.
    Visit(Box<VisitCommit>),
    /// What visits that were made elsewhere taught of a page.
    Lessons(Box<PageLessons>),
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
    /// The importance of some pages changed since their last visit: discovery numbers and
    /// importance in percent of the mean.
    Weighed(Vec<(Nth, u32)>),
    /// What the crawl order knows, in place of what it knew.
    Order {
        /// Opaque here.
        bytes: Vec<u8>,
        /// Pages whose score from other partitions is in it now, and how much, in millionths.
        received: Vec<(Nth, u64)>,
        /// Pages that handed score on since it was last kept, and what each of their links got, in
        /// millionths. It leaves for the links to other partitions, so that a crash neither loses it
        /// nor sends it twice.
        handed_on: Vec<(Nth, u64)>,
    },
    /// What the pages of a site, or of all sites, in this partition ask for on a day; what was said
    /// first holds.
    Need {
        /// The site; none means the whole archive.
        site: Option<SiteId>,
        /// The day, in days since the epoch.
        day: i64,
        /// What they ask for.
        need: Need,
    },
    /// The blocks that a page has and that others may share. It goes before the visit that saw them.
    Blocks {
        /// The page.
        page: PageId,
        /// Its blocks; of a page without any, nothing is kept.
        blocks: nenrin_structure::PageFragments,
    },
    /// What rounds learnt of a site's structure.
    Structure(KeptStructure),
    /// Mail of another partition was read. What was taken in before is passed over.
    MailTaken {
        /// The sender.
        from: PartitionId,
        /// The mail, in the order of its numbers.
        mail: Vec<NumberedMail>,
    },
    /// Mail was taken in by its receiver, so that it need not be kept any longer.
    MailDelivered {
        /// The receiver.
        to: PartitionId,
        /// The number of the last that was taken in.
        upto: u64,
    },
    /// What a site's pages share, for its revisit policy.
    Shared {
        /// The site.
        site: SiteId,
        /// Opaque here.
        bytes: Vec<u8>,
    },
}
