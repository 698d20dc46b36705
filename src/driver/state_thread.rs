//! The thread that asks the state and commits to it, many changes to one transaction.

use std::sync::mpsc;

use nenrin_crawl::{Batch, Load, Ticket, answer_load, commit_batch};
use nenrin_state::{Change, Epoch, State};
use tokio::sync::mpsc::UnboundedSender;

use super::{happening::Happening, retry::retried};
use crate::clock;

/// Changes put into one transaction at most.
const COMMIT_BATCH: usize = 1000;

/// What the state is asked for.
pub(super) enum StateJob {
    Load(Load),
    Commit { ticket: Option<Ticket>, change: Change },
}

pub(super) fn serve_state(
    state: &dyn State,
    epoch: Epoch,
    jobs: &mpsc::Receiver<StateJob>,
    sender: &UnboundedSender<Happening>,
) {
    let mut put_back = None;
    while let Some(job) = put_back.take().or_else(|| jobs.recv().ok()) {
        let answer = match job {
            StateJob::Load(load) => retried(|| answer_load(state, clock::now_s(), &load)),
            StateJob::Commit { ticket, change } => {
                let mut batch = Batch::from_iter([(ticket, change)]);
                while batch.len() < COMMIT_BATCH {
                    match jobs.try_recv() {
                        Ok(StateJob::Commit { ticket, change }) => batch.push(ticket, change),
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
