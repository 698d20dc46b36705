//! What each element of HTML and SVG refers to.

use std::borrow::Cow;

use super::LinkKind::{Embed, Frame, Page};
use super::references::References;
use super::refresh::refresh_url;
use super::{LinkKind, html};
use crate::srcset::srcset_urls;

/// The attributes of a start tag, by name in lower case, references decoded.
pub(super) trait Attributes {
    fn get(&self, name: &str) -> Option<Cow<'_, str>>;

    /// The names that begin with `data-`.
    fn data_names(&self) -> Vec<String>;
}

impl References<'_> {
    /// Adds what one start tag refers to. `name` is in lower case, without prefix.
    pub(super) fn add_element(&mut self, name: &str, attributes: &dyn Attributes) {
        let tag = Tag { attributes };
        match name {
            "a" | "area" => self.add_href(tag, Page),
            "base" => tag.with("href", |href| self.set_base(href)),
            "link" => self.add_link(tag),
            "meta" => self.add_meta(tag),
            "img" | "image" | "amp-img" => self.add_image(tag),
            "source" | "video" | "audio" => self.add_media(tag),
            "script" | "use" | "feimage" => {
                if name == "script" {
                    tag.with("src", |src| {
                        self.note_script(src.split('?').next().unwrap_or_default());
                    });
                }
                self.add_attribute(tag, "src", Embed);
                self.add_href(tag, Embed);
            }
            "track" | "embed" | "bgsound" => self.add_attribute(tag, "src", Embed),
            "input" | "button" => self.add_input(tag),
            "iframe" => self.add_iframe(tag),
            "frame" => {
                self.add_attribute(tag, "src", Frame);
                self.add_attribute(tag, "longdesc", Page);
            }
            "form" => self.add_form(tag),
            "object" => self.add_object(tag),
            "applet" => self.add_applet(tag),
            "param" => self.add_param(tag),
            "html" => self.add_attribute(tag, "manifest", Embed),
            "outline" => self.add_outline(tag),
            _ => {}
        }
        self.add_attribute(tag, "background", Embed);
        self.add_late(name, tag);
        tag.with("style", |css| self.add_css(css));
    }

    fn add_attribute(&mut self, tag: Tag<'_>, name: &str, kind: LinkKind) {
        tag.with(name, |value| self.add(value, kind));
    }

    /// `href`, and SVG's older spelling of it.
    fn add_href(&mut self, tag: Tag<'_>, kind: LinkKind) {
        self.add_attribute(tag, "href", kind);
        self.add_attribute(tag, "xlink:href", kind);
    }

    fn add_srcset(&mut self, tag: Tag<'_>, name: &str) {
        let max = self.limits.max_srcset_candidates;
        tag.with(name, |srcset| {
            srcset_urls(srcset, max).for_each(|url| self.add(url, Embed));
        });
    }

    fn add_image(&mut self, tag: Tag<'_>) {
        for name in ["src", "lowsrc", "dynsrc"] {
            self.add_attribute(tag, name, Embed);
        }
        self.add_srcset(tag, "srcset");
        self.add_href(tag, Embed);
        self.add_attribute(tag, "longdesc", Page);
    }

    fn add_media(&mut self, tag: Tag<'_>) {
        for name in ["src", "poster"] {
            self.add_attribute(tag, name, Embed);
        }
        self.add_srcset(tag, "srcset");
    }

    fn add_iframe(&mut self, tag: Tag<'_>) {
        self.add_attribute(tag, "src", Frame);
        tag.with("srcdoc", |document| html::collect_inner(document, self));
    }

    /// A form that is sent by GET leads to a page; one that is sent by POST does not.
    fn add_form(&mut self, tag: Tag<'_>) {
        self.is_get_form = tag.is("method", "get") || !tag.has("method");
        if self.is_get_form {
            self.add_attribute(tag, "action", Page);
        }
    }

    /// A field of a form; a button may lead elsewhere than its form.
    fn add_input(&mut self, tag: Tag<'_>) {
        self.add_attribute(tag, "src", Embed);
        if tag.is("formmethod", "get") || !tag.has("formmethod") && self.is_get_form {
            self.add_attribute(tag, "formaction", Page);
        }
    }

    fn add_object(&mut self, tag: Tag<'_>) {
        tag.with("data", |data| self.add(&tag.in_codebase(data), Embed));
    }

    fn add_applet(&mut self, tag: Tag<'_>) {
        tag.with("archive", |list| {
            for archive in list.split(',') {
                self.add(&tag.in_codebase(archive.trim()), Embed);
            }
        });
        if !tag.has("archive") {
            tag.with("code", |code| self.add(&tag.in_codebase(code), Embed));
        }
    }

    /// The movie of a plug-in.
    fn add_param(&mut self, tag: Tag<'_>) {
        if ["movie", "src", "filename", "url"].iter().any(|name| tag.is("name", name)) {
            self.add_attribute(tag, "value", Embed);
        }
    }

    /// An entry of an outline of feeds (OPML).
    fn add_outline(&mut self, tag: Tag<'_>) {
        self.add_attribute(tag, "xmlurl", Page);
        tag.with("xmlurl", |href| self.add_feed(href));
        self.add_attribute(tag, "htmlurl", Page);
    }

    fn add_meta(&mut self, tag: Tag<'_>) {
        let Some(content) = tag.get("content") else { return };
        if tag.is("http-equiv", "refresh") {
            if let Some(url) = refresh_url(&content) {
                self.add(url, Page);
            }
        } else if tag.is("name", "robots") {
            self.robots.add(&content);
        }
    }

    fn add_link(&mut self, tag: Tag<'_>) {
        let Some(rel) = tag.get("rel") else { return };
        let rel = rel.to_ascii_lowercase();
        if let Some(kind) = link_kind(&rel) {
            self.add_href(tag, kind);
        }
        self.add_srcset(tag, "imagesrcset");
        let has = |word: &str| rel.split_ascii_whitespace().any(|r| r == word);
        if has("canonical") {
            tag.with("href", |href| self.set_canonical(href));
        }
        let offers_feed = has("feed") || has("alternate") && is_feed_type(tag);
        if offers_feed {
            tag.with("href", |href| self.add_feed(href));
        }
    }
}

fn is_feed_type(tag: Tag<'_>) -> bool {
    const TYPES: [&str; 4] = [
        "application/rss+xml",
        "application/atom+xml",
        "application/feed+json",
        "application/rdf+xml",
    ];
    let declared = tag.get("type").unwrap_or_default();
    let essence = declared.split(';').next().unwrap_or_default().trim();
    TYPES.iter().any(|feed| essence.eq_ignore_ascii_case(feed))
}

/// What a `link` relation (in lower case, possibly several words) means. Relations that neither
/// readers nor browsers follow to content (`dns-prefetch`, `pingback`, `hub`, …) are not links.
pub(crate) fn link_kind(rel: &str) -> Option<LinkKind> {
    let mut kind = None;
    for word in rel.split_ascii_whitespace() {
        match word {
            "stylesheet"
            | "icon"
            | "apple-touch-icon"
            | "apple-touch-icon-precomposed"
            | "apple-touch-startup-image"
            | "mask-icon"
            | "fluid-icon"
            | "image_src"
            | "preload"
            | "modulepreload"
            | "manifest"
            | "fontdef"
            | "p3pv1"
            | "import" => {
                return Some(Embed);
            }
            "next"
            | "prev"
            | "previous"
            | "alternate"
            | "canonical"
            | "first"
            | "last"
            | "start"
            | "begin"
            | "end"
            | "up"
            | "top"
            | "contents"
            | "toc"
            | "index"
            | "glossary"
            | "appendix"
            | "chapter"
            | "section"
            | "subsection"
            | "help"
            | "search"
            | "author"
            | "license"
            | "copyright"
            | "bookmark"
            | "archives"
            | "amphtml"
            | "shortlink"
            | "prefetch"
            | "prerender"
            | "feed"
            | "home"
            | "related"
            | "terms-of-service"
            | "privacy-policy"
            | "sitemap"
            | "original"
            | "timemap"
            | "collection"
            | "item"
            | "latest-version"
            | "predecessor-version"
            | "successor-version" => kind = Some(Page),
            _ => {}
        }
    }
    kind
}

/// Shortcuts for reading a tag's attributes.
#[derive(Clone, Copy)]
pub(super) struct Tag<'t> {
    attributes: &'t dyn Attributes,
}

impl<'t> Tag<'t> {
    pub(super) fn get(self, name: &str) -> Option<Cow<'t, str>> {
        self.attributes.get(name)
    }

    pub(super) fn data_names(self) -> Vec<String> {
        self.attributes.data_names()
    }

    fn has(self, name: &str) -> bool {
        self.get(name).is_some()
    }

    fn is(self, name: &str, expected: &str) -> bool {
        self.get(name).is_some_and(|value| value.trim().eq_ignore_ascii_case(expected))
    }

    fn with(self, name: &str, act: impl FnOnce(&str)) {
        if let Some(value) = self.get(name) {
            act(&value);
        }
    }

    /// A reference of an `object` or `applet`, relative to its `codebase` if that is a folder.
    fn in_codebase<'r>(self, reference: &'r str) -> Cow<'r, str> {
        match self.get("codebase") {
            Some(codebase) if !reference.contains(':') && !reference.starts_with('/') => {
                format!("{}/{reference}", codebase.trim_end_matches('/')).into()
            }
            _ => Cow::Borrowed(reference),
        }
    }
}
