//! The thread that asks the state and commits to it, many changes to one transaction.

use std::sync::{
    atomic::{AtomicBool, Ordering},
    mpsc,
};

use nenrin_archive::retried;
use nenrin_crawl::{Batch, Load, Ticket, answer_load, commit_batch};
use nenrin_fetch::Share;
use nenrin_state::{Change, Epoch, State};
use tokio::sync::mpsc::UnboundedSender;

use super::happening::Happening;
use crate::clock;

/// Changes and found pages put into one transaction, about: a stop waits for no more.
const COMMIT_BATCH: usize = 1000;

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

pub(super) fn serve_state(
    state: &dyn State,
    epoch: Epoch,
    jobs: &mpsc::Receiver<StateJob>,
    sender: &UnboundedSender<Happening>,
    is_given_up: &AtomicBool,
) {
    let mut put_back = None;
    while let Some(job) = put_back.take().or_else(|| jobs.recv().ok()) {
        if is_given_up.load(Ordering::Relaxed) {
            return;
        }
        let answer = match job {
            StateJob::Load(load) => retried(|| answer_load(state, clock::now_s(), &load)),
            StateJob::Commit { ticket, change, share } => {
                let mut batch = Batch::from_iter([(ticket, change)]);
                let mut shares = vec![share];
                while batch.weight() < COMMIT_BATCH {
                    match jobs.try_recv() {
                        Ok(StateJob::Commit { ticket, change, share }) => {
                            batch.push(ticket, change);
                            shares.push(share);
                        }
                        Ok(other) => {
                            put_back = Some(other);
                            break;
                        }
                        Err(_) => break,
                    }
                }
                retried(|| commit_batch(state, epoch, &batch))
            }
        };
        match answer {
            Ok(event) => {
                let _ = sender.send(Happening::Event(event));
            }
            Err(error) => {
                let _ = sender.send(Happening::StateFailed(error));
                return;
            }
        }
    }
}
