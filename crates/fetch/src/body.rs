use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use bytes::Bytes;

use crate::memory::{Memory, Share};

/// A body as it was received: in memory if it is small, else in a file without a name, which is
/// gone with its last user. Clones share it.
#[derive(Debug, Clone)]
pub struct Body(Kept);

#[derive(Debug, Clone)]
enum Kept {
    Memory { bytes: Bytes, _share: Option<Arc<Share>> },
    File(Arc<Spooled>),
}

/// A file of received bytes, counted as long as it is there.
#[derive(Debug)]
pub(crate) struct Spooled {
    pub(crate) file: File,
    pub(crate) length: u64,
    pub(crate) memory: Memory,
}

impl Drop for Spooled {
    fn drop(&mut self) {
        self.memory.unspool(self.length);
    }
}

impl Body {
    pub(crate) fn in_memory(bytes: Bytes, share: Option<Share>) -> Self {
        Self(Kept::Memory { bytes, _share: share.map(Arc::new) })
    }

    pub(crate) fn spooled(file: Spooled) -> Self {
        Self(Kept::File(Arc::new(file)))
    }

    /// Its length in bytes.
    pub fn len(&self) -> u64 {
        match &self.0 {
            Kept::Memory { bytes, .. } => bytes.len() as u64,
            Kept::File(file) => file.length,
        }
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it is in a file.
    pub fn is_spooled(&self) -> bool {
        matches!(self.0, Kept::File(_))
    }

    /// Reads it from its beginning; several readers do not disturb each other.
    pub fn reader(&self) -> BodyReader<'_> {
        BodyReader { body: self, at: 0 }
    }

    /// Its first bytes, at most so many.
    pub fn front(&self, max_bytes: usize) -> io::Result<Cow<'_, [u8]>> {
        match &self.0 {
            Kept::Memory { bytes, .. } => Ok(Cow::Borrowed(&bytes[..bytes.len().min(max_bytes)])),
            Kept::File(_) => {
                let mut front = Vec::new();
                self.reader().take(max_bytes as u64).read_to_end(&mut front)?;
                Ok(Cow::Owned(front))
            }
        }
    }
}

impl Default for Body {
    fn default() -> Self {
        Bytes::new().into()
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::in_memory(bytes, None)
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

/// Reads a [`Body`] from its beginning.
#[derive(Debug)]
pub struct BodyReader<'a> {
    body: &'a Body,
    at: u64,
}

impl Read for BodyReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match &self.body.0 {
            Kept::Memory { bytes, .. } => (&bytes[self.at as usize..]).read(buffer)?,
            Kept::File(spooled) => {
                let left = usize::try_from(spooled.length - self.at).unwrap_or(usize::MAX);
                let wanted = buffer.len().min(left);
                read_at(&spooled.file, &mut buffer[..wanted], self.at)?
            }
        };
        self.at += count as u64;
        Ok(count)
    }
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, at)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, at)
}
