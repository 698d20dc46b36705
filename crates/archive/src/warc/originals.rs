//! Originals of revisits that only the files name: by the id of their record, or by date and digest.

use std::collections::BTreeMap;

use nenrin_urls::CanonicalUrl;
use nenrin_warc::{
    Record, RecordType, RevisitProfile, WarcError, digest_matches, parse_date, status,
};

use super::source::Source;
use crate::{ArchiveError, Result};

/// URL and date of a capture.
type Named = (CanonicalUrl, i64);

/// Captures of one second without a digest that are compared.
const UNDIGESTED_MAX: usize = 64;

/// What revisits say of originals that neither URL nor date leads to.
#[derive(Default)]
pub(super) struct NamedOriginals {
    was_searched: bool,
    by_id: BTreeMap<String, Option<Named>>,
    by_digest: BTreeMap<(i64, String), Option<Named>>,
    /// Captures of those dates whose records have no digest.
    undigested: BTreeMap<i64, Vec<Named>>,
}

impl NamedOriginals {
    /// Whether looking through the files may find the original of this revisit.
    pub(super) fn may_have(&self, record: &Record) -> bool {
        !self.was_searched
            && (id_of_original(record).is_some() || date_and_digest(record).is_some())
    }

    pub(super) fn want(&mut self, record: &Record) {
        self.was_searched = true;
        self.by_id.extend(id_of_original(record).map(|id| (id, None)));
        let by_digest = date_and_digest(record);
        self.undigested.extend(by_digest.iter().map(|(date_s, _)| (*date_s, Vec::new())));
        self.by_digest.extend(by_digest.map(|named| (named, None)));
    }

    /// The original of a revisit, if it was found.
    pub(super) fn of(&self, record: &Record) -> Option<&Named> {
        let by_id = id_of_original(record).and_then(|id| self.by_id.get(&id)?.as_ref());
        by_id.or_else(|| self.by_digest.get(&date_and_digest(record)?)?.as_ref())
    }

    /// Captures of the date that a revisit names whose content has to be compared with its digest.
    pub(super) fn undigested(&self, record: &Record) -> &[Named] {
        let named = date_and_digest(record).and_then(|(date_s, _)| self.undigested.get(&date_s));
        named.map(Vec::as_slice).unwrap_or_default()
    }

    /// Notes the wanted captures of a file.
    pub(super) fn look_through(&mut self, source: &Source) -> Result<()> {
        let mut reader = source.heads()?;
        loop {
            match reader.next_record() {
                Ok(Some(record)) => self.look_at(&record),
                Ok(None) => return Ok(()),
                // It was reported when the file was read first.
                Err(WarcError::Damaged { .. }) => {}
                Err(other) => return Err(ArchiveError::warc(source.name())(other)),
            }
        }
    }

    fn look_at(&mut self, record: &Record) {
        if !matches!(record.kind, RecordType::Response | RecordType::Resource) {
            return;
        }
        let url = record.target_uri().and_then(|uri| CanonicalUrl::parse(uri).ok());
        let Some(named) = url.zip(record.date_s()) else { return };
        let id = record.fields.get("WARC-Record-ID").map(bare_id);
        if let Some(place) = id.and_then(|id| self.by_id.get_mut(&id)) {
            place.get_or_insert_with(|| named.clone());
        }
        let Some(digest) = record.fields.get("WARC-Payload-Digest") else {
            if let Some(all) = self.undigested.get_mut(&named.1)
                && all.len() < UNDIGESTED_MAX
            {
                all.push(named);
            }
            return;
        };
        if let Some(place) = self.by_digest.get_mut(&(named.1, digest.to_ascii_lowercase())) {
            place.get_or_insert(named);
        }
    }
}

/// The digest by which the original of a revisit is recognised. Where the server answered that nothing
/// was modified, some collectors write the digest of the empty answer.
pub(super) fn payload_digest(record: &Record) -> Option<&str> {
    let digest = record.fields.get("WARC-Payload-Digest")?;
    let profile = record.fields.get("WARC-Profile").and_then(RevisitProfile::of);
    let is_unmodified =
        profile == Some(RevisitProfile::NotModified) || status(&record.block) == Some(304);
    let is_of_nothing = digest_matches(digest, b"") == Some(true);
    (!is_unmodified || !is_of_nothing).then_some(digest)
}

fn id_of_original(record: &Record) -> Option<String> {
    record.fields.get("WARC-Refers-To").map(bare_id).filter(|id| !id.is_empty())
}

fn bare_id(text: &str) -> String {
    text.trim_matches(['<', '>', ' ']).to_ascii_lowercase()
}

fn date_and_digest(record: &Record) -> Option<(i64, String)> {
    let date_s = record.fields.get("WARC-Refers-To-Date").and_then(parse_date)?;
    Some((date_s, payload_digest(record)?.to_ascii_lowercase()))
}
