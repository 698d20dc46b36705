//! The words of blocks.

use std::path::Path;

use tantivy::{
    DocId, DocSet, Index, IndexReader, IndexSettings, ReloadPolicy, Searcher, SegmentReader,
    TERMINATED, TantivyDocument, TantivyError, Term,
    directory::MmapDirectory,
    postings::{Postings, SegmentPostings},
    schema::{
        FAST, Field, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions,
    },
    store::{Compressor, ZstdCompressor},
    tokenizer::{Token, TokenStream, Tokenizer},
};

use super::as_it_is::Unlocked;
use crate::{SearchError, language::WordForms, query::Leaf, units::Units};

const FOLDER: &str = "words";
const TOKENIZER: &str = "units";
/// In front of a character that follows another one directly.
const JOINED: char = '\u{1}';

/// The fields of a document.
#[derive(Clone, Copy)]
pub(super) struct Fields {
    pub(super) text: Field,
    /// The page's place.
    pub(super) page: Field,
    /// The block's number in its page.
    pub(super) block: Field,
    pub(super) kind: Field,
}

fn schema() -> (Schema, Fields) {
    let mut schema = Schema::builder();
    let indexing = TextFieldIndexing::default()
        .set_tokenizer(TOKENIZER)
        .set_fieldnorms(false)
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    let fields = Fields {
        text: schema.add_text_field("text", TextOptions::default().set_indexing_options(indexing)),
        page: schema.add_u64_field("page", NumericOptions::default().set_indexed().set_fast()),
        block: schema.add_u64_field("block", FAST),
        kind: schema.add_u64_field("kind", FAST),
    };
    (schema.build(), fields)
}

/// A block as it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BlockHit {
    pub(super) page: u32,
    pub(super) block: u32,
    pub(super) kind: u8,
}

/// The words, open for reading.
pub(super) struct Words {
    reader: IndexReader,
    fields: Fields,
}

impl Words {
    pub(super) fn open(folder: &Path) -> Result<Option<Self>, SearchError> {
        let folder = folder.join(FOLDER);
        if !folder.join("meta.json").exists() {
            return Ok(None);
        }
        match Self::open_index(Index::open_in_dir(&folder)?) {
            Err(error) if error.is_of_writing() => {
                let folder = MmapDirectory::open(&folder).map_err(TantivyError::from)?;
                Self::open_index(Index::open(Unlocked(folder))?)
            }
            opened => opened,
        }
    }

    fn open_index(index: Index) -> Result<Option<Self>, SearchError> {
        let (schema, fields) = schema();
        if index.schema() != schema {
            return Ok(None);
        }
        index.tokenizers().register(TOKENIZER, UnitTokenizer::default());
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        Ok(Some(Self { reader, fields }))
    }

    /// Sees what was committed since.
    pub(super) fn reload(&self) -> Result<(), SearchError> {
        Ok(self.reader.reload()?)
    }

    pub(super) fn count(&self) -> Result<u64, SearchError> {
        self.reload()?;
        Ok(self.reader.searcher().num_docs())
    }

    pub(super) fn look(&self) -> Look {
        Look { searcher: self.reader.searcher(), text: self.fields.text }
    }
}

/// Reads every file of the words; returns the batch that was committed last, 0 for none.
pub(super) fn check(folder: &Path) -> Result<i64, SearchError> {
    let folder = folder.join(FOLDER);
    if !folder.join("meta.json").exists() {
        return Ok(0);
    }
    let folder = MmapDirectory::open(&folder).map_err(TantivyError::from)?;
    let index = Index::open(Unlocked(folder))?;
    sound(&index)?;
    batch(&index)
}

/// The batch that was committed last, 0 for none.
pub(super) fn batch(index: &Index) -> Result<i64, SearchError> {
    let batch = index.load_metas()?.payload.and_then(|batch| batch.parse::<i64>().ok());
    Ok(batch.unwrap_or(0))
}

/// Whether words and records are of the same index: the words are committed first, one batch at a time.
pub(super) fn belong(words_batch: i64, batch: i64) -> Result<(), SearchError> {
    match (batch..=batch + 1).contains(&words_batch) {
        true => Ok(()),
        false => Err(SearchError::Damaged("words and records do not belong together".into())),
    }
}

/// Whether all files of an index are as they were written.
pub(super) fn sound(index: &Index) -> Result<(), SearchError> {
    match index.validate_checksum()?.iter().next() {
        Some(file) => Err(SearchError::Damaged(format!("{} has changed", file.display()))),
        None => Ok(()),
    }
}

/// The index as it is written.
pub(super) fn open_to_write(folder: &Path) -> Result<(Index, Fields), SearchError> {
    let folder = folder.join(FOLDER);
    let (schema, fields) = schema();
    std::fs::create_dir_all(&folder)?;
    let index = match folder.join("meta.json").exists() {
        true => Index::open_in_dir(&folder)?,
        false => {
            let settings = IndexSettings {
                docstore_compression: Compressor::Zstd(ZstdCompressor::default()),
                ..IndexSettings::default()
            };
            Index::builder().schema(schema.clone()).settings(settings).create_in_dir(&folder)?
        }
    };
    if index.schema() != schema {
        return Err(SearchError::Damaged("it has other fields".into()));
    }
    index.tokenizers().register(TOKENIZER, UnitTokenizer::default());
    Ok((index, fields))
}

pub(super) fn document(fields: Fields, hit: BlockHit, text: &str) -> TantivyDocument {
    let mut document = TantivyDocument::new();
    document.add_text(fields.text, text);
    document.add_u64(fields.page, u64::from(hit.page));
    document.add_u64(fields.block, u64::from(hit.block));
    document.add_u64(fields.kind, u64::from(hit.kind));
    document
}

/// What one query sees.
pub(super) struct Look {
    searcher: Searcher,
    text: Field,
}

/// A place of a phrase.
#[derive(Clone)]
enum Part {
    /// One of these is there.
    Exact(u32, Vec<Term>),
    /// The last one may go on.
    Beginning(u32, String),
}

impl Look {
    pub(super) fn blocks(&self) -> u64 {
        self.searcher.num_docs()
    }

    /// About how many blocks have it: enough to look for what is rare first.
    pub(super) fn estimate(&self, leaf: &Leaf) -> u64 {
        let count = |part: &Part| match part {
            Part::Exact(_, terms) => {
                terms.iter().map(|term| self.searcher.doc_freq(term).unwrap_or(0)).sum()
            }
            Part::Beginning(..) => self.blocks() / 10,
        };
        self.parts(leaf).iter().map(count).min().unwrap_or(0)
    }

    fn term(&self, text: &str) -> Term {
        Term::from_field_text(self.text, text)
    }

    /// The terms under which a leaf is indexed, and their places in the phrase.
    fn parts(&self, leaf: &Leaf) -> Vec<Part> {
        let units = &leaf.units;
        let part = |at: usize| {
            let (unit, text, place) = (units.get(at)?, units.text(at), at as u32);
            let is_last = at + 1 == units.len();
            Some(match (unit.is_character, unit.is_joined) {
                (false, _) if is_last && leaf.is_prefix => Part::Beginning(place, text.to_owned()),
                (false, _) => Part::Exact(place, vec![self.term(text)]),
                (true, true) => Part::Exact(place, vec![self.term(&joined(text))]),
                // What was not typed together may be together.
                (true, false) => {
                    Part::Exact(place, vec![self.term(text), self.term(&joined(text))])
                }
            })
        };
        (0..units.len()).filter_map(part).collect()
    }

    /// Hands every block that has a leaf to `take`; with it the languages, as bits, of pages in
    /// which it counts. `languages` are those that pages have.
    pub(super) fn each(
        &self,
        leaf: &Leaf,
        languages: u32,
        take: &mut dyn FnMut(BlockHit, u32),
    ) -> Result<(), SearchError> {
        let kinds = leaf.field.kinds();
        for segment in self.searcher.segment_readers() {
            let columns = segment.fast_fields();
            let page = columns.u64("page")?.first_or_default_col(0);
            let block = columns.u64("block")?.first_or_default_col(0);
            let kind = columns.u64("kind")?.first_or_default_col(0);
            let mut found = |doc: DocId, languages: u32| {
                let kind = kind.get_val(doc) as u8;
                if kinds & (1 << kind) != 0 && !segment.is_deleted(doc) {
                    let (page, block) = (page.get_val(doc) as u32, block.get_val(doc) as u32);
                    take(BlockHit { page, block, kind }, languages);
                }
            };
            match &leaf.forms {
                Some(forms) => self.forms(segment, forms, languages, &mut found)?,
                None => self.phrase(segment, self.parts(leaf), &mut found)?,
            }
        }
        Ok(())
    }

    /// Documents with a form of a word.
    fn forms(
        &self,
        segment: &SegmentReader,
        forms: &WordForms,
        among: u32,
        found: &mut dyn FnMut(DocId, u32),
    ) -> Result<(), SearchError> {
        let mut terms = Vec::new();
        self.dictionary(segment, forms.common(among), &mut |term| {
            let languages = forms.languages(term, among);
            if languages != 0 {
                terms.push((term.to_owned(), languages));
            }
        })?;
        for (term, languages) in terms {
            self.postings(segment, &self.term(&term), &mut |doc| found(doc, languages))?;
        }
        Ok(())
    }

    fn postings(
        &self,
        segment: &SegmentReader,
        term: &Term,
        found: &mut dyn FnMut(DocId),
    ) -> Result<(), SearchError> {
        let index = segment.inverted_index(self.text)?;
        if let Some(mut postings) = index.read_postings(term, IndexRecordOption::Basic)? {
            each_doc(&mut postings, found);
        }
        Ok(())
    }

    /// Hands the terms that begin like this to `take`.
    fn dictionary(
        &self,
        segment: &SegmentReader,
        begins: &str,
        take: &mut dyn FnMut(&str),
    ) -> Result<(), SearchError> {
        let index = segment.inverted_index(self.text)?;
        let mut stream = index.terms().range().ge(begins.as_bytes()).into_stream()?;
        while stream.advance() {
            if !stream.key().starts_with(begins.as_bytes()) {
                break;
            }
            if let Ok(term) = std::str::from_utf8(stream.key()) {
                take(term);
            }
        }
        Ok(())
    }

    fn phrase(
        &self,
        segment: &SegmentReader,
        parts: Vec<Part>,
        found: &mut dyn FnMut(DocId, u32),
    ) -> Result<(), SearchError> {
        let mut exact = Vec::new();
        let mut beginning = None;
        for part in parts {
            match part {
                Part::Exact(at, terms) => exact.push((at, terms)),
                Part::Beginning(at, text) => beginning = Some((at, text)),
            }
        }
        let Some((at, begins)) = beginning else {
            return self.exact(segment, &exact, &mut |doc| found(doc, u32::MAX));
        };
        let mut ends = Vec::new();
        self.dictionary(segment, &begins, &mut |term| ends.push(self.term(term)))?;
        for end in ends {
            let mut parts = exact.clone();
            parts.push((at, vec![end]));
            self.exact(segment, &parts, &mut |doc| found(doc, u32::MAX))?;
        }
        Ok(())
    }

    /// Documents that have one of the terms at each place.
    fn exact(
        &self,
        segment: &SegmentReader,
        parts: &[(u32, Vec<Term>)],
        found: &mut dyn FnMut(DocId),
    ) -> Result<(), SearchError> {
        if let [(_, terms)] = parts {
            return terms.iter().try_for_each(|term| self.postings(segment, term, found));
        }
        let index = segment.inverted_index(self.text)?;
        let mut places = Vec::new();
        for (at, terms) in parts {
            let mut lists = Vec::new();
            for term in terms {
                lists.extend(index.read_postings(term, IndexRecordOption::WithFreqsAndPositions)?);
            }
            places.push(Place { at: *at, lists });
        }
        // The rarest leads.
        places.sort_by_key(|place| {
            place.lists.iter().map(|list| u64::from(list.doc_freq())).sum::<u64>()
        });
        if let Some((lead, others)) = places.split_first_mut() {
            each_phrase(lead, others, found);
        }
        Ok(())
    }
}

/// A place of a phrase in a segment: the lists of the terms that may be there.
struct Place {
    at: u32,
    lists: Vec<SegmentPostings>,
}

impl Place {
    /// The first document from this one on that has one of the terms.
    fn seek(&mut self, target: DocId) -> DocId {
        let seek = |list: &mut SegmentPostings| match list.doc() < target {
            true => list.seek(target),
            false => list.doc(),
        };
        self.lists.iter_mut().map(seek).min().unwrap_or(TERMINATED)
    }

    /// Where in the document a phrase would begin that has a term here.
    fn starts(&mut self, doc: DocId, starts: &mut Vec<u32>) {
        starts.clear();
        for list in self.lists.iter_mut().filter(|list| list.doc() == doc) {
            list.append_positions_with_offset(0, starts);
        }
        starts.retain(|position| *position >= self.at);
        starts.iter_mut().for_each(|position| *position -= self.at);
        starts.sort_unstable();
    }
}

fn each_phrase(lead: &mut Place, others: &mut [Place], found: &mut dyn FnMut(DocId)) {
    let (mut starts, mut here) = (Vec::new(), Vec::new());
    let mut doc = lead.seek(0);
    'documents: while doc != TERMINATED {
        for other in others.iter_mut() {
            let next = other.seek(doc);
            if next > doc {
                doc = lead.seek(next);
                continue 'documents;
            }
        }
        lead.starts(doc, &mut starts);
        for other in others.iter_mut() {
            other.starts(doc, &mut here);
            starts.retain(|start| here.binary_search(start).is_ok());
        }
        if !starts.is_empty() {
            found(doc);
        }
        doc = lead.seek(doc + 1);
    }
}

fn joined(text: &str) -> String {
    format!("{JOINED}{text}")
}

fn each_doc<D: DocSet + ?Sized>(documents: &mut D, found: &mut dyn FnMut(DocId)) {
    let mut doc = documents.doc();
    while doc != TERMINATED {
        found(doc);
        doc = documents.advance();
    }
}

#[derive(Clone, Default)]
struct UnitTokenizer {
    units: Units,
    token: Token,
}

impl Tokenizer for UnitTokenizer {
    type TokenStream<'a> = UnitStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> UnitStream<'a> {
        self.units.read(text);
        self.token.reset();
        UnitStream { units: &self.units, token: &mut self.token, next: 0 }
    }
}

struct UnitStream<'a> {
    units: &'a Units,
    token: &'a mut Token,
    next: usize,
}

impl TokenStream for UnitStream<'_> {
    fn advance(&mut self) -> bool {
        if self.next >= self.units.len() {
            return false;
        }
        self.token.text.clear();
        if self.units.get(self.next).is_some_and(|unit| unit.is_joined) {
            self.token.text.push(JOINED);
        }
        self.token.text.push_str(self.units.text(self.next));
        self.token.position = self.next;
        self.next += 1;
        true
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}
