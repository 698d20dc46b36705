//! Connections to one database. They run on one thread of their own and are lent to callers.

use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    time::Duration,
};

use tokio_postgres::{Client, Config, Row, Statement, types::ToSql};

use super::{
    tls::Tls,
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

/// A value of a statement.
pub(super) type Value<'a> = &'a (dyn ToSql + Sync);

/// A statement with its values.
pub(super) struct Ask {
    sql: String,
    values: Vec<Box<dyn ToSql + Sync>>,
}

impl Ask {
    pub(super) fn new(sql: String, values: Vec<Box<dyn ToSql + Sync>>) -> Self {
        Self { sql, values }
    }

    fn values(&self) -> Vec<Value<'_>> {
        self.values.iter().map(|value| &**value as Value<'_>).collect()
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
    /// Statements are prepared, the first time that a connection is used for them.
    Prepare,
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
    /// To prepare statements.
    pub prepare: u64,
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
    /// All together.
    pub fn sum(&self) -> u64 {
        self.prepare + self.read + self.load + self.write + self.lease
    }
}

#[derive(Default)]
struct Trips([AtomicU64; 5]);

impl Trips {
    fn count(&self, purpose: Purpose) {
        self.0[purpose as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn so_far(&self) -> RoundTrips {
        let [prepare, read, load, write, lease] =
            [0, 1, 2, 3, 4].map(|at: usize| self.0[at].load(Ordering::Relaxed));
        RoundTrips { prepare, read, load, write, lease }
    }
}

/// Where the database is, and which archive in it: several may share one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresPlace {
    config: Config,
    /// The archive's name: the schemas of its tables begin with it.
    pub archive: String,
    authorities: Option<String>,
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
    fn from_str(text: &str) -> Result<Self, String> {
        let (address, query) = text.split_once('?').unwrap_or((text, ""));
        let (mut archive, mut authorities, mut rest) = ("nenrin".to_owned(), None, Vec::new());
        for part in query.split('&').filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some(("archive", name)) => archive = name.to_owned(),
                Some(("sslrootcert", file)) => authorities = Some(file.to_owned()),
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
        Ok(Self { config, archive, authorities })
    }
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

impl Link {
    /// Prepares the statements that are not, all at once.
    fn prepare<'s>(&mut self, wanted: impl Iterator<Item = &'s str>) -> Answer<()> {
        let mut new: Vec<&str> = wanted.filter(|sql| !self.prepared.contains_key(*sql)).collect();
        new.sort_unstable();
        new.dedup();
        if new.is_empty() {
            return Ok(());
        }
        if self.prepared.len() + new.len() > STATEMENTS_MAX {
            self.prepared.clear();
        }
        self.trips.count(Purpose::Prepare);
        let client = &self.client;
        let begin = |sql| Box::pin(client.prepare(sql)) as Begun<'_, Answer<Statement>>;
        let prepared = wait_all(new.iter().copied().map(begin).collect())?;
        self.prepared.extend(new.into_iter().map(str::to_owned).zip(prepared));
        Ok(())
    }

    fn prepared(&mut self, sql: &str) -> Answer<Statement> {
        loop {
            if let Some(statement) = self.prepared.get(sql) {
                return Ok(statement.clone());
            }
            self.prepare(std::iter::once(sql))?;
        }
    }

    pub(super) fn query(
        &mut self,
        purpose: Purpose,
        sql: &str,
        values: &[Value<'_>],
    ) -> Answer<Vec<Row>> {
        let statement = self.prepared(sql)?;
        self.trips.count(purpose);
        wait(self.client.query(&statement, values))
    }

    pub(super) fn execute(
        &mut self,
        purpose: Purpose,
        sql: &str,
        values: &[Value<'_>],
    ) -> Answer<u64> {
        let statement = self.prepared(sql)?;
        self.trips.count(purpose);
        wait(self.client.execute(&statement, values))
    }

    /// Sends statements together and waits once for all their answers. Within a transaction, those
    /// after one that failed fail as well; the first error is returned.
    pub(super) fn ask_all(
        &mut self,
        purpose: Purpose,
        around: Around,
        asks: &[&Ask],
    ) -> Answer<Vec<Vec<Row>>> {
        self.prepare(asks.iter().map(|ask| ask.sql.as_str()))?;
        let statements: Vec<Statement> =
            asks.iter().map(|ask| self.prepared(&ask.sql)).collect::<Answer<_>>()?;
        self.trips.count(purpose);
        let (client, values): (_, Vec<_>) =
            (&self.client, asks.iter().map(|ask| ask.values()).collect());
        let plain = |sql: &'static str| {
            let asked = async move { client.batch_execute(sql).await.map(|()| Vec::new()) };
            Box::pin(asked) as Begun<'_, Answer<Vec<Row>>>
        };
        let mut begun = Vec::new();
        if around == Around::Begin {
            begun.push(plain("BEGIN"));
        }
        for (statement, values) in statements.iter().zip(&values) {
            begun.push(Box::pin(client.query(statement, values)));
        }
        if around == Around::Commit {
            begun.push(plain("COMMIT"));
        }
        let mut answers = wait_all(begun)?;
        if around == Around::Begin {
            answers.remove(0);
        }
        answers.truncate(asks.len());
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
