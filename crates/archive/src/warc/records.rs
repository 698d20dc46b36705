//! What goes from the thread that reads an export to the one that writes it.

use nenrin_state::VisitRow;
use nenrin_store::{VersionHead, VersionId};
use nenrin_urls::CanonicalUrl;
use nenrin_warc::{CaptureFields, PageLine, RevisitProfile};

/// A version, ready to be written.
pub(super) struct ReadCapture {
    pub(super) head: VersionHead,
    pub(super) mime: Option<String>,
    pub(super) body: ReadBody,
    pub(super) fields: CaptureFields,
    pub(super) page: Option<PageLine>,
}

/// A version's body: a large one is read again when it is written.
pub(super) enum ReadBody {
    Memory(Vec<u8>),
    Stored(VersionId),
}

/// An unchanged visit and what it found unchanged.
pub(super) struct FoundRevisit {
    pub(super) url: CanonicalUrl,
    pub(super) visit: VisitRow,
    pub(super) profile: RevisitProfile,
    pub(super) original_at_s: i64,
    pub(super) payload_digest: String,
    /// The request of the original, if it was not a GET.
    pub(super) request_head: Vec<u8>,
}

/// A capture that an export refers to without holding it.
#[derive(Debug, serde::Serialize)]
pub(super) struct Required {
    pub(super) url: String,
    pub(super) date: String,
    pub(super) digest: String,
}
