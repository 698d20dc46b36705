//! Walks over XML, holding only the path from the root and the text of the elements on it.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::entities::{TextContext, decode_entities};

/// Elements nested deeper than this are skipped.
const MAX_DEPTH: usize = 32;

/// The most text of one element: more than a URL, a date or a title needs.
const MAX_TEXT_BYTES: usize = 8 * 1024;

/// Receives elements. Names are local, without prefix.
pub(super) trait Visitor {
    /// A start tag; `parent` is empty for the root. Returns whether to continue.
    fn open(&mut self, _parent: &str, _name: &str, _tag: &XmlTag<'_>) -> bool {
        true
    }

    /// The end of an element, with the text directly in it, trimmed.
    fn close(&mut self, parent: &str, name: &str, text: &str) -> bool;
}

/// A start tag.
pub(super) struct XmlTag<'t>(BytesStart<'t>);

impl XmlTag<'_> {
    /// The value of an attribute, by its full name, references decoded.
    pub(super) fn attribute(&self, name: &str) -> Option<String> {
        let mut attributes = self.0.html_attributes();
        attributes.with_checks(false);
        let found = attributes.flatten().find(|a| a.key.as_ref() == name)?;
        Some(decode_entities(&found.value, TextContext::Attribute).trim().to_owned())
    }
}

/// Walks a document; returns whether it was read to its end. Entities that a document defines
/// itself are never expanded.
pub(super) fn walk(xml: &str, visitor: &mut dyn Visitor) -> bool {
    let mut reader = Reader::from_str(xml);
    let config = reader.config_mut();
    config.allow_dangling_amp = true;
    config.allow_unmatched_ends = true;
    config.check_end_names = false;
    let mut path = ElementPath { elements: Vec::new(), deeper: 0 };
    loop {
        let go_on = match reader.read_event() {
            Ok(Event::Eof) => return true,
            Ok(Event::Start(tag)) => path.enter(tag, visitor),
            Ok(Event::Empty(tag)) => path.enter(tag, visitor) && path.leave(visitor),
            Ok(Event::End(_)) => path.leave(visitor),
            Ok(Event::Text(text)) => {
                path.text(&decode_entities(&text.into_inner(), TextContext::Text))
            }
            Ok(Event::CData(text)) => path.text(&text.into_inner()),
            Ok(Event::GeneralRef(reference)) => path.text(&decode_entities(
                &format!("&{};", reference.into_inner()),
                TextContext::Text,
            )),
            Ok(_) => true,
            Err(_) => false,
        };
        if !go_on {
            return false;
        }
    }
}

/// The open elements with their text.
struct ElementPath {
    elements: Vec<(String, String)>,
    /// How many open elements are below the deepest one held.
    deeper: usize,
}

impl ElementPath {
    fn enter(&mut self, tag: BytesStart<'_>, visitor: &mut dyn Visitor) -> bool {
        if self.elements.len() == MAX_DEPTH {
            self.deeper += 1;
            return true;
        }
        let name = tag.local_name().as_ref().to_owned();
        let parent = self.elements.last().map_or("", |(parent, _)| parent.as_str());
        let go_on = visitor.open(parent, &name, &XmlTag(tag));
        self.elements.push((name, String::new()));
        go_on
    }

    fn leave(&mut self, visitor: &mut dyn Visitor) -> bool {
        if self.deeper > 0 {
            self.deeper -= 1;
            return true;
        }
        let Some((name, text)) = self.elements.pop() else { return true };
        let parent = self.elements.last().map_or("", |(parent, _)| parent.as_str());
        visitor.close(parent, &name, text.trim())
    }

    fn text(&mut self, text: &str) -> bool {
        if self.deeper == 0
            && let Some((_, kept)) = self.elements.last_mut()
            && kept.len() + text.len() <= MAX_TEXT_BYTES
        {
            kept.push_str(text);
        }
        true
    }
}
