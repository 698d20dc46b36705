//! Attributes from which scripts load pictures and frames late. They are not part of HTML, but so
//! many pages use them that whole galleries would be missing without them.

use super::LinkKind::{Embed, Frame};
use super::element::Tag;
use super::references::References;
use super::script::is_part;
use crate::css::css_references;
use crate::srcset::srcset_urls;

/// Attributes of other names are rarely URLs: each word here is one that scripts for late pictures
/// use.
const WORDS: [&str; 20] = [
    "src",
    "srcset",
    "lazy",
    "lazysrc",
    "lazyload",
    "original",
    "bg",
    "bgset",
    "background",
    "poster",
    "image",
    "img",
    "thumb",
    "thumbnail",
    "zoom",
    "retina",
    "full",
    "large",
    "hires",
    "echo",
];

/// Words that are added to those above.
const ADDED: [&str; 14] = [
    "url", "set", "file", "small", "medium", "mobile", "desktop", "webp", "2x", "at2x", "res",
    "hi", "fallback", "flickity",
];

/// The most such attributes of one element. Each is looked for among all others.
const MAX_LATE: usize = 64;

impl References<'_> {
    /// Adds what the `data-` attributes of an element name.
    pub(super) fn add_late(&mut self, element: &str, tag: Tag<'_>) {
        let late = tag.data_names().into_iter().filter(|name| is_late(name));
        for name in late.take(MAX_LATE) {
            if let Some(value) = tag.get(&name) {
                self.add_late_value(element, &name, value.trim());
            }
        }
    }

    fn add_late_value(&mut self, element: &str, name: &str, value: &str) {
        let is_picture =
            matches!(element, "img" | "image" | "amp-img" | "source" | "video" | "audio");
        let max = self.limits.max_srcset_candidates;
        let is_one = !value.contains(char::is_whitespace);
        if value.to_ascii_lowercase().contains("url(") {
            let mut found = Vec::new();
            css_references(value, &mut |url| found.push(url.to_owned()));
            found.iter().for_each(|url| self.add(url, Embed));
        } else if value.starts_with(['{', '[']) {
            self.add_script("application/json", value);
        } else if name.ends_with("set") || value.contains(", ") {
            srcset_urls(value, max).filter(|url| looks_like_url(url)).for_each(|url| {
                self.add(url, Embed);
            });
        } else if element == "iframe" && is_one {
            self.add(value, Frame);
        } else if let Some(parts) = parts_of_list(value) {
            parts.for_each(|url| self.add(url, Embed));
        } else if is_one {
            let is_url = is_part(value)
                || is_picture && is_usual(name)
                || is_background(name) && looks_like_url(value);
            if is_url {
                self.add(value, Embed);
            }
        }
    }
}

/// Whether an attribute is one from which something is loaded late: all of its words say so.
fn is_late(name: &str) -> bool {
    let mut words = name.split('-').skip(1).peekable();
    let mut has_word = false;
    words.peek().is_some()
        && words.all(|word| {
            has_word |= WORDS.contains(&word);
            WORDS.contains(&word) || ADDED.contains(&word)
        })
        && has_word
}

/// Attributes whose value is a URL on pictures, however it looks.
fn is_usual(name: &str) -> bool {
    matches!(name, "data-src" | "data-lazy-src" | "data-original" | "data-lazy" | "data-srcset")
}

fn is_background(name: &str) -> bool {
    name.starts_with("data-bg") || name.contains("background")
}

fn looks_like_url(value: &str) -> bool {
    value.contains('/') || is_part(value)
}

/// The parts of a list without spaces, `a.jpg,b.jpg`: commas in one URL are not between two names of
/// files.
fn parts_of_list(value: &str) -> Option<impl Iterator<Item = &str>> {
    let is_list =
        value.contains(',') && !value.starts_with("data:") && value.split(',').all(is_part);
    is_list.then(|| value.split(','))
}
