//! `nenrin run` on a shared archive: a driver for every partition that this process holds.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use nenrin_archive::{LEASE, OBJECTS_PAUSE, SharedArchive, Worker};
use nenrin_fetch::Fetcher;
use nenrin_state::{Epoch, Lease, PartitionId};
use nenrin_web::NotRunningHere;
use tokio::{sync::watch, task::JoinHandle};

use super::{
    Context,
    serve::{Served, runtime},
};
use crate::{
    cli::ServeArgs,
    clock,
    driver::{Driver, DriverHandle, Ended, Until},
    exit::{Exit, usage},
    table::say,
};

/// How often mail between partitions is looked for.
const MAIL_PAUSE: Duration = Duration::from_secs(2);
/// How often the interface learns what all workers stored.
const CATCH_UP_PAUSE: Duration = Duration::from_secs(5);
/// Workers that were heard within this time are listed.
const HEARD: Duration = Duration::from_secs(3_600);

/// A partition that is held here.
struct Held {
    epoch: Epoch,
    driver: DriverHandle,
    stop: watch::Sender<bool>,
    task: JoinHandle<anyhow::Result<Ended>>,
}

/// Collects as one of the workers of a shared archive until `stop`.
pub(super) fn run(
    context: &Context,
    args: &ServeArgs,
    shared: &SharedArchive,
    mut stop: watch::Receiver<bool>,
) -> anyhow::Result<Exit> {
    let host = std::fs::read_to_string("/etc/hostname").unwrap_or_default();
    let mut worker = Worker::enter(shared, &format!("{} {}", host.trim(), std::process::id()))?;
    let runtime = runtime()?;
    let until = Arc::new(Mutex::new(clock::instant()));
    let reading = Arc::new(shared.read()?);
    runtime.block_on(async {
        let served = Served::start(context, args, &reading, Arc::new(NotRunningHere)).await?;
        served.announce(context)?;
        let store = reading.store().clone();
        std::thread::spawn(move || {
            // It ends with the process.
            loop {
                std::thread::sleep(CATCH_UP_PAUSE);
                if let Err(error) = store.catch_up() {
                    tracing::warn!("what was stored last is not shown yet: {error}");
                }
            }
        });
        let mut held: BTreeMap<PartitionId, Held> = BTreeMap::new();
        let mut tending = tokio::time::interval(LEASE / 4);
        let mut mail = tokio::time::interval(MAIL_PAUSE);
        loop {
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => break,
                _ = tending.tick() => {
                    if let Err(error) = tend(context, shared, &mut worker, &mut held, &until).await {
                        tracing::warn!("{error:#}");
                    }
                }
                _ = mail.tick() => {
                    let epochs = |partition| held.get(&partition).map(|held| held.epoch);
                    match tokio::task::block_in_place(|| worker.take_mail(epochs)) {
                        Ok(events) => for (partition, event) in events {
                            if let Some(held) = held.get(&partition) {
                                held.driver.tell(event);
                            }
                        },
                        Err(error) => tracing::warn!("mail waits: {error}"),
                    }
                }
            }
        }
        for (_, held) in held {
            let _ = held.stop.send(true);
            let _ = held.task.await;
        }
        anyhow::Ok(())
    })?;
    worker.leave()?;
    Ok(Exit::Done)
}

/// Renews what is held, begins with what was gained, and ends what was lost or is to be left to others.
async fn tend(
    context: &Context,
    shared: &SharedArchive,
    worker: &mut Worker,
    held: &mut BTreeMap<PartitionId, Held>,
    until: &Arc<Mutex<Instant>>,
) -> anyhow::Result<()> {
    let asked = clock::instant();
    let turn = tokio::task::block_in_place(|| worker.tend())?;
    // Counted from before the database was asked: it never ends later than the lease there.
    *until.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = asked + LEASE;
    let ended = held.iter().filter(|(_, held)| held.task.is_finished()).map(|(at, _)| *at);
    for partition in turn.lost.into_iter().chain(turn.spare).chain(ended.collect::<Vec<_>>()) {
        let Some(held) = held.remove(&partition) else { continue };
        let _ = held.stop.send(true);
        match held.task.await {
            Ok(Err(error)) => tracing::warn!("partition {}: {error:#}", partition.0),
            _ => tracing::info!("partition {} is left to others", partition.0),
        }
        worker.hand_over(partition)?;
    }
    // Sites are registered anywhere.
    held.values().for_each(|held| held.driver.sites_changed());
    for lease in turn.gained {
        let begun = tokio::task::block_in_place(|| begin(context, shared, &lease, until));
        match begun {
            Ok(begun) => drop(held.insert(lease.partition, begun)),
            Err(error) => {
                tracing::warn!("partition {} cannot be collected: {error:#}", lease.partition.0);
                worker.hand_over(lease.partition)?;
            }
        }
    }
    Ok(())
}

fn begin(
    context: &Context,
    shared: &SharedArchive,
    lease: &Lease,
    until: &Arc<Mutex<Instant>>,
) -> anyhow::Result<Held> {
    let archive = shared.hold(lease)?;
    let fetcher = Fetcher::new(context.config.fetch_options()?)?;
    let options = context.config.crawl_options();
    let memory_bytes = context.config.fetch.memory.0;
    let mut driver =
        Driver::holding(&archive, fetcher, options, memory_bytes, Some(OBJECTS_PAUSE))?;
    driver.keep_free(context.config.disk.min_free.0);
    driver.keep_within(context.config.quotas());
    driver.render_with(context.config.render_options());
    driver.ask_until(until.clone());
    let (stop, mut stopped) = watch::channel(false);
    let (epoch, handle) = (driver.epoch(), driver.handle());
    let stopping = async move { drop(stopped.wait_for(|stop| *stop).await) };
    let task = tokio::spawn(async move {
        let ended = driver.run(Until::Stopped, stopping, |_, _| {}).await;
        drop(archive);
        ended
    });
    Ok(Held { epoch, driver: handle, stop, task })
}

/// `nenrin workers`.
pub(super) fn list(context: &Context) -> anyhow::Result<Exit> {
    let Some(shared) = context.open_shared()? else {
        return Err(usage(anyhow::anyhow!(
            "this archive has no workers; name a shared one with --state and --content"
        )));
    };
    let database = shared.database();
    for worker in database.workers(HEARD)? {
        let (id, name, heard_s) = (worker.id.0, &worker.name, worker.heard_ago_s);
        let partitions = worker.partitions;
        say(format!("worker {id}: {name}, {partitions} partitions, heard {heard_s} s ago"))?;
    }
    for row in database.partitions()? {
        let by = row.worker.map_or("nobody".to_owned(), |id| format!("worker {}", id.0));
        say(format!(
            "partition {}: {by}, epoch {}, {} s left, {} letters wait",
            row.partition.0, row.epoch.0, row.left_s, row.mail_waiting
        ))?;
    }
    Ok(Exit::Done)
}
