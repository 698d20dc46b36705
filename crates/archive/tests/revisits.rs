//! WARC files of others: how their revisits name originals, odd heads, and captures that are too large for
//! memory. The cases are facts about what collectors write, in files made here.

#![allow(clippy::unwrap_used, reason = "helpers of tests, which may panic")]

use std::io::Write;

use nenrin_archive::{Archive, Imported, OpenOptions, WarcFiles, WarcImportOptions};
use nenrin_warc::{Compressed, DigestAlgorithm, Fields, RecordWriter};

const DATE: &str = "2024-03-01T00:00:00Z";
const LATER: &str = "2024-04-01T00:00:00Z";

struct Record {
    fields: Vec<(&'static str, String)>,
    block: Vec<u8>,
}

fn response(url: &str, id: u8, body: &str) -> Record {
    let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{body}").into_bytes();
    let fields = vec![
        ("WARC-Type", "response".to_owned()),
        ("WARC-Target-URI", url.to_owned()),
        ("WARC-Date", DATE.to_owned()),
        ("WARC-Record-ID", format!("<urn:uuid:{id}>")),
        ("WARC-Payload-Digest", digest(body)),
        ("Content-Type", "application/http; msgtype=response".to_owned()),
    ];
    Record { fields, block }
}

fn revisit(url: &str, more: &[(&'static str, &str)]) -> Record {
    let mut fields = vec![
        ("WARC-Type", "revisit".to_owned()),
        ("WARC-Target-URI", url.to_owned()),
        ("WARC-Date", LATER.to_owned()),
        ("WARC-Record-ID", "<urn:uuid:99>".to_owned()),
    ];
    fields.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
    Record { fields, block: Vec::new() }
}

fn digest(body: &str) -> String {
    DigestAlgorithm::Sha1.of(&[body.as_bytes()])
}

const IDENTICAL: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";
const UNMODIFIED: &str = "http://netpreserve.org/warc/1.1/revisit/server-not-modified";

fn imported(records: &[Record]) -> (tempfile::TempDir, Archive, Imported) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.warc.gz");
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = RecordWriter::new(file, Compressed::Gzip).unwrap();
    for record in records {
        let mut fields = Fields::default();
        record.fields.iter().for_each(|(name, value)| fields.push(name, value));
        writer.write(&fields, &[&record.block]).unwrap();
    }
    writer.finish().unwrap().flush().unwrap();
    import(folder, &path)
}

fn import(
    folder: tempfile::TempDir,
    path: &std::path::Path,
) -> (tempfile::TempDir, Archive, Imported) {
    let archive = Archive::open(&folder.path().join("archive"), &OpenOptions::writing()).unwrap();
    let files = WarcFiles::open(&[path]).unwrap();
    let options = WarcImportOptions::new("x", 2_000_000_000);
    let imported = archive.import_warc(&files, &options, &mut |_, _| {}).unwrap();
    (folder, archive, imported)
}

#[test]
fn originals_are_found_however_they_are_named() {
    let (empty, body) = (digest(""), digest("body"));
    let page = "http://e.com/a";
    for (what, url, named) in [
        (
            "304 with the digest of nothing",
            page,
            vec![("WARC-Profile", UNMODIFIED), ("WARC-Payload-Digest", &empty[..])],
        ),
        (
            "304 with URL, date and the digest of nothing",
            page,
            vec![
                ("WARC-Profile", UNMODIFIED),
                ("WARC-Payload-Digest", &empty),
                ("WARC-Refers-To-Target-URI", page),
                ("WARC-Refers-To-Date", DATE),
            ],
        ),
        ("digest", page, vec![("WARC-Profile", IDENTICAL), ("WARC-Payload-Digest", &body)]),
        (
            "https and www for http, by date",
            "https://www.e.com/a",
            vec![
                ("WARC-Profile", IDENTICAL),
                ("WARC-Payload-Digest", &body),
                ("WARC-Refers-To-Target-URI", "https://www.e.com/a"),
                ("WARC-Refers-To-Date", DATE),
            ],
        ),
        (
            "https for http, by digest",
            "https://e.com/a",
            vec![("WARC-Profile", IDENTICAL), ("WARC-Payload-Digest", &body)],
        ),
        (
            "a bare id, at another URL",
            "http://e.com/other",
            vec![("WARC-Profile", IDENTICAL), ("WARC-Refers-To", "<urn:uuid:1>")],
        ),
        (
            "date and digest, at another URL",
            "http://e.com/other",
            vec![
                ("WARC-Profile", IDENTICAL),
                ("WARC-Payload-Digest", &body),
                ("WARC-Refers-To-Date", DATE),
            ],
        ),
    ] {
        let records = [revisit(url, &named), response(page, 1, "body")];
        let (_folder, archive, imported) = imported(&records);
        assert_eq!(imported.damaged, 0, "{what}: {:?}", imported.problems);
        assert_eq!(imported.versions + imported.unchanged, 2, "{what}");
        let later = archive.as_of(url, 1_711_929_600).unwrap().expect(what);
        assert_eq!(later.body(), b"body", "{what}");
    }
}

#[test]
fn originals_are_found_by_their_content_where_records_say_little() {
    let (empty, body) = (digest(""), digest("body"));
    let identical = [("WARC-Profile", IDENTICAL), ("WARC-Payload-Digest", &body[..])];
    let other = "http://e.com/other";
    // At another URL of the same date, in a record without a digest.
    let mut silent = response("http://e.com/a", 1, "body");
    silent.fields.retain(|(name, _)| *name != "WARC-Payload-Digest");
    let mut unlike = response("http://e.com/0", 2, "else");
    unlike.fields.retain(|(name, _)| *name != "WARC-Payload-Digest");
    let dated = [&identical[..], &[("WARC-Refers-To-Date", DATE)]].concat();
    // At the same URL, of a later date.
    let mut later = response(other, 3, "body");
    later.fields[2].1 = "2024-05-01T00:00:00Z".to_owned();
    for records in
        [vec![unlike, silent, revisit(other, &dated)], vec![later, revisit(other, &identical)]]
    {
        let (_folder, archive, imported) = imported(&records);
        assert_eq!(imported.damaged, 0, "{:?}", imported.problems);
        let then = archive.as_of(other, 1_711_929_600).unwrap().unwrap();
        assert_eq!(then.body(), b"body");
    }
    // That something was not modified says nothing of what came later.
    let mut later = response(other, 3, "body");
    later.fields[2].1 = "2024-05-01T00:00:00Z".to_owned();
    let unmodified = [("WARC-Profile", UNMODIFIED), ("WARC-Payload-Digest", &empty[..])];
    let (_folder, _, imported) = imported(&[later, revisit(other, &unmodified)]);
    assert_eq!((imported.versions, imported.damaged), (1, 1));
}

#[test]
fn a_revisit_of_something_else_is_reported() {
    let (other, body) = (digest("other"), digest("body"));
    for named in [
        vec![("WARC-Profile", IDENTICAL), ("WARC-Payload-Digest", &other[..])],
        vec![("WARC-Profile", IDENTICAL), ("WARC-Refers-To", "<urn:uuid:7>")],
        vec![
            ("WARC-Profile", IDENTICAL),
            ("WARC-Payload-Digest", &body),
            ("WARC-Refers-To-Date", "2024-03-02T00:00:00Z"),
        ],
    ] {
        let (_folder, _, imported) =
            imported(&[response("http://e.com/a", 1, "body"), revisit("http://e.com/b", &named)]);
        assert_eq!((imported.versions, imported.damaged), (1, 1), "{named:?}");
        assert!(imported.problems[0].contains("the original of the revisit of http://e.com/b"));
    }
}

#[test]
fn heads_with_two_carriage_returns_are_read() {
    let body = "<p>hello</p>\n";
    let block = format!("HTTP/1.1 200 OK\r\r\nContent-Type: text/html\r\r\n\r\r\n{body}");
    let record = format!(
        "WARC/1.0\r\r\nWARC-Type: response\r\r\nWARC-Target-URI: http://e.com/a\r\r\n\
         WARC-Date: {DATE}\r\r\nContent-Length: {}\r\r\n\r\r\n{block}\r\n\r\n",
        block.len()
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.warc");
    std::fs::write(&path, record).unwrap();
    let (_folder, archive, imported) = import(folder, &path);
    assert_eq!((imported.versions, imported.damaged), (1, 0), "{:?}", imported.problems);
    let page = archive.as_of("http://e.com/a", i64::MAX).unwrap().unwrap();
    assert_eq!((page.status(), page.body()), (200, body.as_bytes()));
    assert_eq!(page.header("content-type").as_deref(), Some("text/html"));
}

/// Bytes that do not compress to nothing.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 7_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state >> 40
    };
    (0..bytes / 8).flat_map(|_| next().to_le_bytes()).collect()
}

#[test]
fn a_capture_that_is_too_large_for_memory_comes_in_and_goes_out() {
    let body = noise(65 << 20);
    let block = [&b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n\r\n"[..], &body].concat();
    let mut large = response("http://e.com/large.mp4", 1, "");
    large.fields.retain(|(name, _)| *name != "WARC-Payload-Digest");
    large.fields.push(("WARC-Block-Digest", DigestAlgorithm::Sha256.of(&[&block])));
    large.block = block;
    let chunked = [
        &b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4100000\r\n"[..],
        &body,
        b"\r\n0\r\n\r\n",
    ];
    let mut in_chunks = response("http://e.com/chunked.mp4", 2, "");
    in_chunks.fields.retain(|(name, _)| *name != "WARC-Payload-Digest");
    in_chunks.block = chunked.concat();
    let mut wrong = response("http://e.com/wrong.mp4", 3, "");
    wrong.block.clone_from(&large.block);
    let records = [response("http://e.com/small", 4, "small"), large, in_chunks, wrong];
    let (folder, archive, found) = imported(&records);
    assert_eq!((found.versions, found.damaged), (3, 1), "{:?}", found.problems);
    assert!(found.problems[0].contains("its payload is not what its digest says"));
    for page in ["http://e.com/large.mp4", "http://e.com/chunked.mp4"] {
        let page = archive.as_of(page, i64::MAX).unwrap().unwrap();
        assert!(page.body() == body, "{} bytes", page.body().len());
    }
    assert!(!archive.folder().join("importing.part").exists());
    // The same files again bring nothing.
    let files = WarcFiles::open(&[folder.path().join("x.warc.gz")]).unwrap();
    let options = WarcImportOptions::new("x", 2_000_000_000);
    let again = archive.import_warc(&files, &options, &mut |_, _| {}).unwrap();
    assert_eq!((again.versions, again.known), (0, 3));
}
