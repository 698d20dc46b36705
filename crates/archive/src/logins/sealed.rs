//! Secrets on disk: sealed with a key that is not in the archive's folder.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use sha2::{Digest, Sha256};

use crate::{ArchiveError, Result};

const MAGIC: &[u8] = b"nenrin login 1\n";
/// A shorter key could be guessed.
const KEY_MIN_CHARS: usize = 32;
/// Bytes of a key that is made.
const KEY_BYTES: usize = 32;
/// No login is longer.
const SEALED_MAX_BYTES: u64 = 16 << 20;

/// Where the key of the log-ins comes from.
#[derive(Clone, PartialEq, Eq)]
pub enum LoginKey {
    /// The key itself: at least 32 characters.
    Text(String),
    /// A file that has it.
    File(PathBuf),
    /// A file beside the archive's folder, made when it is first needed.
    Beside,
}

impl std::fmt::Debug for LoginKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the key of the log-ins")
    }
}

impl LoginKey {
    /// The key as it was given: itself, or the file that has it.
    pub fn given(text: Option<String>, file: Option<String>) -> Self {
        let filled = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        match (filled(text), filled(file)) {
            (Some(text), _) => Self::Text(text),
            (None, Some(file)) => Self::File(file.into()),
            (None, None) => Self::Beside,
        }
    }

    /// The file beside an archive.
    pub fn beside(folder: &Path) -> PathBuf {
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let mut name = folder.file_name().unwrap_or_default().to_owned();
        name.push(".login-key");
        folder.with_file_name(name)
    }

    /// The key, which is made if it is to be beside the archive and is not there.
    pub(super) fn open(&self, folder: &Path, makes: bool) -> Result<SealingKey> {
        let (text, path) = match self {
            Self::Text(text) => (text.clone(), None),
            Self::File(path) => (read_key(path)?, Some(path.clone())),
            Self::Beside => {
                let path = Self::beside(folder);
                if makes && !path.exists() {
                    make_key(&path)?;
                }
                (read_key(&path)?, Some(path))
            }
        };
        if text.trim().chars().count() < KEY_MIN_CHARS {
            let whose =
                path.map_or("NENRIN_LOGIN_KEY".to_owned(), |path| path.display().to_string());
            return Err(ArchiveError::Input(format!(
                "the key for log-ins in {whose} is too short; it needs at least {KEY_MIN_CHARS} characters"
            )));
        }
        SealingKey::new(text.trim())
    }
}

fn read_key(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => ArchiveError::Input(format!(
            "the key for log-ins is not there: {}; put it back, or set the log-ins again",
            path.display()
        )),
        _ => ArchiveError::io("read the key for log-ins", path)(error),
    })
}

fn make_key(path: &Path) -> Result<()> {
    let mut bytes = [0; KEY_BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| no_randomness())?;
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let failed = |error: std::io::Error| {
        ArchiveError::Input(format!(
            "the key for log-ins cannot be made in {}: {error}; set NENRIN_LOGIN_KEY_FILE to another file",
            path.display()
        ))
    };
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = file.map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)
}

fn no_randomness() -> ArchiveError {
    ArchiveError::Input("the system gives no random numbers".to_owned())
}

/// A key that seals and opens.
pub(super) struct SealingKey(LessSafeKey);

impl SealingKey {
    fn new(text: &str) -> Result<Self> {
        let bytes = Sha256::new().chain_update(MAGIC).chain_update(text).finalize();
        let key = UnboundKey::new(&CHACHA20_POLY1305, &bytes);
        key.map(|key| Self(LessSafeKey::new(key)))
            .map_err(|_| ArchiveError::Input("the key for log-ins cannot be used".to_owned()))
    }

    /// Writes a secret, in place of what was there. `about` is what it belongs to: elsewhere it
    /// cannot be opened.
    pub(super) fn write(&self, path: &Path, about: &str, secret: &[u8]) -> Result<()> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(|_| no_randomness())?;
        let mut sealed = secret.to_vec();
        let unique = Nonce::assume_unique_for_key(nonce);
        self.0
            .seal_in_place_append_tag(unique, Aad::from(about), &mut sealed)
            .map_err(|_| ArchiveError::Input("the log-in cannot be sealed".to_owned()))?;
        let part = path.with_extension("part");
        let write = || {
            // One that a crash left may have other rights.
            match std::fs::remove_file(&part) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file =
                OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
            file.write_all(MAGIC)?;
            file.write_all(&nonce)?;
            file.write_all(&sealed)?;
            file.sync_all()?;
            std::fs::rename(&part, path)?;
            path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
        };
        write().map_err(ArchiveError::writing(path))
    }

    /// Opens what was sealed with this key.
    pub(super) fn read(&self, path: &Path, about: &str) -> Result<Vec<u8>> {
        let length = std::fs::metadata(path).map_err(ArchiveError::reading(path))?.len();
        let other = || {
            ArchiveError::Input(format!(
                "{} was sealed with another key, or is damaged",
                path.display()
            ))
        };
        if length > SEALED_MAX_BYTES {
            return Err(other());
        }
        let bytes = std::fs::read(path).map_err(ArchiveError::reading(path))?;
        let rest = bytes.strip_prefix(MAGIC).ok_or_else(other)?;
        let (nonce, sealed) = rest.split_at_checked(NONCE_LEN).ok_or_else(other)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| other())?;
        let mut sealed = sealed.to_vec();
        let opened = self.0.open_in_place(nonce, Aad::from(about), &mut sealed);
        opened.map(|secret| secret.to_vec()).map_err(|_| other())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_secret_is_opened_by_its_key_alone_and_only_where_it_belongs() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("archive");
        std::fs::create_dir(&folder).unwrap();
        assert!(LoginKey::Beside.open(&folder, false).is_err());
        let key = LoginKey::Beside.open(&folder, true).unwrap();
        let path = LoginKey::beside(&folder);
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        let file = folder.join("1");
        key.write(&file, "site 1", b"topsecret").unwrap();
        assert_eq!(mode(&file), 0o600);
        let bytes = std::fs::read(&file).unwrap();
        assert!(!bytes.windows(9).any(|window| window == b"topsecret"));
        let again = LoginKey::File(path).open(&folder, false).unwrap();
        assert_eq!(again.read(&file, "site 1").unwrap(), b"topsecret");
        assert!(again.read(&file, "site 2").is_err(), "it belongs to another site");
        let other = LoginKey::Text("x".repeat(40)).open(&folder, false).unwrap();
        assert!(other.read(&file, "site 1").is_err());
        assert!(LoginKey::Text("short".to_owned()).open(&folder, false).is_err());
        for at in [0, 20, bytes.len() - 1] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            std::fs::write(&file, damaged).unwrap();
            assert!(again.read(&file, "site 1").is_err(), "byte {at}");
        }
    }
}
