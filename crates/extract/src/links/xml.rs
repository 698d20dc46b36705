//! XHTML, SVG and other XML.

use std::borrow::Cow;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::LinkKind::Embed;
use super::element::Attributes;
use super::html;
use super::references::References;
use crate::entities::{TextContext, decode_entities};

/// Collects the references of an XML document. If it turns out not to be well-formed, the rest is
/// read as HTML, which accepts anything.
pub(super) fn collect(xml: &str, references: &mut References<'_>) {
    let mut reader = Reader::from_str(xml);
    let config = reader.config_mut();
    config.allow_dangling_amp = true;
    config.allow_unmatched_ends = true;
    config.check_end_names = false;
    let mut gathered = Gathered::Nothing;
    loop {
        let at = usize::try_from(reader.buffer_position()).unwrap_or(xml.len());
        match reader.read_event() {
            Ok(Event::Eof) => return,
            Ok(event) => gathered.take(event, references),
            Err(_) => {
                html::collect(xml.get(at..).unwrap_or_default(), references);
                return;
            }
        }
    }
}

/// Text that is being gathered.
enum Gathered {
    Nothing,
    Title(String),
    Style(String),
    Script { declared: String, script: String },
}

impl Gathered {
    fn take(&mut self, event: Event<'_>, references: &mut References<'_>) {
        match event {
            Event::Start(tag) => {
                add(&tag, references);
                *self = match tag.local_name().as_ref() {
                    "title" if !references.has_title() => Self::Title(String::new()),
                    "style" => Self::Style(String::new()),
                    "script" => Self::Script {
                        declared: tag.get("type").unwrap_or_default().into_owned(),
                        script: String::new(),
                    },
                    _ => Self::Nothing,
                };
            }
            Event::Empty(tag) => add(&tag, references),
            Event::End(_) => self.finish(references),
            Event::Text(text) => self.push(&text.into_inner(), references),
            Event::CData(text) => self.push(&text.into_inner(), references),
            Event::GeneralRef(reference) => {
                let written = format!("&{};", reference.into_inner());
                self.push(&decode_entities(&written, TextContext::Text), references);
            }
            Event::PI(instruction) if instruction.target() == "xml-stylesheet" => {
                let tag = BytesStart::from_content(instruction.content(), 0);
                if let Some(href) = tag.get("href") {
                    references.add(&href, Embed);
                }
            }
            _ => {}
        }
    }

    fn push(&mut self, text: &str, references: &References<'_>) {
        match self {
            Self::Title(title) if title.len() < references.limits.max_title_chars * 16 => {
                title.push_str(text);
            }
            Self::Style(style) => style.push_str(text),
            Self::Script { script, .. } => script.push_str(text),
            _ => {}
        }
    }

    fn finish(&mut self, references: &mut References<'_>) {
        match std::mem::replace(self, Self::Nothing) {
            Self::Title(title) => references.set_title(&title),
            Self::Style(style) => references.add_css(&style),
            Self::Script { declared, script } => references.add_script(&declared, &script),
            Self::Nothing => {}
        }
    }
}

fn add(tag: &BytesStart<'_>, references: &mut References<'_>) {
    let name = tag.local_name().as_ref().to_ascii_lowercase();
    references.add_element(&name, tag);
}

impl Attributes for BytesStart<'_> {
    fn get(&self, name: &str) -> Option<Cow<'_, str>> {
        let mut attributes = self.html_attributes();
        attributes.with_checks(false);
        let found = attributes.flatten().find(|a| a.key.as_ref().eq_ignore_ascii_case(name))?;
        Some(decode_entities(&found.value, TextContext::Attribute).into_owned().into())
    }

    fn data_names(&self) -> Vec<String> {
        let mut attributes = self.html_attributes();
        attributes.with_checks(false);
        let names = attributes.flatten().map(|a| a.key.as_ref().to_ascii_lowercase());
        names.filter(|name| name.starts_with("data-")).collect()
    }
}
