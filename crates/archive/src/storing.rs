//! The threads that store what was fetched: some compress and put, large bodies are put on a thread that
//! others use as well, and one syncs, many versions at a time.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nenrin_crawl::{Event, StoreOrder};
use nenrin_fetch::Exchange;
use nenrin_store::{EffortGauge, Store, StoreError};

use crate::visiting::{LargeJob, LargeThread, put_exchange};

/// Versions put before one sync at most.
const SYNCED_TOGETHER: usize = 256;
/// And where they wait for each other: enough for an object, and well below what the machine lets wait.
const GROUPED_TOGETHER: usize = 384;
/// While more is being put, a sync waits until this long after the one before.
const SYNC_PAUSE: Duration = Duration::from_millis(20);
/// More threads that put would only wait for the one that writes.
const PUTTERS_MAX: usize = 4;

/// Larger bodies are put one after the other.
const LARGE_BYTES: u64 = 1 << 20;

/// A version to store.
pub type StoreJob = (StoreOrder, Arc<Exchange>);

type Stored = Result<Event, StoreError>;

/// The store as the crawl needs it: jobs go in, and each comes back as [`Event::Stored`] once it is
/// durable. The machine's free time decides how well bodies are compressed.
#[derive(Clone)]
pub struct StoreWork {
    store: Arc<Store>,
    clock: fn() -> Instant,
    waiting: Arc<AtomicUsize>,
    is_stopping: Arc<AtomicBool>,
    /// Where every sync writes an object: how long versions wait for others.
    pause: Option<Duration>,
    large: LargeThread,
}

impl StoreWork {
    /// Large bodies are put on that thread. When `is_stopping` becomes true, one that is being put is left
    /// out: it is due again.
    pub fn new(
        store: Arc<Store>,
        clock: fn() -> Instant,
        is_stopping: Arc<AtomicBool>,
        large: LargeThread,
    ) -> Self {
        Self { store, clock, waiting: Arc::default(), is_stopping, pause: None, large }
    }

    /// Lets versions wait so long for others to be synced with them, and many more together.
    #[must_use]
    pub fn with_pause(self, pause: Option<Duration>) -> Self {
        Self { pause, ..self }
    }

    /// How many jobs are not durable yet. The caller adds 1 for each job that it sends.
    pub fn waiting(&self) -> &Arc<AtomicUsize> {
        &self.waiting
    }

    /// Starts the threads. They end with the jobs, or after the first error, which is reported as well.
    pub fn start(
        self,
        jobs: mpsc::Receiver<StoreJob>,
        report: impl Fn(Stored) + Send + 'static,
    ) -> Vec<JoinHandle<()>> {
        let putters = thread::available_parallelism().map_or(1, usize::from).min(PUTTERS_MAX);
        let gauge = Mutex::new(EffortGauge::new(putters, (self.clock)()));
        let has_failed = AtomicBool::new(false);
        let work = self.clone();
        let putting = Arc::new(Putting { jobs: Mutex::new(jobs), gauge, work, has_failed });
        let (done, puts) = mpsc::channel();
        let start = |_| {
            let (putting, done) = (putting.clone(), done.clone());
            thread::spawn(move || putting.serve(&done))
        };
        let mut workers: Vec<JoinHandle<()>> = (0..putters).map(start).collect();
        drop(done);
        workers.push(thread::spawn(move || self.serve_syncs(&puts, report)));
        workers
    }

    /// Makes what was put durable, and reports it.
    fn serve_syncs(self, puts: &mpsc::Receiver<Stored>, report: impl Fn(Stored)) {
        let mut synced = (self.clock)();
        while let Ok(first) = puts.recv() {
            let batch = self.gather(first, puts, synced + self.pause.unwrap_or(SYNC_PAUSE));
            let count = batch.len();
            let puts = batch.into_iter().collect::<Result<Vec<Event>, StoreError>>();
            match puts.and_then(|events| self.store.sync().map(|()| events)) {
                Ok(events) => {
                    synced = (self.clock)();
                    self.waiting.fetch_sub(count, Ordering::Relaxed);
                    events.into_iter().for_each(|event| report(Ok(event)));
                }
                Err(error) => return report(Err(error)),
            }
        }
    }

    /// What is synced together: all that is being put, but nothing waits for what comes later.
    fn gather(&self, first: Stored, puts: &mpsc::Receiver<Stored>, until: Instant) -> Vec<Stored> {
        let mut batch = vec![first];
        let most = if self.pause.is_some() { GROUPED_TOGETHER } else { SYNCED_TOGETHER };
        while batch.len() < most && !self.is_stopping.load(Ordering::Relaxed) {
            let is_more = batch.len() < self.waiting.load(Ordering::Relaxed);
            let pause = match is_more || self.pause.is_some() {
                true => until.saturating_duration_since((self.clock)()),
                false => Duration::ZERO,
            };
            let Ok(put) = puts.recv_timeout(pause) else { break };
            batch.push(put);
        }
        batch
    }
}

/// What the threads that put have in common.
struct Putting {
    jobs: Mutex<mpsc::Receiver<StoreJob>>,
    gauge: Mutex<EffortGauge>,
    work: StoreWork,
    has_failed: AtomicBool,
}

impl Putting {
    /// Puts bodies and hands large ones on, until there are no more or something failed.
    fn serve(self: &Arc<Self>, done: &mpsc::Sender<Stored>) {
        while !self.has_failed.load(Ordering::Relaxed) {
            let job = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(job) = job else { return };
            if job.1.body.len() <= LARGE_BYTES {
                self.serve_one(job, done);
                continue;
            }
            let (putting, done) = (self.clone(), done.clone());
            self.work.large.add(LargeJob::Store, move || putting.serve_one(job, &done));
        }
    }

    /// Puts one, unless another one failed.
    fn serve_one(&self, (order, exchange): StoreJob, done: &mpsc::Sender<Stored>) {
        if self.has_failed.load(Ordering::Relaxed) {
            return;
        }
        let Some(put) = self.put(&order, &exchange) else { return };
        drop(exchange);
        self.has_failed.fetch_or(put.is_err(), Ordering::Relaxed);
        // Who syncs has ended after the first error.
        let _ = done.send(put);
    }

    /// None if a stop left it out.
    fn put(&self, order: &StoreOrder, exchange: &Exchange) -> Option<Stored> {
        let StoreWork { store, clock, waiting, is_stopping, .. } = &self.work;
        let began = clock();
        store.set_effort(self.gauge().effort(began, waiting.load(Ordering::Relaxed)));
        // A thread that ends by itself would leave this visit waiting for ever.
        let put = panic::catch_unwind(AssertUnwindSafe(|| {
            put_exchange(store, order, exchange, is_stopping)
        }));
        let put = put.unwrap_or_else(|_| Err(StoreError::Stopped("storing it failed".to_owned())));
        self.gauge().add_busy(clock().saturating_duration_since(began));
        if matches!(put, Err(StoreError::Stopped(_))) && is_stopping.load(Ordering::Relaxed) {
            waiting.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(put.map(|put| Event::Stored {
            ticket: order.ticket,
            version: put.id,
            stored_bytes: put.new_bytes,
            is_known: put.whole_body_known,
        }))
    }

    fn gauge(&self) -> MutexGuard<'_, EffortGauge> {
        self.gauge.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
