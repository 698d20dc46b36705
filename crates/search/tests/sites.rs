//! On eight real websites at eight dates: the index gives the answers of a scan, and finds Japanese.
//!
//! `cargo test -p nenrin-search --test search -- sites:: --ignored --nocapture`
#![allow(clippy::unwrap_used, clippy::print_stderr, clippy::print_stdout, reason = "a measurement")]

use crate::support;

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use nenrin_archive::{Archive, MirrorImportOptions, OpenOptions, folder_bytes};
use nenrin_search::{Query, Search, scan::ScannedPage};
use nenrin_urls::CanonicalUrl;
use support::{Dice, compare, index, pages};

const QUERIES_PER_SITE: usize = 63;
const KNOWN_ITEMS: usize = 300;

/// The folder of test data, if it is there.
fn data() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("NENRIN_DATA").map_or(beside, PathBuf::from).join("sites");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("SKIPPED: {} is not there; set NENRIN_DATA", folder.display());
    None
}

/// When a visit was made.
fn visited_s(data: &Path, site: &str, visit: usize) -> i64 {
    let meta = std::fs::read_to_string(data.join(site).join("meta.json")).unwrap();
    let meta: serde_json::Value = serde_json::from_str(&meta).unwrap();
    meta["visits"][visit - 1]["commit_time"].as_i64().unwrap()
}

fn import(archive: &Archive, data: &Path, site: &str, visit: usize) {
    let folder = tempfile::tempdir().unwrap();
    let done = Command::new(data.join("materialise"))
        .args([site, &visit.to_string()])
        .arg(folder.path())
        .status()
        .unwrap();
    assert!(done.success(), "{site} {visit}");
    let at_s = visited_s(data, site, visit);
    let base = CanonicalUrl::parse(&format!("https://{site}.example/")).unwrap();
    let options = MirrorImportOptions { base, at_s, depth: 10, now_s: 2_000_000_000 };
    archive.import_mirror(folder.path(), &options, &mut |_, _| {}).unwrap();
}

fn index_bytes(archive: &Archive) -> u64 {
    folder_bytes(&archive.folder().join("search")).unwrap()
}

/// The share of pages that are found by a stretch of their Japanese text.
fn japanese_recall(search: &Search, pages: &[ScannedPage], dice: &mut Dice) -> f64 {
    let (mut asked, mut found) = (0, 0);
    while asked < KNOWN_ITEMS {
        let page = &pages[dice.below(pages.len())];
        let texts: Vec<&str> = page.texts().collect();
        let text: Vec<char> = texts[dice.below(texts.len().max(1))].chars().collect();
        let from = dice.below(text.len());
        let length = 2 + dice.below(7);
        let item: String = text[from..].iter().take(length).collect();
        // Letters of the language alone, as someone remembers them.
        if item.chars().count() < 2 || !item.chars().all(|c| c >= '\u{3041}' && c.is_alphanumeric())
        {
            continue;
        }
        asked += 1;
        let answer = search.spans(&Query::parse(&item).unwrap()).unwrap();
        let is_found = answer.iter().any(|(url, _)| url.shown() == page.url());
        if !is_found {
            println!("  not found: {item} on {}", page.url());
        }
        found += usize::from(is_found);
    }
    found as f64 / asked as f64
}

#[test]
#[ignore = "takes minutes and needs the test data"]
fn answers_on_real_sites_equal_a_scan() {
    let Some(data) = data() else { return };
    let chosen = std::env::var("NENRIN_SITES");
    let all = "umio vimdoc azhenley tromp openbsd dplyr heise zeit".to_owned();
    let mut sums = [0_u64; 4];
    for site in chosen.unwrap_or(all).split_whitespace() {
        let folder = tempfile::tempdir().unwrap();
        let archive = Arc::new(Archive::open(folder.path(), &OpenOptions::writing()).unwrap());
        import(&archive, &data, site, 1);
        drop(index(&archive));
        let first = index_bytes(&archive);
        let mut dice = Dice(28);
        for visit in 2..=8 {
            import(&archive, &data, site, visit);
            drop(index(&archive));
        }
        let search = index(&archive);
        let followed = index_bytes(&archive);
        let scanned = pages(&archive);
        let bytes = |page: &ScannedPage| page.texts().map(|text| text.len() as u64).sum::<u64>();
        let text: u64 = scanned.iter().map(bytes).sum();
        let distinct: std::collections::BTreeSet<&str> =
            scanned.iter().flat_map(ScannedPage::texts).collect();
        let distinct: u64 = distinct.iter().map(|text| text.len() as u64).sum();
        let status = search.status().unwrap();
        println!(
            "{site}: {} pages, {} blocks, text {text}, of it distinct over pages {distinct}; index {first} after 1 visit, {followed} after 8 ({:.2} times; {:.1}% of the text of pages, {:.1}% of the distinct)",
            status.pages,
            status.blocks,
            followed as f64 / first as f64,
            100.0 * followed as f64 / text as f64,
            100.0 * followed as f64 / distinct as f64,
        );
        let answered = compare(&search, &scanned, &mut dice, QUERIES_PER_SITE);
        println!("  {QUERIES_PER_SITE} queries equal the scan, {answered} of them found something");
        if matches!(site, "umio" | "vimdoc") {
            let recall = japanese_recall(&search, &scanned, &mut dice);
            println!("  Japanese known items: {:.1}% found", 100.0 * recall);
            assert!(recall >= 0.98, "{recall}");
        }
        for (sum, value) in sums.iter_mut().zip([first, followed, text, distinct]) {
            *sum += value;
        }
    }
    let [first, followed, text, distinct] = sums;
    println!(
        "in all: {:.2} times after 8 visits; {:.1}% of the text of pages, {:.1}% of the distinct",
        followed as f64 / first as f64,
        100.0 * followed as f64 / text as f64,
        100.0 * followed as f64 / distinct as f64
    );
}
