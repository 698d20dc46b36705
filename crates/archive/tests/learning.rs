//! What is imported teaches what collecting teaches.
#![expect(clippy::unwrap_used, reason = "a world that cannot be built must fail its test")]

use std::{
    collections::{BTreeMap, VecDeque},
    net::Ipv4Addr,
    sync::atomic::AtomicBool,
    time::Duration,
};

use nenrin_archive::{
    Archive, Capture, HistoryImportOptions, ImportedHistory, OpenOptions, Reasons, put_exchange,
    read_fetched, site_structure,
};
use nenrin_crawl::{
    Appetite, Batch, Command, Crawl, CrawlOptions, Event, FetchOrder, Fetched, Look, Probe,
    Purpose, Ticket, answer_load, commit_batch,
};
use nenrin_extract::{ContentKind, fingerprint};
use nenrin_fetch::{Exchange, Protocol};
use nenrin_lang::Lang;
use nenrin_revisit::{PageHistory, RevisitSettings};
use nenrin_state::{
    Change, Epoch, Outcome, PageRecord, Schedule, ServerNote, SiteConditions, SiteId, VersionQuery,
};
use nenrin_structure::RoundsBy;
use nenrin_urls::CanonicalUrl;

const BEGIN_S: i64 = 1_704_067_200;
const DAY_S: i64 = 86_400;
const DAYS: i64 = 8;
const SECTIONS: [&str; 3] = ["daily", "weekly", "never"];
const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";

fn url(path: &str) -> CanonicalUrl {
    CanonicalUrl::parse(&format!("http://e.com{path}")).unwrap()
}

/// The made site as it is on a day: a top page, an index for each section and six pages below it.
/// One page has the time in its foot.
fn body(path: &str, day: i64) -> Option<String> {
    let mut menu = String::new();
    for section in SECTIONS {
        menu +=
            &format!("<li><a href='/{section}/'>all of the {section} pages of this site</a></li>");
    }
    let mut text = String::new();
    let mut paragraphs = |what: &str, revision: i64| {
        for n in 0..6 {
            text +=
                &format!("<p>{what} {path} says {n} for the {revision}th time, and more of it</p>");
        }
    };
    let rest = path.strip_prefix('/')?;
    match rest.split_once('/') {
        None if rest.is_empty() => paragraphs("front", 0),
        None if rest == "clock" => {
            paragraphs("clock", 0);
            text += &format!("<p>now {day} of {DAYS}</p>");
        }
        Some((section, "")) if SECTIONS.contains(&section) => {
            paragraphs("index", 0);
            for n in 0..6 {
                text += &format!("<a href='/{section}/{n}'>{section} {n}</a> ");
            }
        }
        Some(("daily", n)) if n.len() == 1 => paragraphs("daily", day),
        Some(("weekly", n)) if n.len() == 1 => paragraphs("weekly", (day + 3) / 7),
        Some(("never", n)) if n.len() == 1 => paragraphs("never", 0),
        _ => return None,
    }
    let clock = if rest.is_empty() { "<a href='/clock'>clock</a>" } else { "" };
    Some(format!(
        "<html><head><title>{path}</title><body><ul>{menu}</ul>{text}{clock}</body></html>"
    ))
}

fn conditions(schedule: Schedule) -> SiteConditions {
    let mut conditions = SiteConditions::new(vec![url("/")]);
    conditions.schedule = schedule;
    conditions.hints.signals = false;
    conditions.rounds_by = RoundsBy::Auto;
    conditions
}

struct Shelf {
    folder: tempfile::TempDir,
    archive: Archive,
    site: SiteId,
}

fn shelf(schedule: Schedule) -> Shelf {
    let folder = tempfile::tempdir().unwrap();
    let archive = Archive::open(folder.path(), &OpenOptions::writing()).unwrap();
    let site = archive.state().add_site("e", &conditions(schedule), BEGIN_S).unwrap().id;
    Shelf { folder, archive, site }
}

impl Shelf {
    fn page(&self, path: &str) -> PageRecord {
        self.archive.state().page(&url(path)).unwrap().unwrap()
    }

    fn history(&self, path: &str) -> (u32, u32) {
        let history = PageHistory::from_bytes(&self.page(path).history).unwrap();
        (history.visits(), history.changes())
    }

    fn permille(&self, path: &str) -> Vec<Option<u16>> {
        let versions =
            self.archive.state().versions(&url(path).key(), VersionQuery::default()).unwrap();
        versions.into_iter().map(|(_, row)| row.changed_permille).collect()
    }

    fn notes(&self) -> BTreeMap<String, String> {
        let state = self.archive.state();
        let server = state.site_servers(self.site, 1).unwrap()[0].id;
        state.servers(&[server]).unwrap().remove(0).notes
    }
}

/// A visit that was made.
struct Made {
    at_s: i64,
    url: CanonicalUrl,
    body: Vec<u8>,
}

/// The machine on an archive, with a server that answers at once.
struct Live {
    shelf: Shelf,
    epoch: Epoch,
    machine: Crawl,
    now_ms: i64,
    wake_ms: Option<i64>,
    made: Vec<Made>,
    under_way: BTreeMap<Ticket, Exchange>,
}

impl Live {
    fn new(schedule: Schedule) -> Self {
        let shelf = shelf(schedule);
        let epoch = shelf.archive.state().take_over().unwrap();
        Self {
            shelf,
            epoch,
            machine: Crawl::new(CrawlOptions::default()),
            now_ms: BEGIN_S * 1000,
            wake_ms: None,
            made: Vec::new(),
            under_way: BTreeMap::new(),
        }
    }

    fn run(&mut self, until_s: i64) {
        self.happen(Event::Sites(self.shelf.archive.state().sites().unwrap()));
        while let Some(at_ms) = self.wake_ms.take().filter(|&at_ms| at_ms <= until_s * 1000) {
            self.now_ms = self.now_ms.max(at_ms);
            self.happen(Event::Wake);
        }
        self.happen(Event::Stop);
    }

    fn happen(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            for command in self.machine.step(self.now_ms, event) {
                events.extend(self.carry_out(command));
            }
        }
    }

    fn carry_out(&mut self, command: Command) -> Option<Event> {
        let (state, store) = (self.shelf.archive.state(), self.shelf.archive.store());
        match command {
            Command::Load(load) => Some(answer_load(&**state, self.now_ms / 1000, &load).unwrap()),
            Command::Plan(work) => Some(Event::PlanDone(Box::new(work.carry_out()))),
            Command::Fetch(order) => Some(self.fetch(&order)),
            Command::Store(order) => {
                let exchange = &self.under_way[&order.ticket];
                let put = put_exchange(store, &order, exchange, &AtomicBool::default()).unwrap();
                store.sync().unwrap();
                let (ticket, stored_bytes) = (order.ticket, put.new_bytes);
                let is_known = put.whole_body_known;
                Some(Event::Stored { ticket, version: put.id, stored_bytes, is_known })
            }
            Command::Commit { ticket, change } => {
                let batch = Batch::from_iter([(ticket, change)]);
                Some(commit_batch(&**state, self.epoch, &batch).unwrap())
            }
            Command::WakeAt(at_ms) => {
                self.wake_ms = Some(at_ms);
                None
            }
            _ => None,
        }
    }

    fn fetch(&mut self, order: &FetchOrder) -> Event {
        let day = (self.now_ms / 1000 - BEGIN_S) / DAY_S;
        let found = body(order.url.path(), day).filter(|_| order.purpose == Purpose::Page);
        let (status, response_head, body) = match found {
            Some(body) => (200, HEAD.to_vec(), body.into_bytes()),
            None => (404, b"HTTP/1.1 404 Not Found\r\n\r\n".to_vec(), b"no".to_vec()),
        };
        if status == 200 {
            let at_s = self.now_ms / 1000;
            self.made.push(Made { at_s, url: order.url.clone(), body: body.clone() });
        }
        let exchange = Exchange {
            status,
            protocol: Protocol::Http11,
            tls: None,
            server_address: Some(Ipv4Addr::LOCALHOST.into()),
            request_head: Vec::new(),
            response_head,
            body: body.into(),
            time_to_head: Duration::ZERO,
            elapsed: Duration::ZERO,
        };
        let store = self.shelf.archive.store();
        let at_s = self.now_ms / 1000;
        let answer = read_fetched(store, order, &exchange, at_s, Appetite::full());
        let answer = answer.unwrap().unwrap();
        self.under_way.insert(order.ticket, exchange);
        let fetched = Box::new(Fetched { elapsed_ms: 10, result: Ok(answer) });
        Event::Fetched { ticket: order.ticket, fetched }
    }
}

/// One visit a day, so that what was collected and what is imported have the same times.
fn once_a_day() -> Schedule {
    Schedule::Continuous(RevisitSettings {
        min_s: Some(DAY_S),
        max_s: DAY_S,
        ..RevisitSettings::default()
    })
}

fn paths() -> Vec<String> {
    let of = |section: &str| (0..6).map(|n| format!("/{section}/{n}")).collect::<Vec<_>>();
    let mut paths: Vec<String> = SECTIONS.iter().flat_map(|section| of(section)).collect();
    paths.extend(SECTIONS.iter().map(|section| format!("/{section}/")));
    paths.extend(["/".to_owned(), "/clock".to_owned()]);
    paths
}

#[test]
fn an_import_teaches_what_the_same_visits_taught() {
    let mut live = Live::new(once_a_day());
    live.run(BEGIN_S + DAYS * DAY_S);
    let import = shelf(once_a_day());
    let mut ingest = import.archive.ingest(import.site).unwrap();
    for Made { at_s, url, body } in &live.made {
        ingest.take(&Capture::new(url, *at_s, 200, HEAD, body)).unwrap();
    }
    ingest.finish().unwrap();
    for path in paths() {
        let (taught, learnt) = (import.page(&path), live.shelf.page(&path));
        assert!(learnt.visits >= 7, "{path} {learnt:?}");
        assert_eq!((taught.visits, taught.changes), (learnt.visits, learnt.changes), "{path}");
        assert_eq!(taught.history, learnt.history, "{path}");
        assert_eq!(taught.due_s, learnt.due_s, "{path}");
        assert_eq!(import.permille(&path), live.shelf.permille(&path), "{path}");
        assert_eq!(taught.significant, learnt.significant, "{path}");
        let rates = [&taught, &learnt].map(|page| page.estimate.unwrap().rate_micros as f64);
        assert!((rates[0] / rates[1] - 1.0).abs() < 0.05, "{path} {rates:?}");
        assert!(taught.importance_percent > 0, "{path}");
    }
    assert_eq!(import.permille("/clock").last(), live.shelf.permille("/clock").last());
    assert_eq!(import.notes().get("noise"), live.shelf.notes().get("noise"));
    let blocks = |shelf: &Shelf| {
        let map = shelf.archive.state().site_pages(shelf.site).unwrap();
        let page = |at: u32| map.pages[at as usize].path.clone();
        let links = map.links.iter().flat_map(|(from, to)| to.iter().map(|to| (*from, *to)));
        let mut links: Vec<_> = links.map(|(from, to)| (page(from), page(to))).collect();
        links.sort();
        let mut blocks: Vec<_> =
            map.pages.iter().map(|page| (page.path.clone(), page.blocks.clone())).collect();
        blocks.sort_by(|a, b| a.0.cmp(&b.0));
        (links, blocks)
    };
    assert_eq!(blocks(&import), blocks(&live.shelf));
}

/// Imports the site as it is on a day, as a mirror does.
fn import_day(shelf: &Shelf, day: i64) {
    let mut ingest = shelf.archive.ingest(shelf.site).unwrap();
    for path in paths() {
        let text = body(&path, day).unwrap();
        let (page, at_s) = (url(&path), BEGIN_S + day * DAY_S);
        let capture = Capture::new(&page, at_s, 200, HEAD, text.as_bytes());
        ingest.take(&capture).unwrap();
    }
    ingest.finish().unwrap();
}

#[test]
fn eight_imported_visits_make_a_structure_and_sensible_times() {
    let shelf = shelf(Schedule::Manual);
    (0..DAYS).for_each(|day| import_day(&shelf, day));
    let state = shelf.archive.state();
    assert_eq!(shelf.history("/daily/1"), (8, 7));
    assert_eq!(shelf.history("/never/1"), (8, 0));
    assert_eq!(shelf.page("/daily/1").due_s, None, "nothing is planned yet");
    let site = state.sites().unwrap().remove(0);
    let structure = site_structure(&**state, &site).unwrap().structure.unwrap();
    assert_eq!((structure.pages, structure.rounds), (23, 7));
    assert!(structure.links > 20 && structure.site_count >= 3, "{structure:?}");
    let now_s = BEGIN_S + DAYS * DAY_S;
    let own = conditions(Schedule::Continuous(RevisitSettings::default()));
    state.set_site(shelf.site, &own, now_s).unwrap();
    let wait_s = |path: &str| shelf.page(path).due_s.unwrap() - now_s;
    for n in 0..6 {
        let waits = SECTIONS.map(|section| wait_s(&format!("/{section}/{n}")));
        assert!(waits[0] <= DAY_S / 2, "{waits:?}");
        assert!(waits[2] >= DAY_S && waits[2] > waits[1], "{waits:?}");
    }
}

#[test]
fn what_is_older_than_the_last_visit_is_kept_and_teaches_nothing() {
    let shelf = shelf(Schedule::Manual);
    (4..DAYS).for_each(|day| import_day(&shelf, day));
    let before = shelf.page("/daily/1");
    import_day(&shelf, 2);
    let after = shelf.page("/daily/1");
    assert_eq!((after.history, after.visited_s), (before.history, before.visited_s));
    assert_eq!(shelf.permille("/daily/1").len(), 5);
}

#[test]
fn captures_teach_in_the_order_of_their_times() {
    let in_order = shelf(once_a_day());
    let mixed = shelf(once_a_day());
    for (shelf, days) in [(&in_order, [0, 1, 2, 3, 4, 5]), (&mixed, [3, 0, 5, 4, 1, 2])] {
        let mut ingest = shelf.archive.ingest(shelf.site).unwrap();
        for day in days {
            let text = body("/weekly/1", day).unwrap();
            let at_s = BEGIN_S + day * DAY_S;
            let page = url("/weekly/1");
            ingest.take(&Capture::new(&page, at_s, 200, HEAD, text.as_bytes())).unwrap();
        }
        ingest.finish().unwrap();
    }
    assert_eq!(mixed.history("/weekly/1"), (6, 1));
    assert_eq!(mixed.page("/weekly/1").history, in_order.page("/weekly/1").history);
    assert_eq!(mixed.page("/weekly/1").due_s, in_order.page("/weekly/1").due_s);
}

const SORRY: &str = "<title>Sorry</title><p>There is no such page here, alas. Look for it in the \
    index, ask the keeper of the rings, or begin again at the front.</p>";

#[test]
fn a_page_that_looks_like_a_missing_one_is_gone_as_in_collecting() {
    let shelf = shelf(Schedule::Manual);
    import_day(&shelf, 0);
    let state = shelf.archive.state();
    let missing = url("/no-such-page");
    let print = fingerprint(&missing, ContentKind::Html, Some("text/html"), SORRY.as_bytes());
    // Five pages were seen that look otherwise.
    let look = Look::Page(print);
    let probe =
        Probe { asked_s: Some(BEGIN_S), look, judged: 5, has_other: true, ..Probe::default() };
    let note = ServerNote {
        server: state.site_servers(shelf.site, 1).unwrap()[0].id,
        name: "probe".to_owned(),
        value: serde_json::to_string(&probe).unwrap(),
    };
    let take = |path: &str, day: i64| {
        let mut ingest = shelf.archive.ingest(shelf.site).unwrap();
        let (page, at_s) = (url(path), BEGIN_S + day * DAY_S);
        let taken = ingest.take(&Capture::new(&page, at_s, 200, HEAD, SORRY.as_bytes())).unwrap();
        ingest.finish().unwrap();
        taken
    };
    assert_eq!(take("/never/1", 1), Outcome::Changed, "nothing is known of the server");
    state.commit(&[Change::Note(note)]).unwrap();
    assert_eq!(take("/never/2", 1), Outcome::Gone);
    assert_eq!(shelf.permille("/never/2").len(), 1);
    assert_eq!(take("/", 1), Outcome::Changed, "a top page is never judged");
}

#[test]
fn versions_found_in_packs_are_judged_and_teach() {
    let made = shelf(Schedule::Manual);
    (0..DAYS).for_each(|day| import_day(&made, day));
    let before = made.page("/daily/1");
    let Shelf { folder, archive, .. } = made;
    drop(archive);
    for name in ["state.sqlite", "state.sqlite-wal", "state.sqlite-shm"] {
        let _absent = std::fs::remove_file(folder.path().join(name));
    }
    let archive = Archive::open(folder.path(), &OpenOptions::rebuilding()).unwrap();
    let found = archive.reindex(9, 0, &mut |_, _| {}).unwrap();
    assert_eq!((found.versions, found.adopted), (8 * 6 + 2 * 6 + 6 + 4 + 8, found.versions));
    let site = archive.state().sites().unwrap()[0].id;
    let shelf = Shelf { folder, archive, site };
    let page = shelf.page("/daily/1");
    assert_eq!((page.outcome, page.mark), (Some(Outcome::Changed), before.mark));
    // Between two versions it stayed as it was.
    assert_eq!(shelf.history("/daily/1"), (15, 7));
    assert_eq!(shelf.history("/never/1"), (1, 0));
    let again = shelf.archive.reindex(9, 0, &mut |_, _| {}).unwrap();
    assert_eq!(again.adopted, 0);
    assert_eq!(shelf.page("/daily/1"), page);
}

fn import_history(shelf: &Shelf, text: &str) -> ImportedHistory {
    let file = shelf.folder.path().join("history");
    std::fs::write(&file, text).unwrap();
    let site = shelf.archive.state().sites().unwrap().remove(0);
    let options = HistoryImportOptions { site, base: None, now_s: BEGIN_S + DAYS * DAY_S };
    shelf.archive.import_history(&file, &options).unwrap()
}

#[test]
fn dates_and_digests_alone_teach_how_often_pages_change() {
    let cdxj = "com,e)/a 20240101000000 {\"url\":\"http://e.com/a\",\"status\":\"200\",\"digest\":\"sha1:A\"}\n\
        com,e)/a 20240102000000 {\"url\":\"http://e.com/a\",\"status\":\"200\",\"digest\":\"A\"}\n\
        com,e)/a 20240103000000 http://e.com/a text/html 200 B 123\n\
        com,e)/a 20240104000000 {\"url\":\"http://e.com/a\",\"mime\":\"warc/revisit\",\"digest\":\"B\"}\n\
        org,x)/ 20240104000000 {\"url\":\"http://x.org/\",\"status\":\"200\",\"digest\":\"B\"}\nnonsense\n";
    let day = |day: i64| BEGIN_S + day * DAY_S;
    let log = format!("1\ta\t7\t{}\t{}\t{},{}\n", day(0), day(7), day(2), day(4));
    let sitemap = "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url>\
        <loc>http://e.com/a</loc><lastmod>2024-01-03</lastmod></url></urlset>";
    // Start, two updates and the point halfway between them, and the end with its halfway point.
    for (format, text, dates, visits) in
        [("cdxj", cdxj, 4, (4, 1)), ("updates", &log, 4, (7, 2)), ("sitemap", sitemap, 2, (2, 0))]
    {
        let shelf = shelf(Schedule::Continuous(RevisitSettings::default()));
        let imported = import_history(&shelf, text);
        assert_eq!((imported.format, imported.pages, imported.dates), (format, 1, dates));
        assert_eq!(shelf.history("/a"), visits, "{format}");
        let page = shelf.page("/a");
        assert_eq!((page.visits, page.version, page.visited_s), (0, None, None), "{format}");
        assert!(page.estimate.is_some(), "{format}");
        let why = Reasons::new(&**shelf.archive.state()).unwrap().of(&page).unwrap();
        assert!(why.rate_per_day.is_some_and(|rate| rate > 0.0), "{format}: {why:?}");
        let text = why.text(Lang::En);
        assert!(text.starts_with("never visited yet; by an imported history it changes"), "{text}");
        assert!(why.text(Lang::Ja).contains("取り込んだ履歴"), "{format}");
        let damaged = u64::from(format == "cdxj");
        assert_eq!((imported.outside, imported.damaged), (damaged, damaged), "{format}");
        assert!(shelf.archive.versions("http://e.com/a").unwrap().is_empty());
    }
    let shelf = shelf(Schedule::Manual);
    let file = shelf.folder.path().join("none");
    std::fs::write(&file, "nothing of the kind").unwrap();
    let site = shelf.archive.state().sites().unwrap().remove(0);
    let options = HistoryImportOptions { site, base: None, now_s: 0 };
    let error = shelf.archive.import_history(&file, &options).unwrap_err();
    assert!(error.to_string().contains("expected a CDX"), "{error}");
}
