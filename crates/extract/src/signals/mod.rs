//! Sitemaps and feeds: lists of pages with dates, which say where a site changed.

mod feed;
mod json_feed;
mod sitemap;
mod xml_tree;

pub use feed::{Feed, FeedEntry, feed};
pub use sitemap::{Sitemap, SitemapEntry, sitemap};

/// The most entries of one sitemap or feed: the sitemap protocol's own limit.
pub const MAX_ENTRIES: usize = 50_000;

/// The most bytes of their URLs, all together.
const MAX_ENTRIES_BYTES: usize = 16 << 20;

/// The most bytes of one sitemap that are read, uncompressed: the sitemap protocol's own limit.
pub const MAX_SITEMAP_BYTES: usize = 50 * 1024 * 1024;
