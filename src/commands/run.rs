//! The main job: collecting for ever, with interface and replay beside it.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use nenrin_archive::{Archive, Download, Metric, preview::SitePreview};
use nenrin_crawl::Event;
use nenrin_fetch::Fetcher;
use nenrin_notify::{Notifier, SendTest};
use nenrin_state::{Removal, SiteId};
use nenrin_urls::CanonicalUrl;
use nenrin_web::{Control, ControlError, UnderWay};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use super::{
    Context, demo, preview, prune,
    serve::{Served, mail_password, runtime, serve_until, stop_signal},
};
use crate::{
    cli::ServeArgs,
    clock,
    config::Config,
    driver::{ClockSetBack, Driver, DriverHandle, Drivers, Until},
    exit::{Exit, code_of},
};

/// Collecting resumes with this much at least on a disk that was full.
const SPACE_BYTES: u64 = 4 << 20;

/// `nenrin run`. When the clock was set back, it starts again. On a full disk, what is archived is served until there is space again.
pub(super) fn run(context: &Context, args: &ServeArgs) -> anyhow::Result<Exit> {
    let stop = stop_signal();
    if let Some(shared) = context.open_shared(true)? {
        return super::worker::run(context, args, &shared, stop);
    }
    let space_bytes = context.config.disk.min_free.0.max(SPACE_BYTES);
    loop {
        match collect_and_serve(context, args, stop.clone()) {
            Err(error) if code_of(&error) == Exit::NoRoom => {
                tracing::warn!("{error:#}; collecting resumes when there is space again");
            }
            Err(error) if error.is::<ClockSetBack>() => {
                tracing::warn!("the clock was set back; collecting starts again");
                continue;
            }
            ended => return ended.map(|()| Exit::Done),
        }
        if serve_until(context, args, stop.clone(), space_bytes)? {
            return Ok(Exit::Done);
        }
    }
}

fn collect_and_serve(
    context: &Context,
    args: &ServeArgs,
    mut stop: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let archive = Arc::new(context.open_to_write()?);
    let runtime = runtime()?;
    let ended = runtime.block_on(async {
        // A demo site that was registered earlier is served again, or its visits would all fail.
        let demo_registered = archive.state().sites()?.iter().any(|site| site.name == demo::NAME);
        if demo_registered {
            match demo::register(&**archive.state(), &context.config).await {
                Ok((demo, _)) => drop(tokio::spawn(demo.live())),
                Err(error) => tracing::warn!("{error:#}"),
            }
        }
        let stop = async move { drop(stop.wait_for(|stop| *stop).await) };
        run_until(context, args, &archive, stop).await
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    ended
}

/// Collects and serves until `stop` is ready.
pub(super) async fn run_until(
    context: &Context,
    args: &ServeArgs,
    archive: &Arc<Archive>,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let fetcher = Fetcher::new(context.config.fetch_options()?)?;
    let mut driver = Driver::new(
        archive,
        fetcher.clone(),
        context.config.crawl_options(),
        context.config.fetch.memory.0,
    )?;
    driver.limit_space(context.config.disk.min_free.0, context.config.quotas());
    driver.render_with(context.config.render_options());
    reload_when_asked(context, driver.handle())?;
    let notifying = fetcher.clone();
    let handle = driver.handle();
    let control = RunControl {
        archive: archive.clone(),
        config: context.config.clone(),
        drivers: Drivers::one(driver.handle()),
        fetcher,
        runtime: tokio::runtime::Handle::current(),
        demo: Mutex::new(None),
    };
    tokio::spawn(prune::when_idle(archive.clone(), driver.handle()));
    let _keeping = super::search::keep(context, archive)?;
    let served = Served::start(context, args, archive, Arc::new(control)).await?;
    served.announce(context)?;
    let links = served.links(&context.config.serve)?;
    let (state, store) = (archive.state().clone(), archive.store().clone());
    let notifier = Notifier::new(state, store, links, clock::now_s)
        .with_webhooks(&context.config.webhook, &notifying)?
        .with_mail(&context.config.mail, mail_password())?;
    tokio::spawn(notifier.follow(move || handle.figures().reached));
    driver.run(Until::Stopped, stop, |_, _| {}).await?;
    Ok(())
}

/// Reads the configuration again at every hang-up signal (`kill -HUP`). A file with a mistake is
/// reported and changes nothing; the addresses to listen on, and the archive's own settings, apply
/// from the next start.
fn reload_when_asked(context: &Context, driver: DriverHandle) -> anyhow::Result<()> {
    let mut hang_up = signal(SignalKind::hangup())?;
    let (file, before) = (context.config_file.clone(), context.config.clone());
    tokio::spawn(async move {
        while hang_up.recv().await.is_some() {
            let read = Config::load(file.as_deref()).and_then(|config| {
                driver.reload(&config)?;
                Ok(config)
            });
            match read {
                Ok(config) => {
                    let restart = config.serve != before.serve || config.state != before.state;
                    tracing::warn!(restart_needed = restart, "the configuration was read again");
                }
                Err(error) => tracing::error!("the configuration stays as it was: {error:#}"),
            }
        }
    });
    Ok(())
}

/// What the interface may ask of a process that collects.
pub(super) struct RunControl {
    archive: Arc<Archive>,
    config: Config,
    drivers: Drivers,
    fetcher: Fetcher,
    runtime: tokio::runtime::Handle,
    demo: Mutex<Option<SiteId>>,
}

impl RunControl {
    /// Of one of the workers of a shared archive. Must be called inside the runtime.
    pub(super) fn of_worker(
        archive: &Arc<Archive>,
        config: &Config,
        drivers: Drivers,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            archive: archive.clone(),
            config: config.clone(),
            drivers,
            fetcher: Fetcher::new(config.fetch_options()?)?,
            runtime: tokio::runtime::Handle::current(),
            demo: Mutex::new(None),
        })
    }

    fn is_shared(&self) -> bool {
        self.drivers.of.is_some()
    }
}

fn failed(error: impl std::fmt::Display) -> ControlError {
    ControlError::Failed { reason: error.to_string() }
}

impl Control for RunControl {
    fn collects(&self) -> bool {
        true
    }

    fn collect_now(&self, site: SiteId) -> Result<(), ControlError> {
        let drivers = self.drivers.all();
        if self.drivers.of.is_some_and(|count| drivers.len() < count) {
            return Err(failed("other workers collect a part of this site, by its schedule"));
        }
        drivers.iter().for_each(|driver| driver.tell(Event::CollectNow(site)));
        Ok(())
    }

    fn workers(&self) -> Vec<String> {
        self.archive.workers()
    }

    fn sites_changed(&self) {
        self.drivers.all().iter().for_each(DriverHandle::sites_changed);
    }

    fn under_way(&self) -> Vec<UnderWay> {
        let shown = |under_way: crate::driver::UnderWay| UnderWay {
            server: under_way.url.server().to_string(),
            url: under_way.url.to_string(),
            since_s: under_way.since_ms / 1000,
            phase: under_way.phase,
        };
        let drivers = self.drivers.all();
        drivers.iter().flat_map(DriverHandle::under_way).map(shown).collect()
    }

    fn queued(&self) -> usize {
        self.drivers.all().iter().map(|driver| driver.figures().frontier.queued).sum()
    }

    fn metrics(&self) -> Vec<Metric> {
        // Those of several partitions have the same names.
        match self.drivers.all().as_slice() {
            [one] => one.figures().metrics(),
            _ => Vec::new(),
        }
    }

    fn removals(&self) -> &[Removal] {
        // Deleting needs all partitions.
        if self.is_shared() { &[Removal::Hide, Removal::Deny] } else { &Removal::ALL }
    }

    fn remove(&self, site: SiteId, removal: Removal, reason: &str) -> Result<(), ControlError> {
        self.archive.remove_site(site, removal, reason, clock::now_s()).map_err(failed)?;
        if removal == Removal::Delete {
            // Takes a while; reading and writing go on meanwhile.
            let archive = self.archive.clone();
            self.runtime.spawn_blocking(move || {
                if let Err(error) = archive.compact(&mut |_, _| {}) {
                    tracing::warn!("the space of deleted versions is not free yet: {error}");
                }
            });
        }
        Ok(())
    }

    fn start_demo(&self) -> Result<SiteId, ControlError> {
        if self.is_shared() {
            return Err(failed("the demo needs an archive in a folder"));
        }
        let mut demo = self.demo.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(site) = *demo {
            return Ok(site);
        }
        let started = demo::register(&**self.archive.state(), &self.config);
        let (served, site) = self.runtime.block_on(started).map_err(failed)?;
        *demo = Some(site);
        self.runtime.spawn(served.live());
        self.sites_changed();
        Ok(site)
    }

    fn test_mail(&self) -> Result<(), ControlError> {
        let letter = SendTest::send(&self.config.mail, mail_password(), clock::now_s());
        self.runtime.block_on(letter).map_err(failed)
    }

    fn download(
        &self,
        what: &Download,
        to: &Path,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), ControlError> {
        super::warc::download(&self.archive, &self.config, what, to, progress).map_err(failed)
    }

    fn export_warc(
        &self,
        site: SiteId,
        range: (i64, i64),
        out: Box<dyn std::io::Write + Send>,
    ) -> Result<(), ControlError> {
        super::warc::stream(&self.archive, &self.config, site, range, out).map_err(failed)
    }

    fn preview(
        &self,
        top: &CanonicalUrl,
        allow_private: bool,
    ) -> Result<SitePreview, ControlError> {
        self.runtime.block_on(preview::look(&self.fetcher, top, allow_private)).map_err(failed)
    }
}
