use std::collections::BTreeMap;

use crate::built_upon::BuiltUpon;
use crate::digest::BodyKey;
use crate::error::{BackendError, StoreError};
use crate::open_pack::OpenPack;
use crate::pack::Location;
use crate::share::Share;

/// What the thread that writes holds; one at a time.
pub(crate) struct Writer {
    pub(crate) open: Option<OpenPack>,
    pub(crate) next_version: u64,
    /// While compacting: the stored bodies that were built upon meanwhile, which must not go.
    pub(crate) built_upon: Option<BuiltUpon>,
    /// Pieces of bodies that are being put, and by how many callers: no record names them yet.
    pub(crate) held: BTreeMap<BodyKey, u32>,
    /// The versions whose records are in the open pack, as far as the index does not know them
    /// yet, in order.
    pub(crate) written: Vec<(u64, Location)>,
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

    /// The writer of an archive that is open for reading: every write fails.
    pub(crate) fn forbidden() -> Self {
        Self { failed: true, ..Self::new(None, 0) }
    }

    /// Notes that something written now needs this body.
    pub(crate) fn build_upon(&self, key: BodyKey) -> Result<(), StoreError> {
        self.built_upon.as_ref().map_or(Ok(()), |built_upon| built_upon.note(key))
    }

    /// Keeps this body through any compacting until it is released.
    pub(crate) fn hold(&mut self, key: BodyKey) -> Result<(), StoreError> {
        *self.held.entry(key).or_default() += 1;
        self.build_upon(key)
    }

    /// A record names what was held, or never will.
    pub(crate) fn release(&mut self, key: BodyKey) {
        if let Some(holders) = self.held.get_mut(&key) {
            *holders -= 1;
            if *holders == 0 {
                self.held.remove(&key);
            }
        }
    }

    pub(crate) fn check(&self) -> Result<(), StoreError> {
        if !self.failed {
            return Ok(());
        }
        let source = std::io::Error::other("an earlier sync failed; open the archive again");
        Err(BackendError::Io { name: "the open pack".to_owned(), source }.into())
    }
}
