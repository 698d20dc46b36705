//! Work on the content of a shared archive while no worker collects: a command holds all partitions.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use nenrin_state::{Lease, PartitionId, State};
use nenrin_store::StoreError;

use super::{LEASE, SharedArchive, Worker};
use crate::{Archive, ArchiveError, Result, archive::Parts};

/// What was uploaded and counts for nothing is deleted after a day: by then whoever wrote it is gone.
const GARBAGE_AGE_S: i64 = 86_400;

impl Parts for SharedArchive {
    fn each(&self, sweeps: bool, work: &mut dyn FnMut(&Archive) -> Result<()>) -> Result<()> {
        let name = format!("upkeep {}", std::process::id());
        self.alone(&name, &mut |lease| {
            let (archive, objects) = self.hold_with(lease)?;
            work(&archive)?;
            if sweeps {
                let before_s = self.opened_s - GARBAGE_AGE_S;
                let (count, bytes) = objects.sweep(before_s).map_err(StoreError::from)?;
                if count > 0 {
                    tracing::info!(count, bytes, "unused objects were deleted");
                }
            }
            Ok(())
        })
    }

    fn count(&self) -> u64 {
        u64::from(self.database().partitioning().count)
    }

    fn states(&self) -> Vec<Arc<dyn State>> {
        self.partitions()
    }

    fn workers(&self) -> Result<Vec<String>> {
        SharedArchive::workers(self)
    }
}

impl SharedArchive {
    /// Holds every partition, renews the leases meanwhile, and works on one after the other. Refuses
    /// while workers collect.
    fn alone(&self, name: &str, work: &mut dyn FnMut(&Lease) -> Result<()>) -> Result<()> {
        let worker = Worker::enter(self, name)?;
        let done = self.alone_as(&worker, work);
        let left = worker.leave();
        done.and(left)
    }

    fn alone_as(&self, worker: &Worker, work: &mut dyn FnMut(&Lease) -> Result<()>) -> Result<()> {
        let database = self.database();
        let every: Vec<PartitionId> = database.partitioning().all().collect();
        let all = every.len();
        let others: Vec<_> =
            database.workers(LEASE)?.into_iter().filter(|other| other.id != worker.id).collect();
        if let Some(other) = others.first() {
            let (id, name, heard_s) = (other.id.0, &other.name, other.heard_ago_s);
            let more = match others.len() - 1 {
                0 => String::new(),
                count => format!(" and {count} more"),
            };
            return Err(ArchiveError::Input(format!(
                "worker {id} ({name}, last report {heard_s} s ago){more} is at work on this archive; stop \
                 `nenrin run` there and run this again, or if it was killed, again in {} seconds",
                LEASE.as_secs()
            )));
        }
        let leases = database.take_partitions(worker.id, LEASE, &every)?;
        if leases.len() < all {
            return Err(ArchiveError::Input(format!(
                "{} of {all} partitions are still held by a worker that did not end well; run this \
                 again in {} seconds",
                all - leases.len(),
                LEASE.as_secs()
            )));
        }
        let (over, ended) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let pause: Duration = LEASE / 4;
                while ended.recv_timeout(pause) == Err(mpsc::RecvTimeoutError::Timeout) {
                    if let Err(error) = database.renew(worker.id, LEASE, &BTreeMap::new()) {
                        tracing::warn!("leases are not renewed: {error}");
                    }
                }
            });
            let done = leases.iter().try_for_each(work);
            drop(over);
            done
        })
    }
}
