//! Limits on work that may block: how much runs at once, and how much may wait.
//!
//! Pages, passwords and answers for programs have turns of their own, so that a flood of one kind does
//! not delay the others.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::WebError;

/// Turns to work on a thread that may block.
pub(crate) struct Turns {
    at_work: Arc<Semaphore>,
    waiting: AtomicUsize,
    waiting_max: usize,
}

impl Turns {
    /// At most `at_work` turns at once, and at most `waiting_max` requests waiting for one.
    pub(crate) fn new(at_work: usize, waiting_max: usize) -> Self {
        let at_work = Arc::new(Semaphore::new(at_work));
        Self { at_work, waiting: AtomicUsize::new(0), waiting_max }
    }

    /// Waits for a turn, which ends when the permit is dropped. Fails at once if too many wait.
    async fn take(&self) -> Result<OwnedSemaphorePermit, WebError> {
        if let Ok(turn) = self.at_work.clone().try_acquire_owned() {
            return Ok(turn);
        }
        let queue = Queue(&self.waiting);
        if queue.0.fetch_add(1, Ordering::Relaxed) >= self.waiting_max {
            return Err(WebError::Busy);
        }
        self.at_work.clone().acquire_owned().await.map_err(|_| WebError::Busy)
    }

    /// Runs work on a thread that may block, in a turn. The turn lasts as long as the work does, also
    /// when the client has disconnected.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WebError> {
        let turn = self.take().await?;
        let working = move || {
            let _turn = turn;
            work()
        };
        tokio::task::spawn_blocking(working).await.map_err(|_| WebError::Unfinished)
    }
}

/// A waiting request; it leaves the queue also when the client disconnects.
struct Queue<'a>(&'a AtomicUsize);

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
                turns.run(move || (begun.send(()).is_ok(), door.recv().is_ok())).await
            })
        };
        begins.recv().unwrap();
        asked.abort();
        assert!(asked.await.unwrap_err().is_cancelled());
        assert_eq!(turns.at_work.available_permits(), 0);
        open.send(()).unwrap();
        assert_eq!(turns.run(|| 7).await.unwrap(), 7);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn whoever_comes_to_a_full_queue_is_sent_away_and_the_rest_is_served() {
        let turns = std::sync::Arc::new(Turns::new(1, 2));
        let (open, door) = mpsc::channel::<()>();
        let first = {
            let turns = turns.clone();
            tokio::spawn(async move { turns.run(move || door.recv().is_ok()).await })
        };
        let waiting: Vec<_> = (0..2)
            .map(|n| {
                let turns = turns.clone();
                tokio::spawn(async move {
                    while turns.at_work.available_permits() > 0 {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                    turns.run(move || n).await
                })
            })
            .collect();
        while turns.waiting.load(Ordering::Relaxed) < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(matches!(turns.run(|| ()).await, Err(WebError::Busy)));
        open.send(()).unwrap();
        assert!(first.await.unwrap().unwrap());
        for (n, served) in waiting.into_iter().enumerate() {
            assert_eq!(served.await.unwrap().unwrap(), n);
        }
        assert_eq!(turns.waiting.load(Ordering::Relaxed), 0);
    }
}
