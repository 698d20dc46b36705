//! An archive on disk: one folder with the state, the packs and a lock.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use nenrin_state::{SqliteState, State, StateError, Upkeep};
use nenrin_store::{ContentBackend, GatheringBackend, LocalFolder, Store, StoreOptions};

use crate::{clock, config::Config, exit::usage};

/// What a command wants of the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// To write; one process at a time.
    Write,
    /// To write much at once: quickly now, small by the next `compact`.
    WriteMuch,
    /// To write anew what the packs say, even where the state is missing.
    Rebuild,
    /// To look at every byte: alone where nobody writes, as a reader otherwise.
    Check,
    /// To read, also while another process writes.
    Read,
}

/// An open archive.
pub(crate) struct Archive {
    pub folder: PathBuf,
    pub state: Arc<dyn State>,
    pub store: Arc<Store>,
    /// Whether requests may have been made that no commit tells of: a process was killed, or gave
    /// up waiting. It outlives processes, until a driver has taken it into account.
    pub untold_requests: Arc<AtomicBool>,
    lock: Option<Lock>,
}

const RUNNING: &str = "running";
const CLOSED: &str = "closed";
const INTERRUPTED: &str = "interrupted";

/// A reader holds the lock for a moment only, while it looks after what a crash left.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);
const LOCK_PAUSE: Duration = Duration::from_millis(20);

impl Archive {
    /// Opens the archive; to write creates it on first use.
    pub(crate) fn open(folder: &Path, config: &Config, access: Access) -> anyhow::Result<Self> {
        check_folder(folder, access)?;
        let lock = match access {
            Access::Write | Access::WriteMuch | Access::Rebuild => Some(Lock::hold(folder)?),
            Access::Check => match Lock::take(folder)? {
                Taken::Free(mut lock) => lock.write_running().is_ok().then_some(lock),
                Taken::Held { .. } => None,
            },
            Access::Read => {
                look_after(folder)?;
                None
            }
        };
        if access == Access::Rebuild {
            put_damaged_state_aside(folder)?;
        }
        let state = SqliteState::open(&folder.join(STATE), config.state.bucket.as_s())?;
        let store = open_store(folder, lock.is_none(), access == Access::WriteMuch)?;
        let untold = lock.as_ref().is_some_and(|lock| lock.untold_requests);
        Ok(Self {
            folder: folder.to_owned(),
            state: Arc::new(state),
            store: Arc::new(store),
            untold_requests: Arc::new(AtomicBool::new(untold)),
            lock,
        })
    }

    /// All bytes of the archive's files.
    pub(crate) fn file_bytes(&self) -> anyhow::Result<u64> {
        folder_bytes(&self.folder).with_context(|| format!("cannot list {}", self.folder.display()))
    }
}

/// All bytes of the files below a folder.
pub(crate) fn folder_bytes(folder: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.metadata()?;
        bytes += if kind.is_dir() { folder_bytes(&entry.path())? } else { kind.len() };
    }
    Ok(bytes)
}

/// The packs of an archive for reading, with no cache of ours: what a page costs that nobody asked for
/// lately.
pub(crate) fn cold_store(folder: &Path) -> anyhow::Result<Store> {
    let packs = LocalFolder::open(folder.join(PACKS)).map_err(nenrin_store::StoreError::from)?;
    let index_path = Some(folder.join(INDEX));
    let options =
        StoreOptions { index_path, read_only: true, cache_bytes: 0, ..StoreOptions::default() };
    Ok(Store::open(Arc::new(packs), options)?)
}

impl Drop for Archive {
    fn drop(&mut self) {
        // A lock file that still says "running" only costs the next start a pause per server.
        if let Some(lock) = &mut self.lock {
            let untold = self.untold_requests.load(Ordering::Relaxed);
            let _ = lock.write(if untold { INTERRUPTED } else { CLOSED });
        }
    }
}

const STATE: &str = "state.sqlite";
const INDEX: &str = "packs.index";
const PACKS: &str = "packs";
/// Decoded content kept for readers.
const READERS_CACHE_BYTES: usize = 24 << 20;
/// zstd's level for what `compact` will write again.
const HASTY_LEVEL: i32 = 1;
/// And written in pieces of this size.
const HASTY_WRITE_BYTES: usize = 512 << 10;

/// Whether an archive can be opened or begun here.
fn check_folder(folder: &Path, access: Access) -> anyhow::Result<()> {
    if folder.exists() && !folder.is_dir() {
        return Err(usage(anyhow::anyhow!(
            "{} is not a folder; name one for the archive with --archive",
            folder.display()
        )));
    }
    let packs_lie_there =
        std::fs::read_dir(folder.join(PACKS)).is_ok_and(|mut packs| packs.next().is_some());
    if folder.join(STATE).exists() || (access == Access::Rebuild && packs_lie_there) {
        return Ok(());
    }
    if packs_lie_there {
        // Beginning a new state here would hide everything that the packs hold.
        let reason = "it is missing, but there are packs".to_owned();
        return Err(StateError::Damaged { path: folder.join(STATE), reason }.into());
    }
    if !matches!(access, Access::Write | Access::WriteMuch) {
        return Err(usage(anyhow::anyhow!(
            "there is no archive in {}; name one with --archive, or begin one with `nenrin collect URL`",
            folder.display()
        )));
    }
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create the archive {}", folder.display()))
}

/// A state that is damaged is put aside, not deleted: someone may want to look at it.
fn put_damaged_state_aside(folder: &Path) -> anyhow::Result<()> {
    let path = folder.join(STATE);
    let sound = || Ok::<_, StateError>(SqliteState::open(&path, 3600)?.check()?.is_empty());
    match sound() {
        Ok(true) => return Ok(()),
        Ok(false) | Err(StateError::Damaged { .. }) => {}
        Err(other) => return Err(other.into()),
    }
    for suffix in ["", "-wal", "-shm"] {
        let from = folder.join(format!("{STATE}{suffix}"));
        if from.exists() {
            let aside = format!("{STATE}{suffix}.damaged-{}", clock::now_s());
            std::fs::rename(&from, folder.join(aside))?;
        }
    }
    Ok(())
}

fn open_store(folder: &Path, read_only: bool, is_hasty: bool) -> anyhow::Result<Store> {
    let packs = LocalFolder::open(folder.join(PACKS)).map_err(nenrin_store::StoreError::from)?;
    let mut packs: Arc<dyn ContentBackend> = Arc::new(packs);
    let index_path = Some(folder.join(INDEX));
    let mut options = StoreOptions { index_path, read_only, ..StoreOptions::default() };
    if read_only {
        // Replay keeps the pages that it made: what they were made from is rarely wanted again.
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

/// Before reading: brings the index up to the packs where a crash left it behind, someone deleted
/// it or an older program wrote it, unless another process is writing and has done so itself.
fn look_after(folder: &Path) -> anyhow::Result<()> {
    let Taken::Free(lock) = Lock::take(folder)? else { return Ok(()) };
    if lock.was_running || !Store::can_use_index(&folder.join(INDEX))? {
        // Without room nothing can be brought up, but most can still be read.
        if let Err(error) = open_store(folder, false, false) {
            tracing::warn!("the index could not be brought up to the packs: {error:#}");
        }
    }
    Ok(())
}

/// The archive's lock file: held while a process writes, and telling how the last one ended.
struct Lock {
    file: File,
    was_running: bool,
    untold_requests: bool,
}

enum Taken {
    Free(Lock),
    Held { by: String },
}

impl Lock {
    /// Takes the lock to write, or says who has it.
    fn hold(folder: &Path) -> anyhow::Result<Self> {
        let mut waited = Duration::ZERO;
        loop {
            match Self::take(folder)? {
                Taken::Free(mut lock) => {
                    lock.write_running().with_context(|| cannot_lock(folder))?;
                    return Ok(lock);
                }
                Taken::Held { .. } if waited < LOCK_PATIENCE => {
                    std::thread::sleep(LOCK_PAUSE);
                    waited += LOCK_PAUSE;
                }
                Taken::Held { by } => {
                    return Err(usage(anyhow::anyhow!(
                        "another nenrin{by} is writing to the archive {}; stop it, use its interface, or name another archive with --archive",
                        folder.display()
                    )));
                }
            }
        }
    }

    /// Takes the lock if it is free, and leaves its note as it is.
    fn take(folder: &Path) -> anyhow::Result<Taken> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(folder.join("nenrin.lock"))
            .with_context(|| cannot_lock(folder))?;
        let held = match file.try_lock() {
            Ok(()) => false,
            Err(std::fs::TryLockError::WouldBlock) => true,
            Err(std::fs::TryLockError::Error(error)) => {
                return Err(anyhow::Error::new(error).context(cannot_lock(folder)));
            }
        };
        let mut note = String::new();
        // The note is read for people alone; a damaged one says nothing.
        let _ = Read::by_ref(&mut file).take(100).read_to_string(&mut note);
        if held {
            let by =
                note.split_once(' ').map_or(String::new(), |(_, pid)| format!(" (process {pid})"));
            return Ok(Taken::Held { by });
        }
        let was_running = note.starts_with(RUNNING);
        let untold_requests = was_running || note == INTERRUPTED;
        Ok(Taken::Free(Self { file, was_running, untold_requests }))
    }

    fn write_running(&mut self) -> std::io::Result<()> {
        self.write(&format!("{RUNNING} {}", std::process::id()))
    }

    /// Overwrites the note, which needs no room on a full disk, and only then cuts the rest.
    fn write(&mut self, note: &str) -> std::io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(note.as_bytes())?;
        self.file.set_len(note.len() as u64)
    }
}

fn cannot_lock(folder: &Path) -> String {
    format!("cannot lock the archive {}", folder.display())
}
