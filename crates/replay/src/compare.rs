//! `/diff/<date>/<date>/<url>`: two versions compared.

use std::collections::BTreeMap;

use axum::{
    body::Body,
    http::{HeaderValue, Response, StatusCode, header},
};
use bytes::Bytes;
use nenrin_extract::{ContentKind, charset, content_kind, decode_content};
use nenrin_urls::{CanonicalUrl, RenderedRecord};
use serde_json::json;

use crate::{
    Archive, Capture, Content, ContentBlock, ReplayError, ReplayOptions,
    answer::FRONT_BYTES,
    ask::Ask,
    choose::Choice,
    date::{Period, Stamp},
    diff::{self, Side},
    head::Head,
    modifier::Modifier,
    origins::Shelf,
    pages::{
        banner,
        diff::{Blocks, Diff, side_by_side},
        missing::refusal,
    },
    rewrite::{self, Links},
    served::{Replay, own_page, plain},
    stage::Stage,
    target,
};

/// The largest bodies that are compared; larger ones are not pages that people read.
const MAX_COMPARED_BYTES: usize = 8 << 20;

enum View {
    Text,
    Sides,
    Rendered(Side),
}

pub(crate) fn answer(replay: &Replay, ask: &Ask) -> Result<Response<Body>, ReplayError> {
    compared(replay, ask, ask.rest("/diff/"), None)
}

/// One of the versions as rendered, on the origin of its server.
pub(crate) fn on_shelf(
    replay: &Replay,
    ask: &Ask,
    shelf: &Shelf,
) -> Result<Response<Body>, ReplayError> {
    compared(replay, ask, ask.rest("/_nenrin/diff/"), Some(shelf))
}

fn compared(
    replay: &Replay,
    ask: &Ask,
    rest: &str,
    shelf: Option<&Shelf>,
) -> Result<Response<Body>, ReplayError> {
    let views = [
        ("side/", View::Sides),
        ("old/", View::Rendered(Side::Old)),
        ("new/", View::Rendered(Side::New)),
    ];
    let (view, rest) = views
        .into_iter()
        .find_map(|(name, view)| rest.strip_prefix(name).map(|rest| (view, rest)))
        .unwrap_or((View::Text, rest));
    let mut parts = rest.splitn(3, '/');
    let (from, to) = (date(parts.next())?, date(parts.next())?);
    let (url, _) = target::archived_url(parts.next().unwrap_or_default())?;
    let find = |period: Period| replay.choose(&url, period.last_s, Modifier::Page);
    let (Some(old), Some(new)) = (find(from)?, find(to)?) else {
        let page = refusal(
            ask,
            ("Nothing to compare", "比較できる版がありません"),
            (
                "No visit has stored a version of this page.",
                "どの訪問でも、このページの版は保存されていません。",
            ),
        );
        return Ok(own_page(replay, StatusCode::NOT_FOUND, &page));
    };
    match (view, shelf) {
        (View::Text, None) => text(replay, ask, &url, &old, &new),
        (View::Sides, None) => {
            let frames = [(Side::Old, &old), (Side::New, &new)].map(|(side, shown)| {
                let dates = format!("{}/{}", Stamp(old.at_s), Stamp(new.at_s));
                let path = format!("diff/{}/{dates}/{url}", side.name());
                match &replay.origins {
                    Some(origins) => {
                        let server = shown.url.server();
                        let shelf = Shelf { at_s: shown.at_s, is_bare: false, server };
                        format!("{}/_nenrin/{path}", origins.of(&shelf))
                    }
                    None => format!("/{path}"),
                }
            });
            let pictures = pictures(replay, &url, &old, &new)?;
            let page = side_by_side(ask, &url, (&old, &new), &frames, pictures.as_ref());
            Ok(own_page(replay, StatusCode::OK, &page))
        }
        (View::Rendered(side), shelf) => {
            let shown = if side == Side::Old { &old } else { &new };
            // An archived page may see only itself.
            if shelf.is_some_and(|shelf| shelf.server != shown.url.server()) {
                return Ok(plain(StatusCode::NOT_FOUND, "not in the archive"));
            }
            rendered(replay, ask, &old, &new, side, shelf.is_some())
        }
        (_, Some(_)) => Ok(plain(StatusCode::NOT_FOUND, "not in the archive")),
    }
}

/// The pictures that renderings of two versions left, if both have one: of the whole page, or else of the window.
fn pictures(
    replay: &Replay,
    url: &CanonicalUrl,
    old: &Capture,
    new: &Capture,
) -> Result<Option<[Capture; 2]>, ReplayError> {
    for kind in [RenderedRecord::Whole, RenderedRecord::View] {
        let Some(record) = kind.of(url) else { continue };
        let of = |shown: &Capture| -> Result<Option<Capture>, ReplayError> {
            let found = replay.choose(&record, shown.at_s, Modifier::Identity)?;
            Ok(found.filter(|found| found.at_s <= shown.at_s))
        };
        if let Some((old, new)) = of(old)?.zip(of(new)?) {
            return Ok(Some([old, new]));
        }
    }
    Ok(None)
}

fn date(text: Option<&str>) -> Result<Period, ReplayError> {
    let text = text.unwrap_or_default();
    Period::parse(text).ok_or_else(|| ReplayError::BadParameter {
        name: "date",
        value: text.chars().take(20).collect(),
        expected: "1 to 14 digits, as in /diff/20240101/20240201/http://example.com/",
    })
}

/// A version's content as text.
struct Readable {
    kind: ContentKind,
    text: String,
}

impl Readable {
    fn is_text(&self) -> bool {
        !matches!(self.kind, ContentKind::Image | ContentKind::Other)
    }

    /// Lines as readers see them; of a text that is not a page, its own lines.
    fn lines(&self) -> Vec<String> {
        match self.kind.is_page() {
            true => diff::lines(&self.text),
            false => self.text.lines().map(str::to_owned).collect(),
        }
    }
}

/// A line of text from two versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// In both.
    Same(String),
    /// In the older one alone.
    Removed(String),
    /// In the newer one alone.
    Added(String),
}

/// What changed between two versions of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageChanges {
    /// The version for the first date.
    pub old: Capture,
    /// The version for the second.
    pub new: Capture,
    /// The text of both, line by line; `None` if one of them is not text.
    pub lines: Option<Vec<Line>>,
    /// Blocks that both have.
    pub blocks_same: usize,
    /// Blocks that the older one alone has.
    pub blocks_removed: usize,
    /// Blocks that the newer one alone has.
    pub blocks_added: usize,
}

impl PageChanges {
    /// For programs; `date` writes a time.
    pub fn as_json(&self, date: fn(i64) -> String) -> serde_json::Value {
        let side = |capture: &Capture| {
            json!({
                "url": capture.url, "at": date(capture.at_s), "version": capture.version,
                "status": capture.status, "mime": capture.mime, "bytes": capture.body_bytes,
            })
        };
        let of = |wanted: fn(&Line) -> Option<&String>| {
            self.lines.as_ref().map(|lines| lines.iter().filter_map(wanted).collect::<Vec<_>>())
        };
        json!({
            "from": side(&self.old), "to": side(&self.new),
            "same": self.old.version == self.new.version,
            "removed": of(|line| if let Line::Removed(text) = line { Some(text) } else { None }),
            "added": of(|line| if let Line::Added(text) = line { Some(text) } else { None }),
            "blocks": {
                "same": self.blocks_same, "removed": self.blocks_removed,
                "added": self.blocks_added,
            },
        })
    }
}

/// Changed lines with some others around them, each with a mark in front, and `@@` between what is apart.
pub fn hunks(lines: &[Line], context: usize) -> Vec<String> {
    let is_change = |line: &Line| !matches!(line, Line::Same(_));
    let mut shown = Vec::new();
    let mut last_shown = None;
    for (number, line) in lines.iter().enumerate() {
        let around = number.saturating_sub(context)..lines.len().min(number + context + 1);
        if !lines[around].iter().any(is_change) {
            continue;
        }
        if number > 0 && last_shown != Some(number - 1) {
            shown.push("@@".to_owned());
        }
        last_shown = Some(number);
        shown.push(match line {
            Line::Same(text) => format!(" {text}"),
            Line::Removed(text) => format!("-{text}"),
            Line::Added(text) => format!("+{text}"),
        });
    }
    shown
}

fn readable(archive: &dyn Archive, capture: &Capture) -> Result<Readable, ReplayError> {
    let content = match is_compared(capture) {
        true => archive.read(capture.version)?,
        false => {
            let head = archive.head(capture.version)?;
            Content { head, body: archive.read_part(capture.version, 0, FRONT_BYTES)? }
        }
    };
    let head = Head::parse(&content.head.response_head);
    let coding = head.get_str("content-encoding");
    let body = decode_content(coding, &content.body, MAX_COMPARED_BYTES).unwrap_or_default();
    let content_type = head.get_str("content-type");
    let kind = content_kind(content_type, &capture.url, &body);
    let mut found = Readable { kind, text: String::new() };
    if found.is_text() && is_compared(capture) {
        found.text = charset(content_type, &body).decode(&body).0.into_owned();
    }
    Ok(found)
}

fn is_compared(capture: &Capture) -> bool {
    capture.body_bytes <= MAX_COMPARED_BYTES as u64
}

/// A version's blocks. A body that is too large to be compared is one, without its bytes.
fn blocks_of(archive: &dyn Archive, capture: &Capture) -> Result<Vec<ContentBlock>, ReplayError> {
    if is_compared(capture) {
        return Ok(archive.blocks(capture.version)?);
    }
    let text = archive.head(capture.version)?.digest;
    let mut digest = [0; 32];
    for (place, byte) in digest.iter_mut().zip(text.bytes().rev()) {
        *place = byte;
    }
    Ok(vec![ContentBlock { digest, bytes: Bytes::new() }])
}

/// What changed between the versions of a page for two dates; `None` where there is no version.
pub fn page_changes(
    archive: &dyn Archive,
    url: &CanonicalUrl,
    from_s: i64,
    to_s: i64,
) -> Result<Option<PageChanges>, ReplayError> {
    let options = &ReplayOptions::default();
    let find = |at_s| Choice { archive, options, url, at_s, modifier: Modifier::Page }.make();
    let (Some(old), Some(new)) = (find(from_s)?, find(to_s)?) else { return Ok(None) };
    let (before, after) = (readable(archive, &old)?, readable(archive, &new)?);
    let lines = (before.is_text() && after.is_text())
        .then(|| changed_lines(&before.lines(), &after.lines()));
    let blocks = blocks(archive, &old, &new)?;
    Ok(Some(PageChanges {
        old,
        new,
        lines,
        blocks_same: blocks.same,
        blocks_removed: blocks.removed.len(),
        blocks_added: blocks.added.len(),
    }))
}

fn changed_lines(old: &[String], new: &[String]) -> Vec<Line> {
    let mut lines = Vec::new();
    for change in diff::compare(old, new) {
        match change {
            diff::Change::Same(range, _) => {
                lines.extend(old[range].iter().cloned().map(Line::Same));
            }
            diff::Change::Changed(removed, added) => {
                lines.extend(old[removed].iter().cloned().map(Line::Removed));
                lines.extend(new[added].iter().cloned().map(Line::Added));
            }
        }
    }
    lines
}

fn text(
    replay: &Replay,
    ask: &Ask,
    url: &CanonicalUrl,
    old: &Capture,
    new: &Capture,
) -> Result<Response<Body>, ReplayError> {
    let archive = &*replay.archive;
    let (before, after) = (readable(archive, old)?, readable(archive, new)?);
    let pictures = pictures(replay, url, old, new)?;
    let diff = Diff {
        ask,
        url,
        old,
        new,
        old_lines: &before.lines(),
        new_lines: &after.lines(),
        blocks: &blocks(archive, old, new)?,
        is_page: before.kind.is_page() && after.kind.is_page(),
        pictures: pictures.as_ref(),
    };
    Ok(own_page(replay, StatusCode::OK, &diff.page()))
}

fn blocks(archive: &dyn Archive, old: &Capture, new: &Capture) -> Result<Blocks, ReplayError> {
    let before = blocks_of(archive, old)?;
    let mut unmatched: BTreeMap<[u8; 32], usize> = BTreeMap::new();
    before.iter().for_each(|block| *unmatched.entry(block.digest).or_default() += 1);
    let mut found = Blocks::default();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    for block in blocks_of(archive, new)? {
        match unmatched.get_mut(&block.digest).filter(|left| **left > 0) {
            Some(left) => {
                *left -= 1;
                found.same += 1;
                found.same_bytes += block.bytes.len();
            }
            None => found.added.push(text(&block.bytes)),
        }
    }
    for block in before {
        if let Some(left) = unmatched.get_mut(&block.digest).filter(|left| **left > 0) {
            *left -= 1;
            found.removed.push(text(&block.bytes));
        }
    }
    Ok(found)
}

/// One of the versions as rendered, with marks. It is converted to UTF-8.
fn rendered(
    replay: &Replay,
    ask: &Ask,
    old: &Capture,
    new: &Capture,
    side: Side,
    is_on_own_origin: bool,
) -> Result<Response<Body>, ReplayError> {
    let archive = &*replay.archive;
    let (before, after) = (readable(archive, old)?, readable(archive, new)?);
    let (shown, html) = match side {
        Side::Old => (old, diff::marked(&before.text, &after.text, side)),
        Side::New => (new, diff::marked(&after.text, &before.text, side)),
    };
    if !(before.kind.is_page() && after.kind.is_page()) {
        let page = refusal(
            ask,
            ("Not a page", "ページではありません"),
            (
                "Only pages can be compared as rendered.",
                "表示を並べて比較できるのはページだけです。",
            ),
        );
        return Ok(own_page(replay, StatusCode::OK, &page));
    }
    let links = Links::new(shown.at_s, Modifier::InFrame, shown.url.clone());
    let (links, stage, home) = match replay.origins.as_ref().filter(|_| is_on_own_origin) {
        Some(origins) => (links.on(origins, false), Stage::Own { is_bare: false }, origins.home()),
        None => (links, Stage::Shared, String::new()),
    };
    // Relative references are relative to where the page is replayed, not to this URL.
    let base = links.to(&shown.url, Modifier::InFrame);
    let added = banner::Added { capture: shown, at_s: shown.at_s, home };
    let head = maud::html! { base href=(base); (maud::PreEscaped(added.script(stage))) };
    let injected = rewrite::html::Injected { head: &head.0, end: "" };
    let body = rewrite::html::rewrite(html.as_bytes(), &links, injected);
    let mut answer = Response::new(Body::from(body));
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    replay.guard.archived(headers, stage, false);
    Ok(answer)
}
