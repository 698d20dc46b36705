//! `/diff/<date>/<date>/<url>`: two versions compared.

use std::collections::BTreeMap;

use axum::{
    body::Body,
    http::{HeaderValue, Response, StatusCode, header},
};
use nenrin_extract::{ContentKind, charset, content_kind, decode_content};
use nenrin_urls::CanonicalUrl;

use crate::{
    Capture, ReplayError,
    date::{Period, Stamp},
    diff::{self, Side},
    head::Head,
    modifier::Modifier,
    pages::{
        banner,
        diff::{Blocks, Diff, side_by_side},
        missing::refusal,
    },
    rewrite::{self, Links},
    router::{Ask, Replay, own_page},
    target, web,
};

/// Bodies compared, at most this large; larger ones are no pages that anyone reads.
const MAX_COMPARED_BYTES: usize = 8 << 20;

enum View {
    Text,
    Sides,
    Rendered(Side),
}

pub(crate) fn answer(replay: &Replay, ask: &Ask) -> Result<Response<Body>, ReplayError> {
    let rest = ask.rest("/diff/");
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
    let find = |period: Period| web::choose(replay, &url, period.last_s, Modifier::Page);
    let (Some(old), Some(new)) = (find(from)?, find(to)?) else {
        let page = refusal("Nothing to compare", "No visit has stored a version of this page.");
        return Ok(own_page(replay, StatusCode::NOT_FOUND, &page));
    };
    match view {
        View::Text => text(replay, &url, &old, &new),
        View::Sides => Ok(own_page(replay, StatusCode::OK, &side_by_side(&url, &old, &new))),
        View::Rendered(side) => rendered(replay, &old, &new, side),
    }
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

fn readable(replay: &Replay, capture: &Capture) -> Result<Readable, ReplayError> {
    let content = replay.archive.read(capture.version)?;
    let head = Head::parse(&content.head.response_head);
    let coding = head.get_str("content-encoding");
    let body = decode_content(coding, &content.body, MAX_COMPARED_BYTES).unwrap_or_default();
    let content_type = head.get_str("content-type");
    let kind = content_kind(content_type, &capture.url, &body);
    let is_text = !matches!(kind, ContentKind::Image | ContentKind::Other);
    let text = match is_text {
        true => charset(content_type, &body).decode(&body).0.into_owned(),
        false => String::new(),
    };
    Ok(Readable { kind, text })
}

fn text(
    replay: &Replay,
    url: &CanonicalUrl,
    old: &Capture,
    new: &Capture,
) -> Result<Response<Body>, ReplayError> {
    let lines = |content: &Readable| match content.kind.is_page() {
        true => diff::lines(&content.text),
        false => content.text.lines().map(str::to_owned).collect(),
    };
    let (before, after) = (readable(replay, old)?, readable(replay, new)?);
    let diff = Diff {
        url,
        old,
        new,
        old_lines: &lines(&before),
        new_lines: &lines(&after),
        blocks: &blocks(replay, old, new)?,
        is_page: before.kind.is_page() && after.kind.is_page(),
    };
    Ok(own_page(replay, StatusCode::OK, &diff.page()))
}

fn blocks(replay: &Replay, old: &Capture, new: &Capture) -> Result<Blocks, ReplayError> {
    let before = replay.archive.blocks(old.version)?;
    let mut unmatched: BTreeMap<[u8; 32], usize> = BTreeMap::new();
    before.iter().for_each(|block| *unmatched.entry(block.digest).or_default() += 1);
    let mut found = Blocks::default();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    for block in replay.archive.blocks(new.version)? {
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

/// One of the versions as rendered, with marks. It is text of ours by now, so its encoding is.
fn rendered(
    replay: &Replay,
    old: &Capture,
    new: &Capture,
    side: Side,
) -> Result<Response<Body>, ReplayError> {
    let (before, after) = (readable(replay, old)?, readable(replay, new)?);
    let (shown, html) = match side {
        Side::Old => (old, diff::marked(&before.text, &after.text, side)),
        Side::New => (new, diff::marked(&after.text, &before.text, side)),
    };
    if !(before.kind.is_page() && after.kind.is_page()) {
        let page = refusal("Not a page", "Only pages can be compared as rendered.");
        return Ok(own_page(replay, StatusCode::OK, &page));
    }
    let links = Links::new(shown.at_s, Modifier::InFrame, shown.url.clone());
    // Relative references hold for the place where the page is replayed, not for this one.
    let base = format!(
        "<base href=\"/web/{}if_/{}\">{}",
        Stamp(shown.at_s),
        maud::html! { (shown.url) }.into_string(),
        banner::CLIENT_SCRIPT
    );
    let injected = rewrite::html::Injected { head: &base, end: "" };
    let body = rewrite::html::rewrite(html.as_bytes(), &links, injected);
    let mut answer = Response::new(Body::from(body));
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    replay.guard.archived(headers);
    Ok(answer)
}
