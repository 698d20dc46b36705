//! A page as lines of text, as readers see it.

use lol_html::{HtmlRewriter, Settings, doc_text, element, errors::RewritingError};

use nenrin_extract::readable_length;

use crate::rewrite::{decoded_entities, parser_memory};

/// The most lines that are compared.
const MAX_LINES: usize = 20_000;

/// Elements whose text is not shown.
const HIDDEN: &str = "script, style, template, noscript";

/// Elements that do not break a line.
const INLINE: [&str; 26] = [
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "em", "font", "i", "img",
    "ins", "kbd", "label", "mark", "q", "ruby", "s", "small", "span", "strong", "sub", "sup", "u",
];

/// The lines of a page: text between elements that break lines, white space folded.
pub(crate) fn lines(html: &str) -> Vec<String> {
    let text = std::cell::RefCell::new(String::new());
    if let Err(error) = read(html, &text) {
        tracing::debug!(%error, "a page could not be read to its end");
    }
    let text = text.into_inner();
    let folded = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    text.split('\n').map(folded).filter(|line| !line.is_empty()).take(MAX_LINES).collect()
}

fn read(html: &str, text: &std::cell::RefCell<String>) -> Result<(), RewritingError> {
    let settings = Settings::new()
        .with_strict(false)
        .with_memory_settings(parser_memory())
        .append_element_content_handler(element!("*", |element| {
            if !INLINE.contains(&element.tag_name().as_str()) {
                text.borrow_mut().push('\n');
            }
            Ok(())
        }))
        .append_element_content_handler(lol_html::text!(HIDDEN, |chunk| {
            chunk.remove();
            Ok(())
        }))
        .append_document_content_handler(doc_text!(|chunk| {
            if !chunk.removed() {
                let decoded = decoded_entities(chunk.as_str().as_bytes()).into_owned();
                let decoded = String::from_utf8_lossy(&decoded).replace(['\n', '\r'], " ");
                text.borrow_mut().push_str(&decoded);
            }
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
    fn text_is_cut_at_elements_that_break_lines() {
        let html = "<title>t</title><p>a <b>b</b>\n c<script>x</script><div>d &amp; e</div><br>f";
        assert_eq!(lines(html), ["t", "a b c", "d & e", "f"]);
    }
}
