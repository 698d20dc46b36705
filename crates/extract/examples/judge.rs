//! Judges the changes of a site between visits, each visit a folder of files:
//! `cargo run --release -p nenrin-extract --example judge -- VISIT1 VISIT2 …`
//!
//! For each pair of visits it prints how many pages are identical, changed by noise alone, and
//! changed significantly, without learning and with what was learnt from the visits before. Then
//! it compares all pages of the last visit with each other: pages that are taken for one another
//! would be taken for the server's "not found" page if that looked like one of them. With
//! `NENRIN_SHOW=N` it shows the texts of the first N pages that are judged noise.

#![expect(clippy::print_stdout, reason = "an example prints what it finds")]

use std::collections::BTreeMap;
use std::path::Path;

use nenrin_extract::{
    Change, ContentKind, NoisyParts, compare, content_kind, fingerprint, visible_text,
};
use nenrin_urls::CanonicalUrl;

type Pages = BTreeMap<String, Vec<u8>>;

fn main() {
    let visits: Vec<Pages> = std::env::args()
        .skip(1)
        .map(|folder| {
            let mut pages = Pages::new();
            read_pages(Path::new(&folder), Path::new(&folder), &mut pages);
            pages
        })
        .collect();
    let mut shown = std::env::var("NENRIN_SHOW").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    let mut learnt = NoisyParts::default();
    println!(
        "visit  pages  identical  noise  significant | learnt: noise  significant  parts  noisy"
    );
    for (number, pair) in visits.windows(2).enumerate() {
        let [old, new] = pair else { continue };
        let mut plain = [0; 3];
        let mut taught = [0; 3];
        for (path, body) in new {
            let Some(before) = old.get(path) else { continue };
            let url = url_of(path);
            let comparison = compare(kind_of(&url, body), None, before, body);
            let verdict = comparison.judge(&NoisyParts::default());
            plain[column(verdict)] += 1;
            let verdict = comparison.judge(&learnt);
            taught[column(verdict)] += 1;
            learnt.learn(&url, &comparison);
            if verdict == Change::Noise && shown > 0 {
                shown -= 1;
                show(path, before, body);
            }
        }
        let (parts, noisy) = learnt.counts();
        println!(
            "{:>5} {:>6} {:>10} {:>6} {:>12} | {:>13} {:>12} {:>7} {:>6}",
            number + 2,
            plain.iter().sum::<u32>(),
            plain[0],
            plain[1],
            plain[2],
            taught[1],
            taught[2],
            parts,
            noisy
        );
    }
    if let Some(last) = visits.last() {
        compare_all(last);
    }
}

fn column(change: Change) -> usize {
    match change {
        Change::Identical => 0,
        Change::Noise => 1,
        Change::Significant { .. } => 2,
    }
}

fn compare_all(pages: &Pages) {
    let prints: Vec<_> = pages
        .iter()
        .map(|(path, body)| {
            (path, fingerprint(&url_of(path), kind_of(&url_of(path), body), None, body))
        })
        .collect();
    let (mut pairs, mut close, mut alike) = (0_u64, 0_u64, 0_u64);
    for (at, (path, a)) in prints.iter().enumerate() {
        for (other, b) in &prints[..at] {
            pairs += 1;
            close += u64::from(a.distance(b) <= 3);
            if a.resembles(b) {
                alike += 1;
                if alike <= 5 {
                    println!("alike: {path} and {other}");
                }
            }
        }
    }
    println!("{pairs} pairs of pages: {close} within distance 3, {alike} taken for one another");
}

/// The lines of visible text that differ.
fn show(path: &str, old: &[u8], new: &[u8]) {
    let text = |body: &[u8]| visible_text(ContentKind::Html, None, body, 1 << 20);
    let (old, new) = (text(old), text(new));
    println!("--- {path}");
    for line in old.lines().filter(|line| !new.contains(*line)).take(5) {
        println!("- {line:.150}");
    }
    for line in new.lines().filter(|line| !old.contains(*line)).take(5) {
        println!("+ {line:.150}");
    }
}

fn url_of(path: &str) -> CanonicalUrl {
    let home = CanonicalUrl::parse("http://site.example/").expect("a URL");
    home.join(path).unwrap_or(home)
}

fn kind_of(url: &CanonicalUrl, body: &[u8]) -> ContentKind {
    content_kind(None, url, body)
}

fn read_pages(folder: &Path, root: &Path, pages: &mut Pages) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            read_pages(&path, root, pages);
        } else if path.extension().is_some_and(|e| e == "html" || e == "htm")
            && let (Ok(name), Ok(body)) = (path.strip_prefix(root), std::fs::read(&path))
        {
            pages.insert(name.display().to_string(), body);
        }
    }
}
