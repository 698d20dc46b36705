//! What is put comes back, also from an archive that was closed, and costs only what is new.

use crate::common;

use std::path::Path;
use std::sync::Arc;

use common::{Kept, assert_sound, html, open, options};
use nenrin_store::{
    CompactOptions, LocalFolder, MemoryBackend, Store, StoreError, StoreOptions, VersionId,
};
use proptest::prelude::*;

#[test]
fn a_version_can_be_read_before_and_after_sync_and_after_opening_again() {
    let backend = Arc::new(MemoryBackend::default());
    let page = Kept::page(1, 1, html(1, 1));
    let id = {
        let store = open(&backend);
        let put = page.put(&store, None).unwrap();
        page.check(&store, put.id);
        store.sync().unwrap();
        page.check(&store, put.id);
        put.id
    };
    let store = open(&backend);
    page.check(&store, id);
    assert_sound(&store);
    assert_eq!(store.head(id).unwrap().url.as_str(), page.url);
}

#[test]
fn the_same_body_is_stored_once_whatever_its_address() {
    let backend = Arc::new(MemoryBackend::default());
    let store = open(&backend);
    let body: Vec<u8> = html(1, 1).repeat(20);
    let first = Kept::page(1, 1, body.clone()).put(&store, None).unwrap();
    store.sync().unwrap();
    let before = store.stats().unwrap().stored_bytes;
    let second = Kept::page(2, 1, body).put(&store, None).unwrap();
    store.sync().unwrap();
    assert!(!first.whole_body_known && second.whole_body_known);
    assert_eq!(first.digest, second.digest);
    assert!(second.id > first.id);
    let grown = store.stats().unwrap().stored_bytes - before;
    assert!(grown < 600, "{grown} bytes for a known body");
    assert_eq!(store.stats().unwrap().bodies, 1);
    assert_eq!(store.stats().unwrap().versions, 2);
}

#[test]
fn a_page_of_many_versions_is_never_stored_as_a_whole_again() {
    let store = open(&Arc::new(MemoryBackend::default()));
    let (mut last, mut first_bytes) = (None, 0);
    let mut kept = Vec::new();
    for visit in 0..60 {
        let page = Kept::page(3, visit, html(3, visit));
        let put = page.put(&store, last).unwrap();
        last = Some(put.id);
        match visit {
            0 => first_bytes = put.new_bytes,
            _ => assert!(put.new_bytes < first_bytes / 2, "{visit}: {put:?}, {first_bytes}"),
        }
        kept.push((put.id, page));
    }
    kept.iter().for_each(|(id, page)| page.check(&store, *id));
    assert_sound(&store);
}

#[test]
fn a_scan_visits_every_version_in_order() {
    let backend = Arc::new(MemoryBackend::default());
    let store = open(&backend);
    let ids: Vec<VersionId> = (0..300)
        .map(|n| Kept::page(n % 50, n / 50, html(n % 50, n / 50)).put(&store, None).unwrap().id)
        .collect();
    let mut seen = Vec::new();
    store
        .scan(&mut |head| {
            seen.push(head.id);
            Ok(())
        })
        .unwrap();
    assert_eq!(seen, ids);
}

#[test]
fn a_version_that_was_never_there_is_not_found() {
    let store = open(&Arc::new(MemoryBackend::default()));
    assert!(matches!(store.read(VersionId(9)), Err(StoreError::NotFound { id: VersionId(9) })));
}

#[test]
fn what_breaks_a_limit_is_refused_by_name() {
    let store = open(&Arc::new(MemoryBackend::default()));
    let mut page = Kept::page(1, 1, vec![]);
    page.response_head = vec![b'x'; (1 << 20) + 1];
    let error = page.put(&store, None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the response head has 1048577 bytes, the archive takes at most 1048576"
    );
}

#[test]
fn forgotten_versions_are_gone_for_ever_and_others_stay() {
    let backend = Arc::new(MemoryBackend::default());
    let store = open(&backend);
    let pages: Vec<Kept> = (0..20).map(|n| Kept::page(n, 1, html(n, 1))).collect();
    let ids: Vec<VersionId> = pages.iter().map(|page| page.put(&store, None).unwrap().id).collect();
    assert_eq!(store.forget(&ids[5..10]).unwrap(), 5);
    assert_eq!(store.forget(&ids[5..10]).unwrap(), 0);
    for store in [store, open(&backend)] {
        for (n, (page, id)) in pages.iter().zip(&ids).enumerate() {
            match (5..10).contains(&n) {
                true => assert!(matches!(store.read(*id), Err(StoreError::NotFound { .. }))),
                false => page.check(&store, *id),
            }
        }
        assert_sound(&store);
    }
}

#[test]
fn an_archive_in_a_folder_survives_the_loss_of_its_index() {
    let folder = tempfile::tempdir().unwrap();
    let index_path = folder.path().join("index.sqlite");
    let options = StoreOptions { index_path: Some(index_path.clone()), ..options() };
    let packs = || Arc::new(LocalFolder::open(folder.path().join("packs")).unwrap());
    let pages: Vec<Kept> = (0..60).map(|n| Kept::page(n, 1, html(n, 1))).collect();
    let ids: Vec<VersionId> = {
        let store = Store::open(packs(), options.clone()).unwrap();
        let ids = pages.iter().map(|page| page.put(&store, None).unwrap().id).collect();
        store.sync().unwrap();
        ids
    };
    std::fs::write(&index_path, b"this is not a database at all, not in the least").unwrap();
    for _ in 0..2 {
        let store = Store::open(packs(), options.clone()).unwrap();
        pages.iter().zip(&ids).for_each(|(page, id)| page.check(&store, *id));
        assert_sound(&store);
        store.rebuild_index().unwrap();
        pages.iter().zip(&ids).for_each(|(page, id)| page.check(&store, *id));
        let next = Kept::page(99, 1, html(99, 1)).put(&store, None).unwrap();
        assert!(next.id > ids[59], "numbers go on after the loss of the index");
        drop(store);
        let _ = std::fs::remove_file(&index_path);
    }
}

#[test]
fn an_object_store_that_takes_only_whole_objects_keeps_everything_too() {
    let backend = Arc::new(MemoryBackend::write_once());
    let store = open(&backend);
    let pages: Vec<Kept> = (0..40).map(|n| Kept::page(n, 1, html(n, 1))).collect();
    let mut ids = Vec::new();
    for page in &pages {
        ids.push(page.put(&store, None).unwrap().id);
        if ids.len() % 7 == 0 {
            store.sync().unwrap();
        }
    }
    store.sync().unwrap();
    for store in [store, open(&backend)] {
        pages.iter().zip(&ids).for_each(|(page, id)| page.check(&store, *id));
        assert_sound(&store);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_bodies_put_in_any_order_with_syncs_and_reopenings_come_back(
        steps in proptest::collection::vec(
            (0u64..6, 0u64..8, proptest::collection::vec(any::<u8>(), 0..300), 0..10), 1..60),
    ) {
        let backend = Arc::new(MemoryBackend::default());
        let mut store = open(&backend);
        let mut kept: Vec<(VersionId, Kept)> = Vec::new();
        for (number, visit, junk, action) in steps {
            let body = if action < 5 { html(number, visit) } else { junk };
            let page = Kept::page(number, visit, body);
            let previous = kept.iter().rev().find(|(_, k)| k.url == page.url).map(|(id, _)| *id);
            kept.push((page.put(&store, previous).unwrap().id, page));
            if action % 3 == 0 {
                store.sync().unwrap();
            }
            if action == 9 {
                store.sync().unwrap();
                store = open(&backend);
            }
        }
        kept.iter().for_each(|(id, page)| page.check(&store, *id));
        assert_sound(&store);
    }
}

#[test]
fn an_index_of_another_format_is_rebuilt_by_a_writer_and_left_alone_by_a_reader() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.sqlite");
    let backend = Arc::new(MemoryBackend::default());
    let options = |read_only| StoreOptions {
        index_path: Some(path.clone()),
        read_only,
        ..StoreOptions::default()
    };
    assert!(!Store::can_use_index(&path).unwrap());
    let page = Kept::page(1, 1, html(1, 1));
    let id = {
        let store = Store::open(backend.clone(), options(false)).unwrap();
        let id = page.put(&store, None).unwrap().id;
        store.sync().unwrap();
        id
    };
    assert!(Store::can_use_index(&path).unwrap());
    let before = {
        let index = rusqlite::Connection::open(&path).unwrap();
        index.pragma_update(None, "user_version", 99).unwrap();
        index.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        std::fs::read(&path).unwrap()
    };
    assert!(!Store::can_use_index(&path).unwrap());
    let refused = Store::open(backend.clone(), options(true));
    assert!(matches!(refused.map(|_| ()), Err(StoreError::IndexUnusable { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), before);
    drop(Store::open(backend.clone(), options(false)).unwrap());
    page.check(&Store::open(backend, options(true)).unwrap(), id);
}

const PAGES: u64 = 40;
const VISITS: u64 = 6;

fn opened(folder: &Path) -> Store {
    // A file system makes a sync take its time, and small packs end while others wait for it.
    let packs = LocalFolder::open(folder.join("packs")).unwrap();
    let options = StoreOptions { index_path: Some(folder.join("index")), ..options() };
    Store::open(Arc::new(packs), options).unwrap()
}

/// Puts pages of its own, and makes them durable after each visit.
fn collect(store: &Store, from: u64) -> Vec<(Kept, VersionId)> {
    let mut kept = Vec::new();
    let mut last = vec![None; PAGES as usize];
    for visit in 0..VISITS {
        for page in from..from + PAGES {
            let version = Kept::page(page, visit, html(page, visit));
            let previous = &mut last[(page - from) as usize];
            let id = version.put(store, *previous).unwrap().id;
            *previous = Some(id);
            kept.push((version, id));
        }
        store.sync().unwrap();
    }
    kept
}

#[test]
fn whoever_puts_while_another_waits_for_the_disk_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path());
    let kept: Vec<(Kept, VersionId)> = std::thread::scope(|scope| {
        let store = &store;
        let collecting: Vec<_> =
            (0..4).map(|n| scope.spawn(move || collect(store, n * PAGES))).collect();
        let compacting = scope.spawn(move || {
            for _ in 0..3 {
                store.compact(&CompactOptions::default(), &mut |_, _| {}).unwrap();
            }
        });
        compacting.join().unwrap();
        collecting.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    kept.iter().for_each(|(version, id)| version.check(&store, *id));
    assert_sound(&store);
    let counted = store.stats().unwrap();
    // Nothing was put since the last sync, so what a crash leaves is all of it.
    drop(store);
    let store = opened(folder.path());
    kept.iter().for_each(|(version, id)| version.check(&store, *id));
    store.rebuild_index().unwrap();
    kept.iter().for_each(|(version, id)| version.check(&store, *id));
    assert_sound(&store);
    let found = store.stats().unwrap();
    assert_eq!(found.versions, 4 * PAGES * VISITS);
    assert_eq!(found.html_bytes, counted.html_bytes, "what sites take was counted as it is stored");
    assert_eq!(found.unique_bytes, counted.unique_bytes);
}
