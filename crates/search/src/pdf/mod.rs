//! The text of PDF files.
//!
//! The file is never turned into objects as a whole: an object is parsed from its bytes when it is
//! asked for, and what is unpacked counts against one budget. So a small file that claims to be
//! huge costs no more than a large one.

mod content;
mod filters;
mod font;
mod glyphs;
mod objects;
mod syntax;

use std::collections::BTreeSet;

use nenrin_extract::{ContentKind, PageBlock, PageText, TextKind, page_text};

use content::Writer;
use objects::Objects;
use syntax::{Dict, Value};

/// Pages that are read of one file.
const MAX_PAGES: usize = 20_000;
/// How deep the tree of pages may be.
const MAX_TREE_DEPTH: usize = 64;

/// Whether a body is a PDF file: viewers accept some bytes in front of the mark.
pub(crate) fn is_pdf(body: &[u8]) -> bool {
    memchr::memmem::find(&body[..body.len().min(1024)], b"%PDF-").is_some()
}

/// The text of a PDF file, at most so many bytes of it. A file that is encrypted or damaged has the
/// text that can be read, possibly none.
pub fn pdf_text(body: &[u8], max_bytes: usize) -> PageText {
    let objects = Objects::of(body);
    if objects.is_encrypted() {
        return PageText::default();
    }
    let mut writer = Writer::new(&objects, max_bytes);
    for (page, resources) in pages(&objects) {
        writer.page(&page, &resources);
        if writer.is_full() {
            break;
        }
    }
    let text = writer.finish();
    let kind = ContentKind::Text;
    let mut found = page_text(kind, Some("text/plain; charset=utf-8"), text.as_bytes(), max_bytes);
    if let Some(title) = title(&objects) {
        found.blocks.insert(0, PageBlock { kind: TextKind::Title, text: title });
    }
    found.lang = objects
        .catalog()
        .and_then(|catalog| objects.get(&catalog, b"Lang").into_text())
        .map(|lang| text_string(&lang))
        .filter(|lang| !lang.is_empty());
    found
}

/// The pages in their order, each with its resources.
fn pages(objects: &Objects<'_>) -> Vec<(Dict, Dict)> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let root = objects.catalog().map(|catalog| catalog.get(b"Pages").clone());
    // The node, its depth, and the resources that it takes over from above.
    let mut open = vec![(root.unwrap_or(Value::Null), 0, Dict::default())];
    while let Some((node, depth, inherited)) = open.pop() {
        if found.len() >= MAX_PAGES || depth > MAX_TREE_DEPTH {
            break;
        }
        if let Value::Reference(number) = node
            && !seen.insert(number)
        {
            continue;
        }
        let Some(dict) = objects.resolve(&node).into_dict() else { continue };
        let resources = objects.get(&dict, b"Resources").into_dict().unwrap_or(inherited);
        match objects.get(&dict, b"Kids") {
            Value::Array(kids) => {
                let child = |kid: Value| (kid, depth + 1, resources.clone());
                open.extend(kids.into_iter().rev().take(MAX_PAGES).map(child));
            }
            _ => found.push((dict, resources)),
        }
    }
    found
}

fn title(objects: &Objects<'_>) -> Option<String> {
    let info = objects.info()?;
    let title = text_string(&objects.get(&info, b"Title").into_text()?);
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    (!title.is_empty()).then(|| title.chars().take(500).collect())
}

/// A string outside of pages: UTF-16 or UTF-8 with a mark, or one byte per character.
fn text_string(bytes: &[u8]) -> String {
    let (encoding, rest) = match bytes {
        [0xFE, 0xFF, rest @ ..] => (encoding_rs::UTF_16BE, rest),
        [0xFF, 0xFE, rest @ ..] => (encoding_rs::UTF_16LE, rest),
        [0xEF, 0xBB, 0xBF, rest @ ..] => (encoding_rs::UTF_8, rest),
        _ => (encoding_rs::WINDOWS_1252, bytes),
    };
    encoding.decode_without_bom_handling(rest).0.chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests;
