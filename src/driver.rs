//! Carries out the machine's commands with sockets, threads and disks.
//!
//! Five parts talk through queues:
//!
//! ```text
//!   loop (owns the machine) ── Fetch ──► tasks, at most `parallel`     ── Fetched ──┐
//!     ▲                     ── Store ──► store thread, one sync a batch ── Stored ───┤
//!     │                     ── Commit, Load ──► state thread, one transaction a batch┤
//!     │                     ── Plan, LoadMap ──► tasks, one a round under way ───────┤
//!     └──────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! The queues cannot grow: the machine has at most `parallel + unstored_max` visits under way.

mod state_thread;
mod store_thread;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use nenrin_archive::{Archive, DiskGuard, QuotaGuard, Quotas, folder_bytes};
use nenrin_crawl::{
    Command, Crawl, CrawlOptions, Event, FetchOrder, Fetched, PlanWork, PreviousBody, RoundReport,
    StoreOrder, Ticket, Trouble, read_exchange, stored_links,
};
use nenrin_fetch::{AddressPolicy, Exchange, FetchFailure, FetchRequest, Fetcher, Validators};
use nenrin_state::{Change, Outcome, PageLinks, Round, SiteId, State, StateError};
use nenrin_store::{Store, StoreError, VersionId};
use nenrin_urls::CanonicalUrl;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use self::{
    state_thread::{StateJob, load_map, serve_state},
    store_thread::serve_store,
};
use crate::{clock, config::Config, figures::Figures};

/// Requests under way are waited for this long after a stop.
const STOP_PATIENCE: Duration = Duration::from_secs(10);

/// What a person may like to hear while the driver works.
pub(crate) enum Notice<'a> {
    /// A visit was judged and goes to be committed.
    Visited { url: &'a CanonicalUrl, outcome: Outcome, detail: Option<&'a str> },
    /// A round is finished.
    RoundFinished(&'a RoundReport),
    /// Nothing can be asked for this long: every server left must rest.
    Resting { pause: Duration },
}

/// How often the room on the disk and the machine's numbers are looked at.
const LOOK_AROUND: Duration = Duration::from_secs(5);

/// A shorter pause is nothing to tell anyone.
const TELLING_PAUSE_MS: i64 = 15_000;

/// When the driver ends by itself.
pub(crate) enum Until {
    /// When a round of each of these sites is finished; no other site is collected.
    RoundsFinished(BTreeSet<SiteId>),
    /// Only when it is stopped.
    Stopped,
}

/// How the driver ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// All rounds that were waited for are finished.
    Finished,
    /// It was stopped; what was under way is due again.
    Stopped,
}

/// A request under way, for the interface.
#[derive(Debug, Clone)]
pub(crate) struct UnderWay {
    pub url: CanonicalUrl,
    pub since_ms: i64,
}

/// A way to talk to a driver that is at work.
#[derive(Clone)]
pub(crate) struct DriverHandle {
    happenings: UnboundedSender<Happening>,
    under_way: Arc<Mutex<BTreeMap<Ticket, UnderWay>>>,
    figures: Arc<Mutex<Figures>>,
    store_waiting: Arc<AtomicUsize>,
}

impl DriverHandle {
    /// Tells the machine something. Nobody listens any more once the driver has ended.
    pub(crate) fn tell(&self, event: Event) {
        let _ = self.happenings.send(Happening::Event(event));
    }

    /// The sites changed in the state: read them again.
    pub(crate) fn sites_changed(&self) {
        let _ = self.happenings.send(Happening::SitesChanged);
    }

    /// The configuration was read again: what may change while running, changes.
    pub(crate) fn reload(&self, config: &Config) -> anyhow::Result<()> {
        let reload = Reload {
            fetcher: Fetcher::new(config.fetch_options())?,
            options: Box::new(config.crawl_options()),
            min_free_bytes: config.disk.min_free.0,
            quotas: config.quotas(),
        };
        let _ = self.happenings.send(Happening::Reload(Box::new(reload)));
        Ok(())
    }

    /// The driver's numbers.
    pub(crate) fn figures(&self) -> Figures {
        let mut figures = self.figures.lock().unwrap_or_else(PoisonError::into_inner).clone();
        figures.store_waiting = self.store_waiting();
        figures
    }

    /// Versions that wait to be stored.
    pub(crate) fn store_waiting(&self) -> usize {
        self.store_waiting.load(Ordering::Relaxed)
    }

    /// Requests under way.
    pub(crate) fn under_way(&self) -> Vec<UnderWay> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

enum Happening {
    Event(Event),
    SitesChanged,
    Reload(Box<Reload>),
    LookAround,
    Fetched { ticket: Ticket, fetched: Box<Fetched>, exchange: Option<Box<Exchange>> },
    StoreFailed(StoreError),
    StateFailed(StateError),
}

/// What may change while running.
struct Reload {
    fetcher: Fetcher,
    options: Box<CrawlOptions>,
    min_free_bytes: u64,
    quotas: Quotas,
}

/// The driver, ready to run.
pub(crate) struct Driver {
    folder: PathBuf,
    machine: Crawl,
    fetcher: Fetcher,
    store: Arc<Store>,
    state: Arc<dyn State>,
    happenings: UnboundedReceiver<Happening>,
    sender: UnboundedSender<Happening>,
    under_way: Arc<Mutex<BTreeMap<Ticket, UnderWay>>>,
    exchanges: BTreeMap<Ticket, Box<Exchange>>,
    state_jobs: mpsc::Sender<StateJob>,
    store_jobs: mpsc::Sender<(StoreOrder, Box<Exchange>)>,
    workers: Vec<std::thread::JoinHandle<()>>,
    wake_at_ms: Option<i64>,
    /// Stays set unless every request that was made is told of in the state.
    untold_requests: Arc<AtomicBool>,
    figures: Arc<Mutex<Figures>>,
    store_waiting: Arc<AtomicUsize>,
    guard: DiskGuard,
    quota: QuotaGuard,
    /// What the machine was told last.
    has_room: bool,
}

impl Driver {
    /// Starts the worker threads over an archive that is open for writing.
    pub(crate) fn new(archive: &Archive, fetcher: Fetcher, mut options: CrawlOptions) -> Self {
        let untold_requests = archive.has_unrecorded_requests().clone();
        if untold_requests.swap(true, Ordering::Relaxed) {
            options.asked_before_ms = Some(clock::now_ms());
        }
        options.bucket_s = archive.state().bucket_s();
        let (sender, happenings) = unbounded_channel();
        let (state_jobs, state_queue) = mpsc::channel();
        let (store_jobs, store_queue) = mpsc::channel();
        let state_worker = {
            let (state, sender) = (archive.state().clone(), sender.clone());
            std::thread::spawn(move || serve_state(&*state, &state_queue, &sender))
        };
        let store_waiting = Arc::<AtomicUsize>::default();
        let store_worker = {
            let (store, sender) = (archive.store().clone(), sender.clone());
            let waiting = store_waiting.clone();
            std::thread::spawn(move || serve_store(&store, &store_queue, &sender, &waiting))
        };
        Self {
            folder: archive.folder().to_owned(),
            machine: Crawl::new(options),
            fetcher,
            store: archive.store().clone(),
            state: archive.state().clone(),
            happenings,
            sender,
            under_way: Arc::default(),
            exchanges: BTreeMap::new(),
            state_jobs,
            store_jobs,
            workers: vec![state_worker, store_worker],
            wake_at_ms: None,
            untold_requests,
            figures: Arc::default(),
            store_waiting,
            guard: DiskGuard::new(archive.folder(), 0),
            quota: QuotaGuard::default(),
            has_room: true,
        }
    }

    /// Pauses collecting while there is less room on the disk than this.
    pub(crate) fn keep_free(&mut self, min_free_bytes: u64) {
        self.guard.min_free_bytes = min_free_bytes;
    }

    /// Pauses a site, or all of them, while they take more than this.
    pub(crate) fn keep_within(&mut self, quotas: Quotas) {
        self.quota.quotas = quotas;
    }

    /// A way to talk to the driver while it runs.
    pub(crate) fn handle(&self) -> DriverHandle {
        DriverHandle {
            happenings: self.sender.clone(),
            under_way: self.under_way.clone(),
            figures: self.figures.clone(),
            store_waiting: self.store_waiting.clone(),
        }
    }

    /// Runs until `until` holds or `stop` is ready. An error of store or state ends the run, after
    /// what is under way has been given up; nothing committed is lost.
    pub(crate) async fn run(
        mut self,
        mut until: Until,
        stop: impl Future<Output = ()>,
        mut notice: impl FnMut(Notice<'_>, &Crawl),
    ) -> anyhow::Result<Ended> {
        let mut stop = std::pin::pin!(stop);
        let mut stopping = false;
        let mut given_up: Option<tokio::time::Instant> = None;
        let only = match &until {
            Until::RoundsFinished(sites) => Some(sites.clone()),
            Until::Stopped => None,
        };
        self.give_state(StateJob::ReadSites);
        let mut look_around = tokio::time::interval(LOOK_AROUND);
        look_around.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let wake = self.wake_at_ms.map(|at_ms| {
                Duration::from_millis(u64::try_from(at_ms - clock::now_ms()).unwrap_or(0))
            });
            let happening = tokio::select! {
                biased;
                () = &mut stop, if !stopping => {
                    stopping = true;
                    given_up = tokio::time::Instant::now().checked_add(STOP_PATIENCE);
                    Happening::Event(Event::Stop)
                }
                () = wait_until(given_up), if given_up.is_some() => return self.end(Ended::Stopped),
                _ = look_around.tick() => Happening::LookAround,
                Some(happening) = self.happenings.recv() => happening,
                () = tokio::time::sleep(wake.unwrap_or(Duration::MAX)), if wake.is_some() => {
                    self.wake_at_ms = None;
                    Happening::Event(Event::Wake)
                }
            };
            let event = match happening {
                // Who waits for some rounds does not want the others that happen to be due.
                Happening::Event(Event::Sites(mut sites)) => {
                    sites.retain(|site| only.as_ref().is_none_or(|only| only.contains(&site.id)));
                    self.quota.know(&sites);
                    let _ = self.sender.send(Happening::LookAround);
                    Event::Sites(sites)
                }
                Happening::Event(event) => event,
                Happening::SitesChanged => {
                    self.give_state(StateJob::ReadSites);
                    continue;
                }
                Happening::LookAround => {
                    self.look_around();
                    let reached = self.quota.reached().next().cloned();
                    // Who waits for rounds is told that they cannot be finished.
                    match (&until, reached) {
                        (Until::RoundsFinished(_), Some(reached)) => return self.fail(reached),
                        _ => continue,
                    }
                }
                Happening::Reload(reload) => self.reload(*reload),
                Happening::Fetched { ticket, fetched, exchange } => {
                    self.forget_under_way(ticket);
                    self.count(|figures| figures.answered(fetched.elapsed_ms));
                    if let Some(exchange) = exchange {
                        self.exchanges.insert(ticket, exchange);
                    }
                    Event::Fetched { ticket, fetched }
                }
                Happening::StoreFailed(error) => return self.fail(error),
                Happening::StateFailed(error) => return self.fail(error),
            };
            let commands = self.machine.step(clock::now_ms(), event);
            let mut stopped = false;
            for command in commands {
                match command {
                    Command::Stopped => stopped = true,
                    Command::RoundFinished(report) => {
                        notice(Notice::RoundFinished(&report), &self.machine);
                        if let Until::RoundsFinished(sites) = &mut until {
                            sites.remove(&report.site);
                        }
                    }
                    command => self.carry_out(command, &mut notice),
                }
            }
            if matches!(&until, Until::RoundsFinished(sites) if sites.is_empty()) {
                return self.end(Ended::Finished);
            }
            if stopped {
                return self.end(Ended::Stopped);
            }
        }
    }

    fn carry_out(&mut self, command: Command, notice: &mut impl FnMut(Notice<'_>, &Crawl)) {
        match command {
            Command::BeginRound(site) => self.give_state(StateJob::BeginRound(site)),
            Command::LoadRound { round, after, limit } => {
                self.give_state(StateJob::LoadRound { round, after, limit });
            }
            Command::LoadMap(round) => self.load_map(round),
            Command::Plan(work) => self.plan(*work),
            Command::LoadPages { round, pages } => {
                self.give_state(StateJob::LoadPages { round, pages });
            }
            Command::LoadDue(query) => self.give_state(StateJob::LoadDue(query)),
            Command::LoadShared(site) => self.give_state(StateJob::LoadShared(site)),
            Command::LoadOrder => self.give_state(StateJob::LoadOrder),
            Command::LoadFound { after, limit } => {
                self.give_state(StateJob::LoadFound { after, limit });
            }
            Command::LoadNew(places) => self.give_state(StateJob::LoadNew(places)),
            Command::LoadLinks(places) => self.give_state(StateJob::LoadLinks(places)),
            Command::LoadNear(query) => self.give_state(StateJob::LoadNear(query)),
            Command::ReadLinks(page) => self.read_links(*page),
            Command::Fetch(order) => self.fetch(*order),
            Command::Store(order) => {
                if let Some(exchange) = self.exchanges.remove(&order.ticket) {
                    self.store_waiting.fetch_add(1, Ordering::Relaxed);
                    // A store thread that is gone has reported its failure already.
                    let _ = self.store_jobs.send((*order, exchange));
                }
            }
            Command::Commit { ticket, change } => {
                if let (Some(ticket), Change::Visit(visit)) = (ticket, &change) {
                    self.exchanges.remove(&ticket);
                    self.count(|figures| figures.visited(visit));
                    if let Some(url) = self.machine.committing(ticket) {
                        let (outcome, detail) = (visit.outcome, visit.detail.as_deref());
                        notice(Notice::Visited { url, outcome, detail }, &self.machine);
                    }
                }
                self.give_state(StateJob::Commit { ticket, change });
            }
            Command::WakeAt(at_ms) => {
                self.wake_at_ms = Some(at_ms);
                let pause_ms = at_ms - clock::now_ms();
                if self.machine.fetching() == 0 && pause_ms >= TELLING_PAUSE_MS {
                    let pause = Duration::from_millis(pause_ms.unsigned_abs());
                    notice(Notice::Resting { pause }, &self.machine);
                }
            }
            Command::Trapped { server, trap, url } => {
                tracing::warn!(%server, reason = trap.text(), %url, "links are not followed");
            }
            Command::RoundFinished(_) | Command::Stopped => {}
        }
    }

    fn count(&self, count: impl FnOnce(&mut Figures)) {
        count(&mut self.figures.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Looks after the room on the disk, the quotas and the numbers.
    fn look_around(&mut self) {
        let free_bytes = self.guard.free_bytes();
        let min_free_bytes = self.guard.min_free_bytes;
        match self.guard.turn(free_bytes) {
            Some(true) => tracing::warn!(
                free_bytes,
                min_free_bytes,
                "there is space again, collecting resumes"
            ),
            Some(false) => tracing::warn!(
                free_bytes,
                min_free_bytes,
                "too little space on the disk, collecting is paused until there is more"
            ),
            None => {}
        }
        if self.quota.is_needed() {
            self.look_at_quotas();
        }
        let has_room = !self.guard.is_paused() && !self.quota.is_archive_full();
        if std::mem::replace(&mut self.has_room, has_room) != has_room {
            self.tell_machine(Event::Room(has_room));
        }
        self.count(|figures| {
            figures.look(&self.machine, clock::now_ms());
            (figures.free_bytes, figures.min_free_bytes) = (free_bytes, min_free_bytes);
            figures.waits_for_room = !has_room;
            figures.reached = self.quota.reached().cloned().collect();
        });
    }

    fn look_at_quotas(&mut self) {
        // Files come and go while packs are written again; then the next look tells.
        let archive_bytes = match self.quota.quotas.archive_bytes {
            0 => Some(0),
            _ => folder_bytes(&self.folder).ok(),
        };
        let (Some(archive_bytes), Ok(site_bytes)) = (archive_bytes, self.store.site_bytes()) else {
            return;
        };
        let (fresh, over) = self.quota.look(archive_bytes, &site_bytes);
        for reached in &fresh {
            tracing::warn!("{reached}; its collecting is paused until there is space");
        }
        for reached in &over {
            let whose = reached.site.as_ref().map_or("the archive", |(_, name)| name);
            tracing::warn!("{whose} is below its quota again, collecting resumes");
        }
        if !(fresh.is_empty() && over.is_empty()) {
            self.tell_machine(Event::Full(self.quota.full_sites()));
        }
    }

    fn tell_machine(&self, event: Event) {
        let _ = self.sender.send(Happening::Event(event));
    }

    fn reload(&mut self, reload: Reload) -> Event {
        self.fetcher = reload.fetcher;
        self.guard.min_free_bytes = reload.min_free_bytes;
        self.quota.quotas = reload.quotas;
        self.count(|figures| figures.reloads += 1);
        let _ = self.sender.send(Happening::LookAround);
        Event::Options(reload.options)
    }

    fn give_state(&self, job: StateJob) {
        // A state thread that is gone has reported its failure already.
        let _ = self.state_jobs.send(job);
    }

    fn forget_under_way(&self, ticket: Ticket) {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner).remove(&ticket);
    }

    fn fetch(&mut self, order: FetchOrder) {
        self.count(|figures| figures.asked(order.purpose));
        let (fetcher, sender) = (self.fetcher.clone(), self.sender.clone());
        let store = self.store.clone();
        let under_way = UnderWay { url: order.url.clone(), since_ms: clock::now_ms() };
        self.under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(order.ticket, under_way);
        tokio::spawn(async move {
            let request = FetchRequest {
                validators: Validators {
                    etag: order.etag.clone(),
                    last_modified: order.last_modified.clone(),
                },
                addresses: if order.allow_private {
                    AddressPolicy::AllowPrivate
                } else {
                    AddressPolicy::Public
                },
                ..FetchRequest::new(order.url.clone())
            };
            let began_ms = clock::now_ms();
            let result = fetcher.fetch(&request).await;
            let ticket = order.ticket;
            let read = tokio::task::spawn_blocking(move || read(&order, result, began_ms, &store));
            let (fetched, exchange) = read.await.unwrap_or_else(|panic| {
                let detail = format!("the answer could not be read: {panic}");
                (failed(0, "internal", detail, false, false), None)
            });
            let _ =
                sender.send(Happening::Fetched { ticket, fetched: Box::new(fetched), exchange });
        });
    }

    /// Reads the links of a stored version: it came from elsewhere, and no visit told them.
    fn read_links(&self, page: PageLinks) {
        let (store, sender) = (self.store.clone(), self.sender.clone());
        tokio::task::spawn_blocking(move || {
            // A version that cannot be read has no links; `verify` is for that.
            let links = page.version.and_then(|version| store.read(VersionId(version)).ok());
            let links = links
                .map(|version| stored_links(&page.url, &version.head.response_head, &version.body));
            let (page, links) = (page.page, links.unwrap_or_default());
            let _ = sender.send(Happening::Event(Event::LinksRead { page, links }));
        });
    }

    /// Reads a site's map, while the state's thread goes on: all that the map must tell is committed.
    fn load_map(&self, round: Round) {
        let (state, sender) = (self.state.clone(), self.sender.clone());
        tokio::task::spawn_blocking(move || {
            let _ = sender.send(match load_map(&*state, &round) {
                Ok(event) => Happening::Event(event),
                Err(error) => Happening::StateFailed(error),
            });
        });
    }

    /// Works on a round's plan: on a large site this takes seconds, and other sites go on meanwhile.
    fn plan(&self, work: PlanWork) {
        let (sender, round) = (self.sender.clone(), work.round());
        tokio::spawn(async move {
            let done = tokio::task::spawn_blocking(move || work.carry_out()).await;
            let done = Box::new(done.unwrap_or_else(|_| PlanWork::failed(round)));
            let _ = sender.send(Happening::Event(Event::PlanDone(done)));
        });
    }

    /// Ends well: all that was seen is in the state.
    fn end(self, ended: Ended) -> anyhow::Result<Ended> {
        let quiet = self.under_way.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        let untold_requests = self.untold_requests.clone();
        self.finish_workers()?;
        if quiet {
            untold_requests.store(false, Ordering::Relaxed);
        }
        Ok(ended)
    }

    /// Ends because store or state failed; what was seen last may be in neither.
    fn fail(self, error: impl Into<anyhow::Error>) -> anyhow::Result<Ended> {
        let folder = self.folder.clone();
        self.finish_workers()?;
        Err(error.into().context(format!("collecting into {} stopped", folder.display())))
    }

    /// Lets the workers finish what they were given.
    fn finish_workers(self) -> anyhow::Result<()> {
        drop(self.state_jobs);
        drop(self.store_jobs);
        for worker in self.workers {
            if worker.join().is_err() {
                anyhow::bail!("a worker thread failed; nothing committed is lost");
            }
        }
        Ok(())
    }
}

async fn wait_until(at: Option<tokio::time::Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn read(
    order: &FetchOrder,
    result: Result<Exchange, FetchFailure>,
    began_ms: i64,
    store: &Store,
) -> (Fetched, Option<Box<Exchange>>) {
    match result {
        Ok(exchange) => {
            let elapsed_ms = i64::try_from(exchange.elapsed.as_millis()).unwrap_or(i64::MAX);
            // A version that cannot be read is not compared with; `verify` is for that.
            let previous = || {
                let version = store.read(VersionId(order.previous?)).ok()?;
                let response_head = version.head.response_head;
                Some(PreviousBody { response_head, body: version.body })
            };
            let answer = read_exchange(order, &exchange, clock::now_s(), previous);
            (Fetched { elapsed_ms, result: Ok(answer) }, Some(Box::new(exchange)))
        }
        Err(failure) => {
            let refused = matches!(failure, FetchFailure::AddressRefused { .. });
            let elapsed_ms = clock::now_ms() - began_ms;
            let of_server = failure.is_server_trouble();
            (failed(elapsed_ms, failure.kind(), failure.to_string(), of_server, refused), None)
        }
    }
}

fn failed(elapsed_ms: i64, kind: &str, detail: String, of_server: bool, refused: bool) -> Fetched {
    let kind = kind.to_owned();
    Fetched { elapsed_ms, result: Err(Trouble { kind, detail, of_server, refused }) }
}
