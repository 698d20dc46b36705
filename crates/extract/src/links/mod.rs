//! The links of a body.
//!
//! [`page_links`] reads a body by its kind. References are collected as they are written
//! ([`References`]) and resolved at the end, when the base URL is known.

mod element;
mod header;
mod html;
mod late;
mod references;
mod refresh;
mod script;
mod tokens;
mod xml;

use nenrin_urls::CanonicalUrl;
use serde::{Deserialize, Serialize};

use crate::charset::charset;
use crate::signals::{feed, sitemap};
use crate::{ContentKind, ExtractLimits, MetaRobots};

use references::References;
use script::Source;

pub use header::link_header;

/// What a page does with a URL that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum LinkKind {
    /// A reader may go there: `a`, `area`, forms, `meta refresh`, `link rel=next` and similar,
    /// entries of feeds and sitemaps.
    Page,
    /// A document shown within the page: `iframe`, `frame`.
    Frame,
    /// A part of the page: images, scripts, styles, fonts, media.
    Embed,
}

/// One URL that a page names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its target.
    pub url: CanonicalUrl,
    /// What the page does with it.
    pub kind: LinkKind,
}

/// What a body says about other URLs and about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageLinks {
    /// What references are relative to: the page's URL, or its `base`.
    pub base: CanonicalUrl,
    /// The URLs named, in the order of the page, each once and never the page itself. A URL that is
    /// both embedded and linked counts as embedded, because embedded parts are needed to show the
    /// page.
    pub links: Vec<Link>,
    /// The title, with runs of white space replaced by one space.
    pub title: Option<String>,
    /// Robots directives in the page.
    pub robots: MetaRobots,
    /// Feeds that the page offers (`link rel=alternate`); they are among the links as well.
    pub feeds: Vec<CanonicalUrl>,
    /// The URL that the page names as its own (`link rel=canonical`).
    pub canonical: Option<CanonicalUrl>,
    /// What kind of scripts the page has: the files' names and the words of those within it, hashed.
    /// None without scripts. It stays the same when only numbers and texts in them change.
    pub scripts: Option<u64>,
    /// References that are not http or https URLs, such as `mailto:` and `data:`, or too long.
    pub refused: u32,
    /// A limit was reached or the parser gave up: there may be more links.
    pub truncated: bool,
}

/// The links of a body of the given kind, with its content coding undone. Of scripts, only what they
/// name without doubt: modules, workers, requests by a literal URL. Images and other kinds have none.
/// Malformed bodies give what can be found.
pub fn page_links(
    url: &CanonicalUrl,
    kind: ContentKind,
    content_type: Option<&str>,
    body: &[u8],
    limits: &ExtractLimits,
) -> PageLinks {
    let mut references = References::new(limits);
    let mut encoding = encoding_rs::UTF_8;
    let mut text = || {
        encoding = charset(content_type, body);
        encoding.decode(body).0
    };
    match kind {
        ContentKind::Html => html::collect(&text(), &mut references),
        ContentKind::Css => references.add_css(&text()),
        ContentKind::Xhtml | ContentKind::Svg | ContentKind::Xml => {
            xml::collect(&text(), &mut references);
        }
        ContentKind::Feed => references.add_feed_entries(feed(url, content_type, body)),
        ContentKind::Sitemap => references.add_sitemap_entries(sitemap(url, body)),
        ContentKind::JavaScript => {
            script::collect(&text(), Source::File, Some(url), &mut references);
        }
        ContentKind::Json => {
            script::collect(&text(), Source::JsonFile, Some(url), &mut references);
        }
        ContentKind::Text | ContentKind::Image | ContentKind::Other => {}
    }
    references.resolve(url, encoding)
}

#[cfg(test)]
mod tests;
