//! How fast links are found, compared with two bounds: a bare search for `<` (memchr), and the
//! parser alone (lol_html with an empty handler for all elements).
//!
//! `cargo bench -p nenrin-extract --bench links -- [FOLDER…]` reads the HTML files of the folders;
//! without a folder it makes pages itself.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use lol_html::{HtmlRewriter, Settings, element};
use nenrin_extract::{
    ContentKind, ExtractLimits, NoisyParts, fingerprint, page_links, significance, visible_text,
};
use nenrin_urls::CanonicalUrl;

fn main() {
    let folders: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let mut pages = Vec::new();
    for folder in &folders {
        read_pages(Path::new(folder), &mut pages);
    }
    if pages.is_empty() {
        pages = (0..200).map(made_page).collect();
    }
    let bytes: usize = pages.iter().map(Vec::len).sum();
    println!("{} pages, {:.1} MB", pages.len(), bytes as f64 / 1e6);
    let url = CanonicalUrl::parse("http://example.com/dir/page.html").expect("a URL");
    let limits = ExtractLimits::default();
    let rate = |name: &str, work: &dyn Fn(&[u8]) -> usize| {
        let (seconds, total) = best_of(&pages, work);
        println!("{name:<28} {:>8.1} MB/s  ({total})", bytes as f64 / 1e6 / seconds);
        bytes as f64 / 1e6 / seconds
    };
    let scan = rate("memchr for `<`", &|page| memchr::memchr_iter(b'<', page).count());
    let bare = rate("lol_html, empty handler", &bare_parser);
    let links = rate("page_links", &|page| {
        page_links(&url, ContentKind::Html, None, page, &limits).links.len()
    });
    rate("visible_text", &|page| visible_text(ContentKind::Html, None, page, 1 << 20).len());
    rate("fingerprint", &|page| fingerprint(&url, ContentKind::Html, None, page).features as usize);
    let learnt = NoisyParts::default();
    rate("significance, one word new", &|page| {
        let mut new = page.to_vec();
        new.extend_from_slice(b"<p>one more word");
        black_box(significance(ContentKind::Html, None, page, &new, &learnt));
        1
    });
    println!("page_links: {:.2} of lol_html, {:.4} of memchr", links / bare, links / scan);
}

fn bare_parser(page: &[u8]) -> usize {
    let mut elements = 0;
    let settings =
        Settings::new().with_strict(false).append_element_content_handler(element!("*", |_| {
            elements += 1;
            Ok(())
        }));
    let mut rewriter = HtmlRewriter::new(settings, |_: &[u8]| {});
    let _ = rewriter.write(page).and_then(|()| rewriter.end());
    elements
}

/// The best of five rounds over all pages: the machine is shared.
fn best_of(pages: &[Vec<u8>], work: &dyn Fn(&[u8]) -> usize) -> (f64, usize) {
    let mut best = Duration::MAX;
    let mut total = 0;
    for _ in 0..5 {
        let start = now();
        total = pages.iter().map(|page| black_box(work(page))).sum();
        best = best.min(start.elapsed());
    }
    (best.as_secs_f64(), total)
}

#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

fn read_pages(folder: &Path, pages: &mut Vec<Vec<u8>>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            read_pages(&path, pages);
        } else if path.extension().is_some_and(|e| e == "html" || e == "htm") {
            pages.extend(std::fs::read(&path));
        }
    }
}

fn made_page(number: usize) -> Vec<u8> {
    let items: String = (0..300)
        .map(|n| {
            format!(
                "<li class=\"item\"><a href=\"/story/{number}/{n}?a=1&amp;b=2\">Story {n}</a> \
                 <img src=\"/i/{n}.png\" alt=\"\"><p>Words about trees and their rings, {n}.</p></li>"
            )
        })
        .collect();
    format!("<!doctype html><title>{number}</title><ul>{items}</ul>").into_bytes()
}
