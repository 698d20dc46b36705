//! What one transaction looks up once and writes once at its end.

use std::collections::BTreeMap;

use nenrin_urls::CanonicalUrl;
use rusqlite::{OptionalExtension, Transaction, params};

use super::{
    bags::Entered, commit::counts_text, due::Moves, log, overview::DaySums, portion::Logged,
    schedule, worth::WorthSums,
};
use crate::{
    Outcome, PageId, PullForward, RoundCounts, ServerId, SiteCounts, SiteId, VersionRow,
    VisitCommit,
};

/// The work of one transaction.
pub(super) struct Batch<'t> {
    pub(super) t: &'t Transaction<'t>,
    pub(super) bucket_s: i64,
    pub(super) moves: Moves<'t>,
    pub(super) entered: Entered,
    pub(super) visits: Vec<Logged>,
    pub(super) sums: Sums,
    servers: BTreeMap<String, ServerId>,
    mimes: BTreeMap<String, i64>,
    continuous: BTreeMap<SiteId, bool>,
    has_pulls: bool,
}

impl<'t> Batch<'t> {
    pub(super) fn new(t: &'t Transaction<'t>, bucket_s: i64) -> rusqlite::Result<Self> {
        Ok(Self {
            t,
            bucket_s,
            moves: Moves::new(t, bucket_s)?,
            entered: Entered::default(),
            visits: Vec::new(),
            sums: Sums::default(),
            servers: BTreeMap::new(),
            mimes: BTreeMap::new(),
            continuous: BTreeMap::new(),
            has_pulls: schedule::has_pulls(t)?,
        })
    }

    /// The number of a URL's server, given now if it has none.
    pub(super) fn server(&mut self, url: &CanonicalUrl) -> rusqlite::Result<ServerId> {
        let server = url.server();
        if let Some(id) = self.servers.get(server.as_str()) {
            return Ok(*id);
        }
        let known: Option<u32> = self
            .t
            .prepare_cached("SELECT id FROM servers WHERE name = ?1")?
            .query_row([server.as_str()], |row| row.get(0))
            .optional()?;
        let id = match known {
            Some(id) => id,
            None => {
                self.t
                    .prepare_cached("INSERT INTO servers (name) VALUES (?1)")?
                    .execute([server.as_str()])?;
                self.t.last_insert_rowid() as u32
            }
        };
        self.servers.insert(server.as_str().to_owned(), ServerId(id));
        Ok(ServerId(id))
    }

    /// The number of a content type.
    pub(super) fn mime(&mut self, name: &str) -> rusqlite::Result<i64> {
        if let Some(id) = self.mimes.get(name) {
            return Ok(*id);
        }
        self.t.prepare_cached("INSERT OR IGNORE INTO mimes (name) VALUES (?1)")?.execute([name])?;
        let id = self
            .t
            .prepare_cached("SELECT id FROM mimes WHERE name = ?1")?
            .query_row([name], |row| row.get(0))?;
        self.mimes.insert(name.to_owned(), id);
        Ok(id)
    }

    /// Whether the pages of a site have times of their own.
    pub(super) fn is_continuous(&mut self, site: SiteId) -> rusqlite::Result<bool> {
        if let Some(known) = self.continuous.get(&site) {
            return Ok(*known);
        }
        let found = schedule::is_continuous(self.t, site)?;
        self.continuous.insert(site, found);
        Ok(found)
    }

    /// A site's conditions changed.
    pub(super) fn forget_schedules(&mut self) {
        self.continuous.clear();
    }

    pub(super) fn pull_forward(&mut self, pull: &PullForward) -> rusqlite::Result<()> {
        self.has_pulls = true;
        schedule::pull_forward(self.t, &mut self.moves, pull)
    }

    /// A visit was made: the hint has done its work.
    pub(super) fn forget_pull(&self, page: PageId) -> rusqlite::Result<()> {
        if self.has_pulls { schedule::forget_pull(self.t, page) } else { Ok(()) }
    }

    /// Writes what was gathered.
    pub(super) fn finish(mut self) -> rusqlite::Result<()> {
        self.moves.finish()?;
        self.entered.write(self.t)?;
        if !self.visits.is_empty() {
            let mut log = log::Writer::new(self.t)?;
            for visit in &self.visits {
                log.push(visit)?;
            }
            log.finish()?;
        }
        self.sums.write(self.t)
    }
}

/// Sums over one transaction.
#[derive(Default)]
pub(super) struct Sums {
    sites: BTreeMap<SiteId, SiteCounts>,
    rounds: BTreeMap<i64, RoundCounts>,
    days: DaySums,
    pub(super) worth: WorthSums,
}

impl Sums {
    pub(super) fn count_page(&mut self, site: SiteId) {
        self.sites.entry(site).or_default().pages += 1;
    }

    pub(super) fn count_visit(&mut self, visit: &VisitCommit, new_pages: u64) {
        self.days.count_visit(visit);
        if visit.version.as_ref().is_some_and(VersionRow::is_significant) {
            self.worth.count_significant(visit.site);
        }
        let site = self.sites.entry(visit.site).or_default();
        site.visits += 1;
        site.versions += u64::from(visit.version.is_some());
        site.troubles += u64::from(matches!(visit.outcome, Outcome::Failed | Outcome::Refused));
        if visit.outcome.is_seen() {
            site.raw_bytes += visit.update.bytes;
        }
        if let Some(round) = visit.round {
            let round = self.rounds.entry(round).or_default();
            round.count(visit.outcome);
            round.new_pages += new_pages;
            round.received_bytes += visit.received_bytes;
            round.stored_bytes += visit.stored_bytes;
            round.trapped += visit.trapped;
        }
    }

    pub(super) fn count_adopted(&mut self, site: SiteId, row: &VersionRow) {
        self.days.count_adopted(site, row);
        if row.is_significant() {
            self.worth.count_significant(site);
        }
        let site = self.sites.entry(site).or_default();
        site.versions += 1;
        site.raw_bytes += row.bytes;
    }

    fn write(&self, t: &Transaction<'_>) -> rusqlite::Result<()> {
        self.days.write(t)?;
        self.worth.write(t)?;
        for (site, counts) in &self.sites {
            t.prepare_cached(
                "UPDATE sites SET pages = pages + ?2, visits = visits + ?3,
                    versions = versions + ?4, troubles = troubles + ?5,
                    raw_bytes = raw_bytes + ?6 WHERE id = ?1",
            )?
            .execute(params![
                site.0,
                counts.pages as i64,
                counts.visits as i64,
                counts.versions as i64,
                counts.troubles as i64,
                counts.raw_bytes as i64
            ])?;
        }
        for (round, counts) in &self.rounds {
            let text: String = t
                .prepare_cached("SELECT counts FROM rounds WHERE id = ?1")?
                .query_row([round], |row| row.get(0))?;
            let mut total: RoundCounts = serde_json::from_str(&text).unwrap_or_default();
            total.add(counts);
            t.prepare_cached("UPDATE rounds SET counts = ?2 WHERE id = ?1")?
                .execute(params![round, counts_text(&total)])?;
        }
        Ok(())
    }
}
