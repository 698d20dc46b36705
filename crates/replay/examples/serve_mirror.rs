//! Serves folders as an archive, to measure replay and to look at it:
//!
//! `cargo run --release -p nenrin-replay --example serve_mirror -- PORT WORK FOLDER…`
//!
//! WORK keeps the archive for the next start. Each FOLDER contains one folder per host
//! (`127.0.1.1:18080` or `example.com`), and is one visit, a day after the one before.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use nenrin_replay::{ReplayOptions, router};
use nenrin_state::{
    Change, RobotsPolicy, Schedule, SiteConditions, SiteId, SqliteState, State, VersionRow,
    VisitCommit,
};
use nenrin_store::{LocalFolder, NewVersion, Store, StoreOptions};
use nenrin_urls::{CanonicalUrl, Scope};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const FIRST_VISIT_S: i64 = 1_704_067_200;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: serve_mirror PORT WORK FOLDER…";
    let port: u16 = arguments.next().ok_or(usage)?.parse()?;
    let work = PathBuf::from(arguments.next().ok_or(usage)?);
    let is_new = !work.exists();
    std::fs::create_dir_all(&work)?;
    let state: Arc<dyn State> = Arc::new(SqliteState::open(&work.join("state.sqlite"), 3600)?);
    let options =
        StoreOptions { index_path: Some(work.join("index.sqlite")), ..StoreOptions::default() };
    let store = Store::open(Arc::new(LocalFolder::open(work.join("packs"))?), options)?;
    if is_new {
        let site = a_site(&*state)?;
        for (visit, folder) in arguments.enumerate() {
            let at_s = FIRST_VISIT_S + 86_400 * visit as i64;
            take(&*state, &store, site, Path::new(&folder), at_s)?;
        }
        store.sync()?;
    }
    let replay = router(Arc::new((state, Arc::new(store))), ReplayOptions::default());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
        Ok(axum::serve(listener, replay).await?)
    })
}

fn a_site(state: &dyn State) -> Result<SiteId, Failure> {
    let conditions = SiteConditions {
        tops: vec![CanonicalUrl::parse("http://example.com/")?],
        scope: Scope::Host,
        depth: 1,
        max_pages: None,
        embeds: true,
        schedule: Schedule::Manual,
        windows: Vec::new(),
        delay_ms: None,
        allow_private: true,
        robots: RobotsPolicy::Obey,
        hints: nenrin_state::SiteHints::default(),
        ..SiteConditions::new(Vec::new())
    };
    Ok(state.add_site("mirror", &conditions, FIRST_VISIT_S)?.id)
}

fn take(
    state: &dyn State,
    store: &Store,
    site: SiteId,
    folder: &Path,
    at_s: i64,
) -> Result<(), Failure> {
    for host in std::fs::read_dir(folder)? {
        let host = host?.path();
        if host.is_dir() {
            let name = host.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let name = if name.starts_with("127.") && !name.contains(':') {
                format!("{name}:18080")
            } else {
                name
            };
            take_files(state, store, site, &host, &format!("http://{name}/"), at_s)?;
        }
    }
    Ok(())
}

fn take_files(
    state: &dyn State,
    store: &Store,
    site: SiteId,
    folder: &Path,
    base: &str,
    at_s: i64,
) -> Result<(), Failure> {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>()?;
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            take_files(state, store, site, &path, &format!("{base}{name}/"), at_s)?;
            continue;
        }
        let name = if name == "index.html" { String::new() } else { name };
        let Ok(url) = CanonicalUrl::parse(&format!("{base}{name}")) else { continue };
        let body = std::fs::read(&path)?;
        take_file(state, store, site, &url, &body, at_s)?;
    }
    Ok(())
}

fn take_file(
    state: &dyn State,
    store: &Store,
    site: SiteId,
    url: &CanonicalUrl,
    body: &[u8],
    at_s: i64,
) -> Result<(), Failure> {
    let mime = match url.path().rsplit('.').next() {
        Some("css") => "text/css",
        Some("js") => "text/javascript",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("gif") => "image/gif",
        Some("svg") => "image/svg+xml",
        Some("xml") => "application/xml",
        Some("txt") => "text/plain",
        Some("woff2") => "font/woff2",
        Some("woff") => "font/woff",
        Some("ttf") => "font/ttf",
        Some("json") => "application/json",
        Some("ico") => "image/x-icon",
        _ => "text/html",
    };
    if let Some((_, before)) = state.version_as_of(&url.key(), at_s)?
        && store.read(before.version)?.body == body
    {
        return Ok(());
    }
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\nServer: mirror\r\n\r\n");
    let put = store.put(&NewVersion {
        url,
        group: site.0,
        visited_at_s: at_s,
        status: 200,
        protocol: "http/1.1",
        tls: None,
        server_address: None,
        request_head: b"",
        response_head: head.as_bytes(),
        body,
        truncated: None,
        previous: None,
    })?;
    let row = VersionRow {
        at_s,
        version: put.id,
        status: 200,
        mime: mime.to_owned(),
        bytes: body.len() as u64,
        changed_permille: None,
    };
    let visit = VisitCommit::in_packs(site, url.clone(), row);
    state.commit(&[Change::Visit(Box::new(visit))])?;
    Ok(())
}
