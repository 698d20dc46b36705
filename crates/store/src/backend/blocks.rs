//! Blocks of objects on the local disk, up to a bound: a page that is read again costs no request.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::error::BackendError;

/// Objects are read in blocks of this size: the records of versions and their bodies are close to
/// each other.
pub(super) const BLOCK_BYTES: u64 = 1 << 20;

/// The blocks that are kept.
pub(super) struct Blocks {
    folder: PathBuf,
    limit_bytes: u64,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// By file name: when it was last used, and its length.
    files: BTreeMap<String, (u64, u64)>,
    /// By when they were last used.
    order: BTreeMap<u64, String>,
    bytes: u64,
    uses: u64,
}

impl Kept {
    fn touch(&mut self, file: &str, length: u64) {
        self.forget(file);
        self.uses += 1;
        self.files.insert(file.to_owned(), (self.uses, length));
        self.order.insert(self.uses, file.to_owned());
        self.bytes += length;
    }

    fn forget(&mut self, file: &str) {
        if let Some((at, length)) = self.files.remove(file) {
            self.order.remove(&at);
            self.bytes -= length;
        }
    }
}

impl Blocks {
    pub(super) fn open(folder: PathBuf, limit_bytes: u64) -> Result<Self, BackendError> {
        let failed = |source| BackendError::from_io(&folder.display().to_string(), source);
        fs::create_dir_all(&folder).map_err(failed)?;
        let mut kept = Kept::default();
        for entry in fs::read_dir(&folder).map_err(failed)?.flatten() {
            if let (Ok(name), Ok(found)) = (entry.file_name().into_string(), entry.metadata()) {
                kept.touch(&name, found.len());
            }
        }
        Ok(Self { folder, limit_bytes, kept: Mutex::new(kept) })
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(path: &str, block: u64) -> String {
        let hash = blake3::hash(path.as_bytes()).to_hex();
        format!("{}-{block}", &hash[..32])
    }

    fn get(&self, path: &str, block: u64, length: u64) -> Option<Vec<u8>> {
        let file = Self::file(path, block);
        if !self.kept().files.contains_key(&file) {
            return None;
        }
        let bytes = fs::read(self.folder.join(&file)).ok().filter(|b| b.len() as u64 == length);
        match &bytes {
            Some(_) => self.kept().touch(&file, length),
            None => self.kept().forget(&file),
        }
        bytes
    }

    /// Keeps a block if that works; where the disk is full it does not.
    fn put(&self, path: &str, block: u64, bytes: &[u8]) {
        let file = Self::file(path, block);
        let temporary = self.folder.join(format!("{file}.new"));
        let written = fs::write(&temporary, bytes)
            .and_then(|()| fs::rename(&temporary, self.folder.join(&file)));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
            return;
        }
        let mut kept = self.kept();
        kept.touch(&file, bytes.len() as u64);
        while kept.bytes > self.limit_bytes {
            let Some((_, oldest)) = kept.order.first_key_value() else { break };
            let oldest = oldest.clone();
            kept.forget(&oldest);
            let _ = fs::remove_file(self.folder.join(&oldest));
        }
    }

    /// Keeps an object that was just written.
    pub(super) fn keep(&self, path: &str, bytes: &[u8]) {
        for (block, bytes) in (0..).zip(bytes.chunks(BLOCK_BYTES as usize)) {
            self.put(path, block, bytes);
        }
    }

    /// An object is gone.
    pub(super) fn forget(&self, path: &str, blocks: u64) {
        for block in 0..blocks {
            let file = Self::file(path, block);
            self.kept().forget(&file);
            let _ = fs::remove_file(self.folder.join(&file));
        }
    }

    /// Bytes of an object of `whole` bytes. What is missing is fetched with one request for each
    /// stretch of neighbouring blocks.
    pub(super) fn read(
        &self,
        path: &str,
        whole: u64,
        offset: u64,
        length: usize,
        fetch: &dyn Fn(u64, u64) -> Result<Vec<u8>, BackendError>,
    ) -> Result<Vec<u8>, BackendError> {
        let end = offset + length as u64;
        let ends = |block: u64| ((block + 1) * BLOCK_BYTES).min(whole);
        let mut bytes = Vec::with_capacity(length);
        let mut block = offset / BLOCK_BYTES;
        while block * BLOCK_BYTES < end {
            let start = block * BLOCK_BYTES;
            if let Some(found) = self.get(path, block, ends(block) - start) {
                take(&mut bytes, &found, start, offset, end);
                block += 1;
                continue;
            }
            let mut last = block;
            let is_missing = |at: u64| !self.kept().files.contains_key(&Self::file(path, at));
            while ends(last) < end && is_missing(last + 1) {
                last += 1;
            }
            let fetched = fetch(start, ends(last))?;
            if fetched.len() as u64 != ends(last) - start {
                return Err(BackendError::TooShort { name: path.to_owned(), end: ends(last) });
            }
            for (at, part) in (block..).zip(fetched.chunks(BLOCK_BYTES as usize)) {
                self.put(path, at, part);
            }
            take(&mut bytes, &fetched, start, offset, end);
            block = last + 1;
        }
        Ok(bytes)
    }
}

/// Adds the part of a stretch that is asked for.
fn take(bytes: &mut Vec<u8>, found: &[u8], start: u64, offset: u64, end: u64) {
    let from = offset.saturating_sub(start).min(found.len() as u64) as usize;
    let to = (end - start).min(found.len() as u64) as usize;
    bytes.extend_from_slice(&found[from..to.max(from)]);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn blocks_are_fetched_once_and_together_and_the_bound_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let blocks = Blocks::open(folder.path().join("b"), 3 * BLOCK_BYTES).unwrap();
        let whole: Vec<u8> = (0..5 * BLOCK_BYTES + 77).map(|n| (n % 251) as u8).collect();
        let requests = AtomicUsize::new(0);
        let fetch = |from: u64, to: u64| {
            requests.fetch_add(1, Ordering::Relaxed);
            Ok(whole[from as usize..to as usize].to_vec())
        };
        let read = |offset: u64, length: usize| {
            let found = blocks.read("o", whole.len() as u64, offset, length, &fetch).unwrap();
            assert_eq!(found, whole[offset as usize..offset as usize + length], "{offset}");
            requests.swap(0, Ordering::Relaxed)
        };
        assert_eq!(read(10, 100), 1);
        assert_eq!(read(50, 1_000), 0, "kept");
        assert_eq!(read(BLOCK_BYTES - 5, 2 * BLOCK_BYTES as usize), 1, "two blocks at once");
        assert_eq!(read(5 * BLOCK_BYTES + 70, 7), 1, "the last block is short");
        assert_eq!(read(10, 5), 1, "the oldest made way");
        let bytes: u64 = fs::read_dir(folder.path().join("b"))
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .sum();
        assert!(bytes <= 3 * BLOCK_BYTES, "{bytes}");
        drop(blocks);
        let again = Blocks::open(folder.path().join("b"), 3 * BLOCK_BYTES).unwrap();
        assert!(again.read("o", whole.len() as u64, 10, 5, &fetch).is_ok());
        assert_eq!(requests.load(Ordering::Relaxed), 0, "kept over a restart");
    }
}
