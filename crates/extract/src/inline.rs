//! A page as one file: styles, images and fonts become data URLs, scripts are removed, and a policy in
//! the file forbids to load anything else.

use std::cell::RefCell;

use base64::{Engine, engine::general_purpose::STANDARD};
use cssparser::{ParseError, Parser, Token};
use lol_html::html_content::{ContentType, Element, TextChunk};
use lol_html::{HtmlRewriter, MemorySettings, Settings, element, text};
use nenrin_urls::CanonicalUrl;

use crate::charset::charset;
use crate::endless_tag::before_endless_tag;
use crate::entities::{TextContext, decode_entities};

/// The largest part of a page that is put in.
const MAX_PART_BYTES: usize = 16 << 20;
/// What all parts may take together, before they are encoded.
const MAX_PARTS_BYTES: usize = 64 << 20;
const MAX_PARTS: usize = 3_000;
/// Style sheets within style sheets.
const MAX_DEPTH: u8 = 4;
const MAX_PARSER_BYTES: usize = 64 << 20;

/// Nothing is loaded from outside, and nothing runs.
const POLICY: &str = "default-src 'none'; img-src data:; style-src 'unsafe-inline' data:; \
                      font-src data:; media-src data:";

/// A part of a page, as it was received and with content codings undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PagePart {
    /// Its URL, which what it refers to is relative to.
    pub url: CanonicalUrl,
    /// Its `Content-Type`, if it had one.
    pub content_type: Option<String>,
    /// Its content.
    pub body: Vec<u8>,
}

/// A page as one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InlinedPage {
    /// The page, in UTF-8.
    pub html: String,
    /// Parts that were put in.
    pub parts: usize,
    /// Parts that are missing or too large.
    pub missing: usize,
}

/// Makes one file of a page. `find` has the parts that can be put in.
pub fn inlined_page(
    html: &str,
    url: &CanonicalUrl,
    find: &mut dyn FnMut(&CanonicalUrl) -> Option<PagePart>,
) -> InlinedPage {
    let (doctype, rest) = without_doctype(html);
    let mut out = Vec::with_capacity(html.len());
    let inliner = RefCell::new(Inliner {
        base: url.clone(),
        find,
        left_bytes: MAX_PARTS_BYTES,
        parts: 0,
        missing: 0,
        style: String::new(),
    });
    let memory = MemorySettings::new().with_max_allowed_memory_usage(MAX_PARSER_BYTES);
    let settings = Settings::new()
        .with_strict(false)
        .with_memory_settings(memory)
        .append_element_content_handler(element!("*", |element| {
            inliner.borrow_mut().element(element);
            Ok(())
        }))
        .append_element_content_handler(text!("style", |chunk| {
            inliner.borrow_mut().style_text(chunk);
            Ok(())
        }));
    let mut rewriter = HtmlRewriter::new(settings, |bytes: &[u8]| out.extend_from_slice(bytes));
    // What was read before an error is written.
    let _ = rewriter.write(before_endless_tag(rest).as_bytes()).and_then(|()| rewriter.end());
    let inliner = inliner.into_inner();
    let source = url.as_str().replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    let head = format!(
        "{doctype}<meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" \
         content=\"{POLICY}\"><meta name=\"archived-from\" content=\"{source}\">\n"
    );
    InlinedPage {
        html: head + &String::from_utf8_lossy(&out),
        parts: inliner.parts,
        missing: inliner.missing,
    }
}

fn without_doctype(html: &str) -> (&str, &str) {
    let trimmed = html.trim_start();
    let begins = trimmed.get(..9).is_some_and(|start| start.eq_ignore_ascii_case("<!doctype"));
    match trimmed.find('>').filter(|_| begins) {
        Some(end) => trimmed.split_at(end + 1),
        None => ("", html),
    }
}

struct Inliner<'f> {
    base: CanonicalUrl,
    find: &'f mut dyn FnMut(&CanonicalUrl) -> Option<PagePart>,
    left_bytes: usize,
    parts: usize,
    missing: usize,
    style: String,
}

impl Inliner<'_> {
    fn element(&mut self, element: &mut Element<'_, '_>) {
        let name = element.tag_name();
        let value = |element: &Element<'_, '_>, attribute: &str| {
            let value = element.get_attribute(attribute)?;
            Some(decode_entities(&value, TextContext::Attribute).into_owned())
        };
        match name.as_str() {
            "script" | "base" => return element.remove(),
            "meta" if element.has_attribute("charset") || element.has_attribute("http-equiv") => {
                return element.remove();
            }
            "link" => {
                let rel = value(element, "rel").unwrap_or_default().to_ascii_lowercase();
                let is_kept =
                    rel.split_ascii_whitespace().any(|r| matches!(r, "stylesheet" | "icon"));
                if !is_kept {
                    return element.remove();
                }
            }
            _ => {}
        }
        let names: Vec<String> = element.attributes().iter().map(|a| a.name()).collect();
        for attribute in names {
            let Some(text) = value(element, &attribute) else { continue };
            match self.attribute(&name, &attribute, &text) {
                Attribute::Same => {}
                Attribute::Gone => element.remove_attribute(&attribute),
                Attribute::New(text) => {
                    let _ = element.set_attribute(&attribute, &text);
                }
            }
        }
    }

    fn attribute(&mut self, element: &str, name: &str, value: &str) -> Attribute {
        let is_embed = matches!(element, "iframe" | "frame" | "object" | "embed" | "applet");
        match name {
            _ if name.starts_with("on") => Attribute::Gone,
            "integrity" | "nonce" | "crossorigin" | "ping" | "action" | "formaction" | "srcdoc"
            | "manifest" => Attribute::Gone,
            "src" | "data" | "code" if is_embed => Attribute::Gone,
            "src" | "poster" | "background" => self.part(value),
            "srcset" | "imagesrcset" if element == "source" => {
                let first = value.split_ascii_whitespace().next().unwrap_or_default();
                self.part(first.trim_end_matches(','))
            }
            "srcset" | "imagesrcset" => Attribute::Gone,
            "href" if element == "link" => self.part(value),
            "href" | "xlink:href" if matches!(element, "image" | "use" | "feimage") => {
                if value.starts_with('#') { Attribute::Same } else { self.part(value) }
            }
            "href" | "xlink:href" => match self.base.join(value) {
                Ok(_) if value.starts_with('#') => Attribute::Same,
                Ok(url) => Attribute::New(url.to_string()),
                Err(_) if value.trim_start().starts_with("mailto:") => Attribute::Same,
                Err(_) => Attribute::Gone,
            },
            "style" => Attribute::New(self.css(value, &self.base.clone(), 0)),
            _ => Attribute::Same,
        }
    }

    fn part(&mut self, reference: &str) -> Attribute {
        let base = self.base.clone();
        match self.data_url(reference, &base, 0) {
            Some(data) => Attribute::New(data),
            None => Attribute::Gone,
        }
    }

    fn style_text(&mut self, chunk: &mut TextChunk<'_>) {
        self.style.push_str(chunk.as_str());
        if !chunk.last_in_text_node() {
            return chunk.remove();
        }
        let style = std::mem::take(&mut self.style);
        let base = self.base.clone();
        chunk.replace(&self.css(&style, &base, 0), ContentType::Html);
    }

    /// A reference as a data URL; `None` where its part is missing or too much.
    fn data_url(&mut self, reference: &str, base: &CanonicalUrl, depth: u8) -> Option<String> {
        let reference = reference.trim();
        if reference.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("data:")) {
            return Some(reference.to_owned());
        }
        if reference.is_empty() || reference.starts_with('#') {
            return None;
        }
        let part = base.join(reference).ok().filter(|_| self.parts < MAX_PARTS);
        let part = part.and_then(|url| (self.find)(&url));
        let fits = |part: &PagePart| part.body.len() <= MAX_PART_BYTES.min(self.left_bytes);
        let Some(part) = part.filter(fits) else {
            self.missing += 1;
            return None;
        };
        self.left_bytes -= part.body.len();
        self.parts += 1;
        let content_type = part.content_type.as_deref();
        let mime = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        if mime.eq_ignore_ascii_case("text/css") || part.url.path().ends_with(".css") {
            let text = charset(content_type, &part.body).decode(&part.body).0.into_owned();
            let text = if depth < MAX_DEPTH { self.css(&text, &part.url, depth + 1) } else { text };
            let encoded = STANDARD.encode(text);
            return Some(format!("data:text/css;charset=utf-8;base64,{encoded}"));
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/+-.".contains(c);
        let mime = if mime.is_empty() || !mime.chars().all(is_plain) {
            "application/octet-stream"
        } else {
            mime
        };
        Some(format!("data:{mime};base64,{}", STANDARD.encode(&part.body)))
    }

    /// A style sheet with its references as data URLs; what is missing becomes an empty one.
    fn css(&mut self, css: &str, base: &CanonicalUrl, depth: u8) -> String {
        let mut found: Vec<(usize, usize, String)> = Vec::new();
        references(&mut Parser::new(css), (false, 0), &mut found);
        let mut out = String::with_capacity(css.len());
        let mut from = 0;
        for (start, end, reference) in found {
            let data = self.data_url(&reference, base, depth);
            let is_call = css[start..end].trim_start().to_ascii_lowercase().starts_with("url(");
            let data = match data {
                Some(data) => data,
                None if reference.starts_with('#') => continue,
                None => "data:,".to_owned(),
            };
            out.push_str(&css[from..start]);
            out.push_str(&if is_call { format!("url(\"{data}\")") } else { format!("\"{data}\"") });
            from = end;
        }
        out.push_str(&css[from..]);
        out
    }
}

enum Attribute {
    Same,
    Gone,
    New(String),
}

/// The references of a style sheet: first byte, end, and the reference.
fn references(
    parser: &mut Parser<'_>,
    (is_url, depth): (bool, u8),
    found: &mut Vec<(usize, usize, String)>,
) {
    let mut after_import = false;
    loop {
        parser.skip_whitespace();
        let start = parser.position().byte_index();
        let Ok(token) = parser.next().cloned() else { return };
        let end = parser.position().byte_index();
        let was_import = std::mem::take(&mut after_import);
        match token {
            Token::AtKeyword(name) => after_import = name.eq_ignore_ascii_case("import"),
            Token::UnquotedUrl(url) => found.push((start, end, url.to_string())),
            Token::QuotedString(url) if is_url || was_import => {
                found.push((start, end, url.to_string()));
            }
            Token::Function(_)
            | Token::CurlyBracketBlock
            | Token::ParenthesisBlock
            | Token::SquareBracketBlock
                if depth < 32 =>
            {
                let is_url = matches!(&token, Token::Function(name) if ["url", "src", "image-set", "-webkit-image-set"].iter().any(|f| name.eq_ignore_ascii_case(f)));
                let _ = parser.parse_nested_block(|inner| {
                    references(inner, (is_url, depth + 1), found);
                    Ok::<(), ParseError<()>>(())
                });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> CanonicalUrl {
        CanonicalUrl::parse(text).unwrap()
    }

    fn inlined(html: &str) -> InlinedPage {
        let mut find = |wanted: &CanonicalUrl| {
            let (content_type, body) = match wanted.path() {
                "/a.css" => ("text/css", "@import 'b.css'; p{background:url(i.png)}".as_bytes()),
                "/b.css" => ("text/css", b"h1{color:red}".as_slice()),
                "/i.png" => ("image/png", b"PNG".as_slice()),
                _ => return None,
            };
            Some(PagePart {
                url: wanted.clone(),
                content_type: Some(content_type.into()),
                body: body.to_vec(),
            })
        };
        inlined_page(html, &url("http://e.com/x/page"), &mut find)
    }

    #[test]
    fn parts_are_put_in_and_scripts_are_removed() {
        let page = inlined(
            "<!DOCTYPE html><html><head><base href=/><meta charset=shift_jis><script>bad()</script>\
             <link rel=stylesheet href=/a.css integrity=x><link rel=preload href=/z>\
             <style>b{background:url('/i.png')} i{background:url(/none.png)}</style></head>\
             <body onload=bad()><img src=/i.png srcset='/i.png 2x'><img src=/gone.png>\
             <p style=\"background:url(/i.png)\"><a href=../up>u</a><a href='javascript:bad()'>j</a>\
             <iframe src=/frame></iframe></body></html>",
        );
        let html = &page.html;
        assert!(
            html.starts_with("<!DOCTYPE html><meta charset=\"utf-8\"><meta http-equiv"),
            "{html}"
        );
        for gone in [
            "<script",
            "bad()",
            "onload",
            "srcset",
            "<base",
            "preload",
            "shift_jis",
            "/frame",
            "javascript",
            "integrity",
        ] {
            assert!(!html.contains(gone), "{gone} is in {html}");
        }
        assert_eq!(html.matches("data:image/png;base64,UE5H").count(), 3, "{html}");
        assert!(html.contains("href=\"http://e.com/up\""), "{html}");
        let sheet = html.split("base64,").find(|part| part.starts_with("QGltcG9ydCAi")).unwrap();
        let sheet = STANDARD.decode(sheet.split('"').next().unwrap()).unwrap();
        let sheet = String::from_utf8(sheet).unwrap();
        assert!(sheet.contains("url(\"data:image/png;base64,UE5H\")"), "{sheet}");
        assert!(sheet.starts_with("@import \"data:text/css;charset=utf-8;base64,aDF7"), "{sheet}");
        assert_eq!((page.parts, page.missing), (6, 2));
    }

    #[test]
    fn a_style_sheet_that_imports_itself_ends() {
        let mut asked = 0;
        let mut find = |wanted: &CanonicalUrl| {
            asked += 1;
            let body = b"@import '/s.css';@import '/s.css';".to_vec();
            Some(PagePart { url: wanted.clone(), content_type: Some("text/css".into()), body })
        };
        inlined_page("<link rel=stylesheet href=/s.css>", &url("http://e.com/"), &mut find);
        assert!(asked <= 1 + 2 + 4 + 8 + 16, "{asked}");
    }

    proptest::proptest! {
        #[test]
        fn no_page_breaks_it(html in "(<|>|style|img|src=|url\\(|'|\"|@import|\\{|\\}|/a.css|#|\\PC){0,40}") {
            let page = inlined(&html);
            proptest::prop_assert!(!page.html.to_ascii_lowercase().contains("<script"));
        }
    }
}
