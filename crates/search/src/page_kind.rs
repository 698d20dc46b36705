//! Kinds of pages that have text.

use nenrin_extract::ContentKind;

/// A kind of page that can be searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PageKind {
    /// HTML.
    Html,
    /// Plain text.
    Text,
    /// RSS, Atom or JSON Feed.
    Feed,
    /// JSON or other XML.
    Data,
    /// PDF.
    Pdf,
}

impl PageKind {
    const ALL: [Self; 5] = [Self::Html, Self::Text, Self::Feed, Self::Data, Self::Pdf];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Text => "text",
            Self::Feed => "feed",
            Self::Data => "data",
            Self::Pdf => "pdf",
        }
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(name))
    }

    pub(crate) fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    pub(crate) fn number(self) -> u8 {
        self as u8
    }

    pub(crate) fn of_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// The kind of a body, if it has text.
    pub(crate) fn of(kind: ContentKind) -> Option<Self> {
        match kind {
            ContentKind::Html | ContentKind::Xhtml => Some(Self::Html),
            ContentKind::Text => Some(Self::Text),
            ContentKind::Feed => Some(Self::Feed),
            ContentKind::Json | ContentKind::Xml => Some(Self::Data),
            _ => None,
        }
    }
}
