//! Who holds which partition: rows in the database, by the database's clock.

use std::{collections::BTreeMap, time::Duration};

use super::{
    engine::{explain, within},
    open::PostgresArchive,
    pool::{Around, Ask, Pool, Purpose},
    rows::{self, Read, count, get, unsigned},
    values::Value,
};
use crate::{Epoch, NumberedMail, PartitionId, SiteId, StateError};

/// How often an epoch is raised again above one that was given without a lease.
const RAISES_MAX: usize = 3;

/// A worker, by the number that the database gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkerId(pub i64);

/// A partition that a worker holds, and under which epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The partition.
    pub partition: PartitionId,
    /// Commits under an earlier epoch fail.
    pub epoch: Epoch,
    /// Whether a worker held it before that did not hand it over.
    pub was_lost: bool,
}

/// What a partition weighs without any visit.
pub const IDLE_LOAD: u64 = 10;

/// What a worker hears when it says that it is alive. Loads are as the holders said last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Renewed {
    /// The partitions that it still holds: those that others took meanwhile are not among them.
    pub held: BTreeMap<PartitionId, u64>,
    /// Workers that were heard within half the time of a lease, this one included, and the load of
    /// all that each holds: others may take what would be for one that is gone.
    pub workers: BTreeMap<WorkerId, u64>,
    /// Partitions that nobody holds.
    pub free: Vec<(PartitionId, u64)>,
}

/// What a worker looks for every few seconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct News {
    /// Mail that was ever sent.
    pub mail: Vec<MailRow>,
    /// How often others than its holder changed each partition.
    pub changed: BTreeMap<PartitionId, i64>,
}

/// A worker as others see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerRow {
    /// Its number.
    pub id: WorkerId,
    /// What it calls itself: machine and process.
    pub name: String,
    /// Seconds since it started.
    pub started_ago_s: u64,
    /// Seconds since it last reported.
    pub heard_ago_s: u64,
    /// How many partitions it holds.
    pub partitions: u64,
}

/// A partition as others see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionRow {
    /// The partition.
    pub partition: PartitionId,
    /// Who holds it.
    pub worker: Option<WorkerId>,
    /// The epoch.
    pub epoch: Epoch,
    /// Seconds until the lease ends; 0 if nobody holds it.
    pub left_s: u64,
    /// Mail from this partition that the others have not taken in yet.
    pub mail_waiting: u64,
}

/// Mail from one partition to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MailRow {
    /// The sender.
    pub from: PartitionId,
    /// The receiver.
    pub to: PartitionId,
    /// How many were ever sent.
    pub sent: u64,
    /// The number of the last that was taken in.
    pub taken: u64,
}

impl PostgresArchive {
    fn lease_rows<T>(
        &self,
        sql: &str,
        values: &[&dyn Value],
        read: impl Fn(&tokio_postgres::Row) -> Read<T>,
    ) -> Result<Vec<T>, StateError> {
        self.rows_on(&self.pool, &within(&self.place().archive, sql), values, read)
    }

    /// The same on one of the servers.
    fn rows_on<T>(
        &self,
        pool: &Pool,
        sql: &str,
        values: &[&dyn Value],
        read: impl Fn(&tokio_postgres::Row) -> Read<T>,
    ) -> Result<Vec<T>, StateError> {
        let failed = |error| explain(pool.place(), "written", error);
        let mut link = pool.lend_at_once(&self.place().archive).map_err(failed)?;
        let found = link.query(Purpose::Lease, sql, values);
        pool.take_back(Some(link));
        let damaged = |e: super::rows::Unreadable| StateError::Damaged {
            path: pool.place().shown().into(),
            reason: e.to_string(),
        };
        found.map_err(failed)?.iter().map(|row| read(row).map_err(damaged)).collect()
    }

    /// Enters a worker.
    pub fn enter_worker(&self, name: &str) -> Result<WorkerId, StateError> {
        let sql = "INSERT INTO @workers (name) VALUES ($1) RETURNING id";
        let found = self.lease_rows(sql, &[&name], |row| get(row, 0))?;
        Ok(WorkerId(found.first().copied().unwrap_or_default()))
    }

    /// Takes those of these partitions that nobody holds, or whose lease has ended. Each gets a new
    /// epoch, so that whoever held it before commits nothing more.
    pub fn take_partitions(
        &self,
        worker: WorkerId,
        lease: Duration,
        wanted: &[PartitionId],
    ) -> Result<Vec<Lease>, StateError> {
        let wanted: Vec<i32> = wanted.iter().map(|partition| partition.0 as i32).collect();
        let taken = self.lease_rows(
            "UPDATE @leases l SET worker = $1, since_at = clock_timestamp(),
                until_at = clock_timestamp() + make_interval(secs => $2)
             FROM (SELECT partition, worker FROM @leases
                   WHERE (until_at < clock_timestamp() OR worker IS NULL)
                   AND partition = ANY($3) FOR UPDATE SKIP LOCKED) free
             WHERE l.partition = free.partition
             RETURNING l.partition, free.worker IS NOT NULL",
            &[&worker.0, &lease.as_secs_f64(), &wanted],
            |row| Ok((PartitionId(get::<i32>(row, 0)? as u32), get::<bool>(row, 1)?)),
        )?;
        let mut leases = Vec::new();
        for (partition, was_lost) in taken {
            let epoch = self.raise_epoch(worker, partition)?;
            leases.extend(epoch.map(|epoch| Lease { partition, epoch, was_lost }));
        }
        Ok(leases)
    }

    /// A new epoch for a partition, if the worker still holds it. It is given by the row of the lease,
    /// and the partition, which may be on another server, only takes a greater one than it has: who
    /// was stopped on the way cannot come before whoever took the partition meanwhile.
    fn raise_epoch(
        &self,
        worker: WorkerId,
        partition: PartitionId,
    ) -> Result<Option<Epoch>, StateError> {
        let (number, mut at_least) = (partition.0 as i32, 0);
        for _ in 0..RAISES_MAX {
            let given = self.lease_rows(
                "UPDATE @leases SET epoch = GREATEST(epoch, $3) + 1
                 WHERE partition = $1 AND worker = $2 AND until_at >= clock_timestamp()
                 RETURNING epoch",
                &[&number, &worker.0, &at_least],
                |row| get::<i64>(row, 0),
            )?;
            let Some(&given) = given.first() else { return Ok(None) };
            let own = self.partition(partition);
            let sql = within(
                &own.schema,
                "WITH raised AS (UPDATE @partition SET epoch = $1 WHERE epoch < $1 RETURNING epoch)
                 SELECT epoch, true FROM raised UNION ALL
                 SELECT epoch, false FROM @partition WHERE NOT EXISTS (SELECT FROM raised)",
            );
            let raised = self.rows_on(&own.pool, &sql, &[&given], |row| {
                Ok((get::<i64>(row, 0)?, get::<bool>(row, 1)?))
            })?;
            match raised.first() {
                Some((epoch, true)) => return Ok(Some(Epoch(*epoch as u64))),
                // Another one took it, or it was taken over without a lease.
                Some((epoch, false)) => at_least = *epoch,
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Says that a worker is alive, and how much each of its partitions weighs; prolongs what it holds.
    pub fn renew(
        &self,
        worker: WorkerId,
        lease: Duration,
        loads: &BTreeMap<PartitionId, u64>,
    ) -> Result<Renewed, StateError> {
        let failed = |error| explain(self.place(), "written", error);
        let seconds = lease.as_secs_f64();
        let sql = |sql| within(&self.place().archive, sql);
        let partitions: Vec<i32> = loads.keys().map(|partition| partition.0 as i32).collect();
        let numbers: Vec<i64> = loads.values().map(|load| *load as i64).collect();
        let asks = [
            Ask::new(
                sql("UPDATE @workers SET heard_at = clock_timestamp() WHERE id = $1"),
                vec![Box::new(worker.0)],
            ),
            Ask::new(
                sql(
                    "UPDATE @leases l SET until_at = clock_timestamp() + make_interval(secs => $2),
                        load = COALESCE((SELECT k.load
                            FROM unnest($3::integer[], $4::bigint[]) k(partition, load)
                            WHERE k.partition = l.partition), l.load)
                     WHERE worker = $1 AND until_at >= clock_timestamp() RETURNING partition, load",
                ),
                vec![
                    Box::new(worker.0),
                    Box::new(seconds),
                    Box::new(partitions),
                    Box::new(numbers),
                ],
            ),
            Ask::new(
                sql("SELECT w.id, COALESCE(sum(GREATEST(l.load, $2)), 0)::bigint FROM @workers w
                     LEFT JOIN @leases l ON l.worker = w.id AND l.until_at >= clock_timestamp()
                     WHERE w.heard_at > clock_timestamp() - make_interval(secs => $1) GROUP BY 1"),
                vec![Box::new(seconds / 2.0), Box::new(IDLE_LOAD as i64)],
            ),
            Ask::new(
                sql("SELECT partition, load FROM @leases
                     WHERE until_at < clock_timestamp() OR worker IS NULL"),
                Vec::new(),
            ),
        ];
        let mut link = self.pool.lend_at_once(&self.place().archive).map_err(failed)?;
        let asks: Vec<&Ask> = asks.iter().collect();
        let found = link.ask_all(Purpose::Lease, Around::Nothing, &asks);
        self.pool.take_back(Some(link));
        let found = found.map_err(failed)?;
        let partition = |row: &tokio_postgres::Row| {
            let load = row.try_get::<_, i64>(1)? as u64;
            Ok((PartitionId(row.try_get::<_, i32>(0)? as u32), load.max(IDLE_LOAD)))
        };
        let worker = |row: &tokio_postgres::Row| {
            Ok((WorkerId(row.try_get(0)?), row.try_get::<_, i64>(1)? as u64))
        };
        let held = found[1].iter().map(partition).collect::<Result<_, _>>().map_err(failed)?;
        let workers = found[2].iter().map(worker).collect::<Result<_, _>>().map_err(failed)?;
        let free = found[3].iter().map(partition).collect::<Result<_, _>>().map_err(failed)?;
        Ok(Renewed { held, workers, free })
    }

    /// Notes what sites take in the packs of partitions, and returns what they take in all of them.
    pub fn keep_sizes(
        &self,
        sizes: &[(PartitionId, SiteId, u64)],
    ) -> Result<BTreeMap<SiteId, u64>, StateError> {
        let partitions: Vec<i32> = sizes.iter().map(|(partition, ..)| partition.0 as i32).collect();
        let sites: Vec<i32> = sizes.iter().map(|(_, site, _)| site.0 as i32).collect();
        let bytes: Vec<i64> = sizes.iter().map(|(.., bytes)| *bytes as i64).collect();
        if !sizes.is_empty() {
            self.lease_rows(
                "INSERT INTO @sizes SELECT * FROM unnest($1::integer[], $2::integer[], $3::bigint[])
                 ON CONFLICT (partition, site) DO UPDATE SET bytes = excluded.bytes RETURNING 0",
                &[&partitions, &sites, &bytes],
                |_| Ok(()),
            )?;
        }
        let all = self.lease_rows(
            "SELECT site, sum(bytes)::bigint FROM @sizes GROUP BY site",
            &[],
            |row| Ok((SiteId(get::<i32>(row, 0)? as u32), unsigned(row, 1)?)),
        )?;
        Ok(all.into_iter().collect())
    }

    /// Hands partitions over: others may take them at once.
    pub fn hand_over(
        &self,
        worker: WorkerId,
        partitions: &[PartitionId],
    ) -> Result<(), StateError> {
        let numbers: Vec<i32> = partitions.iter().map(|partition| partition.0 as i32).collect();
        let sql = "UPDATE @leases SET worker = NULL, until_at = '-infinity'
             WHERE worker = $1 AND partition = ANY($2) RETURNING 0";
        self.lease_rows(sql, &[&worker.0, &numbers], |_| Ok(())).map(drop)
    }

    /// A worker ends: it holds nothing any more.
    pub fn leave(&self, worker: WorkerId) -> Result<(), StateError> {
        let sql = "UPDATE @leases SET worker = NULL, until_at = '-infinity' WHERE worker = $1
             RETURNING 0";
        self.lease_rows(sql, &[&worker.0], |_| Ok(()))?;
        self.lease_rows("DELETE FROM @workers WHERE id = $1 RETURNING 0", &[&worker.0], |_| Ok(()))
            .map(drop)
    }

    /// Workers that reported lately, by number.
    pub fn workers(&self, heard_within: Duration) -> Result<Vec<WorkerRow>, StateError> {
        self.lease_rows(
            "SELECT w.id, w.name,
                GREATEST(extract(epoch FROM clock_timestamp() - w.started_at), 0)::bigint,
                GREATEST(extract(epoch FROM clock_timestamp() - w.heard_at), 0)::bigint,
                (SELECT COUNT(*) FROM @leases l
                 WHERE l.worker = w.id AND l.until_at >= clock_timestamp())
             FROM @workers w
             WHERE w.heard_at > clock_timestamp() - make_interval(secs => $1) ORDER BY w.id",
            &[&heard_within.as_secs_f64()],
            |row| {
                Ok(WorkerRow {
                    id: WorkerId(get(row, 0)?),
                    name: get(row, 1)?,
                    started_ago_s: unsigned(row, 2)?,
                    heard_ago_s: unsigned(row, 3)?,
                    partitions: unsigned(row, 4)?,
                })
            },
        )
    }

    /// Every partition: who holds it, and what waits there.
    pub fn partitions(&self) -> Result<Vec<PartitionRow>, StateError> {
        let mut all = self.lease_rows(
            "SELECT partition, CASE WHEN until_at >= clock_timestamp() THEN worker END, epoch,
                CASE WHEN until_at >= clock_timestamp()
                    THEN extract(epoch FROM until_at - clock_timestamp())::bigint ELSE 0 END
             FROM @leases ORDER BY partition",
            &[],
            |row| {
                Ok(PartitionRow {
                    partition: PartitionId(get::<i32>(row, 0)? as u32),
                    worker: get::<Option<i64>>(row, 1)?.map(WorkerId),
                    epoch: Epoch(unsigned(row, 2)?),
                    left_s: unsigned(row, 3)?,
                    mail_waiting: 0,
                })
            },
        )?;
        for mail in self.news()?.mail {
            let of = all.iter_mut().filter(|row| row.partition == mail.from);
            of.for_each(|row| row.mail_waiting += mail.sent.saturating_sub(mail.taken));
        }
        Ok(all)
    }

    /// How much mail was sent from one partition to another, and how much of it was taken in there;
    /// and whether others changed a partition.
    pub fn news(&self) -> Result<News, StateError> {
        let select = |own: PartitionId| {
            let select = format!(
                "SELECT {0}, partition, sent, read FROM @mailboxes
                 UNION ALL SELECT {0}, NULL, outside, 0 FROM @partition",
                own.0
            );
            within(&self.partition(own).schema, &select)
        };
        let mut rows = Vec::new();
        for (pool, has) in self.servers() {
            let parts: Vec<String> = has.into_iter().map(select).collect();
            rows.extend(self.rows_on(pool, &parts.join(" UNION ALL "), &[], |row| {
                let (own, other) = (get::<i32>(row, 0)?, get::<Option<i32>>(row, 1)?);
                let other = other.map(|other| PartitionId(other as u32));
                Ok((PartitionId(own as u32), other, unsigned(row, 2)?, unsigned(row, 3)?))
            })?);
        }
        let mut news = News::default();
        for &(own, other, count, _) in &rows {
            match other {
                None => drop(news.changed.insert(own, count as i64)),
                Some(to) if count > 0 => {
                    let read = rows.iter().find(|row| (row.0, row.1) == (to, Some(own)));
                    let taken = read.map_or(0, |row| row.3);
                    news.mail.push(MailRow { from: own, to, sent: count, taken });
                }
                Some(_) => {}
            }
        }
        Ok(news)
    }

    /// Mail to a partition, after a number for each sender, at most `limit` of each.
    pub fn mail_to(
        &self,
        to: PartitionId,
        after: &BTreeMap<PartitionId, u64>,
        limit: usize,
    ) -> Result<BTreeMap<PartitionId, Vec<NumberedMail>>, StateError> {
        let numbers = self.partitioning().all().map(|from| {
            after.get(&from).map_or(i64::MAX, |after| i64::try_from(*after).unwrap_or(i64::MAX))
        });
        let numbers: Vec<i64> = numbers.collect();
        let select = |from: PartitionId| {
            let select = format!(
                "(SELECT {}, number, mail FROM @outbox WHERE receiver = $1
                  AND number > ($2::bigint[])[{}] ORDER BY number LIMIT $3)",
                from.0,
                from.0 + 1
            );
            within(&self.partition(from).schema, &select)
        };
        let values: [&dyn Value; 3] = [&(to.0 as i32), &numbers, &count(limit)];
        let mut rows = Vec::new();
        for (pool, has) in self.servers() {
            let parts: Vec<String> = has.into_iter().map(select).collect();
            rows.extend(self.rows_on(pool, &parts.join(" UNION ALL "), &values, |row| {
                let mail = NumberedMail { number: unsigned(row, 1)?, mail: rows::json(row, 2)? };
                Ok((PartitionId(get::<i32>(row, 0)? as u32), mail))
            })?);
        }
        let mut found: BTreeMap<PartitionId, Vec<NumberedMail>> = BTreeMap::new();
        for (from, mail) in rows {
            found.entry(from).or_default().push(mail);
        }
        found.values_mut().for_each(|mail| mail.sort_by_key(|one| one.number));
        Ok(found)
    }

    /// Notes where the content is.
    pub fn bind_content(&self, content: &str) -> Result<(), StateError> {
        let sql = "UPDATE @archive SET content = $1 WHERE content IS NULL RETURNING 0";
        self.lease_rows(sql, &[&content], |_| Ok(())).map(drop)
    }
}
