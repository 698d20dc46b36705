//! Interface and replay over HTTP, each on an origin of its own.

use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use anyhow::Context as _;
use nenrin_archive::{Archive, DiskGuard, Download, changes::ChangeReader, preview::SitePreview};
use nenrin_notify::Links;
use nenrin_replay::ReplayOptions;
use nenrin_search::Search;
use nenrin_state::SiteId;
use nenrin_urls::CanonicalUrl;
use nenrin_web::{
    Control, ControlError, NotRunningHere, ReplayBase, StoreSummary, UnderWay, WebApp, WebOptions,
};
use tokio::{net::TcpListener, sync::watch};

use super::Context;
use crate::{
    cli::ServeArgs,
    clock,
    config::{Config, ReplayHosts},
    exit::{Exit, usage},
    table::say,
};

/// Threads that may block. Each kind of work that needs one is bounded by itself (look-ups of names,
/// reading of answers, pages of the interface, replay), and there are enough for all of them: a kind
/// that is stuck holds up none of the others.
const BLOCKING_THREADS_MAX: usize = 256;

/// How often a full disk is looked at.
const SPACE_PAUSE: Duration = Duration::from_secs(5);

/// The program's runtime.
pub(super) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .build()
        .context("cannot start the runtime")
}

/// Ready when someone wants the program to end.
pub(super) async fn interrupted() {
    let terminated = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => {
                signal.recv().await;
            }
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        result = tokio::signal::ctrl_c() => {
            if result.is_err() {
                std::future::pending::<()>().await;
            }
        }
        () = terminated => {}
    }
}

/// Becomes true when someone wants the program to end, whatever it does at that time.
pub(super) fn stop_signal() -> watch::Receiver<bool> {
    let (sender, stop) = watch::channel(false);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let listening = runtime.map(|runtime| runtime.block_on(interrupted()));
        let _ = sender.send(listening.is_ok());
    });
    stop
}

/// The password of the mail server, where the environment has one.
pub(super) fn mail_password() -> Option<String> {
    std::env::var("NENRIN_MAIL_PASSWORD").ok().filter(|password| !password.is_empty())
}

/// `nenrin serve`.
pub(super) fn serve(context: &Context, args: &ServeArgs) -> anyhow::Result<Exit> {
    serve_until(context, args, stop_signal(), u64::MAX)?;
    Ok(Exit::Done)
}

/// Serves what can be read until the disk has this much space, or the program is asked to end. Returns
/// whether it was asked to end.
pub(super) fn serve_until(
    context: &Context,
    args: &ServeArgs,
    mut stop: watch::Receiver<bool>,
    space_bytes: u64,
) -> anyhow::Result<bool> {
    let archive = Arc::new(context.open_to_read()?);
    let disk = DiskGuard::new(archive.folder(), 0);
    let runtime = runtime()?;
    let is_stopped = runtime.block_on(async {
        let control = ServeControl { archive: archive.clone(), config: context.config.clone() };
        let served = Served::start(context, args, &archive, Arc::new(control)).await?;
        let _keeping = super::search::keep(context, &archive)?;
        served.announce(context)?;
        loop {
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return anyhow::Ok(true),
                () = tokio::time::sleep(SPACE_PAUSE) => {}
            }
            if disk.free_bytes().is_some_and(|free| free >= space_bytes) {
                return Ok(false);
            }
        }
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    is_stopped
}

/// What the interface may ask of a process that only serves: nothing but exports.
struct ServeControl {
    archive: Arc<Archive>,
    config: Config,
}

impl Control for ServeControl {
    fn collects(&self) -> bool {
        false
    }

    fn workers(&self) -> Vec<String> {
        self.archive.workers()
    }

    fn collect_now(&self, site: SiteId) -> Result<(), ControlError> {
        NotRunningHere.collect_now(site)
    }

    fn sites_changed(&self) {}

    fn under_way(&self) -> Vec<UnderWay> {
        Vec::new()
    }

    fn start_demo(&self) -> Result<SiteId, ControlError> {
        NotRunningHere.start_demo()
    }

    fn download(
        &self,
        what: &Download,
        to: &Path,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), ControlError> {
        super::warc::download(&self.archive, &self.config, what, to, progress)
            .map_err(|error| ControlError::Failed { reason: error.to_string() })
    }

    fn export_warc(
        &self,
        site: SiteId,
        range: (i64, i64),
        out: Box<dyn std::io::Write + Send>,
    ) -> Result<(), ControlError> {
        super::warc::stream(&self.archive, &self.config, site, range, out)
            .map_err(|error| ControlError::Failed { reason: format!("{error:#}") })
    }

    fn preview(
        &self,
        top: &CanonicalUrl,
        allow_private: bool,
    ) -> Result<SitePreview, ControlError> {
        NotRunningHere.preview(top, allow_private)
    }
}

/// The archive's folder of lab reports.
const REPORTS: &str = "reports";

/// Where people reach replay, which listens on this port.
fn replay_base(settings: &crate::config::Serve, port: u16) -> anyhow::Result<(ReplayBase, String)> {
    ReplayBase::named(&settings.replay_origin, port).ok_or_else(|| {
        usage(anyhow::anyhow!(
            "serve.replay_origin `{}` is not of the form http://replay.localhost or https://replay.example.org",
            settings.replay_origin
        ))
    })
}

/// Interface and replay, being served until the runtime ends.
pub(super) struct Served {
    pub interface: SocketAddr,
    pub replay: SocketAddr,
}

impl Served {
    /// Where people reach the interface and replay, for links in messages.
    pub(super) fn links(&self, settings: &crate::config::Serve) -> anyhow::Result<Links> {
        let interface = match settings.origin.trim_end_matches('/') {
            "" => format!("http://{}", self.interface),
            origin => origin.to_owned(),
        };
        let (_, replay) = replay_base(settings, self.replay.port())?;
        Ok(Links { interface, replay })
    }

    /// Begins to listen and to answer.
    pub(super) async fn start(
        context: &Context,
        args: &ServeArgs,
        archive: &Arc<Archive>,
        control: Arc<dyn Control>,
    ) -> anyhow::Result<Self> {
        let settings = &context.config.serve;
        let options = WebOptions {
            reports: Some(archive.folder().join(REPORTS)),
            depth: context.config.crawl.depth,
            search: context.config.search.index.then(|| Arc::new(Search::new(archive.clone()))),
            ..web_options(settings)?
        };
        let wanted = address("interface", args.interface.as_deref(), &settings.interface)?;
        nenrin_web::may_listen(wanted.ip(), &options).map_err(usage)?;
        let interface = listen("interface", wanted)?;
        let wanted = address("replay", args.replay.as_deref(), &settings.replay)?;
        let replay = listen("replay", wanted)?;
        let served = Self { interface: interface.local_addr()?, replay: replay.local_addr()? };
        let (replay_base, origin) = replay_base(settings, served.replay.port())?;
        let changes = ChangeReader::new(archive.state().clone(), archive.store().clone());
        changes.start();
        let ports = served.interface.port();
        let replay_options = ReplayOptions {
            frame_ancestors: ["127.0.0.1", "localhost"]
                .map(|host| format!("http://{host}:{ports}"))
                .to_vec(),
            has_names_below: match settings.replay_hosts {
                ReplayHosts::Auto => {
                    matches!(&replay_base, ReplayBase::Local { name, .. } if name != "localhost")
                }
                ReplayHosts::On => true,
                ReplayHosts::Off => false,
            },
            origin: Some(origin),
            interface: Some(served.interface),
            refuses_foreign_names: served.replay.ip().is_loopback(),
            ..ReplayOptions::default()
        };
        let web = nenrin_web::router(WebApp {
            changes,
            state: archive.state().clone(),
            store: Some(archive.store().clone()),
            control,
            store_stats: Arc::new({
                let archive = archive.clone();
                move || StoreSummary::of(&archive)
            }),
            replay_base,
            options,
            now_s: clock::now_s,
        });
        let shelf = (archive.state().clone(), archive.store().clone());
        let replayed = nenrin_replay::router(Arc::new(shelf), replay_options);
        tokio::spawn(nenrin_web::serve(interface, web));
        tokio::spawn(nenrin_web::serve(replay, replayed));
        Ok(served)
    }

    /// Prints the addresses of interface and replay.
    pub(super) fn announce(&self, context: &Context) -> anyhow::Result<()> {
        if context.json {
            return crate::table::print_json(&serde_json::json!({
                "interface": format!("http://{}/", self.interface),
                "replay": format!("http://{}/", self.replay),
            }));
        }
        say(format!("interface  http://{}/", self.interface))?;
        say(format!("replay     http://{}/", self.replay))?;
        say("Ctrl-C ends it; nothing is lost.")?;
        Ok(())
    }
}

fn address(what: &str, given: Option<&str>, configured: &str) -> anyhow::Result<SocketAddr> {
    let wanted = given.unwrap_or(configured);
    wanted.parse().map_err(|_| {
        usage(anyhow::anyhow!("the {what}'s address `{wanted}` is not of the form 127.0.0.1:8080"))
    })
}

/// Passwords and host names of the interface.
fn web_options(settings: &crate::config::Serve) -> anyhow::Result<WebOptions> {
    let hash = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Ok(WebOptions {
        admin_hash: hash(&settings.password),
        reader_hash: hash(&settings.reader_password),
        public_reading: settings.public_reading,
        host_names: settings.host_names.clone(),
        ..WebOptions::new(random_bytes()?)
    })
}

fn listen(what: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    nenrin_web::listen(address).map_err(|error| {
        usage(anyhow::anyhow!(
            "the {what} cannot listen on {address} ({error}); choose another with --{what} 127.0.0.1:PORT"
        ))
    })
}

/// Random bytes from the operating system.
pub(super) fn random_bytes<const N: usize>() -> anyhow::Result<[u8; N]> {
    use std::io::Read;
    let mut bytes = [0; N];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .context("the operating system gives no random bytes")?;
    Ok(bytes)
}
