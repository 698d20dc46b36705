//! Bodies too large for memory: cut into pieces, exact, and kept or given back as a whole.

use crate::common;

use std::io::{self, Read};
use std::sync::Arc;

use common::{Kept, assert_sound, html, open};
use nenrin_store::{
    CompactOptions, ContentBackend, MemoryBackend, NewVersion, Put, Store, StoreError, VersionId,
};
use nenrin_urls::CanonicalUrl;

const LENGTH: u64 = (16 << 20) + (5 << 20) + 77;

/// Bytes that hardly compress, made as they are read; something may happen half-way.
struct Made<'a> {
    seed: u64,
    at: u64,
    half_way: Option<&'a mut dyn FnMut() -> io::Result<()>>,
}

impl<'a> Made<'a> {
    fn new(seed: u64) -> Self {
        Self { seed, at: 0, half_way: None }
    }
}

fn byte(seed: u64, at: u64) -> u8 {
    let word = (at / 8 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ seed);
    (word ^ (word >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9).to_le_bytes()[(at % 8) as usize]
}

impl Read for Made<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at > LENGTH * 9 / 10
            && let Some(happen) = self.half_way.take()
        {
            happen()?;
        }
        let count = buffer.len().min((LENGTH - self.at) as usize).min(1 << 16);
        for (at, byte_at) in buffer[..count].iter_mut().zip(self.at..) {
            *at = byte(self.seed, byte_at);
        }
        self.at += count as u64;
        Ok(count)
    }
}

fn body(seed: u64) -> Vec<u8> {
    let mut body = Vec::new();
    Made::new(seed).read_to_end(&mut body).unwrap();
    body
}

fn put(store: &Store, group: u32, made: &mut Made<'_>) -> Result<Put, StoreError> {
    let url = CanonicalUrl::parse("https://example.org/film").unwrap();
    let version = NewVersion {
        url: &url,
        group,
        visited_at_s: 1,
        status: 200,
        protocol: "h2",
        tls: None,
        server_address: None,
        request_head: b"",
        response_head: b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n\r\n",
        body: b"",
        truncated: None,
        previous: None,
    };
    store.put_read(&version, made)
}

fn compact(store: &Store) {
    store
        .compact(&CompactOptions { level: 1, ..CompactOptions::default() }, &mut |_, _| {})
        .unwrap();
}

/// It comes back at once and piece by piece.
fn check(store: &Store, id: VersionId, seed: u64) {
    let version = store.read(id).unwrap();
    assert_eq!(version.head.body_bytes, LENGTH);
    assert!(version.body == body(seed));
    let mut out = Vec::new();
    assert_eq!(store.read_to(id, &mut out).unwrap(), version.head);
    assert!(out == version.body);
    assert_sound(store);
}

fn stored_bytes(backend: &MemoryBackend) -> u64 {
    backend.list().unwrap().iter().map(|(_, length)| length).sum()
}

#[test]
fn a_large_body_comes_back_from_packs_and_after_compacting_and_is_given_back_as_a_whole() {
    let backend = Arc::new(MemoryBackend::default());
    let store = open(&backend);
    let page = Kept::page(1, 0, html(1, 0));
    let small = page.put(&store, None).unwrap().id;
    let first = put(&store, 1, &mut Made::new(1)).unwrap();
    let again = put(&store, 1, &mut Made::new(1)).unwrap();
    assert!(!first.whole_body_known && again.whole_body_known);
    assert_eq!(first.digest, nenrin_store::Digest::of(&body(1)));
    assert!(again.new_bytes < 1000, "{} bytes for what was there", again.new_bytes);
    store.sync().unwrap();
    assert_eq!(store.stats().unwrap().unique_bytes, LENGTH + page.body.len() as u64);
    check(&store, first.id, 1);
    for _ in 0..2 {
        compact(&store);
        check(&store, first.id, 1);
        check(&open(&backend), again.id, 1);
        page.check(&store, small);
    }
    store.rebuild_index().unwrap();
    assert_eq!(store.stats().unwrap().unique_bytes, LENGTH + page.body.len() as u64);
    check(&store, first.id, 1);
    store.forget(&[first.id]).unwrap();
    compact(&store);
    check(&store, again.id, 1);
    store.forget(&[again.id]).unwrap();
    compact(&store);
    assert!(stored_bytes(&backend) < 1 << 20, "{} bytes are left", stored_bytes(&backend));
    page.check(&store, small);
    assert_sound(&store);
}

#[test]
fn a_site_that_has_the_same_body_keeps_it_when_the_other_gives_it_back() {
    let backend = Arc::new(MemoryBackend::default());
    let store = open(&backend);
    let first = put(&store, 1, &mut Made::new(1)).unwrap().id;
    let other = put(&store, 2, &mut Made::new(1)).unwrap().id;
    compact(&store);
    store.forget(&[first]).unwrap();
    compact(&store);
    check(&store, other, 1);
    compact(&store);
    check(&store, other, 1);
}

#[test]
fn compacting_while_a_large_body_is_put_keeps_its_pieces() {
    let backend = Arc::new(MemoryBackend::default());
    let store = open(&backend);
    Kept::page(1, 0, html(1, 0)).put(&store, None).unwrap();
    let mut happen = || {
        compact(&store);
        Ok(())
    };
    let id = put(&store, 1, &mut Made { half_way: Some(&mut happen), ..Made::new(3) }).unwrap().id;
    store.sync().unwrap();
    check(&store, id, 3);
    compact(&store);
    check(&store, id, 3);
}

#[test]
fn a_body_that_cannot_be_read_to_its_end_is_no_version_and_is_given_back() {
    let backend = Arc::new(MemoryBackend::default());
    let store = open(&backend);
    let mut happen = || Err(io::Error::other("the spool is gone"));
    let stopped = put(&store, 1, &mut Made { half_way: Some(&mut happen), ..Made::new(3) });
    assert!(stopped.unwrap_err().to_string().contains("the spool is gone"));
    assert_eq!(store.stats().unwrap().versions, 0);
    store.sync().unwrap();
    compact(&store);
    assert!(stored_bytes(&backend) < 1 << 20);
}

#[test]
fn damage_in_a_piece_names_the_version() {
    let backend = Arc::new(MemoryBackend::default());
    let store = open(&backend);
    let id = put(&store, 1, &mut Made::new(1)).unwrap().id;
    store.sync().unwrap();
    let (name, length) = backend.list().unwrap()[0].clone();
    let middle = (length / 2) as usize;
    backend.tamper(&name, |bytes| bytes[middle..middle + 500_000].fill(7));
    for deep in [false, true] {
        let report = open(&backend).verify(deep, &mut |_, _| {}).unwrap();
        assert!(report.damage.iter().any(|damage| damage.versions == [id]), "{report:#?}");
    }
}
