//! A crash at every write, a full disk, and what is left afterwards.

use crate::common;

use std::sync::Arc;

use common::{Kept, assert_sound, html, open, options};
use nenrin_store::{FaultPlan, FaultyBackend, MemoryBackend, Store, StoreError, VersionId};

/// Puts pages and syncs now and then until something fails; returns what was acknowledged.
fn work(store: &Store, from: u64) -> (Vec<(VersionId, Kept)>, Option<StoreError>) {
    let (mut synced, mut open) = (Vec::new(), Vec::new());
    for n in from..from + 60 {
        let page = Kept::page(n % 11, n, html(n % 11, n));
        match page.put(store, None) {
            Ok(put) => open.push((put.id, page)),
            Err(error) => return (synced, Some(error)),
        }
        if n % 4 == 0 {
            match store.sync() {
                Ok(()) => synced.append(&mut open),
                Err(error) => return (synced, Some(error)),
            }
        }
        if n % 25 == 24 {
            let gone: Vec<VersionId> = synced.iter().take(2).map(|(id, _)| *id).collect();
            match store.forget(&gone) {
                Ok(_) => {
                    synced.drain(..2);
                    synced.append(&mut open);
                }
                // Either outcome is right for what was being forgotten.
                Err(error) => {
                    synced.drain(..2);
                    return (synced, Some(error));
                }
            }
        }
    }
    (synced, None)
}

#[test]
fn after_a_crash_at_any_write_everything_acknowledged_is_there_and_the_archive_is_sound() {
    let all = FaultyBackend::new(Arc::new(MemoryBackend::default()), FaultPlan::default());
    let all = Arc::new(all);
    work(&open(&all), 0);
    let writes = all.writes();
    assert!(writes > 60, "{writes} writes");
    for crash_at in 0..writes {
        for seed in 0..3 {
            let disk = Arc::new(MemoryBackend::default());
            let plan = FaultPlan { crash_at_write: Some(crash_at), ..FaultPlan::default() };
            let faulty = Arc::new(FaultyBackend::new(disk.clone(), plan));
            let (kept, error) = match Store::open(faulty.clone(), options()) {
                Ok(store) => work(&store, 0),
                Err(error) => (Vec::new(), Some(error)),
            };
            assert!(error.is_some() || !faulty.has_crashed());
            faulty.crash(seed * 7919 + crash_at).unwrap();
            let store = open(&disk);
            kept.iter().for_each(|(id, page)| page.check(&store, *id));
            assert_sound(&store);
            // And life goes on, without giving a number away twice.
            let (more, error) = work(&store, 1000);
            assert!(error.is_none(), "{error:?}");
            let last = kept.last().map(|(id, _)| *id);
            assert!(more.iter().all(|(id, _)| Some(*id) > last));
            kept.iter().chain(&more).skip(4).for_each(|(id, page)| {
                if let Err(StoreError::NotFound { .. }) = store.read(*id) {
                    panic!("version {id} was lost");
                }
                page.check(&store, *id);
            });
        }
    }
}

#[test]
fn an_index_that_survived_the_crash_agrees_with_the_packs_that_did() {
    let folder = tempfile::tempdir().unwrap();
    for crash_at in (0..80).step_by(5) {
        let index_path = Some(folder.path().join(format!("index-{crash_at}")));
        let options = nenrin_store::StoreOptions { index_path, ..options() };
        let disk = Arc::new(MemoryBackend::default());
        let plan = FaultPlan { crash_at_write: Some(crash_at), ..FaultPlan::default() };
        let faulty = Arc::new(FaultyBackend::new(disk.clone(), plan));
        let kept = match Store::open(faulty.clone(), options.clone()) {
            Ok(store) => work(&store, 0).0,
            Err(_) => Vec::new(),
        };
        faulty.crash(crash_at).unwrap();
        let store = Store::open(disk, options).unwrap();
        kept.iter().for_each(|(id, page)| page.check(&store, *id));
        assert_sound(&store);
        assert!(work(&store, 500).1.is_none());
        assert_sound(&store);
    }
}

#[test]
fn a_full_disk_is_named_harms_nothing_and_writing_goes_on_when_there_is_room() {
    for room_bytes in (100..20_000).step_by(613) {
        let disk = Arc::new(MemoryBackend::default());
        let plan = FaultPlan { room_bytes: Some(room_bytes), ..FaultPlan::default() };
        let faulty = Arc::new(FaultyBackend::new(disk.clone(), plan));
        let store = Store::open(faulty.clone(), options()).unwrap();
        let (kept, error) = work(&store, 0);
        assert!(matches!(error, Some(StoreError::NoRoom { .. })), "{error:?}");
        kept.iter().for_each(|(id, page)| page.check(&store, *id));
        drop(store);
        faulty.crash(room_bytes).unwrap();
        let store = open(&disk);
        kept.iter().for_each(|(id, page)| page.check(&store, *id));
        assert_sound(&store);
        assert!(work(&store, 500).1.is_none());
    }
}

#[test]
fn a_put_that_fails_left_nothing_and_can_be_repeated() {
    let disk = Arc::new(MemoryBackend::default());
    let plan = FaultPlan { room_bytes: Some(4_000), ..FaultPlan::default() };
    let faulty = Arc::new(FaultyBackend::new(disk, plan));
    let store = Store::open(faulty.clone(), options()).unwrap();
    let (mut kept, mut failures) = (Vec::new(), 0);
    // Several groups of versions, each written by the put that follows it.
    for n in 0..400 {
        let page = Kept::page(n, n, html(n, n));
        let put = page.put(&store, None).or_else(|error| {
            assert!(matches!(error, StoreError::NoRoom { .. }), "{error:?}");
            failures += 1;
            faulty.free_space();
            page.put(&store, None)
        });
        kept.push((put.unwrap().id, page));
    }
    assert_eq!(failures, 1);
    store.sync().unwrap();
    let ids: Vec<u64> = kept.iter().map(|(id, _)| id.0).collect();
    assert!(
        ids.windows(2).all(|pair| pair[0] + 1 == pair[1]),
        "a failed put took a number: {ids:?}"
    );
    kept.iter().for_each(|(id, page)| page.check(&store, *id));
    assert_eq!(store.stats().unwrap().versions, 400);
    assert_sound(&store);
}
