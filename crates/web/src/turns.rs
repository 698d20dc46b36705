//! Limits on work that may block: how much runs at once, and how much may wait.
//!
//! Passwords, and answers that read the content of many versions, have turns of their own, so that a
//! flood of these does not delay the others. One address has at most half of the turns and of the places
//! to wait, so that its flood delays others little and never sends them away.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{WebError, session::Caller};

/// From so many addresses on, those without a request are forgotten.
const ADDRESSES_KEPT: usize = 64;

/// Turns to work on a thread that may block.
pub(crate) struct Turns {
    at_work: Arc<Semaphore>,
    waiting: AtomicUsize,
    waiting_max: usize,
    of_one_address: usize,
    addresses: Mutex<BTreeMap<Caller, Arc<Own>>>,
}

/// The turns of one address.
struct Own {
    at_work: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// A turn, of an address and of all.
type Turn = (OwnedSemaphorePermit, OwnedSemaphorePermit);

impl Turns {
    /// At most `at_work` turns at once, and at most `waiting_max` requests waiting for one.
    pub(crate) fn new(at_work: usize, waiting_max: usize) -> Self {
        Self {
            at_work: Arc::new(Semaphore::new(at_work)),
            waiting: AtomicUsize::new(0),
            waiting_max,
            of_one_address: at_work.div_ceil(2),
            addresses: Mutex::default(),
        }
    }

    /// The turns of one address.
    fn own(&self, from: Option<IpAddr>) -> Arc<Own> {
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if addresses.len() >= ADDRESSES_KEPT {
            addresses
                .retain(|_, own| Arc::strong_count(own) > 1 || Arc::strong_count(&own.at_work) > 1);
        }
        let at_work = || Arc::new(Semaphore::new(self.of_one_address));
        let own = || Arc::new(Own { at_work: at_work(), waiting: AtomicUsize::new(0) });
        addresses.entry(Caller::of(from)).or_insert_with(own).clone()
    }

    /// Waits for a turn, which ends when its permits are dropped. Fails at once if too many wait.
    async fn take(&self, from: Option<IpAddr>) -> Result<Turn, WebError> {
        let (own, all) = (self.own(from), self.at_work.clone());
        if let Ok(of_own) = own.at_work.clone().try_acquire_owned()
            && let Ok(of_all) = all.clone().try_acquire_owned()
        {
            return Ok((of_own, of_all));
        }
        let _own = Queue::enter(&own.waiting, self.waiting_max.div_ceil(2))?;
        let _all = Queue::enter(&self.waiting, self.waiting_max)?;
        let busy = |_| WebError::Busy;
        let of_own = own.at_work.clone().acquire_owned().await.map_err(busy)?;
        Ok((of_own, all.acquire_owned().await.map_err(busy)?))
    }

    /// Runs work on a thread that may block, in a turn. The turn lasts as long as the work does, also
    /// when the client has disconnected.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        from: Option<IpAddr>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WebError> {
        let turn = self.take(from).await?;
        let working = move || {
            let _turn = turn;
            work()
        };
        tokio::task::spawn_blocking(working).await.map_err(|_| WebError::Unfinished)
    }
}

/// A waiting request; it leaves the queue also when the client disconnects.
struct Queue<'a>(&'a AtomicUsize);

impl<'a> Queue<'a> {
    fn enter(waiting: &'a AtomicUsize, most: usize) -> Result<Self, WebError> {
        let queue = Self(waiting);
        match waiting.fetch_add(1, Ordering::Relaxed) < most {
            true => Ok(queue),
            false => Err(WebError::Busy),
        }
    }
}

impl Drop for Queue<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, time::Duration};

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_client_that_disconnects_keeps_its_turn_until_the_work_is_done() {
        let turns = Arc::new(Turns::new(1, 2));
        let (open, door) = mpsc::channel::<()>();
        let (begun, begins) = mpsc::channel::<()>();
        let asked = {
            let turns = turns.clone();
            tokio::spawn(async move {
                turns.run(None, move || (begun.send(()).is_ok(), door.recv().is_ok())).await
            })
        };
        begins.recv().unwrap();
        asked.abort();
        assert!(asked.await.unwrap_err().is_cancelled());
        assert_eq!(turns.at_work.available_permits(), 0);
        open.send(()).unwrap();
        assert_eq!(turns.run(None, || 7).await.unwrap(), 7);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn one_address_has_half_of_the_turns() {
        let turns = Arc::new(Turns::new(2, 6));
        let address = |n: u8| Some(IpAddr::from([192, 0, 2, n]));
        let (open, door) = mpsc::channel::<()>();
        let flood: Vec<_> = {
            let door = Arc::new(Mutex::new(door));
            let one = |_| {
                let (turns, door) = (turns.clone(), door.clone());
                tokio::spawn(async move {
                    turns.run(address(1), move || door.lock().unwrap().recv().is_ok()).await
                })
            };
            (0..4).map(one).collect()
        };
        while turns.waiting.load(Ordering::Relaxed) < 3 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(matches!(turns.run(address(1), || 7).await, Err(WebError::Busy)));
        assert_eq!(turns.run(address(2), || 7).await.unwrap(), 7);
        (0..4).for_each(|_| open.send(()).unwrap());
        for one in flood {
            assert!(one.await.unwrap().unwrap());
        }
        // Who has nothing under way is forgotten.
        for n in 0..=u8::MAX {
            turns.run(address(n), || ()).await.unwrap();
        }
        assert!(turns.addresses.lock().unwrap().len() <= ADDRESSES_KEPT);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn whoever_comes_to_a_full_queue_is_sent_away_and_the_rest_is_served() {
        let turns = Arc::new(Turns::new(1, 3));
        let (open, door) = mpsc::channel::<()>();
        let first = {
            let turns = turns.clone();
            tokio::spawn(async move { turns.run(None, move || door.recv().is_ok()).await })
        };
        let waiting: Vec<_> = (0..2)
            .map(|n| {
                let turns = turns.clone();
                tokio::spawn(async move {
                    while turns.at_work.available_permits() > 0 {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                    turns.run(None, move || n).await
                })
            })
            .collect();
        while turns.waiting.load(Ordering::Relaxed) < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(matches!(turns.run(None, || ()).await, Err(WebError::Busy)));
        open.send(()).unwrap();
        assert!(first.await.unwrap().unwrap());
        for (n, served) in waiting.into_iter().enumerate() {
            assert_eq!(served.await.unwrap().unwrap(), n);
        }
        assert_eq!(turns.waiting.load(Ordering::Relaxed), 0);
    }
}
