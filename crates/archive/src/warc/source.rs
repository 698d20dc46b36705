//! The files of an import, and the WARC files inside packages.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use nenrin_warc::{Entry, ReadOptions, RecordReader, Section, ZipReader};

use crate::{ArchiveError, Result};

/// Captures with longer blocks are stored one by one, from a file: they do not fit into memory.
const MAX_BLOCK_BYTES: u64 = 64 << 20;
/// Shorter blocks are compressed again: it takes no time, and what surrounds them takes space.
const PACKED_FROM_BYTES: usize = 4 << 10;

/// A WARC or ARC file, perhaps inside a package.
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) entry: Option<Entry>,
    pub(crate) bytes: u64,
}

impl Source {
    /// The files of a path: itself, or the WARC files of a package.
    pub(crate) fn of(path: &Path) -> Result<Vec<Self>> {
        let mut file = File::open(path).map_err(ArchiveError::reading(path))?;
        let bytes = file.metadata().map_err(ArchiveError::reading(path))?.len();
        let mut magic = [0; 4];
        let length = file.read(&mut magic).map_err(ArchiveError::reading(path))?;
        if &magic[..length] != b"PK\x03\x04" {
            return Ok(vec![Self { path: path.to_owned(), entry: None, bytes }]);
        }
        let name = path.display();
        let package = ZipReader::open(file).map_err(ArchiveError::warc(name.to_string()))?;
        let is_warc = |entry: &&Entry| {
            let endings = [".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz"];
            entry.name.starts_with("archive/") && endings.iter().any(|e| entry.name.ends_with(e))
        };
        let source = |entry: &Entry| -> Result<Self> {
            if !entry.is_stored {
                return Err(ArchiveError::Input(format!(
                    "{name}: {} is compressed twice; store it in the package without compression",
                    entry.name
                )));
            }
            let (path, bytes) = (path.to_owned(), entry.length);
            Ok(Self { path, entry: Some(entry.clone()), bytes })
        };
        let sources: Vec<Self> =
            package.entries().iter().filter(is_warc).map(source).collect::<Result<_>>()?;
        if sources.is_empty() {
            return Err(ArchiveError::Input(format!("{name} has no WARC files below archive/")));
        }
        Ok(sources)
    }

    pub(crate) fn name(&self) -> String {
        match &self.entry {
            Some(entry) => format!("{}:{}", self.path.display(), entry.name),
            None => self.path.display().to_string(),
        }
    }

    /// Words for a record that could not be read.
    pub(crate) fn damage(&self, offset: u64, reason: &str) -> String {
        format!("{}: the record at byte {offset}: {reason}", self.name())
    }

    /// Opens it for reading.
    pub(crate) fn reader(&self) -> Result<RecordReader<Part>> {
        self.open(ReadOptions {
            max_block_bytes: MAX_BLOCK_BYTES,
            packed_from_bytes: Some(PACKED_FROM_BYTES),
        })
    }

    /// Opens it for reading the fields of its records alone.
    pub(crate) fn heads(&self) -> Result<RecordReader<Part>> {
        self.open(ReadOptions { max_block_bytes: 0, packed_from_bytes: None })
    }

    fn open(&self, options: ReadOptions) -> Result<RecordReader<Part>> {
        let file = File::open(&self.path).map_err(ArchiveError::reading(&self.path))?;
        let part = match &self.entry {
            Some(entry) => {
                Part::Section(Section::new(file, entry).map_err(ArchiveError::reading(&self.path))?)
            }
            None => Part::File(file),
        };
        RecordReader::open(part, options).map_err(ArchiveError::warc(self.name()))
    }
}

/// A file, or a part of one.
pub(crate) enum Part {
    File(File),
    Section(Section<File>),
}

impl Read for Part {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(buffer),
            Self::Section(section) => section.read(buffer),
        }
    }
}

impl Seek for Part {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Self::File(file) => file.seek(to),
            Self::Section(section) => section.seek(to),
        }
    }
}
