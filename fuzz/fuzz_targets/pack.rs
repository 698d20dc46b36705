//! A pack of hostile chunks, with checksums that fit, can be opened, checked and read without a
//! panic and without wrong bytes.
#![no_main]

mod foreign;

use std::sync::Arc;

use nenrin_store::{MemoryBackend, Store, StoreOptions, VersionId};

libfuzzer_sys::fuzz_target!(init: foreign::let_decoders_panic(), |input: &[u8]| {
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
            assert_eq!(nenrin_store::Digest::of(&version.body), version.head.digest);
        }
        Ok(())
    });
    let _ = store.read(VersionId(1));
});

/// As docs/format.md says.
fn put_chunk(pack: &mut Vec<u8>, kind: u8, payload: &[u8]) {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&1u64.to_le_bytes());
    hasher.update(&(pack.len() as u64).to_le_bytes());
    hasher.update(&[kind]);
    hasher.update(payload);
    pack.extend_from_slice(&[b'n', b'r', 0xf1, kind]);
    pack.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    pack.extend_from_slice(&hasher.finalize().as_bytes()[..8]);
    pack.extend_from_slice(payload);
}
