//! Writing the index: one writer at a time, in batches.

use std::path::Path;

use nenrin_state::{PageId, SiteId};
use tantivy::{
    IndexWriter, TantivyDocument, Term,
    index::{SegmentId, SegmentMeta},
};

use super::{
    pages::{Indexed, PageInfo, Records},
    position::Position,
    words::{self, BlockHit, Fields},
};
use crate::{
    SearchError,
    language::Language,
    loans::{Known, Loans},
    matching::BlockKind,
    page_kind::PageKind,
    record::Record,
};

/// Memory for words that are not written yet, in bytes.
const WORDS_BYTES: usize = 48 << 20;
/// Places reserved at once.
const RESERVED: u32 = 1_000;
/// So many files of words are merged while nothing else is to be done, if they are small.
const SEVERAL: usize = 4;
/// So many blocks are merged in less than a second.
const SMALL_BLOCKS: u64 = 100_000;

/// The index, open for writing.
pub(crate) struct Writer {
    words: IndexWriter<TantivyDocument>,
    fields: Fields,
    records: Records,
    batch: i64,
    next: (u32, u32),
    is_open: bool,
    position: Position,
    /// Blocks that pages can borrow.
    pub(crate) known: Known,
    /// Whether all lenders are known to be there.
    loans_are_sound: bool,
}

/// A page as it is written.
pub(crate) struct PageEntry<'a> {
    pub(crate) page: PageId,
    pub(crate) site: SiteId,
    pub(crate) kind: PageKind,
    pub(crate) language: Language,
    pub(crate) importance_percent: u32,
    pub(crate) changed_s: i64,
    pub(crate) record: &'a Record,
    pub(crate) loans: &'a Loans,
}

/// A block whose words are new.
pub(crate) struct NewBlock {
    pub(crate) number: u32,
    pub(crate) kind: BlockKind,
    pub(crate) text: String,
}

impl Writer {
    /// Opens the index to write; `None` if another process does.
    pub(crate) fn open(folder: &Path) -> Result<Option<Self>, SearchError> {
        let (index, fields) = words::open_to_write(folder)?;
        let words = match index.writer_with_num_threads(1, WORDS_BYTES) {
            Ok(words) => words,
            Err(tantivy::TantivyError::LockFailure(..)) => return Ok(None),
            Err(other) => return Err(other.into()),
        };
        let records = Records::open_to_write(folder)?;
        records.check()?;
        let (batch, position) = (records.batch()?, records.position()?);
        words::sound(&index)?;
        words::belong(words::batch(&index)?, batch)?;
        let (next, is_open, known) = ((0, 0), false, Known::default());
        let mut writer = Self {
            words,
            fields,
            records,
            batch,
            next,
            is_open,
            position,
            known,
            loans_are_sound: false,
        };
        writer.forget_leftovers()?;
        Ok(Some(writer))
    }

    /// Words that a crash left without a record are in the places reserved last.
    fn forget_leftovers(&mut self) -> Result<(), SearchError> {
        let (end, _) = self.records.reserve(0)?;
        for place in end.saturating_sub(RESERVED)..end {
            if self.records.record(place)?.is_none() {
                self.forget_words(place);
            }
        }
        Ok(())
    }

    fn forget_words(&self, place: u32) {
        self.words.delete_term(Term::from_field_u64(self.fields.page, u64::from(place)));
    }

    /// Whether nothing was ever committed.
    pub(crate) fn is_new(&self) -> bool {
        self.batch == 0
    }

    pub(crate) fn position(&self) -> &Position {
        &self.position
    }

    fn begin(&mut self) -> Result<(), SearchError> {
        if !self.is_open {
            self.records.begin()?;
            self.batch += 1;
            self.is_open = true;
        }
        Ok(())
    }

    /// What is indexed of a page.
    pub(crate) fn of_page(&self, page: PageId) -> Result<Option<Indexed>, SearchError> {
        self.records.of_page(page)
    }

    /// Pages that borrow from a page that was taken out.
    pub(crate) fn without_lender(&mut self) -> Result<Vec<PageId>, SearchError> {
        if self.loans_are_sound {
            return Ok(Vec::new());
        }
        let pages = self.records.without_lender()?;
        self.loans_are_sound = pages.is_empty();
        Ok(pages)
    }

    /// Adds a page, in place of what was indexed of it; returns its place.
    pub(crate) fn replace(
        &mut self,
        entry: &PageEntry<'_>,
        blocks: &[NewBlock],
    ) -> Result<u32, SearchError> {
        let place = self.free_place()?;
        self.remove(entry.page)?;
        self.extend(place, entry, blocks)?;
        Ok(place)
    }

    /// Writes the record of a page, and adds blocks to it.
    pub(crate) fn extend(
        &mut self,
        place: u32,
        entry: &PageEntry<'_>,
        blocks: &[NewBlock],
    ) -> Result<(), SearchError> {
        self.begin()?;
        for NewBlock { number, kind, text } in blocks {
            let hit = BlockHit { page: place, block: *number, kind: kind.number() };
            self.words.add_document(words::document(self.fields, hit, text))?;
        }
        let info = PageInfo {
            page: entry.page,
            site: entry.site,
            kind: entry.kind,
            language: entry.language,
            importance_percent: entry.importance_percent,
            changed_s: entry.changed_s,
        };
        self.records.put(place, &info, self.batch, entry.record, entry.loans)
    }

    /// Takes a page out.
    pub(crate) fn remove(&mut self, page: PageId) -> Result<(), SearchError> {
        self.begin()?;
        if let Some(place) = self.records.drop_page(page, self.batch)? {
            self.forget_words(place);
            self.known.forget(place);
            self.loans_are_sound = false;
        }
        Ok(())
    }

    fn free_place(&mut self) -> Result<u32, SearchError> {
        if self.next.0 >= self.next.1 {
            // The reservation must be durable before words use it.
            let open = std::mem::take(&mut self.is_open);
            if open {
                self.write(&self.position.clone())?;
            }
            self.next = self.records.reserve(RESERVED)?;
        }
        let place = self.next.0;
        self.next.0 += 1;
        Ok(place)
    }

    /// Makes everything since the last commit durable and visible, together with the position.
    pub(crate) fn commit(&mut self, position: Position) -> Result<(), SearchError> {
        self.begin()?;
        self.write(&position)?;
        self.is_open = false;
        self.position = position;
        Ok(())
    }

    fn write(&mut self, position: &Position) -> Result<(), SearchError> {
        let mut words = self.words.prepare_commit()?;
        words.set_payload(&self.batch.to_string());
        words.commit()?;
        self.records.commit(self.batch, position)
    }

    /// Makes one file of words of all, and gives back the space of records that were written again.
    pub(crate) fn merge_all(&mut self) -> Result<(), SearchError> {
        let metas = self.words.index().searchable_segment_metas()?;
        let has_gaps = metas.iter().any(|meta| meta.num_deleted_docs() > 0);
        let all: Vec<SegmentId> = metas.iter().map(SegmentMeta::id).collect();
        // As long as anyone has them, their files stay.
        drop(metas);
        if all.len() > 1 || has_gaps {
            // Some may be merged already, by the engine's own rule.
            if let Err(error) = self.words.merge(&all).wait() {
                tracing::debug!("words are merged later: {error}");
            }
            self.words.garbage_collect_files().wait()?;
            self.records.pack()?;
        }
        Ok(())
    }

    /// Makes one file of words of several that are small.
    pub(crate) fn merge_some(&mut self) -> Result<(), SearchError> {
        let metas = self.words.index().searchable_segment_metas()?;
        match metas.len() >= SEVERAL && is_small(&metas) {
            true => self.merge_all(),
            false => Ok(()),
        }
    }

    /// Puts the files in order.
    pub(crate) fn finish(mut self) -> Result<(), SearchError> {
        if is_small(&self.words.index().searchable_segment_metas()?) {
            self.merge_all()?;
        }
        Ok(self.words.wait_merging_threads()?)
    }
}

fn is_small(metas: &[SegmentMeta]) -> bool {
    metas.iter().map(|meta| u64::from(meta.max_doc())).sum::<u64>() <= SMALL_BLOCKS
}
