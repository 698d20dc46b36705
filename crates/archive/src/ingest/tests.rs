use nenrin_revisit::PageHistory;
use nenrin_state::{Outcome, PageRecord, SiteConditions, SiteId};
use nenrin_urls::CanonicalUrl;

use super::*;
use crate::OpenOptions;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";

struct Shelf {
    _folder: tempfile::TempDir,
    archive: Archive,
    site: SiteId,
    url: CanonicalUrl,
}

fn shelf() -> Shelf {
    let folder = tempfile::tempdir().unwrap();
    let archive = Archive::open(folder.path(), &OpenOptions::writing()).unwrap();
    let url = CanonicalUrl::parse("http://e.com/a").unwrap();
    let conditions = SiteConditions::new(vec![url.clone()]);
    let site = archive.state().add_site("e", &conditions, 0).unwrap().id;
    Shelf { _folder: folder, archive, site, url }
}

impl Shelf {
    fn page(&self) -> PageRecord {
        self.archive.state().page(&self.url).unwrap().expect("the page is known")
    }

    /// Takes answers in, each at the next day, all in one batch.
    fn take(&self, answers: &[(u16, &[u8], &[u8])]) -> Vec<Outcome> {
        let mut ingest = self.archive.ingest(self.site).unwrap();
        let outcomes = answers.iter().zip(1..).map(|(&(status, head, body), day)| {
            ingest.take(&Capture::new(&self.url, day * 86_400, status, head, body)).unwrap()
        });
        let outcomes = outcomes.collect();
        ingest.finish().unwrap();
        outcomes
    }
}

#[test]
fn an_answer_means_what_it_means_in_a_visit() {
    let to_itself: &[u8] = b"HTTP/1.1 301 Moved\r\nLocation: /a\r\n\r\n";
    let elsewhere: &[u8] = b"HTTP/1.1 301 Moved\r\nLocation: /b\r\n\r\n";
    let nowhere: &[u8] = b"HTTP/1.1 301 Moved\r\n\r\n";
    for (name, answers, expected) in [
        ("first", vec![(200, OK, b"one".as_slice())], Outcome::Changed),
        ("same", vec![(200, OK, b"one"), (200, OK, b"one")], Outcome::Same),
        ("changed", vec![(200, OK, b"one"), (200, OK, b"two")], Outcome::Changed),
        ("gone", vec![(200, OK, b"one"), (404, OK, b"no")], Outcome::Gone),
        (
            "back from gone",
            vec![(200, OK, b"one"), (404, OK, b"no"), (200, OK, b"one")],
            Outcome::Changed,
        ),
        ("a part", vec![(200, OK, b"one"), (206, OK, b"o")], Outcome::Failed),
        ("an error", vec![(200, OK, b"one"), (500, OK, b"one")], Outcome::Failed),
        ("redirect to itself", vec![(301, to_itself, b"")], Outcome::Failed),
        ("redirect", vec![(301, elsewhere, b"")], Outcome::Changed),
        ("redirect to nowhere", vec![(301, nowhere, b"")], Outcome::Failed),
        ("304 that nobody asked for", vec![(304, OK, b"")], Outcome::Failed),
    ] {
        let shelf = shelf();
        assert_eq!(shelf.take(&answers).last(), Some(&expected), "{name}");
        assert_eq!(shelf.page().outcome, Some(expected), "{name}");
        assert_eq!(shelf.page().visits as usize, answers.len(), "{name}");
    }
}

#[test]
fn only_changes_become_versions_and_errors_do_not() {
    let shelf = shelf();
    shelf.take(&[(200, OK, b"one"), (200, OK, b"one"), (500, OK, b"x"), (200, OK, b"two")]);
    let versions = shelf.archive.versions("http://e.com/a").unwrap();
    let days: Vec<i64> = versions.iter().map(|row| row.at_s / 86_400).collect();
    assert_eq!(days, [1, 4]);
}

#[test]
fn what_is_taken_in_teaches_the_pages_history() {
    let shelf = shelf();
    let answers = [b"one", b"one", b"two", b"six"].map(|body| (200, OK, body.as_slice()));
    shelf.take(&answers[..2]);
    let mut ingest = shelf.archive.ingest(shelf.site).unwrap();
    for ((status, head, body), day) in answers[2..].iter().zip(3..) {
        ingest.take(&Capture::new(&shelf.url, day * 86_400, *status, head, body)).unwrap();
    }
    // An older one is counted, and teaches nothing.
    ingest.take(&Capture::new(&shelf.url, 0, 200, OK, b"old")).unwrap();
    ingest.finish().unwrap();
    let history = PageHistory::from_bytes(&shelf.page().history).unwrap();
    assert_eq!((history.visits(), history.changes()), (4, 2));
    assert_eq!(history.last_visit_s(), Some(4 * 86_400));
    let page = shelf.archive.as_of("http://e.com/a", i64::MAX).unwrap().unwrap();
    assert_eq!(page.body(), b"six");
}
