//! Lists of video parts: HLS (`.m3u8`) and DASH (`.mpd`), and style sheets that XML names.

use std::ops::Range;

use super::{edits::Edits, entities, links::Links};
use crate::modifier::Modifier;

/// Rewrites an HLS playlist: lines that are addresses, and `URI="…"` in tags. `None` if nothing
/// changes.
pub(crate) fn hls(text: &[u8], links: &Links) -> Option<Vec<u8>> {
    let mut edits = Edits::default();
    let mut at = 0;
    for line in text.split_inclusive(|b| *b == b'\n') {
        let trimmed = line.trim_ascii();
        let range = if trimmed.starts_with(b"#") {
            memchr::memmem::find(line, b"URI=\"").and_then(|start| {
                let start = start + 5;
                let length = memchr::memchr(b'"', &line[start..])?;
                Some(at + start..at + start + length)
            })
        } else {
            let start = at + line.iter().take_while(|b| b.is_ascii_whitespace()).count();
            (!trimmed.is_empty()).then(|| start..start + trimmed.len())
        };
        if let Some(range) = range {
            replace(text, range, links, Modifier::Object, &mut edits);
        }
        at += line.len();
    }
    (!edits.is_empty()).then(|| edits.apply(text))
}

/// Attributes and elements of DASH with addresses.
const DASH_ATTRIBUTES: [&[u8]; 5] =
    [b"media", b"initialization", b"sourceURL", b"index", b"xlink:href"];
const DASH_ELEMENTS: [&[u8]; 2] = [b"BaseURL", b"Location"];

/// Rewrites a DASH manifest. `None` if nothing changes.
pub(crate) fn dash(text: &[u8], links: &Links) -> Option<Vec<u8>> {
    let mut edits = Edits::default();
    for tag in tags(text) {
        let name = &text[tag.name.clone()];
        for (attribute, value) in attributes(text, tag.name.end..tag.end) {
            if DASH_ATTRIBUTES.contains(&&text[attribute]) {
                replace(text, value, links, Modifier::Object, &mut edits);
            }
        }
        let local = name.rsplit(|b| *b == b':').next().unwrap_or(name);
        if DASH_ELEMENTS.contains(&local) && tag.end < text.len() {
            let start = tag.end + 1;
            let length = memchr::memchr(b'<', &text[start..]).unwrap_or(0);
            replace(text, start..start + length, links, Modifier::Object, &mut edits);
        }
    }
    (!edits.is_empty()).then(|| edits.apply(text))
}

/// Rewrites the `xml-stylesheet` instructions in front of an XML document. `None` if there is none
/// to change.
pub(crate) fn xml_stylesheets(text: &[u8], links: &Links) -> Option<Vec<u8>> {
    const INSTRUCTION: &[u8] = b"<?xml-stylesheet";
    let mut edits = Edits::default();
    for start in memchr::memmem::find_iter(text, INSTRUCTION) {
        let start = start + INSTRUCTION.len();
        let Some(length) = memchr::memmem::find(&text[start..], b"?>") else { break };
        for (attribute, value) in attributes(text, start..start + length) {
            if &text[attribute] == b"href" {
                replace(text, value, links, Modifier::Style, &mut edits);
            }
        }
    }
    (!edits.is_empty()).then(|| edits.apply(text))
}

fn replace(text: &[u8], range: Range<usize>, links: &Links, modifier: Modifier, edits: &mut Edits) {
    let decoded = entities::decoded(&text[range.clone()]);
    if let Some(new) = links.rewrite(&decoded, modifier) {
        let is_plain = matches!(decoded, std::borrow::Cow::Borrowed(_));
        edits.replace(range, if is_plain { new } else { entities::encoded(&new) });
    }
}

struct Tag {
    name: Range<usize>,
    /// Where its `>` is.
    end: usize,
}

/// The start tags of an XML document, without those in comments.
fn tags(text: &[u8]) -> Vec<Tag> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(open) = memchr::memchr(b'<', &text[at..]) {
        let start = at + open + 1;
        if text[start..].starts_with(b"!--") {
            let Some(end) = memchr::memmem::find(&text[start..], b"-->") else { break };
            at = start + end;
            continue;
        }
        let Some(length) = memchr::memchr(b'>', &text[start..]) else { break };
        let is_name = |b: &&u8| !b.is_ascii_whitespace() && !matches!(b, b'/' | b'>');
        let name = text[start..start + length].iter().take_while(is_name).count();
        found.push(Tag { name: start..start + name, end: start + length });
        at = start + length;
    }
    found
}

/// Names and values of the attributes in a range.
fn attributes(text: &[u8], range: Range<usize>) -> Vec<(Range<usize>, Range<usize>)> {
    let mut found = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let Some(equals) = memchr::memchr(b'=', &text[at..range.end]) else { break };
        let before = text[at..at + equals].trim_ascii_end();
        let name_end = at + before.len();
        let name = before.iter().rev().take_while(|b| !b.is_ascii_whitespace()).count();
        let rest = &text[at + equals + 1..range.end];
        let skipped = rest.iter().take_while(|b| b.is_ascii_whitespace()).count();
        let Some(quote) = rest.get(skipped).filter(|b| matches!(b, b'"' | b'\'')) else { break };
        let start = at + equals + 1 + skipped + 1;
        let Some(length) = memchr::memchr(*quote, &text[start..range.end]) else { break };
        found.push((name_end - name..name_end, start..start + length));
        at = start + length + 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use nenrin_urls::CanonicalUrl;

    fn links() -> Links {
        Links::new(0, Modifier::Page, CanonicalUrl::parse("http://e.com/a/list").unwrap())
    }

    fn text(new: Option<Vec<u8>>) -> String {
        String::from_utf8(new.unwrap()).unwrap().replace("/web/19700101000000", "@")
    }

    #[test]
    fn playlists_of_hls_lead_into_the_archive() {
        let list = b"#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI=\"https://f.org/k?a=1\",IV=0x1\n\
            #EXTINF:9,\npart1.ts\n  https://f.org/part2.ts \n/part3.ts\r\n";
        assert_eq!(
            text(hls(list, &links())),
            "#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI=\"@oe_/https://f.org/k?a=1\",IV=0x1\n\
             #EXTINF:9,\npart1.ts\n  @oe_/https://f.org/part2.ts \n@oe_/http://e.com/part3.ts\r\n"
        );
        assert_eq!(hls(b"#EXTM3U\npart.ts\n", &links()), None);
    }

    #[test]
    fn manifests_of_dash_lead_into_the_archive() {
        let list = b"<MPD xmlns=\"http://schemas/dash\"><!-- <BaseURL>http://x/</BaseURL> -->\
            <BaseURL>http://f.org/v/?a=1&amp;b=2</BaseURL>\
            <SegmentTemplate media='http://f.org/$Number$.m4s' initialization=\"i.mp4\"/></MPD>";
        assert_eq!(
            text(dash(list, &links())),
            "<MPD xmlns=\"http://schemas/dash\"><!-- <BaseURL>http://x/</BaseURL> -->\
             <BaseURL>@oe_/http://f.org/v/?a=1&amp;b=2</BaseURL>\
             <SegmentTemplate media='@oe_/http://f.org/$Number$.m4s' initialization=\"i.mp4\"/></MPD>"
        );
    }

    #[test]
    fn style_sheets_of_xml_lead_into_the_archive() {
        let xml = b"<?xml version='1.0'?><?xml-stylesheet type=\"text/xsl\" href='http://f.org/s.xsl' ?><a href='http://f.org/'/>";
        assert_eq!(
            text(xml_stylesheets(xml, &links())),
            "<?xml version='1.0'?><?xml-stylesheet type=\"text/xsl\" href='@cs_/http://f.org/s.xsl' ?><a href='http://f.org/'/>"
        );
    }
}
