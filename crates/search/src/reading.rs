//! Reading pages from the archive: their versions, their times and their text.

use std::io::BufRead;

use nenrin_archive::Archive;
use nenrin_extract::{ContentKind, PageText, content_kind, decode_front, page_text};
use nenrin_state::{VersionQuery, VersionRow};
use nenrin_store::{StoreError, Version};
use nenrin_urls::CanonicalUrl;

use crate::{
    SearchError,
    history::{Slot, slots},
    page_kind::PageKind,
    pdf::{is_pdf, pdf_text},
};

/// Of a larger page the front is read, as for its links. To read one takes several times its size.
const MAX_PAGE_BYTES: usize = 16 << 20;
/// Larger files that may be PDF are not read: their end is needed. They have pictures, and need little more
/// than their size.
const MAX_FILE_BYTES: usize = 32 << 20;
/// The most text of one version.
const MAX_TEXT_BYTES: usize = 4 << 20;

/// The versions of a page, oldest first, and when each was the page.
pub(crate) fn versions(
    archive: &Archive,
    url: &CanonicalUrl,
) -> Result<(Vec<VersionRow>, Vec<Slot>), SearchError> {
    let state = archive.state();
    let all = state.versions(&url.key(), VersionQuery::default())?;
    let rows: Vec<VersionRow> =
        all.into_iter().filter(|(found, _)| found == url).map(|(_, row)| row).collect();
    let gone_s = if rows.is_empty() { Vec::new() } else { state.gone_times(url)? };
    let slots = slots(&rows, &gone_s);
    Ok((rows, slots))
}

/// The kind and the text of a version. What has no text, or cannot be read, has none.
pub(crate) fn text(
    archive: &Archive,
    url: &CanonicalUrl,
    row: &VersionRow,
) -> Result<(Option<PageKind>, PageText), SearchError> {
    let nothing = (None, PageText::default());
    let is_page = (200..300).contains(&row.status);
    let is_file = is_file(&row.mime);
    let most = if is_file { MAX_FILE_BYTES } else { MAX_PAGE_BYTES };
    if !is_page || is_file && row.bytes > most as u64 || has_no_text(&row.mime) {
        return Ok(nothing);
    }
    let version = match front(archive, row, most) {
        Ok(version) => version,
        // `verify` names what is damaged.
        Err(StoreError::Damaged { .. } | StoreError::NotFound { .. }) => return Ok(nothing),
        Err(other) => return Err(other.into()),
    };
    let field = |name| nenrin_archive::head_field(&version.head.response_head, name);
    let (coding, content_type) = (field("content-encoding"), field("content-type"));
    let source = || Box::new(&version.body[..]) as Box<dyn BufRead>;
    let decoded = decode_front(coding.as_deref(), &source, version.body.len() as u64, most);
    let Ok(body) = decoded.map(|front| front.bytes) else { return Ok(nothing) };
    let content_type = content_type.as_deref();
    let content = content_kind(content_type, url, &body);
    if content == ContentKind::Other && is_pdf(&body) {
        return Ok((Some(PageKind::Pdf), pdf_text(&body, MAX_TEXT_BYTES)));
    }
    let Some(kind) = PageKind::of(content) else { return Ok(nothing) };
    Ok((Some(kind), page_text(content, content_type, &body, MAX_TEXT_BYTES)))
}

/// A version with at most so many bytes of its body.
fn front(archive: &Archive, row: &VersionRow, most: usize) -> Result<Version, StoreError> {
    let store = archive.store();
    if row.bytes <= most as u64 {
        return store.read(row.version);
    }
    let (head, mut body) = (store.head(row.version)?, Vec::new());
    while body.len() < most {
        let part = store.read_part(row.version, body.len() as u64, most - body.len())?;
        if part.is_empty() {
            break;
        }
        body.extend(part);
    }
    Ok(Version { head, body })
}

/// Whether a media type may be that of a PDF file.
fn is_file(mime: &str) -> bool {
    matches!(mime, "application/pdf" | "application/x-pdf" | "application/octet-stream")
}

/// Whether a media type never has text to search. The others are looked at.
fn has_no_text(mime: &str) -> bool {
    let families = ["image/", "video/", "audio/", "font/"];
    let types = ["text/css", "text/javascript", "application/javascript", "application/zip"];
    families.iter().any(|family| mime.starts_with(family)) || types.contains(&mime)
}
