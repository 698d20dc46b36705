//! What the records of files are, beside captures.

use nenrin_state::Outcome;
use nenrin_urls::CanonicalUrl;
use nenrin_warc::{Record, RevisitProfile, parse_date, status};

/// Memory for revisits that were read. For the rest only the offset is stored, and they are read
/// again.
const AT_HAND_BYTES: usize = 12 << 20;
/// What one takes beside its URL.
const REVISIT_BYTES: usize = 96;

/// What was found in a file beside captures.
pub(crate) enum Found {
    /// A revisit record, looked at once all captures are in.
    Revisit(Box<Revisit>),
    /// A record of a kind that is not imported, and why in a word.
    Skipped(String),
    /// A record that could not be read.
    Damaged(String),
    /// A capture that is too large for memory, stored once the others are in.
    Large(Box<LargeCapture>),
}

/// A capture whose block is read again, part by part.
pub(crate) struct LargeCapture {
    pub(super) source: usize,
    pub(super) offset: u64,
    pub(super) url: CanonicalUrl,
    pub(super) at_s: i64,
    pub(super) request: Vec<u8>,
}

/// A revisit record, as far as it must be known of most. Where more is wanted it is read again.
#[derive(Clone)]
pub(crate) struct Revisit {
    pub(super) source: u32,
    pub(super) offset: u64,
    pub(super) url: Box<str>,
    pub(super) at_s: i64,
    /// The date of what it repeats, if that was at the same URL.
    pub(super) original_s: Option<i64>,
    pub(super) outcome: Outcome,
    pub(super) status: u16,
    is_posted: bool,
}

impl Revisit {
    /// `posted` is the address of a request other than GET: its record alone does not say it.
    pub(crate) fn of(
        source: usize,
        record: &Record,
        posted: Option<CanonicalUrl>,
    ) -> Result<Self, String> {
        let target = record.target_uri().and_then(|uri| CanonicalUrl::parse(uri).ok());
        let (Some(target), Some(at_s)) = (target, record.date_s()) else {
            return Err("it has no URL or date that can be read".to_owned());
        };
        let field = |name: &str| record.fields.get(name);
        let (outcome, usual) = match field("WARC-Profile").and_then(RevisitProfile::of) {
            Some(RevisitProfile::NotModified) => (Outcome::NotModified, 304),
            _ => (Outcome::Same, 200),
        };
        let is_own = field("WARC-Refers-To-Target-URI") == record.target_uri()
            || refers_to(record).is_none_or(|original| original == target);
        Ok(Self {
            source: source as u32,
            offset: record.offset,
            url: posted.as_ref().unwrap_or(&target).as_str().into(),
            at_s,
            original_s: field("WARC-Refers-To-Date").and_then(parse_date).filter(|_| is_own),
            outcome,
            status: status(&record.block).unwrap_or(usual),
            is_posted: posted.is_some(),
        })
    }

    pub(super) fn place(&self) -> (u32, u64) {
        (self.source, self.offset)
    }
}

/// The URL of what a revisit repeats, if one is named.
pub(super) fn refers_to(record: &Record) -> Option<CanonicalUrl> {
    let uri = record.fields.get("WARC-Refers-To-Target-URI")?;
    CanonicalUrl::parse(uri.trim_matches(['<', '>'])).ok()
}

/// The revisit records of all files.
#[derive(Default)]
pub(super) struct Revisits {
    pub(super) at_hand: Vec<Revisit>,
    at_hand_bytes: usize,
    /// File and offset of those that are read again.
    pub(super) places: Vec<(u32, u64)>,
}

impl Revisits {
    pub(super) fn add(&mut self, revisit: Revisit) {
        let bytes = REVISIT_BYTES + revisit.url.len();
        if self.at_hand_bytes + bytes > AT_HAND_BYTES {
            // Read again, one of a request other than GET would count for the page at its address.
            if !revisit.is_posted {
                self.places.push(revisit.place());
            }
            return;
        }
        self.at_hand_bytes += bytes;
        self.at_hand.push(revisit);
    }
}
