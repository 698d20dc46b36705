//! Words of Japanese: single characters, pairs of them, and the words of a dictionary, by recall and
//! size.
//!
//! `cargo run --release -p nenrin-search --example segmenting -- FOLDER…`, with folders of HTML files
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "an experiment")]

use std::{collections::BTreeSet, path::Path};

use icu_segmenter::{WordSegmenter, WordSegmenterBorrowed, options::WordBreakInvariantOptions};
use nenrin_archive::folder_bytes;
use nenrin_extract::{ContentKind, page_text};
use tantivy::{
    Index, IndexWriter, TantivyDocument, Term,
    collector::Count,
    query::{PhraseQuery, Query, TermQuery},
    schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions},
    tokenizer::{Token, TokenStream, Tokenizer},
};

const ITEMS: usize = 2_000;

/// How text without spaces is cut.
#[derive(Clone, Copy, PartialEq)]
enum Cut {
    Characters,
    Pairs,
    Words,
}

#[derive(Clone)]
struct Cutter(Cut);

struct Tokens(Vec<String>, usize, Token);

fn segmenter() -> WordSegmenterBorrowed<'static> {
    WordSegmenter::new_auto(WordBreakInvariantOptions::default())
}

fn is_wide(c: char) -> bool {
    ('\u{3041}'..='\u{9FFF}').contains(&c)
}

fn tokens(cut: Cut, text: &str, is_query: bool) -> Vec<String> {
    match cut {
        Cut::Words => {
            let bounds: Vec<usize> = segmenter().segment_str(text).collect();
            let word = |pair: &[usize]| text[pair[0]..pair[1]].to_lowercase();
            let words = bounds.windows(2).map(word);
            words.filter(|word| word.chars().any(char::is_alphanumeric)).collect()
        }
        Cut::Pairs | Cut::Characters => {
            let mut found = Vec::new();
            for run in text.split(|c: char| !c.is_alphanumeric()) {
                let chars: Vec<char> = run.chars().collect();
                for part in chars.chunk_by(|a, b| is_wide(*a) == is_wide(*b)) {
                    if !is_wide(part[0]) {
                        found.push(part.iter().collect::<String>().to_lowercase());
                        continue;
                    }
                    if cut == Cut::Characters {
                        found.extend(part.iter().map(char::to_string));
                        continue;
                    }
                    // The last character is a word of its own, so that it can be found.
                    let last = if is_query && part.len() > 1 { 1 } else { 0 };
                    for at in 0..part.len() - last {
                        found.push(part[at..part.len().min(at + 2)].iter().collect());
                    }
                }
            }
            found
        }
    }
}

impl Tokenizer for Cutter {
    type TokenStream<'a> = Tokens;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Tokens {
        Tokens(tokens(self.0, text, false), 0, Token::default())
    }
}

impl TokenStream for Tokens {
    fn advance(&mut self) -> bool {
        let Some(text) = self.0.get(self.1) else { return false };
        self.2.text.clone_from(text);
        self.2.position = self.1;
        self.1 += 1;
        true
    }

    fn token(&self) -> &Token {
        &self.2
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.2
    }
}

fn texts(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            texts(&path, found);
        } else if path.extension().is_some_and(|end| end == "html") {
            let body = std::fs::read(&path).unwrap();
            let text = page_text(ContentKind::Html, None, &body, 4 << 20);
            found.extend(text.blocks.into_iter().map(|block| block.text));
        }
    }
}

fn build(cut: Cut, blocks: &[String], folder: &Path) -> (Index, Field) {
    let mut schema = Schema::builder();
    let indexing = TextFieldIndexing::default()
        .set_tokenizer("cut")
        .set_fieldnorms(false)
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    let field =
        schema.add_text_field("text", TextOptions::default().set_indexing_options(indexing));
    let number = schema.add_u64_field("number", tantivy::schema::FAST | tantivy::schema::INDEXED);
    let index = Index::create_in_dir(folder, schema.build()).unwrap();
    index.tokenizers().register("cut", Cutter(cut));
    let mut writer: IndexWriter<TantivyDocument> =
        index.writer_with_num_threads(1, 64 << 20).unwrap();
    for (at, block) in blocks.iter().enumerate() {
        let mut document = TantivyDocument::new();
        document.add_text(field, block);
        document.add_u64(number, at as u64);
        writer.add_document(document).unwrap();
    }
    writer.commit().unwrap();
    writer.wait_merging_threads().unwrap();
    (index, field)
}

/// Whether the block of this number is found by these words.
fn finds(index: &Index, field: Field, cut: Cut, item: &str, block: usize) -> bool {
    let terms: Vec<Term> =
        tokens(cut, item, true).iter().map(|text| Term::from_field_text(field, text)).collect();
    let words: Box<dyn Query> = match terms.as_slice() {
        [] => return false,
        [one] => Box::new(TermQuery::new(one.clone(), IndexRecordOption::Basic)),
        _ => Box::new(PhraseQuery::new(terms)),
    };
    let number = Term::from_field_u64(index.schema().get_field("number").unwrap(), block as u64);
    let only: Box<dyn Query> = Box::new(TermQuery::new(number, IndexRecordOption::Basic));
    let both = tantivy::query::BooleanQuery::intersection(vec![words, only]);
    index.reader().unwrap().searcher().search(&both, &Count).unwrap() > 0
}

fn main() {
    let mut found = BTreeSet::new();
    std::env::args().skip(1).for_each(|folder| texts(Path::new(&folder), &mut found));
    let blocks: Vec<String> = found.into_iter().collect();
    let bytes: usize = blocks.iter().map(String::len).sum();
    println!("{} distinct blocks, {bytes} bytes", blocks.len());
    // Items: stretches cut anywhere, and stretches of whole words, as the dictionary cuts them.
    let mut dice = 28_u64;
    let mut below = |end: usize| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) as usize % end.max(1)
    };
    let (mut anywhere, mut whole) = (Vec::new(), Vec::new());
    while anywhere.len() < ITEMS || whole.len() < ITEMS {
        let block = below(blocks.len());
        let text = &blocks[block];
        let chars: Vec<char> = text.chars().collect();
        let (from, length) = (below(chars.len()), 2 + below(7));
        let item: String = chars[from..].iter().take(length).collect();
        if item.chars().count() > 1 && item.chars().all(is_wide) && anywhere.len() < ITEMS {
            anywhere.push((item, block));
        }
        let bounds: Vec<usize> = segmenter().segment_str(text).collect();
        let first = below(bounds.len());
        let last = (first + 1 + below(3)).min(bounds.len() - 1);
        let item = &text[bounds[first]..bounds[last]];
        if item.chars().count() > 1 && item.chars().all(is_wide) && whole.len() < ITEMS {
            whole.push((item.to_owned(), block));
        }
    }
    for (name, cut) in [
        ("single characters", Cut::Characters),
        ("pairs of characters", Cut::Pairs),
        ("words of icu_segmenter", Cut::Words),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (index, field) = build(cut, &blocks, folder.path());
        let size = folder_bytes(folder.path()).unwrap();
        let recall = |items: &[(String, usize)]| {
            let hits =
                items.iter().filter(|(item, at)| finds(&index, field, cut, item, *at)).count();
            100.0 * hits as f64 / items.len() as f64
        };
        println!(
            "{name}: {size} bytes ({:.1}% of the text), found of stretches cut anywhere {:.1}%, of whole words {:.1}%",
            100.0 * size as f64 / bytes as f64,
            recall(&anywhere),
            recall(&whole)
        );
    }
}
