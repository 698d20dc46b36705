//! The main job: collecting for ever, with interface and replay beside it.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use nenrin_crawl::{Event, FetchOrder, Purpose, Ticket, read_exchange};
use nenrin_fetch::{AddressPolicy, Exchange, FetchRequest, Fetcher, RobotsRules};
use nenrin_state::{Removal, SiteId};
use nenrin_store::CompactOptions;
use nenrin_urls::{CanonicalUrl, Scope};
use nenrin_web::{Control, ControlError, Metric, Preview, UnderWay};
use tokio::signal::unix::{SignalKind, signal};

use super::{
    Context,
    demo_site::{self, DemoSite},
    prune, removal,
    serve::{Served, interrupted, runtime},
};
use crate::{
    archive::{Access, Archive},
    cli::ServeArgs,
    clock,
    config::Config,
    driver::{Driver, DriverHandle, Until},
    exit::Exit,
    webhooks,
};

/// Links shown by a preview.
const PREVIEW_LINKS: usize = 20;

/// `nenrin run`.
pub(super) fn run(context: &Context, args: &ServeArgs) -> anyhow::Result<Exit> {
    let archive = Arc::new(context.open(Access::Write)?);
    let runtime = runtime()?;
    runtime.block_on(async {
        // A demo site that was registered earlier is served again, or its visits would all fail.
        let demo_registered =
            archive.state.sites()?.iter().any(|site| site.name == demo_site::NAME);
        if demo_registered {
            match DemoSite::register(&*archive.state, &context.config).await {
                Ok((demo, _)) => drop(tokio::spawn(demo.live())),
                Err(error) => tracing::warn!("{error:#}"),
            }
        }
        run_until(context, args, &archive, interrupted()).await
    })?;
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(Exit::Done)
}

/// Collects and serves until `stop` is ready.
pub(super) async fn run_until(
    context: &Context,
    args: &ServeArgs,
    archive: &Arc<Archive>,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let fetcher = Fetcher::new(context.config.fetch_options())?;
    let mut driver = Driver::new(archive, fetcher.clone(), context.config.crawl_options());
    driver.keep_free(context.config.disk.min_free.0);
    driver.keep_within(context.config.quotas());
    reload_when_asked(context, driver.handle())?;
    let fetcher_for_hooks = fetcher.clone();
    let control = RunControl {
        archive: archive.clone(),
        config: context.config.clone(),
        driver: driver.handle(),
        fetcher,
        runtime: tokio::runtime::Handle::current(),
        demo: Mutex::new(None),
    };
    let handle = driver.handle();
    webhooks::start(&context.config.webhook, &fetcher_for_hooks, &archive.state, handle)?;
    tokio::spawn(prune::when_idle(archive.clone(), driver.handle()));
    let served = Served::start(context, args, archive, Arc::new(control)).await?;
    served.announce(context)?;
    driver.run(Until::Stopped, stop, |_, _| {}).await?;
    Ok(())
}

/// Reads the configuration again at every hang-up signal (`kill -HUP`). One that is not right is
/// told of and changes nothing; where the program listens, and the archive's own settings, hold
/// until the next start.
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
struct RunControl {
    archive: Arc<Archive>,
    config: Config,
    driver: DriverHandle,
    fetcher: Fetcher,
    runtime: tokio::runtime::Handle,
    demo: Mutex<Option<SiteId>>,
}

fn failed(error: impl std::fmt::Display) -> ControlError {
    ControlError::Failed { reason: error.to_string() }
}

impl Control for RunControl {
    fn collects(&self) -> bool {
        true
    }

    fn collect_now(&self, site: SiteId) -> Result<(), ControlError> {
        self.driver.tell(Event::CollectNow(site));
        Ok(())
    }

    fn sites_changed(&self) {
        self.driver.sites_changed();
    }

    fn under_way(&self) -> Vec<UnderWay> {
        let shown = |under_way: crate::driver::UnderWay| UnderWay {
            server: under_way.url.server().to_string(),
            url: under_way.url.to_string(),
            since_s: under_way.since_ms / 1000,
            phase: "receiving",
        };
        self.driver.under_way().into_iter().map(shown).collect()
    }

    fn metrics(&self) -> Vec<Metric> {
        self.driver.figures().metrics()
    }

    fn removals(&self) -> &[Removal] {
        &Removal::ALL
    }

    fn remove(&self, site: SiteId, removal: Removal, reason: &str) -> Result<(), ControlError> {
        removal::carry_out(&self.archive, site, removal, reason)
            .map_err(|e| failed(format!("{e:#}")))?;
        if removal == Removal::Delete {
            // Takes a while; reading and writing go on meanwhile.
            let archive = self.archive.clone();
            self.runtime.spawn_blocking(move || {
                let done = archive.store.compact(&CompactOptions::default(), &mut |_, _| {});
                if let Err(error) = done {
                    tracing::warn!("what was deleted is not reclaimed yet: {error}");
                }
            });
        }
        Ok(())
    }

    fn start_demo(&self) -> Result<SiteId, ControlError> {
        let mut demo = self.demo.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(site) = *demo {
            return Ok(site);
        }
        let started = DemoSite::register(&*self.archive.state, &self.config);
        let (served, site) = self.runtime.block_on(started).map_err(failed)?;
        *demo = Some(site);
        self.runtime.spawn(served.live());
        self.driver.sites_changed();
        Ok(site)
    }

    fn export_warc(
        &self,
        site: SiteId,
        range: (i64, i64),
        out: Box<dyn std::io::Write + Send>,
    ) -> Result<(), ControlError> {
        super::warc::stream(&self.archive, &self.config, site, range, out).map_err(failed)
    }

    fn preview(&self, top: &CanonicalUrl, allow_private: bool) -> Result<Preview, ControlError> {
        let looked = async {
            let robots_url = top.server().url("/robots.txt").map_err(failed)?;
            let robots = self.look(&robots_url, allow_private).await;
            let page = self.look(top, allow_private).await;
            Ok(preview(top, robots, page))
        };
        self.runtime.block_on(looked)
    }
}

impl RunControl {
    async fn look(&self, url: &CanonicalUrl, allow_private: bool) -> Result<Exchange, String> {
        let addresses =
            if allow_private { AddressPolicy::AllowPrivate } else { AddressPolicy::Public };
        let request = FetchRequest { addresses, ..FetchRequest::new(url.clone()) };
        let limit = tokio::time::timeout(Duration::from_secs(20), self.fetcher.fetch(&request));
        match limit.await {
            Ok(result) => result.map_err(|failure| failure.to_string()),
            Err(_) => Err("no answer within 20 seconds".to_owned()),
        }
    }
}

fn preview(
    top: &CanonicalUrl,
    robots: Result<Exchange, String>,
    page: Result<Exchange, String>,
) -> Preview {
    let rules = match &robots {
        Ok(exchange) if exchange.status == 200 => RobotsRules::parse(&exchange.body, "nenrin"),
        Ok(exchange) if exchange.status < 500 => RobotsRules::allow_all(),
        _ => RobotsRules::disallow_all(),
    };
    let verdict = rules.allows(top.path_and_query());
    let robots_text = match (&robots, verdict.allowed) {
        (Err(why), _) => format!("could not be fetched ({why}): nothing would be collected"),
        (Ok(exchange), _) if exchange.status >= 500 => {
            format!("answers with status {}: nothing would be collected", exchange.status)
        }
        (Ok(exchange), _) if exchange.status != 200 => {
            "there is none: all may be collected".to_owned()
        }
        (Ok(_), true) => "allows the top page".to_owned(),
        (Ok(_), false) => "forbids the top page".to_owned(),
    };
    let sitemaps =
        top.server().url("/robots.txt").map(|url| rules.sitemaps(&url)).unwrap_or_default();
    let sitemap = match sitemaps.as_slice() {
        [] => "none is named in robots.txt".to_owned(),
        [only] => format!("{only}"),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    };
    let mut links = Vec::new();
    let top_text = match page {
        Err(why) => why,
        Ok(exchange) => {
            let order = FetchOrder {
                ticket: Ticket(0),
                purpose: Purpose::Page,
                url: top.clone(),
                etag: None,
                last_modified: None,
                allow_private: false,
                known_mark: None,
                previous: None,
                fingerprint: false,
                sitemap: false,
            };
            let answer = read_exchange(&order, &exchange, clock::now_s(), || None);
            let tops = [top.clone()];
            links = (answer.links.iter())
                .filter(|link| Scope::Host.contains(&tops, &link.url))
                .map(|link| link.url.to_string())
                .collect();
            match answer.location {
                Some(to) => format!("status {}, leads to {to}", answer.status),
                None => format!(
                    "status {}, {}, {} bytes",
                    answer.status, answer.mime, answer.body_bytes
                ),
            }
        }
    };
    let found = links.len() as u64;
    links.truncate(PREVIEW_LINKS);
    Preview {
        top: top_text,
        robots: robots_text,
        sitemap,
        links,
        estimated_pages: (found > 0).then_some(found + 1),
        estimated_bytes: None,
    }
}
