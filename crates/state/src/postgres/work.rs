//! The rows that one transaction works on. They are loaded before the rules are asked (`loads.rs`),
//! changed in memory, and written at the end (`finish.rs`): each time with statements that are sent
//! together.

use std::collections::{BTreeMap, BTreeSet};

use nenrin_structure::PageFragments;
use nenrin_urls::CanonicalUrl;
use tokio_postgres::Row;

use super::{
    engine::{Refusal, Settings, Step, Tx},
    rows::{self, Read, get, number},
};
use crate::{
    Mail, Need, Nth, PageId, PageRecord, PartitionId, Reading, RobotsCopy, RoundId, ServerId,
    ServerPace, SiteConditions, SiteId, StateError, VersionId, VersionRow, VisitCommit,
    rules::{FarLink, PageBefore, Part, Sums, Wait},
};

/// Neighbouring numbers tried for pages whose hashes collide.
pub(super) const PROBES: i64 = 8;
/// Where pages wait that a visit found and that were not visited yet.
pub(super) const NEW_BUCKET: i64 = i64::MAX - 1;

/// A page with what only the engine knows of it.
pub(super) struct PageRow {
    pub(super) page: PageRecord,
    pub(super) reading: Reading,
    pub(super) turn: u32,
    /// Where it waits, if it has a time of its own.
    pub(super) bucket: Option<i64>,
    /// Its URL's key, while it has versions that may be read.
    pub(super) key: Option<String>,
    /// The site whose removal denies it.
    pub(super) denied: Option<SiteId>,
    /// The hint that pulled it forward, as JSON.
    pub(super) pulled: Option<String>,
    pub(super) is_changed: bool,
}

/// The columns of a [`PageRow`] after those of a page.
pub(super) const MORE: &str = "p.reading, p.turn, p.bucket, p.key, p.denied, p.pulled";

impl PageRow {
    pub(super) fn read(row: &Row) -> Read<Self> {
        Ok(Self {
            page: rows::page(row)?,
            reading: rows::reading(row, 21)?,
            turn: number(row, 22)?,
            bucket: get(row, 23)?,
            key: get(row, 24)?,
            denied: get::<Option<i32>>(row, 25)?.map(|site| SiteId(site as u32)),
            pulled: get(row, 26)?,
            is_changed: false,
        })
    }

    pub(super) fn new(page: PageRecord) -> Self {
        Self {
            page,
            reading: Reading::New,
            turn: 0,
            bucket: None,
            key: None,
            denied: None,
            pulled: None,
            is_changed: true,
        }
    }

    /// The page as visits find it.
    pub(super) fn before(&self) -> PageBefore {
        let PageRecord { due_s, visited_s, version, nth, .. } = self.page;
        PageBefore { due_s, visited_s, version, nth, worth: self.part() }
    }

    /// Its part in the sums.
    pub(super) fn part(&self) -> Part {
        let PageRecord { site, importance_percent, estimate, .. } = self.page;
        Part { site, importance_percent, estimate, turn: self.turn }
    }

    /// It waits for its time, if it has one.
    pub(super) fn wait_for_time(&mut self, bucket_s: i64) {
        self.bucket = self.page.due_s.map(|due_s| due_s.div_euclid(bucket_s));
    }

    /// It gets a time of its own.
    pub(super) fn enter_queue(&mut self, wait: Wait, bucket_s: i64) {
        match wait {
            Wait::Time => self.wait_for_time(bucket_s),
            Wait::Turn => self.bucket = Some(NEW_BUCKET),
        }
    }

    /// Its time changed. A page that was never visited waits for its turn, not for a time.
    pub(super) fn time_changed(&mut self, bucket_s: i64) {
        if self.bucket != Some(NEW_BUCKET) {
            self.wait_for_time(bucket_s);
        }
    }

    pub(super) fn set_reading(&mut self, to: Reading) {
        if rows::reading_number(self.reading) < rows::reading_number(to) {
            self.reading = to;
        }
    }
}

/// How a site knows a page.
#[derive(Clone, Copy)]
pub(super) struct Member {
    pub(super) depth: u32,
    pub(super) hops: u32,
    pub(super) is_changed: bool,
}

/// What was read of a page's links, and whether that changed.
pub(super) struct Kept<T> {
    pub(super) targets: Vec<T>,
    pub(super) is_changed: bool,
}

/// A site's conditions.
pub(super) struct SiteRow {
    pub(super) conditions: SiteConditions,
    pub(super) is_changed: bool,
}

/// Mail to a partition and from it.
#[derive(Default)]
pub(super) struct Mailbox {
    pub(super) sent: u64,
    pub(super) read: u64,
    pub(super) mail: Vec<Mail>,
    pub(super) is_changed: bool,
}

/// The rows of one transaction.
pub(super) struct Work<'t, 'l> {
    pub(super) t: &'t mut Tx<'l>,
    pub(super) settings: Settings,
    pub(super) sites: BTreeMap<SiteId, SiteRow>,
    pub(super) servers: BTreeMap<String, ServerId>,
    pub(super) new_servers: Vec<(ServerId, String)>,
    pub(super) pages: BTreeMap<PageId, PageRow>,
    pub(super) by_nth: BTreeMap<Nth, PageId>,
    pub(super) members: BTreeMap<(SiteId, PageId), Member>,
    /// Pages tried in a round.
    pub(super) tried: BTreeMap<(SiteId, PageId), RoundId>,
    pub(super) links: BTreeMap<Nth, Kept<Nth>>,
    pub(super) far_links: BTreeMap<Nth, Kept<FarLink>>,
    pub(super) mailboxes: BTreeMap<PartitionId, Mailbox>,
    pub(super) visits: Vec<(PageId, VisitCommit)>,
    pub(super) versions: BTreeMap<(PageId, i64, VersionId), VersionRow>,
    /// Versions that are listed already, of those found in packs.
    pub(super) listed: BTreeSet<(PageId, i64, VersionId)>,
    pub(super) newest_s: BTreeMap<PageId, i64>,
    pub(super) pruning: BTreeSet<VersionId>,
    pub(super) gone: BTreeSet<(PageId, i64)>,
    /// Versions that were not compared with the one before yet.
    pub(super) uncompared: BTreeSet<(PageId, VersionId)>,
    pub(super) compared: BTreeMap<(PageId, VersionId), u16>,
    pub(super) turns: BTreeMap<u32, u64>,
    /// Shares of scores by page, with the hash of its URL.
    pub(super) received: BTreeMap<Nth, (u64, u64)>,
    /// Shares of pages that had some before, by the hashes of their URLs.
    pub(super) received_more: BTreeMap<u64, u64>,
    /// What pages had got before, with the hashes of their URLs.
    pub(super) received_before: BTreeMap<Nth, (u64, u64)>,
    /// What partitions ask for on a day, of a site; and what of that is new.
    pub(super) asked_for: BTreeSet<(u32, i64, PartitionId)>,
    pub(super) new_needs: Vec<(u32, i64, PartitionId, Need)>,
    /// Pages that no site knew before.
    pub(super) entered: BTreeSet<PageId>,
    pub(super) robots: BTreeMap<ServerId, (i64, Option<RobotsCopy>)>,
    pub(super) paces: BTreeMap<ServerId, ServerPace>,
    pub(super) notes: BTreeMap<(ServerId, String), String>,
    pub(super) blocks: BTreeMap<PageId, PageFragments>,
    pub(super) sums: Sums,
}

impl<'t, 'l> Work<'t, 'l> {
    /// No rows yet.
    pub(super) fn new(t: &'t mut Tx<'l>) -> Self {
        let settings = t.settings;
        Self {
            t,
            settings,
            sites: BTreeMap::new(),
            servers: BTreeMap::new(),
            new_servers: Vec::new(),
            pages: BTreeMap::new(),
            by_nth: BTreeMap::new(),
            members: BTreeMap::new(),
            tried: BTreeMap::new(),
            links: BTreeMap::new(),
            far_links: BTreeMap::new(),
            mailboxes: BTreeMap::new(),
            visits: Vec::new(),
            versions: BTreeMap::new(),
            listed: BTreeSet::new(),
            newest_s: BTreeMap::new(),
            pruning: BTreeSet::new(),
            gone: BTreeSet::new(),
            uncompared: BTreeSet::new(),
            compared: BTreeMap::new(),
            turns: BTreeMap::new(),
            received: BTreeMap::new(),
            received_more: BTreeMap::new(),
            received_before: BTreeMap::new(),
            asked_for: BTreeSet::new(),
            new_needs: Vec::new(),
            entered: BTreeSet::new(),
            robots: BTreeMap::new(),
            paces: BTreeMap::new(),
            notes: BTreeMap::new(),
            blocks: BTreeMap::new(),
            sums: Sums::default(),
        }
    }

    /// A page that must be known.
    pub(super) fn page(&mut self, page: PageId) -> Step<&mut PageRow> {
        if !self.pages.contains_key(&page) {
            return Err(self.t.damaged(format!("page {} is not known", page.0)));
        }
        let unknown = || Refusal::State(StateError::NoSuchSite { name: String::new() });
        self.pages.get_mut(&page).ok_or_else(unknown)
    }

    pub(super) fn site(&mut self, site: SiteId) -> Step<&mut SiteRow> {
        let unknown = || StateError::NoSuchSite { name: site.0.to_string() }.into();
        self.sites.get_mut(&site).ok_or_else(unknown)
    }

    /// The number of a URL's server, given now if it has none.
    pub(super) fn server(&mut self, url: &CanonicalUrl) -> ServerId {
        let server = url.server();
        if let Some(id) = self.servers.get(server.as_str()) {
            return *id;
        }
        self.t.head.servers += 1;
        let partitions = i64::from(self.settings.partitioning.count.max(1));
        let id =
            ServerId((self.t.head.servers * partitions + i64::from(self.settings.own.0)) as u32);
        self.servers.insert(server.as_str().to_owned(), id);
        self.new_servers.push((id, server.as_str().to_owned()));
        id
    }

    /// A known page of a URL.
    pub(super) fn find(&self, url: &CanonicalUrl) -> Option<PageId> {
        let server = self.servers.get(url.server().as_str())?;
        self.slot(*server, url).ok()
    }

    /// The number of a page, or else one that it may have, or else none.
    pub(super) fn slot(
        &self,
        server: ServerId,
        url: &CanonicalUrl,
    ) -> Result<PageId, Option<PageId>> {
        let first = first_number(server, url);
        let mut free = None;
        for id in (first..first + PROBES).map(PageId) {
            match self.pages.get(&id) {
                Some(row) if row.page.url.path_and_query() == url.path_and_query() => {
                    return Ok(id);
                }
                Some(_) => {}
                None => free = free.or(Some(id)),
            }
        }
        Err(free)
    }

    /// Whether a version is listed already.
    pub(super) fn is_listed(&self, page: PageId, row: &VersionRow) -> bool {
        let key = (page, row.at_s, row.version);
        self.listed.contains(&key) || self.versions.contains_key(&key)
    }

    /// When the newest version of a page was received.
    pub(super) fn newest_s(&self, page: PageId) -> Option<i64> {
        let of_page = (page, i64::MIN, VersionId(0))..=(page, i64::MAX, VersionId(u64::MAX));
        let fresh = self.versions.range(of_page).next_back().map(|((_, at_s, _), _)| *at_s);
        self.newest_s.get(&page).copied().max(fresh)
    }

    /// How many pages of a site, or of all, have a turn.
    pub(super) fn turns(&self, site: u32) -> u64 {
        let so_far = self.sums.worth.turns(site);
        so_far.or_else(|| self.turns.get(&site).copied()).unwrap_or(0)
    }

    /// The partition of a URL, if it is another one.
    pub(super) fn elsewhere(&self, url: &CanonicalUrl) -> Option<PartitionId> {
        elsewhere(self.settings, url)
    }

    pub(super) fn is_divided(&self) -> bool {
        self.settings.partitioning.count > 1
    }

    pub(super) fn send(&mut self, to: PartitionId, mail: Mail) {
        let mailbox = self.mailboxes.entry(to).or_default();
        mailbox.mail.push(mail);
        mailbox.is_changed = true;
    }

    /// Sends mail to every other partition.
    pub(super) fn send_to_all(&mut self, mail: &Mail) {
        let Settings { partitioning, own, .. } = self.settings;
        for partition in partitioning.all().filter(|partition| *partition != own) {
            self.send(partition, mail.clone());
        }
    }
}

/// The partition of a URL, if it is another than one's own.
pub(super) fn elsewhere(settings: Settings, url: &CanonicalUrl) -> Option<PartitionId> {
    let Settings { partitioning, own, .. } = settings;
    if partitioning.count <= 1 {
        return None;
    }
    Some(partitioning.of(&url.server())).filter(|partition| *partition != own)
}

/// The number that a page has unless another page has it already.
pub(super) fn first_number(server: ServerId, url: &CanonicalUrl) -> i64 {
    let hash = blake3::hash(url.path_and_query().as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&hash.as_bytes()[..8]);
    let space = (1_i64 << PageId::HASH_BITS) - PROBES;
    (i64::from(server.0) << PageId::HASH_BITS) + (u64::from_le_bytes(first) % space as u64) as i64
}
