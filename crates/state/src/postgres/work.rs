//! The rows that one transaction works on. They are loaded with a few statements before the rules are
//! asked, changed in memory, and written with a few statements at the end (`finish.rs`).

use std::collections::{BTreeMap, BTreeSet};

use nenrin_structure::PageFragments;
use nenrin_urls::CanonicalUrl;
use tokio_postgres::Row;

use super::{
    engine::{Refusal, Settings, Step, Tx},
    rows::{self, Read, get, number, unsigned},
};
use crate::{
    Mail, Nth, PageId, PageRecord, PartitionId, Reading, RobotsCopy, RoundId, ServerId, ServerPace,
    SiteConditions, SiteId, StateError, VersionId, VersionRow, VisitCommit,
    rules::{ALL_SITES, FarLink, PageBefore, Part, Sums, Wait},
};

/// Neighbouring numbers tried for pages whose hashes collide.
pub(super) const PROBES: i64 = 8;
/// Where pages wait that a visit found and none has been to yet.
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
const MORE: &str = "p.reading, p.turn, p.bucket, p.key, p.denied, p.pulled";

impl PageRow {
    fn read(row: &Row) -> Read<Self> {
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

/// What rows a transaction needs.
#[derive(Default)]
pub(super) struct Needs {
    pub(super) sites: BTreeSet<SiteId>,
    /// Sites whose top pages are entered.
    pub(super) tops: BTreeSet<SiteId>,
    /// URLs, and for which site they are looked up.
    pub(super) urls: BTreeSet<(SiteId, CanonicalUrl)>,
    pub(super) pages: BTreeSet<PageId>,
    pub(super) places: BTreeSet<Nth>,
    /// Whether links that are kept are needed, of pages that are named here or visited by URL.
    pub(super) links: bool,
    pub(super) turns: bool,
    pub(super) mailboxes: bool,
    /// Versions found in packs, by URL or page.
    pub(super) packs: Vec<VersionId>,
    /// Versions that were compared.
    pub(super) compared: BTreeSet<(PageId, VersionId)>,
}

/// The rows of one transaction.
pub(super) struct Work<'t, 'l> {
    pub(super) t: &'t mut Tx<'l>,
    pub(super) settings: Settings,
    pub(super) sites: BTreeMap<SiteId, SiteRow>,
    servers: BTreeMap<String, ServerId>,
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
    listed: BTreeSet<(PageId, i64, VersionId)>,
    newest_s: BTreeMap<PageId, i64>,
    pub(super) pruning: BTreeSet<VersionId>,
    pub(super) gone: BTreeSet<(PageId, i64)>,
    /// Versions that were not compared with the one before yet.
    pub(super) uncompared: BTreeSet<(PageId, VersionId)>,
    pub(super) compared: BTreeMap<(PageId, VersionId), u16>,
    turns: BTreeMap<u32, u64>,
    /// Shares of scores by page, with the hash of its URL.
    pub(super) received: BTreeMap<Nth, (u64, u64)>,
    /// Shares of pages that had some before, by the hashes of their URLs.
    pub(super) received_more: BTreeMap<u64, u64>,
    pub(super) robots: BTreeMap<ServerId, (i64, Option<RobotsCopy>)>,
    pub(super) paces: BTreeMap<ServerId, ServerPace>,
    pub(super) notes: BTreeMap<(ServerId, String), String>,
    pub(super) blocks: BTreeMap<PageId, PageFragments>,
    pub(super) sums: Sums,
}

impl<'t, 'l> Work<'t, 'l> {
    /// Loads what is needed.
    pub(super) fn load(t: &'t mut Tx<'l>, needs: &Needs) -> Step<Self> {
        let settings = t.settings;
        let mut work = Self {
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
            robots: BTreeMap::new(),
            paces: BTreeMap::new(),
            notes: BTreeMap::new(),
            blocks: BTreeMap::new(),
            sums: Sums::default(),
        };
        work.load_sites(&needs.sites)?;
        if needs.mailboxes && work.is_divided() {
            work.load_mailboxes()?;
        }
        let mut urls: Vec<(SiteId, CanonicalUrl)> = needs.urls.iter().cloned().collect();
        for site in &needs.tops {
            let tops = work.sites.get(site).map(|row| row.conditions.tops.clone());
            urls.extend(tops.into_iter().flatten().map(|top| (*site, top)));
        }
        urls.retain(|(_, url)| work.elsewhere(url).is_none());
        work.load_urls(&urls)?;
        work.load_pages(&needs.pages)?;
        work.load_places(&needs.places)?;
        if needs.links {
            work.load_links()?;
        }
        if needs.turns {
            work.load_turns()?;
        }
        if !needs.packs.is_empty() {
            work.load_packs(&needs.packs)?;
        }
        if !needs.compared.is_empty() {
            work.load_uncompared(&needs.compared)?;
        }
        Ok(work)
    }

    fn load_sites(&mut self, sites: &BTreeSet<SiteId>) -> Step<()> {
        let ids: Vec<i32> = sites.iter().map(|site| site.0 as i32).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let found =
            self.t.query("SELECT id, conditions FROM @sites WHERE id = ANY($1)", &[&ids])?;
        for row in &found {
            let conditions = rows::json(row, 1).map_err(|e| self.t.damaged(e))?;
            let id = SiteId(row.try_get::<_, i32>(0)? as u32);
            self.sites.insert(id, SiteRow { conditions, is_changed: false });
        }
        Ok(())
    }

    fn load_mailboxes(&mut self) -> Step<()> {
        for row in &self.t.query("SELECT partition, sent, read FROM @mailboxes", &[])? {
            let partition = PartitionId(row.try_get::<_, i32>(0)? as u32);
            let (sent, read): (i64, i64) = (row.try_get(1)?, row.try_get(2)?);
            let mailbox = Mailbox { sent: sent as u64, read: read as u64, ..Mailbox::default() };
            self.mailboxes.insert(partition, mailbox);
        }
        Ok(())
    }

    /// The pages of URLs, as far as they are known, with all whose numbers they could have; and how
    /// the sites know them.
    pub(super) fn load_urls(&mut self, urls: &[(SiteId, CanonicalUrl)]) -> Step<()> {
        let unknown: BTreeSet<String> = urls
            .iter()
            .map(|(_, url)| url.server().as_str().to_owned())
            .filter(|name| !self.servers.contains_key(name))
            .collect();
        let names: Vec<String> = unknown.into_iter().collect();
        if !names.is_empty() {
            let found =
                self.t.query("SELECT name, id FROM @servers WHERE name = ANY($1)", &[&names])?;
            for row in &found {
                let id = ServerId(row.try_get::<_, i32>(1)? as u32);
                self.servers.insert(row.try_get(0)?, id);
            }
        }
        let (mut sites, mut firsts) = (Vec::new(), Vec::new());
        for (site, url) in urls {
            if let Some(server) = self.servers.get(url.server().as_str()) {
                sites.push(site.0 as i32);
                firsts.push(first_number(*server, url));
            }
        }
        if firsts.is_empty() {
            return Ok(());
        }
        let sql = format!(
            "SELECT {}, {MORE} FROM unnest($1::bigint[]) f(first) CROSS JOIN LATERAL
                (SELECT * FROM @pages q WHERE q.id >= f.first AND q.id < f.first + {PROBES}
                 ORDER BY q.id LIMIT {PROBES}) p {}",
            rows::PAGE,
            rows::SERVER_OF_PAGE
        );
        let found = self.t.query(&sql, &[&firsts])?;
        self.take_pages(&found)?;
        let found = self.t.query(
            &format!(
                "SELECT m.site, m.page, m.depth, m.hops
                 FROM unnest($1::integer[], $2::bigint[]) k(site, first) CROSS JOIN LATERAL
                    (SELECT * FROM @members q WHERE q.site = k.site AND q.page >= k.first
                     AND q.page < k.first + {PROBES} ORDER BY q.page LIMIT {PROBES}) m"
            ),
            &[&sites, &firsts],
        )?;
        self.take_members(&found)
    }

    pub(super) fn take_members(&mut self, found: &[Row]) -> Step<()> {
        for row in found {
            let read = || -> Read<((SiteId, PageId), Member)> {
                let key = (SiteId(number(row, 0)?), PageId(get(row, 1)?));
                let (depth, hops) = (number(row, 2)?, number(row, 3)?);
                Ok((key, Member { depth, hops, is_changed: false }))
            };
            let (key, member) = read().map_err(|e| self.t.damaged(e))?;
            self.members.entry(key).or_insert(member);
        }
        Ok(())
    }

    fn take_pages(&mut self, found: &[Row]) -> Step<()> {
        for row in found {
            let row = PageRow::read(row).map_err(|e| self.t.damaged(e))?;
            self.by_nth.insert(row.page.nth, row.page.id);
            self.pages.entry(row.page.id).or_insert(row);
        }
        Ok(())
    }

    pub(super) fn load_pages(&mut self, pages: &BTreeSet<PageId>) -> Step<()> {
        let ids: Vec<i64> =
            pages.iter().filter(|id| !self.pages.contains_key(id)).map(|id| id.0).collect();
        if ids.is_empty() {
            return Ok(());
        }
        self.load_where("p.id = ANY($1)", &ids)
    }

    fn load_places(&mut self, places: &BTreeSet<Nth>) -> Step<()> {
        let places: Vec<i32> = places.iter().map(|nth| nth.0 as i32).collect();
        if places.is_empty() { Ok(()) } else { self.load_where("p.nth = ANY($1)", &places) }
    }

    /// Loads pages by a condition with one value.
    pub(super) fn load_where(
        &mut self,
        condition: &str,
        value: &(dyn tokio_postgres::types::ToSql + Sync),
    ) -> Step<()> {
        let sql = format!(
            "SELECT {}, {MORE} FROM @pages p {} WHERE {condition}",
            rows::PAGE,
            rows::SERVER_OF_PAGE
        );
        let found = self.t.query(&sql, &[value])?;
        self.take_pages(&found)
    }

    fn load_links(&mut self) -> Step<()> {
        let is_read = |row: &&PageRow| row.reading == Reading::Read;
        let read: Vec<i32> =
            self.pages.values().filter(is_read).map(|row| row.page.nth.0 as i32).collect();
        if !read.is_empty() {
            let found =
                self.t.query("SELECT nth, targets FROM @links WHERE nth = ANY($1)", &[&read])?;
            for row in &found {
                let targets: Vec<i32> = row.try_get(1)?;
                let targets = targets.into_iter().map(|nth| Nth(nth as u32)).collect();
                let nth = Nth(row.try_get::<_, i32>(0)? as u32);
                self.links.insert(nth, Kept { targets, is_changed: false });
            }
        }
        let places: Vec<Nth> = self.by_nth.keys().copied().collect();
        if self.is_divided() { self.load_far_links(places) } else { Ok(()) }
    }

    /// Loads links to pages of other partitions, of pages by their discovery numbers.
    pub(super) fn load_far_links(&mut self, places: impl IntoIterator<Item = Nth>) -> Step<()> {
        let unknown = |nth: &Nth| !self.far_links.contains_key(nth);
        let places: Vec<i32> = places.into_iter().filter(unknown).map(|nth| nth.0 as i32).collect();
        if places.is_empty() {
            return Ok(());
        }
        let found =
            self.t.query("SELECT nth, targets FROM @far_links WHERE nth = ANY($1)", &[&places])?;
        for row in &found {
            let targets: Vec<i64> = row.try_get(1)?;
            let targets = targets
                .chunks_exact(2)
                .map(|link| FarLink { hash: link[0] as u64, to: PartitionId(link[1] as u32) })
                .collect();
            let nth = Nth(row.try_get::<_, i32>(0)? as u32);
            self.far_links.insert(nth, Kept { targets, is_changed: false });
        }
        Ok(())
    }

    fn load_turns(&mut self) -> Step<()> {
        let mut sites: BTreeSet<u32> = self.pages.values().map(|row| row.page.site.0).collect();
        sites.extend(self.sites.keys().map(|site| site.0));
        sites.insert(ALL_SITES);
        let sites: Vec<i32> = sites.into_iter().map(|site| site as i32).collect();
        let found =
            self.t.query("SELECT site, turns FROM @site_worth WHERE site = ANY($1)", &[&sites])?;
        for row in &found {
            let turns: i64 = row.try_get(1)?;
            self.turns.insert(row.try_get::<_, i32>(0)? as u32, turns as u64);
        }
        Ok(())
    }

    fn load_packs(&mut self, versions: &[VersionId]) -> Step<()> {
        let pages: Vec<i64> = self.pages.keys().map(|page| page.0).collect();
        let numbers: Vec<i64> = versions.iter().map(|version| version.0 as i64).collect();
        let found = self.t.query(
            "SELECT p.id, (SELECT max(v.at_s) FROM @versions v WHERE v.page = p.id)
             FROM unnest($1::bigint[]) p(id)",
            &[&pages],
        )?;
        for row in &found {
            if let Some(newest_s) = row.try_get(1)? {
                self.newest_s.insert(PageId(row.try_get(0)?), newest_s);
            }
        }
        let found = self.t.query(
            "SELECT page, at_s, version FROM @versions
             WHERE page = ANY($1) AND version = ANY($2)",
            &[&pages, &numbers],
        )?;
        for row in &found {
            let version: i64 = row.try_get(2)?;
            let key = (PageId(row.try_get(0)?), row.try_get(1)?, VersionId(version as u64));
            self.listed.insert(key);
        }
        let found =
            self.t.query("SELECT version FROM @pruning WHERE version = ANY($1)", &[&numbers])?;
        for row in &found {
            let version = unsigned(row, 0).map_err(|e| self.t.damaged(e))?;
            self.pruning.insert(VersionId(version));
        }
        Ok(())
    }

    fn load_uncompared(&mut self, compared: &BTreeSet<(PageId, VersionId)>) -> Step<()> {
        let pages: Vec<i64> = compared.iter().map(|(page, _)| page.0).collect();
        let versions: Vec<i64> = compared.iter().map(|(_, version)| version.0 as i64).collect();
        let found = self.t.query(
            "SELECT v.page, v.version FROM unnest($1::bigint[], $2::bigint[]) k(page, version)
             JOIN @versions v ON v.page = k.page AND v.version = k.version
             WHERE v.permille IS NULL",
            &[&pages, &versions],
        )?;
        for row in &found {
            let version: i64 = row.try_get(1)?;
            self.uncompared.insert((PageId(row.try_get(0)?), VersionId(version as u64)));
        }
        Ok(())
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
