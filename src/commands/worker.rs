//! `nenrin run` on a shared archive: a driver for every partition that this process holds.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use nenrin_archive::{
    Archive, Arrived, LEASE, LEASE_SAFE, LoadGauge, PAUSES, SharedArchive, SitesTaken,
    UNSTORED_MAX, Worker,
};
use nenrin_crawl::CrawlOptions;
use nenrin_fetch::{FetchOptions, Fetcher, Permission};
use nenrin_notify::{Links, Notifier};
use nenrin_state::{Epoch, Lease, PartitionId};
use nenrin_store::Store;
use tokio::{sync::watch, task::JoinHandle, time::MissedTickBehavior};

use super::{
    Context, prune,
    run::RunControl,
    serve::{Served, mail_password, runtime},
};
use crate::{
    cli::ServeArgs,
    clock,
    driver::{Driver, DriverHandle, Drivers, Ended, Until},
    exit::Exit,
    table::say,
};

/// How often leases are renewed.
const TENDING: Duration = Duration::from_secs(LEASE.as_secs() / 4);
/// How often mail between partitions is looked for, and leases are tried again.
const MAIL_PAUSE: Duration = Duration::from_secs(2);

/// Within this time a visit is committed, unless the database or the objects are away.
const COMMITTED_S: i64 = 60;

/// How long a partition that is left is waited for, while old versions are pruned there.
const PRUNE_PATIENCE: Duration = Duration::from_secs(60);
const MOMENT: Duration = Duration::from_millis(50);

/// A partition that is open.
struct Opened {
    driver: DriverHandle,
    store: Arc<Store>,
}

/// A partition that is held here.
struct Held {
    epoch: Epoch,
    /// Set once the partition is open.
    opened: Arc<OnceLock<Opened>>,
    gauge: LoadGauge,
    /// No server is asked later.
    until: Arc<Mutex<Instant>>,
    stop: watch::Sender<bool>,
    task: JoinHandle<anyhow::Result<Ended>>,
}

impl Held {
    fn driver(&self) -> Option<&DriverHandle> {
        self.opened.get().map(|opened| &opened.driver)
    }
}

/// What this worker holds, and what it is about to leave.
#[derive(Default)]
struct Holding {
    held: BTreeMap<PartitionId, Held>,
    ending: BTreeMap<PartitionId, Held>,
    drivers: Drivers,
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
        let drivers = Drivers::of(shared.database().partitioning().count as usize);
        let control = RunControl::of_worker(&reading, &context.config, drivers.clone())?;
        let served = Served::start(context, args, &reading, Arc::new(control)).await?;
        served.announce(context)?;
        let mut holding = Holding { drivers, ..Holding::default() };
        let mut messages: Option<JoinHandle<()>> = None;
        let mut tending = tokio::time::interval(TENDING);
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
                    // Who holds the first partition tells people what happens in all of them.
                    match (holding.held.contains_key(&PartitionId(0)), &messages) {
                        (true, None) => {
                            let links = served.links(&context.config.serve)?;
                            messages = Some(notify(context, shared, &reading, &holding, links)?);
                        }
                        (false, Some(_)) => messages.take().iter().for_each(JoinHandle::abort),
                        _ => {}
                    }
                }
                _ = mail.tick() => {
                    let held = &holding.held;
                    let epochs = |partition| held.get(&partition).map(|held| held.epoch);
                    match tokio::task::block_in_place(|| worker.take_mail(epochs)) {
                        Ok(Arrived { events, changed }) => {
                            let driver = |partition| held.get(&partition)?.driver();
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
        messages.iter().for_each(JoinHandle::abort);
        let Holding { held, ending, .. } = holding;
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
    Holding { held, ending, drivers }: &mut Holding,
) -> anyhow::Result<()> {
    ending.extend(held.extract_if(.., |_, held| held.task.is_finished()));
    let over: Vec<PartitionId> =
        ending.iter().filter(|(_, held)| held.task.is_finished()).map(|(at, _)| *at).collect();
    for partition in over {
        // Nothing of it is open any more when others may take it.
        let Some(Held { task, .. }) = ending.remove(&partition) else { continue };
        match task.await {
            Ok(Err(error)) => tracing::warn!("partition {} stopped: {error:#}", partition.0),
            _ => tracing::info!("partition {} is left to others", partition.0),
        }
        tokio::task::block_in_place(|| worker.hand_over(partition))?;
    }
    let asked = clock::instant();
    let load = |held: &mut Held| {
        let visits = held.driver().map_or(0, |driver| driver.figures().all_visits());
        held.gauge.load(visits, TENDING)
    };
    let driven = held.iter_mut().map(|(at, held)| (*at, load(held))).collect();
    let leaving = ending.keys().copied().collect();
    let turn = tokio::task::block_in_place(|| worker.tend(&driven, &leaving))?;
    for (partition, held) in &*held {
        if turn.kept.contains(partition) {
            // Counted from before the database was asked: it never ends later than the lease there.
            *held.until.lock().unwrap_or_else(PoisonError::into_inner) = asked + LEASE_SAFE;
        }
        // Pages whose time came before the visit that set it was committed are looked for again.
        if shared.database().bucket_s() < COMMITTED_S {
            held.driver().into_iter().for_each(DriverHandle::sites_changed);
        }
    }
    let leaves = |at: &PartitionId| !turn.kept.contains(at) || turn.spare.contains(at);
    for (partition, leaving) in held.extract_if(.., |at, _| leaves(at)) {
        let _ = leaving.stop.send(true);
        ending.insert(partition, leaving);
    }
    for lease in turn.gained {
        let until = Arc::new(Mutex::new(asked + LEASE_SAFE));
        held.insert(lease.partition, begin(context, shared, lease, until, worker.taken().clone()));
    }
    let at_work = held.iter().filter_map(|(at, held)| Some((*at, held.driver()?.clone())));
    drivers.set(at_work.collect());
    let store = |(at, held): (&PartitionId, &Held)| Some((*at, held.opened.get()?.store.clone()));
    let stores: Vec<_> = held.iter().filter_map(store).collect();
    tokio::task::block_in_place(|| worker.tell_sizes(&stores))?;
    Ok(())
}

/// Tells people and programs what happens.
fn notify(
    context: &Context,
    shared: &SharedArchive,
    reading: &Archive,
    holding: &Holding,
    links: Links,
) -> anyhow::Result<JoinHandle<()>> {
    let (config, drivers) = (&context.config, holding.drivers.clone());
    let (state, store) = (reading.state().clone(), reading.store().clone());
    let notifier = Notifier::new(state, store, links, clock::now_s)
        .with_partitions(shared.partitions())
        .with_webhooks(&config.webhook, &Fetcher::new(config.fetch_options()?)?)?
        .with_mail(&config.mail, mail_password())?;
    // Quotas are of all partitions: every driver says the same.
    let one = move || drivers.all().into_iter().next();
    let reached = move || one().map_or_else(Vec::new, |driver| driver.figures().reached);
    Ok(tokio::spawn(notifier.follow(reached)))
}

/// Opens a partition and collects, in a task of its own: leases are renewed meanwhile.
fn begin(
    context: &Context,
    shared: &SharedArchive,
    lease: Lease,
    until: Arc<Mutex<Instant>>,
    taken: SitesTaken,
) -> Held {
    let (config, shared) = (context.config.clone(), shared.clone());
    let opened: Arc<OnceLock<Opened>> = Arc::default();
    let (opening, asked_until) = (opened.clone(), until.clone());
    let (stop, mut stopped) = watch::channel(false);
    let stopping = async move { drop(stopped.wait_for(|stop| *stop).await) };
    let open = move || -> anyhow::Result<(Archive, Driver)> {
        let archive = shared.hold(&lease)?;
        let permission = Permission::new(move || {
            clock::instant() < *asked_until.lock().unwrap_or_else(PoisonError::into_inner)
        });
        let fetcher = Fetcher::new(FetchOptions { permission, ..config.fetch_options()? })?;
        let options = CrawlOptions { unstored_max: UNSTORED_MAX, ..config.crawl_options() };
        let memory_bytes = config.fetch.memory.0;
        let mut driver = Driver::holding(&archive, fetcher, options, memory_bytes, Some(PAUSES))?;
        driver.limit_space(config.disk.min_free.0, config.quotas());
        driver.share_quotas(taken);
        driver.render_with(config.render_options());
        Ok((archive, driver))
    };
    let task = tokio::spawn(async move {
        let (archive, driver) = tokio::task::spawn_blocking(open).await??;
        let archive = Arc::new(archive);
        let pruning = tokio::spawn(prune::when_idle(archive.clone(), driver.handle()));
        let _ = opening.set(Opened { driver: driver.handle(), store: archive.store().clone() });
        let ended = driver.run(Until::Stopped, stopping, |_, _| {}).await;
        pruning.abort();
        // What is being pruned goes on until it is done, and needs the partition.
        for _ in 0..PRUNE_PATIENCE.as_millis() / MOMENT.as_millis() {
            if Arc::strong_count(&archive) == 1 {
                break;
            }
            tokio::time::sleep(MOMENT).await;
        }
        drop(archive);
        ended
    });
    let (epoch, gauge) = (lease.epoch, LoadGauge::default());
    Held { epoch, opened, gauge, until, stop, task }
}

/// `nenrin workers`.
pub(super) fn list(context: &Context) -> anyhow::Result<Exit> {
    context.shared(false)?.workers()?.into_iter().try_for_each(say)?;
    Ok(Exit::Done)
}
