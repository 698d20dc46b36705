use std::{collections::BTreeMap, sync::Mutex, time::Duration};

use nenrin_lang::Lang;
use nenrin_state::{
    Change, CrawlState, PageChange, Registry, SiteConditions, SiteId, SqliteState, Summary,
    VersionRow, VisitCommit,
};
use nenrin_urls::{CanonicalUrl, VersionId};

use super::*;

const NOW_S: i64 = 1_700_000_000;

/// Bodies by version number, and which were read.
#[derive(Default)]
struct Shelf {
    bodies: BTreeMap<VersionId, String>,
    read: Mutex<Vec<VersionId>>,
}

impl Contents for Shelf {
    fn content(&self, version: VersionId, _: u64) -> Option<Content> {
        self.read.lock().unwrap().push(version);
        let body = self.bodies.get(&version)?.clone().into_bytes();
        Some(Content {
            response_head: b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n".into(),
            body,
        })
    }
}

fn url(text: &str) -> CanonicalUrl {
    CanonicalUrl::parse(text).unwrap()
}

fn row(version: u64, at_s: i64, mime: &str) -> VersionRow {
    let changed_permille = version.is_multiple_of(2).then_some(version as u16);
    let version = VersionId(version);
    VersionRow { at_s, version, status: 200, mime: mime.into(), bytes: 100, changed_permille }
}

fn page(title: &str, text: &str) -> String {
    format!("<title>{title}</title><p>A paragraph that is always here.</p><p>{text}</p>")
}

/// Two versions of one page, one of another, a style sheet and a picture of another server.
fn world() -> (std::sync::Arc<SqliteState>, std::sync::Arc<Shelf>, SiteId) {
    let state = SqliteState::in_memory(3600).unwrap();
    let conditions = SiteConditions::new(vec![url("https://e.com/")]);
    let site = state.add_site("e", &conditions, NOW_S).unwrap().id;
    let mut shelf = Shelf::default();
    for (version, address, mime, body) in [
        (1, "https://e.com/news/a", "text/html", page("A <b>&amp; B", "Old words")),
        (
            2,
            "https://e.com/news/a",
            "text/html",
            page("A <b>&amp; B", "<i>Library</i> opens on Sundays"),
        ),
        (3, "https://e.com/b", "text/html", page("B", "Another page with a longer sentence")),
        (5, "https://e.com/style.css", "text/css", String::new()),
        (7, "https://cdn.example/x.png", "image/png", String::new()),
    ] {
        let row = row(version, NOW_S + 60 * version as i64, mime);
        let visit = VisitCommit::in_packs(site, url(address), row);
        state.commit(&[Change::Visit(Box::new(visit))]).unwrap();
        shelf.bodies.insert(VersionId(version), body);
    }
    (std::sync::Arc::new(state), std::sync::Arc::new(shelf), site)
}

fn all() -> ChangeFilter {
    ChangeFilter { from_s: i64::MIN, to_s: i64::MAX, limit: 50, ..ChangeFilter::default() }
}

fn seen(listed: &ListedChanges) -> Vec<(ChangeKind, &str)> {
    listed.items.iter().map(|one| (one.kind, one.change.url.path())).collect()
}

#[test]
fn changes_have_titles_and_lines_that_are_read_once() {
    let (state, shelf, _) = world();
    let reader = ChangeReader::new(state.clone(), shelf.clone());
    for _ in 0..2 {
        let listed = reader.list(&all(), Duration::ZERO).unwrap();
        use ChangeKind::{Changed, New};
        assert_eq!(seen(&listed), [(New, "/b"), (Changed, "/news/a"), (New, "/news/a")]);
        let changed = &listed.items[1];
        assert_eq!(changed.title(), Some("A <b>& B"));
        assert_eq!(changed.line(), Some(("Library opens on Sundays", false)));
        assert_eq!(listed.items[0].line(), Some(("A paragraph that is always here.", false)));
        assert!(changed.is_significant());
    }
    assert_eq!(shelf.read.lock().unwrap().len(), 4, "three versions, and one of them twice");
}

#[test]
fn filters_narrow_the_list_down() {
    let (state, shelf, site) = world();
    let reader = ChangeReader::new(state.clone(), shelf);
    reader.list(&all(), Duration::ZERO).unwrap();
    let paths = |filter: &ChangeFilter| {
        let listed = list(&*state, filter).unwrap();
        listed.items.iter().map(|one| one.change.url.path().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(paths(&ChangeFilter { parts: true, ..all() }).len(), 5);
    assert_eq!(paths(&ChangeFilter { kind: Some(ChangeKind::Changed), ..all() }), ["/news/a"]);
    for text in ["SUNDAYS", "library opens", "a <B>"] {
        let found =
            paths(&ChangeFilter { text: text.into(), kind: Some(ChangeKind::Changed), ..all() });
        assert_eq!(found, ["/news/a"], "{text}");
    }
    assert_eq!(paths(&ChangeFilter { text: "e.com/B".into(), ..all() }), ["/b"]);
    assert!(paths(&ChangeFilter { text: "nothing has this".into(), ..all() }).is_empty());
    assert!(paths(&ChangeFilter { site: Some(SiteId(site.0 + 1)), ..all() }).is_empty());
    assert_eq!(paths(&ChangeFilter { to_s: NOW_S + 60, ..all() }), ["/news/a"]);
    let first = list(&*state, &ChangeFilter { limit: 1, ..all() }).unwrap();
    let rest = paths(&ChangeFilter { before: first.next, ..all() });
    assert_eq!(rest, ["/news/a", "/news/a"]);
}

#[test]
fn a_thread_of_its_own_reads_for_those_who_wait() {
    let (state, shelf, _) = world();
    let reader = ChangeReader::new(state, shelf);
    reader.start();
    let listed = reader.list(&all(), Duration::from_secs(60)).unwrap();
    assert!(listed.items.iter().all(|one| one.summary.is_some()));
}

#[test]
fn a_site_on_two_dates() {
    let (state, _, site) = world();
    let site = state.sites().unwrap().into_iter().find(|one| one.id == site).unwrap();
    let dates = |from_s, to_s| Between { site: &site, from_s, to_s, parts: false };
    let mut whole = SiteDifference::default();
    let dates = dates(NOW_S + 60, NOW_S + 1_000);
    while whole.go_on(&*state, dates, 1).unwrap() {}
    let mut found: Vec<_> = whole.pages.iter().map(|page| (page.kind, page.url.path())).collect();
    found.sort();
    assert_eq!(found, [(ChangeKind::New, "/b"), (ChangeKind::Changed, "/news/a")]);
    assert_eq!((whole.looked_at, whole.counts.new, whole.counts.changed), (2, 1, 1));
    assert_eq!(whole.folders["/news/"].changed, 1);
    assert_eq!(whole.folders["/"].new, 1);
    let all_at_once = {
        let mut at_once = SiteDifference::default();
        assert!(!at_once.go_on(&*state, dates, 1_000).unwrap());
        at_once
    };
    assert_eq!(all_at_once.pages, whole.pages, "in portions or not");
    let back = Between { from_s: dates.to_s, to_s: dates.from_s, ..dates };
    let (pages, ..) = between(&*state, back, None, 100).unwrap();
    assert!(pages.iter().any(|page| page.kind == ChangeKind::Gone && page.url.path() == "/b"));
}

#[test]
fn a_message_has_the_same_in_text_and_html_and_everything_is_escaped() {
    let hostile = "<script>alert(1)</script>\r\nBcc: x@e.com \u{202e}";
    let change = PageChange {
        at_s: NOW_S,
        page: nenrin_state::PageId(1),
        url: url("https://e.com/%3Cscript%3E?a='b'&c"),
        site: SiteId(1),
        version: Some(row(2, NOW_S, "text/html")),
        previous: Some(row(1, NOW_S - 60, "text/html")),
    };
    let summary = Summary { title: hostile.into(), line: hostile.into(), ..Summary::default() };
    let one = ListedChange { kind: ChangeKind::Changed, change, summary: Some(summary) };
    let names = BTreeMap::from([(SiteId(1), hostile.to_owned())]);
    let links = DigestLinks { interface: "https://a.example", replay: "https://r.example" };
    for lang in [Lang::En, Lang::Ja] {
        let made = digest(lang, std::slice::from_ref(&one), &names, links, true);
        assert!(!made.html.contains("<script"), "{}", made.html);
        assert!(made.html.contains("&lt;script&gt;alert(1)"));
        assert!(made.html.contains("https://r.example/diff/20231114221220/20231114221320/"));
        assert!(made.text.contains("https://a.example/changes"));
        assert!(!made.subject.contains(['\n', '\r', '<']), "{}", made.subject);
        assert!(!made.text.contains(['\r', '\u{202e}']), "{}", made.text);
    }
    let subject = |lang| digest(lang, std::slice::from_ref(&one), &names, links, false).subject;
    assert_eq!(
        (subject(Lang::En), subject(Lang::Ja)),
        ("1 changed on 1 site".into(), "1サイトで変更1件".into())
    );
    assert_eq!(digest(Lang::En, &[], &names, links, false).subject, "No changes");
}

#[test]
fn folders_are_the_first_part_of_the_path_and_name_other_servers() {
    let (state, _, _) = world();
    let site = state.sites().unwrap().remove(0);
    for (address, folder) in [
        ("https://e.com/", "/"),
        ("https://e.com/a", "/"),
        ("https://e.com/a/", "/a/"),
        ("https://e.com/a/b/c?d/e", "/a/"),
        ("https://x.example/a/b", "https://x.example/a/"),
    ] {
        assert_eq!(folder_of(&site, &url(address)), folder, "{address}");
    }
}
