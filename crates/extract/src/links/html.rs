//! Reads HTML as a stream of tags.

use std::borrow::Cow;
use std::cell::RefCell;

use lol_html::html_content::{Element, TextChunk, TextType};
use lol_html::{HtmlRewriter, MemorySettings, Settings, element, text};

use super::element::Attributes;
use super::references::References;
use crate::endless_tag::before_endless_tag;
use crate::entities::{TextContext, decode_entities};

/// Collects the references of a page.
pub(super) fn collect(html: &str, references: &mut References<'_>) {
    let limits = references.limits;
    let whole = html;
    let html = before_endless_tag(whole);
    references.truncated |= html.len() < whole.len();
    let reader = RefCell::new(HtmlReader::new(references));
    let memory = MemorySettings::new().with_max_allowed_memory_usage(limits.max_parser_bytes);
    let settings = Settings::new()
        .with_strict(false)
        .with_memory_settings(memory)
        .append_element_content_handler(element!("*", |element| {
            reader.borrow_mut().start_tag(element);
            Ok(())
        }))
        .append_element_content_handler(text!("title", |chunk| {
            reader.borrow_mut().title_text(chunk);
            Ok(())
        }))
        .append_element_content_handler(text!("style", |chunk| {
            reader.borrow_mut().style_text(chunk);
            Ok(())
        }))
        .append_element_content_handler(element!("script", |element| {
            reader.borrow_mut().script_tag(element);
            Ok(())
        }))
        .append_element_content_handler(text!("script", |chunk| {
            reader.borrow_mut().script_text(chunk);
            Ok(())
        }))
        .append_element_content_handler(text!("noscript, noframes", |chunk| {
            reader.borrow_mut().inner_text(chunk);
            Ok(())
        }));
    let mut rewriter = HtmlRewriter::new(settings, |_: &[u8]| {});
    let read = rewriter.write(html.as_bytes()).and_then(|()| rewriter.end());
    let failed = read.is_err();
    references.truncated |= failed;
}

/// Collects the references of a document within a document, unless it is nested too deep.
pub(super) fn collect_inner(html: &str, references: &mut References<'_>) {
    if references.depth >= references.limits.max_document_depth {
        references.truncated = true;
        return;
    }
    references.depth += 1;
    collect(html, references);
    references.depth -= 1;
}

/// Text that comes in pieces is gathered until its node ends.
struct HtmlReader<'r, 'l> {
    references: &'r mut References<'l>,
    title: String,
    style: String,
    script: String,
    /// The type of the last `script`.
    script_type: String,
    inner: String,
}

impl<'r, 'l> HtmlReader<'r, 'l> {
    fn new(references: &'r mut References<'l>) -> Self {
        Self {
            references,
            title: String::new(),
            style: String::new(),
            script: String::new(),
            script_type: String::new(),
            inner: String::new(),
        }
    }

    fn start_tag(&mut self, element: &Element<'_, '_>) {
        if !element.attributes().is_empty() {
            self.references.add_element(&element.tag_name(), element);
        }
    }

    fn title_text(&mut self, chunk: &TextChunk<'_>) {
        // Decoding may shorten a text; a few times the limit is enough.
        let enough = self.references.limits.max_title_chars.saturating_mul(16);
        if self.title.len() < enough {
            self.title.push_str(chunk.as_str());
        }
        if chunk.last_in_text_node() {
            let title = std::mem::take(&mut self.title);
            // The title of an SVG drawing may contain elements; only the page's own title is plain
            // text.
            let of_page = chunk.text_type() == TextType::RCData && self.references.depth == 0;
            if of_page && !self.references.has_title() {
                self.references.set_title(&decode_entities(&title, TextContext::Text));
            }
        }
    }

    fn style_text(&mut self, chunk: &TextChunk<'_>) {
        self.style.push_str(chunk.as_str());
        if chunk.last_in_text_node() {
            let style = std::mem::take(&mut self.style);
            self.references.add_css(&style);
        }
    }

    fn script_tag(&mut self, element: &Element<'_, '_>) {
        self.script_type = Attributes::get(element, "type").unwrap_or_default().into_owned();
    }

    fn script_text(&mut self, chunk: &TextChunk<'_>) {
        self.script.push_str(chunk.as_str());
        if chunk.last_in_text_node() {
            let script = std::mem::take(&mut self.script);
            self.references.add_script(&self.script_type, &script);
        }
    }

    /// The parser treats the content of `noscript` and `noframes` as text, like a browser with
    /// scripts and frames. For an archive it is content.
    fn inner_text(&mut self, chunk: &TextChunk<'_>) {
        self.inner.push_str(chunk.as_str());
        if chunk.last_in_text_node() {
            let inner = std::mem::take(&mut self.inner);
            collect_inner(&inner, self.references);
        }
    }
}

impl Attributes for Element<'_, '_> {
    fn get(&self, name: &str) -> Option<Cow<'_, str>> {
        let value = self.get_attribute(name)?;
        Some(match decode_entities(&value, TextContext::Attribute) {
            Cow::Borrowed(_) => Cow::Owned(value),
            Cow::Owned(decoded) => Cow::Owned(decoded),
        })
    }

    fn data_names(&self) -> Vec<String> {
        let names = self.attributes().iter().map(|attribute| attribute.name());
        names.filter(|name| name.starts_with("data-")).collect()
    }
}
