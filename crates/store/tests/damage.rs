//! Truncated, bit-flipped, missing, duplicated and foreign packs.

use crate::common;

use std::sync::Arc;

use common::{Kept, assert_sound, html, open};
use nenrin_store::{
    CompactOptions, ContentBackend, MemoryBackend, Store, StoreError, StoreOptions, VersionId,
};

fn archive() -> (Arc<MemoryBackend>, Vec<(VersionId, Kept)>) {
    let backend = Arc::new(MemoryBackend::default());
    let store = open(&backend);
    let mut kept = Vec::new();
    for n in 0..120 {
        let page = Kept::page(n, 1, html(n, 1));
        kept.push((page.put(&store, None).unwrap().id, page));
        if n % 5 == 4 {
            store.sync().unwrap();
        }
    }
    (backend, kept)
}

/// Everything is exact or refused as damaged; returns how many were refused.
fn count_lost(store: &Store, kept: &[(VersionId, Kept)]) -> usize {
    let lost = |(id, page): &&(VersionId, Kept)| match store.read(*id) {
        Ok(version) => {
            assert!(version.body == page.body, "wrong bytes for {id}");
            assert_eq!(version.head.response_head, page.response_head);
            false
        }
        Err(StoreError::Damaged { .. } | StoreError::NotFound { .. }) => true,
        Err(other) => panic!("{other}"),
    };
    kept.iter().filter(lost).count()
}

fn check_damage(backend: &Arc<MemoryBackend>, kept: &[(VersionId, Kept)], at_most: usize) {
    let store = open(backend);
    let lost = count_lost(&store, kept);
    assert!(lost <= at_most, "{lost} versions lost, at most {at_most} expected");
    // What it costs is known without restoring every version, too.
    for deep in [false, true] {
        let report = store.verify(deep, &mut |_, _| {}).unwrap();
        assert!(!report.is_sound(), "the damage is not seen");
        for (id, _) in kept {
            let named = report.damage.iter().any(|damage| damage.versions.contains(id));
            // What the index never knew cannot be named.
            let is_known = !matches!(store.read(*id), Err(StoreError::NotFound { .. }));
            let is_readable = store.read(*id).is_ok();
            assert_eq!(named, is_known && !is_readable, "{id}, deep: {deep}, {report:#?}");
        }
    }
    // What is undamaged can be written to as before.
    let page = Kept::page(999, 1, html(999, 1));
    let id = page.put(&store, None).unwrap().id;
    store.sync().unwrap();
    page.check(&open(backend), id);
}

#[test]
fn a_flipped_bit_anywhere_costs_nothing_is_named_and_undone() {
    let (collected, kept) = archive();
    let compacted = copy(&collected);
    open(&compacted).compact(&small_frames(), &mut |_, _| {}).unwrap();
    for pristine in [collected, compacted] {
        for (name, length) in pristine.list().unwrap() {
            // Every byte of heads at both ends, and some of the rest.
            let ends = (0..24).chain(length as usize - 30..length as usize);
            for at in ends.chain((0..length as usize).step_by(1009)) {
                let backend = copy(&pristine);
                let store = open(&backend);
                backend.tamper(&name, |bytes| bytes[at] ^= 1 << (at % 8));
                assert_eq!(count_lost(&store, &kept), 0, "{name} byte {at}");
                for deep in [false, true] {
                    let report = store.verify(deep, &mut |_, _| {}).unwrap();
                    let [damage] = &report.damage[..] else { panic!("{report:#?}") };
                    assert!(damage.what.contains("parity restores them"), "{damage:?}");
                    assert!(damage.place.starts_with(&name) && damage.versions_lost == 0);
                }
                // An index that is made from damaged packs is the same.
                assert_eq!(count_lost(&open(&copy(&backend)), &kept), 0, "{name} byte {at}");
                assert_eq!(store.repair(&mut |_, _| {}).unwrap(), 1);
                assert_sound(&store);
                assert_eq!(bytes_of(&backend, &name), bytes_of(&pristine, &name));
            }
        }
    }
}

#[test]
fn compacting_undoes_damage_that_parity_can() {
    let (pristine, kept) = archive();
    let (name, length) = pristine.list().unwrap()[1].clone();
    for at in (0..length as usize).step_by(1487) {
        let backend = copy(&pristine);
        let store = open(&backend);
        backend.tamper(&name, |bytes| bytes[at] ^= 0x20);
        let report = store.compact(&small_frames(), &mut |_, _| {}).unwrap();
        assert!(report.packs_kept_damaged.is_empty(), "byte {at}: {report:?}");
        assert_eq!(count_lost(&store, &kept), 0, "byte {at}");
        assert_sound(&store);
    }
}

#[test]
fn damage_beyond_parity_costs_one_chunk_and_is_named() {
    let (pristine, kept) = archive();
    let (name, length) = pristine.list().unwrap()[1].clone();
    for at in (0..length as usize - 400).step_by(197) {
        let backend = copy(&pristine);
        backend.tamper(&name, |bytes| spoil(bytes, at));
        let store = open(&backend);
        if !store.verify(false, &mut |_, _| {}).unwrap().is_sound() {
            check_damage(&backend, &kept, 5);
        }
    }
}

/// Damages the chunk there, and the parity chunk that would restore it.
fn spoil(bytes: &mut [u8], at: usize) {
    bytes[at] ^= 0x10;
    let parity = memchr::memmem::find(&bytes[at + 1..], PARITY).unwrap();
    bytes[at + 1 + parity + 9] ^= 1;
}

const PARITY: &[u8] = b"nr\xf1\x07";

fn small_frames() -> CompactOptions {
    CompactOptions { frame_bytes: 4 << 10, ..CompactOptions::default() }
}

fn bytes_of(backend: &MemoryBackend, name: &str) -> Vec<u8> {
    let length = backend.list().unwrap().into_iter().find(|(listed, _)| listed == name).unwrap().1;
    backend.read(name, 0, length as usize).unwrap()
}

#[test]
fn a_collected_pack_cut_short_loses_what_was_cut_off_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let whole = Arc::new(MemoryBackend::default());
    let store = Store::open(whole.clone(), StoreOptions::default()).unwrap();
    let mut kept = Vec::new();
    for n in 0..14 {
        let body = html(n, 1)[..90 + n as usize].to_vec();
        let page = Kept::page(n, 1, body);
        kept.push((page.put(&store, None).unwrap().id, page));
        if n == 8 {
            store.sync().unwrap();
        }
    }
    store.sync().unwrap();
    drop(store);
    let (name, length) = whole.list().unwrap()[0].clone();
    let ends = ends_of_bodies(&bytes_of(&whole, &name));
    assert_eq!(ends.len(), kept.len());
    for length in 0..length {
        let bodies_left = ends.iter().filter(|end| **end <= length as usize).count();
        let cut = copy(&whole);
        cut.tamper(&name, |bytes| bytes.truncate(length as usize));
        let store = open(&cut);
        let lost = count_lost(&store, &kept[..bodies_left]);
        assert_eq!(lost, 0, "cut to {length} of {bodies_left} versions");
        drop(store);
        if length % 61 == 0 {
            assert_sound(&open(&cut));
            // An index that knows how long the pack was names what was lost.
            let index_path = Some(folder.path().join(format!("index-{length}")));
            let options = StoreOptions { index_path, ..StoreOptions::default() };
            let cut = copy(&whole);
            drop(Store::open(cut.clone(), options.clone()).unwrap());
            cut.tamper(&name, |bytes| bytes.truncate(length as usize));
            let store = Store::open(cut, options).unwrap();
            assert_eq!(count_lost(&store, &kept), kept.len() - bodies_left);
            let report = store.verify(false, &mut |_, _| {}).unwrap();
            let [damage] = &report.damage[..] else { panic!("{report:#?}") };
            assert_eq!(damage.versions_lost as usize, kept.len() - bodies_left);
        }
    }
}

/// Where the bodies chunks of a pack end, by the document alone.
fn ends_of_bodies(pack: &[u8]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut at = 0;
    while at < pack.len() {
        let payload_bytes = u32::from_le_bytes(pack[at + 4..at + 8].try_into().unwrap());
        let end = at + 16 + payload_bytes as usize;
        if pack[at + 3] == 2 {
            ends.push(end);
        }
        at = end;
    }
    ends
}

#[test]
fn a_pack_cut_short_costs_what_was_cut_off_and_no_more() {
    let (pristine, kept) = archive();
    let (name, length) = pristine.list().unwrap()[1].clone();
    let store = open(&pristine);
    let in_pack = kept.len() / store.stats().unwrap().packs as usize + 10;
    for keep in [length - 1, length / 2, 200, 30] {
        let backend = copy(&pristine);
        // The index remembers how long the pack was.
        let store = open(&backend);
        backend.tamper(&name, |bytes| bytes.truncate(keep as usize));
        let report = store.verify(false, &mut |_, _| {}).unwrap();
        assert!(report.damage.iter().any(|damage| damage.what == "pack is cut short"));
        assert!(count_lost(&store, &kept) <= in_pack);
        let reopened = open(&backend);
        assert!(count_lost(&reopened, &kept) <= in_pack);
    }
}

#[test]
fn a_compacted_pack_cut_short_costs_what_was_cut_off_and_no_more() {
    let (pristine, kept) = archive();
    open(&pristine).compact(&small_frames(), &mut |_, _| {}).unwrap();
    let (name, length) = pristine.list().unwrap()[0].clone();
    let in_pack = {
        let backend = copy(&pristine);
        backend.delete(&name).unwrap();
        count_lost(&open(&backend), &kept)
    };
    assert!(in_pack >= kept.len() / 3, "{in_pack} versions");
    for tenths in 3..10 {
        let backend = copy(&pristine);
        // The index remembers how long the pack was.
        let store = open(&backend);
        backend.tamper(&name, |bytes| bytes.truncate((length * tenths / 10) as usize));
        let lost = count_lost(&store, &kept);
        let cut_off = in_pack * (10 - tenths as usize) / 10;
        // A frame may be cut through, and records take space in front of all bodies.
        assert!(lost > 0 && lost <= cut_off + in_pack / 3, "{lost} of {in_pack} at {tenths}/10");
        for deep in [false, true] {
            let report = store.verify(deep, &mut |_, _| {}).unwrap();
            let [damage] = &report.damage[..] else { panic!("{report:#?}") };
            assert_eq!((damage.what.as_str(), &damage.place), ("pack is cut short", &name));
            assert_eq!(damage.versions_lost, lost as u64);
        }
        assert_eq!(count_lost(&open(&backend), &kept), lost, "with an index of the rest");
    }
}

#[test]
fn what_many_frames_share_is_there_more_than_once() {
    let backend = Arc::new(MemoryBackend::default());
    let store = open(&backend);
    let mut kept = Vec::new();
    let menu = html(1000, 1);
    for n in 0..500 {
        let page = Kept::page(n * 2, 1, [&menu[..], &html(n, 1)].concat());
        kept.push((page.put(&store, None).unwrap().id, page));
    }
    let options =
        CompactOptions { frame_bytes: 4 << 10, prefix_bytes: 2 << 10, ..CompactOptions::default() };
    store.compact(&options, &mut |_, _| {}).unwrap();
    // Once more, with frames that are copied.
    let news = Kept::page(2, 2, html(2, 2));
    kept.push((news.put(&store, None).unwrap().id, news));
    assert!(store.compact(&options, &mut |_, _| {}).unwrap().frames_copied > 100);
    drop(store);
    let largest = backend.list().unwrap().into_iter().max_by_key(|(_, length)| *length);
    let (name, length) = largest.unwrap();
    let bytes = backend.read(&name, 0, length as usize).unwrap();
    let prefixes = memchr::memmem::find_iter(&bytes, b"nr\xf1\x05").collect::<Vec<_>>();
    assert!(prefixes.len() >= 4, "{} prefixes", prefixes.len());
    for at in prefixes {
        let damaged = copy(&backend);
        damaged.tamper(&name, |bytes| spoil(bytes, at + 30));
        let lost = count_lost(&open(&damaged), &kept);
        assert!(lost > 0 && lost < kept.len() / 2, "{lost} of {}", kept.len());
        check_damage(&damaged, &kept, lost);
    }
}

#[test]
fn a_missing_pack_costs_its_versions_and_is_named_with_them() {
    let (backend, kept) = archive();
    let store = open(&backend);
    let (name, _) = backend.list().unwrap()[1].clone();
    backend.delete(&name).unwrap();
    let report = store.verify(true, &mut |_, _| {}).unwrap();
    let missing = report.damage.iter().find(|damage| damage.what == "pack is missing");
    assert_eq!(missing.map(|damage| &damage.place), Some(&name));
    let named: u64 = report.damage.iter().map(|damage| damage.versions_lost).sum();
    let lost = count_lost(&store, &kept);
    assert!(lost > 0 && lost < kept.len() / 2);
    assert_eq!(named, lost as u64);
}

#[test]
fn a_copy_of_a_pack_under_another_number_is_named_and_changes_nothing() {
    let (backend, kept) = archive();
    let (name, length) = backend.list().unwrap()[1].clone();
    let bytes = backend.read(&name, 0, length as usize).unwrap();
    backend.plant("pack-0000000099", bytes.clone());
    check_damage(&backend, &kept, 0);
    let report = open(&backend).verify(false, &mut |_, _| {}).unwrap();
    let [damage] = &report.damage[..] else { panic!("{report:#?}") };
    assert_eq!(damage.what, format!("it is a copy of {name}"));
    assert_eq!(backend.read("pack-0000000099", 0, bytes.len()).unwrap(), bytes);
}

#[test]
fn a_pack_of_a_newer_format_is_refused_by_its_number() {
    let (backend, _) = archive();
    let newer = newer_pack(98);
    backend.plant("pack-0000000098", newer);
    let error = Store::open(backend, common::options()).err().unwrap();
    assert_eq!(
        error.to_string(),
        "pack-0000000098 has format 2, this program reads up to 1; use a newer nenrin"
    );
}

/// The format is documented: this writes a pack head by the document alone.
fn newer_pack(number: u64) -> Vec<u8> {
    let payload = [2, 0, number as u8, 1, 0, 0];
    let mut checked = number.to_le_bytes().to_vec();
    checked.extend_from_slice(&0u64.to_le_bytes());
    checked.push(1);
    checked.extend_from_slice(&payload);
    let mut chunk = b"nr\xf1\x01".to_vec();
    chunk.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    chunk.extend_from_slice(&blake3::hash(&checked).as_bytes()[..8]);
    chunk.extend_from_slice(&payload);
    chunk
}

#[test]
fn a_body_that_looks_like_chunks_is_not_taken_for_one_behind_damage() {
    let backend = Arc::new(MemoryBackend::default());
    let store = open(&backend);
    let page = Kept::page(1, 1, newer_pack(1));
    let id = page.put(&store, None).unwrap().id;
    store.sync().unwrap();
    let (name, length) = backend.list().unwrap()[0].clone();
    // The head of the chunk that holds the body is destroyed, the body itself is not.
    let pack = backend.read(&name, 0, length as usize).unwrap();
    let at = memchr::memmem::find_iter(&pack, b"nr\xf1\x02").next().unwrap();
    backend.tamper(&name, |bytes| spoil(bytes, at));
    let store = open(&backend);
    assert!(store.read(id).is_err());
}

#[test]
fn an_index_that_disagrees_is_found_out_and_rebuilt() {
    let folder = tempfile::tempdir().unwrap();
    let index_path = folder.path().join("index.sqlite");
    let options = StoreOptions { index_path: Some(index_path.clone()), ..common::options() };
    let (backend, kept) = archive();
    drop(Store::open(backend.clone(), options.clone()).unwrap());
    // All versions in the middle of the first chunk of a pack, and places that make no sense.
    for places in ["0181808080108002", "ff"] {
        let sql = rusqlite::Connection::open(&index_path).unwrap();
        let change = format!(
            "UPDATE versions SET places = X'{places}'; DELETE FROM bodies WHERE slot % 2 = 0;"
        );
        sql.execute_batch(&change).unwrap();
        drop(sql);
        let store = Store::open(backend.clone(), options.clone()).unwrap();
        assert_eq!(count_lost(&store, &kept), kept.len());
        assert!(!store.verify(false, &mut |_, _| {}).is_ok_and(|report| report.is_sound()));
        store.rebuild_index().unwrap();
        assert_eq!(count_lost(&store, &kept), 0);
        assert_sound(&store);
    }
}

fn copy(from: &MemoryBackend) -> Arc<MemoryBackend> {
    let backend = Arc::new(MemoryBackend::default());
    for (name, length) in from.list().unwrap() {
        backend.plant(&name, from.read(&name, 0, length as usize).unwrap());
    }
    backend
}
