//! Collecting with and without compressing beside it (paper 001, fig. 10): the crawler asks loopback
//! servers that show the visits of a corpus, one after the other.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, Uri, header},
    response::{IntoResponse, Response},
    routing::get,
};
use nenrin_archive::{Archive, OpenOptions, Span, mime_by_name, path_of, urls};
use nenrin_crawl::Event;
use nenrin_fetch::Fetcher;
use nenrin_lab::storage::{Overlap, OverlapRun, OverlapSample};
use nenrin_state::{Schedule, SiteId};
use nenrin_urls::{CanonicalUrl, Scope};

use super::{serve::runtime, sites};
use crate::{
    clock,
    config::Config,
    driver::{Driver, DriverHandle, Notice, Until},
};

/// Time between two samples.
const SAMPLE: Duration = Duration::from_millis(50);
/// Pause between two compressions.
const BETWEEN_COMPACTIONS: Duration = Duration::from_millis(200);

/// The visits of a site, one of which is shown.
struct Shown {
    visits: Vec<PathBuf>,
    now: AtomicUsize,
}

/// Collects all visits alone, then again into another archive with compressing beside it.
pub(super) fn measure(
    folder: &Path,
    config: &Config,
    corpus: &[(String, Vec<PathBuf>)],
) -> anyhow::Result<Overlap> {
    let mut config = config.clone();
    config.politeness.delay = Span::secs(0);
    config.politeness.response_factor = 0.0;
    let queue_max = config.crawl.parallel + config.crawl_options().unstored_max;
    let mut runs = Vec::new();
    for (name, compacts) in [("nothing", false), ("compact", true)] {
        let at = folder.join(name);
        if at.exists() {
            std::fs::remove_dir_all(&at)?;
        }
        let archive = Arc::new(Archive::open(&at, &OpenOptions::writing())?);
        runs.push(collect(name, &archive, &config, corpus, compacts)?);
        drop(archive);
        std::fs::remove_dir_all(&at)?;
    }
    Ok(Overlap { queue_max, runs })
}

/// What the collecting thread and those beside it tell each other.
#[derive(Default)]
struct Shared {
    driver: Mutex<Option<DriverHandle>>,
    visits: AtomicU64,
    is_done: AtomicBool,
    is_compacting: AtomicBool,
    compactions: AtomicU32,
    compacting_ms: AtomicU64,
}

fn collect(
    name: &str,
    archive: &Arc<Archive>,
    config: &Config,
    corpus: &[(String, Vec<PathBuf>)],
    compacts: bool,
) -> anyhow::Result<OverlapRun> {
    let shared = Arc::<Shared>::default();
    let runtime = runtime()?;
    let began_ms = clock::now_ms();
    let sampler = {
        let shared = shared.clone();
        std::thread::spawn(move || sample(&shared, began_ms))
    };
    let compactor = compacts.then(|| {
        let (shared, archive) = (shared.clone(), archive.clone());
        std::thread::spawn(move || compact(&shared, &archive))
    });
    let collected = runtime.block_on(collect_visits(archive, config, corpus, &shared));
    let seconds = (clock::now_ms() - began_ms) as f64 / 1000.0;
    shared.is_done.store(true, Ordering::Relaxed);
    let samples = sampler.join().unwrap_or_default();
    if let Some(compactor) = compactor {
        compactor.join().map_err(|_| anyhow::anyhow!("compressing failed"))??;
    }
    runtime.shutdown_timeout(Duration::from_secs(1));
    collected?;
    Ok(OverlapRun {
        name: name.to_owned(),
        visits: shared.visits.load(Ordering::Relaxed),
        seconds,
        compactions: shared.compactions.load(Ordering::Relaxed),
        compacting_seconds: shared.compacting_ms.load(Ordering::Relaxed) as f64 / 1000.0,
        samples,
    })
}

fn sample(shared: &Shared, began_ms: i64) -> Vec<OverlapSample> {
    let mut samples = Vec::new();
    while !shared.is_done.load(Ordering::Relaxed) {
        let driver = shared.driver.lock().unwrap_or_else(PoisonError::into_inner).clone();
        samples.push(OverlapSample {
            at_s: (clock::now_ms() - began_ms) as f64 / 1000.0,
            visits: shared.visits.load(Ordering::Relaxed),
            queued: driver.map_or(0, |driver| driver.store_waiting()),
            compacting: shared.is_compacting.load(Ordering::Relaxed),
        });
        std::thread::sleep(SAMPLE);
    }
    samples
}

/// Compresses what has come in, again and again, until collecting is done.
fn compact(shared: &Shared, archive: &Archive) -> anyhow::Result<()> {
    while !shared.is_done.load(Ordering::Relaxed) {
        std::thread::sleep(BETWEEN_COMPACTIONS);
        let began_ms = clock::now_ms();
        shared.is_compacting.store(true, Ordering::Relaxed);
        archive.compact(&mut |_, _| {})?;
        shared.is_compacting.store(false, Ordering::Relaxed);
        if !shared.is_done.load(Ordering::Relaxed) {
            shared.compactions.fetch_add(1, Ordering::Relaxed);
        }
        let took_ms = u64::try_from(clock::now_ms() - began_ms).unwrap_or(0);
        shared.compacting_ms.fetch_add(took_ms, Ordering::Relaxed);
    }
    Ok(())
}

async fn collect_visits(
    archive: &Archive,
    config: &Config,
    corpus: &[(String, Vec<PathBuf>)],
    shared: &Shared,
) -> anyhow::Result<()> {
    let (mut shown, mut ids) = (Vec::new(), BTreeSet::new());
    for (name, visits) in corpus {
        let site = Arc::new(Shown { visits: visits.clone(), now: AtomicUsize::new(0) });
        let address = show(site.clone()).await?;
        ids.insert(register(archive, config, name, address)?);
        shown.push(site);
    }
    let visits = corpus.iter().map(|(_, visits)| visits.len()).max().unwrap_or(0);
    for visit in 0..visits {
        shown.iter().for_each(|site| site.now.store(visit, Ordering::Relaxed));
        let mut options = config.crawl_options();
        options.due_pages = false;
        let driver = Driver::new(archive, Fetcher::new(config.fetch_options())?, options)?;
        let handle = driver.handle();
        ids.iter().for_each(|&site| handle.tell(Event::CollectNow(site)));
        *shared.driver.lock().unwrap_or_else(PoisonError::into_inner) = Some(handle);
        let count = |notice: Notice<'_>, _: &_| {
            if matches!(notice, Notice::Visited { .. }) {
                shared.visits.fetch_add(1, Ordering::Relaxed);
            }
        };
        driver.run(Until::RoundsFinished(ids.clone()), std::future::pending(), count).await?;
    }
    Ok(())
}

/// Every file is one link away from a list at the top; nothing outside is asked for.
fn register(
    archive: &Archive,
    config: &Config,
    name: &str,
    address: SocketAddr,
) -> anyhow::Result<SiteId> {
    let top = CanonicalUrl::parse(&format!("http://{address}/"))?;
    let mut conditions = sites::default_conditions(vec![top], config);
    conditions.scope = Scope::Host;
    conditions.depth = 2;
    conditions.embeds = false;
    conditions.allow_private = true;
    conditions.delay_ms = Some(0);
    conditions.schedule = Schedule::Manual;
    conditions.hints.signals = false;
    Ok(archive.state().add_site(name, &conditions, clock::now_s())?.id)
}

async fn show(site: Arc<Shown>) -> anyhow::Result<SocketAddr> {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    let app = Router::new().fallback(get(answer)).with_state(site);
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(address)
}

async fn answer(State(site): State<Arc<Shown>>, uri: Uri) -> Response {
    let path = uri.path().to_owned();
    let content = tokio::task::spawn_blocking(move || {
        let visit = site.visits.get(site.now.load(Ordering::Relaxed))?;
        content(visit, &path)
    });
    match content.await {
        Ok(Some((mime, body))) => ([(header::CONTENT_TYPE, mime)], body).into_response(),
        _ => (StatusCode::NOT_FOUND, "there is no such page").into_response(),
    }
}

fn content(visit: &Path, path: &str) -> Option<(&'static str, Vec<u8>)> {
    let base = CanonicalUrl::parse("http://corpus.example/").ok()?;
    if path == "/" {
        let mut list = String::from("<!DOCTYPE html><title>All files</title>\n");
        for url in urls(visit, &base).ok()? {
            let _ = writeln!(list, "<a href=\"{}\">file</a>", url.path().replace('&', "&amp;"));
        }
        return Some(("text/html", list.into_bytes()));
    }
    let url = base.server().url(path).ok()?;
    let file = visit.join(path_of(&url, Some(&base), false)?);
    Some((mime_by_name(&file), std::fs::read(&file).ok()?))
}
