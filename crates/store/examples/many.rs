//! Memory when an archive holds very many versions: `many PHASE DIR [PAGES] [VISITS] [VERSIONS]`.
//!
//! PHASE is `put` (a site of PAGES pages, all of which change at each of VISITS visits, and a site
//! of one page with VERSIONS versions; by default 200,000, 5 and 100,000), then `compact`, `verify`,
//! `reindex`, `read` (some versions, with a cold cache), `more` (a further visit that changes one page in a thousand) and `forget` (every
//! other version). Each is a process of its own, so that each prints a peak of its own;
//! `scripts/bench-many` runs them all.
#![expect(clippy::print_stdout, reason = "this is a report for a person")]
#![expect(clippy::unwrap_used, reason = "an experiment may stop anywhere")]

mod measure;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use measure::{cpu_s, distribution, peak_memory_mb};
use nenrin_store::{CompactOptions, LocalFolder, NewVersion, Store, StoreOptions, VersionId};
use nenrin_urls::CanonicalUrl;

/// The sites' numbers.
const MANY_PAGES: u32 = 1;
const ONE_PAGE: u32 = 2;
/// Puts between two syncs.
const PUTS_PER_SYNC: u64 = 2000;
/// One version in so many is read.
const READ_ONE_IN: usize = 197;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, otherwise: u64| {
        arguments.get(at).map_or(otherwise, |number| number.parse().unwrap())
    };
    let work = Path::new(&arguments[1]);
    let store = open(work, StoreOptions::default());
    let opened_mb = peak_memory_mb();
    let begin = cpu_s();
    let did = match arguments[0].as_str() {
        "put" => put_everything(&store, number(2, 200_000), number(3, 5), number(4, 100_000)),
        "compact" => {
            let report = store.compact(&CompactOptions::default(), &mut |_, _| {}).unwrap();
            format!(
                "{} bytes to {}, {} frames written, {} copied",
                report.bytes_before,
                report.bytes_after,
                report.frames_written,
                report.frames_copied
            )
        }
        "verify" => {
            let report = store.verify(true, &mut |_, _| {}).unwrap();
            assert!(report.is_sound(), "{:#?}", report.damage);
            format!("{} versions sound", report.versions)
        }
        "reindex" => {
            store.rebuild_index().unwrap();
            format!("{} versions", store.stats().unwrap().versions)
        }
        "read" => {
            drop(store);
            read(&open(work, StoreOptions { cache_bytes: 0, ..StoreOptions::default() }))
        }
        "more" => more(&store, number(2, 200_000)),
        "forget" => forget(&store),
        other => panic!("{other} is none of put, compact, verify, reindex, read, more, forget"),
    };
    println!(
        "{}: {did}; {:.0} CPU s, peak memory {} MB, {opened_mb} once opened",
        arguments[0],
        cpu_s() - begin,
        peak_memory_mb()
    );
}

fn open(work: &Path, options: StoreOptions) -> Store {
    let options = StoreOptions { index_path: Some(work.join("index.sqlite")), ..options };
    Store::open(Arc::new(LocalFolder::open(work.join("packs")).unwrap()), options).unwrap()
}

fn put_everything(store: &Store, pages: u64, visits: u64, versions: u64) -> String {
    let mut last = vec![None; pages as usize];
    for visit in 0..visits {
        for page in 0..pages {
            let previous = &mut last[page as usize];
            *previous = Some(put(store, MANY_PAGES, page, visit, *previous));
            sync_sometimes(store, page);
        }
    }
    let mut previous = None;
    for version in 0..versions {
        previous = Some(put(store, ONE_PAGE, 0, version, previous));
        sync_sometimes(store, version);
    }
    store.sync().unwrap();
    format!("{} versions", store.stats().unwrap().versions)
}

/// Reads versions from all over both sites.
fn read(store: &Store) -> String {
    let mut times_ms: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    let versions = store.stats().unwrap().versions;
    for id in (1..=versions).step_by(READ_ONE_IN) {
        let begin = cpu_s();
        let version = store.read(VersionId(id)).unwrap();
        let took_ms = 1000.0 * (cpu_s() - begin);
        times_ms.entry(version.head.group).or_default().push(took_ms);
    }
    let name = |site| if site == ONE_PAGE { "one page" } else { "many pages" };
    let shown = times_ms
        .iter_mut()
        .map(|(site, times_ms)| format!("{}: {}", name(*site), distribution(times_ms)));
    shown.collect::<Vec<_>>().join("; ")
}

fn sync_sometimes(store: &Store, put: u64) {
    if put % PUTS_PER_SYNC == PUTS_PER_SYNC - 1 {
        store.sync().unwrap();
    }
}

fn more(store: &Store, pages: u64) -> String {
    let changed = (0..pages).step_by(1000);
    let count = changed.clone().count();
    changed.for_each(|page| {
        put(store, MANY_PAGES, page, 1_000_000, None);
    });
    store.sync().unwrap();
    format!("{count} versions")
}

fn forget(store: &Store) -> String {
    let mut ids = Vec::new();
    store
        .scan(&mut |head| {
            ids.extend((head.id.0 % 2 == 0).then_some(head.id));
            Ok(())
        })
        .unwrap();
    let count: u64 = ids.chunks(4096).map(|ids| store.forget(ids).unwrap()).sum();
    format!("{count} versions")
}

fn put(store: &Store, site: u32, page: u64, visit: u64, previous: Option<VersionId>) -> VersionId {
    let url = format!("https://site-{site}.example/{}/{}/page-{page}", page % 7, page % 701);
    let url = CanonicalUrl::parse(&url).unwrap();
    let version = NewVersion {
        url: &url,
        group: site,
        visited_at_s: 1_700_000_000 + visit as i64 * 3600,
        status: 200,
        protocol: "h2",
        tls: Some("tls/1.3"),
        server_address: None,
        request_head: b"",
        response_head: b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n",
        body: &body(page, visit),
        truncated: None,
        previous,
    };
    store.put(&version).unwrap().id
}

/// A small page: what all pages have, what is its own, and what belongs to the visit.
fn body(page: u64, visit: u64) -> Vec<u8> {
    let own = page.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let news = (page ^ (visit << 40)).wrapping_mul(0xd134_2543_de82_ef95);
    format!(
        "<!DOCTYPE html><html><head><title>page {page}</title></head><body><nav>every page</nav>\
         <p>its own words are {own:x} and {:x}</p><p>today {news:x}</p></body></html>",
        own.rotate_left(21) ^ page
    )
    .into_bytes()
}
