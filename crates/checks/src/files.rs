//! Packs, and the files of other archives.

use std::{io::Cursor, sync::Arc};

use nenrin_archive::{Edge, Span, parse_date};
use nenrin_search::pdf_text;
use nenrin_store::{
    CompactOptions, Digest, MemoryBackend, NewVersion, Store, StoreOptions, VersionId,
};
use nenrin_urls::CanonicalUrl;
use nenrin_warc::{CdxLine, Pairing, ReadOptions, RecordReader, WarcError, ZipReader};

/// Blocks, joined, are the input.
pub(crate) fn cut(body: &[u8]) {
    let blocks: Vec<&[u8]> = nenrin_store::cut(body).collect();
    assert!(blocks.iter().all(|block| !block.is_empty()));
    assert_eq!(blocks.concat(), body);
}

/// A pack of hostile chunks, with checksums that fit, can be opened, checked and read without a
/// panic and without wrong bytes.
pub(crate) fn pack(input: &[u8]) {
    let mut pack = Vec::new();
    put_chunk(&mut pack, 1, &[1, 0, 1, 1, 0]);
    let mut rest = input;
    while let [kind, low, high, tail @ ..] = rest {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(tail.len());
        put_chunk(&mut pack, kind % 9, &tail[..length]);
        rest = &tail[length..];
    }
    let backend = Arc::new(MemoryBackend::default());
    backend.plant("pack-0000000001", pack);
    let Ok(store) = Store::open(backend, StoreOptions::default()) else { return };
    let _ = store.verify(true, &mut |_, _| {});
    let _ = store.scan(&mut |head| {
        let _ = store.blocks(head.id);
        if let Ok(version) = store.read(head.id) {
            assert_eq!(Digest::of(&version.body), version.head.digest);
        }
        Ok(())
    });
    let _ = store.read(VersionId(1));
}

/// As docs/format.md says.
fn put_chunk(pack: &mut Vec<u8>, kind: u8, payload: &[u8]) {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&1u64.to_le_bytes());
    hasher.update(&(pack.len() as u64).to_le_bytes());
    hasher.update(&[kind]);
    hasher.update(payload);
    pack.extend_from_slice(&[b'n', b'r', 0xf1, kind]);
    let length = u32::try_from(payload.len()).expect("a short chunk");
    pack.extend_from_slice(&length.to_le_bytes());
    pack.extend_from_slice(&hasher.finalize().as_bytes()[..8]);
    pack.extend_from_slice(payload);
}

const FRONTS: [&[u8]; 6] =
    [b"", b"<html><p>", b"\xff\xd8\xff\xe0", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\x1f\x8b\x08\0"];

/// Any bodies and heads come back exactly: while collecting, from an archive that was opened
/// again, and after compacting, which recodes what looks like a picture.
pub(crate) fn restore(input: &[u8]) {
    let backend = Arc::new(MemoryBackend::default());
    let store = Store::open(backend.clone(), StoreOptions::default()).expect("an empty archive");
    let url = CanonicalUrl::parse("https://example.org/").expect("a url");
    let mut kept: Vec<(VersionId, Vec<u8>, Vec<u8>)> = Vec::new();
    let mut rest = input;
    while let [choice, low, high, tail @ ..] = rest {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(tail.len());
        let body = [FRONTS[usize::from(*choice) % 6], &tail[..length]].concat();
        let head = [&b"HTTP/1.1 200 OK\r\nX: "[..], &tail[..length / 2]].concat();
        let version = NewVersion {
            url: &url,
            group: u32::from(*choice >> 6),
            visited_at_s: i64::from(*low) * 1_000_003,
            status: 200,
            protocol: "h2",
            tls: None,
            server_address: None,
            request_head: &tail[..length / 3],
            response_head: &head,
            body: &body,
            truncated: None,
            previous: kept.last().map(|(id, ..)| *id),
        };
        let id = store.put(&version).expect("any bytes can be put").id;
        kept.push((id, head, body));
        rest = &tail[length..];
    }
    let check = |store: &Store| {
        for (id, head, body) in &kept {
            let version = store.read(*id).expect("what was put can be read");
            assert!(version.body == *body && version.head.response_head == *head);
        }
    };
    check(&store);
    let options = CompactOptions { level: 1, frame_bytes: 4096, ..CompactOptions::default() };
    store.compact(&options, &mut |_, _| {}).expect("anything can be compacted");
    check(&store);
    check(&Store::open(backend, StoreOptions::default()).expect("it opens again"));
}

/// Any bytes are read as a WARC or ARC file to their end, without a panic and without going round
/// in circles.
pub(crate) fn warc(bytes: &[u8]) {
    let options = ReadOptions { max_block_bytes: 1 << 16, packed_from_bytes: Some(64) };
    let Ok(mut reader) = RecordReader::open(Cursor::new(bytes), options) else { return };
    let mut pairing = Pairing::default();
    let mut steps = 0;
    loop {
        match reader.next_record() {
            Ok(Some(record)) => {
                let _ = CdxLine::of(&record, "f");
                pairing.next(record);
            }
            Ok(None) | Err(WarcError::Io(_)) => break,
            Err(_) => {}
        }
        steps += 1;
        assert!(steps <= 4 * bytes.len() + 1000, "the reader does not come forward");
    }
}

/// A line of an index that is read is written the same when it is read again; a package's entries
/// are inside of it and their names lead nowhere else; dates and durations are read or refused.
pub(crate) fn cdxj_and_zip(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        if let Ok(line) = CdxLine::parse(text) {
            let written = line.to_string();
            let again = CdxLine::parse(&written).expect("what was written is read");
            assert_eq!(again.to_string(), written);
        }
        let _ = (parse_date(text, Edge::First), parse_date(text, Edge::Last));
        let _ = text.parse::<Span>();
    }
    let Ok(mut reader) = ZipReader::open(Cursor::new(bytes)) else { return };
    let entries = reader.entries().to_vec();
    for entry in entries {
        assert!(!entry.name.starts_with('/') && !entry.name.split('/').any(|part| part == ".."));
        assert!(entry.offset + entry.length <= bytes.len() as u64);
        let _ = reader.read(&entry, 1 << 20);
    }
}

/// No text of a PDF file in this check is longer.
const PDF_TEXT_MAX_BYTES: usize = 1 << 16;

/// Any bytes have the text of a PDF file, within its limit.
pub(crate) fn pdf(bytes: &[u8]) {
    let found = pdf_text(bytes, PDF_TEXT_MAX_BYTES);
    let text: usize = found.blocks.iter().map(|block| block.text.len()).sum();
    // The title comes on top.
    assert!(text <= PDF_TEXT_MAX_BYTES + 2_000, "{text}");
}
