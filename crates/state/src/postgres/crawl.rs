//! What the crawl machine asks: pages to visit, links, servers; and partitions.

use std::collections::{BTreeMap, BTreeSet};

use nenrin_structure::PageFragments;
use tokio_postgres::Row;

use super::{
    engine::PostgresState,
    rows::{self, Read, count, get, ids, number, unsigned},
    work::NEW_BUCKET,
};
use crate::{
    Change, Committed, CrawlState, Division, DueCursor, DueLoad, DuePage, DueQuery, Epoch,
    FoundPage, MappedPage, Nth, NumberedMail, PageId, PageIndex, PageLinks, PartitionId,
    PartitionState, Partitioning, Received, Round, RoundCounts, RoundId, ServerId, ServerRecord,
    SiteId, SitePages, StateError, VersionId,
};

/// Beginnings of rounds that a map has; a page unseen for longer is simply long unseen.
const ROUNDS_SHOWN: usize = 64;

/// A page of a site's map with the numbers of the pages that it links to, where they are known.
type Mapped = (Nth, MappedPage, Option<Vec<i32>>);

impl PostgresState {
    pub(super) fn all<T>(
        &self,
        found: &[Row],
        read: impl Fn(&Row) -> Read<T>,
    ) -> Result<Vec<T>, StateError> {
        found.iter().map(|row| read(row).map_err(|e| self.damaged(e))).collect()
    }

    /// The first row's value, or the default if there is none.
    pub(super) fn one<T: Default>(
        &self,
        found: &[Row],
        read: impl Fn(&Row) -> Read<T>,
    ) -> Result<T, StateError> {
        match found.first() {
            Some(row) => read(row).map_err(|e| self.damaged(e)),
            None => Ok(T::default()),
        }
    }

    /// The records of servers, from the database.
    fn read_servers(&self, wanted: &[ServerId]) -> Result<Vec<ServerRecord>, StateError> {
        let wanted: Vec<i32> = wanted.iter().map(|id| id.0 as i32).collect();
        let servers = format!("SELECT {} FROM @servers s WHERE s.id = ANY($1)", rows::SERVER);
        let notes = "SELECT server, name, value FROM @notes WHERE server = ANY($1)";
        let found = self.read_all(&[
            self.ask(&servers, vec![Box::new(wanted.clone())]),
            self.ask(notes, vec![Box::new(wanted)]),
        ])?;
        let [servers, notes] = found.as_slice() else { return Ok(Vec::new()) };
        let mut by_server: BTreeMap<ServerId, BTreeMap<String, String>> = BTreeMap::new();
        for (server, name, value) in
            self.all(notes, |row| Ok((ServerId(number(row, 0)?), get(row, 1)?, get(row, 2)?)))?
        {
            by_server.entry(server).or_default().insert(name, value);
        }
        let mut servers = self.all(servers, rows::server)?;
        for server in &mut servers {
            server.notes = by_server.remove(&server.id).unwrap_or_default();
        }
        Ok(servers)
    }

    /// Rows of the queue after a position, over all its buckets.
    fn due_rows(
        &self,
        query: &DueQuery,
        (bucket, after): DueCursor,
        last_bucket: i64,
        room: usize,
    ) -> Result<Vec<(i64, DuePage)>, StateError> {
        let without: Vec<i32> = query.without.iter().map(|site| site.0 as i32).collect();
        let columns = format!(
            "SELECT {}, p.site, m.depth, m.hops, p.pulled IS NOT NULL, false, p.bucket",
            rows::PAGE
        );
        let join = format!(
            "{} JOIN @members m ON m.site = p.site AND m.page = p.id",
            rows::SERVER_OF_PAGE
        );
        let room = count(room);
        let (before, last) = query.server.map_or((-1, PageId(i64::MAX)), |server| {
            (last_page(server).0 - (1 << PageId::HASH_BITS), last_page(server))
        });
        let found = match query.server {
            // No index has them: of a server with many, that the machine sets aside, they are taken as
            // they come.
            _ if query.new => self.read(
                &format!(
                    "{columns} FROM @pages p {join}
                     WHERE p.bucket = {NEW_BUCKET} AND p.id > $1 AND p.id <= $2
                     AND p.site <> ALL($3) ORDER BY p.id LIMIT $4"
                ),
                &[&after.0.max(before), &last.0, &without, &room],
            )?,
            None => self.read(
                &format!(
                    "{columns} FROM @pages p {join}
                     WHERE p.bucket < {NEW_BUCKET} AND p.bucket <= $3
                     AND (p.bucket, p.id) > ($1, $2)
                     AND p.site <> ALL($4) ORDER BY p.bucket, p.id LIMIT $5"
                ),
                &[&bucket, &after.0, &last_bucket, &without, &room],
            )?,
            // Of one server bucket by bucket: the queue has an index by bucket and number.
            Some(_) => self.read(
                &format!(
                    "WITH RECURSIVE b(bucket) AS (
                        (SELECT bucket FROM @pages WHERE bucket < {NEW_BUCKET} AND bucket >= $1
                         AND bucket <= $3 ORDER BY bucket LIMIT 1)
                        UNION ALL SELECT (SELECT q.bucket FROM @pages q
                            WHERE q.bucket < {NEW_BUCKET} AND q.bucket > b.bucket
                            AND q.bucket <= $3 ORDER BY q.bucket LIMIT 1)
                        FROM b WHERE b.bucket IS NOT NULL)
                     {columns} FROM b JOIN @pages p ON p.bucket = b.bucket
                        AND p.bucket < {NEW_BUCKET} AND p.id > $6 AND p.id <= $7 {join}
                     WHERE (p.bucket, p.id) > ($1, $2) AND p.site <> ALL($4)
                     ORDER BY p.bucket, p.id LIMIT $5"
                ),
                &[&bucket, &after.0, &last_bucket, &without, &room, &before, &last.0],
            )?,
        };
        self.all(&found, |row| Ok((get(row, 26)?, rows::due_page(row)?)))
    }

    fn due_pages(
        &self,
        condition: &str,
        values: &[&dyn super::values::Value],
    ) -> Result<Vec<DuePage>, StateError> {
        let sql = format!(
            "SELECT {}, m.site, m.depth, m.hops, false, p.site <> m.site AND m.round IS NULL
             FROM @members m JOIN @pages p ON p.id = m.page {} WHERE {condition}",
            rows::PAGE,
            rows::SERVER_OF_PAGE
        );
        let found = self.read(&sql, values)?;
        self.all(&found, rows::due_page)
    }

    fn mapped(&self, site: SiteId) -> Result<Vec<Mapped>, StateError> {
        let found = self.read(
            "SELECT p.id, p.path, p.visited_s, p.outcome, p.visits, p.failures, p.last_modified,
                m.round, p.nth, b.blocks, l.targets
             FROM @members m JOIN @pages p ON p.id = m.page LEFT JOIN @blocks b ON b.page = p.id
             LEFT JOIN @links l ON l.nth = p.nth
             WHERE m.site = $1 AND p.denied IS NULL ORDER BY p.nth",
            &[&(site.0 as i32)],
        )?;
        self.all(&found, |row| {
            let blocks: Option<&[u8]> = get(row, 9)?;
            let page = MappedPage {
                id: PageId(get(row, 0)?),
                path: get(row, 1)?,
                visited_s: get(row, 2)?,
                outcome: rows::outcome(row, 3)?,
                visits: number(row, 4)?,
                failures: number(row, 5)?,
                last_modified: get(row, 6)?,
                round: get::<Option<i64>>(row, 7)?.map(RoundId),
                blocks: blocks.map_or_else(PageFragments::default, PageFragments::from_bytes),
            };
            Ok((Nth(number(row, 8)?), page, get(row, 10)?))
        })
    }

    fn bytes(&self, sql: &str, site: u32) -> Result<Vec<u8>, StateError> {
        let found = self.read(sql, &[&(site as i32)])?;
        self.one(&found, |row| get(row, 0))
    }
}

/// The largest number that a page of a server can have.
fn last_page(server: ServerId) -> PageId {
    PageId(((i64::from(server.0) + 1) << PageId::HASH_BITS) - 1)
}

impl CrawlState for PostgresState {
    fn commit(&self, changes: &[Change]) -> Result<Committed, StateError> {
        self.commit_if(None, changes)
    }

    fn begin_round(&self, site: SiteId, now_s: i64) -> Result<Round, StateError> {
        let (id, partitions) = (site.0 as i32, i64::from(self.settings.partitioning.count.max(1)));
        self.write(|t| {
            let open = format!(
                "SELECT {} FROM @rounds WHERE site = $1 AND ended_s IS NULL ORDER BY id LIMIT 1",
                rows::ROUND
            );
            if let Some(row) = t.query(&open, &[&id])?.first() {
                return rows::round(row).map_err(|e| t.damaged(e));
            }
            let sql = "UPDATE @sites SET collected_s = $2 WHERE id = $1";
            if t.execute(sql, &[&id, &now_s])? == 0 {
                return Err(StateError::NoSuchSite { name: site.0.to_string() }.into());
            }
            t.head.rounds += 1;
            let round = t.head.rounds * partitions + i64::from(t.settings.own.0);
            t.execute(
                "INSERT INTO @rounds (id, site, started_s) VALUES ($1, $2, $3)",
                &[&round, &id, &now_s],
            )?;
            let (started_s, ended_s, counts) = (now_s, None, RoundCounts::default());
            Ok(Round { id: RoundId(round), site, started_s, ended_s, counts })
        })
    }

    fn load_round(
        &self,
        round: &Round,
        after: Option<PageId>,
        limit: usize,
    ) -> Result<Vec<DuePage>, StateError> {
        let after = after.map_or(-1, |page| page.0);
        self.due_pages(
            "m.site = $1 AND m.page > $2 AND (m.round IS NULL OR m.round < $3)
             ORDER BY m.page LIMIT $4",
            &[&(round.site.0 as i32), &after, &round.id.0, &count(limit)],
        )
    }

    fn load_pages(&self, round: &Round, pages: &[PageId]) -> Result<Vec<DuePage>, StateError> {
        self.due_pages(
            "m.site = $1 AND m.page = ANY($2) AND (m.round IS NULL OR m.round < $3)
             ORDER BY array_position($2, m.page)",
            &[&(round.site.0 as i32), &ids(pages, |page| page.0), &round.id.0],
        )
    }

    fn load_due(&self, query: &DueQuery) -> Result<DueLoad, StateError> {
        let (first, last) = match query.new {
            true => (NEW_BUCKET, NEW_BUCKET),
            false => {
                let until = query.until_s.div_euclid(self.settings.bucket_s);
                (i64::MIN, until.min(NEW_BUCKET - 1))
            }
        };
        let mut at = query.after.unwrap_or((first, PageId(-1)));
        let mut load = DueLoad::default();
        let mut taken: BTreeMap<ServerId, usize> = BTreeMap::new();
        loop {
            let room = query.limit - load.pages.len();
            let found = self.due_rows(query, at, last, room)?;
            let is_full = found.len() >= room;
            for (bucket, due) in found {
                let server = due.page.id.server();
                let so_far = taken.entry(server).or_default();
                if *so_far >= query.per_server {
                    if !load.more.contains(&server) {
                        load.more.push(server);
                    }
                    // Its numbers are consecutive: the next look goes on behind them.
                    at = (bucket, last_page(server));
                    continue;
                }
                *so_far += 1;
                at = (bucket, due.page.id);
                load.pages.push(due);
            }
            if !is_full {
                return Ok(load);
            }
            if load.pages.len() >= query.limit {
                load.next = Some(at);
                return Ok(load);
            }
        }
    }

    fn load_found(&self, places: &[Nth]) -> Result<Vec<DuePage>, StateError> {
        let (mut kept, missing) = self.found_kept(places);
        if !missing.is_empty() {
            let missing: Vec<i32> = missing.iter().map(|nth| nth.0 as i32).collect();
            let found = self.read(
                &format!(
                    "SELECT {}, p.site, m.depth, m.hops, p.pulled IS NOT NULL, false
                     FROM @pages p {} JOIN @members m ON m.site = p.site AND m.page = p.id
                     WHERE p.nth = ANY($1) AND p.due_s IS NOT NULL",
                    rows::PAGE,
                    rows::SERVER_OF_PAGE
                ),
                &[&missing],
            )?;
            let found = self.all(&found, rows::due_page)?;
            kept.extend(found.into_iter().map(|due| (due.page.nth, due)));
        }
        Ok(places.iter().filter_map(|nth| kept.remove(nth)).collect())
    }

    fn found(&self, after: Nth, limit: usize) -> Result<Vec<FoundPage>, StateError> {
        let found = self.read(
            "SELECT nth, (id >> 39)::integer, reading FROM @pages WHERE nth > $1
             ORDER BY nth LIMIT $2",
            &[&(after.0 as i32), &count(limit)],
        )?;
        self.all(&found, |row| {
            let (nth, server) = (Nth(number(row, 0)?), ServerId(number(row, 1)?));
            Ok(FoundPage { nth, server, reading: rows::reading(row, 2)? })
        })
    }

    fn links(&self, places: &[Nth]) -> Result<Vec<PageLinks>, StateError> {
        let places: Vec<i32> = places.iter().map(|nth| nth.0 as i32).collect();
        let found = self.read(
            "SELECT p.nth, l.targets, cardinality(f.targets) / 2, p.id, s.name || p.path, p.version
             FROM @pages p JOIN @servers s ON s.id = (p.id >> 39)::integer
             LEFT JOIN @links l ON l.nth = p.nth LEFT JOIN @far_links f ON f.nth = p.nth
             WHERE p.nth = ANY($1) ORDER BY array_position($1, p.nth)",
            &[&places],
        )?;
        self.all(&found, |row| {
            let targets: Option<Vec<i32>> = get(row, 1)?;
            let targets =
                targets.map(|targets| targets.into_iter().map(|nth| Nth(nth as u32)).collect());
            Ok(PageLinks {
                nth: Nth(number(row, 0)?),
                targets,
                far: get::<Option<i32>>(row, 2)?.unwrap_or(0) as usize,
                page: PageId(get(row, 3)?),
                url: rows::url(row, 4)?,
                version: get::<Option<i64>>(row, 5)?.map(|version| VersionId(version as u64)),
            })
        })
    }

    fn order(&self) -> Result<Vec<u8>, StateError> {
        let found = self.read("SELECT bytes FROM @crawl_order ORDER BY part", &[])?;
        Ok(self.all(&found, |row| get::<Vec<u8>>(row, 0))?.concat())
    }

    fn shared(&self, site: SiteId) -> Result<Vec<u8>, StateError> {
        self.bytes("SELECT state FROM @shared WHERE site = $1", site.0)
    }

    fn visits_on(&self, site: SiteId, day: i64) -> Result<u64, StateError> {
        let found = self.read(
            "SELECT visits FROM @days WHERE site = $1 AND day = $2",
            &[&(site.0 as i32), &day],
        )?;
        self.one(&found, |row| unsigned(row, 0))
    }

    fn site_pages(&self, site: SiteId) -> Result<SitePages, StateError> {
        let mapped = self.mapped(site)?;
        let place: BTreeMap<Nth, u32> = mapped.iter().map(|(nth, ..)| *nth).zip(0_u32..).collect();
        let sites = crate::Registry::sites(self)?;
        let known = sites.into_iter().find(|known| known.id == site);
        let tops = known.map_or_else(Vec::new, |site| site.conditions.tops);
        let tops = self.pages_of(&tops.iter().collect::<Vec<_>>())?;
        let tops = tops.into_iter().flatten().filter_map(|top| place.get(&top.nth).copied());
        let mut rounds_s: Vec<i64> = crate::Reports::rounds(self, Some(site), ROUNDS_SHOWN)?
            .iter()
            .map(|round| round.started_s)
            .collect();
        rounds_s.reverse();
        let (mut pages, mut links) = (Vec::with_capacity(mapped.len()), Vec::new());
        for ((_, page, targets), from) in mapped.into_iter().zip(0_u32..) {
            if let Some(targets) = targets {
                let inside = |nth: &i32| place.get(&Nth(*nth as u32)).copied();
                links.push((from, targets.iter().filter_map(inside).collect()));
            }
            pages.push(page);
        }
        let ids: BTreeSet<ServerId> = pages.iter().map(|page| page.id.server()).collect();
        let servers = self.servers(&ids.into_iter().collect::<Vec<_>>())?;
        let kept = "SELECT state FROM @structure WHERE site = $1";
        Ok(SitePages {
            servers: servers.into_iter().map(|record| (record.id, record.server)).collect(),
            links,
            pages,
            tops: tops.collect(),
            rounds_s,
            kept: self.bytes(kept, site.0)?,
            kept_of_all: self.bytes(kept, 0)?,
        })
    }

    fn servers(&self, wanted: &[ServerId]) -> Result<Vec<ServerRecord>, StateError> {
        match wanted {
            [] => Ok(Vec::new()),
            wanted => self.servers_kept(wanted, |missing| self.read_servers(missing)),
        }
    }

    fn bucket_s(&self) -> i64 {
        self.settings.bucket_s
    }
}

impl PartitionState for PostgresState {
    fn partition(&self) -> (Partitioning, PartitionId) {
        (self.settings.partitioning, self.settings.own)
    }

    fn take_over(&self) -> Result<Epoch, StateError> {
        self.write(|t| {
            t.head.epoch.0 += 1;
            Ok(t.head.epoch)
        })
    }

    fn commit_under(&self, epoch: Epoch, changes: &[Change]) -> Result<Committed, StateError> {
        self.commit_if(Some(epoch), changes)
    }

    fn outbox(
        &self,
        to: PartitionId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<NumberedMail>, StateError> {
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let found = self.read(
            "SELECT number, mail FROM @outbox WHERE receiver = $1 AND number > $2
             ORDER BY number LIMIT $3",
            &[&(to.0 as i32), &after, &count(limit)],
        )?;
        self.all(&found, |row| {
            Ok(NumberedMail { number: unsigned(row, 0)?, mail: rows::json(row, 1)? })
        })
    }

    fn mail_read(&self, from: PartitionId) -> Result<u64, StateError> {
        let found =
            self.read("SELECT read FROM @mailboxes WHERE partition = $1", &[&(from.0 as i32)])?;
        self.one(&found, |row| unsigned(row, 0))
    }

    fn received(&self) -> Result<Vec<Received>, StateError> {
        let found = self.read("SELECT nth, micros, kept FROM @received ORDER BY nth", &[])?;
        self.all(&found, |row| {
            let (micros, kept) = (unsigned(row, 1)?, unsigned(row, 2)?);
            Ok(Received { nth: Nth(number(row, 0)?), micros, kept })
        })
    }

    fn may_begin_round(&self, site: SiteId) -> Result<bool, StateError> {
        self.may_begin(site)
    }

    fn division(&self, site: Option<SiteId>, day: i64) -> Result<Option<Division>, StateError> {
        self.divide(site, day)
    }
}
