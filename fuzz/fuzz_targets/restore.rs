//! Any bodies and heads come back exactly: while collecting, from an archive that was opened
//! again, and after compacting, which recodes what looks like a picture.
#![no_main]

mod foreign;

use std::sync::Arc;

use nenrin_store::{CompactOptions, MemoryBackend, NewVersion, Store, StoreOptions, VersionId};
use nenrin_urls::CanonicalUrl;

const FRONTS: [&[u8]; 6] =
    [b"", b"<html><p>", b"\xff\xd8\xff\xe0", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\x1f\x8b\x08\0"];

libfuzzer_sys::fuzz_target!(init: foreign::let_decoders_panic(), |input: &[u8]| {
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
});
