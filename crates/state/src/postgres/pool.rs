//! Connections to one database. They run on one thread of their own and are lent to whoever asks.

use std::{
    collections::BTreeMap,
    str::FromStr,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    time::Duration,
};

use tokio_postgres::{Client, Config, Row, Statement, types::ToSql};

use super::{tls::Tls, wait::wait};

/// Connections at once; whoever needs one more waits.
const CONNECTIONS_MAX: usize = 8;
/// Statements that a connection keeps prepared.
const STATEMENTS_MAX: usize = 512;
/// Until a connection is there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A worker that stops in the middle of a transaction holds locks that others need: the server ends
/// it well before its lease has ended.
const IDLE: &str = "-c idle_in_transaction_session_timeout=10s";

/// A value of a statement.
pub(super) type Value<'a> = &'a (dyn ToSql + Sync);

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
    trips: Arc<AtomicU64>,
}

impl Link {
    pub(super) fn prepare(&mut self, sql: &str) -> Result<Statement, tokio_postgres::Error> {
        if let Some(statement) = self.prepared.get(sql) {
            return Ok(statement.clone());
        }
        if self.prepared.len() >= STATEMENTS_MAX {
            self.prepared.clear();
        }
        self.count_trip();
        let statement = wait(self.client.prepare(sql))?;
        self.prepared.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    pub(super) fn query(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let statement = self.prepare(sql)?;
        self.count_trip();
        wait(self.client.query(&statement, values))
    }

    pub(super) fn execute(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<u64, tokio_postgres::Error> {
        let statement = self.prepare(sql)?;
        self.count_trip();
        wait(self.client.execute(&statement, values))
    }

    /// Statements without values, in one message.
    pub(super) fn batch(&self, sql: &str) -> Result<(), tokio_postgres::Error> {
        self.count_trip();
        wait(self.client.batch_execute(sql))
    }

    fn count_trip(&self) {
        self.trips.fetch_add(1, Ordering::Relaxed);
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
    trips: Arc<AtomicU64>,
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

    /// How often the database was asked, and an answer waited for.
    pub(super) fn trips(&self) -> u64 {
        self.trips.load(Ordering::Relaxed)
    }

    pub(super) fn place(&self) -> &PostgresPlace {
        &self.place
    }

    fn free(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lends a connection; a new one if none is free.
    pub(super) fn lend(&self) -> Result<Link, tokio_postgres::Error> {
        self.lend_of(CONNECTIONS_MAX)
    }

    /// The same for what cannot wait until others give one back: leases.
    pub(super) fn lend_at_once(&self) -> Result<Link, tokio_postgres::Error> {
        self.lend_of(usize::MAX)
    }

    fn lend_of(&self, most: usize) -> Result<Link, tokio_postgres::Error> {
        let mut free = self.free();
        while free.links.is_empty() && free.lent >= most {
            free = self.returned.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        free.lent += 1;
        while let Some(link) = free.links.pop() {
            if link.is_sound() {
                return Ok(link);
            }
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
                Ok(Link { client, prepared: BTreeMap::new(), trips })
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
