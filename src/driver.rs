//! Carries out the machine's commands with sockets, threads and disks.
//!
//! Five parts talk through queues:
//!
//! ```text
//!   loop (owns the machine) ── Fetch ──► tasks, at most `parallel`     ── Fetched ──┐
//!     ▲                     ── Store ──► store threads, one sync a batch ─ Stored ───┤
//!     │                     ── Commit, Load ──► state thread, one transaction a batch┤
//!     │                     ── Plan, long loads ──► tasks, one a round under way ────┤
//!     └──────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! The queues cannot grow: the machine has at most `parallel + unstored_max` visits under way.

mod handle;
mod happening;
mod tasks;

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

use nenrin_archive::{
    Archive, Figures, LargeThread, Logins, NewCookies, Pauses, Posts, Quotas, ReadingThreads,
    RenderWork, SitesTaken, SpaceGuard, StateJob, StateWork, StoreJob, StoreWork,
};
use nenrin_crawl::{
    Command, Crawl, CrawlOptions, Event, FetchOrder, Load, RenderOrder, RoundReport, Ticket,
};
use nenrin_fetch::{Exchange, Fetcher, Memory, Share};
use nenrin_lang::Reason;
use nenrin_render::RenderOptions;
use nenrin_state::{Change, Epoch, Outcome, SiteId, State, StateError};
use nenrin_store::Store;
use nenrin_urls::CanonicalUrl;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use self::{
    handle::Requests,
    happening::{Happening, Reload},
};
use crate::clock;

pub(crate) use self::handle::{DriverHandle, Drivers, UnderWay};

/// How long requests under way may still take after a stop. Then they are abandoned, and their pages are due again.
const STOP_PATIENCE: Duration = Duration::from_secs(2);

/// What is reported to a person while the driver works.
pub(crate) enum Notice<'a> {
    /// A visit was judged and goes to be committed.
    Visited { url: &'a CanonicalUrl, outcome: Outcome, reason: Option<&'a Reason> },
    /// A round is finished.
    RoundFinished(&'a RoundReport),
    /// Nothing can be asked for this long: every server left must rest.
    Resting { pause: Duration },
}

/// How often the free disk space and the machine's numbers are checked.
const LOOK_AROUND: Duration = Duration::from_secs(5);

/// A clock that is set back by less is waited out.
const CLOCK_BACK_MS: i64 = 3_600_000;

/// 1 January 2024. Without a battery, clocks begin in 1970: visits of that year would make all others look
/// as if they were in the future.
const EARLIEST_S: i64 = 1_704_067_200;

/// A shorter pause is not worth a message.
const TELLING_PAUSE_MS: i64 = 15_000;

/// Times of the state may be in the future now; the next start corrects them.
#[derive(Debug)]
pub(crate) struct ClockSetBack;

impl std::error::Error for ClockSetBack {}

impl std::fmt::Display for ClockSetBack {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("the clock was set back; start the program again")
    }
}

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

/// What a happening means for the machine.
enum Meaning {
    /// It takes this event; with an answer comes its content, which may have to be stored.
    Event(Event, Box<Content>),
    Nothing,
    Failed(anyhow::Error),
}

/// What came with an answer: its body, and the memory for what was found in it.
#[derive(Default)]
struct Content {
    exchange: Option<Arc<Exchange>>,
    share: Option<Share>,
    cookies: Option<Box<NewCookies>>,
}

/// The driver, ready to run.
pub(crate) struct Driver {
    folder: PathBuf,
    machine: Crawl,
    fetcher: Fetcher,
    memory: Memory,
    reading: ReadingThreads,
    store: Arc<Store>,
    state: Arc<dyn State>,
    epoch: Epoch,
    happenings: UnboundedReceiver<Happening>,
    sender: UnboundedSender<Happening>,
    under_way: Requests,
    /// They end with the driver.
    fetching: tokio::task::JoinSet<()>,
    state_jobs: mpsc::Sender<StateJob>,
    store_jobs: mpsc::Sender<StoreJob>,
    workers: Vec<std::thread::JoinHandle<()>>,
    large: LargeThread,
    /// Started with the first page that is rendered.
    renderings: Option<RenderWork>,
    render_options: RenderOptions,
    logins: Logins,
    posts: Posts,
    /// Memory of visits that are being stored.
    shares: BTreeMap<Ticket, Share>,
    /// Set when a stop was asked for; the next one, when requests under way are abandoned.
    is_stopping: Arc<AtomicBool>,
    is_given_up: Arc<AtomicBool>,
    wake_at_ms: Option<i64>,
    /// Stays set unless the state records every request that was made.
    unrecorded_requests: Arc<AtomicBool>,
    figures: Arc<Mutex<Figures>>,
    store_waiting: Arc<AtomicUsize>,
    space: SpaceGuard,
    last_ms: i64,
}

impl Driver {
    /// Starts the worker threads over an archive that is open for writing.
    ///
    /// # Errors
    /// When the archive cannot be taken over, or the clock is surely wrong.
    pub(crate) fn new(
        archive: &Archive,
        fetcher: Fetcher,
        options: CrawlOptions,
        memory_bytes: u64,
    ) -> anyhow::Result<Self> {
        Self::holding(archive, fetcher, options, memory_bytes, None)
    }

    /// As [`new`](Self::new), where versions and commits wait for others.
    pub(crate) fn holding(
        archive: &Archive,
        fetcher: Fetcher,
        mut options: CrawlOptions,
        memory_bytes: u64,
        pauses: Option<Pauses>,
    ) -> anyhow::Result<Self> {
        anyhow::ensure!(
            clock::now_s() > EARLIEST_S,
            "the clock of this computer is wrong: it shows a time before this program was written; set it"
        );
        let epoch = archive.take_over()?;
        if let Some(pages) = archive.state().set_clock_back(clock::now_s())? {
            tracing::warn!(
                pages,
                "these pages were visited while the clock was ahead, and are due now"
            );
        }
        let unrecorded_requests = archive.has_unrecorded_requests().clone();
        if unrecorded_requests.swap(true, Ordering::Relaxed) {
            options.asked_before_ms = Some(clock::now_ms());
        }
        options.bucket_s = archive.state().bucket_s();
        let memory = Memory::new(memory_bytes, archive.folder().to_owned());
        let (sender, happenings) = unbounded_channel();
        let (state_jobs, state_queue) = mpsc::channel();
        let (store_jobs, store_queue) = mpsc::channel();
        let (is_stopping, is_given_up) = <(Arc<AtomicBool>, Arc<AtomicBool>)>::default();
        let state_work = StateWork {
            state: archive.state().clone(),
            epoch,
            pause: pauses.map(|pauses| pauses.commits),
            clock: clock::instant,
            now_s: clock::now_s,
            is_stopping: is_stopping.clone(),
            is_given_up: is_given_up.clone(),
        };
        let answered = sender.clone();
        let state_worker = std::thread::spawn(move || {
            state_work.serve(&state_queue, |answer| {
                let happened = answer.map_or_else(Happening::StateFailed, Happening::Event);
                let _ = answered.send(happened);
            });
        });
        let large = LargeThread::start();
        let (store, stops) = (archive.store().clone(), is_stopping.clone());
        let work = StoreWork::new(store, clock::instant, stops, large.clone())
            .with_pause(pauses.map(|pauses| pauses.objects));
        let (store_waiting, stored) = (work.waiting().clone(), sender.clone());
        let mut workers = work.start(store_queue, move |put| {
            let _ = stored.send(put.map_or_else(Happening::StoreFailed, Happening::Event));
        });
        workers.push(state_worker);
        Ok(Self {
            folder: archive.folder().to_owned(),
            machine: Crawl::new(options),
            fetcher: fetcher.with_memory(memory.clone()),
            memory,
            reading: ReadingThreads::start(large.clone()),
            store: archive.store().clone(),
            state: archive.state().clone(),
            epoch,
            happenings,
            sender,
            under_way: Arc::default(),
            fetching: tokio::task::JoinSet::new(),
            state_jobs,
            store_jobs,
            workers,
            large,
            renderings: None,
            posts: Posts::default(),
            render_options: RenderOptions::default(),
            logins: Logins::open(archive.folder(), &crate::config::login_key()),
            shares: BTreeMap::new(),
            is_stopping,
            is_given_up,
            wake_at_ms: None,
            unrecorded_requests,
            figures: Arc::default(),
            store_waiting,
            space: SpaceGuard::new(archive.folder()),
            last_ms: 0,
        })
    }

    /// Pauses collecting while the disk has less free space than this, and a site, or all of them,
    /// while they take more than their quota.
    pub(crate) fn limit_space(&mut self, min_free_bytes: u64, quotas: Quotas) {
        self.space.set_limits(min_free_bytes, quotas);
    }

    /// Quotas hold for what all partitions take.
    pub(crate) fn share_quotas(&mut self, taken: SitesTaken) {
        self.space.share_quotas(taken);
    }

    /// How pages are rendered, where sites want that.
    pub(crate) fn render_with(&mut self, options: RenderOptions) {
        self.render_options = options;
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
    /// requests under way have been abandoned; nothing committed is lost.
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
        self.give_state(StateJob::Load(Load::Sites));
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
                    self.is_stopping.store(true, Ordering::Relaxed);
                    given_up = tokio::time::Instant::now().checked_add(STOP_PATIENCE);
                    Happening::Event(Event::Stop)
                }
                () = wait_until(given_up), if given_up.is_some() => {
                    self.is_given_up.store(true, Ordering::Relaxed);
                    return self.end(Ended::Stopped);
                }
                _ = look_around.tick() => match self.fetcher.may_ask() {
                    true => Happening::LookAround,
                    false => Happening::StateFailed(StateError::NotHeld),
                },
                Some(happening) = self.happenings.recv() => happening,
                () = tokio::time::sleep(wake.unwrap_or(Duration::MAX)), if wake.is_some() => {
                    self.wake_at_ms = None;
                    Happening::Event(Event::Wake)
                }
            };
            let (event, mut content) = match self.meaning(happening, only.as_ref()) {
                Meaning::Event(event, content) => (event, content),
                Meaning::Nothing => continue,
                Meaning::Failed(error) => return self.fail(error),
            };
            let now_ms = clock::now_ms();
            if now_ms < self.last_ms - CLOCK_BACK_MS {
                return self.fail(ClockSetBack);
            }
            self.last_ms = now_ms;
            let commands = self.machine.step(now_ms, event);
            let mut stopped = false;
            let settled = self.logins.settle(content.cookies.take(), &commands, &*self.state);
            for command in commands {
                match command {
                    Command::Stopped => stopped = true,
                    Command::RoundFinished(report) => {
                        notice(Notice::RoundFinished(&report), &self.machine);
                        if let Until::RoundsFinished(sites) = &mut until {
                            sites.remove(&report.site);
                        }
                    }
                    command => self.carry_out(command, &mut content, &mut notice),
                }
            }
            match settled {
                Ok(None) => {}
                // A round that is waited for cannot be finished without its log-in.
                Ok(Some(ended)) if only.is_some() => return self.fail(ended),
                Ok(Some(_)) => drop(self.sender.send(Happening::SitesChanged)),
                Err(error) => return self.fail(error),
            }
            if matches!(&until, Until::RoundsFinished(sites) if sites.is_empty()) {
                return self.end(Ended::Finished);
            }
            if stopped {
                return self.end(Ended::Stopped);
            }
        }
    }

    /// What a happening means for the machine. `only` are the sites whose rounds are waited for.
    fn meaning(&mut self, happening: Happening, only: Option<&BTreeSet<SiteId>>) -> Meaning {
        let event = match happening {
            // When certain rounds were requested, others that happen to be due are not wanted.
            Happening::Event(Event::Sites(mut sites)) => {
                sites.retain(|site| only.is_none_or(|only| only.contains(&site.id)));
                self.space.know(&sites);
                self.logins.resume(&sites);
                let _ = self.sender.send(Happening::LookAround);
                Event::Sites(sites)
            }
            Happening::Event(event) => event,
            Happening::SitesChanged => {
                self.give_state(StateJob::Load(Load::Sites));
                return Meaning::Nothing;
            }
            Happening::LookAround => {
                self.look_around();
                // Rounds that are waited for cannot be finished beyond a quota.
                return match self.space.reached().filter(|_| only.is_some()) {
                    Some(reached) => Meaning::Failed(reached.clone().into()),
                    None => Meaning::Nothing,
                };
            }
            Happening::Reload(reload) => self.reload(*reload),
            Happening::Fetched { ticket, fetched, exchange, share, cookies } => {
                self.forget_under_way(ticket);
                self.count(|figures| figures.answered(fetched.elapsed_ms));
                return Meaning::Event(
                    Event::Fetched { ticket, fetched },
                    Box::new(Content { exchange, share, cookies }),
                );
            }
            Happening::StoreFailed(error) => return Meaning::Failed(error.into()),
            Happening::StateFailed(error) => return Meaning::Failed(error.into()),
        };
        Meaning::Event(event, Box::default())
    }

    /// Carries out a command. `content` is what came with the answer that the machine has just taken.
    fn carry_out(
        &mut self,
        command: Command,
        content: &mut Content,
        notice: &mut impl FnMut(Notice<'_>, &Crawl),
    ) {
        match command {
            Command::Load(load) if load.takes_long() => {
                tasks::load(load, self.state.clone(), self.sender.clone())
            }
            Command::Load(load) => self.give_state(StateJob::Load(load)),
            Command::Plan(work) => tasks::plan(*work, self.sender.clone()),
            Command::ReadLinks(page) => {
                tasks::read_links(*page, self.store.clone(), self.sender.clone());
            }
            Command::Fetch(order) => self.fetch(*order),
            Command::Render(order) => self.render(*order),
            Command::ForgetRendering(ticket) => {
                self.renderings.iter().for_each(|work| work.forget(ticket));
            }
            Command::Store(order) => {
                if let Some(exchange) = content.exchange.take() {
                    self.shares.extend(content.share.take().map(|share| (order.ticket, share)));
                    self.store_waiting.fetch_add(1, Ordering::Relaxed);
                    // A store thread that is gone has reported its failure already.
                    let _ = self.store_jobs.send((*order, exchange));
                }
            }
            Command::Commit { ticket, change } => {
                if let (Some(ticket), Change::Visit(visit)) = (ticket, &change) {
                    self.count(|figures| figures.visited(visit));
                    if let Some(url) = self.machine.committing(ticket) {
                        let (outcome, reason) = (visit.outcome, visit.reason.as_ref());
                        notice(Notice::Visited { url, outcome, reason }, &self.machine);
                    }
                }
                let stored = ticket.and_then(|ticket| self.shares.remove(&ticket));
                let share = ticket.and_then(|_| stored.or_else(|| content.share.take()));
                self.give_state(StateJob::Commit { ticket, change, share });
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
            Command::RoundFinished(_) | Command::LoggedOut { .. } | Command::Stopped => {}
        }
    }

    fn count(&self, count: impl FnOnce(&mut Figures)) {
        count(&mut self.figures.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Checks the free disk space and the quotas, and updates the numbers.
    fn look_around(&mut self) {
        for event in self.space.look(&self.store) {
            let _ = self.sender.send(Happening::Event(event));
        }
        self.logins.save();
        self.memory.set_spare_bytes(self.space.spare_bytes());
        self.count(|figures| {
            figures.look(&self.machine, clock::now_ms());
            self.space.report(figures);
            figures.fetch_memory_bytes = self.memory.used_bytes();
        });
    }

    fn reload(&mut self, reload: Reload) -> Event {
        self.fetcher = reload.fetcher.with_memory(self.memory.clone());
        self.space.set_limits(reload.min_free_bytes, reload.quotas);
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
        if !self.fetcher.may_ask() {
            // Someone else may ask this server by now.
            let _ = self.sender.send(Happening::StateFailed(StateError::NotHeld));
            return;
        }
        self.count(|figures| figures.asked(order.purpose));
        let under_way =
            UnderWay { url: order.url.clone(), since_ms: clock::now_ms(), phase: "receiving" };
        self.under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(order.ticket, under_way);
        while self.fetching.try_join_next().is_some() {}
        self.fetching.spawn(tasks::fetch(
            order,
            self.fetcher.clone(),
            (self.store.clone(), self.reading.clone(), self.logins.clone(), self.posts.clone()),
            self.under_way.clone(),
            self.sender.clone(),
        ));
    }

    fn render(&mut self, order: RenderOrder) {
        let work = self.renderings.get_or_insert_with(|| {
            let sender = self.sender.clone();
            RenderWork::start(
                self.render_options.clone(),
                self.store.clone(),
                (self.state.clone(), self.epoch),
                self.posts.clone(),
                move |event| drop(sender.send(Happening::Event(event))),
            )
        });
        work.add(order);
    }

    /// Ends well: all that was seen is in the state.
    fn end(self, ended: Ended) -> anyhow::Result<Ended> {
        let quiet = self.under_way.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        let unrecorded_requests = self.unrecorded_requests.clone();
        self.finish_workers()?;
        if quiet {
            unrecorded_requests.store(false, Ordering::Relaxed);
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
        drop(self.fetching);
        self.logins.save();
        drop(self.state_jobs);
        drop(self.store_jobs);
        let joined: Vec<_> = tokio::task::block_in_place(|| {
            // Large bodies that wait are due again.
            self.large.end();
            self.workers.into_iter().map(std::thread::JoinHandle::join).collect()
        });
        anyhow::ensure!(
            joined.iter().all(Result::is_ok),
            "a worker thread failed; nothing committed is lost"
        );
        Ok(())
    }
}

async fn wait_until(at: Option<tokio::time::Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
