use nenrin_state::{SiteConditions, SiteId, WatchEvent, WatchId};

use super::*;
use crate::{Archive, Capture, OpenOptions};

const HTML: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n";
const DAY_S: i64 = 86_400;

struct Shelf {
    _folder: tempfile::TempDir,
    archive: Archive,
    site: SiteId,
    url: CanonicalUrl,
    watcher: Watcher,
    day: i64,
}

fn shelf() -> Shelf {
    let folder = tempfile::tempdir().unwrap();
    let archive = Archive::open(folder.path(), &OpenOptions::writing()).unwrap();
    let url = CanonicalUrl::parse("http://e.com/a").unwrap();
    let conditions = SiteConditions::new(vec![url.clone()]);
    let site = archive.state().add_site("e", &conditions, 0).unwrap().id;
    Shelf { _folder: folder, archive, site, url, watcher: Watcher::default(), day: 0 }
}

impl Shelf {
    fn watch(&self, part: WatchedPart, on: WatchEvent) -> Watch {
        let watch = Watch {
            id: WatchId(0),
            name: String::new(),
            url: self.url.clone(),
            part,
            on,
            paused: false,
            created_s: 0,
            last: None,
            trouble: None,
        };
        self.archive.state().keep_watch(&watch).unwrap()
    }

    fn answer(&mut self, status: u16, head: &[u8], body: &str) -> Vec<WatchHit> {
        self.day += 1;
        let mut ingest = self.archive.ingest(self.site).unwrap();
        let capture = Capture::new(&self.url, self.day * DAY_S, status, head, body.as_bytes());
        ingest.take(&capture).unwrap();
        ingest.finish().unwrap();
        self.look()
    }

    fn look(&mut self) -> Vec<WatchHit> {
        self.watcher.look(&**self.archive.state(), self.archive.store()).unwrap()
    }

    fn page(&mut self, body: &str) -> Vec<(Option<String>, Option<String>)> {
        let hits = self.answer(200, HTML, body);
        hits.into_iter().map(|hit| (hit.before, hit.after)).collect()
    }
}

fn some(before: &str, after: &str) -> Vec<(Option<String>, Option<String>)> {
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    vec![(text(before), text(after))]
}

fn price() -> WatchedPart {
    WatchedPart::Selector { selector: "p.price".into(), nth: 0 }
}

#[test]
fn a_change_of_the_part_is_reported_and_one_elsewhere_is_not() {
    let mut shelf = shelf();
    shelf.watch(price(), WatchEvent::Changes);
    assert_eq!(shelf.page("<p class=price>9 EUR</p><p>a</p>"), []);
    assert_eq!(shelf.page("<p class=price>9  EUR</p><p>b</p>"), []);
    assert_eq!(shelf.page("<p class=price>8 EUR</p><p>b</p>"), some("9 EUR", "8 EUR"));
    assert_eq!(shelf.page("<p>c</p>"), some("8 EUR", ""));
    assert_eq!(shelf.page("<p class=price>7 EUR</p>"), some("", "7 EUR"));
    let stored = shelf.archive.state().watch_hits().unwrap();
    assert_eq!((stored.len(), stored[0].id, stored[0].before_s), (3, 3, Some(4 * DAY_S)));
    assert_eq!(shelf.look(), [], "nothing twice");
}

#[test]
fn words_appear_and_vanish() {
    let mut shelf = shelf();
    shelf.watch(WatchedPart::Words("sold out".into()), WatchEvent::Appears);
    shelf.watch(WatchedPart::Words("sold out".into()), WatchEvent::Vanishes);
    assert_eq!(shelf.page("<p>5 left</p>"), []);
    assert_eq!(shelf.page("<p>Sorry: SOLD <b>OUT</b></p>"), some("", "Sorry: SOLD OUT"));
    assert_eq!(shelf.page("<p>Sorry: sold out!</p>"), []);
    assert_eq!(shelf.page("<p>9 left</p>"), some("Sorry: sold out!", ""));
}

#[test]
fn a_bound_is_reported_when_it_is_passed() {
    let mut shelf = shelf();
    shelf.watch(price(), WatchEvent::Below(8.0));
    for (body, expected) in [("9", vec![]), ("8", vec![]), ("7.5", some("8", "7.5")), ("7", vec![])]
    {
        assert_eq!(shelf.page(&format!("<p class=price>{body}</p>")), expected, "{body}");
    }
    assert_eq!(shelf.page("<p class=price>9</p>"), []);
    assert_eq!(shelf.page("<p class=price>1</p>"), some("9", "1"));
}

#[test]
fn a_watch_that_cannot_be_evaluated_says_so_once_and_recovers() {
    let mut shelf = shelf();
    shelf.watch(price(), WatchEvent::Below(8.0));
    assert_eq!(shelf.page("<p class=price>9</p>"), []);
    let hits = shelf.answer(200, HTML, "<p class=price>soon</p>");
    assert_eq!(hits[0].trouble, Some(WatchTrouble::NoNumber));
    let hits = shelf.answer(200, HTML, "<p>nothing</p>");
    assert_eq!(hits[0].trouble, Some(WatchTrouble::PartGone));
    assert_eq!(shelf.answer(200, HTML, "<p>still nothing</p>"), []);
    let hits = shelf.answer(404, HTML, "no");
    assert_eq!(hits[0].trouble, Some(WatchTrouble::PageGone));
    assert_eq!(shelf.archive.state().watches().unwrap()[0].trouble, Some(WatchTrouble::PageGone));
    let hits = shelf.answer(200, HTML, "<p class=price>7</p>");
    assert_eq!(hits[0].after.as_deref(), Some("7"));
    assert_eq!(shelf.archive.state().watches().unwrap()[0].trouble, None);
    let image = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n";
    let hits = shelf.answer(200, image, "\u{89}PNG");
    assert_eq!(hits[0].trouble, Some(WatchTrouble::NotText));
}

#[test]
fn what_happened_while_no_process_ran_is_reported_at_the_start() {
    let mut shelf = shelf();
    shelf.watch(price(), WatchEvent::Changes);
    assert_eq!(shelf.page("<p class=price>9</p>"), []);
    shelf.day += 1;
    let mut ingest = shelf.archive.ingest(shelf.site).unwrap();
    let url = shelf.url.clone();
    ingest.take(&Capture::new(&url, shelf.day * DAY_S, 200, HTML, b"<p class=price>5")).unwrap();
    ingest.finish().unwrap();
    shelf.watcher = Watcher::default();
    assert_eq!(shelf.look()[0].after.as_deref(), Some("5"));
}

#[test]
fn a_paused_watch_sees_nothing_and_a_large_page_is_refused() {
    let mut shelf = shelf();
    let watch = shelf.watch(WatchedPart::Page, WatchEvent::Changes);
    shelf.archive.state().keep_watch(&Watch { paused: true, ..watch.clone() }).unwrap();
    shelf.page("<p>one</p>");
    assert_eq!(shelf.archive.state().watches().unwrap()[0].last, None);
    shelf.archive.state().keep_watch(&watch).unwrap();
    let hits = shelf.answer(200, HTML, &"x".repeat(MAX_PAGE_BYTES + 1));
    assert_eq!(hits[0].trouble, Some(WatchTrouble::TooLarge));
}

#[test]
fn a_chosen_text_becomes_its_block() {
    let mut shelf = shelf();
    shelf.page("<h1>Tea</h1><p>Green</p><p>Black <b>tea</b> 9 EUR</p>");
    let state = shelf.archive.state();
    let blocks = page_blocks(&**state, shelf.archive.store(), &shelf.url).unwrap().unwrap();
    assert_eq!(
        part_with_text(&blocks, "tea 9"),
        WatchedPart::Selector { selector: "p".into(), nth: 2 }
    );
    assert_eq!(part_with_text(&blocks, "Tea Green"), WatchedPart::Words("Tea Green".into()));
    let watch = Watch {
        part: part_with_text(&blocks, "9 EUR"),
        ..shelf.watch(price(), WatchEvent::Changes)
    };
    let (_, text) = try_watch(&**state, shelf.archive.store(), &watch).unwrap().unwrap();
    assert_eq!(text, Ok(Some("Black tea 9 EUR".to_owned())));
}
