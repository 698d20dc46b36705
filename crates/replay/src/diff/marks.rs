//! Marks, in the rendered page, the texts that only this version has.

use std::ops::Range;

use lol_html::{HtmlRewriter, Settings, errors::RewritingError, text};

use super::{Change, compare};

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

/// Where the texts are that are shown and not blank.
fn texts(html: &str) -> Vec<Range<usize>> {
    let found = std::cell::RefCell::new(Vec::new());
    if let Err(error) = read(html, &found) {
        tracing::debug!(%error, "a page could not be read to its end");
    }
    let mut found = found.into_inner();
    let is_shown = |r: &Range<usize>| html.get(r.clone()).is_some_and(|t| !t.trim().is_empty());
    found.retain(is_shown);
    found.truncate(MAX_TEXTS);
    found
}

fn read(html: &str, found: &std::cell::RefCell<Vec<Range<usize>>>) -> Result<(), RewritingError> {
    let unmarked = std::cell::Cell::new(usize::MAX);
    let settings = Settings::new()
        .with_strict(false)
        .append_element_content_handler(text!(UNMARKED, |chunk| {
            unmarked.set(chunk.source_location().bytes().start);
            Ok(())
        }))
        .append_element_content_handler(text!("body *, body", |chunk| {
            let range = chunk.source_location().bytes();
            if unmarked.get() == range.start {
                return Ok(());
            }
            let mut found = found.borrow_mut();
            match found.last_mut() {
                Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
                _ if !range.is_empty() => found.push(range),
                _ => {}
            }
            Ok(())
        }));
    let mut rewriter = HtmlRewriter::new(settings, |_: &[u8]| {});
    rewriter.write(html.as_bytes())?;
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
}
