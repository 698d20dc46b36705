//! Recognises the kind of content of a body.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8};
use nenrin_urls::CanonicalUrl;
use serde::{Deserialize, Serialize};

use crate::decoding::{gunzip_file, is_gzip};
use crate::media_type;

/// The kind of content of a body, as far as it decides where links are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ContentKind {
    /// A page that browsers read as HTML, whatever its syntax claims to be.
    Html,
    /// A page sent as XHTML, read as XML as far as possible.
    Xhtml,
    /// A style sheet.
    Css,
    /// A script.
    JavaScript,
    /// JSON that is not a feed.
    Json,
    /// XML of no kind listed below.
    Xml,
    /// A drawing in SVG.
    Svg,
    /// RSS of any version, Atom or JSON Feed.
    Feed,
    /// A sitemap or an index of sitemaps, possibly gzipped.
    Sitemap,
    /// Other text.
    Text,
    /// An image other than SVG.
    Image,
    /// Everything else.
    Other,
}

impl ContentKind {
    /// Whether people read it as a page.
    pub fn is_page(self) -> bool {
        matches!(self, Self::Html | Self::Xhtml)
    }
}

/// How many bytes of a body are read to find its kind.
const SNIFFED_BYTES: usize = 2048;

/// The kind of a body, by its type as sent and, where that is missing or too general, by its first
/// bytes and the end of its URL.
pub fn content_kind(content_type: Option<&str>, url: &CanonicalUrl, body: &[u8]) -> ContentKind {
    let essence = media_type::essence(content_type);
    match by_essence(&essence) {
        Evidence::Is(kind) => kind,
        Evidence::XmlOf(fallback) => sniff_xml(&head(body)).unwrap_or(fallback),
        Evidence::Html => match sniff_xml(&head(body)) {
            // Many servers send feeds and sitemaps as HTML; real pages never have such a root
            // element.
            Some(kind @ (ContentKind::Feed | ContentKind::Sitemap)) => kind,
            _ => ContentKind::Html,
        },
        Evidence::Json if is_json_feed(&head(body)) => ContentKind::Feed,
        Evidence::Json => ContentKind::Json,
        Evidence::Gzip => sniff_gzip(body).unwrap_or(ContentKind::Other),
        Evidence::None => sniff(url, body),
    }
}

enum Evidence {
    Is(ContentKind),
    /// Some XML: the given kind, unless its root element shows another.
    XmlOf(ContentKind),
    Html,
    Json,
    Gzip,
    None,
}

fn by_essence(essence: &str) -> Evidence {
    use ContentKind::{Css, Feed, Image, JavaScript, Other, Svg, Text, Xhtml, Xml};
    match essence {
        ""
        | "application/octet-stream"
        | "application/unknown"
        | "unknown/unknown"
        | "*/*"
        | "text/*"
        | "content/unknown"
        | "application/x-unknown-content-type" => Evidence::None,
        "text/html" => Evidence::Html,
        "application/xhtml+xml" => Evidence::XmlOf(Xhtml),
        "text/css" => Evidence::Is(Css),
        "application/rss+xml" | "application/atom+xml" | "application/feed+json" => {
            Evidence::Is(Feed)
        }
        "image/svg+xml" => Evidence::Is(Svg),
        "text/xml" | "application/xml" => Evidence::XmlOf(Xml),
        "application/json" | "text/json" => Evidence::Json,
        "application/gzip" | "application/x-gzip" => Evidence::Gzip,
        "text/javascript"
        | "application/javascript"
        | "application/x-javascript"
        | "application/ecmascript"
        | "text/ecmascript"
        | "text/jscript"
        | "text/x-javascript"
        | "application/x-ecmascript" => Evidence::Is(JavaScript),
        other if other.ends_with("+xml") => Evidence::XmlOf(Xml),
        other if other.ends_with("+json") => Evidence::Json,
        other if other.starts_with("image/") => Evidence::Is(Image),
        other if other.starts_with("text/") => Evidence::Is(Text),
        other if other.contains('/') => Evidence::Is(Other),
        // Not a media type, such as a bare "html".
        _ => Evidence::None,
    }
}

/// The sniffed part without byte order mark and leading white space.
fn head(body: &[u8]) -> Cow<'_, [u8]> {
    let (encoding, mark_bytes) = Encoding::for_bom(body).unwrap_or((UTF_8, 0));
    let body = &body[mark_bytes..];
    if encoding != UTF_8 {
        // Two bytes for each letter.
        let front = &body[..body.len().min(2 * SNIFFED_BYTES)];
        let (text, _) = encoding.decode_without_bom_handling(front);
        return Cow::Owned(text.trim_start().as_bytes().to_vec());
    }
    Cow::Borrowed(body[..body.len().min(SNIFFED_BYTES)].trim_ascii_start())
}

fn sniff(url: &CanonicalUrl, body: &[u8]) -> ContentKind {
    if is_gzip(body) {
        return sniff_gzip(body).unwrap_or(ContentKind::Other);
    }
    if is_image(body) {
        return ContentKind::Image;
    }
    let head = head(body);
    let head = &*head;
    if head.first() == Some(&b'<')
        && let Some(kind) = sniff_xml(head).or_else(|| sniff_html(head))
    {
        return kind;
    }
    if is_json_feed(head) {
        return ContentKind::Feed;
    }
    if looks_binary(head) { ContentKind::Other } else { by_extension(url) }
}

fn by_extension(url: &CanonicalUrl) -> ContentKind {
    let extension = url.path().rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension.to_ascii_lowercase().as_str() {
        "html" | "htm" | "shtml" => ContentKind::Html,
        "css" => ContentKind::Css,
        "js" | "mjs" => ContentKind::JavaScript,
        "json" => ContentKind::Json,
        _ => ContentKind::Text,
    }
}

fn sniff_gzip(body: &[u8]) -> Option<ContentKind> {
    let (inner, _) = gunzip_file(body, SNIFFED_BYTES);
    sniff_xml(&head(&inner)).filter(|kind| *kind == ContentKind::Sitemap)
}

/// The kind by the XML root element; `None` when it is not a known one.
fn sniff_xml(head: &[u8]) -> Option<ContentKind> {
    let (root, declared) = root_element(head)?;
    let local = root.rsplit(|b| *b == b':').next().unwrap_or(root);
    match local {
        b"urlset" | b"sitemapindex" => Some(ContentKind::Sitemap),
        b"rss" | b"feed" => Some(ContentKind::Feed),
        b"RDF" if contains(head, b"http://purl.org/rss/1.0") => Some(ContentKind::Feed),
        b"RDF" if contains(head, b"http://my.netscape.com/rdf/simple/0.9") => {
            Some(ContentKind::Feed)
        }
        b"svg" => Some(ContentKind::Svg),
        b"html" if declared && contains(head, b"http://www.w3.org/1999/xhtml") => {
            Some(ContentKind::Xhtml)
        }
        _ if declared && !local.eq_ignore_ascii_case(b"html") => Some(ContentKind::Xml),
        _ => None,
    }
}

/// The name of the first element, and whether there is an XML declaration before it.
fn root_element(head: &[u8]) -> Option<(&[u8], bool)> {
    let mut rest = head;
    let mut declared = false;
    loop {
        rest = rest.trim_ascii_start().strip_prefix(b"<")?;
        let end: &[u8] = match rest {
            [b'?', ..] => b"?>",
            [b'!', b'-', b'-', ..] => b"-->",
            [b'!', ..] => b">",
            _ => break,
        };
        declared |= rest.starts_with(b"?xml");
        rest = &rest[memchr::memmem::find(rest, end)? + end.len()..];
    }
    let name = rest
        .iter()
        .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b':' | b'-' | b'_'))
        .count();
    (name > 0).then_some((&rest[..name], declared))
}

/// Recognises the beginning of HTML: WHATWG's list of tags, or any doctype or comment.
fn sniff_html(head: &[u8]) -> Option<ContentKind> {
    const TAGS: [&[u8]; 24] = [
        b"html",
        b"head",
        b"script",
        b"iframe",
        b"h1",
        b"div",
        b"font",
        b"table",
        b"a",
        b"style",
        b"title",
        b"b",
        b"body",
        b"br",
        b"p",
        b"meta",
        b"link",
        b"frameset",
        b"center",
        b"img",
        b"h2",
        b"ul",
        b"span",
        b"base",
    ];
    if head.starts_with(b"<!--") || starts_ignoring_case(head, b"<!doctype html") {
        return Some(ContentKind::Html);
    }
    let (root, _) = root_element(head)?;
    TAGS.iter().any(|tag| root.eq_ignore_ascii_case(tag)).then_some(ContentKind::Html)
}

fn is_json_feed(head: &[u8]) -> bool {
    head.first() == Some(&b'{') && contains(head, b"//jsonfeed.org/version/")
        || head.first() == Some(&b'{') && contains(head, b"\\/\\/jsonfeed.org\\/version\\/")
}

fn is_image(body: &[u8]) -> bool {
    const MAGIC: [&[u8]; 6] =
        [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"BM", b"\0\0\x01\0"];
    MAGIC.iter().any(|magic| body.starts_with(magic))
        || body.starts_with(b"RIFF") && body.get(8..12) == Some(b"WEBP")
        || body.get(4..12) == Some(b"ftypavif")
}

/// Whether there are control characters that no text has (escape belongs to ISO-2022-JP).
fn looks_binary(head: &[u8]) -> bool {
    head.iter().any(|b| matches!(b, 0..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f))
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(text, part).is_some()
}

fn starts_ignoring_case(text: &[u8], start: &[u8]) -> bool {
    text.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    fn kind(content_type: &str, path: &str, body: &[u8]) -> ContentKind {
        let url = CanonicalUrl::parse(&format!("http://example.com/{path}")).unwrap();
        content_kind((!content_type.is_empty()).then_some(content_type), &url, body)
    }

    #[test]
    fn a_clear_type_is_believed() {
        use ContentKind::*;
        for (content_type, expected) in [
            ("text/html; charset=utf-8", Html),
            ("TEXT/HTML", Html),
            ("text/css", Css),
            ("application/x-javascript", JavaScript),
            ("application/ld+json", Json),
            ("application/rss+xml", Feed),
            ("image/svg+xml", Svg),
            ("image/webp", Image),
            ("text/plain", Text),
            ("application/pdf", Other),
        ] {
            assert_eq!(kind(content_type, "x", b"<html>"), expected, "{content_type}");
        }
    }

    #[test]
    fn xml_is_recognised_by_its_root() {
        use ContentKind::*;
        for (body, expected) in [
            ("<?xml version='1.0'?><urlset xmlns='x'>", Sitemap),
            ("\u{feff}<?xml version='1.0'?>\n<!-- made by x -->\n<sitemapindex>", Sitemap),
            ("<?xml version='1.0'?><?xml-stylesheet href='s.xsl'?><rss version='2.0'>", Feed),
            ("<atom:feed xmlns:atom='http://www.w3.org/2005/Atom'>", Feed),
            ("<rdf:RDF xmlns='http://purl.org/rss/1.0/'>", Feed),
            ("<?xml version='1.0'?><rdf:RDF xmlns='http://example.com/'>", Xml),
            ("<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg'/>", Svg),
            ("<?xml version='1.0'?><opml>", Xml),
            (
                "<?xml version='1.0'?><!DOCTYPE html PUBLIC '-//W3C//DTD XHTML 1.0 Strict//EN' \
                 'x'><html xmlns='http://www.w3.org/1999/xhtml'>",
                Xhtml,
            ),
        ] {
            assert_eq!(kind("text/xml", "x", body.as_bytes()), expected, "{body}");
            let marked = format!("\u{feff}{}", body.trim_start_matches('\u{feff}'));
            let little: Vec<u8> = marked.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let big: Vec<u8> = marked.encode_utf16().flat_map(u16::to_be_bytes).collect();
            assert_eq!(kind("text/xml", "x", &little), expected, "UTF-16: {body}");
            assert_eq!(kind("text/xml", "x", &big), expected, "UTF-16: {body}");
        }
        assert_eq!(kind("text/html", "feed", b"<?xml version='1.0'?><rss>"), Feed);
        assert_eq!(kind("text/html", "x", b"<?xml version='1.0'?><html>"), Html);
        assert_eq!(
            kind("application/json", "x", b"{\"version\": \"https://jsonfeed.org/version/1.1\"}"),
            Feed
        );
    }

    #[test]
    fn a_body_without_a_type_is_sniffed() {
        use ContentKind::*;
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let entry = "<url><loc>http://example.com/</loc></url>".repeat(1000);
        write!(gz, "<?xml version='1.0'?><urlset>{entry}</urlset>").unwrap();
        let gz = gz.finish().unwrap();
        let table: [(&str, &[u8], ContentKind); 12] = [
            ("x", b"\n<!DOCTYPE HTML PUBLIC>", Html),
            ("x", b"<HTML><body>", Html),
            ("x", b"<!-- c --><p>x", Html),
            ("x.css", b"body { color: red }", Css),
            ("x.js", b"alert(1)", JavaScript),
            ("x", b"plain words", Text),
            ("x.html", b"plain words", Html),
            ("x", b"\x89PNG\r\n\x1a\n\0\0", Image),
            ("x", b"RIFF\0\0\0\0WEBPVP8 ", Image),
            ("x", b"\0\x01\x02", Other),
            ("sitemap.xml.gz", &gz, Sitemap),
            ("x", b"", Text),
        ];
        for (path, body, expected) in table {
            assert_eq!(kind("", path, body), expected, "{path} {body:?}");
            assert_eq!(kind("application/octet-stream", path, body), expected);
        }
        assert_eq!(kind("application/x-gzip", "sitemap.xml.gz", &gz), Sitemap);
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_kind(body in prop::collection::vec(any::<u8>(), 0..200), t in "\\PC{0,20}") {
            let _ = kind(&t, "x.css", &body);
            let _ = kind("", "x", &body);
        }
    }
}
