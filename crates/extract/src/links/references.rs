use std::borrow::Cow;

use encoding_rs::{EncoderResult, Encoding, UTF_8};
use nenrin_urls::{CanonicalUrl, MAX_URL_BYTES};
use url::Url;

use super::script::{self, ImportMap, Source};
use super::{Link, LinkKind, PageLinks};
use crate::css::css_references;
use crate::signals::{Feed, Sitemap};
use crate::{ExtractLimits, MetaRobots};

/// What a body refers to, as written, until the base URL is known.
pub(super) struct References<'l> {
    pub(super) limits: &'l ExtractLimits,
    /// How many documents surround the one being read.
    pub(super) depth: usize,
    pub(super) robots: MetaRobots,
    pub(super) truncated: bool,
    /// What bare names of modules stand for.
    pub(super) imports: ImportMap,
    /// What kind of scripts were seen.
    pub(super) scripts: Option<u64>,
    /// Whether the last form is sent by GET.
    pub(super) is_get_form: bool,
    found: Vec<(String, LinkKind)>,
    base: Option<String>,
    title: Option<String>,
    feeds: Vec<String>,
    canonical: Option<String>,
    refused: u32,
}

impl<'l> References<'l> {
    pub(super) fn new(limits: &'l ExtractLimits) -> Self {
        Self {
            limits,
            depth: 0,
            robots: MetaRobots::default(),
            truncated: false,
            imports: ImportMap::default(),
            scripts: None,
            is_get_form: true,
            found: Vec::new(),
            base: None,
            title: None,
            feeds: Vec::new(),
            canonical: None,
            refused: 0,
        }
    }

    /// Adds one reference. References within the same page are not links.
    pub(super) fn add(&mut self, reference: &str, kind: LinkKind) {
        let reference = reference.trim_matches(is_url_space);
        // Browsers read `///host` as `//host`.
        let more = reference.bytes().take_while(|byte| *byte == b'/').count().saturating_sub(2);
        let reference = &reference[more..];
        if reference.is_empty() || reference.starts_with('#') {
            return;
        }
        if reference.len() > MAX_URL_BYTES || has_foreign_scheme(reference) {
            self.refused = self.refused.saturating_add(1);
        } else if self.found.len() >= self.limits.max_references {
            self.truncated = true;
        } else {
            self.found.push((reference.to_owned(), kind));
        }
    }

    /// A word of a script, or the name of its file.
    pub(super) fn note_script(&mut self, word: &str) {
        let hash = self.scripts.unwrap_or(0xcbf2_9ce4_8422_2325);
        let hash = word
            .bytes()
            .fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        self.scripts = Some(hash.rotate_left(5));
    }

    /// Adds what an inline `script` of a type names.
    pub(super) fn add_script(&mut self, declared: &str, script: &str) {
        if declared.trim().eq_ignore_ascii_case("importmap") {
            let mut imports = std::mem::take(&mut self.imports);
            imports.read(script, self);
            self.imports = imports;
        } else if let Some(source) = Source::of_type(declared) {
            script::collect(script, source, None, self);
        }
    }

    /// Adds what a style sheet, a `style` element or a `style` attribute refers to.
    pub(super) fn add_css(&mut self, css: &str) {
        let too_deep = css_references(css, &mut |url| self.add(url, LinkKind::Embed));
        self.truncated |= too_deep;
    }

    /// Adds the pages that a feed announces, and the page that it belongs to.
    pub(super) fn add_feed_entries(&mut self, feed: Feed) {
        self.refused = self.refused.saturating_add(feed.refused);
        self.truncated |= feed.truncated;
        let entries = feed.entries.into_iter().map(|entry| entry.url);
        for url in feed.home.into_iter().chain(feed.next).chain(entries) {
            self.add(url.as_str(), LinkKind::Page);
        }
    }

    /// Adds the pages and further sitemaps that a sitemap lists.
    pub(super) fn add_sitemap_entries(&mut self, sitemap: Sitemap) {
        self.refused = self.refused.saturating_add(sitemap.refused);
        self.truncated |= sitemap.truncated;
        for entry in sitemap.sitemaps.into_iter().chain(sitemap.entries) {
            self.add(entry.url.as_str(), LinkKind::Page);
        }
    }

    /// Only the first `base` of a page counts, for all references.
    pub(super) fn set_base(&mut self, href: &str) {
        self.base.get_or_insert_with(|| href.to_owned());
    }

    pub(super) fn add_feed(&mut self, href: &str) {
        if self.feeds.len() < self.limits.max_links {
            self.feeds.push(href.to_owned());
        }
    }

    pub(super) fn set_canonical(&mut self, href: &str) {
        self.canonical.get_or_insert_with(|| href.to_owned());
    }

    pub(super) fn has_title(&self) -> bool {
        self.title.is_some()
    }

    /// Only the first title that is not blank counts.
    pub(super) fn set_title(&mut self, title: &str) {
        let title: String = folded(title).chars().take(self.limits.max_title_chars).collect();
        if self.title.is_none() && !title.is_empty() {
            self.title = Some(title);
        }
    }

    /// Resolves what was found. `encoding` is the page's: browsers write the query of a URL in it.
    pub(super) fn resolve(self, url: &CanonicalUrl, encoding: &'static Encoding) -> PageLinks {
        let join = |base: &CanonicalUrl, reference: &str| join(base, reference, encoding);
        let base = self.base.and_then(|href| join(url, &href)).unwrap_or_else(|| url.clone());
        let mut refused = self.refused;
        let mut links = Vec::new();
        let mut room = self.limits.max_link_bytes;
        let mut too_many = false;
        for (reference, kind) in self.found {
            match join(&base, &reference) {
                Some(target) if target == *url => {}
                Some(url) => match room.checked_sub(url.as_str().len()) {
                    Some(left) => {
                        room = left;
                        links.push(Link { url, kind });
                    }
                    None => too_many = true,
                },
                None => refused = refused.saturating_add(1),
            }
            if too_many {
                break;
            }
        }
        let mut links = each_once(links);
        too_many |= links.len() > self.limits.max_links;
        links.truncate(self.limits.max_links);
        let mut feeds: Vec<CanonicalUrl> = Vec::new();
        for feed in self.feeds.iter().filter_map(|href| join(&base, href)) {
            if !feeds.contains(&feed) && feeds.len() < MAX_FEEDS {
                feeds.push(feed);
            }
        }
        PageLinks {
            links,
            title: self.title,
            robots: self.robots,
            feeds,
            canonical: self.canonical.and_then(|href| join(&base, &href)),
            scripts: self.scripts,
            refused,
            truncated: self.truncated || too_many,
            base,
        }
    }
}

/// The most feeds of one page.
const MAX_FEEDS: usize = 50;

/// White space and control characters around a URL, which browsers strip.
fn is_url_space(c: char) -> bool {
    c <= ' '
}

/// Whether a reference has a scheme other than http and https. Checked early, so that large `data:`
/// URLs are not held in memory.
fn has_foreign_scheme(reference: &str) -> bool {
    let Some((scheme, _)) = reference.split_once(':') else { return false };
    let mut chars = scheme.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic())
        && chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
        && !scheme.eq_ignore_ascii_case("http")
        && !scheme.eq_ignore_ascii_case("https")
}

/// Words with one space between them.
fn folded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

fn join(base: &CanonicalUrl, reference: &str, encoding: &'static Encoding) -> Option<CanonicalUrl> {
    let encoding = encoding.output_encoding();
    if encoding == UTF_8 || reference.is_ascii() {
        return base.join(reference).ok();
    }
    let url = Url::options()
        .base_url(Some(base.as_url()))
        .encoding_override(Some(&|query| Cow::Owned(encode_query(query, encoding))))
        .parse(reference)
        .ok()?;
    CanonicalUrl::parse(url.as_str()).ok()
}

/// The query in the page's encoding. By the URL standard, a character that it lacks becomes a
/// decimal reference, percent-encoded.
fn encode_query(query: &str, encoding: &'static Encoding) -> Vec<u8> {
    let mut encoder = encoding.new_encoder();
    let mut out = Vec::new();
    let mut rest = query;
    loop {
        let room = encoder
            .max_buffer_length_from_utf8_without_replacement(rest.len())
            .unwrap_or(rest.len() * 4);
        out.reserve(room);
        let (result, read) =
            encoder.encode_from_utf8_to_vec_without_replacement(rest, &mut out, true);
        rest = &rest[read..];
        match result {
            EncoderResult::InputEmpty => return out,
            EncoderResult::OutputFull => {}
            EncoderResult::Unmappable(c) => {
                out.extend_from_slice(format!("%26%23{}%3B", u32::from(c)).as_bytes());
            }
        }
    }
}

/// Each URL once, at its first position; if it is embedded anywhere, it counts as embedded.
fn each_once(links: Vec<Link>) -> Vec<Link> {
    let mut by_url: Vec<usize> = (0..links.len()).collect();
    by_url.sort_unstable_by(|a, b| links[*a].url.cmp(&links[*b].url).then(a.cmp(b)));
    let mut kinds: Vec<Option<LinkKind>> = vec![None; links.len()];
    for same in by_url.chunk_by(|a, b| links[*a].url == links[*b].url) {
        let part = same.iter().map(|at| links[*at].kind).find(|kind| *kind != LinkKind::Page);
        kinds[same[0]] = Some(part.unwrap_or(LinkKind::Page));
    }
    let once = |(link, kind): (Link, Option<LinkKind>)| Some(Link { url: link.url, kind: kind? });
    links.into_iter().zip(kinds).filter_map(once).collect()
}
