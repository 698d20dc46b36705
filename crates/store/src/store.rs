use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::backend::ContentBackend;
use crate::cache::Cache;
use crate::catch_up;
use crate::decoded::Decoded;
use crate::digest::BodyKey;
use crate::effort::Effort;
use crate::error::StoreError;
use crate::group::Group;
use crate::index::Index;
use crate::lost::{KnownVersions, LostVersions};
use crate::options::StoreOptions;
use crate::pack::Location;
use crate::rows::{Digests, Row};
use crate::similar::Similar;
use crate::spare::Spare;
use crate::underway;
use crate::whole::Whole;
use crate::writer::Writer;

/// Decoded version records kept in memory.
const ROWS_CACHE_BYTES: usize = 8 << 20;
/// The part of the cache that is for prefixes: each is far smaller than a frame, and serves many.
const PREFIXES_PART: usize = 8;

/// All versions of all pages. One writer at a time, any number of readers; share it by `Arc`.
///
/// ```
/// use std::sync::Arc;
/// use nenrin_store::{MemoryBackend, NewVersion, Store, StoreOptions};
/// use nenrin_urls::CanonicalUrl;
///
/// let store = Store::open(Arc::new(MemoryBackend::default()), StoreOptions::default())?;
/// let put = store.put(&NewVersion {
///     url: &CanonicalUrl::parse("https://example.com/").unwrap(),
///     group: 1,
///     visited_at_s: 100,
///     status: 200,
///     protocol: "http/1.1",
///     tls: None,
///     server_address: None,
///     request_head: b"",
///     response_head: b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n",
///     body: b"<p>one</p>",
///     truncated: None,
///     previous: None,
/// })?;
/// store.sync()?;
/// assert_eq!(store.read(put.id)?.body, b"<p>one</p>");
/// # Ok::<(), nenrin_store::StoreError>(())
/// ```
pub struct Store {
    pub(crate) backend: Arc<dyn ContentBackend>,
    pub(crate) options: StoreOptions,
    pub(crate) index: Mutex<Index>,
    pub(crate) writer: Mutex<Writer>,
    pub(crate) pending: RwLock<Pending>,
    pub(crate) frames: Cache<Decoded>,
    /// Raw bytes of prefix chunks.
    pub(crate) prefixes: Cache<Vec<u8>>,
    pub(crate) rows: Cache<Vec<Row>>,
    /// The digests of the versions chunk that was asked for last.
    pub(crate) last_digests: Mutex<Option<(Location, Digests)>>,
    pub(crate) spare: Spare,
    pub(crate) whole: Whole,
    /// Pages seen lately, for finding one that resembles a new page.
    pub(crate) similar: Mutex<Similar>,
    pub(crate) next_pack: AtomicU64,
    effort: AtomicU8,
    /// Held while compacting, which takes long and lets everybody else go on.
    pub(crate) compacting: Mutex<()>,
    /// Held during a sync.
    pub(crate) syncing: Mutex<()>,
    /// For a process that only reads what others write: whether the index was asked lately, and
    /// whether it is to learn what they wrote before it is asked again.
    is_used: AtomicBool,
    is_behind: AtomicBool,
}

/// What was put since the last sync: readable here, not yet durable.
#[derive(Default)]
pub(crate) struct Pending {
    pub(crate) rows: BTreeMap<u64, Arc<Row>>,
    /// Where they are: in the open pack, or in the group.
    pub(crate) bodies: BTreeMap<BodyKey, Location>,
    pub(crate) group: Group,
    pub(crate) weight_bytes: usize,
}

impl Store {
    /// Opens an archive, or begins one. What a crash left behind is cut off or finished, and the
    /// index is brought up to the packs.
    pub fn open(
        backend: Arc<dyn ContentBackend>,
        options: StoreOptions,
    ) -> Result<Self, StoreError> {
        let path = options.index_path.as_deref();
        let (index, (writer, next_pack)) = if options.read_only {
            (Index::open_to_read(path)?, (Writer::forbidden(), 0))
        } else {
            let mut index = Index::open(path)?;
            if underway::delete_outputs(&*backend, false)? {
                index.begin_anew(path)?;
                underway::end(&*backend)?;
            }
            let caught_up = match catch_up::catch_up(&*backend, &mut index) {
                // A damaged index is made again from the packs.
                Err(error) if error.is_of_index() => {
                    index.begin_anew(path)?;
                    catch_up::catch_up(&*backend, &mut index)?
                }
                other => other?,
            };
            (index, caught_up)
        };
        let mut writer = writer;
        writer.next_version = writer.next_version.max(options.first_numbers.version);
        let next_pack = next_pack.max(options.first_numbers.pack);
        Ok(Self {
            frames: Cache::new(options.cache_bytes - options.cache_bytes / PREFIXES_PART),
            prefixes: Cache::new(options.cache_bytes / PREFIXES_PART),
            rows: Cache::new(ROWS_CACHE_BYTES.min(options.cache_bytes)),
            last_digests: Mutex::default(),
            spare: Spare::default(),
            whole: Whole::default(),
            similar: Mutex::default(),
            backend,
            options,
            index: Mutex::new(index),
            writer: Mutex::new(writer),
            pending: RwLock::default(),
            next_pack: AtomicU64::new(next_pack),
            effort: AtomicU8::new(Effort::default() as u8),
            compacting: Mutex::default(),
            syncing: Mutex::default(),
            is_used: AtomicBool::new(false),
            is_behind: AtomicBool::new(false),
        })
    }

    /// How much work bodies that are put from now on are worth. Whatever is chosen, they come back
    /// exactly.
    pub fn set_effort(&self, effort: Effort) {
        self.effort.store(effort as u8, Ordering::Relaxed);
    }

    /// What was set last.
    pub fn effort(&self) -> Effort {
        Effort::from_byte(self.effort.load(Ordering::Relaxed))
    }

    /// Whether an index file is there that can be read as it is. Another one is rebuilt when the
    /// archive is opened for writing.
    pub fn can_use_index(path: &Path) -> Result<bool, StoreError> {
        Ok(Index::find(path)?.is_some())
    }

    /// Throws the index away and reads it from the packs again. Returns the versions that the old one
    /// knew, as far as it could be read, and that are not in the packs.
    pub fn rebuild_index(&self) -> Result<LostVersions, StoreError> {
        let _quiet = self.compacting.lock().unwrap_or_else(PoisonError::into_inner);
        self.sync()?;
        let mut writer = self.writer();
        let old = KnownVersions::of(&self.index())?;
        self.remake_index(&mut writer)?;
        old.missing_in(&self.index())
    }

    /// Makes the index again from the packs.
    pub(crate) fn remake_index(&self, writer: &mut Writer) -> Result<(), StoreError> {
        let mut index = self.index();
        index.begin_anew(self.options.index_path.as_deref())?;
        let (caught_up, next_pack) = catch_up::catch_up(&*self.backend, &mut index)?;
        *writer = caught_up;
        writer.next_version = writer.next_version.max(self.options.first_numbers.version);
        self.next_pack.fetch_max(next_pack, Ordering::Relaxed);
        Ok(())
    }

    /// Learns what others have written since the index was brought up to the packs: for a process
    /// that only reads an archive that others write.
    pub fn catch_up(&self) -> Result<(), StoreError> {
        let _turn = self.syncing.lock().unwrap_or_else(PoisonError::into_inner);
        catch_up::catch_up(&*self.backend, &mut self.lock_index()).map(drop)
    }

    /// The same every few seconds: now if the index was asked since the last call, else when it is
    /// asked next.
    pub fn follow(&self) -> Result<(), StoreError> {
        match self.is_used.swap(false, Ordering::Relaxed) {
            true => self.catch_up(),
            false => {
                self.is_behind.store(true, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    pub(crate) fn index(&self) -> MutexGuard<'_, Index> {
        self.is_used.store(true, Ordering::Relaxed);
        if self.is_behind.load(Ordering::Relaxed)
            && let Ok(_turn) = self.syncing.try_lock()
        {
            self.is_behind.store(false, Ordering::Relaxed);
            // Where the packs cannot be reached, what is known of them is shown.
            let _ = catch_up::catch_up(&*self.backend, &mut self.lock_index());
        }
        self.lock_index()
    }

    fn lock_index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
