//! Totals.

use serde::Serialize;

/// Totals of the whole state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct StateStats {
    /// Registered sites.
    pub sites: u64,
    /// Known servers.
    pub servers: u64,
    /// Known pages.
    pub pages: u64,
    /// Visits made.
    pub visits: u64,
    /// Versions kept.
    pub versions: u64,
    /// What a mirror of every visit would take.
    pub raw_bytes: u64,
    /// Bytes of the database on disk.
    pub file_bytes: u64,
}
