//! Connections to one database. They run on one thread of their own and are lent to callers.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
    str::FromStr,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    time::Duration,
};

use tokio_postgres::{
    Client, Config, Row, Statement,
    types::{ToSql, Type},
};

use super::{
    tls::Tls,
    values::Value,
    wait::{Begun, wait, wait_all},
};

/// Connections at once; a caller that needs one more waits.
const CONNECTIONS_MAX: usize = 8;
/// Statements that a connection keeps prepared.
const STATEMENTS_MAX: usize = 2_048;
/// Until a connection is there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A worker that stops in the middle of a transaction holds locks that others need: the server ends
/// it well before its lease has ended.
const IDLE: &str = "-c idle_in_transaction_session_timeout=10s";

/// A statement with its values.
pub(super) struct Ask {
    sql: String,
    values: Vec<Box<dyn Value>>,
}

impl Ask {
    pub(super) fn new(sql: String, values: Vec<Box<dyn Value>>) -> Self {
        Self { sql, values }
    }

    fn values(&self) -> Vec<&dyn Value> {
        self.values.iter().map(|value| &**value).collect()
    }
}

/// What is sent before and after statements that are sent together.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Around {
    Nothing,
    /// They begin a transaction.
    Begin,
    /// They end it.
    Commit,
}

/// Why the database is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Something is looked up.
    Read,
    /// A transaction begins and loads.
    Load,
    /// A transaction writes and ends.
    Write,
    /// Leases, workers, mail that waits.
    Lease,
}

/// How often the database was asked, and an answer waited for, by purpose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RoundTrips {
    /// To look something up.
    pub read: u64,
    /// To begin transactions and load what they need.
    pub load: u64,
    /// To write and end them.
    pub write: u64,
    /// For leases, workers, and to see what mail waits.
    pub lease: u64,
}

impl RoundTrips {
    /// With those of another server.
    #[must_use]
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            read: self.read + other.read,
            load: self.load + other.load,
            write: self.write + other.write,
            lease: self.lease + other.lease,
        }
    }

    /// All together.
    pub fn sum(&self) -> u64 {
        self.read + self.load + self.write + self.lease
    }
}

#[derive(Default)]
struct Trips([AtomicU64; 4]);

impl Trips {
    fn count(&self, purpose: Purpose) {
        self.0[purpose as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn so_far(&self) -> RoundTrips {
        let [read, load, write, lease] =
            [0, 1, 2, 3].map(|at: usize| self.0[at].load(Ordering::Relaxed));
        RoundTrips { read, load, write, lease }
    }
}

/// Where the database is, and which archive in it: several may share one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresPlace {
    config: Config,
    /// The archive's name: the schemas of its tables begin with it.
    pub archive: String,
    authorities: Option<String>,
    /// The partitions that are here, where this is not the first server.
    pub(super) partitions: Vec<RangeInclusive<u32>>,
    /// Further servers.
    pub(super) others: Vec<PostgresPlace>,
}

impl PostgresPlace {
    /// Without the password, for messages.
    pub fn shown(&self) -> String {
        let host = match self.config.get_hosts().first() {
            Some(tokio_postgres::config::Host::Tcp(host)) => host.clone(),
            Some(tokio_postgres::config::Host::Unix(path)) => path.display().to_string(),
            None => "localhost".to_owned(),
        };
        let port = self.config.get_ports().first().copied().unwrap_or(5432);
        let database = self.config.get_dbname().or(self.config.get_user()).unwrap_or("postgres");
        format!("postgres://{host}:{port}/{database}?archive={}", self.archive)
    }
}

impl FromStr for PostgresPlace {
    type Err = String;

    /// A connection string, with two settings of our own: `archive=NAME` and `sslrootcert=FILE`.
    /// Further ones may follow, each with the partitions that are there: `partitions=8-15`.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut addresses = text.split_whitespace();
        let mut first = Self::one(addresses.next().unwrap_or_default())?;
        if !first.partitions.is_empty() {
            return Err("the first server has the partitions that no other has; name them with \
                        the others"
                .to_owned());
        }
        for address in addresses {
            let other = Self { archive: first.archive.clone(), ..Self::one(address)? };
            if other.partitions.is_empty() {
                return Err(format!(
                    "say which partitions are in {}, as in partitions=8-15",
                    other.shown()
                ));
            }
            first.others.push(other);
        }
        Ok(first)
    }
}

impl PostgresPlace {
    fn one(text: &str) -> Result<Self, String> {
        let (address, query) = text.split_once('?').unwrap_or((text, ""));
        let (mut archive, mut authorities, mut rest) = ("nenrin".to_owned(), None, Vec::new());
        let mut partitions = Vec::new();
        for part in query.split('&').filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some(("archive", name)) => archive = name.to_owned(),
                Some(("sslrootcert", file)) => authorities = Some(file.to_owned()),
                Some(("partitions", list)) => partitions = ranges(list)?,
                _ => rest.push(part),
            }
        }
        let is_name = |name: &str| {
            let mut letters = name.bytes();
            letters.next().is_some_and(|first| first.is_ascii_lowercase())
                && letters.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
                && name.len() <= 40
        };
        if !is_name(&archive) {
            return Err(format!(
                "`{archive}` cannot name an archive; use small letters, digits and _"
            ));
        }
        let address = match rest.is_empty() {
            true => address.to_owned(),
            false => format!("{address}?{}", rest.join("&")),
        };
        let mut config: Config = address.parse().map_err(|e: tokio_postgres::Error| {
            let why = std::error::Error::source(&e).map_or(e.to_string(), |why| why.to_string());
            format!("this is not a connection string of PostgreSQL ({why}); write it like postgres://user:password@host/database")
        })?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("nenrin");
        }
        let options = config.get_options().map_or(IDLE.to_owned(), |own| format!("{own} {IDLE}"));
        config.options(options);
        config.keepalives_idle(Duration::from_secs(30));
        config.tcp_user_timeout(Duration::from_secs(30));
        Ok(Self { config, archive, authorities, partitions, others: Vec::new() })
    }
}

/// Numbers of partitions, such as `0-3,7`.
fn ranges(list: &str) -> Result<Vec<RangeInclusive<u32>>, String> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let range = first.parse().ok()?..=last.parse().ok()?;
        (!range.is_empty()).then_some(range)
    };
    let wrong = || format!("`{list}` names no partitions; write them like 8-15 or 3,5,7");
    list.split(',').map(range).collect::<Option<_>>().ok_or_else(wrong)
}

/// A connection that is lent.
pub(super) struct Link {
    client: Client,
    prepared: BTreeMap<String, Statement>,
    /// The schemas that it was lent for: their statements are prepared.
    schemas: BTreeSet<String>,
    trips: Arc<Trips>,
}

type Answer<T> = Result<T, tokio_postgres::Error>;

/// What something that was sent brings.
enum Brought {
    Rows(Vec<Row>),
    /// The statement can be used from now on without its text.
    Prepared(Statement),
    Done,
}

impl Link {
    pub(super) fn query(
        &mut self,
        purpose: Purpose,
        sql: &str,
        values: &[&dyn Value],
    ) -> Answer<Vec<Row>> {
        let mut answers = self.send(purpose, Around::Nothing, &[(sql, values)])?;
        Ok(answers.pop().unwrap_or_default())
    }

    pub(super) fn execute(
        &mut self,
        purpose: Purpose,
        sql: &str,
        values: &[&dyn Value],
    ) -> Answer<u64> {
        self.trips.count(purpose);
        wait(self.client.execute_typed(sql, &typed(values)))
    }

    /// Sends statements together and waits once for all their answers. Within a transaction, those
    /// after one that failed fail as well; the first error is returned.
    pub(super) fn ask_all(
        &mut self,
        purpose: Purpose,
        around: Around,
        asks: &[&Ask],
    ) -> Answer<Vec<Vec<Row>>> {
        let values: Vec<Vec<&dyn Value>> = asks.iter().map(|ask| ask.values()).collect();
        let asked: Vec<(&str, &[&dyn Value])> =
            asks.iter().zip(&values).map(|(ask, values)| (ask.sql.as_str(), &**values)).collect();
        self.send(purpose, around, &asked)
    }

    /// A statement that is used for the first time goes with its text, and is prepared for the next
    /// time in the same round trip.
    fn send(
        &mut self,
        purpose: Purpose,
        around: Around,
        asked: &[(&str, &[&dyn Value])],
    ) -> Answer<Vec<Vec<Row>>> {
        if self.prepared.len() + asked.len() > STATEMENTS_MAX {
            self.prepared.clear();
        }
        self.trips.count(purpose);
        let (client, prepared) = (&self.client, &self.prepared);
        let plain = |sql: &'static str| {
            let asked = async move { client.batch_execute(sql).await.map(|()| Brought::Done) };
            Box::pin(asked) as Begun<'_, Answer<Brought>>
        };
        let mut begun = Vec::new();
        if around == Around::Begin {
            begun.push(plain("BEGIN"));
        }
        let mut new: Vec<&str> = Vec::new();
        for &(sql, values) in asked {
            begun.push(Box::pin(async move {
                let rows = match prepared.get(sql) {
                    Some(statement) => {
                        let values: Vec<_> = values.iter().map(|value| value.as_sql()).collect();
                        client.query(statement, &values).await
                    }
                    None => client.query_typed(sql, &typed(values)).await,
                };
                rows.map(Brought::Rows)
            }));
            if !prepared.contains_key(sql) && !new.contains(&sql) {
                new.push(sql);
                let prepare = client.prepare(sql);
                begun.push(Box::pin(async { prepare.await.map(Brought::Prepared) }));
            }
        }
        if around == Around::Commit {
            begun.push(plain("COMMIT"));
        }
        let (mut answers, mut new) = (Vec::new(), new.into_iter());
        for brought in wait_all(begun)? {
            match brought {
                Brought::Rows(rows) => answers.push(rows),
                Brought::Prepared(statement) => {
                    self.prepared.extend(new.next().map(|sql| (sql.to_owned(), statement)));
                }
                Brought::Done => {}
            }
        }
        Ok(answers)
    }

    /// Statements without values, in one message.
    pub(super) fn batch(&self, purpose: Purpose, sql: &str) -> Answer<()> {
        self.trips.count(purpose);
        wait(self.client.batch_execute(sql))
    }

    fn is_sound(&self) -> bool {
        !self.client.is_closed()
    }
}

/// Values with their types.
fn typed<'v>(values: &[&'v dyn Value]) -> Vec<(&'v (dyn ToSql + Sync), Type)> {
    values.iter().map(|value| (value.as_sql(), value.kind())).collect()
}

/// A request to the thread that runs the connections.
type Request = mpsc::Sender<Result<Client, tokio_postgres::Error>>;

/// The connections to one database.
pub(super) struct Pool {
    place: PostgresPlace,
    requests: tokio::sync::mpsc::UnboundedSender<Request>,
    free: Mutex<Free>,
    returned: Condvar,
    trips: Arc<Trips>,
}

#[derive(Default)]
struct Free {
    links: Vec<Link>,
    lent: usize,
}

impl Pool {
    pub(super) fn new(place: PostgresPlace) -> Result<Arc<Self>, String> {
        let pem = match &place.authorities {
            Some(file) => {
                Some(std::fs::read(file).map_err(|e| format!("cannot read {file}: {e}"))?)
            }
            None => None,
        };
        let tls = Tls::new(pem.as_deref())?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| e.to_string())?;
        let (requests, mut asked) = tokio::sync::mpsc::unbounded_channel::<Request>();
        let config = place.config.clone();
        // It ends when the pool is dropped, and closes the connections.
        let run = move || {
            runtime.block_on(async move {
                while let Some(answer) = asked.recv().await {
                    let (config, tls) = (config.clone(), tls.clone());
                    tokio::spawn(async move {
                        match config.connect(tls).await {
                            Ok((client, connection)) => {
                                let _ = answer.send(Ok(client));
                                let _ = connection.await;
                            }
                            Err(error) => drop(answer.send(Err(error))),
                        }
                    });
                }
            });
        };
        std::thread::Builder::new()
            .name("postgres".to_owned())
            .spawn(run)
            .map_err(|e| e.to_string())?;
        let (free, returned, trips) = (Mutex::default(), Condvar::new(), Arc::default());
        Ok(Arc::new(Self { place, requests, free, returned, trips }))
    }

    pub(super) fn trips(&self) -> RoundTrips {
        self.trips.so_far()
    }

    pub(super) fn place(&self) -> &PostgresPlace {
        &self.place
    }

    fn free(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lends a connection for statements on a schema: one that had some before if that is free, a
    /// new one if none is.
    pub(super) fn lend(&self, schema: &str) -> Answer<Link> {
        self.lend_of(CONNECTIONS_MAX, schema)
    }

    /// The same for leases, which cannot wait until another caller returns one.
    pub(super) fn lend_at_once(&self, schema: &str) -> Answer<Link> {
        self.lend_of(usize::MAX, schema)
    }

    fn lend_of(&self, most: usize, schema: &str) -> Answer<Link> {
        let mut free = self.free();
        while free.links.is_empty() && free.lent >= most {
            free = self.returned.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        free.lent += 1;
        free.links.retain(Link::is_sound);
        let knows = |link: &Link| link.schemas.contains(schema);
        let best = (0..free.links.len())
            .max_by_key(|&at| (knows(&free.links[at]), usize::MAX - free.links[at].schemas.len()));
        if let Some(at) = best {
            let mut link = free.links.swap_remove(at);
            link.schemas.insert(schema.to_owned());
            return Ok(link);
        }
        drop(free);
        let (answer, answered) = mpsc::channel();
        // The thread lives as long as the pool.
        let _ = self.requests.send(answer);
        let connected = match answered.recv() {
            Ok(connected) => connected,
            Err(_) => Err(tokio_postgres::Error::__private_api_timeout()),
        };
        match connected {
            Ok(client) => {
                let trips = self.trips.clone();
                let schemas = BTreeSet::from([schema.to_owned()]);
                Ok(Link { client, prepared: BTreeMap::new(), schemas, trips })
            }
            Err(error) => {
                self.take_back(None);
                Err(error)
            }
        }
    }

    /// Takes a connection back; `None` if it was lost.
    pub(super) fn take_back(&self, link: Option<Link>) {
        let mut free = self.free();
        free.lent -= 1;
        free.links.extend(link.filter(Link::is_sound));
        self.returned.notify_one();
    }
}
