//! Text that was made to harm: everything stays bounded, and the rest can still be searched.
#![allow(dead_code, reason = "each test uses its part of the support")]

use crate::support;

use std::{fmt::Write as _, sync::Arc};

use nenrin_archive::{Archive, Capture, OpenOptions, folder_bytes};
use nenrin_search::Query;
use nenrin_state::SiteConditions;
use nenrin_urls::CanonicalUrl;
use support::index;

const HTML: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n";
const JSON: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n";

#[test]
fn hostile_text_is_bounded_and_the_rest_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let archive = Arc::new(Archive::open(folder.path(), &OpenOptions::writing()).unwrap());
    let url = |path: &str| CanonicalUrl::parse(&format!("http://e.com/{path}")).unwrap();
    let site = archive.state().add_site("e", &SiteConditions::new(vec![url("")]), 0).unwrap().id;
    let mut words = String::new();
    for number in 0..1_000_000_u32 {
        write!(words, "w{number:x} ").unwrap();
    }
    let odd = "\u{202e}\u{0}\u{feff}e\u{301}\u{301}\u{301} \u{1f468}\u{200d}\u{1f469} ﷺ \u{e0001} \u{fffd}";
    let pages: [(&str, &[u8], Vec<u8>); 7] = [
        (
            "one-word",
            HTML,
            format!("<p>first sentence<p>{}", "word ".repeat(12_000_000)).into_bytes(),
        ),
        ("deep", HTML, "<div><b><p>deep".repeat(300_000).into_bytes()),
        ("many-words", HTML, format!("<p>{words}").into_bytes()),
        ("no-spaces", HTML, format!("<p>{}", "x".repeat(20_000_000)).into_bytes()),
        ("marks", HTML, format!("<p>e{} after", "\u{301}".repeat(1_000_000)).into_bytes()),
        ("nested", JSON, format!("{}1{}", "[".repeat(500_000), "]".repeat(500_000)).into_bytes()),
        ("odd", HTML, format!("<p>{}<p>odd but found", odd.repeat(2_000)).into_bytes()),
    ];
    let mut ingest = archive.ingest(site).unwrap();
    for (path, head, body) in &pages {
        ingest.take(&Capture::new(&url(path), 100, 200, head, body)).unwrap();
    }
    ingest.finish().unwrap();
    let search = index(&archive);
    let found = |query: &str| search.spans(&Query::parse(query).unwrap()).unwrap().len();
    assert_eq!(found("\"first sentence\""), 1);
    assert_eq!(found("deep"), 1);
    assert_eq!(found("w1f4"), 1);
    assert_eq!(found("\"odd but found\""), 1);
    assert_eq!(found("url:marks"), 1);
    let bytes = folder_bytes(&folder.path().join("search")).unwrap();
    assert!(bytes < 40_000_000, "the index has {bytes} bytes");
}
