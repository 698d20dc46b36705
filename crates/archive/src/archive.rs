//! An archive on disk: one folder with the state, the packs and a lock.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use nenrin_state::{
    Change, Committed, Epoch, Registry, Site, SqliteState, State, StateError, Upkeep, VersionIndex,
};
use nenrin_store::{
    ContentBackend, GatheringBackend, LocalFolder, Store, StoreError, StoreOptions,
};

use crate::{
    ArchiveError, Result,
    lock::{Lock, Taken},
};

/// What the caller is going to do with the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Write,
    WriteExisting,
    WriteMuch,
    Rebuild,
    Check,
    Read,
}

/// How an archive is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenOptions {
    access: Access,
    bucket_s: i64,
}

impl OpenOptions {
    fn new(access: Access) -> Self {
        Self { access, bucket_s: 3600 }
    }

    /// To read, also while another process writes.
    pub fn reading() -> Self {
        Self::new(Access::Read)
    }

    /// To write; one process at a time. The archive is created on first use.
    pub fn writing() -> Self {
        Self::new(Access::Write)
    }

    /// To write to an archive that is there; one process at a time.
    pub fn changing() -> Self {
        Self::new(Access::WriteExisting)
    }

    /// To write much at once: quickly now, small by the next [`Archive::compact`].
    pub fn writing_much() -> Self {
        Self::new(Access::WriteMuch)
    }

    /// To rebuild the indexes from the packs, even where the state is missing or damaged.
    pub fn rebuilding() -> Self {
        Self::new(Access::Rebuild)
    }

    /// To check every byte: alone if no process writes, as a reader otherwise.
    pub fn checking() -> Self {
        Self::new(Access::Check)
    }

    /// The resolution of due times in seconds, one hour by default. It is fixed when an archive is
    /// created.
    #[must_use]
    pub fn with_bucket_s(self, bucket_s: i64) -> Self {
        Self { bucket_s, ..self }
    }

    /// Whether an archive is made where there is none.
    pub fn creates(self) -> bool {
        matches!(self.access, Access::Write | Access::WriteMuch)
    }
}

/// An open archive: a folder with the state (what is known of sites, pages and visits) and the
/// store (the content of all versions).
///
/// ```
/// use nenrin_archive::{Archive, OpenOptions};
///
/// # let parent = tempfile::tempdir()?;
/// # let folder = parent.path().join("archive");
/// let archive = Archive::open(&folder, &OpenOptions::writing())?;
/// assert!(archive.versions("https://example.com/")?.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Archive {
    folder: PathBuf,
    state: Arc<dyn State>,
    store: Arc<Store>,
    has_unrecorded_requests: Arc<AtomicBool>,
    lock: Option<Lock>,
    /// The epoch of the lease by which this is held.
    epoch: Option<Epoch>,
    /// A process that only reads a shared archive changes content part by part.
    parts: Option<Arc<dyn Parts>>,
    aside: Option<StateAside>,
}

/// The parts of an archive that several workers share.
pub(crate) trait Parts: Send + Sync {
    /// Opens one part after the other to write, which is refused while workers collect; `sweeps`
    /// deletes objects that count for nothing.
    fn each(&self, sweeps: bool, work: &mut dyn FnMut(&Archive) -> Result<()>) -> Result<()>;
    /// How many there are.
    fn count(&self) -> u64;
    /// The state of each.
    fn states(&self) -> Vec<Arc<dyn State>>;
    /// For people: who is at work, and what waits.
    fn workers(&self) -> Result<Vec<String>>;
}

/// A state that was damaged and is kept under another name, and what could be read of it.
pub(crate) struct StateAside {
    pub(crate) path: PathBuf,
    pub(crate) sites: Vec<Site>,
}

impl Archive {
    /// Opens the archive in a folder.
    pub fn open(folder: &Path, options: &OpenOptions) -> Result<Self> {
        check_folder(folder, *options)?;
        let lock = match options.access {
            Access::Write | Access::WriteExisting | Access::WriteMuch | Access::Rebuild => {
                Some(Lock::hold(folder)?)
            }
            Access::Check => match Lock::take(folder)? {
                Taken::Free(mut lock) => lock.note_running().is_ok().then_some(lock),
                Taken::Held { .. } | Taken::Unwritable(_) => None,
            },
            Access::Read => {
                repair_index(folder)?;
                None
            }
        };
        let aside = match options.access {
            Access::Rebuild => put_damaged_state_aside(folder)?,
            _ => None,
        };
        let path = folder.join(STATE);
        let state = match options.access {
            Access::Read | Access::Check => SqliteState::open_to_read(&path, options.bucket_s)?,
            _ => SqliteState::open(&path, options.bucket_s)?,
        };
        let is_hasty = options.access == Access::WriteMuch;
        let store = match open_store(folder, lock.is_none(), is_hasty) {
            // On a full disk it is checked as it is.
            Err(ArchiveError::Store(StoreError::NoRoom { .. }))
                if options.access == Access::Check =>
            {
                open_store(folder, true, false)?
            }
            other => other?,
        };
        let unrecorded = lock.as_ref().is_some_and(|lock| lock.has_unrecorded_requests);
        Ok(Self {
            folder: folder.to_owned(),
            state: Arc::new(state),
            store: Arc::new(store),
            has_unrecorded_requests: Arc::new(AtomicBool::new(unrecorded)),
            lock,
            epoch: None,
            parts: None,
            aside,
        })
    }

    /// An archive over a state and a store that others may share. Requests may have been made that no
    /// commit mentions. `folder` is for temporary files; `epoch` is that of the lease, if there is one.
    pub(crate) fn over(
        folder: &Path,
        state: Arc<dyn State>,
        store: Arc<Store>,
        epoch: Option<Epoch>,
    ) -> Self {
        Self {
            folder: folder.to_owned(),
            state,
            store,
            has_unrecorded_requests: Arc::new(AtomicBool::new(true)),
            lock: None,
            epoch,
            parts: None,
            aside: None,
        }
    }

    /// The same, whose content is changed part by part.
    pub(crate) fn with_parts(mut self, parts: Arc<dyn Parts>) -> Self {
        self.parts = Some(parts);
        self
    }

    /// The parts in which content is changed, if several workers share the archive.
    pub(crate) fn parts(&self) -> Option<&Arc<dyn Parts>> {
        self.parts.as_ref()
    }

    /// The partitions of an archive that several workers share, each to read; the archive itself if it
    /// is in a folder. Numbers of visits follow each other in one partition only.
    pub fn partitions(self: &Arc<Self>) -> Vec<Arc<Self>> {
        let Some(parts) = &self.parts else { return vec![self.clone()] };
        let part = |(number, state): (usize, Arc<dyn State>)| {
            let folder = self.folder.join("reading").join(format!("p{number}"));
            Arc::new(Self::over(&folder, state, self.store.clone(), None))
        };
        parts.states().into_iter().enumerate().map(part).collect()
    }

    /// For people: who is at work on an archive that several workers share, and what waits in its
    /// partitions; or why that is not known.
    pub fn workers(&self) -> Vec<String> {
        let lines = self.parts.as_ref().map_or(Ok(Vec::new()), |parts| parts.workers());
        lines.unwrap_or_else(|error| vec![error.to_string()])
    }

    /// The archive's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What is known of sites, pages and visits.
    pub fn state(&self) -> &Arc<dyn State> {
        &self.state
    }

    /// The content of all versions.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Whether requests may have been made that no commit mentions: a process was killed, or
    /// stopped waiting. It is kept over restarts, until a driver has taken it into account.
    pub fn has_unrecorded_requests(&self) -> &Arc<AtomicBool> {
        &self.has_unrecorded_requests
    }

    /// The epoch to commit under: that of the lease, or a new one, so that earlier processes commit
    /// nothing more.
    pub fn take_over(&self) -> Result<Epoch> {
        match self.epoch {
            Some(epoch) => Ok(epoch),
            None => Ok(self.state.take_over()?),
        }
    }

    /// Commits under the epoch of the lease, if there is one: what was stored by a holder that has
    /// lost its partition counts for nothing.
    pub(crate) fn commit(&self, changes: &[Change]) -> Result<Committed> {
        match self.epoch {
            Some(epoch) => Ok(self.state.commit_under(epoch, changes)?),
            None => Ok(self.state.commit(changes)?),
        }
    }

    /// Whether this process shares the archive with others: it has not locked it.
    pub fn is_shared(&self) -> bool {
        self.lock.is_none()
    }

    /// The state that was put aside when the archive was opened.
    pub(crate) fn aside(&self) -> Option<&StateAside> {
        self.aside.as_ref()
    }

    /// Bytes of all files of the archive, or of the packs of a shared one.
    pub fn file_bytes(&self) -> Result<u64> {
        match &self.parts {
            Some(_) => Ok(self.store.stats()?.stored_bytes),
            None => folder_bytes(&self.folder).map_err(ArchiveError::io("list", &self.folder)),
        }
    }
}

/// Bytes of all files below a folder.
pub fn folder_bytes(folder: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.metadata()?;
        bytes += if kind.is_dir() { folder_bytes(&entry.path())? } else { kind.len() };
    }
    Ok(bytes)
}

/// The packs of an archive for reading, without a cache of decoded content: to measure what the
/// first reading of a page costs.
pub fn uncached_store(folder: &Path) -> Result<Store> {
    let packs = LocalFolder::open(folder.join(PACKS)).map_err(StoreError::from)?;
    let index_path = Some(folder.join(INDEX));
    let options =
        StoreOptions { index_path, read_only: true, cache_bytes: 0, ..StoreOptions::default() };
    Ok(Store::open(Arc::new(packs), options)?)
}

impl Drop for Archive {
    fn drop(&mut self) {
        // A lock file that still says "running" only costs the next start a pause per server.
        if let Some(lock) = &mut self.lock {
            let _ = lock.note_end(self.has_unrecorded_requests.load(Ordering::Relaxed));
        }
    }
}

pub(crate) const STATE: &str = "state.sqlite";
pub(crate) const INDEX: &str = "packs.index";
pub(crate) const PACKS: &str = "packs";
/// Decoded content kept for readers.
const READERS_CACHE_BYTES: usize = 24 << 20;
/// zstd's level for what `compact` will write again.
const HASTY_LEVEL: i32 = 1;
/// And written in pieces of this size.
const HASTY_WRITE_BYTES: usize = 512 << 10;

/// Whether an archive can be opened or created here.
fn check_folder(folder: &Path, options: OpenOptions) -> Result<()> {
    match std::fs::metadata(folder) {
        Ok(found) if !found.is_dir() => {
            return Err(ArchiveError::NotAFolder { path: folder.to_owned() });
        }
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(ArchiveError::reading(folder)(error));
        }
        _ => {}
    }
    // A folder that cannot be read is not one without an archive.
    match std::fs::read_dir(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(ArchiveError::reading(folder)(error));
        }
        _ => {}
    }
    let has_packs =
        std::fs::read_dir(folder.join(PACKS)).is_ok_and(|mut packs| packs.next().is_some());
    if options.access == Access::Rebuild && has_packs {
        return Ok(());
    }
    let path = folder.join(STATE);
    let missing = match path.exists() {
        true if !has_packs || SqliteState::is_begun(&path)? => return Ok(()),
        true => "it is empty",
        false => "it is missing",
    };
    if has_packs {
        // A new state here would hide everything that the packs hold.
        let reason = format!("{missing}, but there are packs");
        return Err(StateError::Damaged { path, reason }.into());
    }
    if !options.creates() {
        return Err(ArchiveError::NoArchive { folder: folder.to_owned() });
    }
    std::fs::create_dir_all(folder).map_err(ArchiveError::io("create the archive", folder))
}

/// A damaged state is renamed, not deleted: someone may want to look at it.
fn put_damaged_state_aside(folder: &Path) -> Result<Option<StateAside>> {
    let path = folder.join(STATE);
    let aside =
        |number: u32, suffix: &str| folder.join(format!("{STATE}.damaged-{number}{suffix}"));
    let number = (1..).find(|&number| !aside(number, "").exists()).unwrap_or(1);
    let mut kept = StateAside { path: aside(number, ""), sites: Vec::new() };
    let mut is_sound = || {
        if !path.exists() || !SqliteState::is_begun(&path)? {
            return Ok(false);
        }
        let state = SqliteState::open(&path, 3600)?;
        kept.sites = state.sites().unwrap_or_default();
        Ok(state.check()?.is_empty() && state.each_version(&mut |_, _| {}).is_ok())
    };
    match is_sound() {
        Ok(true) => return Ok(None),
        Ok(false) | Err(StateError::Damaged { .. } | StateError::PreRelease { .. }) => {}
        Err(other) => return Err(other.into()),
    }
    for suffix in ["", "-wal", "-shm"] {
        let from = folder.join(format!("{STATE}{suffix}"));
        if from.exists() {
            std::fs::rename(&from, aside(number, suffix)).map_err(ArchiveError::writing(&from))?;
        }
    }
    Ok(Some(kept))
}

fn open_store(folder: &Path, read_only: bool, is_hasty: bool) -> Result<Store> {
    let packs = LocalFolder::open(folder.join(PACKS)).map_err(StoreError::from)?;
    let mut packs: Arc<dyn ContentBackend> = Arc::new(packs);
    let index_path = Some(folder.join(INDEX));
    let mut options = StoreOptions { index_path, read_only, ..StoreOptions::default() };
    if read_only {
        // Replay keeps the pages that it made: what they were made from is rarely needed again.
        options.cache_bytes = READERS_CACHE_BYTES;
    }
    if is_hasty {
        options.level = HASTY_LEVEL;
        options.first_level = HASTY_LEVEL;
        options.steps.block_in_time = false;
        options.steps.block_in_space = false;
        options.recode_gifs = false;
        options.keeps_packed = true;
        packs = Arc::new(GatheringBackend::new(packs, HASTY_WRITE_BYTES));
    }
    Ok(Store::open(packs, options)?)
}

/// Before reading: brings the index up to date with the packs where a crash left it behind, someone
/// deleted it or an older program wrote it, unless another process is writing and has done so.
fn repair_index(folder: &Path) -> Result<()> {
    let lock = match Lock::take(folder)? {
        Taken::Free(lock) => lock,
        Taken::Held { .. } => return Ok(()),
        Taken::Unwritable(_) => {
            let log = folder.join(format!("{STATE}-wal"));
            if std::fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
                tracing::warn!(
                    "{} was left behind and cannot be taken in, because nothing can be written here: \
                     what was committed last is not shown",
                    log.display()
                );
            }
            return Ok(());
        }
    };
    if lock.was_running || !Store::can_use_index(&folder.join(INDEX))? {
        // On a full disk the index stays behind, but most versions can still be read.
        if let Err(error) = open_store(folder, false, false) {
            tracing::warn!("the index could not be brought up to date with the packs: {error}");
        }
    }
    Ok(())
}
