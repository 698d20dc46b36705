use std::io;

/// Why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum WarcError {
    /// The disk or the stream failed; this file cannot be continued.
    #[error("cannot read or write: {0}")]
    Io(#[from] io::Error),
    /// One record cannot be read. The reader continues with the next readable one.
    #[error("the record at byte {offset} cannot be read: {reason}")]
    Damaged {
        /// Where the record begins in the file.
        offset: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// The file cannot be read here.
    #[error("{reason}")]
    NotReadable {
        /// What is wrong with the file.
        reason: String,
    },
}

impl WarcError {
    /// Whether only one record is lost, so that reading can continue.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. })
    }
}

pub(crate) fn damaged(offset: u64, reason: impl Into<String>) -> WarcError {
    WarcError::Damaged { offset, reason: reason.into() }
}

pub(crate) fn not_readable(reason: impl Into<String>) -> WarcError {
    WarcError::NotReadable { reason: reason.into() }
}
