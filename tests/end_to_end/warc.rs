//! WARC, WACZ and CDXJ: out, in, and judged by the programs of others.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use nenrin_warc::{
    Compressed, Fields, ReadOptions, RecordReader, RecordType, RecordWriter, RevisitProfile,
};
use serde_json::Value;

use crate::support::{Nenrin, Reply, Request, Site, get};

const PAGES: usize = 60;

/// A page of a site that has all that a WARC file must bear: content codings, chunks, redirects,
/// validators, doubled headers, and pages that change at their own pace.
fn answer(request: &Request, edition: usize) -> Reply {
    let number = request.path.trim_start_matches("/p").parse::<usize>().ok();
    match (request.path.as_str(), number) {
        ("/", _) => {
            let links: String = (0..PAGES).map(|n| format!("<a href=/p{n}>{n}</a>")).collect();
            let others =
                "<a href=/gzip>g</a><a href=/chunks>c</a><a href=/moved>m</a><a href=/none>n</a>";
            Reply::html(format!("<title>Front {edition}</title>{links}{others}"))
        }
        ("/gzip", _) => {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
            encoder.write_all(format!("<p>zipped {edition}").repeat(20).as_bytes()).unwrap();
            Reply::html(encoder.finish().unwrap()).header("Content-Encoding", "gzip")
        }
        ("/chunks", _) => Reply::raw(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nSET-Cookie: a\r\nSet-cookie: b\r\nTransfer-Encoding: chunked\r\n\r\n",
            "5\r\n<p>in\r\n7\r\n chunks\r\n0\r\n\r\n",
        ),
        ("/moved", _) => Reply::redirect("/p1?Q=%C3%A9&b=A"),
        (_, Some(n)) if n < PAGES => {
            let changes = if n % 3 == 0 { edition } else { 0 };
            Reply::html(format!("<p>page {n}, edition {changes}")).validated(request)
        }
        (path, _) if path.starts_with("/p1?") => Reply::html("<p>a query"),
        _ => Reply::status("404 Not Found"),
    }
}

/// The site, collected in several rounds in different seconds.
pub(crate) fn collected(rounds: usize) -> (Nenrin, Site) {
    let edition = Arc::new(AtomicUsize::new(0));
    let shown = edition.clone();
    let site = Site::serve(move |request| answer(request, shown.load(Ordering::SeqCst)));
    let nenrin = Nenrin::new();
    for _ in 0..rounds {
        nenrin.collect(&[&site.top()]).expect(0);
        edition.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(1100));
    }
    (nenrin, site)
}

/// Everything of a record but what names it or its file.
pub(crate) type Compared = (RecordType, Vec<(String, String)>, Vec<u8>);

pub(crate) fn records(path: &Path) -> Vec<Compared> {
    let file = std::fs::File::open(path).unwrap();
    let mut reader = RecordReader::open(file, ReadOptions::default()).unwrap();
    let mut found = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        if record.kind == RecordType::Warcinfo {
            continue;
        }
        let kept = |fields: &Fields| {
            let is_name =
                |n: &str| ["WARC-Record-ID", "WARC-Warcinfo-ID", "WARC-Concurrent-To"].contains(&n);
            let kept = fields.iter().filter(|(name, _)| !is_name(name));
            kept.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
        };
        found.push((record.kind, kept(&record.fields), record.block.to_vec()));
    }
    found
}

fn export(nenrin: &Nenrin, folder: &Path, name: &str, more: &[&str]) -> (PathBuf, Value) {
    let path = folder.join(name);
    let kind = if name.ends_with(".wacz") { "wacz" } else { "warc" };
    let args = ["--json", "export", kind, "-o", path.to_str().unwrap()];
    let report = nenrin.run(&[&args[..], more].concat()).expect(0).document();
    (path, report)
}

#[test]
fn an_export_comes_back_as_the_same_records() {
    let (nenrin, site) = collected(3);
    let folder = tempfile::tempdir().unwrap();
    let (first, report) = export(&nenrin, folder.path(), "a.warc.gz", &[]);
    let written = records(&first);
    let count = |kind| written.iter().filter(|(found, ..)| *found == kind).count() as u64;
    assert_eq!(report["responses"], count(RecordType::Response));
    assert_eq!(report["revisits"], count(RecordType::Revisit));
    assert_eq!(count(RecordType::Request), count(RecordType::Response));
    assert!(count(RecordType::Revisit) > 50, "{report}");

    // Heads are what the server sent, apart from what no longer describes the body.
    let block = |path: &str| {
        let url = site.url(path);
        let is_it = |(kind, fields, _): &&Compared| {
            *kind == RecordType::Response
                && fields.iter().any(|(n, v)| n == "WARC-Target-URI" && *v == url)
        };
        String::from_utf8_lossy(&written.iter().find(is_it).unwrap().2).into_owned()
    };
    let chunked = block("/chunks");
    assert!(chunked.contains("\r\nSET-Cookie: a\r\nSet-cookie: b\r\n"), "{chunked}");
    assert!(chunked.contains("\r\nX-Orig-Transfer-Encoding: chunked\r\nContent-Length: 12\r\n"));
    assert!(chunked.ends_with("\r\n\r\n<p>in chunks"), "{chunked}");

    for (name, kind) in [("b.warc.gz", "warc"), ("b.warc.zst", "warc"), ("b.wacz", "wacz")] {
        let (file, _) = export(&nenrin, folder.path(), name, &[]);
        let other = Nenrin::new();
        let file = file.to_str().unwrap();
        let report = other.run(&["--json", "import", kind, file]).expect(0).document();
        assert_eq!(report["versions"], count(RecordType::Response), "{report}");
        assert_eq!(report["unchanged"], count(RecordType::Revisit), "{report}");
        let again = other.run(&["--json", "import", kind, file]).expect(0).document();
        assert_eq!((&again["versions"], &again["unchanged"]), (&0.into(), &0.into()), "{again}");
        other.assert_sound();
        assert_eq!(other.cat(&site.url("/gzip")), nenrin.cat(&site.url("/gzip")));
        let (second, _) = export(&other, folder.path(), &format!("again-{name}.warc.gz"), &[]);
        assert_eq!(records(&second), written, "{name}");
    }
}

#[test]
fn a_visit_in_the_second_of_a_version_is_not_lost() {
    let (url, date) = ("http://e.com/twice", "2024-03-01T12:00:00Z");
    let head = |kind: &str| {
        let mut fields = Fields::default();
        fields.push("WARC-Type", kind);
        fields.push("WARC-Record-ID", format!("<urn:uuid:{kind}>"));
        fields.push("WARC-Target-URI", url);
        fields.push("WARC-Date", date);
        fields
    };
    let mut revisit = head("revisit");
    revisit.push("WARC-Profile", RevisitProfile::IdenticalPayload.uri());
    revisit.push("WARC-Refers-To-Target-URI", url);
    revisit.push("WARC-Refers-To-Date", date);
    let mut writer = RecordWriter::new(Vec::new(), Compressed::Gzip).unwrap();
    let response = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>once";
    writer.write(&head("response"), &[response]).unwrap();
    writer.write(&revisit, &[]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("twice.warc.gz");
    std::fs::write(&file, writer.finish().unwrap()).unwrap();
    let nenrin = Nenrin::new();
    for expected in [1, 0] {
        let args = ["--json", "import", "warc", file.to_str().unwrap()];
        let report = nenrin.run(&args).expect(0).document();
        assert_eq!(
            (&report["versions"], &report["unchanged"]),
            (&expected.into(), &expected.into())
        );
        let (_, report) = export(&nenrin, folder.path(), "out.warc.gz", &[]);
        assert_eq!((&report["responses"], &report["revisits"]), (&1.into(), &1.into()), "{report}");
    }
}

#[test]
fn content_that_comes_back_is_taken_in_once_however_often_it_is_imported() {
    let record = |kind: &str, minute: u32, repeats: Option<u32>| {
        let date = |minute: u32| format!("2024-03-01T12:{minute:02}:00Z");
        let mut fields = Fields::default();
        fields.push("WARC-Type", kind);
        fields.push("WARC-Target-URI", "http://e.com/");
        fields.push("WARC-Date", date(minute));
        if let Some(original) = repeats {
            fields.push("WARC-Profile", RevisitProfile::IdenticalPayload.uri());
            fields.push("WARC-Refers-To-Date", date(original));
        }
        fields
    };
    let mut writer = RecordWriter::new(Vec::new(), Compressed::Gzip).unwrap();
    // The last revisits come first in the file: the second of them finds what the first brought back.
    writer.write(&record("revisit", 4, Some(1)), &[]).unwrap();
    writer.write(&record("revisit", 3, Some(1)), &[]).unwrap();
    for (minute, body) in [(1, "<p>one"), (2, "<p>two")] {
        let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
        writer.write(&record("response", minute, None), &[head, body.as_bytes()]).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("back.warc.gz");
    std::fs::write(&file, writer.finish().unwrap()).unwrap();
    let nenrin = Nenrin::new();
    for (versions, unchanged, known) in [(3, 1, 0), (0, 0, 4), (0, 0, 4)] {
        let args = ["--json", "import", "warc", file.to_str().unwrap()];
        let report = nenrin.run(&args).expect(0).document();
        let counts = [&report["versions"], &report["unchanged"], &report["known"]];
        assert_eq!(counts, [versions, unchanged, known], "{report}");
        let (_, report) = export(&nenrin, folder.path(), "out.warc.gz", &[]);
        assert_eq!((&report["responses"], &report["revisits"]), (&3.into(), &1.into()), "{report}");
    }
}

#[test]
fn a_time_range_holds_the_content_that_it_needs() {
    let (nenrin, site) = collected(3);
    let folder = tempfile::tempdir().unwrap();
    let dates = nenrin.versions(&site.top());
    let from = dates.last().unwrap()["timestamp"].as_str().unwrap().to_owned();
    let (whole, report) = export(&nenrin, folder.path(), "a.warc.gz", &["--from", &from]);
    let responses = report["responses"].as_u64().unwrap();
    assert!(report["revisits"].as_u64().unwrap() > 30 && responses > 60, "{report}");
    let other = Nenrin::new();
    other.run(&["import", "warc", whole.to_str().unwrap()]).expect(0);
    assert_eq!(other.cat(&site.url("/p1")), nenrin.cat(&site.url("/p1")));

    let (cut, report) =
        export(&nenrin, folder.path(), "b.warc.gz", &["--from", &from, "--references"]);
    assert!(report["responses"].as_u64().unwrap() < responses, "{report}");
    let requires = std::fs::read_to_string(folder.path().join("b.warc.gz.requires.jsonl")).unwrap();
    assert!(requires.lines().count() > 30, "{requires}");
    let lonely = Nenrin::new();
    lonely.run(&["import", "warc", cut.to_str().unwrap()]).expect_said(1, &["/p1", "revisit"]);
    // The order of files is of no importance.
    let joined = Nenrin::new();
    let (all, _) = export(&nenrin, folder.path(), "c.warc.gz", &[]);
    joined.run(&["import", "warc", cut.to_str().unwrap(), all.to_str().unwrap()]).expect(0);
    let (again, _) = export(&joined, folder.path(), "d.warc.gz", &[]);
    assert_eq!(records(&again), records(&all));
}

#[test]
fn damaged_files_give_what_is_readable_and_say_the_rest() {
    let (nenrin, _site) = collected(1);
    let folder = tempfile::tempdir().unwrap();
    let (path, report) = export(&nenrin, folder.path(), "a.warc.gz", &[]);
    let mut bytes = std::fs::read(&path).unwrap();
    let (middle, end) = (bytes.len() / 2, bytes.len() - 20);
    bytes[middle] ^= 0xff;
    bytes.truncate(end);
    std::fs::write(&path, bytes).unwrap();
    let other = Nenrin::new();
    let ran = other.run(&["--json", "import", "warc", path.to_str().unwrap()]).expect(1);
    let imported = ran.document();
    let versions = imported["versions"].as_u64().unwrap();
    assert!(versions + 2 >= report["responses"].as_u64().unwrap(), "{imported}");
    assert_eq!(imported["damaged"], 2, "{imported}");
    assert!(ran.stderr.contains("at byte"), "{}", ran.stderr);
    other.assert_sound();
}

#[test]
fn a_site_can_be_had_as_a_stream() {
    let (nenrin, _site) = collected(1);
    let mut args = vec!["serve", "--json"];
    args.extend(["--interface", "127.0.0.1:0", "--replay", "127.0.0.1:0"]);
    let running = nenrin.start(&args);
    let interface = running.first_line()["interface"].as_str().unwrap().to_owned();
    let (status, head, body) = get(&format!("{interface}api/v1/sites/1/export.warc.gz"));
    assert_eq!(status, 200, "{body}");
    assert!(head.contains("application/warc"), "{head}");
    assert!(body.len() > 10_000, "{} bytes", body.len());
    let (status, ..) = get(&format!("{interface}api/v1/sites/99/export.warc.gz"));
    assert_eq!(status, 404);
    running.kill();
}

#[test]
fn other_programs_accept_what_is_exported() {
    let (nenrin, _site) = collected(4);
    judge(&nenrin);
}

#[test]
fn other_programs_accept_the_corpus() {
    let data = std::env::var_os("NENRIN_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data"),
        PathBuf::from,
    );
    if !data.join("sites/materialise").exists() {
        eprintln!("SKIPPED: {}/sites is not there; set NENRIN_DATA", data.display());
        return;
    }
    let nenrin = Nenrin::new();
    // Of three genres; scripts/check-corpus shows all of it to the judges.
    let sites = [("azhenley", 1..=3), ("heise", 1..=2), ("zeit", 1..=2), ("tromp", 1..=1)];
    for (site, visits) in sites {
        for visit in visits {
            let folder = tempfile::tempdir().unwrap();
            let mirror = folder.path().join("mirror");
            let made = Command::new(data.join("sites/materialise"))
                .args([site, &visit.to_string(), mirror.to_str().unwrap()])
                .output()
                .unwrap();
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
            let (base, date) =
                (format!("https://www.{site}.example/"), format!("2023-0{visit}-02"));
            let from = mirror.to_str().unwrap();
            nenrin.run(&["import", "mirror", from, "--url", &base, "--at", &date]).expect(0);
        }
    }
    judge(&nenrin);
}

/// Exports all and lets the others look at it.
#[expect(clippy::print_stderr, reason = "a judge that was not asked must be noticed")]
fn judge(nenrin: &Nenrin) {
    let environment = std::env::var_os("NENRIN_JUDGES")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target/judges"), PathBuf::from);
    let python = environment.join("bin/python");
    if !python.exists() {
        assert!(std::env::var_os("CI").is_none(), "no judges at {}", environment.display());
        eprintln!("SKIPPED: no judges at {}; scripts/test installs them", environment.display());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (_, report) = export(nenrin, folder.path(), "export.warc.gz", &["--cdxj"]);
    export(nenrin, folder.path(), "export.wacz", &[]);
    let judged = Command::new(python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/judge.py"))
        .args([env!("CARGO_BIN_EXE_nenrin"), nenrin.archive().to_str().unwrap()])
        .arg(folder.path())
        .args([report["responses"].to_string(), report["revisits"].to_string()])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&judged.stderr);
    assert!(judged.status.success(), "{said}");
    eprintln!("judged: {}", String::from_utf8_lossy(&judged.stdout));
}
