//! What a rendering of a page leaves behind, and its address in the archive.

use crate::CanonicalUrl;

/// Names below `invalid` never lead anywhere (RFC 2606).
const BELOW: &str = ".rendered.invalid";

/// A record that a rendering of a page leaves behind. It is stored like any page, under an address of
/// its own.
///
/// ```
/// use nenrin_urls::{CanonicalUrl, RenderedRecord};
///
/// let page = CanonicalUrl::parse("https://example.com/a?b=c")?;
/// let view = RenderedRecord::View.of(&page).expect("it is not too long");
/// assert_eq!(view.as_str(), "http://view.rendered.invalid/https://example.com/a?b=c");
/// assert_eq!(RenderedRecord::parse(&view), Some((RenderedRecord::View, page)));
/// assert_eq!(RenderedRecord::urn(&view).as_deref(), Some("urn:view:https://example.com/a?b=c"));
/// # Ok::<(), nenrin_urls::UrlError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RenderedRecord {
    /// The text that a reader sees.
    Text,
    /// A picture of the window.
    View,
    /// A picture of the whole page, down to a limit.
    Whole,
}

impl RenderedRecord {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Text, Self::View, Self::Whole];

    fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::View => "view",
            Self::Whole => "whole",
        }
    }

    /// The word for it in the names that other archives use.
    fn word(self) -> &'static str {
        match self {
            Self::Whole => "fullPage",
            other => other.name(),
        }
    }

    /// The address of a page's record; none if it would be too long.
    pub fn of(self, page: &CanonicalUrl) -> Option<CanonicalUrl> {
        let address = format!("http://{}{BELOW}/{page}", self.name());
        let url = CanonicalUrl::parse(&address).ok()?;
        (Self::parse(&url)?.1 == *page).then_some(url)
    }

    /// Which record of which page an address is of, if it is one.
    pub fn parse(url: &CanonicalUrl) -> Option<(Self, CanonicalUrl)> {
        let name = url.host().strip_suffix(BELOW)?;
        let kind = Self::ALL.into_iter().find(|kind| kind.name() == name)?;
        let page = CanonicalUrl::parse(url.path_and_query().strip_prefix('/')?).ok()?;
        Some((kind, page))
    }

    /// The name under which other archives know a record.
    pub fn urn(url: &CanonicalUrl) -> Option<String> {
        Self::parse(url).map(|(kind, page)| format!("urn:{}:{page}", kind.word()))
    }

    /// The address of the record with such a name.
    pub fn of_urn(text: &str) -> Option<CanonicalUrl> {
        let (word, page) = text.strip_prefix("urn:")?.split_once(':')?;
        let kind = Self::ALL.into_iter().find(|kind| kind.word() == word)?;
        kind.of(&CanonicalUrl::parse(page).ok()?)
    }

    /// Whether an address is one of a record.
    pub fn is_one(url: &CanonicalUrl) -> bool {
        url.host().ends_with(BELOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_its_records_and_they_lead_back() {
        for page in [
            "https://e.com/",
            "http://127.0.0.1:8080/a/../b//c?x=1&y=%20",
            "https://[::1]/a",
            "https://日本.jp/年輪?q=年輪",
            "https://e.com/?a=http://b.com/?c",
        ] {
            let page = CanonicalUrl::parse(page).unwrap();
            for kind in RenderedRecord::ALL {
                let url = kind.of(&page).unwrap();
                assert!(RenderedRecord::is_one(&url));
                assert_eq!(RenderedRecord::parse(&url), Some((kind, page.clone())));
                let urn = RenderedRecord::urn(&url).unwrap();
                assert_eq!(RenderedRecord::of_urn(&urn), Some(url));
            }
            assert!(!RenderedRecord::is_one(&page));
        }
        let long = CanonicalUrl::parse(&format!("https://e.com/{}", "x".repeat(3_980))).unwrap();
        assert_eq!(RenderedRecord::Text.of(&long), None);
        for other in ["urn:pageinfo:https://e.com/", "urn:text:", "text:https://e.com/"] {
            assert_eq!(RenderedRecord::of_urn(other), None, "{other}");
        }
    }
}
