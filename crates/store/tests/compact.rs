//! Compacting keeps everything, frees space, follows what changed, and survives crashes.

use crate::common;

use std::sync::Arc;

use common::{Kept, assert_sound, html, open, options};
use nenrin_store::{
    CompactOptions, ContentBackend, FaultPlan, FaultyBackend, MemoryBackend, Store, StoreError,
    VersionId,
};

/// Small frames, so that a test sees several of them.
fn small() -> CompactOptions {
    CompactOptions {
        level: 3,
        frame_bytes: 16 << 10,
        prefix_bytes: 4 << 10,
        ..CompactOptions::default()
    }
}

fn put_visit(store: &Store, visit: u64, kept: &mut Vec<(VersionId, Kept)>) {
    for number in 0..24 {
        let page = Kept::page(number, visit, html(number, visit));
        let previous = kept.iter().rev().find(|(_, k)| k.url == page.url).map(|(id, _)| *id);
        kept.push((page.put(store, previous).unwrap().id, page));
    }
    store.sync().unwrap();
}

fn check(store: &Store, kept: &[(VersionId, Kept)]) {
    kept.iter().for_each(|(id, page)| page.check(store, *id));
    assert_sound(store);
}

#[test]
fn everything_comes_back_from_a_compacted_archive_which_is_smaller() {
    let backend = Arc::new(MemoryBackend::default());
    let store = open(&backend);
    let mut kept = Vec::new();
    for round in 0..3 {
        for visit in 0..3 {
            put_visit(&store, 3 * round + visit, &mut kept);
        }
        let report = store.compact(&small(), &mut |_, _| {}).unwrap();
        assert!(report.bytes_after < report.bytes_before, "{report:?}");
        assert_eq!(report.sites, 2);
        // One for each site, and the one that completed the generation.
        assert_eq!(backend.list().unwrap().len(), 3);
        check(&store, &kept);
        check(&open(&backend), &kept);
    }
    store.rebuild_index().unwrap();
    check(&store, &kept);
}

#[test]
fn a_site_without_news_is_not_touched_and_frames_without_news_are_copied() {
    let backend = Arc::new(MemoryBackend::default());
    let store = open(&backend);
    let mut kept = Vec::new();
    (0..4).for_each(|visit| put_visit(&store, visit, &mut kept));
    store.compact(&small(), &mut |_, _| {}).unwrap();
    let again = store.compact(&small(), &mut |_, _| {}).unwrap();
    assert_eq!((again.sites, again.frames_written, again.frames_copied), (0, 0, 0));
    let page = Kept::page(22, 9, html(22, 9));
    kept.push((page.put(&store, None).unwrap().id, page));
    let news = store.compact(&small(), &mut |_, _| {}).unwrap();
    assert_eq!(news.sites, 1);
    assert!(news.frames_copied > news.frames_written, "{news:?}");
    check(&store, &kept);
    check(&open(&backend), &kept);
}

#[test]
fn frames_that_end_for_their_readers_are_not_taken_for_small_ones() {
    let backend = Arc::new(MemoryBackend::default());
    let store = open(&backend);
    let mut kept = Vec::new();
    (0..4).for_each(|visit| put_visit(&store, visit, &mut kept));
    // A megabyte would hold all versions; read one by one, they make frames of about ten.
    let options =
        CompactOptions { frame_bytes: 1 << 20, frame_reading_bytes: 200 << 10, ..small() };
    let all = store.compact(&options, &mut |_, _| {}).unwrap();
    assert!(all.frames_written >= 8, "{all:?}");
    for number in [0, 1] {
        let page = Kept::page(number, 9, html(number, 9));
        kept.push((page.put(&store, None).unwrap().id, page));
    }
    let news = store.compact(&options, &mut |_, _| {}).unwrap();
    assert!(news.frames_copied + 2 >= all.frames_written, "{all:?}, then {news:?}");
    check(&store, &kept);
}

#[test]
fn what_is_forgotten_gives_its_room_back_and_what_others_refer_to_stays() {
    let backend = Arc::new(MemoryBackend::default());
    let store = open(&backend);
    let mut kept = Vec::new();
    (0..6).for_each(|visit| put_visit(&store, visit, &mut kept));
    // The same body is also a page of the other site.
    let mut shared = kept[0].1.clone();
    shared.url = "https://elsewhere.example/".to_owned();
    shared.group = 9;
    kept.push((shared.put(&store, None).unwrap().id, shared));
    store.compact(&small(), &mut |_, _| {}).unwrap();
    let before = store.stats().unwrap();
    let (gone, kept): (Vec<_>, Vec<_>) = kept
        .into_iter()
        .partition(|(_, page)| page.group != 9 && page.visited_at_s < 1_700_000_000 + 4 * 86_400);
    let ids: Vec<VersionId> = gone.iter().map(|(id, _)| *id).collect();
    store.forget(&ids).unwrap();
    let report = store.compact(&small(), &mut |_, _| {}).unwrap();
    let after = store.stats().unwrap();
    assert!(report.bytes_after < report.bytes_before);
    assert!(after.bodies < before.bodies, "{} of {} bodies", after.bodies, before.bodies);
    for store in [&store, &open(&backend)] {
        check(store, &kept);
        for id in &ids {
            assert!(matches!(store.read(*id), Err(StoreError::NotFound { .. })));
        }
    }
    store.rebuild_index().unwrap();
    check(&store, &kept);
    assert!(matches!(store.read(ids[0]), Err(StoreError::NotFound { .. })));
}

#[test]
fn after_a_crash_at_any_write_of_compacting_nothing_is_lost() {
    let run = |plan: FaultPlan, disk: &Arc<MemoryBackend>| {
        let faulty = Arc::new(FaultyBackend::new(disk.clone(), plan));
        let store = Store::open(faulty.clone(), options()).unwrap();
        let mut kept = Vec::new();
        (0..2).for_each(|visit| put_visit(&store, visit, &mut kept));
        let first = store.compact(&small(), &mut |_, _| {});
        let writes = faulty.writes();
        if first.is_ok() {
            put_visit(&store, 2, &mut kept);
            let _ = store.compact(&small(), &mut |_, _| {});
        }
        (faulty, kept, writes)
    };
    let calm = run(FaultPlan::default(), &Arc::new(MemoryBackend::default()));
    let (first, all) = (calm.2, calm.0.writes());
    // The writes of the two compactions; puts must not be among them, they may not fail here.
    for crash_at in (first - 20..first).chain(all - 25..all).filter(|at| *at > 20 && *at < all) {
        let disk = Arc::new(MemoryBackend::default());
        let plan = FaultPlan { crash_at_write: Some(crash_at), ..FaultPlan::default() };
        let (faulty, kept, _) = run(plan, &disk);
        assert!(faulty.has_crashed(), "no crash at {crash_at} of {all}");
        faulty.crash(crash_at).unwrap();
        let store = open(&disk);
        check(&store, &kept);
        store.compact(&small(), &mut |_, _| {}).unwrap();
        check(&store, &kept);
        let left = disk.list().unwrap().len();
        assert!(left <= 6, "{left} packs are left after compacting");
    }
}

#[test]
fn a_full_disk_while_compacting_harms_nothing() {
    let disk = Arc::new(MemoryBackend::default());
    let mut kept = Vec::new();
    {
        let store = open(&disk);
        (0..4).for_each(|visit| put_visit(&store, visit, &mut kept));
    }
    for room_bytes in [10, 1000, 5000] {
        let plan = FaultPlan { room_bytes: Some(room_bytes), ..FaultPlan::default() };
        let faulty = Arc::new(FaultyBackend::new(disk.clone(), plan));
        let store = Store::open(faulty.clone(), options()).unwrap();
        let full = store.compact(&small(), &mut |_, _| {});
        assert!(matches!(full, Err(StoreError::NoRoom { .. })), "{full:?}");
        check(&store, &kept);
        drop(store);
        faulty.crash(room_bytes).unwrap();
        check(&open(&disk), &kept);
    }
}

#[test]
fn damage_in_a_source_keeps_its_pack_and_costs_no_more_than_before() {
    let backend = Arc::new(MemoryBackend::default());
    let mut kept = Vec::new();
    {
        let store = open(&backend);
        (0..3).for_each(|visit| put_visit(&store, visit, &mut kept));
    }
    let (name, length) = backend.list().unwrap()[0].clone();
    // In two places, farther apart than parity restores.
    backend.tamper(&name, |bytes| bytes[length as usize / 2] ^= 1);
    backend.tamper(&name, |bytes| bytes[length as usize / 4] ^= 1);
    let store = open(&backend);
    let readable: Vec<_> = kept.into_iter().filter(|(id, _)| store.read(*id).is_ok()).collect();
    let report = store.compact(&small(), &mut |_, _| {}).unwrap();
    // Also the packs with bodies that were compressed against what is damaged.
    assert!(report.packs_kept_damaged.contains(&name), "{report:?}");
    readable.iter().for_each(|(id, page)| page.check(&store, *id));
    readable.iter().for_each(|(id, page)| page.check(&open(&backend), *id));
}

#[test]
fn writing_goes_on_while_compacting() {
    let backend = Arc::new(MemoryBackend::default());
    let store = open(&backend);
    let mut kept = Vec::new();
    (0..4).for_each(|visit| put_visit(&store, visit, &mut kept));
    let forgotten: Vec<VersionId> = kept.drain(..24).map(|(id, _)| id).collect();
    store.forget(&forgotten).unwrap();
    let mut more = Vec::new();
    store
        .compact(&small(), &mut |_, _| {
            let visit = 10 + more.len() as u64;
            // A body whose only version was forgotten comes again, just as it is being dropped.
            let back = Kept::page(3, visit, html(3, 0));
            more.push((back.put(&store, None).unwrap().id, back));
            let page = Kept::page(5, visit, html(5, visit));
            let previous = kept.iter().rev().find(|(_, k)| k.url == page.url).map(|(id, _)| *id);
            more.push((page.put(&store, previous).unwrap().id, page));
        })
        .unwrap();
    assert!(!more.is_empty());
    kept.append(&mut more);
    check(&store, &kept);
    store.sync().unwrap();
    check(&open(&backend), &kept);
}

#[test]
fn a_site_in_portions_comes_back_and_frames_of_portions_without_news_are_copied() {
    let backend = Arc::new(MemoryBackend::default());
    let store = open(&backend);
    let options = CompactOptions { portion_versions: 20, ..small() };
    let mut kept = Vec::new();
    (0..6).for_each(|visit| put_visit(&store, visit, &mut kept));
    store.compact(&options, &mut |_, _| {}).unwrap();
    check(&store, &kept);
    // One page has more versions than a portion takes.
    for visit in 6..60 {
        let page = Kept::page(22, visit, html(22, visit));
        kept.push((page.put(&store, None).unwrap().id, page));
    }
    let news = store.compact(&options, &mut |_, _| {}).unwrap();
    assert!(news.frames_copied > 0, "{news:?}");
    check(&store, &kept);
    let page = Kept::page(22, 60, html(22, 60));
    kept.push((page.put(&store, None).unwrap().id, page));
    let news = store.compact(&options, &mut |_, _| {}).unwrap();
    assert!(news.frames_copied > news.frames_written, "{news:?}");
    check(&store, &kept);
    check(&open(&backend), &kept);
}

#[test]
fn what_an_interrupted_compaction_wrote_is_given_back() {
    let mut has_written = 0;
    for crash_at in (8..60).step_by(3) {
        let disk = Arc::new(MemoryBackend::default());
        let mut kept = Vec::new();
        put_visit(&open(&disk), 1, &mut kept);
        let plan = FaultPlan { crash_at_write: Some(crash_at), ..FaultPlan::default() };
        let faulty = Arc::new(FaultyBackend::new(disk.clone(), plan));
        let outcome = open(&faulty).compact(&small(), &mut |_, _| {});
        if outcome.is_ok() {
            break;
        }
        faulty.crash(crash_at).unwrap();
        let packs = |disk: &MemoryBackend| disk.list().unwrap().len();
        let left = packs(&disk);
        let store = open(&disk);
        has_written += u64::from(packs(&disk) < left);
        check(&store, &kept);
        let names: Vec<String> = disk.list().unwrap().into_iter().map(|(name, _)| name).collect();
        assert!(!names.contains(&"compacting".to_owned()), "{names:?}");
        store.compact(&small(), &mut |_, _| {}).unwrap();
        check(&store, &kept);
        assert_eq!(packs(&disk), 3);
    }
    assert!(has_written > 3, "{has_written}");
}

#[test]
fn on_a_full_disk_compacting_leaves_as_much_room_as_before() {
    for room_bytes in (1_000..12_000).step_by(1_000) {
        let disk = Arc::new(MemoryBackend::default());
        let mut kept = Vec::new();
        put_visit(&open(&disk), 1, &mut kept);
        drop(
            open(&disk).compact(&CompactOptions { room_bytes: Some(0), ..small() }, &mut |_, _| {}),
        );
        let before = disk.list().unwrap();
        let plan = FaultPlan { room_bytes: Some(room_bytes), ..FaultPlan::default() };
        let faulty = Arc::new(FaultyBackend::new(disk.clone(), plan));
        let store = open(&faulty);
        match store.compact(&small(), &mut |_, _| {}) {
            Ok(_) => break,
            Err(StoreError::NoRoom { .. }) => {}
            Err(other) => panic!("{other}"),
        }
        check(&store, &kept);
        assert_eq!(faulty.list().unwrap(), before, "{room_bytes}");
        check(&open(&faulty), &kept);
    }
}

#[test]
fn compacting_begins_only_with_enough_room_and_says_how_much() {
    let backend = Arc::new(MemoryBackend::default());
    let store = open(&backend);
    let mut kept = Vec::new();
    put_visit(&store, 1, &mut kept);
    let with_room = |room_bytes| CompactOptions { room_bytes: Some(room_bytes), ..small() };
    let refused = store.compact(&with_room(100), &mut |_, _| {}).unwrap_err();
    let StoreError::NoRoomToCompact { needed_bytes, free_bytes: 100 } = refused else {
        panic!("{refused}")
    };
    assert!(needed_bytes > store.stats().unwrap().stored_bytes);
    check(&store, &kept);
    store.compact(&with_room(needed_bytes), &mut |_, _| {}).unwrap();
    check(&store, &kept);
}

#[test]
fn what_an_interrupted_compaction_finished_is_not_done_again() {
    // Two sites, so that the first is finished before the second.
    let calm = Arc::new(MemoryBackend::default());
    let mut kept = Vec::new();
    put_visit(&open(&calm), 1, &mut kept);
    let whole = open(&calm).compact(&small(), &mut |_, _| {}).unwrap();
    let mut most_copied = 0;
    for crash_at in (8..200).step_by(2) {
        let disk = Arc::new(MemoryBackend::default());
        let mut kept = Vec::new();
        put_visit(&open(&disk), 1, &mut kept);
        let plan = FaultPlan { crash_at_write: Some(crash_at), ..FaultPlan::default() };
        let faulty = Arc::new(FaultyBackend::new(disk.clone(), plan));
        if open(&faulty).compact(&small(), &mut |_, _| {}).is_ok() {
            break;
        }
        faulty.crash(crash_at).unwrap();
        let store = open(&disk);
        check(&store, &kept);
        let again = store.compact(&small(), &mut |_, _| {}).unwrap();
        check(&store, &kept);
        assert!(again.frames_written + again.frames_copied <= whole.frames_written + 1);
        most_copied = most_copied.max(again.frames_copied);
        let after = store.compact(&small(), &mut |_, _| {}).unwrap();
        assert_eq!(after.frames_written, 0, "nothing is left to do");
    }
    assert!(most_copied >= whole.frames_written / 2, "{most_copied} of {whole:?}");
}

#[test]
fn progress_moves_and_ends_at_its_end() {
    let store = open(&Arc::new(MemoryBackend::default()));
    let mut kept = Vec::new();
    (0..3).for_each(|visit| put_visit(&store, visit, &mut kept));
    let mut steps = Vec::new();
    store.compact(&small(), &mut |done, all| steps.push((done, all))).unwrap();
    let shares: Vec<u64> = steps.iter().map(|(done, all)| done * 100 / all.max(&1)).collect();
    let distinct: std::collections::BTreeSet<u64> = shares.iter().copied().collect();
    assert!(distinct.len() > 20, "{distinct:?}");
    let (done, all) = steps.last().unwrap();
    assert_eq!(done, all);
    assert!(steps.iter().all(|(done, all)| done <= all));
}

/// Bytes that nothing else has.
fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        b' ' + (state >> 33) as u8 % 90
    };
    (0..bytes).map(|_| next()).collect()
}

/// Front pages of a day: the same news on all, and a little of their own that stays.
fn front_page(number: u64, visit: u64) -> Vec<u8> {
    [&b"<html><p>"[..], &noise(1000 + visit, 6000), b"<p>", &noise(number, 300)].concat()
}

fn put_front_pages(store: &Store, visit: u64, kept: &mut Vec<(VersionId, Kept)>) {
    for number in (0..24).step_by(2) {
        let page = Kept::page(number, visit, front_page(number, visit));
        kept.push((page.put(store, None).unwrap().id, page));
    }
    store.sync().unwrap();
}

#[test]
fn pages_that_share_the_news_of_their_day_are_put_together_by_day() {
    let backend = Arc::new(MemoryBackend::default());
    let store = open(&backend);
    let mut kept = Vec::new();
    (0..6).for_each(|visit| put_front_pages(&store, visit, &mut kept));
    let options = CompactOptions { frame_bytes: 64 << 10, ..small() };
    let report = store.compact(&options, &mut |_, _| {}).unwrap();
    // Each day's news is there once, or twice where a frame ends; by page it would be there for
    // each frame of pages, six days of it in each.
    let html_bytes = store.stats().unwrap().html_bytes;
    assert!(html_bytes < 6 * 6000 * 5 / 4 + 12 * 300 * 6, "{html_bytes} bytes, {report:?}");
    check(&store, &kept);
    check(&open(&backend), &kept);

    // A new day makes new frames and leaves the others as they are.
    put_front_pages(&store, 6, &mut kept);
    let news = store.compact(&options, &mut |_, _| {}).unwrap();
    assert!(news.frames_copied >= report.frames_written - 1, "{report:?}, then {news:?}");
    assert!(news.frames_written <= 2, "{news:?}");
    check(&store, &kept);
    check(&open(&backend), &kept);
    store.rebuild_index().unwrap();
    check(&store, &kept);
}
