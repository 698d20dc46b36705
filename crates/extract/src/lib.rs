//! Reads what a received body says.
//!
//! Read in this order:
//! - [`decode_content`]: the body without its content codings, within limits;
//! - [`content_kind`] and [`ContentKind`]: its kind of content;
//! - [`charset()`]: its character encoding;
//! - [`page_links`], [`PageLinks`], [`Link`]: the URLs it names, its title, its robots directives;
//! - [`feed()`] and [`sitemap()`]: the pages that they announce, with dates;
//! - [`challenge()`] and [`fingerprint()`]: whether it is a bot guard's page or a "not found" page
//!   with status 200;
//! - [`significance()`], [`Comparison`], [`NoisyParts`]: whether a change matters to readers;
//! - [`changed_line`]: the one line that says most about a change;
//! - [`page_fragments`]: the fragments at its ends that other pages may share;
//! - [`visible_text`]: what readers see; [`page_text`]: the same in blocks, with what each is;
//! - [`PartSelector`], [`selected_texts`], [`text_blocks`]: parts of a page, by selector or as blocks;
//! - [`inlined_page`]: a page as one file, with its parts in it;
//! - [`readable_length`]: how much of a page an HTML parser can read within reasonable memory.
//!
//! All are pure functions over bytes: no clock, no sockets, no files. No input makes them panic or
//! use memory beyond their limits. Nothing here runs scripts or builds a document tree, and nothing
//! here decides what is fetched: `crawl` does.

mod blocks;
mod challenge;
mod charset;
mod css;
mod dates;
mod decoding;
mod endless_tag;
mod entities;
mod error;
mod fingerprint;
mod fragments;
mod hash;
mod inline;
mod kind;
mod limits;
mod links;
mod media_type;
mod parts;
mod robots_tag;
mod signals;
mod significance;
mod srcset;
mod text;

pub use blocks::{MAX_TEXT_BLOCKS, PageBlock, PageText, TextKind, page_text};
pub use challenge::challenge;
pub use charset::charset;
pub use decoding::{
    Front, MAX_CODINGS, MAX_RATIO, RATIO_FLOOR_BYTES, Source, decode_content, decode_front,
};
pub use endless_tag::readable_length;
pub use error::ExtractError;
pub use fingerprint::{Fingerprint, fingerprint};
pub use fragments::{MAX_PAGE_FRAGMENTS, page_fragments};
pub use inline::{InlinedPage, PagePart, inlined_page};
pub use kind::{ContentKind, content_kind};
pub use limits::ExtractLimits;
pub use links::{Link, LinkKind, PageLinks, link_header, page_links};
pub use media_type::media_type;
pub use parts::{
    MAX_SELECTOR_CHARS, PartSelector, SelectorError, TextBlock, selected_texts, text_blocks,
    without_parts,
};
pub use robots_tag::{MetaRobots, x_robots_tag};
pub use signals::{
    Feed, FeedEntry, MAX_ENTRIES, MAX_SITEMAP_BYTES, Sitemap, SitemapEntry, feed, sitemap,
};
pub use significance::{
    Change, ChangedLine, Comparison, MAX_NOISY_PARTS, NoisyParts, changed_line, compare,
    significance,
};
pub use text::visible_text;
