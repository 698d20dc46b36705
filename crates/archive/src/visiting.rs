//! Between a fetcher, the store and the crawl machine: reading what came, and storing it.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;

use nenrin_crawl::{
    Answer, Appetite, COMPARED_MAX_BYTES, FetchOrder, PreviousBody, StoreOrder, read_exchange,
    stored_links,
};
use nenrin_fetch::{Exchange, Protocol};
use nenrin_state::PageLinks;
use nenrin_store::{NewVersion, Put, Store, StoreError, Version, VersionId};
use nenrin_urls::CanonicalUrl;

/// The largest stored body that is read for its links.
pub(crate) const LINKS_FROM_MAX_BYTES: u64 = 16 << 20;

/// Storing a smaller body takes too little time to be stopped.
const STOPPABLE_BYTES: u64 = 1 << 20;

/// More threads that read would cost memory and save little time.
const READERS_MAX: usize = 8;

/// Reads an exchange as [`read_exchange`] does, compared with the version before in the store.
///
/// # Errors
/// What reading the body's file says.
pub fn read_fetched(
    store: &Store,
    order: &FetchOrder,
    exchange: &Exchange,
    now_s: i64,
    appetite: Appetite,
) -> io::Result<Option<Answer>> {
    // A version that cannot be read is not compared with; `verify` is for that.
    read_exchange(order, exchange, now_s, appetite, || {
        let version = read_small(store, order.previous?, COMPARED_MAX_BYTES as u64)?;
        Some(PreviousBody { response_head: version.head.response_head, body: version.body })
    })
}

/// The thread on which large bodies are read and stored, one after the other. Either takes several times
/// the body's size, and the system's allocator keeps for each thread what was freed on it: on one thread,
/// the memory of one body serves the next. Clones share it.
#[derive(Clone)]
pub struct LargeThread(Arc<Large>);

#[derive(Default)]
struct Large {
    work: Mutex<LargeWork>,
    changed: Condvar,
}

#[derive(Default)]
struct LargeWork {
    jobs: VecDeque<(LargeJob, Job)>,
    under_way: Option<LargeJob>,
    is_over: bool,
}

/// What is done with a large body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LargeJob {
    Read,
    Store,
}

impl LargeThread {
    /// Starts it. It ends with [`end`](Self::end).
    pub fn start() -> Self {
        let large = Arc::new(Large::default());
        let worker = large.clone();
        thread::spawn(move || {
            while let Some(job) = worker.next() {
                // The caller that waits for it sees that it failed; the next job goes on.
                drop(panic::catch_unwind(AssertUnwindSafe(job)));
            }
        });
        Self(large)
    }

    /// Does this after all that was given before, unless the end comes first.
    pub(crate) fn add(&self, kind: LargeJob, job: impl FnOnce() + Send + 'static) {
        let mut work = self.0.work();
        if !work.is_over {
            work.jobs.push_back((kind, Box::new(job)));
            self.0.changed.notify_all();
        }
    }

    /// Drops what has not begun, and waits for a body that is being stored. Reading changes nothing, and is
    /// not waited for.
    pub fn end(&self) {
        let mut work = self.0.work();
        work.is_over = true;
        let dropped = std::mem::take(&mut work.jobs);
        self.0.changed.notify_all();
        while work.under_way == Some(LargeJob::Store) {
            work = self.0.changed.wait(work).unwrap_or_else(PoisonError::into_inner);
        }
        drop(work);
        drop(dropped);
    }
}

impl Large {
    fn work(&self) -> MutexGuard<'_, LargeWork> {
        // It is whole between any two statements that change it.
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next job; none after the end.
    fn next(&self) -> Option<Job> {
        let mut work = self.work();
        work.under_way = None;
        self.changed.notify_all();
        while work.jobs.is_empty() && !work.is_over {
            work = self.changed.wait(work).unwrap_or_else(PoisonError::into_inner);
        }
        let (kind, job) = work.jobs.pop_front()?;
        work.under_way = Some(kind);
        Some(job)
    }
}

/// The threads that read bodies: as many as there are processors, and the one for large bodies.
#[derive(Clone)]
pub struct ReadingThreads {
    usual: mpsc::Sender<Job>,
    large: LargeThread,
}

type Job = Box<dyn FnOnce() + Send>;

impl ReadingThreads {
    /// Starts the threads; they end with the last clone.
    pub fn start(large: LargeThread) -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self { usual: started(processors.min(READERS_MAX)), large }
    }

    /// Does this when it is its turn.
    pub fn add(&self, is_large: bool, job: impl FnOnce() + Send + 'static) {
        match is_large {
            // The threads are there as long as this is.
            false => drop(self.usual.send(Box::new(job))),
            true => self.large.add(LargeJob::Read, job),
        }
    }
}

/// So many threads that do what is sent.
fn started(threads: usize) -> mpsc::Sender<Job> {
    let (sender, jobs) = mpsc::channel::<Job>();
    let jobs = Arc::new(Mutex::new(jobs));
    for _ in 0..threads {
        let jobs = jobs.clone();
        thread::spawn(move || {
            let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
            while let Ok(job) = next() {
                // The caller that waits for it sees that it failed; the next job goes on.
                drop(panic::catch_unwind(AssertUnwindSafe(job)));
            }
        });
    }
    sender
}

/// The links of a stored version that came without them. One that cannot be read has none.
pub fn links_of_stored(store: &Store, page: &PageLinks) -> Vec<CanonicalUrl> {
    let version = page.version.and_then(|id| read_small(store, id, LINKS_FROM_MAX_BYTES));
    let links =
        version.map(|version| stored_links(&page.url, &version.head.response_head, &version.body));
    links.unwrap_or_default()
}

/// A version whose body is no larger than this, if it can be read.
pub(crate) fn read_small(store: &Store, id: VersionId, max_bytes: u64) -> Option<Version> {
    store.head(id).ok().filter(|head| head.body_bytes <= max_bytes)?;
    store.read(id).ok()
}

/// Stores what a fetch brought. A large body ends with [`StoreError::Stopped`] when `is_stopping`
/// becomes true.
///
/// # Errors
/// [`StoreError`] of the store.
pub fn put_exchange(
    store: &Store,
    order: &StoreOrder,
    exchange: &Exchange,
    is_stopping: &AtomicBool,
) -> Result<Put, StoreError> {
    let tls = exchange.tls.as_deref().map(tls_word);
    let version = NewVersion {
        url: &order.url,
        group: order.site.0,
        visited_at_s: order.visited_at_s,
        status: exchange.status,
        protocol: match exchange.protocol {
            Protocol::Http10 => "http/1.0",
            Protocol::Http11 => "http/1.1",
            Protocol::Http2 => "h2",
        },
        tls: tls.as_deref(),
        server_address: exchange.server_address,
        request_head: &exchange.request_head,
        response_head: &exchange.response_head,
        body: b"",
        truncated: None,
        previous: order.previous,
    };
    if exchange.body.is_spooled() || exchange.body.len() > STOPPABLE_BYTES {
        return store
            .put_read(&version, &mut Stoppable { body: exchange.body.reader(), is_stopping });
    }
    let body = exchange.body.front(usize::MAX).map_err(|e| StoreError::Stopped(e.to_string()))?;
    store.put(&NewVersion { body: &body, ..version })
}

/// A body whose reading ends when the program does.
struct Stoppable<'a, R> {
    body: R,
    is_stopping: &'a AtomicBool,
}

impl<R: Read> Read for Stoppable<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_stopping.load(Ordering::Relaxed) {
            return Err(io::Error::other("collecting stops"));
        }
        self.body.read(buffer)
    }
}

/// "tls/1.3", as archives write it, for what rustls calls `TLSv1_3`.
fn tls_word(tls: &str) -> String {
    let version = tls.strip_prefix("TLSv").map(|version| version.replace('_', "."));
    version.map_or_else(|| tls.to_owned(), |version| format!("tls/{version}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    #[test]
    fn large_bodies_are_handled_on_one_thread_and_small_ones_do_not_wait() {
        let large = LargeThread::start();
        let threads = ReadingThreads::start(large.clone());
        let (sender, done) = mpsc::channel();
        let (open, door) = mpsc::channel::<()>();
        large.add(LargeJob::Store, move || {
            let _ = door.recv();
        });
        let tell = |name: &'static str| {
            let sender = sender.clone();
            move || {
                let _ = sender.send((name, thread::current().id()));
            }
        };
        threads.add(true, tell("read"));
        threads.add(false, tell("small"));
        large.add(LargeJob::Store, tell("stored"));
        assert_eq!(done.recv_timeout(PATIENCE).unwrap().0, "small");
        assert!(done.recv_timeout(Duration::from_millis(50)).is_err(), "it did not wait");
        open.send(()).unwrap();
        let (first, one) = done.recv_timeout(PATIENCE).unwrap();
        let (second, other) = done.recv_timeout(PATIENCE).unwrap();
        assert_eq!((first, second, one == other), ("read", "stored", true));
        large.end();
    }

    #[test]
    fn the_end_waits_for_what_is_being_stored_and_not_for_what_is_being_read() {
        for kind in [LargeJob::Read, LargeJob::Store] {
            let large = LargeThread::start();
            let (begun, begins) = mpsc::channel();
            let (open, door) = mpsc::channel::<()>();
            large.add(kind, move || {
                let _ = begun.send(());
                let _ = door.recv();
            });
            begins.recv_timeout(PATIENCE).unwrap();
            let (dropped, is_dropped) = mpsc::channel::<()>();
            large.add(LargeJob::Store, move || {
                let _ = dropped.send(());
            });
            let (ended, is_ended) = mpsc::channel();
            thread::spawn(move || {
                large.end();
                large.add(LargeJob::Store, || panic!("it has ended"));
                let _ = ended.send(());
            });
            if kind == LargeJob::Store {
                assert!(is_ended.recv_timeout(Duration::from_millis(50)).is_err(), "{kind:?}");
                open.send(()).unwrap();
            }
            assert_eq!(is_ended.recv_timeout(PATIENCE), Ok(()), "{kind:?}");
            assert!(is_dropped.recv().is_err(), "what had not begun was dropped");
        }
    }
}
