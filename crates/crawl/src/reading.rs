//! From an exchange to what the machine needs to know of it. Heavy but pure: the driver runs it on
//! a thread.

use nenrin_extract::{
    ContentKind, ExtractError, ExtractLimits, LinkKind, challenge, compare, content_kind,
    decode_content, feed, fingerprint, page_fragments, page_links, sitemap,
};
use nenrin_fetch::{Exchange, header_fields, http_date, retry_after};
use nenrin_lang::Undecoded;
use nenrin_state::ContentMark;
use nenrin_structure::PageFragments;
use nenrin_urls::CanonicalUrl;

use crate::answer::{Announcement, Answer, FetchOrder, FoundLink, LinkRole, Purpose, SignalKind};

/// The most that a body may grow to when its content coding is undone.
const DECODED_MAX_BYTES: usize = 256 << 20;
/// RFC 9309 asks for at least 500 KiB.
const ROBOTS_MAX_BYTES: usize = 512 << 10;
/// A guard's page is small; no more of an error's body is looked at.
const GUARD_MAX_BYTES: usize = 512 << 10;
/// Larger bodies are not compared: it would take seconds.
const COMPARED_MAX_BYTES: usize = 8 << 20;

/// The body of a page's last version, as it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviousBody {
    /// The response head that came with it.
    pub response_head: Vec<u8>,
    /// The body.
    pub body: Vec<u8>,
}

/// Reads an exchange: headers, mark, links, and how it differs from the version before, which is
/// asked for only where it is needed.
pub fn read_exchange(
    order: &FetchOrder,
    exchange: &Exchange,
    now_s: i64,
    previous: impl FnOnce() -> Option<PreviousBody>,
) -> Answer {
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
        mark: Some(content_mark(
            exchange.status,
            &exchange.body,
            location.as_ref().map(|url| url.as_str()),
        )),
        body_bytes: exchange.body.len() as u64,
        location,
        ..Answer::default()
    };
    let good = (200..300).contains(&exchange.status);
    let same = answer.mark.is_some() && answer.mark == order.known_mark;
    if good && same && order.asks_conditionally() && !order.fingerprint {
        return answer;
    }
    let encoding = exchange.header("content-encoding");
    let max_bytes = if good { DECODED_MAX_BYTES } else { GUARD_MAX_BYTES };
    match decode_content(encoding.as_deref(), &exchange.body, max_bytes) {
        Ok(body) if order.purpose == Purpose::Robots => {
            if good {
                answer.robots_body = body[..body.len().min(ROBOTS_MAX_BYTES)].to_vec();
            }
        }
        Ok(body) => {
            answer.challenge = guard(exchange, &body);
            if good && answer.challenge.is_none() {
                let kind = content_kind(content_type.as_deref(), &order.url, &body);
                read_body(order, kind, content_type.as_deref(), &body, &mut answer);
                if !same {
                    let compared = Compared { order, kind, content_type: content_type.as_deref() };
                    let before = compared.before(previous, &body);
                    answer.comparison = before.as_ref().map(|old| compared.with(old, &body));
                    answer.blocks = order.blocks.then(|| blocks(kind, before.as_deref(), &body));
                }
            }
        }
        Err(error) if good => answer.unreadable = Some(undecoded(&error)),
        Err(_) => {}
    }
    answer
}

fn undecoded(error: &ExtractError) -> Undecoded {
    match error {
        ExtractError::UnknownCoding { coding } => Undecoded::UnknownCoding(coding.clone()),
        &ExtractError::TooManyCodings { count, limit } => {
            Undecoded::TooManyCodings { count: count as u64, limit: limit as u64 }
        }
        ExtractError::Damaged { coding, decoded_bytes, reason } => Undecoded::Damaged {
            coding: (*coding).to_owned(),
            decoded_bytes: *decoded_bytes as u64,
            why: reason.clone(),
        },
        &ExtractError::TooLarge { coding, limit_bytes } => {
            Undecoded::TooLarge { coding: coding.to_owned(), limit_bytes: limit_bytes as u64 }
        }
        &ExtractError::Bomb { coding, coded_bytes, limit_bytes, ratio } => Undecoded::Bomb {
            coding: coding.to_owned(),
            coded_bytes: coded_bytes as u64,
            limit_bytes: limit_bytes as u64,
            ratio: ratio as u64,
        },
    }
}

fn guard(exchange: &Exchange, body: &[u8]) -> Option<String> {
    let fields: Vec<(String, String)> = header_fields(&exchange.response_head)
        .map(|(name, value)| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            (text(name).to_ascii_lowercase(), text(&value))
        })
        .collect();
    let headers: Vec<(&str, &str)> =
        fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    challenge(exchange.status, &headers, body).map(str::to_owned)
}

/// Links, announcements and fingerprint of a good answer.
fn read_body(
    order: &FetchOrder,
    kind: ContentKind,
    content_type: Option<&str>,
    body: &[u8],
    answer: &mut Answer,
) {
    let text_sitemap = order.sitemap && matches!(kind, ContentKind::Text | ContentKind::Other);
    if kind == ContentKind::Sitemap || text_sitemap || order.purpose == Purpose::Sitemap {
        read_sitemap(order, body, answer);
        return;
    }
    if kind == ContentKind::Feed {
        answer.signal = Some(SignalKind::Feed);
        let entries = feed(&order.url, content_type, body).entries.into_iter();
        answer.announced =
            entries.map(|e| Announcement { url: e.url, modified_s: e.modified_s }).collect();
    }
    answer.links = links(order, kind, content_type, body);
    if order.fingerprint && kind.is_page() {
        answer.fingerprint = Some(fingerprint(&order.url, kind, content_type, body));
    }
}

fn read_sitemap(order: &FetchOrder, body: &[u8], answer: &mut Answer) {
    let found = sitemap(&order.url, body);
    if found.entries.is_empty() && found.sitemaps.is_empty() {
        return;
    }
    answer.signal = Some(SignalKind::Sitemap);
    let further = found.sitemaps.into_iter();
    answer.links = further.map(|s| FoundLink { url: s.url, role: LinkRole::Sitemap }).collect();
    for entry in found.entries {
        answer.links.push(FoundLink { url: entry.url.clone(), role: LinkRole::Listed });
        answer.announced.push(Announcement { url: entry.url, modified_s: entry.modified_s });
    }
}

struct Compared<'a> {
    order: &'a FetchOrder,
    kind: ContentKind,
    content_type: Option<&'a str>,
}

impl Compared<'_> {
    /// The body of the version before, if it can be compared with.
    fn before(
        &self,
        previous: impl FnOnce() -> Option<PreviousBody>,
        body: &[u8],
    ) -> Option<Vec<u8>> {
        let opaque = matches!(self.kind, ContentKind::Image | ContentKind::Other);
        if self.order.previous.is_none() || opaque || body.len() > COMPARED_MAX_BYTES {
            return None;
        }
        let before = previous()?;
        let encoding = header_fields(&before.response_head)
            .find(|(name, _)| name.eq_ignore_ascii_case(b"content-encoding"))
            .map(|(_, value)| String::from_utf8_lossy(&value).into_owned());
        let old = decode_content(encoding.as_deref(), &before.body, COMPARED_MAX_BYTES).ok()?;
        Some(old.into_owned())
    }

    fn with(&self, before: &[u8], body: &[u8]) -> Box<nenrin_extract::Comparison> {
        Box::new(compare(self.kind, self.content_type, before, body))
    }
}

/// The blocks that a page may share with others, and those that it lost since the version before.
fn blocks(kind: ContentKind, before: Option<&[u8]>, body: &[u8]) -> PageFragments {
    if !kind.is_page() {
        return PageFragments::default();
    }
    let now = page_fragments(body);
    let lost = |old: &[u8]| page_fragments(old).into_iter().filter(|block| !now.contains(block));
    let lost = before.map(|old| lost(old).collect());
    PageFragments { now, lost }
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

/// Where the links of a stored version lead.
pub fn stored_links(url: &CanonicalUrl, response_head: &[u8], body: &[u8]) -> Vec<CanonicalUrl> {
    let header = |wanted: &[u8]| {
        header_fields(response_head)
            .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
            .map(|(_, value)| String::from_utf8_lossy(&value).into_owned())
    };
    if let Some(to) = header(b"location").and_then(|to| url.join(&to).ok()) {
        return vec![to];
    }
    let encoding = header(b"content-encoding");
    let Ok(body) = decode_content(encoding.as_deref(), body, DECODED_MAX_BYTES) else {
        return Vec::new();
    };
    let content_type = header(b"content-type");
    let kind = content_kind(content_type.as_deref(), url, &body);
    if kind == ContentKind::Sitemap {
        return Vec::new();
    }
    let limits = ExtractLimits::default();
    let found = page_links(url, kind, content_type.as_deref(), &body, &limits);
    let follows =
        |link: &nenrin_extract::Link| !found.robots.nofollow || link.kind == LinkKind::Embed;
    found.links.iter().filter(|link| follows(link)).map(|link| link.url.clone()).collect()
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
pub fn content_mark(status: u16, body: &[u8], location: Option<&str>) -> ContentMark {
    let mut hasher = blake3::Hasher::new();
    hasher.update(body);
    if let (300..=399, Some(location)) = (status, location) {
        hasher.update(location.as_bytes());
        hasher.update(&status.to_le_bytes());
    }
    let mut mark = [0; 16];
    mark.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    ContentMark(mark)
}

#[cfg(test)]
mod tests {
    use std::{net::Ipv4Addr, time::Duration};

    use nenrin_fetch::Protocol;

    use super::*;
    use crate::answer::Ticket;

    fn exchange(body: &str) -> Exchange {
        Exchange {
            status: 200,
            protocol: Protocol::Http11,
            tls: None,
            server_address: Ipv4Addr::LOCALHOST.into(),
            request_head: Vec::new(),
            response_head: b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n".to_vec(),
            body: body.as_bytes().to_vec().into(),
            time_to_head: Duration::ZERO,
            elapsed: Duration::ZERO,
        }
    }

    fn order(previous: Option<u64>, blocks: bool) -> FetchOrder {
        let url = CanonicalUrl::parse("http://e.com/a").unwrap();
        let plain = FetchOrder::plain(Ticket(1), Purpose::Page, url, false);
        FetchOrder { previous, blocks, ..plain }
    }

    fn page(menu: &str, text: &str) -> String {
        let menu: String = (0..20).map(|n| format!("<li>{menu} {n}")).collect();
        format!("<ul>{menu}</ul><p>{text}")
    }

    #[test]
    fn the_blocks_that_a_page_lost_are_told_where_they_are_wanted() {
        let (new, old) = (page("new", "same"), page("old", "same"));
        let before = || {
            let body = old.clone().into_bytes();
            Some(PreviousBody { response_head: Vec::new(), body })
        };
        let read = |order: &FetchOrder| read_exchange(order, &exchange(&new), 0, before).blocks;
        let blocks = read(&order(Some(1), true)).unwrap();
        assert_eq!(blocks.now, page_fragments(new.as_bytes()));
        let lost = blocks.lost.unwrap();
        assert!(
            lost.len() > 2
                && lost.iter().all(|block| page_fragments(old.as_bytes()).contains(block))
        );
        assert!(lost.iter().all(|block| !blocks.now.contains(block)));
        assert_eq!(read(&order(None, true)).unwrap().lost, None, "there was no version before");
        assert_eq!(read(&order(Some(1), false)), None);
    }
}
