//! SIGKILL at any moment loses nothing that was committed.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use nenrin_warc::{Compressed, Fields, RecordWriter, RevisitProfile};

use crate::support::{Nenrin, Reply, Site, until};
use crate::warc::records;

const KILLS: u32 = 20;
const PAGES: usize = 8;
const DELAY_MS: u64 = 30;

/// Small and good enough to spread moments.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// What the archive lists, with each version's bytes.
type Listed = BTreeMap<(String, u64), (serde_json::Value, Vec<u8>)>;

/// Lists every version; bytes are read where a version is new or the last of its page.
fn list(nenrin: &Nenrin, site: &Site, before: &Listed) -> Listed {
    let mut listed = Listed::new();
    for path in (0..PAGES).map(path_of) {
        let url = site.url(&path);
        let ran = nenrin.run(&["versions", "--json", &url]);
        if ran.code == Some(2) {
            continue;
        }
        let versions = ran.expect(0).lines();
        for version in &versions {
            let number = version["version"].as_u64().unwrap();
            let key = (url.clone(), number);
            let at = version["timestamp"].as_str().unwrap();
            // Of two versions within a second, `--at` can only name the last.
            let last = versions.iter().rfind(|other| other["timestamp"] == at).unwrap() == version;
            let body = match before.get(&key) {
                Some((_, body)) if number % 3 != 0 || !last => body.clone(),
                _ if last => nenrin.run(&["cat", &url, "--at", at]).expect(0).stdout,
                _ => Vec::new(),
            };
            listed.insert(key, (version.clone(), body));
        }
    }
    listed
}

fn path_of(page: usize) -> String {
    if page == 0 { "/".to_owned() } else { format!("/{page}") }
}

#[test]
fn twenty_kills_lose_no_version_and_the_round_is_finished() {
    let edition = Arc::new(AtomicU32::new(1));
    let shown = edition.clone();
    let site = Site::serve(move |request| {
        let edition = shown.load(Ordering::SeqCst);
        match request.path.as_str() {
            "/robots.txt" => Reply::status("404 Not Found"),
            "/" => {
                let links = (1..PAGES).map(|n| format!("<a href='/{n}'>{n}</a>"));
                Reply::html(format!("edition {edition} {}", links.collect::<String>()))
            }
            // Some pages change with every edition, some never.
            path if path.ends_with(['1', '2', '3']) => Reply::html(format!("{path} {edition}")),
            path => Reply::html(path),
        }
        .validated(request)
    });
    let nenrin = Nenrin::new();
    let top = site.top();
    let delay = format!("{DELAY_MS}ms");
    let args = ["collect", "--json", "--allow-private", "--delay", &delay, &top];
    let mut seeded = Seeded(20_261_115);
    let mut listed = Listed::new();
    let mut finished = 0;
    for kill in 0..KILLS {
        let mut running = nenrin.start(&args);
        // Over the whole of a round, and a little beyond.
        let moment_ms = seeded.below((PAGES as u64 + 3) * (DELAY_MS + 10) + 60);
        std::thread::sleep(Duration::from_millis(moment_ms));
        let ended = running.child.try_wait().unwrap().is_some();
        running.kill();
        if ended {
            finished += 1;
            edition.fetch_add(1, Ordering::SeqCst);
        }
        if !nenrin.archive().join("state.sqlite").exists() {
            continue;
        }
        nenrin.assert_sound();
        let now = list(&nenrin, &site, &listed);
        for (key, before) in &listed {
            assert_eq!(now.get(key), Some(before), "kill {kill} at {moment_ms} ms lost {key:?}");
        }
        listed = now;
    }
    assert!(finished < KILLS / 2, "{finished} of {KILLS} were finished before they were killed");
    assert!(listed.len() >= PAGES, "something was collected on the way: {}", listed.len());

    edition.fetch_add(1, Ordering::SeqCst);
    nenrin.run(&args).expect(0);
    let visited = nenrin.run(&["pages", "--json"]).expect(0).lines();
    assert_eq!(visited.len(), PAGES);
    assert!(visited.iter().all(|page| page["visited"].is_string()), "{visited:?}");
    let rounds = nenrin.run(&["log", "--json"]).expect(0).lines();
    assert!(rounds.iter().all(|round| round["ended"].is_string()), "{rounds:?}");
    assert!(rounds[0]["visits"].as_u64().unwrap() >= PAGES as u64);
    let now = list(&nenrin, &site, &Listed::new());
    for (key, (version, _)) in &listed {
        assert_eq!(&now[key].0, version);
    }
    nenrin.assert_sound();

    // As the server saw it: never two requests at once, never one too soon.
    for pair in site.requests().windows(2) {
        let Some(ended) = pair[0].ended else { continue };
        let pause = pair[1].began.saturating_duration_since(ended);
        assert!(pause >= Duration::from_millis(DELAY_MS), "{pause:?} before {}", pair[1].path);
    }
}

#[test]
fn an_interrupted_round_is_taken_up_where_it_stopped() {
    let site = Site::serve(|request| match request.path.as_str() {
        "/" => Reply::html((1..20).map(|n| format!("<a href='/{n}'>")).collect::<String>()),
        path => Reply::html(path),
    });
    let nenrin = Nenrin::new();
    let args = ["collect", "--json", "--allow-private", "--delay", "20ms", &site.top()];
    let running = nenrin.start(&args);
    until("a part of the round", || site.asked().len() > 5);
    running.signal("INT");
    let report = running.finish().expect(130).document();
    assert_eq!(report["interrupted"], true);
    let before = site.asked().len();
    assert!(before < 20, "the round was not over: {before}");
    nenrin.assert_sound();

    nenrin.run(&args).expect(0);
    assert_eq!(site.asked().len(), 20);
    assert!(site.asked().values().all(|&times| times == 1), "{:?}", site.asked());
    let rounds = nenrin.run(&["log", "--json"]).expect(0).lines();
    assert_eq!(rounds.len(), 1, "one round: {rounds:?}");
    assert_eq!(rounds[0]["visits"], 20);
}

#[test]
fn an_interrupt_does_not_wait_for_a_silent_server() {
    let site = Site::serve(|request| match request.path.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        _ => Reply::silent(),
    });
    let nenrin = Nenrin::new();
    let running = nenrin.start(&["collect", "--allow-private", &site.top(), "--delay", "0s"]);
    until("the page to be asked for", || site.asked().len() == 1);
    running.signal("TERM");
    let began = std::time::Instant::now();
    running.finish().expect_said(130, &["interrupted"]);
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    nenrin.assert_sound();
}

const IMPORT_KILLS: u64 = 6;
const IMPORTED_PAGES: i64 = 120;
/// What a page's visits found, in order: a response with this content, or a revisit of the
/// response that the number names. Some of the revisits find what the page did not have just
/// before, and so become versions.
const FOUND: [(&str, usize); 12] = [
    ("first", 0),
    ("", 0),
    ("second", 0),
    ("", 2),
    ("", 2),
    ("", 0),
    ("", 0),
    ("third", 0),
    ("", 7),
    ("", 2),
    ("first", 0),
    ("", 10),
];

/// A file with responses and revisits of many pages.
fn collection_of_revisits() -> Vec<u8> {
    let date = |nth: usize, page: i64| {
        let minute = i64::try_from(nth).unwrap();
        format!("2024-03-01T12:{minute:02}:{:02}Z", page % 60)
    };
    let mut writer = RecordWriter::new(Vec::new(), Compressed::Gzip).unwrap();
    for page in 0..IMPORTED_PAGES {
        for (nth, (content, original)) in FOUND.iter().enumerate() {
            let is_revisit = content.is_empty();
            let url = format!("http://e.com/{page}");
            let mut fields = Fields::default();
            fields.push("WARC-Type", if is_revisit { "revisit" } else { "response" });
            fields.push("WARC-Target-URI", url.clone());
            fields.push("WARC-Date", date(nth, page));
            if is_revisit {
                fields.push("WARC-Profile", RevisitProfile::IdenticalPayload.uri());
                fields.push("WARC-Refers-To-Target-URI", url);
                fields.push("WARC-Refers-To-Date", date(*original, page));
                writer.write(&fields, &[]).unwrap();
            } else {
                let text = format!("<p>{content} on page {page}</p>").repeat(9);
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
                writer.write(&fields, &[head.as_bytes(), text.as_bytes()]).unwrap();
            }
        }
    }
    writer.finish().unwrap()
}

#[test]
fn an_import_that_is_killed_again_and_again_comes_to_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("revisits.warc.gz");
    std::fs::write(&file, collection_of_revisits()).unwrap();
    let args = ["--json", "import", "warc", file.to_str().unwrap()];
    let all = IMPORTED_PAGES as u64 * FOUND.len() as u64;
    let count = |report: &serde_json::Value, names: &[&str]| -> u64 {
        names.iter().map(|name| report[*name].as_u64().unwrap()).sum()
    };
    let exported = |nenrin: &Nenrin, name: &str| {
        let path = folder.path().join(name);
        nenrin.run(&["export", "warc", "-o", path.to_str().unwrap()]).expect(0);
        records(&path)
    };

    let unhurt = Nenrin::new();
    let began = std::time::Instant::now();
    let report = unhurt.run(&args).expect(0).document();
    let whole_ms = began.elapsed().as_millis() as u64;
    assert_eq!(count(&report, &["versions", "unchanged"]), all, "{report}");
    let expected = exported(&unhurt, "unhurt.warc.gz");

    let nenrin = Nenrin::new();
    let mut seeded = Seeded(20_261_116);
    let mut finished = 0;
    for kill in 0..IMPORT_KILLS {
        let mut running = nenrin.start(&args);
        // One after the other in every part of an import, so that each is met in some state.
        let moment_ms = whole_ms * (kill % 4) / 4 + seeded.below(whole_ms / 4 + 1);
        std::thread::sleep(Duration::from_millis(moment_ms));
        finished += u64::from(running.child.try_wait().unwrap().is_some());
        running.kill();
        if nenrin.archive().join("state.sqlite").exists() {
            nenrin.assert_sound();
        }
    }
    assert!(finished < IMPORT_KILLS, "none was killed on the way");
    for is_first in [true, false] {
        let report = nenrin.run(&args).expect(0).document();
        assert_eq!(count(&report, &["versions", "unchanged", "known"]), all, "{report}");
        assert!(is_first || report["known"] == all, "{report}");
        assert_eq!(exported(&nenrin, "killed.warc.gz"), expected);
    }
    nenrin.assert_sound();
    // What was stored and not committed at a kill is no version of its own.
    nenrin.run(&["reindex"]).expect(0);
    assert_eq!(exported(&nenrin, "reindexed.warc.gz"), expected);
}

/// The files of exported tables, by their folder: the contents, in order.
fn table_files(folder: &Path) -> BTreeMap<String, Vec<Vec<u8>>> {
    let note = std::fs::read(folder.join("tables.json")).unwrap();
    let note: serde_json::Value = serde_json::from_slice(&note).unwrap();
    let mut named: Vec<String> = Vec::new();
    let mut files: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    for name in note["files"].as_array().unwrap() {
        let name = name.as_str().unwrap().to_owned();
        let (of, _) = name.rsplit_once('/').unwrap();
        let bytes = std::fs::read(folder.join(&name)).unwrap();
        files.entry(of.to_owned()).or_default().push(bytes);
        named.push(name);
    }
    files.values_mut().for_each(|contents| contents.sort());
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => open.push(path),
                false => {
                    found.push(path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned())
                }
            }
        }
    }
    found.retain(|name| name != "tables.json");
    found.sort();
    named.sort();
    assert_eq!(found, named, "files that the list does not name");
    files
}

/// An archive with what [`collection_of_revisits`] has.
pub(crate) fn imported(folder: &Path) -> Nenrin {
    let file = folder.join("revisits.warc.gz");
    std::fs::write(&file, collection_of_revisits()).unwrap();
    let nenrin = Nenrin::new();
    nenrin.run(&["import", "warc", file.to_str().unwrap()]).expect(0);
    nenrin
}

#[test]
fn tables_whose_export_is_killed_again_and_again_come_to_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let nenrin = imported(folder.path());
    let (unhurt, killed) = (folder.path().join("unhurt"), folder.path().join("killed"));
    let export = |to: &Path| ["export", "parquet", to.to_str().unwrap()].map(str::to_owned);
    let run = |args: &[String; 3]| nenrin.run(&args.each_ref().map(String::as_str)).expect(0);
    let began = std::time::Instant::now();
    run(&export(&unhurt));
    let whole_ms = began.elapsed().as_millis() as u64;
    let mut seeded = Seeded(28);
    let mut finished = 0;
    for kill in 0..IMPORT_KILLS {
        let mut running = nenrin.start(&export(&killed).each_ref().map(String::as_str));
        let moment_ms = whole_ms * (kill % 4) / 4 + seeded.below(whole_ms / 4 + 1);
        std::thread::sleep(Duration::from_millis(moment_ms));
        finished += u64::from(running.child.try_wait().unwrap().is_some());
        running.kill();
    }
    assert!(finished < IMPORT_KILLS, "none was killed on the way");
    run(&export(&killed));
    assert_eq!(table_files(&killed), table_files(&unhurt));
}

#[test]
fn a_backup_survives_kills_of_itself_and_of_what_writes_the_archive() {
    let folder = tempfile::tempdir().unwrap();
    let nenrin = imported(folder.path());
    let copy = folder.path().join("copy");
    let backup = ["backup", copy.to_str().unwrap()];
    let began = std::time::Instant::now();
    nenrin.run(&backup).expect(0);
    let whole_ms = began.elapsed().as_millis() as u64;
    let copied = Nenrin::with_archive(copy.clone());
    let mirror = folder.path().join("mirror");
    std::fs::create_dir(&mirror).unwrap();
    let mut seeded = Seeded(29);
    for kill in 0..IMPORT_KILLS {
        for page in 0..40 {
            let text = format!("<p>visit {kill} of page {page}</p>").repeat(50);
            std::fs::write(mirror.join(format!("{page}.html")), text).unwrap();
        }
        let at = format!("2025-01-0{}", kill + 1);
        let import =
            ["import", "mirror", mirror.to_str().unwrap(), "--url", "http://m.com/", "--at", &at];
        let (writing, copying) = (nenrin.start(&import), nenrin.start(&backup));
        std::thread::sleep(Duration::from_millis(seeded.below(whole_ms + 1)));
        // One of them, the other, or both.
        let (first, mut second) =
            if kill % 2 == 0 { (writing, copying) } else { (copying, writing) };
        first.kill();
        std::thread::sleep(Duration::from_millis(seeded.below(whole_ms + 1)));
        if kill % 3 == 2 {
            second.kill();
        } else {
            second.child.wait().unwrap();
        }
        nenrin.assert_sound();
        copied.assert_sound();
        nenrin.run(&import).expect(0);
    }
    nenrin.run(&backup).expect(0);
    copied.assert_sound();
    let exported = |nenrin: &Nenrin, name: &str| {
        let path = folder.path().join(name);
        nenrin.run(&["export", "warc", "-o", path.to_str().unwrap()]).expect(0);
        records(&path)
    };
    let expected = exported(&nenrin, "archive.warc.gz");
    assert_eq!(exported(&copied, "copy.warc.gz"), expected);
    let restored = Nenrin::with_archive(folder.path().join("restored"));
    restored.run(&["backup", "--restore", copy.to_str().unwrap()]).expect(0);
    restored.assert_sound();
    assert_eq!(exported(&restored, "restored.warc.gz"), expected);
}
