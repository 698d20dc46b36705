//! An archive on disk: one folder with the state, the packs and a lock.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use nenrin_state::{SqliteState, State};
use nenrin_store::{LocalFolder, Store, StoreOptions};

use crate::{config::Config, exit::usage};

/// What a command wants of the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// To write; one process at a time.
    Write,
    /// To read, also while another process writes.
    Read,
}

/// An open archive.
pub(crate) struct Archive {
    pub folder: PathBuf,
    pub state: Arc<dyn State>,
    pub store: Arc<Store>,
    /// Whether the last process that wrote ended without closing the archive.
    pub was_interrupted: bool,
    lock: Option<Lock>,
}

const RUNNING: &str = "running";
const CLOSED: &str = "closed";

impl Archive {
    /// Opens the archive, creating it on first use.
    pub(crate) fn open(folder: &Path, config: &Config, access: Access) -> anyhow::Result<Self> {
        if access == Access::Read && !folder.join("state.sqlite").exists() {
            return Err(usage(anyhow::anyhow!(
                "there is no archive in {}; name one with --archive, or begin one with `nenrin collect URL`",
                folder.display()
            )));
        }
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot create the archive {}", folder.display()))?;
        let lock = match (Lock::take(folder)?, access) {
            (Taken::Free(lock), _) => Some(lock),
            (Taken::Held { .. }, Access::Read) => None,
            (Taken::Held { by }, Access::Write) => {
                return Err(usage(anyhow::anyhow!(
                    "another nenrin{by} is writing to the archive {}; stop it, use its interface, or name another archive with --archive",
                    folder.display()
                )));
            }
        };
        let state = SqliteState::open(&folder.join("state.sqlite"), config.state.bucket.as_s())?;
        let packs =
            LocalFolder::open(folder.join("packs")).map_err(nenrin_store::StoreError::from)?;
        let options = StoreOptions {
            index_path: Some(folder.join("packs.index")),
            read_only: lock.is_none(),
            ..StoreOptions::default()
        };
        let store = Store::open(Arc::new(packs), options)?;
        let was_interrupted = lock.as_ref().is_some_and(|lock| lock.was_running);
        Ok(Self {
            folder: folder.to_owned(),
            state: Arc::new(state),
            store: Arc::new(store),
            was_interrupted,
            lock,
        })
    }

    /// All bytes of the archive's files.
    pub(crate) fn file_bytes(&self) -> anyhow::Result<u64> {
        fn sum(folder: &Path) -> std::io::Result<u64> {
            let mut bytes = 0;
            for entry in std::fs::read_dir(folder)? {
                let entry = entry?;
                let kind = entry.metadata()?;
                bytes += if kind.is_dir() { sum(&entry.path())? } else { kind.len() };
            }
            Ok(bytes)
        }
        sum(&self.folder).with_context(|| format!("cannot list {}", self.folder.display()))
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        // A lock file that still says "running" only costs the next start a pause per server.
        if let Some(lock) = &mut self.lock {
            let _ = lock.write(CLOSED);
        }
    }
}

/// The archive's lock file: held while a process writes, and telling whether it ended well.
struct Lock {
    file: File,
    was_running: bool,
}

enum Taken {
    Free(Lock),
    Held { by: String },
}

impl Lock {
    fn take(folder: &Path) -> anyhow::Result<Taken> {
        let path = folder.join("nenrin.lock");
        let context = || format!("cannot lock the archive with {}", path.display());
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .with_context(context)?;
        let held = match file.try_lock() {
            Ok(()) => false,
            Err(std::fs::TryLockError::WouldBlock) => true,
            Err(std::fs::TryLockError::Error(error)) => {
                return Err(anyhow::Error::new(error).context(context()));
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
        let mut lock = Self { file, was_running: note.starts_with(RUNNING) };
        lock.write(&format!("{RUNNING} {}", std::process::id())).with_context(context)?;
        Ok(Taken::Free(lock))
    }

    fn write(&mut self, note: &str) -> std::io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(note.as_bytes())
    }
}
