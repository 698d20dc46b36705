//! Opening: the schemas, their number, migrations, and what two archives must not share.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{Arc, Mutex},
};

use super::{
    engine::{PostgresState, Settings, explain, within},
    held::Held,
    pool::{Link, Pool, Purpose, RoundTrips},
};
use crate::{PartitionId, Partitioning, PostgresPlace, StateError};

/// What a new partition gets.
const SCHEMA: &str = include_str!("schema.sql");
/// What the archive has once: how it is divided, and who holds which partition (`leases.rs`).
const SHARED: &str = include_str!("shared.sql");
/// What brings the schemas of number 1 to 2, of 2 to 3 and so on: for a partition, and for what the
/// archive has once.
const MIGRATIONS: &[(&str, &str)] =
    &[(include_str!("outside.sql"), ""), ("", include_str!("sizes.sql")), (FIRST, "")];
/// Schema 4: how many of a round's changes were first versions.
const FIRST: &str = "ALTER TABLE @rounds ADD COLUMN IF NOT EXISTS first bigint NOT NULL DEFAULT 0";
/// The number of this schema.
const SCHEMA_NUMBER: i64 = 1 + MIGRATIONS.len() as i64;
/// Held while schemas are made, so that two processes that begin at once do not both make them.
const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtext('nenrin'), hashtext($1))";

/// A database with one archive: the connections to it, and how the archive is divided.
#[derive(Clone)]
pub struct PostgresArchive {
    /// The server that has what the archive has once.
    pub(super) pool: Arc<Pool>,
    /// The other servers, and which partitions each has.
    others: Vec<(Arc<Pool>, BTreeSet<PartitionId>)>,
    bucket_s: i64,
    partitioning: Partitioning,
}

/// An archive as it is found or about to be made: what is checked before anything is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What distinguishes it from every other archive.
    pub id: String,
    /// Where its content is, if that is known.
    pub content: Option<String>,
    /// The database's clock, in milliseconds since the epoch.
    pub clock_ms: i64,
}

/// A new archive: the size of its buckets in seconds, and how it is divided.
type Make = Option<(i64, Partitioning)>;

impl PostgresArchive {
    /// Opens an archive, or makes it where `make` says how. An existing one keeps its bucket size
    /// and how it is divided. Nothing is written unless `check` finds everything right.
    pub fn open<E: From<StateError>>(
        place: &PostgresPlace,
        make: Make,
        check: impl FnOnce(&Found) -> Result<(), E>,
    ) -> Result<Self, E> {
        let connected = |place: &PostgresPlace| -> Result<(Arc<Pool>, Link), StateError> {
            let pool = Pool::new(place.clone()).map_err(|why| StateError::NoDatabase { why })?;
            let link = pool.lend(&place.archive).map_err(|e| explain(place, "opened", e))?;
            Ok((pool, link))
        };
        let (pool, mut link) = connected(place)?;
        let elsewhere: Vec<(Arc<Pool>, Link)> =
            place.others.iter().map(connected).collect::<Result<_, _>>()?;
        let found = prepare(&mut link, place, make, check);
        let used = found.as_ref().ok().map(|_| used(&mut link, &place.archive));
        pool.take_back(Some(link));
        let (bucket_s, partitioning, id) = found?;
        let used = used.transpose().map_err(|e| explain(place, "opened", e))?.unwrap_or_default();
        let mut others = Vec::new();
        for (pool, mut link) in elsewhere {
            let own = pool.place().has(partitioning);
            let whole = Whole { bucket_s, partitioning, id: &id, used: &used };
            let prepared = prepare_elsewhere(&mut link, pool.place(), &own, &whole);
            pool.take_back(Some(link));
            prepared?;
            others.push((pool, own));
        }
        let archive = Self { pool, others, bucket_s, partitioning };
        archive.check_places()?;
        Ok(archive)
    }

    /// Every partition is where it is looked for.
    fn check_places(&self) -> Result<(), StateError> {
        let (place, archive) = (self.place(), self.place().archive.as_str());
        let failed = |error| explain(place, "opened", error);
        let mut link = self.pool.lend(archive).map_err(failed)?;
        let own = place.has(self.partitioning);
        let there = made(&mut link, archive, &own);
        self.pool.take_back(Some(link));
        let there = there.map_err(failed)?;
        match own.iter().find(|own| !there.contains(own)) {
            None => Ok(()),
            Some(missing) => Err(not_there(place, *missing)),
        }
    }

    /// The server of a partition.
    fn pool_of(&self, own: PartitionId) -> &Arc<Pool> {
        self.others.iter().find(|(_, has)| has.contains(&own)).map_or(&self.pool, |(pool, _)| pool)
    }

    /// Every server, and which partitions it has.
    pub(super) fn servers(&self) -> Vec<(&Arc<Pool>, Vec<PartitionId>)> {
        let mut all = vec![(&self.pool, Vec::new())];
        all.extend(self.others.iter().map(|(pool, _)| (pool, Vec::new())));
        for own in self.partitioning.all() {
            let of = self.pool_of(own);
            all.iter_mut().filter(|(pool, _)| Arc::ptr_eq(pool, of)).for_each(|(_, has)| {
                has.push(own);
            });
        }
        all.retain(|(_, has)| !has.is_empty());
        all
    }

    /// How the archive is divided.
    pub fn partitioning(&self) -> Partitioning {
        self.partitioning
    }

    /// The resolution of due times, in seconds.
    pub fn bucket_s(&self) -> i64 {
        self.bucket_s
    }

    /// How often the database was asked, and an answer waited for.
    pub fn round_trips(&self) -> RoundTrips {
        let others = self.others.iter().map(|(pool, _)| pool.trips());
        others.fold(self.pool.trips(), RoundTrips::and)
    }

    /// Where it is.
    pub fn place(&self) -> &PostgresPlace {
        self.pool.place()
    }

    /// The state of one partition. All use the same connections.
    pub fn partition(&self, own: PartitionId) -> PostgresState {
        PostgresState {
            pool: self.pool_of(own).clone(),
            schema: schema_of(&self.pool.place().archive, own),
            settings: Settings { bucket_s: self.bucket_s, partitioning: self.partitioning, own },
            known: Mutex::default(),
            unsure: Mutex::default(),
            held: None,
        }
    }

    /// The same for the holder of the partition: all its commits go through this one.
    pub fn hold(&self, own: PartitionId) -> PostgresState {
        PostgresState { held: Some(Mutex::new(Held::default())), ..self.partition(own) }
    }
}

fn missing(place: &PostgresPlace) -> StateError {
    let why = format!(
        "there is no archive in {}; `nenrin run` or `nenrin site add` makes one",
        place.shown()
    );
    StateError::NoDatabase { why }
}

fn not_there(place: &PostgresPlace, missing: PartitionId) -> StateError {
    let why = format!(
        "partition {} is not in {}; name the server that has it with --state, as in \
         `postgres://first/db postgres://second/db?partitions={}`",
        missing.0,
        place.shown(),
        missing.0
    );
    StateError::NoDatabase { why }
}

impl PostgresPlace {
    /// The partitions that are here.
    fn has(&self, partitioning: Partitioning) -> BTreeSet<PartitionId> {
        let named = |place: &Self, own: PartitionId| {
            place.partitions.iter().any(|range| range.contains(&own.0))
        };
        let is_here = |own: &PartitionId| match self.partitions.is_empty() {
            true => !self.others.iter().any(|other| named(other, *own)),
            false => named(self, *own),
        };
        partitioning.all().filter(is_here).collect()
    }
}

fn schema_of(archive: &str, own: PartitionId) -> String {
    format!("{archive}_p{}", own.0)
}

/// Makes or migrates the schemas; returns bucket size and division.
fn prepare<E: From<StateError>>(
    link: &mut Link,
    place: &PostgresPlace,
    make: Make,
    check: impl FnOnce(&Found) -> Result<(), E>,
) -> Result<(i64, Partitioning, String), E> {
    let failed = |error| explain(place, "opened", error);
    let archive = place.archive.as_str();
    // Most processes that open it find everything as it should be, and lock nothing.
    if let Some((SCHEMA_NUMBER, bucket_s, partitioning)) = read(link, archive).map_err(failed)? {
        let found = look(link, archive).map_err(failed)?;
        check(&found)?;
        return Ok((bucket_s, partitioning, found.id));
    }
    link.batch(Purpose::Write, "BEGIN").map_err(failed)?;
    let prepared = prepare_alone(link, place, make).map_err(E::from);
    let prepared = prepared.and_then(|(bucket_s, partitioning)| {
        let found = look(link, archive).map_err(failed)?;
        check(&found)?;
        Ok((bucket_s, partitioning, found.id))
    });
    let end = link.batch(Purpose::Write, if prepared.is_ok() { "COMMIT" } else { "ROLLBACK" });
    let prepared = prepared?;
    end.map_err(failed)?;
    Ok(prepared)
}

/// The number of the schema, the bucket size and the division, if there is an archive.
fn read(
    link: &mut Link,
    archive: &str,
) -> Result<Option<(i64, i64, Partitioning)>, tokio_postgres::Error> {
    let is_there = link.query(
        Purpose::Read,
        "SELECT to_regclass($1) IS NOT NULL",
        &[&format!("{archive}.archive")],
    )?;
    if !is_there[0].try_get::<_, bool>(0)? {
        return Ok(None);
    }
    let sql = within(archive, "SELECT schema_number, bucket_s, partitions FROM @archive");
    let found = link.query(Purpose::Read, &sql, &[])?;
    let Some(row) = found.first() else { return Ok(None) };
    let count = row.try_get::<_, i32>(2)? as u32;
    Ok(Some((row.try_get(0)?, row.try_get(1)?, Partitioning { count })))
}

fn look(link: &mut Link, archive: &str) -> Result<Found, tokio_postgres::Error> {
    let sql = "SELECT id, content, (extract(epoch FROM clock_timestamp()) * 1000)::bigint
               FROM @archive LIMIT 1";
    let found = link.query(Purpose::Read, &within(archive, sql), &[])?;
    let row = &found[0];
    Ok(Found { id: row.try_get(0)?, content: row.try_get(1)?, clock_ms: row.try_get(2)? })
}

fn prepare_alone(
    link: &mut Link,
    place: &PostgresPlace,
    make: Make,
) -> Result<(i64, Partitioning), StateError> {
    let failed = |error| explain(place, "opened", error);
    let archive = place.archive.as_str();
    link.query(Purpose::Read, LOCK, &[&archive]).map_err(failed)?;
    if let Some((found, bucket_s, partitioning)) = read(link, archive).map_err(failed)? {
        let path = PathBuf::from(place.shown());
        if found > SCHEMA_NUMBER {
            return Err(StateError::SchemaTooNew { path, found, known: SCHEMA_NUMBER });
        }
        if found < 1 {
            return Err(StateError::PreRelease { path });
        }
        migrate(link, archive, found, &place.has(partitioning)).map_err(failed)?;
        return Ok((bucket_s, partitioning));
    }
    let (bucket_s, partitioning) = make.ok_or_else(|| missing(place))?;
    let bucket_s = bucket_s.max(1);
    make_schemas(link, archive, (bucket_s, partitioning), &place.has(partitioning))
        .map_err(failed)?;
    let lease = within(archive, "INSERT INTO @leases (partition) SELECT unnest($1::integer[])");
    let all: Vec<i32> = partitioning.all().map(|own| own.0 as i32).collect();
    link.execute(Purpose::Write, &lease, &[&all]).map_err(failed)?;
    Ok((bucket_s, partitioning))
}

/// An archive whose partitions are on several servers.
struct Whole<'a> {
    bucket_s: i64,
    partitioning: Partitioning,
    id: &'a str,
    /// Partitions that a worker held.
    used: &'a BTreeSet<PartitionId>,
}

/// Makes or migrates the partitions of a further server. Those that were used before are not made
/// again.
fn prepare_elsewhere(
    link: &mut Link,
    place: &PostgresPlace,
    own: &BTreeSet<PartitionId>,
    whole: &Whole<'_>,
) -> Result<(), StateError> {
    let failed = |error| explain(place, "opened", error);
    let archive = place.archive.as_str();
    link.batch(Purpose::Write, "BEGIN").map_err(failed)?;
    let prepare = |link: &mut Link| {
        link.query(Purpose::Read, LOCK, &[&archive]).map_err(failed)?;
        if let Some((found, ..)) = read(link, archive).map_err(failed)? {
            if look(link, archive).map_err(failed)?.id != whole.id {
                let why = format!(
                    "{} has partitions of another archive; use another name in archive=NAME, or \
                     another database",
                    place.shown()
                );
                return Err(StateError::NoDatabase { why });
            }
            if found > SCHEMA_NUMBER {
                let path = PathBuf::from(place.shown());
                return Err(StateError::SchemaTooNew { path, found, known: SCHEMA_NUMBER });
            }
            migrate(link, archive, found, own).map_err(failed)?;
        }
        let there = made(link, archive, own).map_err(failed)?;
        let new: BTreeSet<PartitionId> = own.difference(&there).copied().collect();
        if let Some(lost) = new.iter().find(|own| whole.used.contains(own)) {
            return Err(not_there(place, *lost));
        }
        if !new.is_empty() {
            let divided = (whole.bucket_s, whole.partitioning);
            make_schemas(link, archive, divided, &new).map_err(failed)?;
            let sql = within(archive, "UPDATE @archive SET id = $1");
            link.execute(Purpose::Write, &sql, &[&whole.id]).map_err(failed)?;
        }
        Ok(())
    };
    let prepared = prepare(link);
    let end = link.batch(Purpose::Write, if prepared.is_ok() { "COMMIT" } else { "ROLLBACK" });
    prepared?;
    end.map_err(failed)
}

/// Which of these partitions are on a server.
fn made(
    link: &mut Link,
    archive: &str,
    own: &BTreeSet<PartitionId>,
) -> Result<BTreeSet<PartitionId>, tokio_postgres::Error> {
    let names: BTreeMap<String, PartitionId> =
        own.iter().map(|own| (schema_of(archive, *own), *own)).collect();
    let wanted: Vec<String> = names.keys().cloned().collect();
    let sql = "SELECT nspname::text FROM pg_namespace WHERE nspname::text = ANY($1)";
    let found = link.query(Purpose::Read, sql, &[&wanted])?;
    let found = found.iter().map(|row| row.try_get::<_, String>(0));
    Ok(found.collect::<Result<Vec<_>, _>>()?.iter().filter_map(|n| names.get(n)).copied().collect())
}

/// The partitions that a worker ever held.
fn used(link: &mut Link, archive: &str) -> Result<BTreeSet<PartitionId>, tokio_postgres::Error> {
    let sql = within(archive, "SELECT partition FROM @leases WHERE epoch > 0");
    let found = link.query(Purpose::Read, &sql, &[])?;
    found.iter().map(|row| Ok(PartitionId(row.try_get::<_, i32>(0)? as u32))).collect()
}

/// Makes these partitions, and before the first what the archive has once.
fn make_schemas(
    link: &mut Link,
    archive: &str,
    (bucket_s, partitioning): (i64, Partitioning),
    new: &BTreeSet<PartitionId>,
) -> Result<(), tokio_postgres::Error> {
    if read(link, archive)?.is_none() {
        link.batch(Purpose::Write, &format!("CREATE SCHEMA IF NOT EXISTS {archive}"))?;
        link.batch(Purpose::Write, &within(archive, SHARED))?;
        let count = partitioning.count.max(1) as i32;
        link.execute(
            Purpose::Write,
            &within(
                archive,
                "INSERT INTO @archive (schema_number, bucket_s, partitions, id)
                 VALUES ($1, $2, $3, gen_random_uuid()::text)",
            ),
            &[&SCHEMA_NUMBER, &bucket_s, &count],
        )?;
    }
    for own in new {
        let schema = schema_of(archive, *own);
        link.batch(Purpose::Write, &format!("CREATE SCHEMA {schema}"))?;
        link.batch(Purpose::Write, &within(&schema, SCHEMA))?;
        let begin = within(&schema, "INSERT INTO @partition (own, bucket_s) VALUES ($1, $2)");
        link.execute(Purpose::Write, &begin, &[&(own.0 as i32), &bucket_s])?;
    }
    let here = made(link, archive, &partitioning.all().collect())?;
    link.batch(Purpose::Write, &views(archive, &here))
}

fn migrate(
    link: &mut Link,
    archive: &str,
    found: i64,
    own: &BTreeSet<PartitionId>,
) -> Result<(), tokio_postgres::Error> {
    for (number, (of_each, once)) in (2..).zip(MIGRATIONS).filter(|(number, _)| *number > found) {
        for own in made(link, archive, own)? {
            link.batch(Purpose::Write, &within(&schema_of(archive, own), of_each))?;
        }
        link.batch(Purpose::Write, &within(archive, once))?;
        let number: i64 = number;
        link.execute(
            Purpose::Write,
            &within(archive, "UPDATE @archive SET schema_number = $1"),
            &[&number],
        )?;
    }
    Ok(())
}

/// Views over all partitions of a server, for people who read the archive with SQL (docs/scale.md).
fn views(archive: &str, here: &BTreeSet<PartitionId>) -> String {
    if here.is_empty() {
        return String::new();
    }
    let over_all = |name: &str, select: &str| {
        let parts: Vec<String> = here
            .iter()
            .map(|own| within(&schema_of(archive, *own), select).replace("%p", &own.0.to_string()))
            .collect();
        format!("CREATE OR REPLACE VIEW {archive}.{name} AS {};", parts.join(" UNION ALL "))
    };
    let time = |column: &str| format!("to_timestamp({column})");
    let outcome = "(ARRAY['changed', 'same', 'not-modified', 'gone', 'refused', 'failed'])";
    [
        over_all(
            "all_pages",
            &format!(
                "SELECT p.id AS page, s.name || p.path AS url, s.name AS server, x.name AS site,
                    {} AS found_at, {} AS visited_at, {} AS due_at,
                    {outcome}[p.outcome + 1] AS outcome, p.visits, p.changes, p.significant,
                    p.version, p.rate / 1e6 AS changes_per_day, p.importance / 100.0 AS importance,
                    %p AS partition
                 FROM @pages p JOIN @servers s ON s.id = (p.id >> 39)::integer
                 JOIN @sites x ON x.id = p.site WHERE p.denied IS NULL",
                time("p.discovered_s"),
                time("p.visited_s"),
                time("p.due_s")
            ),
        ),
        over_all(
            "all_versions",
            &format!(
                "SELECT v.page, s.name || p.path AS url, {} AS received_at, v.version, v.status,
                    m.name AS media_type, v.bytes, v.permille AS changed_permille, %p AS partition
                 FROM @versions v JOIN @pages p ON p.id = v.page
                 JOIN @servers s ON s.id = (p.id >> 39)::integer JOIN @mimes m ON m.id = v.mime
                 WHERE p.denied IS NULL",
                time("v.at_s")
            ),
        ),
        over_all(
            "all_visits",
            &format!(
                "SELECT v.id AS visit, v.page, s.name || p.path AS url, x.name AS site,
                    {} AS visited_at, {outcome}[v.outcome + 1] AS outcome, v.status,
                    v.elapsed_ms, v.received_bytes, v.detail AS reason, %p AS partition
                 FROM @visits v JOIN @pages p ON p.id = v.page
                 JOIN @servers s ON s.id = (p.id >> 39)::integer JOIN @sites x ON x.id = v.site
                 WHERE p.denied IS NULL",
                time("v.at_s")
            ),
        ),
        over_all(
            "all_links",
            "SELECT f.id AS page, t.id AS target, %p AS partition
             FROM @links l JOIN @pages f ON f.nth = l.nth CROSS JOIN LATERAL unnest(l.targets) n
             JOIN @pages t ON t.nth = n",
        ),
    ]
    .join("\n")
}
