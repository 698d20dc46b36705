//! Collecting with and without compressing at the same time (paper 001, fig. 10): the crawler visits
//! loopback servers that show the visits of a corpus, one after the other.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc,
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
use nenrin_archive::{Archive, OpenOptions, mime_by_name, path_of, urls};
use nenrin_state::{SiteConditions, SiteId};
use nenrin_urls::CanonicalUrl;

use super::{
    clock::monotonic_s,
    subject::{Overlap, OverlapRun, OverlapSample},
};
use crate::LabError;

/// Time between two samples.
const SAMPLE: Duration = Duration::from_millis(50);
/// Pause between two compressions.
const BETWEEN_COMPACTIONS: Duration = Duration::from_millis(200);

/// Collects as the program does.
pub trait Collector: Sync {
    /// Visits that may wait for the store before nothing more is fetched.
    fn queue_max(&self) -> usize;

    /// Collects one round of these sites without pauses between requests; `visited` is called for
    /// every visit.
    fn collect(
        &self,
        archive: &Archive,
        sites: &BTreeSet<SiteId>,
        visited: &(dyn Fn() + Sync),
    ) -> Result<(), LabError>;

    /// Visits that wait for the store now.
    fn store_waiting(&self) -> usize;
}

/// The visits of a site, one of which is shown.
struct Shown {
    visits: Vec<PathBuf>,
    now: AtomicUsize,
}

/// Collects all visits alone, then again into another archive while compressing.
pub(super) fn measure(
    folder: &Path,
    collector: &dyn Collector,
    corpus: &[(String, Vec<PathBuf>)],
) -> Result<Overlap, LabError> {
    let mut runs = Vec::new();
    for (name, compacts) in [("nothing", false), ("compact", true)] {
        let at = folder.join(name);
        if at.exists() {
            std::fs::remove_dir_all(&at).map_err(LabError::file("remove", &at))?;
        }
        let archive = Archive::open(&at, &OpenOptions::writing())?;
        runs.push(collect(name, &archive, collector, corpus, compacts)?);
        drop(archive);
        std::fs::remove_dir_all(&at).map_err(LabError::file("remove", &at))?;
    }
    Ok(Overlap { queue_max: collector.queue_max(), runs })
}

/// What the collecting thread and the other two share.
#[derive(Default)]
struct Shared {
    visits: AtomicU64,
    is_done: AtomicBool,
    is_compacting: AtomicBool,
    compactions: AtomicU32,
    compacting_ms: AtomicU64,
}

fn collect(
    name: &str,
    archive: &Archive,
    collector: &dyn Collector,
    corpus: &[(String, Vec<PathBuf>)],
    compacts: bool,
) -> Result<OverlapRun, LabError> {
    let shared = Shared::default();
    let began_s = monotonic_s();
    std::thread::scope(|scope| {
        let sampler = scope.spawn(|| sample(&shared, collector, began_s));
        let compactor = scope.spawn(|| if compacts { compact(&shared, archive) } else { Ok(()) });
        let collected = collect_visits(archive, collector, corpus, &shared);
        let seconds = monotonic_s() - began_s;
        shared.is_done.store(true, Ordering::Relaxed);
        let samples = sampler.join().unwrap_or_default();
        let ended =
            || LabError::Input { what: "compressing ended before its work was done".into() };
        compactor.join().map_err(|_| ended())??;
        collected?;
        Ok(OverlapRun {
            name: name.to_owned(),
            visits: shared.visits.load(Ordering::Relaxed),
            seconds,
            compactions: shared.compactions.load(Ordering::Relaxed),
            compacting_seconds: shared.compacting_ms.load(Ordering::Relaxed) as f64 / 1000.0,
            samples,
        })
    })
}

fn sample(shared: &Shared, collector: &dyn Collector, began_s: f64) -> Vec<OverlapSample> {
    let mut samples = Vec::new();
    while !shared.is_done.load(Ordering::Relaxed) {
        samples.push(OverlapSample {
            at_s: monotonic_s() - began_s,
            visits: shared.visits.load(Ordering::Relaxed),
            queued: collector.store_waiting(),
            compacting: shared.is_compacting.load(Ordering::Relaxed),
        });
        std::thread::sleep(SAMPLE);
    }
    samples
}

/// Compresses what has come in, again and again, until collecting is done.
fn compact(shared: &Shared, archive: &Archive) -> Result<(), LabError> {
    while !shared.is_done.load(Ordering::Relaxed) {
        std::thread::sleep(BETWEEN_COMPACTIONS);
        let began_s = monotonic_s();
        shared.is_compacting.store(true, Ordering::Relaxed);
        archive.compact(&mut |_, _| {})?;
        shared.is_compacting.store(false, Ordering::Relaxed);
        if !shared.is_done.load(Ordering::Relaxed) {
            shared.compactions.fetch_add(1, Ordering::Relaxed);
        }
        let took_ms = (1000.0 * (monotonic_s() - began_s)) as u64;
        shared.compacting_ms.fetch_add(took_ms, Ordering::Relaxed);
    }
    Ok(())
}

fn collect_visits(
    archive: &Archive,
    collector: &dyn Collector,
    corpus: &[(String, Vec<PathBuf>)],
    shared: &Shared,
) -> Result<(), LabError> {
    let no_server = |error: std::io::Error| LabError::Input {
        what: format!("no server on the loopback address: {error}"),
    };
    // The servers end with it.
    let runtime = tokio::runtime::Runtime::new().map_err(no_server)?;
    let (mut shown, mut ids) = (Vec::new(), BTreeSet::new());
    for (name, visits) in corpus {
        let site = Arc::new(Shown { visits: visits.clone(), now: AtomicUsize::new(0) });
        let address = runtime.block_on(show(site.clone())).map_err(no_server)?;
        ids.insert(register(archive, name, address)?);
        shown.push(site);
    }
    let visits = corpus.iter().map(|(_, visits)| visits.len()).max().unwrap_or(0);
    for visit in 0..visits {
        shown.iter().for_each(|site| site.now.store(visit, Ordering::Relaxed));
        collector.collect(archive, &ids, &|| {
            shared.visits.fetch_add(1, Ordering::Relaxed);
        })?;
    }
    Ok(())
}

/// Every file is one link away from a list at the top; nothing outside is visited.
fn register(archive: &Archive, name: &str, address: SocketAddr) -> Result<SiteId, LabError> {
    let top = CanonicalUrl::parse(&format!("http://{address}/"))
        .map_err(|error| LabError::Input { what: error.to_string() })?;
    let mut conditions = SiteConditions {
        depth: 2,
        embeds: false,
        allow_private: true,
        delay_ms: Some(0),
        ..SiteConditions::new(vec![top])
    };
    conditions.hints.signals = false;
    Ok(archive.state().add_site(name, &conditions, 0)?.id)
}

async fn show(site: Arc<Shown>) -> std::io::Result<SocketAddr> {
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
    let file = visit.join(path_of(&url, Some(&base), false).path);
    Some((mime_by_name(&file), std::fs::read(&file).ok()?))
}
