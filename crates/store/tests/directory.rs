//! An index is made of directories and records, without reading bodies.

use crate::common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{Kept, assert_sound, open, options};
use nenrin_store::{
    BackendError, CompactOptions, ContentBackend, MemoryBackend, Store, StoreOptions, VersionId,
};

/// Counts what is read.
#[derive(Default)]
struct Counting {
    inner: MemoryBackend,
    read_bytes: AtomicU64,
}

impl ContentBackend for Counting {
    fn can_grow(&self) -> bool {
        self.inner.can_grow()
    }

    fn list(&self) -> Result<Vec<(String, u64)>, BackendError> {
        self.inner.list()
    }

    fn read(&self, name: &str, offset: u64, length: usize) -> Result<Vec<u8>, BackendError> {
        self.read_bytes.fetch_add(length as u64, Ordering::Relaxed);
        self.inner.read(name, offset, length)
    }

    fn append(&self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), BackendError> {
        self.inner.append(name, offset, bytes)
    }

    fn overwrite(&self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), BackendError> {
        self.inner.overwrite(name, offset, bytes)
    }

    fn sync(&self, name: &str) -> Result<(), BackendError> {
        self.inner.sync(name)
    }

    fn truncate(&self, name: &str, length: u64) -> Result<(), BackendError> {
        self.inner.truncate(name, length)
    }

    fn delete(&self, name: &str) -> Result<(), BackendError> {
        self.inner.delete(name)
    }
}

/// Bytes that do not compress.
fn noise(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (state >> 33) as u8
    };
    (0..100_000).map(|_| next()).collect()
}

fn filled(backend: &Arc<Counting>) -> Vec<(VersionId, Kept)> {
    let store = open(backend);
    let mut kept = Vec::new();
    for n in 0..40 {
        let page = Kept::page(n, 1, noise(n));
        kept.push((page.put(&store, None).unwrap().id, page));
        // The same body under another address.
        let page = Kept { url: format!("{}/again", kept[0].1.url), ..kept[0].1.clone() };
        kept.push((page.put(&store, None).unwrap().id, page));
        store.sync().unwrap();
    }
    kept
}

/// Makes an index of all packs and says what was read for it.
fn bytes_read_to_open(backend: &Arc<Counting>, kept: &[(VersionId, Kept)]) -> u64 {
    let before = backend.read_bytes.load(Ordering::Relaxed);
    let store = open(backend);
    let read = backend.read_bytes.load(Ordering::Relaxed) - before;
    kept.iter().for_each(|(id, page)| page.check(&store, *id));
    assert_sound(&store);
    read
}

#[test]
fn making_an_index_reads_no_bodies() {
    let backend = Arc::new(Counting::default());
    let kept = filled(&backend);
    let stored = |backend: &Counting| backend.list().unwrap().iter().map(|(_, n)| n).sum::<u64>();
    let (read, all) = (bytes_read_to_open(&backend, &kept), stored(&backend));
    assert!(all > 4_000_000 && read < all / 100, "{read} of {all} bytes were read");
    let before = open(&backend).stats().unwrap();
    open(&backend).compact(&CompactOptions::default(), &mut |_, _| {}).unwrap();
    let (read, all) = (bytes_read_to_open(&backend, &kept), stored(&backend));
    assert!(all > 4_000_000 && read < all / 100, "{read} of {all} bytes were read");
    let after = open(&backend).stats().unwrap();
    assert_eq!((before.versions, before.bodies), (after.versions, after.bodies));
}

#[test]
fn an_index_made_of_directories_says_the_same_as_the_one_that_grew() {
    let folder = tempfile::tempdir().unwrap();
    let index_path = Some(folder.path().join("index"));
    let backend = Arc::new(MemoryBackend::default());
    let store = Store::open(backend.clone(), StoreOptions { index_path, ..options() }).unwrap();
    for n in 0..90 {
        let page = Kept::page(n % 30, n, common::html(n % 30, n / 30));
        page.put(&store, None).unwrap();
        if n % 7 == 0 {
            store.sync().unwrap();
        }
    }
    store.sync().unwrap();
    store.forget(&[VersionId(3), VersionId(40)]).unwrap();
    let grown = store.stats().unwrap();
    store.rebuild_index().unwrap();
    let made = store.stats().unwrap();
    assert_eq!((grown.versions, grown.bodies), (made.versions, made.bodies));
    assert_eq!(grown.sites, made.sites);
    assert_eq!((grown.html_bytes, grown.unique_bytes), (made.html_bytes, made.unique_bytes));
}
