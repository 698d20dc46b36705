//! The thread that asks the state and commits to it, many changes to one transaction.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use nenrin_crawl::{Batch, Event, Load, Ticket, answer_load, commit_batch};
use nenrin_fetch::Share;
use nenrin_state::{Change, Epoch, State, StateError};

use crate::retried;

/// Changes and found pages put into one transaction, about: a stop waits for no more.
const COMMIT_BATCH: usize = 1000;
/// The same where each transaction has its price.
const DEAR_BATCH: usize = 20_000;
/// Visits that wait for no others there: more than one pack brings.
const VISITS_TOGETHER: usize = 512;
/// What nobody waits for goes with the next commit, or on its own after so many pauses.
const PAUSES_MAX: u32 = 5;

/// What the state is asked for.
pub enum StateJob {
    /// Something is looked up.
    Load(Load),
    /// Something is committed, with others.
    Commit {
        /// What it came with.
        ticket: Option<Ticket>,
        /// What changes.
        change: Change,
        /// Memory that the change takes: it is free once it is committed.
        share: Option<Share>,
    },
}

/// What the thread works with.
pub struct StateWork {
    /// The state.
    pub state: Arc<dyn State>,
    /// Commits are made under this epoch.
    pub epoch: Epoch,
    /// Where commits are dear: between two of them.
    pub pause: Option<Duration>,
    /// The clock, for waiting.
    pub clock: fn() -> Instant,
    /// The time, in seconds since the epoch.
    pub now_s: fn() -> i64,
    /// A stop was asked for: nothing waits any more.
    pub is_stopping: Arc<AtomicBool>,
    /// What waits is abandoned.
    pub is_given_up: Arc<AtomicBool>,
}

/// Changes that are committed together.
struct Gathered {
    batch: Batch,
    visits: usize,
    shares: Vec<Option<Share>>,
    /// When they are committed at the latest.
    until: Instant,
}

impl StateWork {
    /// Answers jobs until there are no more, or the state fails.
    pub fn serve(
        &self,
        jobs: &mpsc::Receiver<StateJob>,
        report: impl Fn(Result<Event, StateError>),
    ) {
        let mut gathered: Option<Gathered> = None;
        let mut committed = (self.clock)();
        loop {
            let patience = gathered
                .as_ref()
                .map_or(Duration::MAX, |g| g.until.saturating_duration_since((self.clock)()));
            let job = jobs.recv_timeout(patience);
            let is_over = self.is_given_up.load(Ordering::Relaxed)
                || matches!(job, Err(RecvTimeoutError::Disconnected));
            let mut load = None;
            match job {
                _ if is_over => {}
                Ok(StateJob::Load(wanted)) => load = Some(wanted),
                Ok(StateJob::Commit { ticket, change, share }) => {
                    let until = self.until(&change, committed);
                    let all = gathered.get_or_insert_with(|| Gathered {
                        batch: Batch::default(),
                        visits: 0,
                        shares: Vec::new(),
                        until,
                    });
                    all.until = all.until.min(until);
                    all.visits += usize::from(matches!(change, Change::Visit(_)));
                    all.shares.push(share);
                    all.batch.push(ticket, change);
                    let is_full = match self.pause {
                        None => all.batch.weight() >= COMMIT_BATCH,
                        Some(_) => {
                            all.visits >= VISITS_TOGETHER || all.batch.weight() >= DEAR_BATCH
                        }
                    };
                    if !is_full {
                        continue;
                    }
                }
                Err(_) => {}
            }
            let waits = load.as_ref().is_some_and(Load::may_overtake) && self.pause.is_some();
            if let Some(Gathered { batch, .. }) = gathered.take_if(|_| !waits) {
                let answer = retried(|| commit_batch(&*self.state, self.epoch, &batch));
                let has_failed = answer.is_err();
                report(answer);
                committed = (self.clock)();
                if has_failed {
                    return;
                }
            }
            if is_over {
                return;
            }
            if let Some(load) = load {
                let answer = retried(|| answer_load(&*self.state, (self.now_s)(), &load));
                let has_failed = answer.is_err();
                report(answer);
                if has_failed {
                    return;
                }
            }
        }
    }

    /// When a change is committed at the latest, if the last commit ended at a time: at once,
    /// unless each commit has its price.
    fn until(&self, change: &Change, committed: Instant) -> Instant {
        let now = (self.clock)();
        let is_stopping = self.is_stopping.load(Ordering::Relaxed);
        let Some(pause) = self.pause.filter(|_| !is_stopping) else { return now };
        match change {
            // The machine knows it already, and the next holder counts every server as just asked.
            Change::Pace(_) | Change::Robots { .. } | Change::Note(_) => now + PAUSES_MAX * pause,
            _ => committed + pause,
        }
    }
}

#[cfg(test)]
mod tests;
