//! The programs in `examples/` run on small data.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Runs an example that was built beside the program, and returns what it prints.
fn run(example: &str, arguments: &[&str]) -> String {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_nenrin"));
    let path = program.with_file_name("examples").join(example);
    let output = Command::new(&path).args(arguments).output().expect("the example was built");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{example} {arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("it prints text")
}

fn record(url: &str, date: &str, body: &str) -> String {
    let http = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{body}");
    format!(
        "WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:example:{date}>\r\n\
         WARC-Target-URI: {url}\r\nWARC-Date: {date}\r\n\
         Content-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n{http}\r\n\r\n",
        http.len()
    )
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary folders have plain names")
}

#[test]
fn a_warc_file_is_imported_and_its_page_read_as_of_a_date() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, warc) = (folder.path().join("archive"), folder.path().join("crawl.warc"));
    let url = "https://example.com/";
    let records = [
        record(url, "2024-01-10T00:00:00Z", "<p>one</p>"),
        record(url, "2024-02-10T00:00:00Z", "<p>two</p>"),
    ];
    std::fs::write(&warc, records.concat()).unwrap();

    let imported = run("import_warc", &[text(&archive), text(&warc)]);
    assert!(imported.starts_with("2 versions, 0 unchanged visits"), "{imported}");
    assert!(imported.contains("2024-02-10 00:00:00  https://example.com/"), "{imported}");
    let again = run("import_warc", &[text(&archive), text(&warc)]);
    assert!(again.starts_with("0 versions, 0 unchanged visits, 2 known before"), "{again}");

    let january = run("as_of", &[text(&archive), url, "2024-01-31"]);
    assert!(january.ends_with("<p>one</p>"), "{january}");
    let later = run("as_of", &[text(&archive), url, "202403"]);
    assert!(later.ends_with("<p>two</p>"), "{later}");
}

#[test]
fn a_policy_runs_over_an_update_log() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("updates.tsv");
    let daily = (0..30).map(|day| format!("news\t{}\n", day * 86_400));
    let weekly = (0..4).map(|week| format!("about\t{}\n", week * 604_800));
    std::fs::write(&log, daily.chain(weekly).collect::<String>()).unwrap();
    for policy in ["auto", "every(1d)"] {
        let answer = run("revisit_log", &[text(&log), policy]);
        assert!(answer.contains("visits of 2 pages saw"), "{answer}");
        assert!(answer.contains("of 34 versions"), "{answer}");
    }
}
