//! `nenrin run` on a shared archive: a driver for every partition that this process holds.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use nenrin_archive::{Archive, Arrived, LEASE, LEASE_SAFE, PAUSES, SharedArchive, Worker};
use nenrin_fetch::{FetchOptions, Fetcher, Permission};
use nenrin_state::{Epoch, Lease, PartitionId};
use nenrin_web::NotRunningHere;
use tokio::{sync::watch, task::JoinHandle, time::MissedTickBehavior};

use super::{
    Context,
    serve::{Served, runtime},
};
use crate::{
    cli::ServeArgs,
    clock,
    driver::{Driver, DriverHandle, Ended, Until},
    exit::Exit,
    table::say,
};

/// How often mail between partitions is looked for, and leases are tried again.
const MAIL_PAUSE: Duration = Duration::from_secs(2);

/// A partition that is held here.
struct Held {
    epoch: Epoch,
    /// Set once the partition is open.
    driver: Arc<OnceLock<DriverHandle>>,
    /// No server is asked later.
    until: Arc<Mutex<Instant>>,
    stop: watch::Sender<bool>,
    task: JoinHandle<anyhow::Result<Ended>>,
}

/// What this worker holds, and what it is about to leave.
#[derive(Default)]
struct Holding {
    held: BTreeMap<PartitionId, Held>,
    ending: BTreeMap<PartitionId, Held>,
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
    let reading = Arc::new(shared.read()?);
    runtime.block_on(async {
        let served = Served::start(context, args, &reading, Arc::new(NotRunningHere)).await?;
        served.announce(context)?;
        let mut holding = Holding::default();
        let mut tending = tokio::time::interval(LEASE / 4);
        let mut mail = tokio::time::interval(MAIL_PAUSE);
        tending.set_missed_tick_behavior(MissedTickBehavior::Delay);
        mail.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => break,
                _ = tending.tick() => {
                    if let Err(error) = tend(context, shared, &mut worker, &mut holding).await {
                        tracing::warn!("leases are not renewed: {error:#}");
                        tending.reset_after(MAIL_PAUSE);
                    }
                }
                _ = mail.tick() => {
                    let held = &holding.held;
                    let epochs = |partition| held.get(&partition).map(|held| held.epoch);
                    match tokio::task::block_in_place(|| worker.take_mail(epochs)) {
                        Ok(Arrived { events, changed }) => {
                            let driver = |partition| held.get(&partition)?.driver.get();
                            for (partition, event) in events {
                                if let Some(driver) = driver(partition) {
                                    driver.tell(event);
                                }
                            }
                            // Sites are registered anywhere.
                            let changed = changed.into_iter().filter_map(driver);
                            changed.for_each(DriverHandle::sites_changed);
                        }
                        Err(error) => tracing::warn!("mail waits: {error}"),
                    }
                }
            }
        }
        let Holding { held, ending } = holding;
        for held in held.values() {
            let _ = held.stop.send(true);
        }
        for (_, held) in held.into_iter().chain(ending) {
            let _ = held.task.await;
        }
        anyhow::Ok(())
    })?;
    worker.leave()?;
    let trips = shared.database().round_trips();
    let (round_trips, object_requests) = (trips.sum(), shared.object_requests());
    tracing::info!(round_trips, ?trips, object_requests, "this worker ends");
    Ok(Exit::Done)
}

/// Renews what is held, begins with what was gained, and ends what was lost or is to be left to others.
async fn tend(
    context: &Context,
    shared: &SharedArchive,
    worker: &mut Worker,
    Holding { held, ending }: &mut Holding,
) -> anyhow::Result<()> {
    ending.extend(held.extract_if(.., |_, held| held.task.is_finished()));
    let over: Vec<PartitionId> =
        ending.iter().filter(|(_, held)| held.task.is_finished()).map(|(at, _)| *at).collect();
    for partition in over {
        tokio::task::block_in_place(|| worker.hand_over(partition))?;
        let Some(held) = ending.remove(&partition) else { continue };
        match held.task.await {
            Ok(Err(error)) => tracing::warn!("partition {} stopped: {error:#}", partition.0),
            _ => tracing::info!("partition {} is left to others", partition.0),
        }
    }
    let asked = clock::instant();
    let (driven, leaving) = (held.keys().copied().collect(), ending.keys().copied().collect());
    let turn = tokio::task::block_in_place(|| worker.tend(&driven, &leaving))?;
    for (partition, held) in &*held {
        if turn.kept.contains(partition) {
            // Counted from before the database was asked: it never ends later than the lease there.
            *held.until.lock().unwrap_or_else(PoisonError::into_inner) = asked + LEASE_SAFE;
        }
        // Pages whose time came before the visit that set it was committed are looked for again.
        held.driver.get().into_iter().for_each(DriverHandle::sites_changed);
    }
    let leaves = |at: &PartitionId| !turn.kept.contains(at) || turn.spare.contains(at);
    for (partition, leaving) in held.extract_if(.., |at, _| leaves(at)) {
        let _ = leaving.stop.send(true);
        ending.insert(partition, leaving);
    }
    for lease in turn.gained {
        let until = Arc::new(Mutex::new(asked + LEASE_SAFE));
        held.insert(lease.partition, begin(context, shared, lease, until));
    }
    Ok(())
}

/// Opens a partition and collects, in a task of its own: leases are renewed meanwhile.
fn begin(
    context: &Context,
    shared: &SharedArchive,
    lease: Lease,
    until: Arc<Mutex<Instant>>,
) -> Held {
    let (config, shared, driver) = (context.config.clone(), shared.clone(), Arc::default());
    let (opened, asked_until): (Arc<OnceLock<DriverHandle>>, _) =
        (Arc::clone(&driver), until.clone());
    let (stop, mut stopped) = watch::channel(false);
    let stopping = async move { drop(stopped.wait_for(|stop| *stop).await) };
    let open = move || -> anyhow::Result<(Archive, Driver)> {
        let archive = shared.hold(&lease)?;
        let permission = Permission::new(move || {
            clock::instant() < *asked_until.lock().unwrap_or_else(PoisonError::into_inner)
        });
        let fetcher = Fetcher::new(FetchOptions { permission, ..config.fetch_options()? })?;
        let (options, memory_bytes) = (config.crawl_options(), config.fetch.memory.0);
        let mut driver = Driver::holding(&archive, fetcher, options, memory_bytes, Some(PAUSES))?;
        driver.limit_space(config.disk.min_free.0, config.quotas());
        driver.render_with(config.render_options());
        Ok((archive, driver))
    };
    let task = tokio::spawn(async move {
        let (archive, driver) = tokio::task::spawn_blocking(open).await??;
        let _ = opened.set(driver.handle());
        let ended = driver.run(Until::Stopped, stopping, |_, _| {}).await;
        drop(archive);
        ended
    });
    Held { epoch: lease.epoch, driver, until, stop, task }
}

/// `nenrin workers`.
pub(super) fn list(context: &Context) -> anyhow::Result<Exit> {
    context.shared(false)?.workers()?.into_iter().try_for_each(say)?;
    Ok(Exit::Done)
}
