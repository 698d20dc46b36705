//! Packs as objects: in S3, or in a folder that several machines share.
//!
//! The packs of a partition are below `p<partition>/`. Each holder writes below a name of its own,
//! `e<epoch>-<first>/`, where `first` is the number of its first pack, so that no two holders ever
//! write the same object. A pack with a number that a later holder begins with or beyond counts for
//! nothing: whoever wrote it had lost the partition and committed nothing of it.
//!
//! A pack is built in a local folder and uploaded when it is synced. What is read is kept in blocks
//! on the local disk, up to a bound.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    time::Duration,
};

use futures_util::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutPayload, path::Path as ObjectPath};
use tokio::runtime::Runtime;

use super::{
    ContentBackend, LocalFolder,
    blocks::{BLOCK_BYTES, Blocks},
};
use crate::{error::BackendError, pack::pack_number};

/// An object that says which archive a bucket or folder belongs to.
const OWNER: &str = "archive";
/// The object that a holder begins with.
const BEGUN: &str = "begun";
/// Objects larger than this are uploaded in parts.
const PART_BYTES: usize = 32 << 20;

/// How long to wait for a server of objects that does not answer.
const RETRY_TIMEOUT: Duration = Duration::from_secs(180);
const RETRIES_MAX: usize = 60;
/// At the start, a person waits.
const FIRST_TIMEOUT: Duration = Duration::from_secs(5);
/// Written and deleted to find out whether that is allowed.
const TRIAL: &str = "trial";

/// Where objects are stored: a bucket or a folder, and what their names begin with.
#[derive(Clone)]
pub struct ObjectPlace {
    store: Arc<dyn ObjectStore>,
    prefix: String,
    shown: String,
    runtime: Arc<Runtime>,
    requests: Arc<AtomicU64>,
}

impl ObjectPlace {
    /// `s3://bucket/prefix`, with the usual variables of AWS for keys and region, or
    /// `file:///folder`. `?endpoint=https://host` names another server than Amazon's, and
    /// `anonymous` signs nothing.
    pub fn open(address: &str) -> Result<Self, BackendError> {
        Self::patient(address, RETRY_TIMEOUT)
    }

    /// The same, with another limit on the wait for a server that does not answer.
    fn patient(address: &str, patience: Duration) -> Result<Self, BackendError> {
        let wrong = |why: &str| failed(address, io::Error::new(io::ErrorKind::InvalidInput, why));
        let (store, prefix): (Arc<dyn ObjectStore>, String) =
            if let Some(rest) = address.strip_prefix("s3://") {
                s3(rest, patience).map_err(|why| wrong(&why))?
            } else if let Some(folder) = address.strip_prefix("file://") {
                std::fs::create_dir_all(folder).map_err(|e| failed(address, e))?;
                let local = object_store::local::LocalFileSystem::new_with_prefix(folder)
                    .map_err(|e| failed(address, io::Error::other(e)))?;
                (Arc::new(local.with_fsync(true)), String::new())
            } else {
                return Err(wrong("content is kept in s3://bucket/prefix or file:///folder"));
            };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("objects")
            .enable_all()
            .build()
            .map_err(|e| failed(address, e))?;
        let (shown, runtime) = (address.trim_end_matches('/').to_owned(), Arc::new(runtime));
        Ok(Self { store, prefix, shown, runtime, requests: Arc::default() })
    }

    /// As it was written.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// How many requests were made.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Whether the bucket or folder can be reached and read.
    pub fn check(&self) -> Result<(), BackendError> {
        let place = Self::patient(&self.shown, FIRST_TIMEOUT)?;
        let listed = match place.get_whole(OWNER) {
            Ok(_) => return Ok(()),
            // There is no such object, or no such bucket: only of a bucket the list fails.
            Err(BackendError::NotFound { .. }) => place.list("").map(drop),
            Err(error) => Err(error),
        };
        listed.map_err(|error| match error {
            BackendError::Io { source, .. } if !source.to_string().contains("NoSuchBucket") => {
                failed(&self.shown, source)
            }
            BackendError::NotFound { .. } | BackendError::Io { .. } => {
                let why = "there is no such bucket; make it, or name another";
                failed(&self.shown, io::Error::new(io::ErrorKind::NotFound, why))
            }
            other => other,
        })
    }

    /// Whether objects can be written and deleted.
    pub fn check_writing(&self) -> Result<(), BackendError> {
        let name = format!("{TRIAL}-{}", std::process::id());
        self.put(&name, Vec::new())?;
        self.delete(&name)
    }

    /// Makes sure that the bucket or folder can be written and belongs to this archive, or to none
    /// yet.
    pub fn claim(&self, archive: &str) -> Result<(), BackendError> {
        let (store, path) = (self.store.clone(), self.path(OWNER));
        let owner = match self.get_whole(OWNER) {
            Err(BackendError::NotFound { .. }) => {
                let bytes = PutPayload::from(archive.as_bytes().to_vec());
                let claim =
                    async move { store.put_opts(&path, bytes, PutMode::Create.into()).await };
                match self.run(OWNER, claim) {
                    // Someone else was first.
                    Err(BackendError::Io { source, .. }) if is_there(&source) => {
                        self.get_whole(OWNER)?
                    }
                    claimed => return claimed.map(drop),
                }
            }
            found => found?,
        };
        if owner == archive.as_bytes() {
            return Ok(());
        }
        let why = "another archive has its content there; choose another prefix, or delete the \
                   object `archive` there if no archive uses it any more";
        Err(failed(&self.shown, io::Error::other(why)))
    }

    fn path(&self, name: &str) -> ObjectPath {
        let parts = [self.prefix.as_str(), name].into_iter().filter(|part| !part.is_empty());
        ObjectPath::from(parts.collect::<Vec<_>>().join("/"))
    }

    /// Runs a request on the threads that are for it, and waits.
    fn run<T: Send + 'static>(
        &self,
        name: &str,
        request: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> Result<T, BackendError> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = mpsc::channel();
        self.runtime.spawn(async move {
            let _ = answer.send(request.await);
        });
        match answered.recv() {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(error)) => Err(explain(name, error)),
            Err(gone) => Err(failed(name, io::Error::other(gone))),
        }
    }

    /// A small object.
    pub fn get_whole(&self, name: &str) -> Result<Vec<u8>, BackendError> {
        let (store, path) = (self.store.clone(), self.path(name));
        let read = async move { store.get(&path).await?.bytes().await };
        Ok(self.run(name, read)?.to_vec())
    }

    fn get_range(&self, name: &str, from: u64, to: u64) -> Result<Vec<u8>, BackendError> {
        let (store, path) = (self.store.clone(), self.path(name));
        let read = async move { store.get_range(&path, from..to).await };
        Ok(self.run(name, read)?.to_vec())
    }

    /// Writes an object, in place of one of the same name.
    pub fn put(&self, name: &str, bytes: Vec<u8>) -> Result<(), BackendError> {
        if bytes.len() > PART_BYTES {
            return self.put_from(name, bytes.len() as u64, Box::new(io::Cursor::new(bytes)));
        }
        let (store, path) = (self.store.clone(), self.path(name));
        let put = async move { store.put(&path, PutPayload::from(bytes)).await };
        self.run(name, put).map(drop)
    }

    /// The same from a reader of so many bytes, in parts. It is there whole or not at all.
    pub fn put_from(
        &self,
        name: &str,
        length: u64,
        mut from: Box<dyn io::Read + Send>,
    ) -> Result<(), BackendError> {
        let mut part = move |left: u64| -> io::Result<Vec<u8>> {
            let mut bytes = vec![0; PART_BYTES.min(usize::try_from(left).unwrap_or(PART_BYTES))];
            from.read_exact(&mut bytes)?;
            Ok(bytes)
        };
        if length <= PART_BYTES as u64 {
            return self.put(name, part(length).map_err(|e| failed(name, e))?);
        }
        let (store, path) = (self.store.clone(), self.path(name));
        let put = async move {
            let mut upload = store.put_multipart(&path).await?;
            let mut sent = 0;
            while sent < length {
                let bytes = match part(length - sent) {
                    Ok(bytes) => bytes,
                    Err(error) => {
                        upload.abort().await?;
                        let source = Box::new(error);
                        return Err(object_store::Error::Generic { store: "upload", source });
                    }
                };
                sent += bytes.len() as u64;
                upload.put_part(PutPayload::from(bytes)).await?;
            }
            upload.complete().await
        };
        self.run(name, put).map(drop)
    }

    /// The bytes of an object of this length, in order.
    pub fn read(&self, name: &str, length: u64) -> impl io::Read {
        ObjectReader {
            place: self.clone(),
            name: name.to_owned(),
            length,
            next: 0,
            part: io::Cursor::default(),
        }
    }

    /// Deletes an object, if it is there.
    pub fn delete(&self, name: &str) -> Result<(), BackendError> {
        let (store, path) = (self.store.clone(), self.path(name));
        match self.run(name, async move { store.delete(&path).await }) {
            Err(BackendError::NotFound { .. }) => Ok(()),
            other => other,
        }
    }

    /// Objects whose names begin with a folder, with their lengths.
    pub fn list(&self, folder: &str) -> Result<Vec<(String, u64)>, BackendError> {
        let found = self.list_dated(folder)?;
        Ok(found.into_iter().map(|(name, length, _)| (name, length)).collect())
    }

    /// The same, and when they were written, in seconds since the epoch.
    fn list_dated(&self, folder: &str) -> Result<Vec<(String, u64, i64)>, BackendError> {
        let (store, path) = (self.store.clone(), self.path(folder));
        let list = async move { store.list(Some(&path)).try_collect::<Vec<_>>().await };
        let prefix = match self.prefix.is_empty() {
            true => String::new(),
            false => format!("{}/", self.prefix),
        };
        let found = self.run(folder, list)?;
        let name = |meta: &object_store::ObjectMeta| {
            let name = meta.location.as_ref().strip_prefix(&prefix)?.to_owned();
            Some((name, meta.size, meta.last_modified.timestamp()))
        };
        Ok(found.iter().filter_map(name).collect())
    }
}

/// Reads an object part by part.
struct ObjectReader {
    place: ObjectPlace,
    name: String,
    length: u64,
    /// Where the next part begins.
    next: u64,
    part: io::Cursor<Vec<u8>>,
}

impl io::Read for ObjectReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.part.position() == self.part.get_ref().len() as u64 && self.next < self.length {
            let to = self.length.min(self.next + PART_BYTES as u64);
            let part = self.place.get_range(&self.name, self.next, to);
            self.part = io::Cursor::new(part.map_err(io::Error::other)?);
            self.next = to;
        }
        self.part.read(buffer)
    }
}

/// A bucket behind `s3://`, and what the names of objects begin with.
fn s3(rest: &str, patience: Duration) -> Result<(Arc<dyn ObjectStore>, String), String> {
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (bucket, prefix) = path.split_once('/').unwrap_or((path, ""));
    if bucket.is_empty() {
        return Err("a bucket is missing; write it like s3://bucket/prefix".to_owned());
    }
    // Another may have been chosen already; it will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = object_store::aws::AmazonS3Builder::from_env()
        .with_bucket_name(bucket)
        .with_retry(object_store::RetryConfig {
            max_retries: RETRIES_MAX,
            retry_timeout: patience,
            ..Default::default()
        });
    for part in query.split('&').filter(|part| !part.is_empty()) {
        builder = match part.split_once('=').unwrap_or((part, "")) {
            ("endpoint", url) => {
                builder.with_endpoint(url).with_allow_http(url.starts_with("http://"))
            }
            ("region", region) => builder.with_region(region),
            ("anonymous", _) => builder.with_skip_signature(true),
            (other, _) => return Err(format!("`{other}` is not a setting of a bucket")),
        };
    }
    let store = builder.build().map_err(|e| e.to_string())?;
    Ok((Arc::new(store), prefix.trim_matches('/').to_owned()))
}

/// The packs of one partition as objects.
pub struct ObjectBackend {
    place: ObjectPlace,
    /// `p<partition>`, of all partitions whose packs are read.
    folders: Vec<String>,
    /// Where this holder writes; `None` for one that only reads.
    own: Option<String>,
    spool: LocalFolder,
    blocks: Blocks,
    /// Where each object is, and how long it is.
    known: Mutex<BTreeMap<String, (String, u64)>>,
    /// Packs that this holder replaced.
    replaced: Mutex<BTreeSet<String>>,
}

impl ObjectBackend {
    /// For readers of some partitions. `local` is a folder for what is kept of objects on this machine, up to
    /// `cache_bytes`.
    pub fn reading(
        place: &ObjectPlace,
        partitions: impl IntoIterator<Item = u32>,
        local: PathBuf,
        cache_bytes: u64,
    ) -> Result<Self, BackendError> {
        let spool = LocalFolder::open(local.join("spool"))?;
        for (name, _) in spool.list()? {
            // What was built and never uploaded is nobody's.
            spool.delete(&name)?;
        }
        let blocks = Blocks::open(local.join("blocks"), cache_bytes)?;
        let folders = partitions.into_iter().map(|partition| format!("p{partition}")).collect();
        let place = place.clone();
        let (known, replaced) = (Mutex::default(), Mutex::default());
        Ok(Self { place, folders, own: None, spool, blocks, known, replaced })
    }

    /// For the holder of a partition under an epoch.
    pub fn writing(
        place: &ObjectPlace,
        partition: u32,
        epoch: u64,
        local: PathBuf,
        cache_bytes: u64,
    ) -> Result<Self, BackendError> {
        let mut backend = Self::reading(place, [partition], local, cache_bytes)?;
        let numbers = backend.list()?;
        let last = numbers.iter().filter_map(|(name, _)| pack_number(name)).max();
        let own = format!("p{partition}/e{epoch}-{}", last.map_or(1, |last| last + 1));
        // From now on, later packs of those who held the partition before count for nothing.
        backend.place.put(&format!("{own}/{BEGUN}"), Vec::new())?;
        backend.own = Some(own);
        Ok(backend)
    }

    /// Deletes what nobody needs: packs of former holders that do not count, and what
    /// holders began with who left nothing else, if it was written before `before_s`. Returns how
    /// many objects that were, and their bytes.
    pub fn sweep(&self, before_s: i64) -> Result<(u64, u64), BackendError> {
        let Some(own) = &self.own else { return Ok((0, 0)) };
        let mut swept = (0, 0);
        for folder in &self.folders {
            let found = self.place.list_dated(folder)?;
            let all: Vec<(String, u64)> =
                found.iter().map(|(path, length, _)| (path.clone(), *length)).collect();
            let counts: BTreeSet<String> =
                counting(folder, &all).into_values().map(|(path, _)| path).collect();
            let holder_of = |path: &str| path.rsplit_once('/').map(|(of, _)| of.to_owned());
            let useful: BTreeSet<Option<String>> =
                counts.iter().map(|path| holder_of(path)).collect();
            for (path, length, written_s) in found {
                let of = holder_of(&path);
                let is_begun = path.ends_with(&format!("/{BEGUN}"));
                let is_useless = match is_begun {
                    true => !useful.contains(&of),
                    false => !counts.contains(&path),
                };
                if is_useless && written_s < before_s && of.as_ref() != Some(own) {
                    self.place.delete(&path)?;
                    swept = (swept.0 + 1, swept.1 + length);
                }
            }
        }
        Ok(swept)
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, (String, u64)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_spooled(&self, name: &str) -> Result<bool, BackendError> {
        Ok(self.spool.list()?.iter().any(|(spooled, _)| spooled == name))
    }

    fn find(&self, name: &str) -> Result<(String, u64), BackendError> {
        if let Some(found) = self.known().get(name) {
            return Ok(found.clone());
        }
        self.list()?;
        let not_found = || BackendError::NotFound { name: name.to_owned() };
        self.known().get(name).cloned().ok_or_else(not_found)
    }

    fn refuse(&self, name: &str) -> BackendError {
        failed(name, io::Error::other("an object is written once and never changed"))
    }
}

/// The epoch and the first number of a holder's folder.
fn holder(folder: &str) -> Option<(u64, u64)> {
    let (epoch, first) = folder.strip_prefix('e')?.split_once('-')?;
    Some((epoch.parse().ok()?, first.parse().ok()?))
}

/// Which objects count, of all below a partition's folder: names, where they are, lengths.
fn counting(folder: &str, all: &[(String, u64)]) -> BTreeMap<String, (String, u64)> {
    let parts = |path: &str| {
        let (of, name) = path.strip_prefix(folder)?.strip_prefix('/')?.split_once('/')?;
        Some((holder(of)?, name.to_owned()))
    };
    let holders: Vec<(u64, u64)> =
        all.iter().filter_map(|(path, _)| Some(parts(path)?.0)).collect();
    let mut found: BTreeMap<String, (u64, String, u64)> = BTreeMap::new();
    for (path, length) in all {
        let Some(((epoch, _), name)) = parts(path).filter(|(_, name)| name != BEGUN) else {
            continue;
        };
        let is_late =
            |number: u64| holders.iter().any(|(later, first)| *later > epoch && *first <= number);
        if pack_number(&name).is_some_and(is_late) {
            continue;
        }
        let known = found.get(&name).map(|(epoch, ..)| *epoch);
        if known.is_none_or(|known| known < epoch) {
            found.insert(name, (epoch, path.clone(), *length));
        }
    }
    found.into_iter().map(|(name, (_, path, length))| (name, (path, length))).collect()
}

impl ContentBackend for ObjectBackend {
    fn can_grow(&self) -> bool {
        false
    }

    fn list(&self) -> Result<Vec<(String, u64)>, BackendError> {
        let mut found = BTreeMap::new();
        for folder in &self.folders {
            found.extend(counting(folder, &self.place.list(folder)?));
        }
        let replaced = self.replaced.lock().unwrap_or_else(PoisonError::into_inner).clone();
        found.retain(|name, _| !replaced.contains(name));
        let mut names: BTreeMap<String, u64> =
            found.iter().map(|(name, (_, length))| (name.clone(), *length)).collect();
        *self.known() = found;
        names.extend(self.spool.list()?);
        Ok(names.into_iter().collect())
    }

    fn read(&self, name: &str, offset: u64, length: usize) -> Result<Vec<u8>, BackendError> {
        let known = self.known().get(name).cloned();
        let (path, whole) = match known {
            Some(known) => known,
            None if self.is_spooled(name)? => return self.spool.read(name, offset, length),
            None => self.find(name)?,
        };
        let end = offset.saturating_add(length as u64);
        if end > whole {
            return Err(BackendError::TooShort { name: name.to_owned(), end });
        }
        self.blocks
            .read(&path, whole, offset, length, &|from, to| self.place.get_range(&path, from, to))
    }

    fn append(&self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), BackendError> {
        if self.own.is_none() || self.known().contains_key(name) {
            return Err(self.refuse(name));
        }
        self.spool.append(name, offset, bytes)
    }

    fn sync(&self, name: &str) -> Result<(), BackendError> {
        if !self.is_spooled(name)? {
            return self.find(name).map(drop);
        }
        let Some(own) = &self.own else { return Err(self.refuse(name)) };
        let length =
            self.spool.list()?.iter().find(|(spooled, _)| spooled == name).map_or(0, |o| o.1);
        let size = usize::try_from(length).map_err(|e| failed(name, io::Error::other(e)))?;
        let bytes = self.spool.read(name, 0, size)?;
        let path = format!("{own}/{name}");
        self.blocks.keep(&path, &bytes);
        self.place.put(&path, bytes)?;
        self.known().insert(name.to_owned(), (path, length));
        self.spool.delete(name)
    }

    fn overwrite(&self, name: &str, _: u64, _: &[u8]) -> Result<(), BackendError> {
        Err(self.refuse(name))
    }

    fn truncate(&self, name: &str, _: u64) -> Result<(), BackendError> {
        Err(self.refuse(name))
    }

    fn delete(&self, name: &str) -> Result<(), BackendError> {
        self.spool.delete(name)?;
        // A process that only reads leaves it to the holder.
        if self.own.is_none() {
            return Ok(());
        }
        let Some((path, length)) = self.known().remove(name) else { return Ok(()) };
        self.blocks.forget(&path, length.div_ceil(BLOCK_BYTES));
        let mut known = self.known().values().map(|(path, _)| path.clone()).collect::<Vec<_>>();
        known.push(path.clone());
        let is_own = |path: &String| {
            let own = self.own.as_deref().unwrap_or_default();
            path.strip_prefix(own).is_some_and(|rest| rest.starts_with('/'))
        };
        if pack_number(name).is_some() && !is_own(&path) && known.iter().any(is_own) {
            // What this holder wrote in its place counts for nothing if it has lost the partition:
            // the next holder deletes it.
            self.replaced.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
            return Ok(());
        }
        self.place.delete(&path)
    }
}

fn is_there(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AlreadyExists
}

fn failed(name: &str, source: io::Error) -> BackendError {
    BackendError::Io { name: name.to_owned(), source }
}

fn explain(name: &str, error: object_store::Error) -> BackendError {
    match error {
        object_store::Error::NotFound { .. } => BackendError::NotFound { name: name.to_owned() },
        object_store::Error::AlreadyExists { .. } => {
            failed(name, io::Error::new(io::ErrorKind::AlreadyExists, "it is there already"))
        }
        object_store::Error::PermissionDenied { .. }
        | object_store::Error::Unauthenticated { .. } => failed(
            name,
            io::Error::new(
                io::ErrorKind::PermissionDenied,
                "the keys do not allow this; look at AWS_ACCESS_KEY_ID and what its user may do",
            ),
        ),
        other => failed(name, io::Error::other(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_former_holder_writes_late_counts_for_nothing() {
        let all = [
            ("p3/e1-1/pack-0000000001", 10),
            ("p3/e1-1/begun", 0),
            ("p3/e1-1/pack-0000000002", 20),
            ("p3/e2-2/begun", 0),
            ("p3/e2-2/pack-0000000002", 30),
            ("p3/e1-1/pack-0000000003", 40),
            ("p3/elsewhere", 50),
        ]
        .map(|(path, length)| (path.to_owned(), length));
        let found: Vec<(String, u64)> =
            counting("p3", &all).into_iter().map(|(name, (_, length))| (name, length)).collect();
        let expected = [("pack-0000000001", 10), ("pack-0000000002", 30)];
        assert_eq!(found, expected.map(|(name, length)| (name.to_owned(), length)));
    }

    #[test]
    fn what_lies_there_for_nothing_is_swept_after_an_age_and_replaced_packs_by_the_next_holder() {
        let folder = tempfile::tempdir().unwrap();
        let place = format!("file://{}", folder.path().join("o").display());
        let place = ObjectPlace::open(&place).unwrap();
        let hold = |epoch: u64| {
            let local = folder.path().join(epoch.to_string());
            ObjectBackend::writing(&place, 0, epoch, local, 1 << 20).unwrap()
        };
        let write = |backend: &ObjectBackend, number: u64| {
            let name = crate::pack::pack_name(number);
            backend.append(&name, 0, b"bytes").unwrap();
            backend.sync(&name).unwrap();
        };
        let there = || place.list("p0").unwrap().len();
        let first = hold(1);
        write(&first, 1);
        let second = hold(2);
        // The first has lost the partition.
        write(&first, 2);
        write(&second, 2);
        second.delete(&crate::pack::pack_name(1)).unwrap();
        assert_eq!(second.list().unwrap().len(), 1, "replaced");
        assert_eq!(
            there(),
            5,
            "but still there: two beginnings, two packs of the first, one of the second"
        );
        let third = hold(3);
        assert_eq!(third.list().unwrap().len(), 2);
        third.delete(&crate::pack::pack_name(1)).unwrap();
        assert_eq!(third.sweep(0).unwrap(), (0, 0), "too young");
        assert_eq!(third.sweep(i64::MAX).unwrap(), (2, 5), "a late pack, and the first beginning");
        assert_eq!(third.list().unwrap(), [(crate::pack::pack_name(2), 5)]);
        assert_eq!(there(), 3);
    }
}
