//! Whether adding a visit depends on what is stored already: `growth [VISITS] [DIR]`, default 800.
//!
//! A site of 200 pages of about 20 KB, of which ten change at every visit. After 8, 80 and 800
//! visits it prints what the last visits cost in CPU time and bytes, and the peak of memory.
#![expect(clippy::print_stdout, reason = "this is a report for a person")]
#![expect(clippy::unwrap_used, reason = "an experiment may stop anywhere")]

mod measure;

use std::sync::Arc;

use measure::{cpu_s, peak_memory_mb};
use nenrin_store::{CompactOptions, LocalFolder, NewVersion, Store, StoreOptions, VersionId};
use nenrin_urls::CanonicalUrl;

const PAGES: u64 = 200;
const CHANGES: u64 = 10;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let visits: u64 = arguments.next().map_or(800, |visits| visits.parse().unwrap());
    let work = arguments.next().unwrap_or_else(|| "growth-archive".into());
    let work = std::path::PathBuf::from(work);
    let _ = std::fs::remove_dir_all(&work);
    let options =
        StoreOptions { index_path: Some(work.join("index.sqlite")), ..StoreOptions::default() };
    let packs = Arc::new(LocalFolder::open(work.join("packs")).unwrap());
    let store = Store::open(packs, options).unwrap();
    let mut last: Vec<Option<VersionId>> = vec![None; PAGES as usize];
    let mut costs = Vec::new();
    for visit in 0..visits {
        let begin = cpu_s();
        for number in 0..PAGES {
            let changes = visit == 0 || (number + visit * 7) % PAGES < CHANGES;
            let body = page(number, if changes { visit } else { u64::MAX });
            if changes {
                last[number as usize] =
                    Some(put(&store, number, visit, &body, last[number as usize]));
            } else {
                // What does not change is hashed and found to be the same by the caller.
                std::hint::black_box(nenrin_store::Digest::of(&body));
            }
        }
        store.sync().unwrap();
        costs.push(cpu_s() - begin);
        if [8, 80, 800].contains(&(visit + 1)) {
            let of_last = &costs[costs.len() - 7..];
            let mean_ms = 1000.0 * of_last.iter().sum::<f64>() / of_last.len() as f64;
            let stats = store.stats().unwrap();
            println!(
                "{} visits: a visit costs {mean_ms:.2} CPU ms, {} versions in {} bytes, peak memory {} MB",
                visit + 1,
                stats.versions,
                stats.stored_bytes,
                peak_memory_mb()
            );
        }
    }
    let begin = cpu_s();
    let report = store.compact(&CompactOptions::default(), &mut |_, _| {}).unwrap();
    println!(
        "compact: {} to {} bytes in {:.1} CPU s, peak memory {} MB",
        report.bytes_before,
        report.bytes_after,
        cpu_s() - begin,
        peak_memory_mb()
    );
    let again = put(&store, 3, visits, &page(3, visits), last[3]);
    let begin = cpu_s();
    let report = store.compact(&CompactOptions::default(), &mut |_, _| {}).unwrap();
    println!(
        "compact after one change: {} frames written, {} copied, {:.2} CPU s",
        report.frames_written,
        report.frames_copied,
        cpu_s() - begin
    );
    assert_eq!(store.read(again).unwrap().body, page(3, visits));
}

fn put(
    store: &Store,
    number: u64,
    visit: u64,
    body: &[u8],
    previous: Option<VersionId>,
) -> VersionId {
    let url = CanonicalUrl::parse(&format!("https://growth.example/{number}")).unwrap();
    let version = NewVersion {
        url: &url,
        group: 1,
        visited_at_s: 1_700_000_000 + visit as i64 * 3600,
        status: 200,
        protocol: "h2",
        tls: Some("tls/1.3"),
        server_address: None,
        request_head: b"",
        response_head: b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n",
        body,
        truncated: None,
        previous,
    };
    store.put(&version).unwrap().id
}

/// A page whose text is its own, but for two paragraphs that belong to the visit.
fn page(number: u64, visit: u64) -> Vec<u8> {
    let mut page = String::from("<!DOCTYPE html><html><head><title>growth</title></head><body>");
    for line in 0..200u64 {
        let salt = if line % 100 == 7 { visit } else { 0 };
        let mut word = (number << 32) ^ (line << 16) ^ salt.wrapping_mul(0x9e37_79b9);
        page.push_str("<p class=paragraph>");
        for _ in 0..6 {
            word = word
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            page.push_str(&format!("{:x} ", word >> 34));
        }
        page.push_str("</p>\n");
    }
    page.into_bytes()
}
