//! Who holds which partition: rows in the database, by the database's clock.

use std::{collections::BTreeMap, time::Duration};

use super::{
    engine::{explain, within},
    open::PostgresArchive,
    pool::{Around, Ask, Purpose, Value},
    rows::{self, Read, count, get, unsigned},
};
use crate::{Epoch, NumberedMail, PartitionId, StateError};

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

/// What a worker learns when it reports that it is alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renewed {
    /// The partitions that it still holds: those that others took meanwhile are not among them.
    pub held: Vec<PartitionId>,
    /// How many workers reported within the time of a lease, this one included.
    pub workers: usize,
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
        values: &[Value<'_>],
        read: impl Fn(&tokio_postgres::Row) -> Read<T>,
    ) -> Result<Vec<T>, StateError> {
        let failed = |error| explain(self.place(), "written", error);
        let mut link = self.pool.lend_at_once(&self.place().archive).map_err(failed)?;
        let found = link.query(Purpose::Lease, &within(&self.place().archive, sql), values);
        self.pool.take_back(Some(link));
        let damaged = |e: super::rows::Unreadable| StateError::Damaged {
            path: self.place().shown().into(),
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

    /// Takes at most `most` partitions that nobody holds, or whose lease has ended, but none of
    /// `but`. Each gets a new epoch, so that whoever held it before commits nothing more.
    pub fn take_partitions(
        &self,
        worker: WorkerId,
        lease: Duration,
        most: usize,
        but: &[PartitionId],
    ) -> Result<Vec<Lease>, StateError> {
        let but: Vec<i32> = but.iter().map(|partition| partition.0 as i32).collect();
        let taken = self.lease_rows(
            "UPDATE @leases l SET worker = $1, since_at = clock_timestamp(),
                until_at = clock_timestamp() + make_interval(secs => $2)
             FROM (SELECT partition, worker FROM @leases
                   WHERE (until_at < clock_timestamp() OR worker IS NULL)
                   AND partition <> ALL($4)
                   ORDER BY partition LIMIT $3 FOR UPDATE SKIP LOCKED) free
             WHERE l.partition = free.partition
             RETURNING l.partition, free.worker IS NOT NULL",
            &[&worker.0, &lease.as_secs_f64(), &(most as i64), &but],
            |row| Ok((PartitionId(get::<i32>(row, 0)? as u32), get::<bool>(row, 1)?)),
        )?;
        let mut leases = Vec::new();
        for (partition, was_lost) in taken {
            let epoch = self.raise_epoch(worker, partition)?;
            leases.extend(epoch.map(|epoch| Lease { partition, epoch, was_lost }));
        }
        Ok(leases)
    }

    /// A new epoch for a partition, if the worker still holds it: one that was stopped on the way
    /// must not put its epoch above that of whoever took the partition meanwhile.
    fn raise_epoch(
        &self,
        worker: WorkerId,
        partition: PartitionId,
    ) -> Result<Option<Epoch>, StateError> {
        let schema = self.partition(partition).schema;
        let sql = format!(
            "WITH mine AS (
                SELECT FROM @leases
                WHERE partition = $1 AND worker = $2 AND until_at >= clock_timestamp() FOR UPDATE),
             raised AS (
                UPDATE {schema}.partition SET epoch = epoch + 1
                WHERE EXISTS (SELECT FROM mine) RETURNING epoch)
             UPDATE @leases l SET epoch = raised.epoch FROM raised WHERE l.partition = $1
             RETURNING raised.epoch"
        );
        let number = partition.0 as i32;
        let raised = self
            .lease_rows(&sql, &[&number, &worker.0], |row| Ok(Epoch(get::<i64>(row, 0)? as u64)))?;
        Ok(raised.first().copied())
    }

    /// Says that a worker is alive, and prolongs what it holds.
    pub fn renew(&self, worker: WorkerId, lease: Duration) -> Result<Renewed, StateError> {
        let failed = |error| explain(self.place(), "written", error);
        let seconds = lease.as_secs_f64();
        let sql = |sql| within(&self.place().archive, sql);
        let asks = [
            Ask::new(
                sql("UPDATE @workers SET heard_at = clock_timestamp() WHERE id = $1"),
                vec![Box::new(worker.0)],
            ),
            Ask::new(
                sql("UPDATE @leases SET until_at = clock_timestamp() + make_interval(secs => $2)
                     WHERE worker = $1 AND until_at >= clock_timestamp() RETURNING partition"),
                vec![Box::new(worker.0), Box::new(seconds)],
            ),
            Ask::new(
                sql("SELECT COUNT(*) FROM @workers
                     WHERE heard_at > clock_timestamp() - make_interval(secs => $1)"),
                vec![Box::new(seconds)],
            ),
        ];
        let mut link = self.pool.lend_at_once(&self.place().archive).map_err(failed)?;
        let asks: Vec<&Ask> = asks.iter().collect();
        let found = link.ask_all(Purpose::Lease, Around::Nothing, &asks);
        self.pool.take_back(Some(link));
        let found = found.map_err(failed)?;
        let held = found[1].iter().map(|row| Ok(PartitionId(row.try_get::<_, i32>(0)? as u32)));
        let held = held.collect::<Result<_, _>>().map_err(failed)?;
        let workers: i64 = found[2][0].try_get(0).map_err(failed)?;
        Ok(Renewed { held, workers: workers as usize })
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
        let parts: Vec<String> = self.partitioning().all().map(select).collect();
        let rows = self.lease_rows(&parts.join(" UNION ALL "), &[], |row| {
            let (own, other) = (get::<i32>(row, 0)?, get::<Option<i32>>(row, 1)?);
            let other = other.map(|other| PartitionId(other as u32));
            Ok((PartitionId(own as u32), other, unsigned(row, 2)?, unsigned(row, 3)?))
        })?;
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
        let parts: Vec<String> = self.partitioning().all().map(select).collect();
        let values: [Value<'_>; 3] = [&(to.0 as i32), &numbers, &count(limit)];
        let rows = self.lease_rows(&parts.join(" UNION ALL "), &values, |row| {
            let mail = NumberedMail { number: unsigned(row, 1)?, mail: rows::json(row, 2)? };
            Ok((PartitionId(get::<i32>(row, 0)? as u32), mail))
        })?;
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
