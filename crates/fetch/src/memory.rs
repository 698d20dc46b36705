use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Bytes, BytesMut};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::body::{Body, Spooled};

/// A body stays in memory up to this size, if memory is free. Most pages are smaller.
const MEMORY_MAX_BYTES: usize = 256 << 10;
/// Without free memory, this much of a body is gathered before it goes to its file.
const GATHERED_BYTES: usize = 16 << 10;
/// So much of every body may go to its file as long as the disk takes it: if the disk is fuller
/// than that, the store reports it.
const ALWAYS_SPOOLED_BYTES: u64 = 4 << 20;
/// The unit in which memory is counted.
const UNIT_BYTES: u64 = 1024;

/// The memory that bodies and the reading of them may take, all requests together, and where
/// larger bodies go. Clones share it.
///
/// Half of it is for bodies: those that do not fit go to files. The other half is for reading them:
/// a reader waits until some is free. So neither can block the other.
#[derive(Debug, Clone)]
pub struct Memory(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    bodies: Arc<Semaphore>,
    reading: Arc<Semaphore>,
    reading_units: u32,
    folder: PathBuf,
    spooled_bytes: AtomicU64,
    spool_max_bytes: AtomicU64,
}

/// Memory that is taken until this is dropped.
#[derive(Debug)]
pub struct Share(OwnedSemaphorePermit);

impl Share {
    /// Releases all but this many bytes.
    pub fn shrink_to(&mut self, bytes: u64) {
        let surplus = self.0.num_permits().saturating_sub(units(bytes) as usize);
        drop(self.0.split(surplus));
    }
}

impl Memory {
    /// At most so many bytes of memory; larger bodies go to files without names in this folder.
    pub fn new(max_bytes: u64, folder: PathBuf) -> Self {
        let half = units(max_bytes / 2).max(1);
        Self(Arc::new(Shared {
            bodies: Arc::new(Semaphore::new(half as usize)),
            reading: Arc::new(Semaphore::new(half as usize)),
            reading_units: half,
            folder,
            spooled_bytes: AtomicU64::new(0),
            spool_max_bytes: AtomicU64::new(u64::MAX),
        }))
    }

    /// Waits for memory to read in; what is more than all of it counts as all of it.
    pub async fn for_reading(&self, bytes: u64) -> Option<Share> {
        let wanted = units(bytes).min(self.0.reading_units);
        // The semaphore is never closed.
        Arc::clone(&self.0.reading).acquire_many_owned(wanted).await.ok().map(Share)
    }

    /// The disk has this much free space beside the files of bodies: they may take half of it,
    /// because what is in them is stored next.
    pub fn set_spare_bytes(&self, free_bytes: u64) {
        let most = self.spooled_bytes().saturating_add(free_bytes / 2);
        self.0.spool_max_bytes.store(most, Ordering::Relaxed);
    }

    /// The memory that bodies and the reading of them take now.
    pub fn used_bytes(&self) -> u64 {
        let free = self.0.bodies.available_permits() + self.0.reading.available_permits();
        (2 * u64::from(self.0.reading_units)).saturating_sub(free as u64) * UNIT_BYTES
    }

    /// What the files of bodies take now.
    pub fn spooled_bytes(&self) -> u64 {
        self.0.spooled_bytes.load(Ordering::Relaxed)
    }

    fn for_body(&self, bytes: usize) -> Option<Share> {
        let wanted = units(bytes as u64);
        Arc::clone(&self.0.bodies).try_acquire_many_owned(wanted).ok().map(Share)
    }

    /// Counts more of a body whose file has `length` bytes.
    fn spool(&self, length: u64, bytes: u64) -> io::Result<()> {
        let before = self.0.spooled_bytes.fetch_add(bytes, Ordering::Relaxed);
        let has_room =
            before.saturating_add(bytes) <= self.0.spool_max_bytes.load(Ordering::Relaxed);
        if has_room || length + bytes <= ALWAYS_SPOOLED_BYTES {
            return Ok(());
        }
        self.unspool(bytes);
        Err(io::Error::new(io::ErrorKind::StorageFull, "the disk has no space for it"))
    }

    pub(crate) fn unspool(&self, bytes: u64) {
        self.0.spooled_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// In units, at least one.
fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).max(1)
}

/// A body that is being received.
pub(crate) struct Receiving<'m> {
    memory: Option<&'m Memory>,
    share: Option<Share>,
    gathered: BytesMut,
    file: Option<Spooled>,
}

impl<'m> Receiving<'m> {
    /// Without a shared limit, everything is held in memory: the caller limits its size.
    pub(crate) fn new(memory: Option<&'m Memory>, announced: Option<u64>) -> Self {
        let expected = announced.map_or(MEMORY_MAX_BYTES, |bytes| {
            usize::try_from(bytes).unwrap_or(usize::MAX).min(MEMORY_MAX_BYTES)
        });
        let share = memory.and_then(|memory| memory.for_body(expected));
        Self { memory, share, gathered: BytesMut::new(), file: None }
    }

    pub(crate) fn length(&self) -> u64 {
        self.file.as_ref().map_or(0, |file| file.length) + self.gathered.len() as u64
    }

    /// Takes what came.
    pub(crate) async fn take(&mut self, data: &[u8]) -> io::Result<()> {
        self.gathered.extend_from_slice(data);
        let most = match self.share {
            Some(_) => MEMORY_MAX_BYTES,
            None => GATHERED_BYTES,
        };
        match self.memory {
            Some(memory) if self.gathered.len() > most => self.write(memory).await,
            _ => Ok(()),
        }
    }

    /// Moves what is gathered to the file.
    async fn write(&mut self, memory: &Memory) -> io::Result<()> {
        let gathered = self.gathered.split().freeze();
        let bytes = gathered.len() as u64;
        memory.spool(self.file.as_ref().map_or(0, |file| file.length), bytes)?;
        let file = self.file.take();
        let owned = memory.clone();
        let written = tokio::task::spawn_blocking(move || {
            // It is dropped, and counted no more, if anything fails.
            let mut spooled = match file {
                Some(file) => file,
                None => match tempfile::tempfile_in(&owned.0.folder) {
                    Ok(file) => Spooled { file, length: 0, memory: owned },
                    Err(error) => {
                        owned.unspool(bytes);
                        return Err(error);
                    }
                },
            };
            spooled.length += bytes;
            (&spooled.file).write_all(&gathered)?;
            Ok(spooled)
        });
        self.file = Some(written.await.map_err(io::Error::other)??);
        Ok(())
    }

    /// The body is complete.
    pub(crate) async fn end(mut self) -> io::Result<Body> {
        if self.file.is_some()
            && let Some(memory) = self.memory
            && !self.gathered.is_empty()
        {
            self.write(memory).await?;
        }
        if let Some(file) = self.file.take() {
            return Ok(Body::spooled(file));
        }
        let bytes = Bytes::from(self.gathered.to_vec());
        if let Some(share) = &mut self.share {
            share.shrink_to(bytes.len() as u64);
        }
        Ok(Body::in_memory(bytes, self.share))
    }
}
