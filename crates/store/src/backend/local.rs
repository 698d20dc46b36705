use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::ContentBackend;
use crate::error::BackendError;

/// Open files kept for reading; more would only press against the process limit.
const MAX_OPEN_FILES: usize = 64;

/// A folder on a local disk; `sync` is fsync of the file, and of the folder for a new name.
pub struct LocalFolder {
    folder: PathBuf,
    open: Mutex<OpenFiles>,
}

#[derive(Default)]
struct OpenFiles {
    files: BTreeMap<String, Arc<File>>,
    /// Names that the folder on disk may not know yet.
    unsynced_names: Vec<String>,
}

impl LocalFolder {
    /// Opens the folder, creating it when it is not there.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, BackendError> {
        let folder = folder.into();
        let name = folder.display().to_string();
        if !folder.is_dir() {
            fs::create_dir_all(&folder).map_err(|source| BackendError::from_io(&name, source))?;
            if let Some(parent) = folder.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                sync_folder(parent).map_err(|source| BackendError::from_io(&name, source))?;
            }
        }
        Ok(Self { folder, open: Mutex::default() })
    }

    /// Where the objects are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn file(&self, name: &str, create: bool) -> Result<Arc<File>, BackendError> {
        check_name(name)?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = open.files.get(name) {
            return Ok(file.clone());
        }
        let path = self.folder.join(name);
        let known = path.exists();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(create)
            .truncate(false)
            .open(&path)
            .or_else(|error| match error.kind() {
                // A read-only archive can still be read.
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem if !create => {
                    File::open(&path)
                }
                _ => Err(error),
            })
            .map_err(|source| BackendError::from_io(name, source))?;
        if !known {
            open.unsynced_names.push(name.to_owned());
        }
        if open.files.len() >= MAX_OPEN_FILES {
            open.files.pop_first();
        }
        let file = Arc::new(file);
        open.files.insert(name.to_owned(), file.clone());
        Ok(file)
    }
}

impl ContentBackend for LocalFolder {
    fn can_grow(&self) -> bool {
        true
    }

    fn list(&self) -> Result<Vec<(String, u64)>, BackendError> {
        let name = self.folder.display().to_string();
        let list = || -> io::Result<Vec<(String, u64)>> {
            let mut found = Vec::new();
            for entry in fs::read_dir(&self.folder)? {
                let entry = entry?;
                let metadata = entry.metadata()?;
                if let (true, Ok(name)) = (metadata.is_file(), entry.file_name().into_string()) {
                    found.push((name, metadata.len()));
                }
            }
            found.sort();
            Ok(found)
        };
        list().map_err(|source| BackendError::from_io(&name, source))
    }

    fn read(&self, name: &str, offset: u64, length: usize) -> Result<Vec<u8>, BackendError> {
        let file = self.file(name, false)?;
        let end = offset.saturating_add(length as u64);
        // The length is checked first so that a damaged length cannot make us reserve memory.
        let present = file.metadata().map_err(|source| BackendError::from_io(name, source))?.len();
        if end > present {
            return Err(BackendError::TooShort { name: name.to_owned(), end });
        }
        let mut bytes = vec![0; length];
        match read_exact_at(&file, &mut bytes, offset) {
            Ok(()) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(BackendError::TooShort { name: name.to_owned(), end })
            }
            Err(source) => Err(BackendError::from_io(name, source)),
        }
    }

    fn append(&self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), BackendError> {
        let file = self.file(name, true)?;
        let write = || -> io::Result<()> {
            let length = file.metadata()?.len();
            if length > offset {
                file.set_len(offset)?;
            } else if length < offset {
                return Err(io::Error::other("an append must begin where the object ends"));
            }
            write_all_at(&file, bytes, offset)
        };
        write().map_err(|source| BackendError::from_io(name, source))
    }

    fn overwrite(&self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), BackendError> {
        let file = self.file(name, false)?;
        let write = || -> io::Result<()> {
            if file.metadata()?.len() < offset.saturating_add(bytes.len() as u64) {
                return Err(io::Error::other("only bytes that are there can be overwritten"));
            }
            write_all_at(&file, bytes, offset)?;
            file.sync_data()
        };
        write().map_err(|source| BackendError::from_io(name, source))
    }

    fn sync(&self, name: &str) -> Result<(), BackendError> {
        let file = self.file(name, false)?;
        let failed = |source| BackendError::from_io(name, source);
        file.sync_data().map_err(failed)?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.unsynced_names.iter().any(|unsynced| unsynced == name) {
            sync_folder(&self.folder).map_err(failed)?;
            open.unsynced_names.clear();
        }
        Ok(())
    }

    fn truncate(&self, name: &str, length: u64) -> Result<(), BackendError> {
        let file = self.file(name, false)?;
        let cut = || {
            if file.metadata()?.len() > length {
                file.set_len(length)?;
            }
            Ok(())
        };
        cut().map_err(|source| BackendError::from_io(name, source))
    }

    fn delete(&self, name: &str) -> Result<(), BackendError> {
        check_name(name)?;
        self.open.lock().unwrap_or_else(PoisonError::into_inner).files.remove(name);
        match fs::remove_file(self.folder.join(name)) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(BackendError::from_io(name, source))
            }
            _ => Ok(()),
        }
    }
}

/// Names come from us, but a name with a slash would leave the folder.
fn check_name(name: &str) -> Result<(), BackendError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "not the name of an object");
        return Err(BackendError::Io { name: name.to_owned(), source });
    }
    Ok(())
}

#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> io::Result<()> {
    // Other systems give no handle on a folder; their file systems journal names themselves.
    Ok(())
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(unix)]
fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    use std::os::windows::fs::FileExt;
    while !bytes.is_empty() {
        let read = file.seek_read(bytes, offset)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes = &mut bytes[read..];
        offset += read as u64;
    }
    Ok(())
}

#[cfg(windows)]
fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    use std::os::windows::fs::FileExt;
    while !bytes.is_empty() {
        let written = file.seek_write(bytes, offset)?;
        bytes = &bytes[written..];
        offset += written as u64;
    }
    Ok(())
}
