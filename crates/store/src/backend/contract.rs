//! The suite that every backend runs.

use std::sync::Arc;

use super::server::ObjectServer;
use super::*;

fn backends() -> Vec<(&'static str, Arc<dyn ContentBackend>, Option<tempfile::TempDir>)> {
    let folder = tempfile::tempdir().unwrap();
    let local: Arc<dyn ContentBackend> =
        Arc::new(LocalFolder::open(folder.path().join("local")).unwrap());
    let behind_faults =
        FaultyBackend::new(Arc::new(MemoryBackend::default()), FaultPlan::default());
    let objects = |name: &str| -> Arc<dyn ContentBackend> {
        let place = format!("file://{}", folder.path().join(name).display());
        let place = ObjectPlace::open(&place).unwrap();
        let local = folder.path().join(format!("{name}-local"));
        Arc::new(ObjectBackend::writing(&place, 3, 7, local, 1 << 20).unwrap())
    };
    let in_objects = objects("objects");
    vec![
        ("objects in a folder", in_objects, None),
        ("local folder", local, Some(folder)),
        ("memory", Arc::new(MemoryBackend::default()), None),
        ("write once", Arc::new(MemoryBackend::write_once()), None),
        ("behind faults", Arc::new(behind_faults), None),
        ("gathered", gathering(MemoryBackend::default(), 8), None),
        ("gathered, write once", gathering(MemoryBackend::write_once(), 1 << 20), None),
    ]
}

/// What every backend must do, each time from the beginning.
const LAWS: [fn(&str, &dyn ContentBackend); 6] = [
    what_is_appended_can_be_read_at_once_in_any_range,
    reading_beyond_the_end_or_what_is_not_there_is_an_error_of_its_own,
    an_append_overwrites_what_lies_beyond_its_offset_and_leaves_no_hole,
    a_backend_that_can_grow_extends_and_cuts_a_synced_object_the_other_refuses,
    bytes_that_are_there_can_be_overwritten_where_objects_grow,
    deleting_twice_is_no_error,
];

#[test]
fn every_backend_keeps_the_laws() {
    for law in LAWS {
        for (name, backend, _folder) in backends() {
            law(name, &*backend);
        }
    }
}

#[test]
fn a_server_of_objects_keeps_the_laws() {
    let Some(server) = ObjectServer::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let place = ObjectPlace::open(&server.address("laws")).unwrap();
    for (partition, law) in (0..).zip(LAWS) {
        let local = folder.path().join(partition.to_string());
        let backend = ObjectBackend::writing(&place, partition, 1, local, 1 << 20).unwrap();
        law("objects on a server", &backend);
    }
    place.claim("one").unwrap();
    place.claim("one").unwrap();
    let other = place.claim("two").unwrap_err();
    assert!(format!("{other:?}").contains("another archive"), "{other:?}");
    let elsewhere = server.address("x").replace(ObjectServer::BUCKET, "no-such-bucket");
    let missing = ObjectPlace::open(&elsewhere).unwrap().claim("one");
    assert!(missing.is_err(), "the bucket is not there");
}

fn gathering(inner: MemoryBackend, limit_bytes: usize) -> Arc<dyn ContentBackend> {
    Arc::new(GatheringBackend::new(Arc::new(inner), limit_bytes))
}

#[test]
fn what_is_gathered_is_written_in_few_pieces_and_again_after_a_failure() {
    let faulty = |room_bytes| {
        let plan = FaultPlan { room_bytes, ..FaultPlan::default() };
        Arc::new(FaultyBackend::new(Arc::new(MemoryBackend::default()), plan))
    };
    let inner = faulty(None);
    let gathering = GatheringBackend::new(inner.clone(), 100);
    (0..50).for_each(|n| gathering.append("pack-1", 10 * n, b"0123456789").unwrap());
    assert!(inner.writes() <= 6, "{} writes", inner.writes());
    assert_eq!(gathering.read("pack-1", 485, 15).unwrap(), b"567890123456789");
    gathering.sync("pack-1").unwrap();
    assert_eq!(inner.list().unwrap(), [("pack-1".to_owned(), 500)]);

    let full = GatheringBackend::new(faulty(Some(25)), 100);
    (0..4).for_each(|n| full.append("pack-1", 10 * n, b"0123456789").unwrap());
    for _ in 0..2 {
        let sync = full.sync("pack-1");
        assert!(matches!(sync, Err(BackendError::NoRoom { .. })), "{sync:?}");
    }
}

fn what_is_appended_can_be_read_at_once_in_any_range(name: &str, backend: &dyn ContentBackend) {
    backend.append("pack-1", 0, b"hello ").unwrap();
    backend.append("pack-1", 6, b"world").unwrap();
    assert_eq!(backend.read("pack-1", 0, 11).unwrap(), b"hello world", "{name}");
    assert_eq!(backend.read("pack-1", 4, 4).unwrap(), b"o wo", "{name}");
    backend.sync("pack-1").unwrap();
    assert_eq!(backend.read("pack-1", 4, 4).unwrap(), b"o wo", "{name}");
    assert_eq!(backend.list().unwrap(), [("pack-1".to_owned(), 11)], "{name}");
}

fn reading_beyond_the_end_or_what_is_not_there_is_an_error_of_its_own(
    name: &str,
    backend: &dyn ContentBackend,
) {
    backend.append("pack-1", 0, b"hello").unwrap();
    let short = backend.read("pack-1", 3, 3);
    assert!(matches!(short, Err(BackendError::TooShort { .. })), "{name}: {short:?}");
    let huge = backend.read("pack-1", u64::MAX, 3);
    assert!(matches!(huge, Err(BackendError::TooShort { .. })), "{name}: {huge:?}");
    let absent = backend.read("pack-2", 0, 1);
    assert!(matches!(absent, Err(BackendError::NotFound { .. })), "{name}: {absent:?}");
    assert_eq!(backend.list().unwrap().len(), 1, "{name}: reading creates nothing");
}

fn an_append_overwrites_what_lies_beyond_its_offset_and_leaves_no_hole(
    name: &str,
    backend: &dyn ContentBackend,
) {
    backend.append("pack-1", 0, b"hello junk junk").unwrap();
    backend.append("pack-1", 6, b"you").unwrap();
    assert_eq!(backend.list().unwrap(), [("pack-1".to_owned(), 9)], "{name}");
    assert_eq!(backend.read("pack-1", 0, 9).unwrap(), b"hello you", "{name}");
    assert!(backend.append("pack-1", 20, b"far").is_err(), "{name}");
}

fn a_backend_that_can_grow_extends_and_cuts_a_synced_object_the_other_refuses(
    name: &str,
    backend: &dyn ContentBackend,
) {
    backend.append("pack-1", 0, b"one").unwrap();
    backend.sync("pack-1").unwrap();
    assert_eq!(backend.append("pack-1", 3, b"two").is_ok(), backend.can_grow(), "{name}");
    if backend.can_grow() {
        backend.truncate("pack-1", 4).unwrap();
        assert_eq!(backend.read("pack-1", 0, 4).unwrap(), b"onet", "{name}");
        assert!(backend.read("pack-1", 0, 5).is_err(), "{name}");
    }
}

fn bytes_that_are_there_can_be_overwritten_where_objects_grow(
    name: &str,
    backend: &dyn ContentBackend,
) {
    backend.append("pack-1", 0, b"one two").unwrap();
    backend.sync("pack-1").unwrap();
    assert_eq!(backend.overwrite("pack-1", 4, b"TW").is_ok(), backend.can_grow(), "{name}");
    let expected: &[u8] = if backend.can_grow() { b"one TWo" } else { b"one two" };
    assert_eq!(backend.read("pack-1", 0, 7).unwrap(), expected, "{name}");
    assert!(backend.overwrite("pack-1", 6, b"xx").is_err(), "{name}");
    assert_eq!(backend.list().unwrap(), [("pack-1".to_owned(), 7)], "{name}");
}

fn deleting_twice_is_no_error(name: &str, backend: &dyn ContentBackend) {
    backend.append("pack-1", 0, b"one").unwrap();
    backend.sync("pack-1").unwrap();
    backend.delete("pack-1").unwrap();
    backend.delete("pack-1").unwrap();
    assert!(backend.list().unwrap().is_empty(), "{name}");
    assert!(backend.read("pack-1", 0, 1).is_err(), "{name}");
    backend.append("pack-1", 0, b"again").unwrap();
    assert_eq!(backend.read("pack-1", 0, 5).unwrap(), b"again", "{name}");
}

#[test]
fn a_name_cannot_leave_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let local = LocalFolder::open(folder.path().join("packs")).unwrap();
    for name in ["../x", "a/b", "", ".", "..", "/etc/passwd"] {
        assert!(local.append(name, 0, b"x").is_err(), "{name}");
        assert!(local.read(name, 0, 1).is_err(), "{name}");
    }
}

#[test]
fn a_full_disk_takes_a_part_and_says_so_and_a_crash_keeps_what_was_synced() {
    let inner = Arc::new(MemoryBackend::default());
    let plan = FaultPlan { room_bytes: Some(8), ..FaultPlan::default() };
    let faulty = FaultyBackend::new(inner.clone(), plan);
    faulty.append("pack-1", 0, b"hello").unwrap();
    faulty.sync("pack-1").unwrap();
    let full = faulty.append("pack-1", 5, b"world");
    assert!(matches!(full, Err(BackendError::NoRoom { .. })), "{full:?}");
    faulty.crash(1).unwrap();
    assert!(inner.read("pack-1", 0, 5).unwrap() == b"hello");
    assert!(faulty.read("pack-1", 0, 5).is_err());
}
