//! Reading and writing: connections, transactions, and what is done when one is lost.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use tokio_postgres::{Row, error::SqlState};

use super::{
    held::{Held, Kept},
    pool::{Around, Ask, Link, Pool, Purpose},
    values::Value,
};
use crate::{
    Change, Committed, DuePage, Epoch, Nth, PartitionId, Partitioning, PostgresPlace, ServerId,
    ServerRecord, StateError, known::Known,
};

/// Tries until a call fails: with the waits between them about half a minute, which a restart of
/// the database takes at most.
const TRIES: u32 = 12;
const FIRST_WAIT_MS: u64 = 20;
const LAST_WAIT_MS: u64 = 5_000;

/// The state of one partition in PostgreSQL, in a schema of its own.
pub struct PostgresState {
    pub(super) pool: Arc<Pool>,
    pub(super) schema: String,
    pub(super) settings: Settings,
    pub(super) known: Mutex<Known>,
    pub(super) unsure: Mutex<Option<Unsure>>,
    /// Only for the holder of the partition.
    pub(super) held: Option<Mutex<Held>>,
}

/// What is fixed when the archive is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    pub(super) bucket_s: i64,
    pub(super) partitioning: Partitioning,
    pub(super) own: PartitionId,
}

/// A commit of which it is not known yet whether it succeeded: the connection was lost on the way.
pub(super) struct Unsure {
    pub(super) transaction: String,
    /// Of its changes.
    pub(super) digest: [u8; 32],
    pub(super) committed: Committed,
}

/// Why a transaction is given up.
pub(super) enum Refusal {
    Engine(tokio_postgres::Error),
    State(StateError),
}

impl From<tokio_postgres::Error> for Refusal {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Engine(error)
    }
}

impl From<StateError> for Refusal {
    fn from(error: StateError) -> Self {
        Self::State(error)
    }
}

/// What a step of a transaction returns.
pub(super) type Step<T> = Result<T, Refusal>;

/// The row of the partition, locked for this transaction: the next numbers, and the epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) epoch: Epoch,
    pub(super) servers: i64,
    pub(super) pages: i64,
    pub(super) visits: i64,
    pub(super) rounds: i64,
    pub(super) summaries: i64,
    /// How often the partition was changed by others than its holder.
    pub(super) outside: i64,
    transaction: String,
}

/// A transaction. `@` in a statement stands for the partition's schema.
pub(super) struct Tx<'l> {
    link: &'l mut Link,
    schema: &'l str,
    /// Written when the transaction ends.
    later: Vec<Ask>,
    place: &'l Pool,
    pub(super) settings: Settings,
    pub(super) head: Head,
}

/// A statement with the schema in it.
pub(super) fn within(schema: &str, sql: &str) -> String {
    sql.replace('@', &format!("{schema}."))
}

impl Tx<'_> {
    pub(super) fn query(&mut self, sql: &str, values: &[&dyn Value]) -> Step<Vec<Row>> {
        Ok(self.link.query(Purpose::Load, &within(self.schema, sql), values)?)
    }

    pub(super) fn execute(&mut self, sql: &str, values: &[&dyn Value]) -> Step<u64> {
        Ok(self.link.execute(Purpose::Write, &within(self.schema, sql), values)?)
    }

    /// Reads with several statements at once.
    pub(super) fn query_all(&mut self, asks: &[Ask]) -> Step<Vec<Vec<Row>>> {
        if asks.is_empty() {
            return Ok(Vec::new());
        }
        let asks: Vec<&Ask> = asks.iter().collect();
        Ok(self.link.ask_all(Purpose::Load, Around::Nothing, &asks)?)
    }

    /// Writes with the others at the end: nothing of this transaction waits for it.
    pub(super) fn later(&mut self, sql: &str, values: Vec<Box<dyn Value>>) {
        self.later.push(self.ask(sql, values));
    }

    /// Writes what was left for the end: this transaction goes on with it.
    pub(super) fn write_now(&mut self) -> Step<()> {
        let later = std::mem::take(&mut self.later);
        if !later.is_empty() {
            let asks: Vec<&Ask> = later.iter().collect();
            self.link.ask_all(Purpose::Write, Around::Nothing, &asks)?;
        }
        Ok(())
    }

    /// A statement on this partition.
    pub(super) fn ask(&self, sql: &str, values: Vec<Box<dyn Value>>) -> Ask {
        Ask::new(within(self.schema, sql), values)
    }

    pub(super) fn schema(&self) -> &str {
        self.schema
    }

    /// A stored value is not what was written.
    pub(super) fn damaged(&self, reason: impl ToString) -> Refusal {
        damaged(self.place.place(), reason).into()
    }
}

fn damaged(place: &PostgresPlace, reason: impl ToString) -> StateError {
    StateError::Damaged { path: PathBuf::from(place.shown()), reason: reason.to_string() }
}

/// How an attempt ended that brought no answer.
pub(super) enum Failure<T> {
    /// Trying again would not help.
    Final(StateError),
    /// It may succeed on another connection.
    Again(StateError),
    /// The connection was lost while the transaction was to be committed.
    Unsure(String, T, StateError),
}

/// Whether a transaction was committed.
pub(super) enum Fate {
    CameAbout,
    GaveUp,
}

impl PostgresState {
    pub(super) fn explain(&self, action: &'static str, error: tokio_postgres::Error) -> StateError {
        explain(self.pool.place(), action, error)
    }

    pub(super) fn damaged(&self, reason: impl ToString) -> StateError {
        damaged(self.pool.place(), reason)
    }

    /// Reads with one statement.
    pub(super) fn read(&self, sql: &str, values: &[&dyn Value]) -> Result<Vec<Row>, StateError> {
        let sql = within(&self.schema, sql);
        self.again(|| self.on_link("read", |link| link.query(Purpose::Read, &sql, values)))
    }

    /// Reads with several statements at once.
    pub(super) fn read_all(&self, asks: &[Ask]) -> Result<Vec<Vec<Row>>, StateError> {
        let asks: Vec<&Ask> = asks.iter().collect();
        let ask = |link: &mut Link| link.ask_all(Purpose::Read, Around::Nothing, &asks);
        self.again(|| self.on_link("read", ask))
    }

    /// A statement on this partition.
    pub(super) fn ask(&self, sql: &str, values: Vec<Box<dyn Value>>) -> Ask {
        Ask::new(within(&self.schema, sql), values)
    }

    /// Changes outside of transactions: making indexes, and freeing space.
    pub(super) fn maintain(&self, sql: &str) -> Result<(), StateError> {
        let sql = within(&self.schema, sql);
        self.again(|| self.on_link("tidied up", |link| link.batch(Purpose::Write, &sql)))
    }

    fn on_link<T>(
        &self,
        action: &'static str,
        work: impl FnOnce(&mut Link) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, Failure<T>> {
        let failed = |error| self.failure(action, error);
        let mut link = self.pool.lend(&self.schema).map_err(failed)?;
        let answer = work(&mut link);
        self.pool.take_back(Some(link));
        answer.map_err(failed)
    }

    fn failure<T>(&self, action: &'static str, error: tokio_postgres::Error) -> Failure<T> {
        let again = is_passing(&error);
        let error = self.explain(action, error);
        if again { Failure::Again(error) } else { Failure::Final(error) }
    }

    /// Tries until there is an answer, or none can be expected.
    fn again<T>(&self, attempt: impl Fn() -> Result<T, Failure<T>>) -> Result<T, StateError> {
        self.again_until_sure(attempt).map_err(|failure| match failure {
            Failure::Final(error) | Failure::Again(error) | Failure::Unsure(.., error) => error,
        })
    }

    fn again_until_sure<T>(
        &self,
        attempt: impl Fn() -> Result<T, Failure<T>>,
    ) -> Result<T, Failure<T>> {
        let mut tries = 0;
        loop {
            tries += 1;
            match attempt() {
                Err(Failure::Again(_)) if tries < TRIES => pause(tries),
                Err(Failure::Unsure(transaction, answer, error)) => match self.fate(&transaction) {
                    Ok(Fate::CameAbout) => return Ok(answer),
                    Ok(Fate::GaveUp) if tries < TRIES => pause(tries),
                    Ok(Fate::GaveUp) => return Err(Failure::Again(error)),
                    Err(_) => return Err(Failure::Unsure(transaction, answer, error)),
                },
                other => return other,
            }
        }
    }

    /// Whether a transaction came about whose end was not seen.
    pub(super) fn fate(&self, transaction: &str) -> Result<Fate, StateError> {
        for tries in 1.. {
            let found = self.read("SELECT pg_xact_status($1::text::xid8)", &[&transaction])?;
            let status: Option<String> = match found.first() {
                Some(row) => row.try_get(0).map_err(|e| self.explain("read", e))?,
                None => None,
            };
            match status.as_deref() {
                Some("committed") => return Ok(Fate::CameAbout),
                Some("in progress") if tries < TRIES => pause(tries),
                _ => break,
            }
        }
        Ok(Fate::GaveUp)
    }

    /// Changes the partition in one transaction, which may be tried several times.
    pub(super) fn write<T>(&self, work: impl Fn(&mut Tx<'_>) -> Step<T>) -> Result<T, StateError> {
        self.begin_change();
        let written = self.write_aside(|t| {
            t.head.outside += 1;
            work(t)
        });
        self.end_change(None);
        written
    }

    /// The same for changes that the holder of the partition need not know of.
    pub(super) fn write_aside<T>(
        &self,
        work: impl Fn(&mut Tx<'_>) -> Step<T>,
    ) -> Result<T, StateError> {
        self.again(|| self.attempt(&[], &|t: &mut Tx<'_>, _| work(t)))
    }

    /// As [`write`](Self::write), for callers that can wait for the end of a transaction. What `loads`
    /// bring is there when it begins.
    pub(super) fn write_until_sure<T>(
        &self,
        loads: &[Ask],
        work: impl Fn(&mut Tx<'_>, Vec<Vec<Row>>) -> Step<T>,
    ) -> Result<T, Failure<T>> {
        self.again_until_sure(|| self.attempt(loads, &work))
    }

    fn attempt<T>(
        &self,
        loads: &[Ask],
        work: &impl Fn(&mut Tx<'_>, Vec<Vec<Row>>) -> Step<T>,
    ) -> Result<T, Failure<T>> {
        let lent = self.pool.lend(&self.schema);
        let mut link = lent.map_err(|error| self.failure("written", error))?;
        let outcome = self.transact(&mut link, loads, work);
        if outcome.is_err() {
            let _ = link.batch(Purpose::Write, "ROLLBACK");
        }
        self.pool.take_back(Some(link));
        outcome
    }

    /// Two round trips, unless the work asks for more: one begins and loads, one writes and commits.
    fn transact<T>(
        &self,
        link: &mut Link,
        loads: &[Ask],
        work: &impl Fn(&mut Tx<'_>, Vec<Vec<Row>>) -> Step<T>,
    ) -> Result<T, Failure<T>> {
        let failed = |error| self.failure("written", error);
        let lock = self.lock();
        let loads: Vec<&Ask> = std::iter::once(&lock).chain(loads).collect();
        let loaded = link.ask_all(Purpose::Load, Around::Begin, &loads);
        let mut loaded = loaded.map_err(failed)?;
        let head = read_head(&loaded.remove(0)).map_err(failed)?;
        let before = head.clone();
        let (schema, place, settings) = (self.schema.as_str(), &*self.pool, self.settings);
        let mut t = Tx { link, schema, later: Vec::new(), place, settings, head };
        let answer = match work(&mut t, loaded) {
            Ok(answer) => answer,
            Err(Refusal::Engine(error)) => return Err(failed(error)),
            Err(Refusal::State(error)) => return Err(Failure::Final(error)),
        };
        let Tx { mut later, head, link, .. } = t;
        if head != before {
            later.push(self.keep(&head));
        }
        match link.ask_all(Purpose::Write, Around::Commit, &later.iter().collect::<Vec<_>>()) {
            Ok(_) => Ok(answer),
            Err(error) if error.as_db_error().is_none() => {
                let transaction = head.transaction;
                Err(Failure::Unsure(transaction, answer, self.explain("written", error)))
            }
            Err(error) => Err(failed(error)),
        }
    }

    fn lock(&self) -> Ask {
        self.ask(
            "SELECT epoch, servers, pages, visits, rounds, summaries, outside,
                pg_current_xact_id()::text FROM @partition FOR UPDATE",
            Vec::new(),
        )
    }

    fn keep(&self, head: &Head) -> Ask {
        let Head { servers, pages, visits, rounds, summaries, outside, .. } = *head;
        self.ask(
            "UPDATE @partition SET epoch = $1, servers = $2, pages = $3, visits = $4, rounds = $5,
                summaries = $6, outside = $7",
            vec![
                Box::new(head.epoch.0 as i64),
                Box::new(servers),
                Box::new(pages),
                Box::new(visits),
                Box::new(rounds),
                Box::new(summaries),
                Box::new(outside),
            ],
        )
    }

    pub(super) fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a holder keeps.
impl PostgresState {
    fn held(&self) -> Option<MutexGuard<'_, Held>> {
        self.held.as_ref().map(|held| held.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A transaction begins.
    pub(super) fn begin_change(&self) {
        let Some(mut held) = self.held() else { return };
        held.turn += 1;
        held.under_way += 1;
    }

    /// It has ended; `None` unless it is a commit that came about.
    pub(super) fn end_change(&self, ended: Option<(&[Change], Kept)>) {
        let Some(mut held) = self.held() else { return };
        held.turn += 1;
        held.under_way -= 1;
        match ended {
            Some((changes, kept)) => held.committed(changes, kept),
            None => held.forget(),
        }
    }

    /// Servers that are kept, or else what `read` says of them, in their order.
    pub(super) fn servers_kept<E>(
        &self,
        wanted: &[ServerId],
        read: impl FnOnce(&[ServerId]) -> Result<Vec<ServerRecord>, E>,
    ) -> Result<Vec<ServerRecord>, E> {
        let Some(held) = self.held() else { return read(wanted) };
        let turn = held.turn;
        let mut found: BTreeMap<ServerId, ServerRecord> =
            wanted.iter().filter_map(|id| Some((*id, held.servers.get(id)?.clone()))).collect();
        drop(held);
        let missing: Vec<ServerId> =
            wanted.iter().filter(|id| !found.contains_key(id)).copied().collect();
        if !missing.is_empty() {
            let read = read(&missing)?;
            let is_quiet = |held: &MutexGuard<'_, Held>| held.turn == turn && held.under_way == 0;
            if let Some(mut held) = self.held().filter(is_quiet) {
                read.iter().for_each(|record| held.keep_server(record.clone()));
            }
            found.extend(read.into_iter().map(|record| (record.id, record)));
        }
        Ok(wanted.iter().filter_map(|id| found.remove(id)).collect())
    }

    /// New pages that are kept, and which of these are not.
    pub(super) fn found_kept(&self, places: &[Nth]) -> (BTreeMap<Nth, DuePage>, Vec<Nth>) {
        let Some(held) = self.held() else { return (BTreeMap::new(), places.to_vec()) };
        let kept = |nth: &Nth| Some((*nth, held.found.get(nth)?.clone()));
        let found: BTreeMap<Nth, DuePage> = places.iter().filter_map(kept).collect();
        let missing = places.iter().filter(|nth| !found.contains_key(nth)).copied().collect();
        (found, missing)
    }
}

fn read_head(found: &[Row]) -> Result<Head, tokio_postgres::Error> {
    let Some(row) = found.first() else {
        return Err(tokio_postgres::Error::__private_api_timeout());
    };
    Ok(Head {
        epoch: Epoch(row.try_get::<_, i64>(0)? as u64),
        servers: row.try_get(1)?,
        pages: row.try_get(2)?,
        visits: row.try_get(3)?,
        rounds: row.try_get(4)?,
        summaries: row.try_get(5)?,
        outside: row.try_get(6)?,
        transaction: row.try_get(7)?,
    })
}

fn pause(tries: u32) {
    let wait_ms = FIRST_WAIT_MS << tries.min(16);
    thread::sleep(Duration::from_millis(wait_ms.min(LAST_WAIT_MS)));
}

/// Whether the same may succeed later: the connection was lost, the database is starting, or two
/// transactions conflicted.
fn is_passing(error: &tokio_postgres::Error) -> bool {
    let Some(code) = error.code() else { return true };
    let passing = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::TOO_MANY_CONNECTIONS,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
    ];
    passing.contains(code) || code.code().starts_with("08")
}

/// What an error of the engine means for the caller.
pub(super) fn explain(
    place: &PostgresPlace,
    action: &'static str,
    error: tokio_postgres::Error,
) -> StateError {
    let path = PathBuf::from(place.shown());
    let way_out = match error.code() {
        Some(code) if *code == SqlState::DISK_FULL => return StateError::NoRoom { path },
        Some(code) if *code == SqlState::INVALID_PASSWORD => "the user or the password is wrong",
        Some(code) if *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            "the server does not let this user in; look at its pg_hba.conf"
        }
        Some(code) if *code == SqlState::INVALID_CATALOG_NAME => {
            "there is no database of this name; make it with `createdb`"
        }
        Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
            "the user may not do this; the owner of the database can GRANT CREATE ON DATABASE to it"
        }
        Some(code) if *code == SqlState::READ_ONLY_SQL_TRANSACTION => {
            "the server can only be read; write to the primary one"
        }
        _ => return StateError::Engine { path, action, source: Box::new(error) },
    };
    StateError::Refused { place: place.shown(), why: way_out }
}
