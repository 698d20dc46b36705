//! Ordinary sites must not be hurt: no page of eight real websites is refused as a trap.

use std::io::Read;
use std::path::PathBuf;

use nenrin_crawl::Traps;
use nenrin_urls::CanonicalUrl;

fn sites() -> Option<PathBuf> {
    let data = std::env::var_os("NENRIN_DATA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")),
        PathBuf::from,
    );
    let sites = data.join("sites");
    sites.is_dir().then_some(sites)
}

#[test]
fn no_page_of_the_real_sites_is_taken_for_a_trap() {
    let Some(sites) = sites() else {
        eprintln!("SKIPPED: the folder of real sites is not there; set NENRIN_DATA");
        return;
    };
    let now_s = 1_760_000_000;
    let (mut checked, mut lists) = (0, 0);
    for site in std::fs::read_dir(sites).unwrap().flatten().map(|entry| entry.path()) {
        let mut traps = Traps::default();
        for visit in 1..=8 {
            let Ok(file) = std::fs::File::open(site.join(format!("visit-{visit}.tsv.gz"))) else {
                continue;
            };
            lists += 1;
            let mut text = String::new();
            flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
            for path in text.lines().filter_map(|line| line.split('\t').next()) {
                let url = CanonicalUrl::parse("http://site.example/").unwrap().join(path).unwrap();
                assert_eq!(traps.check(&url, now_s), Ok(()), "{url}");
                traps.met(&url, now_s);
                checked += 1;
            }
        }
    }
    assert!(lists >= 8 && checked > 1_000, "{lists} lists, {checked} pages");
}
