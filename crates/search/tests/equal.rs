//! The index gives exactly the answers of a scan over all versions, however it was built.
#![expect(clippy::unwrap_used, reason = "a world that cannot be built must fail its test")]

use crate::support;

use std::{path::Path, sync::Arc};

use nenrin_archive::{Archive, Capture, OpenOptions};
use nenrin_search::{Ask, Order, Query, Search, blame, delete_index};
use nenrin_state::{Removal, SiteConditions, SiteId};
use nenrin_urls::CanonicalUrl;
use support::{Dice, compare, index, pages};

const DAY_S: i64 = 86_400;
const BEGIN_S: i64 = 1_700_000_000;
const HTML: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n";
const TEXT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n";
const GONE: &[u8] = b"HTTP/1.1 404 Not Found\r\n\r\n";

const WORDS: &[&str] = &[
    "tree",
    "trees",
    "ring",
    "rings",
    "oak",
    "bark",
    "growing",
    "grows",
    "Baum",
    "Bäume",
    "Jahrring",
    "forêt",
    "árbol",
    "年輪",
    "木の年輪",
    "ネンリン",
    "樹皮の色",
    "2024年",
    "x1",
    "the",
    "of",
    "café",
];

struct World {
    archive: Arc<Archive>,
    site: SiteId,
    dice: Dice,
}

fn url(path: &str) -> CanonicalUrl {
    CanonicalUrl::parse(&format!("http://e.com/{path}")).unwrap()
}

impl World {
    fn new(folder: &Path) -> Self {
        let archive = Arc::new(Archive::open(folder, &OpenOptions::writing()).unwrap());
        let conditions = SiteConditions::new(vec![url("")]);
        let site = archive.state().add_site("e", &conditions, BEGIN_S).unwrap().id;
        Self { archive, site, dice: Dice(7) }
    }

    fn sentence(&mut self, words: usize) -> String {
        (0..words).map(|_| WORDS[self.dice.below(WORDS.len())]).collect::<Vec<_>>().join(" ")
    }

    fn body(&mut self) -> String {
        let mut body = format!("<title>{}</title>", self.sentence(2));
        for _ in 0..self.dice.below(5) + 1 {
            let (kind, length) = (["p", "h2", "li"][self.dice.below(3)], self.dice.below(6) + 1);
            body += &format!("<{kind}>{}</{kind}>", self.sentence(length));
        }
        body
    }

    /// Visits pages on a day: most stay, some change, some are gone.
    fn visit(&mut self, day: i64) {
        let archive = self.archive.clone();
        let mut ingest = archive.ingest(self.site).unwrap();
        for page in 0..25 {
            let body = self.body();
            let at_s = BEGIN_S + day * DAY_S + page;
            let path = format!("{}/p{page}.html", WORDS[page as usize % 6]);
            let (status, head, body) = match self.dice.below(8) {
                0 if day > 0 => (404, GONE, String::new()),
                1 | 2 => (200, TEXT, body.replace("<", "\n\n<")),
                _ => (200, HTML, body),
            };
            ingest.take(&Capture::new(&url(&path), at_s, status, head, body.as_bytes())).unwrap();
        }
        ingest.finish().unwrap();
    }

    fn check(&mut self, search: &Search, queries: usize) {
        let scanned = pages(&self.archive);
        let answered = compare(search, &scanned, &mut self.dice, queries);
        assert!(answered * 4 > queries, "only {answered} of {queries} queries found anything");
    }
}

fn count(search: &Search, query: &str) -> usize {
    let ask = Ask { order: Order::Best, skip: 0, limit: 100 };
    search.answer(&Query::parse(query).unwrap(), ask).unwrap().pages.len()
}

#[test]
fn answers_equal_a_scan_when_followed_and_when_built_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path());
    for day in 0..6 {
        world.visit(day * 3);
        let search = index(&world.archive);
        world.check(&search, 60);
    }
    // An older collection comes in later: pages are indexed again.
    world.visit(1);
    let search = index(&world.archive);
    world.check(&search, 100);
    delete_index(folder.path()).unwrap();
    let search = index(&world.archive);
    world.check(&search, 200);
}

#[test]
fn text_that_pages_share_is_indexed_once_and_stays_when_the_page_that_lends_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    let take = |path: &str, day: i64, body: &str| {
        let mut ingest = world.archive.ingest(world.site).unwrap();
        let at_s = BEGIN_S + day * DAY_S;
        ingest.take(&Capture::new(&url(path), at_s, 200, HTML, body.as_bytes())).unwrap();
        ingest.finish().unwrap();
    };
    let shared = "<li>oak<li>bark of a tree<li>growing";
    for page in 0..9 {
        take(&format!("p{page}.html"), page, &format!("<p>number {page}{shared}"));
    }
    let search = index(&world.archive);
    let blocks = |search: &Search| search.status().unwrap().blocks;
    // Each page has its address and one block of its own.
    assert_eq!(blocks(&search), 9 * 2 + 3);
    assert_eq!(count(&search, "\"bark of a tree\""), 9);
    // Older versions come in, page by page: each is indexed anew, and with it those that borrow of it.
    for page in 0..9 {
        take(&format!("p{page}.html"), -5, "<p>older");
        let search = index(&world.archive);
        assert_eq!(count(&search, "\"bark of a tree\""), 9);
        compare(&search, &pages(&world.archive), &mut Dice(5), 20);
    }
    // A new version keeps what it borrows, and lends what is new.
    let before = blocks(&index(&world.archive));
    for page in 3..6 {
        take(&format!("p{page}.html"), 20, &format!("<p>number {page}{shared}<p>moss"));
    }
    let search = index(&world.archive);
    assert_eq!(blocks(&search), before + 1);
    assert_eq!(count(&search, "moss bark"), 3);
    assert_eq!(count(&search, "growing at:2023-11-14"), 1);
    let scanned = pages(&world.archive);
    compare(&search, &scanned, &mut Dice(5), 200);
}

#[test]
fn removed_pages_are_not_found_even_before_the_index_is_brought_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path());
    world.visit(0);
    let search = index(&world.archive);
    assert!(count(&search, "url:html") > 20);
    world.archive.remove_site(world.site, Removal::Deny, "asked", BEGIN_S).unwrap();
    assert_eq!(count(&search, "url:html"), 0);
    let search = index(&world.archive);
    assert_eq!(search.spans(&Query::parse("url:html").unwrap()).unwrap(), []);
    world.archive.state().remove_site(world.site, None, "undone", BEGIN_S).unwrap();
    let search = index(&world.archive);
    assert!(count(&search, "url:html") > 20);
}

#[test]
fn a_damaged_or_half_deleted_index_is_built_anew() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path());
    world.visit(0);
    world.visit(1);
    let found = count(&index(&world.archive), "tree");
    assert!(found > 0);
    let at = folder.path().join("search");
    let words = || std::fs::read_dir(at.join("words")).unwrap().map(|entry| entry.unwrap().path());
    let overwrite = |path: &Path| {
        let mut bytes = std::fs::read(path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xff;
        std::fs::write(path, bytes).unwrap();
    };
    let damages: [&dyn Fn(); 6] = [
        &|| std::fs::remove_dir_all(&at).unwrap(),
        &|| std::fs::remove_dir_all(at.join("words")).unwrap(),
        &|| std::fs::remove_file(at.join("pages.sqlite")).unwrap(),
        &|| {
            words()
                .filter(|path| path.extension().is_some_and(|e| e == "pos" || e == "idx"))
                .for_each(|path| overwrite(&path))
        },
        &|| {
            std::fs::write(
                at.join("pages.sqlite"),
                b"not a database at all, but long enough to be one",
            )
            .unwrap()
        },
        &|| std::fs::write(at.join("words").join("meta.json"), b"{").unwrap(),
    ];
    for (n, damage) in damages.into_iter().enumerate() {
        damage();
        let is_found = nenrin_search::damage(folder.path()).is_some();
        assert_eq!(is_found, n > 0, "{n}: an index that was never made is not damaged");
        let search = index(&world.archive);
        assert_eq!(nenrin_search::damage(folder.path()), None, "{n}");
        assert_eq!(count(&search, "tree"), found);
        world.check(&search, 20);
    }
}

#[test]
fn blocks_are_blamed_on_the_version_that_brought_them() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    let page = url("page");
    let mut ingest = world.archive.ingest(world.site).unwrap();
    for (day, body) in
        ["<p>one<p>two", "<p>one<p>three", "<p>zero<p>one<p>two"].into_iter().enumerate()
    {
        let at_s = BEGIN_S + day as i64 * DAY_S;
        ingest.take(&Capture::new(&page, at_s, 200, HTML, body.as_bytes())).unwrap();
    }
    ingest.finish().unwrap();
    let day = |at_s: i64| (at_s - BEGIN_S) / DAY_S;
    let found = blame(&world.archive, &page, i64::MAX).unwrap().unwrap();
    let lines: Vec<_> =
        found.blocks.iter().map(|b| (b.text.as_str(), day(b.first_s), day(b.since_s))).collect();
    assert_eq!(lines, [("zero", 2, 2), ("one", 0, 0), ("two", 0, 2)]);
    let earlier = blame(&world.archive, &page, BEGIN_S + DAY_S).unwrap().unwrap();
    assert_eq!(earlier.blocks.len(), 2);
    assert_eq!(blame(&world.archive, &page, BEGIN_S - 1).unwrap(), None);
}

#[test]
fn a_result_has_title_times_and_the_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    let page = url("page");
    let mut ingest = world.archive.ingest(world.site).unwrap();
    for (day, body) in [
        "<title>Old</title><p>nothing here",
        "<title>Rings</title><p>every tree has rings",
        "<title>New</title><p>something else",
    ]
    .into_iter()
    .enumerate()
    {
        let at_s = BEGIN_S + day as i64 * DAY_S;
        ingest.take(&Capture::new(&page, at_s, 200, HTML, body.as_bytes())).unwrap();
    }
    ingest.finish().unwrap();
    let search = index(&world.archive);
    let ask = Ask { order: Order::Newest, skip: 0, limit: 9 };
    let answer = search.answer(&Query::parse("\"tree has\"").unwrap(), ask).unwrap();
    let [found] = answer.pages.as_slice() else { panic!("{answer:?}") };
    assert_eq!(found.title.as_deref(), Some("Rings"));
    assert_eq!((found.from_s, found.until_s), (BEGIN_S + DAY_S, Some(BEGIN_S + 2 * DAY_S)));
    assert_eq!(found.before_s, Some(BEGIN_S));
    let json = found.json();
    assert_eq!(json["snippet"], "every tree has rings");
    assert_eq!(json["marks"], serde_json::json!([[6, 14]]));
    assert!(search.answer(&Query::parse("tree site:nowhere").unwrap(), ask).is_err());
    assert_eq!(count(&search, "tree site:e vanished:2023-11"), 1);
    assert_eq!(count(&search, "tree at:2023-11-14"), 0);
}
