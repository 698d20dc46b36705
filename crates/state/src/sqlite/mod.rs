//! The embedded state: one SQLite file in WAL mode, synced at every commit.

mod bags;
mod batch;
mod commit;
mod due;
mod incidents;
mod known;
mod learnt;
mod links;
mod log;
mod migrate;
mod open;
mod overview;
mod portion;
mod prune;
mod read;
mod removal;
mod rows;
mod schedule;
mod structure;
mod taken;
mod validators;
mod worth;

use std::{
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use nenrin_urls::{CanonicalUrl, UrlKey};
use rusqlite::Connection;

use crate::{
    Change, Committed, DayCounts, DayQuery, Discovered, DueLoad, DuePage, DueQuery, FoundPage,
    Incident, KeptVersion, KindSums, LogQuery, OrderCurve, PageFilter, PageId, PageLinks,
    PageRecord, PathQuery, PruneRow, Removal, RemovalRow, Round, ServerId, ServerRecord, Site,
    SiteConditions, SiteId, SitePages, SiteServer, SiteSums, SiteWorth, Skips, State, StateError,
    StateStats, TreeEntry, TroubleGroup, VersionQuery, VersionRow, VisitCommit, VisitFilter,
    VisitRow,
};

/// The embedded state. One connection writes, another reads, so that the interface never waits for
/// a commit; what takes seconds to read has one of its own for that time, so that no other reader
/// waits for it.
pub struct SqliteState {
    path: PathBuf,
    bucket_s: i64,
    writer: Mutex<Connection>,
    known: Mutex<known::Known>,
    /// `None` in memory, where a second connection would see another database.
    reader: Option<Mutex<Connection>>,
    /// Held during a long read: each takes the memory of a connection, so there is one at a time.
    long_read: Mutex<()>,
    has_visits_by_page: AtomicBool,
}

impl SqliteState {
    /// Opens or creates the state in a file. `bucket_s` is the resolution of the long-term queue;
    /// an existing state keeps its own.
    pub fn open(path: &Path, bucket_s: i64) -> Result<Self, StateError> {
        let writer = open::writer(path, bucket_s)?;
        let reader = open::reader(path)?;
        Self::over(path.to_owned(), writer, Some(reader))
    }

    /// A state in memory, for simulations and tests.
    pub fn in_memory(bucket_s: i64) -> Result<Self, StateError> {
        let path = PathBuf::from(":memory:");
        let writer = open::writer(&path, bucket_s)?;
        Self::over(path, writer, None)
    }

    fn over(
        path: PathBuf,
        writer: Connection,
        reader: Option<Connection>,
    ) -> Result<Self, StateError> {
        let bucket_s = open::bucket_s(&writer).map_err(|e| open::explain(&path, "read", e))?;
        Ok(Self {
            path,
            bucket_s,
            writer: Mutex::new(writer),
            known: Mutex::default(),
            reader: reader.map(Mutex::new),
            long_read: Mutex::default(),
            has_visits_by_page: AtomicBool::new(false),
        })
    }

    fn write<T>(
        &self,
        action: &'static str,
        work: impl FnOnce(&rusqlite::Transaction<'_>) -> Result<T, Refusal>,
    ) -> Result<T, StateError> {
        let mut writer = lock(&self.writer);
        let explain = |e| open::explain(&self.path, action, e);
        let transaction = writer
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
            .map_err(explain)?;
        let answer = work(&transaction).map_err(|refusal| match refusal {
            Refusal::Engine(e) => explain(e),
            Refusal::State(e) => e,
        })?;
        transaction.commit().map_err(explain)?;
        Ok(answer)
    }

    fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StateError> {
        let reader = lock(self.reader.as_ref().unwrap_or(&self.writer));
        work(&reader).map_err(|e| open::explain(&self.path, "read", e))
    }

    /// Reads what can take seconds.
    fn read_long<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StateError> {
        if self.reader.is_none() {
            return self.read(work);
        }
        let _alone = self.long_read.lock().unwrap_or_else(PoisonError::into_inner);
        let reader = open::reader(&self.path)?;
        work(&reader).map_err(|e| open::explain(&self.path, "read", e))
    }
}

/// A panic while the lock was held rolled its transaction back, so the connection is sound.
fn lock(connection: &Mutex<Connection>) -> MutexGuard<'_, Connection> {
    connection.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a transaction is given up.
enum Refusal {
    Engine(rusqlite::Error),
    State(StateError),
}

impl From<rusqlite::Error> for Refusal {
    fn from(error: rusqlite::Error) -> Self {
        Self::Engine(error)
    }
}

impl From<StateError> for Refusal {
    fn from(error: StateError) -> Self {
        Self::State(error)
    }
}

impl State for SqliteState {
    fn add_site(
        &self,
        name: &str,
        conditions: &SiteConditions,
        now_s: i64,
    ) -> Result<Site, StateError> {
        self.write("written", |t| commit::add_site(t, self.bucket_s, name, conditions, now_s))
    }

    fn set_site(
        &self,
        site: SiteId,
        conditions: &SiteConditions,
        now_s: i64,
    ) -> Result<(), StateError> {
        self.write("written", |t| commit::set_site(t, self.bucket_s, site, conditions, now_s))
    }

    fn pause_site(&self, site: SiteId, paused: bool) -> Result<(), StateError> {
        self.write("written", |t| commit::pause_site(t, site, paused))
    }

    fn remove_site(
        &self,
        site: SiteId,
        removal: Option<Removal>,
        reason: &str,
        now_s: i64,
    ) -> Result<(), StateError> {
        self.write("written", |t| removal::remove(t, site, removal, reason, now_s))
    }

    fn removals(&self) -> Result<Vec<RemovalRow>, StateError> {
        self.read(removal::log)
    }

    fn denied_versions(
        &self,
        site: SiteId,
        after: Option<PageId>,
        pages: usize,
    ) -> Result<Vec<(PageId, u64)>, StateError> {
        self.read(|c| removal::denied_versions(c, site, after, pages))
    }

    fn drop_versions(&self, pages: &[PageId]) -> Result<u64, StateError> {
        self.write("written", |t| Ok(removal::drop_versions(t, pages)?))
    }

    fn site_versions(
        &self,
        site: SiteId,
        after: Option<PageId>,
        pages: usize,
    ) -> Result<Vec<KeptVersion>, StateError> {
        self.read(|c| prune::site_versions(c, site, after, pages))
    }

    fn prune(&self, row: &PruneRow, versions: &[KeptVersion]) -> Result<u64, StateError> {
        self.write("written", |t| Ok(prune::prune(t, row, versions)?))
    }

    fn pruning(&self, limit: usize) -> Result<Vec<u64>, StateError> {
        self.read(|c| prune::pruning(c, limit))
    }

    fn pruned(&self, versions: &[u64]) -> Result<(), StateError> {
        self.write("written", |t| Ok(prune::pruned(t, versions)?))
    }

    fn prunes(&self) -> Result<Vec<PruneRow>, StateError> {
        self.read(prune::log)
    }

    fn sites(&self) -> Result<Vec<Site>, StateError> {
        self.read(read::sites)
    }

    fn begin_round(&self, site: SiteId, now_s: i64) -> Result<Round, StateError> {
        self.write("written", |t| commit::begin_round(t, site, now_s))
    }

    fn load_round(
        &self,
        round: &Round,
        after: Option<PageId>,
        limit: usize,
    ) -> Result<Vec<DuePage>, StateError> {
        self.read(|c| read::load_round(c, round, after, limit))
    }

    fn load_due(&self, query: &DueQuery) -> Result<DueLoad, StateError> {
        let last_heap = due::heap(self.bucket_s, query.until_s);
        loop {
            let (load, laid_out) = self
                .read(|c| Ok((schedule::load_due(c, self.bucket_s, query)?, due::laid_out(c)?)))?;
            if query.new || load.next.is_some() || laid_out >= last_heap {
                return Ok(load);
            }
            // All that stands in buckets was seen, and there is room for more.
            while !self.write("written", |t| Ok(due::lay_out(t, self.bucket_s, last_heap)?))? {}
        }
    }

    fn found(&self, after: u32, limit: usize) -> Result<Vec<FoundPage>, StateError> {
        self.read(|c| links::found(c, after, limit))
    }

    fn load_found(&self, places: &[u32]) -> Result<Vec<DuePage>, StateError> {
        self.read(|c| links::load_found(c, places))
    }

    fn links(&self, places: &[u32]) -> Result<Vec<PageLinks>, StateError> {
        self.read(|c| links::links(c, places))
    }

    fn keep_incidents(&self, incidents: &[Incident]) -> Result<(), StateError> {
        self.write("written", |t| Ok(incidents::keep(t, incidents)?))
    }

    fn end_incidents(&self, ids: &[String], now_s: i64) -> Result<(), StateError> {
        self.write("written", |t| Ok(incidents::end(t, ids, now_s)?))
    }

    fn incidents(&self) -> Result<Vec<Incident>, StateError> {
        self.read(incidents::all)
    }

    fn site_worth(&self) -> Result<Vec<SiteWorth>, StateError> {
        self.read(worth::site_worth)
    }

    fn order_curve(&self, site: Option<SiteId>) -> Result<OrderCurve, StateError> {
        self.read(|c| worth::order_curve(c, site))
    }

    fn order(&self) -> Result<Vec<u8>, StateError> {
        self.read(links::order)
    }

    fn site_pages(&self, site: SiteId) -> Result<SitePages, StateError> {
        self.read_long(|c| structure::site_pages(c, site))
    }

    fn load_pages(&self, round: &Round, pages: &[PageId]) -> Result<Vec<DuePage>, StateError> {
        self.read(|c| structure::load_pages(c, round, pages))
    }

    fn skips(&self, round: i64) -> Result<Option<Skips>, StateError> {
        self.read(|c| structure::skips(c, round))
    }

    fn url_of(&self, page: PageId) -> Result<Option<CanonicalUrl>, StateError> {
        self.read(|c| structure::url_of(c, page))
    }

    fn bucket_s(&self) -> i64 {
        self.bucket_s
    }

    fn shared(&self, site: SiteId) -> Result<Vec<u8>, StateError> {
        self.read(|c| schedule::shared(c, site))
    }

    fn pulled(&self, page: PageId) -> Result<Option<String>, StateError> {
        self.read(|c| schedule::pulled(c, page))
    }

    fn stretched(&self, limit: usize) -> Result<Vec<(ServerRecord, u32)>, StateError> {
        self.read(|c| schedule::stretched(c, limit))
    }

    fn servers(&self, ids: &[ServerId]) -> Result<Vec<ServerRecord>, StateError> {
        self.read(|c| read::servers(c, ids))
    }

    fn commit(&self, changes: &[Change]) -> Result<Committed, StateError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut fresh = Vec::new();
        let committed = self
            .write("written", |t| commit::commit(t, self.bucket_s, changes, &known, &mut fresh))?;
        for (key, depth, nth) in fresh {
            known.learn(key, depth, nth);
        }
        Ok(committed)
    }

    fn make_known(
        &self,
        site: SiteId,
        pages: &[Discovered],
        now_s: i64,
    ) -> Result<Vec<PageId>, StateError> {
        self.write("written", |t| Ok(commit::make_known(t, self.bucket_s, site, pages, now_s)?))
    }

    fn take_in(
        &self,
        visits: Vec<(Discovered, VisitCommit)>,
        now_s: i64,
    ) -> Result<(), StateError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut fresh = Vec::new();
        self.write("written", |t| {
            commit::take_in(t, self.bucket_s, visits, now_s, &known, &mut fresh)
        })?;
        for (key, depth, nth) in fresh {
            known.learn(key, depth, nth);
        }
        Ok(())
    }

    fn page(&self, url: &CanonicalUrl) -> Result<Option<PageRecord>, StateError> {
        self.read(|c| read::page(c, url))
    }

    fn pages_of(&self, urls: &[&CanonicalUrl]) -> Result<Vec<Option<PageRecord>>, StateError> {
        self.read(|c| {
            // One look at the database instead of two for each.
            let t = c.unchecked_transaction()?;
            read::pages_of(&t, urls)
        })
    }

    fn pages(&self, filter: PageFilter) -> Result<Vec<PageRecord>, StateError> {
        self.read(|c| read::pages(c, filter))
    }

    fn versions(
        &self,
        key: &UrlKey,
        query: VersionQuery,
    ) -> Result<Vec<(CanonicalUrl, VersionRow)>, StateError> {
        self.read(|c| read::versions(c, key, query))
    }

    fn version_as_of(
        &self,
        key: &UrlKey,
        at_s: i64,
    ) -> Result<Option<(CanonicalUrl, VersionRow)>, StateError> {
        self.read(|c| read::version_as_of(c, key, at_s))
    }

    fn urls(&self, from: &str, to: &str, limit: usize) -> Result<Vec<CanonicalUrl>, StateError> {
        self.read(|c| read::urls(c, from, to, limit))
    }

    fn site_as_of(
        &self,
        site: SiteId,
        at_s: i64,
        after: Option<PageId>,
        limit: usize,
    ) -> Result<Vec<(PageId, CanonicalUrl, VersionRow)>, StateError> {
        self.read(|c| read::site_as_of(c, site, at_s, after, limit))
    }

    fn rounds(&self, site: Option<SiteId>, limit: usize) -> Result<Vec<Round>, StateError> {
        self.read(|c| read::rounds(c, site, limit))
    }

    fn round_began(&self, site: SiteId, after_s: i64, until_s: i64) -> Result<bool, StateError> {
        self.read(|c| read::round_began(c, site, after_s, until_s))
    }

    fn visits(&self, filter: VisitFilter) -> Result<Vec<VisitRow>, StateError> {
        let VisitFilter { site, before, limit } = filter;
        self.read(|c| log::log(c, LogQuery { site, outcome: None, before, limit }))
    }

    fn visits_of(
        &self,
        url: &CanonicalUrl,
        from_s: i64,
        to_s: i64,
    ) -> Result<Vec<VisitRow>, StateError> {
        if !self.has_visits_by_page.load(Ordering::Relaxed) {
            self.write("written", |t| Ok(log::index_pages(t)?))?;
            self.has_visits_by_page.store(true, Ordering::Relaxed);
        }
        self.read(|c| log::visits_of(c, url, from_s, to_s))
    }

    fn each_version(
        &self,
        look: &mut dyn FnMut(&CanonicalUrl, &VersionRow),
    ) -> Result<(), StateError> {
        self.read(|c| read::each_version(c, look))
    }

    fn stats(&self) -> Result<StateStats, StateError> {
        self.read(read::stats)
    }

    fn check(&self) -> Result<Vec<String>, StateError> {
        self.read(|c| read::check(c, self.bucket_s))
    }

    fn tidy_up(&self) -> Result<(), StateError> {
        let writer = lock(&self.writer);
        writer
            .execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);")
            .map_err(|e| open::explain(&self.path, "tidied up", e))
    }

    fn adopt_version(
        &self,
        site: SiteId,
        url: &CanonicalUrl,
        row: &VersionRow,
    ) -> Result<bool, StateError> {
        self.write("written", |t| commit::adopt_version(t, self.bucket_s, site, url, row))
    }

    fn days(&self, query: DayQuery) -> Result<Vec<DayCounts>, StateError> {
        self.read(|c| overview::days(c, query))
    }

    fn site_sums(&self, since_day: i64) -> Result<Vec<SiteSums>, StateError> {
        self.read(|c| overview::site_sums(c, since_day))
    }

    fn kind_sums(&self, site: Option<SiteId>) -> Result<Vec<KindSums>, StateError> {
        self.read(|c| overview::kind_sums(c, site))
    }

    fn visit_log(&self, query: LogQuery) -> Result<Vec<VisitRow>, StateError> {
        self.read(|c| log::log(c, query))
    }

    fn troubles(&self, site: SiteId, looked_at: usize) -> Result<Vec<TroubleGroup>, StateError> {
        self.read(|c| log::troubles(c, site, looked_at))
    }

    fn newest_versions(
        &self,
        key: &UrlKey,
        before: (i64, u64),
        limit: usize,
    ) -> Result<Vec<(CanonicalUrl, VersionRow)>, StateError> {
        self.read(|c| overview::newest_versions(c, key, before, limit))
    }

    fn version_days(
        &self,
        key: &UrlKey,
        from_day: i64,
        to_day: i64,
    ) -> Result<Vec<(i64, u64)>, StateError> {
        self.read(|c| overview::version_days(c, key, from_day, to_day))
    }

    fn site_servers(&self, site: SiteId, limit: usize) -> Result<Vec<SiteServer>, StateError> {
        self.read(|c| overview::site_servers(c, site, limit))
    }

    fn pages_by_path(&self, query: &PathQuery) -> Result<Vec<PageRecord>, StateError> {
        self.read(|c| overview::pages_by_path(c, query))
    }

    fn directory(&self, query: &PathQuery) -> Result<Vec<TreeEntry>, StateError> {
        self.read(|c| overview::directory(c, query))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::contract_suite!(in_memory, || SqliteState::in_memory(3600).unwrap());

    #[test]
    fn a_long_read_holds_no_other_reader_up() {
        let folder = tempfile::tempdir().unwrap();
        let state = SqliteState::open(&folder.path().join("state.sqlite"), 3600).unwrap();
        let reader = state.reader.as_ref().unwrap();
        assert!(state.read_long(|_| Ok(reader.try_lock().is_ok())).unwrap());
        assert!(!state.read(|_| Ok(reader.try_lock().is_ok())).unwrap());
    }

    #[test]
    fn a_file_that_is_no_database_is_named_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.sqlite");
        std::fs::write(&path, vec![b'x'; 8192]).unwrap();
        let error = SqliteState::open(&path, 3600).err().unwrap();
        assert!(matches!(error, StateError::Damaged { .. }), "{error}");
        assert!(error.to_string().contains("reindex"), "{error}");
    }

    #[test]
    fn a_newer_format_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.sqlite");
        drop(SqliteState::open(&path, 3600).unwrap());
        Connection::open(&path).unwrap().pragma_update(None, "user_version", 999).unwrap();
        let error = SqliteState::open(&path, 3600).err().unwrap();
        assert!(matches!(error, StateError::FormatTooNew { found: 999, .. }), "{error}");
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(16))]

        /// Many more pages than a bag holds, so that bags are divided again and again.
        #[test]
        fn pages_and_keys_are_listed_in_order_however_they_came(
            paths in proptest::collection::vec("/[a-c]{0,3}/?[0-9]{0,3}", 1..400),
            together in 1_usize..200,
        ) {
            let state = SqliteState::in_memory(3600).unwrap();
            let top = CanonicalUrl::parse("http://e.com/").unwrap();
            let site = state.add_site("e", &SiteConditions::new(vec![top.clone()]), 0).unwrap().id;
            let mut urls = std::collections::BTreeSet::from([top]);
            for group in paths.chunks(together) {
                let found: Vec<Discovered> = group
                    .iter()
                    .map(|path| CanonicalUrl::parse(&format!("http://e.com{path}")).unwrap())
                    .map(|url| Discovered { url, depth: 2, hops: 0, due_s: None })
                    .collect();
                state.make_known(site, &found, 0).unwrap();
                urls.extend(found.into_iter().map(|found| found.url));
            }
            let mut expected: Vec<&str> = urls.iter().map(CanonicalUrl::path_and_query).collect();
            expected.sort_unstable();
            let server = state.site_servers(site, 1).unwrap()[0].id;
            let mut query =
                PathQuery { site, server, prefix: "/".into(), after: None, limit: together };
            let mut listed: Vec<String> = Vec::new();
            loop {
                let portion = state.pages_by_path(&query).unwrap();
                let Some(last) = portion.last() else { break };
                query.after = Some(last.url.path_and_query().to_owned());
                listed.extend(portion.iter().map(|page| page.url.path_and_query().to_owned()));
            }
            proptest::prop_assert_eq!(listed, expected);

            for (number, url) in urls.iter().enumerate() {
                let version = number as u64;
                let row = VersionRow {
                    at_s: 9, version, status: 200, mime: "a/b".into(), bytes: 1,
                    changed_permille: None,
                };
                state.adopt_version(site, url, &row).unwrap();
            }
            let mut keys: Vec<UrlKey> = urls.iter().map(CanonicalUrl::key).collect();
            keys.sort_unstable();
            let found = state.urls("", "~", usize::MAX).unwrap();
            proptest::prop_assert_eq!(found.iter().map(CanonicalUrl::key).collect::<Vec<_>>(), keys);
            for url in &urls {
                let versions = state.versions(&url.key(), VersionQuery::default()).unwrap();
                proptest::prop_assert!(versions.iter().any(|(of, _)| of == url));
            }
        }

        /// Times are set near and far, again and again, while the queue is laid out.
        #[test]
        fn a_page_is_due_when_its_record_says_so_and_only_then(
            steps in proptest::collection::vec((0_usize..12, 0_i64..40, 0_i64..10), 1..120),
        ) {
            let state = SqliteState::in_memory(3600).unwrap();
            let top = CanonicalUrl::parse("http://e.com/").unwrap();
            let site = state.add_site("e", &SiteConditions::new(vec![top]), 0).unwrap().id;
            let found: Vec<Discovered> = (0..12)
                .map(|n| CanonicalUrl::parse(&format!("http://e.com/{n}")).unwrap())
                .map(|url| Discovered { url, depth: 1, hops: 0, due_s: Some(0) })
                .collect();
            let pages = state.make_known(site, &found, 0).unwrap();
            let mut due_s = [0; 12];
            let mut now_s = 0;
            for (page, hours, pass_hours) in steps {
                now_s += pass_hours * 3600;
                due_s[page] = now_s + hours * 3600;
                state.commit(&[Change::Due { page: pages[page], due_s: due_s[page] }]).unwrap();
                let query =
                    DueQuery { until_s: now_s, per_server: 99, limit: 99, ..DueQuery::default() };
                let load = state.load_due(&query).unwrap();
                let mut loaded: Vec<PageId> = load.pages.iter().map(|due| due.page.id).collect();
                loaded.sort_unstable();
                let mut expected: Vec<PageId> =
                    (0..12).filter(|&n| due_s[n] <= now_s).map(|n| pages[n]).collect();
                expected.sort_unstable();
                proptest::prop_assert_eq!(loaded, expected);
            }
            proptest::prop_assert_eq!(state.check().unwrap(), Vec::<String>::new());
        }
    }

    #[test]
    fn an_opened_state_keeps_its_bucket_resolution() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.sqlite");
        drop(SqliteState::open(&path, 60).unwrap());
        assert_eq!(SqliteState::open(&path, 3600).unwrap().bucket_s, 60);
    }
}
