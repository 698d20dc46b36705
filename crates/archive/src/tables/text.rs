//! The text of versions, block by block, and which blocks came and went.

use std::collections::BTreeSet;

use nenrin_extract::{PageBlock, TextKind, content_kind, decode_content, page_text};
use nenrin_state::VersionRow;
use nenrin_urls::{CanonicalUrl, VersionId};

use crate::{Archive, Result, head, visiting::read_small};

/// Larger bodies have no text here.
const MAX_BODY_BYTES: u64 = 8 << 20;
/// Text of a version that is read.
const MAX_TEXT_BYTES: usize = 2 << 20;

/// A block that a version has and the one before has not, or the other way round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChangedBlock {
    pub(super) is_added: bool,
    /// Its position among the blocks of the version that has it.
    pub(super) position: usize,
    pub(super) kind: &'static str,
    pub(super) text: String,
}

/// Reads versions in the order of pages and times, and keeps the last one.
#[derive(Default)]
pub(super) struct TextReader {
    last: Option<(VersionId, Vec<PageBlock>)>,
}

impl TextReader {
    /// What changed in the text of a page with this version.
    pub(super) fn changes(
        &mut self,
        archive: &Archive,
        url: &CanonicalUrl,
        row: &VersionRow,
    ) -> Result<Vec<ChangedBlock>> {
        let before = match previous(archive, url, row)? {
            None => Vec::new(),
            Some(version) => match self.last.take().filter(|(last, _)| *last == version) {
                Some((_, blocks)) => blocks,
                None => blocks(archive, url, version),
            },
        };
        let after = blocks(archive, url, row.version);
        let changes = compare(&before, &after);
        self.last = Some((row.version, after));
        Ok(changes)
    }
}

/// The version of the page before this one.
fn previous(archive: &Archive, url: &CanonicalUrl, row: &VersionRow) -> Result<Option<VersionId>> {
    // Other addresses may share the key; they are few.
    const LOOKED_AT: usize = 16;
    let before = (row.at_s, row.version);
    let found = archive.state().newest_versions(&url.key(), before, LOOKED_AT)?;
    Ok(found.into_iter().find(|(of, _)| of == url).map(|(_, row)| row.version))
}

/// The blocks of a version; none if it has no text or cannot be read.
fn blocks(archive: &Archive, url: &CanonicalUrl, version: VersionId) -> Vec<PageBlock> {
    let Some(version) = read_small(archive.store(), version, MAX_BODY_BYTES) else {
        return Vec::new();
    };
    let field = |name| head::field(&version.head.response_head, name);
    let (coding, content_type) = (field("content-encoding"), field("content-type"));
    let max_bytes = MAX_BODY_BYTES as usize;
    let Ok(body) = decode_content(coding.as_deref(), &version.body, max_bytes) else {
        return Vec::new();
    };
    let content_type = content_type.as_deref();
    let kind = content_kind(content_type, url, &body);
    page_text(kind, content_type, &body, MAX_TEXT_BYTES).blocks
}

fn compare(before: &[PageBlock], after: &[PageBlock]) -> Vec<ChangedBlock> {
    let mut changes = only_in(before, after, false);
    changes.extend(only_in(after, before, true));
    changes
}

/// The blocks that the one has and the other has not, each once.
fn only_in(these: &[PageBlock], others: &[PageBlock], is_added: bool) -> Vec<ChangedBlock> {
    let mut known: BTreeSet<&PageBlock> = others.iter().collect();
    let mut found = Vec::new();
    for (position, block) in these.iter().enumerate() {
        if known.insert(block) {
            let (kind, text) = (name(block.kind), block.text.clone());
            found.push(ChangedBlock { is_added, position, kind, text });
        }
    }
    found
}

fn name(kind: TextKind) -> &'static str {
    match kind {
        TextKind::Title => "title",
        TextKind::Heading => "heading",
        TextKind::Body => "body",
        TextKind::Alt => "alt",
        TextKind::Data => "data",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_and_go_once_each() {
        let block = |text: &str| PageBlock { kind: TextKind::Body, text: text.to_owned() };
        let before = [block("stays"), block("goes"), block("goes")];
        let after = [block("new"), block("stays"), block("new")];
        let changes: Vec<(bool, usize, String)> = compare(&before, &after)
            .into_iter()
            .map(|change| (change.is_added, change.position, change.text))
            .collect();
        assert_eq!(changes, [(false, 1, "goes".to_owned()), (true, 0, "new".to_owned())]);
        assert!(compare(&after, &after).is_empty());
    }
}
