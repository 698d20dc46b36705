//! Marks, in the rendered page, the texts that only this version has.

use std::{cell::RefCell, collections::BTreeSet, ops::Range};

use lol_html::{HtmlRewriter, Settings, doc_text, errors::RewritingError, text};
use nenrin_extract::readable_length;

use super::{Change, compare};
use crate::rewrite::parser_memory;

/// The most texts that are compared.
const MAX_TEXTS: usize = 20_000;

/// Elements that may not contain other elements, or whose text is not shown.
const UNMARKED: &str = "script, style, template, noscript, head, title, textarea, option, select, \
    svg, math, iframe, object, video, audio";

/// Which of the two versions is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// What was removed is marked.
    Old,
    /// What was added is marked.
    New,
}

impl Side {
    /// As it is written in addresses.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Old => "old",
            Self::New => "new",
        }
    }
}

/// A page with marks around the texts that the other version does not have.
pub(crate) fn marked(html: &str, other: &str, side: Side) -> String {
    let own = texts(html);
    let others = texts(other);
    let folded = |page: &str, texts: &[Range<usize>]| -> Vec<String> {
        let fold =
            |r: &Range<usize>| page[r.clone()].split_whitespace().collect::<Vec<_>>().join(" ");
        texts.iter().map(fold).collect()
    };
    let changes = compare(&folded(html, &own), &folded(other, &others));
    let color = match side {
        Side::Old => "#ffc9c0",
        Side::New => "#b9efb5",
    };
    let open = format!(
        "<nenrin-mark style=\"background:{color}!important;color:#111!important;outline:2px solid \
         {color}!important\">"
    );
    let mut out = String::with_capacity(html.len());
    let mut at = 0;
    for change in changes {
        let Change::Changed(range, _) = change else { continue };
        for text in &own[range] {
            out.push_str(&html[at..text.start]);
            out.push_str(&open);
            out.push_str(&html[text.clone()]);
            out.push_str("</nenrin-mark>");
            at = text.end;
        }
    }
    out.push_str(&html[at..]);
    out
}

/// Where the texts are that are shown and not blank. A page needs no `body` in its source.
fn texts(html: &str) -> Vec<Range<usize>> {
    let (all, unmarked) = (RefCell::new(Vec::new()), RefCell::new(BTreeSet::new()));
    if let Err(error) = read(html, &all, &unmarked) {
        tracing::debug!(%error, "a page could not be read to its end");
    }
    let unmarked = unmarked.into_inner();
    let mut found: Vec<Range<usize>> = Vec::new();
    for range in all.into_inner() {
        match found.last_mut() {
            _ if unmarked.contains(&range.start) || range.is_empty() => {}
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => found.push(range),
        }
    }
    let is_shown = |r: &Range<usize>| html.get(r.clone()).is_some_and(|t| !t.trim().is_empty());
    found.retain(is_shown);
    found.truncate(MAX_TEXTS);
    found
}

fn read(
    html: &str,
    all: &RefCell<Vec<Range<usize>>>,
    unmarked: &RefCell<BTreeSet<usize>>,
) -> Result<(), RewritingError> {
    let settings = Settings::new()
        .with_strict(false)
        .with_memory_settings(parser_memory())
        .append_element_content_handler(text!(UNMARKED, |chunk| {
            unmarked.borrow_mut().insert(chunk.source_location().bytes().start);
            Ok(())
        }))
        .append_document_content_handler(doc_text!(|chunk| {
            all.borrow_mut().push(chunk.source_location().bytes());
            Ok(())
        }));
    let mut rewriter = HtmlRewriter::new(settings, |_: &[u8]| {});
    rewriter.write(&html.as_bytes()[..readable_length(html.as_bytes())])?;
    rewriter.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_texts_that_the_other_lacks_are_marked() {
        let old = "<body><p>same</p><p>old <b>bold</b></p><script>1</script></body>";
        let new = "<body><p>same</p><p>new <b>bold</b></p><script>2</script></body>";
        let marked = marked(new, old, Side::New);
        assert_eq!(marked.matches("<nenrin-mark").count(), 1);
        assert!(marked.contains("\">new </nenrin-mark><b>bold</b>"), "{marked}");
        assert!(marked.contains("<script>2</script>"));
        assert_eq!(super::marked(new, new, Side::New), new);
    }

    #[test]
    fn a_page_needs_no_body_in_its_source() {
        for (old, new, count) in [
            ("<title>t</title><p>same<p>old", "<title>u</title><p>same<p>new", 1),
            ("<!doctype html>one", "<!doctype html>two", 1),
            ("<table><tr><td>a<td>b</table>", "<table><tr><td>a<td>c</table>", 1),
            ("<frameset><noframes>a</noframes>", "<frameset><noframes>b</noframes>", 1),
            ("<style>a</style>x", "<style>b</style>x", 0),
        ] {
            let marked = marked(new, old, Side::New);
            assert_eq!(marked.matches("<nenrin-mark").count(), count, "{marked}");
        }
    }
}
