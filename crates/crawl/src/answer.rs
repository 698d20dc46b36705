//! From an exchange to what the machine needs to know of it. Heavy but pure: the driver runs it on
//! a thread.

use nenrin_extract::{
    ContentKind, ExtractLimits, LinkKind, content_kind, decode_content, page_links,
};
use nenrin_fetch::{Exchange, http_date, retry_after};
use nenrin_state::ContentMark;

use crate::{Answer, FetchOrder, FoundLink, LinkRole, Purpose};

/// The most that a body may grow to when its content coding is undone.
const DECODED_MAX_BYTES: usize = 256 << 20;
/// RFC 9309 asks for at least 500 KiB.
const ROBOTS_MAX_BYTES: usize = 512 << 10;

/// Reads an exchange: headers, mark, links.
pub fn read_exchange(order: &FetchOrder, exchange: &Exchange, now_s: i64) -> Answer {
    let content_type = exchange.header("content-type");
    let text = |name: &str| exchange.header(name).map(|value| value.to_string());
    let location = exchange.header("location").and_then(|value| order.url.join(&value).ok());
    let mut answer = Answer {
        status: exchange.status,
        etag: text("etag").filter(|tag| tag.len() <= 256),
        last_modified: text("last-modified").filter(|date| date.len() <= 64),
        last_modified_s: text("last-modified").and_then(|date| http_date::parse(&date)),
        retry_after_s: retry_after(exchange, now_s),
        mime: mime(content_type.as_deref()),
        mark: Some(mark(exchange, location.as_ref().map(|url| url.as_str()))),
        body_bytes: exchange.body.len() as u64,
        location,
        ..Answer::default()
    };
    let good = (200..300).contains(&exchange.status);
    let known =
        answer.mark.is_some() && answer.mark == order.known_mark && order.asks_conditionally();
    if !good || known {
        return answer;
    }
    let encoding = exchange.header("content-encoding");
    match decode_content(encoding.as_deref(), &exchange.body, DECODED_MAX_BYTES) {
        Ok(body) if order.purpose == Purpose::Robots => {
            answer.robots_body = body[..body.len().min(ROBOTS_MAX_BYTES)].to_vec();
        }
        Ok(body) => {
            let kind = content_kind(content_type.as_deref(), &order.url, &body);
            answer.links = links(order, kind, content_type.as_deref(), &body);
        }
        Err(error) => answer.unreadable = Some(error.to_string()),
    }
    answer
}

fn links(
    order: &FetchOrder,
    kind: ContentKind,
    content_type: Option<&str>,
    body: &[u8],
) -> Vec<FoundLink> {
    let found = page_links(&order.url, kind, content_type, body, &ExtractLimits::default());
    if found.robots.nofollow {
        return found.links.into_iter().filter(|l| l.kind == LinkKind::Embed).map(role).collect();
    }
    found.links.into_iter().map(role).collect()
}

fn role(link: nenrin_extract::Link) -> FoundLink {
    let role = match link.kind {
        LinkKind::Page => LinkRole::Page,
        LinkKind::Frame => LinkRole::Frame,
        LinkKind::Embed => LinkRole::Embed,
    };
    FoundLink { url: link.url, role }
}

/// A content type without parameters, as the index keeps it.
pub fn mime(content_type: Option<&str>) -> String {
    let essence = content_type.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
    if essence.is_empty() || essence.len() > 100 || !essence.contains('/') {
        return "application/octet-stream".to_owned();
    }
    essence.to_ascii_lowercase()
}

/// The content's mark: the first half of the body's digest; a redirect is marked by where it leads
/// as well, since its body often is empty.
fn mark(exchange: &Exchange, location: Option<&str>) -> ContentMark {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&exchange.body);
    if let (300..=399, Some(location)) = (exchange.status, location) {
        hasher.update(location.as_bytes());
        hasher.update(&exchange.status.to_le_bytes());
    }
    let mut mark = [0; 16];
    mark.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    ContentMark(mark)
}
