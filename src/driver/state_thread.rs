//! The thread that asks the state and commits to it, many changes to one transaction.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use nenrin_archive::retried;
use nenrin_crawl::{Batch, Event, Load, Ticket, answer_load, commit_batch};
use nenrin_fetch::Share;
use nenrin_state::{Change, Epoch, State, StateError};

use crate::clock;

/// Changes and found pages put into one transaction, about: a stop waits for no more.
const COMMIT_BATCH: usize = 1000;
/// With this many visits a commit does not wait for more.
const VISITS_TOGETHER: usize = 128;
/// A change that no visit waits for goes with the next commit, or on its own after this many
/// pauses.
const PAUSES_MAX: u32 = 5;

/// What the state is asked for.
pub(super) enum StateJob {
    Load(Load),
    /// Memory that the change takes is free once it is committed.
    Commit {
        ticket: Option<Ticket>,
        change: Change,
        share: Option<Share>,
    },
}

/// What the thread works with.
pub(super) struct StateWork {
    pub(super) state: Arc<dyn State>,
    pub(super) epoch: Epoch,
    /// The pause between two commits, where each has its price.
    pub(super) pause: Option<Duration>,
    pub(super) is_stopping: Arc<AtomicBool>,
    pub(super) is_given_up: Arc<AtomicBool>,
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
    pub(super) fn serve(
        &self,
        jobs: &mpsc::Receiver<StateJob>,
        report: impl Fn(Result<Event, StateError>),
    ) {
        let mut gathered: Option<Gathered> = None;
        let mut committed = clock::instant();
        loop {
            let patience = gathered
                .as_ref()
                .map_or(Duration::MAX, |g| g.until.saturating_duration_since(clock::instant()));
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
                    let is_full = all.batch.weight() >= COMMIT_BATCH
                        || self.pause.is_some() && all.visits >= VISITS_TOGETHER;
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
                committed = clock::instant();
                if has_failed {
                    return;
                }
            }
            if is_over {
                return;
            }
            if let Some(load) = load {
                let answer = retried(|| answer_load(&*self.state, clock::now_s(), &load));
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
        let now = clock::instant();
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
#[path = "../../tests/driver/state_thread.rs"]
mod tests;
