//! How quickly a large index answers and how quickly it grows.
//!
//! `cargo run --release -p nenrin-search --example search_speed -- [BLOCKS]`
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "an experiment")]

use std::{fmt::Write as _, sync::Arc};

use nenrin_archive::{Archive, Capture, OpenOptions, folder_bytes};
use nenrin_search::{Ask, Keeper, Order, Query, Search};
use nenrin_state::SiteConditions;
use nenrin_urls::CanonicalUrl;

const BLOCKS_PER_PAGE: u64 = 50;
const WORDS: u64 = 200_000;
const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n";

struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// A word; common ones are common, as in a language.
    fn word(&mut self) -> String {
        let share = self.next() as f64 / f64::from(1_u32 << 31);
        let rank = ((WORDS as f64).powf(share) - 1.0) as u64;
        let mut word = String::new();
        let mut rest = rank * 7_919 + 31;
        while rest > 0 || word.len() < 3 {
            word.push(char::from(b'a' + (rest % 19) as u8));
            rest /= 19;
        }
        word
    }
}

#[expect(clippy::disallowed_methods, reason = "an experiment measures time")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

fn memory_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) / 1024
}

fn main() {
    let blocks: u64 = std::env::args().nth(1).map_or(1_000_000, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let mut dice = Dice(1);
    let mut text = 0;
    {
        let archive = Archive::open(folder.path(), &OpenOptions::writing_much()).unwrap();
        let top = CanonicalUrl::parse("http://e.com/").unwrap();
        let site = archive.state().add_site("e", &SiteConditions::new(vec![top]), 0).unwrap().id;
        let mut ingest = archive.ingest(site).unwrap();
        for page in 0..blocks / BLOCKS_PER_PAGE {
            let mut body = String::new();
            for _ in 0..BLOCKS_PER_PAGE {
                body.push_str("<p>");
                for _ in 0..6 + dice.next() % 20 {
                    let word = dice.word();
                    text += word.len() + 1;
                    write!(body, "{word} ").unwrap();
                }
            }
            let url = CanonicalUrl::parse(&format!("http://e.com/p/{page}.html")).unwrap();
            let at_s = 1_600_000_000 + page as i64 * 1000;
            ingest.take(&Capture::new(&url, at_s, 200, HEAD, body.as_bytes())).unwrap();
        }
        ingest.finish().unwrap();
    }
    println!(
        "made {blocks} blocks, {} MB of text; memory so far {} MB",
        text / 1_000_000,
        memory_mb()
    );
    let archive = Arc::new(Archive::open(folder.path(), &OpenOptions::reading()).unwrap());
    let began = now();
    let mut keeper = Keeper::new(archive.clone());
    keeper.catch_up(&mut |_, _| {}).unwrap();
    let indexed = began.elapsed().as_secs_f64();
    keeper.finish().unwrap();
    let bytes = folder_bytes(&folder.path().join("search")).unwrap();
    println!(
        "indexed in {indexed:.1} s: {:.1} MB of text per second; index {:.1}% of the text; memory {} MB",
        text as f64 / 1e6 / indexed,
        100.0 * bytes as f64 / text as f64,
        memory_mb()
    );
    let search = Search::new(archive);
    println!("{:?}", search.status().unwrap());
    let mut times = Vec::new();
    let mut whole = Vec::new();
    for nth in 0..1000 {
        let (a, b, c) = (dice.word(), dice.word(), dice.word());
        let query = match nth % 8 {
            0 => a,
            1 => format!("{a} {b}"),
            2 => format!("\"{a} {b}\""),
            3 => format!("{}*", &a[..3]),
            4 => format!("{a} -{b}"),
            5 => format!("{a} OR {b} at:2021"),
            6 => format!("{a} {b} {c} during:2020-10..2021-02"),
            _ => format!("{a} appeared:2020-11"),
        };
        let query = Query::parse(&query).unwrap();
        let began = now();
        search.find(&query, 0, 10).unwrap();
        times.push(began.elapsed().as_secs_f64() * 1000.0);
        if nth % 5 == 0 {
            let began = now();
            search.answer(&query, Ask { order: Order::Best, skip: 0, limit: 10 }).unwrap();
            whole.push(began.elapsed().as_secs_f64() * 1000.0);
        }
    }
    for (what, mut times) in [("found", times), ("found, with titles and snippets", whole)] {
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times[(times.len() as f64 * share) as usize];
        println!(
            "{what}: p50 {:.2} ms, p99 {:.2} ms, longest {:.2} ms",
            at(0.5),
            at(0.99),
            at(0.9999)
        );
    }
    println!("memory {} MB", memory_mb());
}
