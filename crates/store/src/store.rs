use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::backend::ContentBackend;
use crate::cache::Cache;
use crate::catch_up;
use crate::compact::BuiltUpon;
use crate::digest::BodyKey;
use crate::error::StoreError;
use crate::group::Group;
use crate::index::{self, Index};
use crate::open_pack::OpenPack;
use crate::options::StoreOptions;
use crate::pack::Place;
use crate::read::Decoded;
use crate::rows::{Digests, Row};
use crate::share::Share;
use crate::similar::Similar;
use crate::spare::Spare;

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
    pub(crate) last_digests: Mutex<Option<(Place, Digests)>>,
    pub(crate) spare: Spare,
    /// Pages seen lately, for finding one that resembles a new page.
    pub(crate) similar: Mutex<Similar>,
    pub(crate) next_pack: AtomicU64,
    /// Held while compacting, which takes long and lets everybody else go on.
    pub(crate) compacting: Mutex<()>,
    /// Held during a sync.
    pub(crate) syncing: Mutex<()>,
}

/// What was put since the last sync: readable here, not yet durable.
#[derive(Default)]
pub(crate) struct Pending {
    pub(crate) rows: BTreeMap<u64, Arc<Row>>,
    /// Where they are: in the open pack, or in the group.
    pub(crate) bodies: BTreeMap<BodyKey, Place>,
    pub(crate) group: Group,
    pub(crate) weight_bytes: usize,
}

/// The one who writes.
pub(crate) struct Writer {
    pub(crate) open: Option<OpenPack>,
    pub(crate) next_version: u64,
    /// While compacting: the stored bodies that were built upon meanwhile, which must not go.
    pub(crate) built_upon: Option<BuiltUpon>,
    /// Pieces of bodies that are being put, and by how many callers: no record names them yet.
    pub(crate) held: BTreeMap<BodyKey, u32>,
    /// The versions whose records are in the open pack, as far as the index does not know them
    /// yet, in order.
    pub(crate) written: Vec<(u64, Place)>,
    /// How many versions wait to be written.
    pub(crate) group_rows: usize,
    /// What was put into the open pack by site since records were last written.
    pub(crate) shares: BTreeMap<u32, Share>,
    /// What was put before, as far as the index does not know it yet.
    pub(crate) shares_to_note: Vec<(u32, Share)>,
    /// A sync failed: the system may have dropped any of the bytes, so only opening the archive
    /// again, which looks at them, is safe.
    pub(crate) failed: bool,
}

impl Writer {
    /// Goes on with this pack, if there is one, and this version number.
    pub(crate) fn new(open: Option<OpenPack>, next_version: u64) -> Self {
        Self {
            open,
            next_version,
            built_upon: None,
            held: BTreeMap::new(),
            written: Vec::new(),
            group_rows: 0,
            shares: BTreeMap::new(),
            shares_to_note: Vec::new(),
            failed: false,
        }
    }

    /// One who may not write.
    fn forbidden() -> Self {
        Self { failed: true, ..Self::new(None, 0) }
    }
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
            let caught_up = catch_up::catch_up(&*backend, &mut index)?;
            (index, caught_up)
        };
        Ok(Self {
            frames: Cache::new(options.cache_bytes - options.cache_bytes / PREFIXES_PART),
            prefixes: Cache::new(options.cache_bytes / PREFIXES_PART),
            rows: Cache::new(ROWS_CACHE_BYTES.min(options.cache_bytes)),
            last_digests: Mutex::default(),
            spare: Spare::default(),
            similar: Mutex::default(),
            backend,
            options,
            index: Mutex::new(index),
            writer: Mutex::new(writer),
            pending: RwLock::default(),
            next_pack: AtomicU64::new(next_pack),
            compacting: Mutex::default(),
            syncing: Mutex::default(),
        })
    }

    /// Whether an index file is there that can be read as it is. Another one is rebuilt when the
    /// archive is opened for writing.
    pub fn can_use_index(path: &Path) -> Result<bool, StoreError> {
        Ok(Index::find(path)?.is_some())
    }

    /// Throws the index away and reads it from the packs again.
    pub fn rebuild_index(&self) -> Result<(), StoreError> {
        let _quiet = self.compacting.lock().unwrap_or_else(PoisonError::into_inner);
        self.sync()?;
        let mut writer = self.writer();
        let mut index = self.index();
        if let Some(path) = &self.options.index_path {
            // The open connection must be gone before its file is.
            index.replace(Index::open(None)?);
            index::remove(path)?;
        }
        index.replace(Index::open(self.options.index_path.as_deref())?);
        let (caught_up, next_pack) = catch_up::catch_up(&*self.backend, &mut index)?;
        *writer = caught_up;
        self.next_pack.fetch_max(next_pack, Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
