//! What one transaction looks up once and writes once at its end.

use std::collections::BTreeMap;

use nenrin_urls::CanonicalUrl;
use rusqlite::{OptionalExtension, Transaction};

use super::{
    bags::Entered, due::Moves, log, mail::Outbox, portion::Logged, settings::Settings, sums, times,
};
use crate::{Mail, PageId, PartitionId, PullForward, ServerId, SiteId, rules::Sums};

/// The work of one transaction.
pub(super) struct Batch<'t> {
    pub(super) t: &'t Transaction<'t>,
    pub(super) settings: Settings,
    pub(super) moves: Moves<'t>,
    pub(super) entered: Entered,
    pub(super) outbox: Outbox,
    pub(super) visits: Vec<Logged>,
    pub(super) sums: Sums,
    servers: BTreeMap<String, ServerId>,
    mimes: BTreeMap<String, i64>,
    continuous: BTreeMap<SiteId, bool>,
    has_pulls: bool,
}

impl<'t> Batch<'t> {
    pub(super) fn new(t: &'t Transaction<'t>, settings: Settings) -> rusqlite::Result<Self> {
        Ok(Self {
            t,
            settings,
            moves: Moves::new(t, settings.bucket_s)?,
            outbox: Outbox::default(),
            entered: Entered::default(),
            visits: Vec::new(),
            sums: Sums::default(),
            servers: BTreeMap::new(),
            mimes: BTreeMap::new(),
            continuous: BTreeMap::new(),
            has_pulls: times::has_pulls(t)?,
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

    /// The partition of a URL, if it is another one.
    pub(super) fn elsewhere(&self, url: &CanonicalUrl) -> Option<PartitionId> {
        let Settings { partitioning, own, .. } = self.settings;
        if partitioning.count <= 1 {
            return None;
        }
        Some(partitioning.of(&url.server())).filter(|partition| *partition != own)
    }

    /// Whether there are other partitions.
    pub(super) fn is_divided(&self) -> bool {
        self.settings.is_divided()
    }

    /// Sends mail to every other partition.
    pub(super) fn send_to_all(&mut self, mail: &Mail) {
        let Settings { partitioning, own, .. } = self.settings;
        for partition in partitioning.all().filter(|partition| *partition != own) {
            self.outbox.send(partition, mail.clone());
        }
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
        let found = self
            .t
            .prepare_cached(
                "SELECT json_type(conditions, '$.schedule.continuous') IS NOT NULL
                 FROM sites WHERE id = ?1",
            )?
            .query_row([site.0], |row| row.get(0))?;
        self.continuous.insert(site, found);
        Ok(found)
    }

    /// A site's conditions changed.
    pub(super) fn forget_schedules(&mut self) {
        self.continuous.clear();
    }

    pub(super) fn pull_forward(&mut self, pull: &PullForward) -> rusqlite::Result<()> {
        self.has_pulls = true;
        times::pull_forward(self.t, &mut self.moves, pull)
    }

    /// A visit was made: the hint has done its work.
    pub(super) fn forget_pull(&self, page: PageId) -> rusqlite::Result<()> {
        if self.has_pulls { times::forget_pull(self.t, page) } else { Ok(()) }
    }

    /// Writes what was gathered.
    pub(super) fn finish(mut self) -> rusqlite::Result<()> {
        self.moves.finish()?;
        self.entered.write(self.t)?;
        self.outbox.write(self.t)?;
        if !self.visits.is_empty() {
            let mut log = log::Writer::new(self.t)?;
            for visit in &self.visits {
                log.push(visit)?;
            }
            log.finish()?;
        }
        sums::write(self.t, &self.sums)
    }
}
