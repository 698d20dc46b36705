//! URLs in pages. `lol_html` reads the page and gives the position of each attribute; only values
//! that change are replaced, so every other byte stays the same.

use std::ops::Range;

use lol_html::{
    AsciiCompatibleEncoding, HtmlRewriter, Settings, element, errors::RewritingError,
    html_content::Element,
};

use nenrin_extract::readable_length;

use super::{
    css, edits::Edits, entities, iso_2022_jp, json, links::Links, parser_memory, refresh, script,
    srcset,
};
use crate::modifier::Modifier;

/// The deepest nesting of documents within documents (`srcdoc`, `noscript`) that is read.
const MAX_DEPTH: u8 = 2;

/// What is inserted into a page.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Injected<'a> {
    /// At the beginning of the head. ASCII, and well-formed XML.
    pub(crate) head: &'a str,
    /// At the end of the document, unless it is a frameset. ASCII.
    pub(crate) end: &'a str,
}

/// Rewrites a page (or an SVG drawing). Works for any encoding that contains ASCII, and for
/// ISO-2022-JP and UTF-16.
pub(crate) fn rewrite(html: &[u8], links: &Links, injected: Injected<'_>) -> Vec<u8> {
    if iso_2022_jp::is_iso_2022_jp(html) {
        let masked = iso_2022_jp::masked(html);
        return iso_2022_jp::unmasked(rewrite_bytes(&masked, links, injected, 0));
    }
    match utf_16(html) {
        Some(utf_16) => {
            let text = utf_16.decode(html);
            utf_16.encode(&rewrite_bytes(text.as_bytes(), links, injected, 0))
        }
        None => rewrite_bytes(html, links, injected, 0),
    }
}

fn rewrite_bytes(html: &[u8], links: &Links, injected: Injected<'_>, depth: u8) -> Vec<u8> {
    let html = &html[..readable_length(html)];
    let mut page = Page {
        html,
        links: links.clone(),
        edits: Edits::default(),
        head: Some(injected.head).filter(|head| !head.is_empty()),
        depth,
        is_based: false,
        has_frameset: false,
    };
    // Everything before an error is rewritten; the policy in the answer's head protects against the
    // rest.
    if let Err(error) = read(html, &mut page) {
        tracing::debug!(%error, "a page could not be read to its end");
    }
    let mut out = page.edits.apply(html);
    if !page.has_frameset {
        out.extend_from_slice(injected.end.as_bytes());
    }
    out
}

fn read(html: &[u8], page: &mut Page<'_>) -> Result<(), RewritingError> {
    // Single-byte, so that any byte is a character: nothing depends on which.
    let encoding = AsciiCompatibleEncoding::new(encoding_rs::WINDOWS_1252)
        .unwrap_or_else(AsciiCompatibleEncoding::utf_8);
    let settings = Settings::new()
        .with_encoding(encoding)
        .with_strict(false)
        .with_memory_settings(parser_memory())
        .append_element_content_handler(element!("*", |element| {
            page.element(element);
            Ok(())
        }));
    let mut rewriter = HtmlRewriter::new(settings, |_: &[u8]| {});
    rewriter.write(html)?;
    rewriter.end()
}

struct Page<'a> {
    html: &'a [u8],
    links: Links,
    edits: Edits,
    /// What still has to be inserted into the head.
    head: Option<&'a str>,
    depth: u8,
    is_based: bool,
    has_frameset: bool,
}

/// An attribute with its positions in the page.
struct Attribute {
    name: String,
    name_at: usize,
    value: Range<usize>,
}

impl Page<'_> {
    fn element(&mut self, element: &Element<'_, '_>) {
        let name = element.tag_name();
        let tag = element.source_location().bytes();
        self.inject_before(&name, tag.start);
        self.has_frameset |= name == "frameset";
        let attributes = attributes(element);
        let about = About::new(&name, &attributes, self.html);
        for attribute in &attributes {
            self.attribute(&name, &about, attribute);
        }
        if name == "head"
            && let Some(head) = self.head.take()
        {
            self.edits.insert(tag.end, head);
        }
        self.content(&name, &about, tag.end);
    }

    /// A page without a head gets it before its first element.
    fn inject_before(&mut self, name: &str, at: usize) {
        if !matches!(name, "html" | "head")
            && let Some(head) = self.head.take()
        {
            self.edits.insert(at, head);
        }
    }

    fn attribute(&mut self, element: &str, about: &About, attribute: &Attribute) {
        match role(element, &attribute.name, about) {
            Role::None => {}
            Role::Url(modifier) => self.url(attribute, modifier),
            Role::Page if self.is_script(attribute) => {
                self.value(attribute, |links, value| script::rewrite_link(value, links));
            }
            Role::Page => self.url(attribute, self.links.page_modifier()),
            Role::Base => self.base(attribute),
            Role::Style => self.value(attribute, |links, value| css::rewrite(value, links)),
            Role::SrcSet => self.value(attribute, |links, value| {
                srcset::rewrite(value, |url| links.rewrite(url, Modifier::Image))
            }),
            Role::Refresh => self.value(attribute, |links, value| {
                let range = refresh::url_range(value)?;
                let new = links.rewrite(&value[range.clone()], links.page_modifier())?;
                Some([&value[..range.start], &new, &value[range.end..]].concat())
            }),
            Role::Document if self.depth < MAX_DEPTH => {
                let depth = self.depth + 1;
                self.value(attribute, |links, value| {
                    Some(rewrite_bytes(value, links, Injected::default(), depth))
                        .filter(|new| new != value)
                });
            }
            Role::Handler => {
                self.value(attribute, |links, value| script::rewrite_handler(value, links));
            }
            // Without an origin a frame could not load its parts.
            Role::Sandbox if self.links.is_on_own_origin() => self.value(attribute, |_, value| {
                Some([value, b" allow-same-origin".as_slice()].concat())
            }),
            Role::CrossOrigin if self.links.is_on_own_origin() => {}
            Role::Sandbox => {}
            Role::Document | Role::Disarm | Role::CrossOrigin => {
                self.edits.insert(attribute.name_at, "data-archived-");
            }
        }
    }

    /// Whether a link runs a script.
    fn is_script(&self, attribute: &Attribute) -> bool {
        let raw = self.html[attribute.value.clone()].trim_ascii_start();
        raw.get(..script::SCHEME.len()).is_some_and(|s| s.eq_ignore_ascii_case(script::SCHEME))
    }

    /// Puts a prefix before a URL. References in its query stay as written.
    fn url(&mut self, attribute: &Attribute, modifier: Modifier) {
        let raw = &self.html[attribute.value.clone()];
        let path_length = raw.iter().position(|b| matches!(b, b'?' | b'#')).unwrap_or(raw.len());
        if memchr::memchr(b'&', &raw[..path_length]).is_none() {
            if let Some(new) = self.links.rewrite(raw, modifier) {
                self.edits.replace(attribute.value.clone(), new);
            }
        } else {
            self.value(attribute, |links, value| links.rewrite(value, modifier));
        }
    }

    /// Replaces a value after decoding its character references.
    fn value(
        &mut self,
        attribute: &Attribute,
        rewrite: impl FnOnce(&Links, &[u8]) -> Option<Vec<u8>>,
    ) {
        let raw = &self.html[attribute.value.clone()];
        let value = entities::decoded(raw);
        if let Some(new) = rewrite(&self.links, &value) {
            let is_plain = matches!(value, std::borrow::Cow::Borrowed(_));
            let new = if is_plain { new } else { entities::encoded(&new) };
            self.edits.replace(attribute.value.clone(), new);
        }
    }

    fn base(&mut self, attribute: &Attribute) {
        let value = entities::decoded(&self.html[attribute.value.clone()]).into_owned();
        self.url(attribute, self.links.page_modifier());
        if !std::mem::replace(&mut self.is_based, true) {
            self.links.set_base(&value);
        }
    }

    /// Rewrites elements whose content is not markup.
    fn content(&mut self, element: &str, about: &About, start: usize) {
        let rewrite: fn(&Links, &[u8], u8) -> Option<Vec<u8>> = match element {
            "style" => |links, css, _| css::rewrite(css, links),
            "script" if about.is_javascript() => |links, text, _| script::rewrite(text, links),
            "script" if about.kind == b"importmap" => |links, map, _| json::import_map(map, links),
            "noscript" | "noframes" if self.depth < MAX_DEPTH => |links, html, depth| {
                Some(rewrite_bytes(html, links, Injected::default(), depth + 1))
                    .filter(|new| new != html)
            },
            _ => return,
        };
        let end = start + raw_text_length(&self.html[start..], element.as_bytes());
        if let Some(new) = rewrite(&self.links, &self.html[start..end], self.depth) {
            self.edits.replace(start..end, new);
        }
    }
}

/// Length of the text up to the end tag of its element.
fn raw_text_length(text: &[u8], element: &[u8]) -> usize {
    let is_end = |at: &usize| {
        text.get(at + 2..at + 2 + element.len()).is_some_and(|n| n.eq_ignore_ascii_case(element))
    };
    memchr::memmem::find_iter(text, b"</").find(is_end).unwrap_or(text.len())
}

fn attributes(element: &Element<'_, '_>) -> Vec<Attribute> {
    let position = |attribute: &lol_html::html_content::Attribute<'_>| {
        Some(Attribute {
            name: attribute.name(),
            name_at: attribute.name_source_location()?.bytes().start,
            value: attribute.value_source_location()?.bytes(),
        })
    };
    element.attributes().iter().filter_map(position).collect()
}

/// What some attributes of an element say about others.
#[derive(Default)]
struct About {
    rel: Vec<u8>,
    destination: Vec<u8>,
    http_equiv: Vec<u8>,
    name: Vec<u8>,
    kind: Vec<u8>,
}

impl About {
    /// Whether a script element is a script and not data.
    fn is_javascript(&self) -> bool {
        let essence = self.kind.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
        let subtype =
            ["text/", "application/"].iter().find_map(|t| essence.strip_prefix(t.as_bytes()));
        matches!(essence, b"" | b"module")
            || subtype.is_some_and(|subtype| {
                subtype.starts_with(b"javascript")
                    || matches!(
                        subtype,
                        b"ecmascript" | b"x-javascript" | b"x-ecmascript" | b"jscript"
                    )
            })
    }

    fn new(element: &str, attributes: &[Attribute], html: &[u8]) -> Self {
        let value = |wanted: &str| {
            let found = attributes.iter().find(|a| a.name == wanted);
            found.map_or(Vec::new(), |a| {
                entities::decoded(&html[a.value.clone()]).trim_ascii().to_ascii_lowercase()
            })
        };
        match element {
            "link" => Self { rel: value("rel"), destination: value("as"), ..Self::default() },
            "meta" => {
                Self { http_equiv: value("http-equiv"), name: value("name"), ..Self::default() }
            }
            "script" => Self { kind: value("type"), ..Self::default() },
            _ => Self::default(),
        }
    }
}

/// What is done with the value of an attribute.
#[derive(Debug, PartialEq, Eq)]
enum Role {
    None,
    /// A part of the page.
    Url(Modifier),
    /// Another page.
    Page,
    Base,
    SrcSet,
    Style,
    Refresh,
    /// A whole page inside an attribute.
    Document,
    /// A script inside an attribute.
    Handler,
    /// What a frame may do.
    Sandbox,
    /// How a part is requested from another server.
    CrossOrigin,
    /// Made ineffective: checksums of bytes that change, policies of the live site, pings.
    Disarm,
}

fn role(element: &str, attribute: &str, about: &About) -> Role {
    match (element, attribute) {
        ("base", "href") => Role::Base,
        ("link", "href") => link_role(about),
        ("a" | "area", "href") => Role::Page,
        ("a", "xlink:href") => Role::Page,
        (_, "href" | "xlink:href") => Role::Url(Modifier::Image),
        ("iframe" | "frame", "src") => Role::Url(Modifier::InFrame),
        ("iframe", "srcdoc") => Role::Document,
        ("iframe", "sandbox") => Role::Sandbox,
        ("script" | "link" | "img" | "audio" | "video", "crossorigin") => Role::CrossOrigin,
        (_, name) if name.starts_with("on") => Role::Handler,
        ("script", "src") => Role::Url(Modifier::Script),
        ("img" | "input", "src") => Role::Url(Modifier::Image),
        (_, "src") | ("object", "data" | "codebase" | "archive") | ("applet", "codebase") => {
            Role::Url(Modifier::Object)
        }
        (_, "poster" | "background" | "lowsrc" | "dynsrc") => Role::Url(Modifier::Image),
        (_, "srcset" | "imagesrcset") => Role::SrcSet,
        (_, "style") => Role::Style,
        (_, "action" | "formaction" | "longdesc" | "cite") => Role::Page,
        ("meta", "content") if about.http_equiv == b"refresh" => Role::Refresh,
        ("meta", "http-equiv") if about.http_equiv.starts_with(b"content-security-policy") => {
            Role::Disarm
        }
        ("meta", "name") if about.name == b"referrer" => Role::Disarm,
        ("html", "manifest") => Role::Disarm,
        // Rules by which the browser would fetch pages in advance, bypassing the policy.
        ("script", "type") if about.kind == b"speculationrules" => Role::Disarm,
        (_, "integrity" | "nonce" | "ping" | "attributionsrc" | "referrerpolicy" | "csp") => {
            Role::Disarm
        }
        _ => Role::None,
    }
}

fn link_role(about: &About) -> Role {
    let is =
        |word: &str| about.rel.split(u8::is_ascii_whitespace).any(|rel| rel == word.as_bytes());
    if is("dns-prefetch") || is("preconnect") {
        Role::Disarm
    } else if is("stylesheet") || about.destination == b"style" {
        Role::Url(Modifier::Style)
    } else if is("icon") || is("apple-touch-icon") || about.destination == b"image" {
        Role::Url(Modifier::Image)
    } else if is("modulepreload") || about.destination == b"script" {
        Role::Url(Modifier::Script)
    } else if is("preload") || is("manifest") || is("prefetch") {
        Role::Url(Modifier::Object)
    } else {
        Role::Page
    }
}

/// UTF-16 with its byte order, if the text begins with its mark or with a tag written so.
fn utf_16(text: &[u8]) -> Option<Utf16> {
    match text {
        [0xff, 0xfe, ..] | [b'<', 0, 1..=255, 0, ..] => Some(Utf16 { is_big_endian: false }),
        [0xfe, 0xff, ..] | [0, b'<', 0, 1..=255, ..] => Some(Utf16 { is_big_endian: true }),
        _ => None,
    }
}

struct Utf16 {
    is_big_endian: bool,
}

impl Utf16 {
    fn decode(&self, text: &[u8]) -> String {
        let units = text.chunks_exact(2).map(|pair| {
            let pair = [pair[0], pair[1]];
            if self.is_big_endian { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) }
        });
        char::decode_utf16(units).map(|c| c.unwrap_or('\u{fffd}')).collect()
    }

    fn encode(&self, text: &[u8]) -> Vec<u8> {
        let to_bytes = if self.is_big_endian { u16::to_be_bytes } else { u16::to_le_bytes };
        String::from_utf8_lossy(text).encode_utf16().flat_map(to_bytes).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nenrin_urls::CanonicalUrl;
    use proptest::prelude::*;

    fn links() -> Links {
        let url = CanonicalUrl::parse("http://e.com/dir/page.html").unwrap();
        Links::new(0, Modifier::Page, url)
    }

    fn rewritten(html: &str) -> String {
        let new = rewrite(html.as_bytes(), &links(), Injected::default());
        String::from_utf8(new).unwrap().replace("/web/19700101000000", "@")
    }

    #[test]
    fn references_of_pages_are_rewritten() {
        for (html, expected) in [
            ("<a href='/x'>", "<a href='@/http://e.com/x'>"),
            ("<A  HREF = /x  class=b >", "<A  HREF = @/http://e.com/x  class=b >"),
            ("<img src=//f.org/a.png>", "<img src=@im_/http://f.org/a.png>"),
            ("<a href=\"/x?a=1&amp;b=2\">", "<a href=\"@/http://e.com/x?a=1&amp;b=2\">"),
            ("<a href=\"http&#58;//f.org/&quot;\">", "<a href=\"@/http://f.org/&quot;\">"),
            ("<img srcset='/a 1x, b 2x'>", "<img srcset='@im_/http://e.com/a 1x, b 2x'>"),
            (
                "<meta http-equiv=Refresh content='0; url=/x'>",
                "<meta http-equiv=Refresh content='0; url=@/http://e.com/x'>",
            ),
            (
                "<p style='a:url(&quot;/x&quot;)'>",
                "<p style='a:url(&quot;@im_/http://e.com/x&quot;)'>",
            ),
            ("<style>a{b:url(/x)}</style>", "<style>a{b:url(@im_/http://e.com/x)}</style>"),
            (
                "<link rel=stylesheet href=/a.css>",
                "<link rel=stylesheet href=@cs_/http://e.com/a.css>",
            ),
            (
                "<link rel='shortcut icon' href=/i>",
                "<link rel='shortcut icon' href=@im_/http://e.com/i>",
            ),
            ("<iframe src=/f></iframe>", "<iframe src=@if_/http://e.com/f></iframe>"),
            ("<form action=/s>", "<form action=@/http://e.com/s>"),
            ("<script src=/s.js></script>", "<script src=@js_/http://e.com/s.js></script>"),
            (
                "<svg><image xlink:href='/a.png'/></svg>",
                "<svg><image xlink:href='@im_/http://e.com/a.png'/></svg>",
            ),
            (
                "<noscript><img src=/x></noscript>",
                "<noscript><img src=@im_/http://e.com/x></noscript>",
            ),
            (
                "<iframe srcdoc='<img src=\"/x\">'></iframe>",
                "<iframe srcdoc='<img src=\"@im_/http://e.com/x\">'></iframe>",
            ),
            (
                "<script type=module>import '/m.js'</script>",
                "<script type=module>import '@js_/http://e.com/m.js'</script>",
            ),
            (
                "<script>import('/m.js')</script>",
                "<script>import('@js_/http://e.com/m.js')</script>",
            ),
            (
                "<script type=importmap>{\"imports\":{\"a\":\"/a.js\"}}</script>",
                "<script type=importmap>{\"imports\":{\"a\":\"@js_/http://e.com/a.js\"}}</script>",
            ),
            (
                "<base href='http://f.org/d/'><a href=/x>",
                "<base href='@/http://f.org/d/'><a href=@/http://f.org/x>",
            ),
        ] {
            assert_eq!(rewritten(html), expected, "{html}");
        }
    }

    #[test]
    fn what_would_stop_or_betray_the_replay_is_disarmed() {
        for (html, expected) in [
            (
                "<script integrity=a nonce=b>",
                "<script data-archived-integrity=a data-archived-nonce=b>",
            ),
            (
                "<meta http-equiv='Content-Security-Policy' content=x>",
                "<meta data-archived-http-equiv='Content-Security-Policy' content=x>",
            ),
            (
                "<link rel=preconnect href=//f.org>",
                "<link rel=preconnect data-archived-href=//f.org>",
            ),
            ("<script type=speculationrules>", "<script data-archived-type=speculationrules>"),
            ("<a ping=//f.org/ href=x>", "<a data-archived-ping=//f.org/ href=x>"),
        ] {
            assert_eq!(rewritten(html), expected);
        }
    }

    #[test]
    fn a_page_without_references_out_keeps_every_byte() {
        let html =
            b"<!DOCTYPE html>\r\n<HTML><body  bgcolor=red ><a href='x' >\x93\xfa</A\n>&copy<br/>";
        assert_eq!(rewrite(html, &links(), Injected::default()), html);
    }

    #[test]
    fn iso_2022_jp_keeps_its_bytes_around_what_changes() {
        let html = b"<a title=\"\x1b$B<\"F|\x1b(B\" href=\"/x\">\x1b$B\"<a\x1b(B</a>";
        let new = rewrite(html, &links(), Injected::default());
        let expected = b"<a title=\"\x1b$B<\"F|\x1b(B\" href=\"/web/19700101000000/http://e.com/x\">\x1b$B\"<a\x1b(B</a>";
        assert_eq!(new, expected);
    }

    #[test]
    fn utf_16_stays_utf_16() {
        let encode = |text: &str| -> Vec<u8> {
            "\u{feff}"
                .chars()
                .chain(text.chars())
                .collect::<String>()
                .encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect()
        };
        let new = rewrite(&encode("<a href='/x'>日本</a>"), &links(), Injected::default());
        assert_eq!(new, encode("<a href='/web/19700101000000/http://e.com/x'>日本</a>"));
    }

    #[test]
    fn utf_16_needs_no_mark() {
        let encode = |text: &str, to_bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
            text.encode_utf16().flat_map(to_bytes).collect()
        };
        for to_bytes in [u16::to_le_bytes, u16::to_be_bytes] {
            let new = rewrite(&encode("<a href='/x'>日", to_bytes), &links(), Injected::default());
            assert_eq!(new, encode("<a href='/web/19700101000000/http://e.com/x'>日", to_bytes));
        }
    }

    #[test]
    fn a_base_without_a_path_is_the_root() {
        for (base, reference, expected) in [
            ("http://b.example", "img/x.gif", "@/http://b.example/"),
            ("http://b.example?q", "img/x.gif", "@/http://b.example/?q"),
            ("//b.example", "img/x.gif", "@/http://b.example/"),
            ("http://b.example/..", "img/x.gif", "@/http://b.example/"),
            ("/..", "x", "@/http://e.com/"),
        ] {
            let html = rewritten(&format!("<base href='{base}'><img src='{reference}'>"));
            assert_eq!(html, format!("<base href='{expected}'><img src='{reference}'>"));
        }
    }

    #[test]
    fn handlers_are_scripts() {
        for (html, expected) in [
            (
                "<a onclick='location=\"x\"; return false'>",
                "<a onclick='__nenrin_location=\"x\"; return false'>",
            ),
            ("<a onclick='top.f()'>", "<a onclick='__nenrin_top.f()'>"),
            ("<a href=' JavaScript:f(location)'>", "<a href=' JavaScript:f(__nenrin_location)'>"),
            ("<a href='javascript:void 0'>", "<a href='javascript:void 0'>"),
            (
                "<a onclick='this is not a script location'>",
                "<a onclick='this is not a script location'>",
            ),
            ("<script>a = location.href</script>", "<script>a = __nenrin_location.href</script>"),
            (
                "<script type=text/x-template>location</script>",
                "<script type=text/x-template>location</script>",
            ),
            (
                "<script><!--\na = location\n//--></script>",
                "<script><!--\na = __nenrin_location\n//--></script>",
            ),
        ] {
            assert_eq!(rewritten(html), expected);
        }
    }

    #[test]
    fn insertions_are_in_the_head_and_at_the_end() {
        let injected = Injected { head: "<i>", end: "<b>" };
        let new =
            |html: &str| String::from_utf8(rewrite(html.as_bytes(), &links(), injected)).unwrap();
        assert_eq!(new("<html><head a=b><title>"), "<html><head a=b><i><title><b>");
        assert_eq!(new("<!doctype html><p>x"), "<!doctype html><i><p>x<b>");
        assert_eq!(new("text"), "text<b>");
        assert_eq!(new("<head><frameset></frameset>"), "<head><i><frameset></frameset>");
    }

    proptest! {
        #[test]
        fn any_bytes_are_rewritten_without_harm(html in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = rewrite(&html, &links(), Injected::default());
        }

        #[test]
        fn any_markup_is_rewritten_without_harm(html in "(<|>|a|style|/|href=|'|\"|&#x|&amp;|noscript| |url\\()*") {
            let _ = rewrite(html.as_bytes(), &links(), Injected { head: "<i>", end: "<b>" });
        }
    }
}
