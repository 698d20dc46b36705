//! From an exchange to what the machine needs to know of it. Heavy but pure: the driver runs it on
//! a thread.

use std::io::{self, BufRead, BufReader};

use nenrin_extract::{
    ContentKind, ExtractError, ExtractLimits, LinkKind, MAX_SITEMAP_BYTES, PartSelector, challenge,
    charset, compare, content_kind, decode_content, decode_front, feed, fingerprint,
    page_fragments, page_links, sitemap, without_parts,
};
use nenrin_fetch::{Exchange, header_fields, http_date, retry_after};
use nenrin_lang::Undecoded;
use nenrin_state::{ContentMark, Validators};
use nenrin_structure::PageFragments;
use nenrin_urls::CanonicalUrl;

use crate::answer::{Announcement, Answer, FetchOrder, FoundLink, LinkRole, Purpose, SignalKind};

/// The most of a page that is decoded and read for links.
const PAGE_MAX_BYTES: usize = 16 << 20;
/// The most of a sitemap.
const READ_MAX_BYTES: usize = MAX_SITEMAP_BYTES;
/// RFC 9309 asks for at least 500 KiB.
const ROBOTS_MAX_BYTES: usize = 512 << 10;
/// A guard's page is small; no more of an error's body is looked at. As much of every body is looked
/// at to see its kind.
const GUARD_MAX_BYTES: usize = 512 << 10;
/// Larger bodies are not compared: it would take seconds.
pub const COMPARED_MAX_BYTES: usize = 8 << 20;
/// Almost every body grows by at most this factor when it is decoded.
const USUAL_RATIO: usize = 8;
/// What reading takes for each decoded byte: the text, its links, and the version before.
const MEMORY_PER_BYTE: u64 = 5;
/// What reading takes in any case.
const MEMORY_FLOOR_BYTES: u64 = 256 << 10;
/// Almost all pages are smaller.
const LARGE_BYTES: usize = 1 << 20;
/// The type of a page that was decoded.
const DECODED: &str = "text/html; charset=utf-8";
/// About what a link takes beside its URL until its page is committed.
const LINK_BYTES: u64 = 350;

/// How much of a body may be decoded. Memory is reserved for it, so most bodies are tried with
/// little.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appetite(usize);

impl Appetite {
    /// Enough for almost every body of this size.
    pub fn usual(exchange: &Exchange) -> Self {
        let length = usize::try_from(exchange.body.len()).unwrap_or(usize::MAX);
        let decoded = match exchange.header("content-encoding") {
            Some(_) => length.saturating_mul(USUAL_RATIO).max(GUARD_MAX_BYTES),
            None => length,
        };
        Self(decoded.min(READ_MAX_BYTES))
    }

    /// Whether it takes so much that only one such body should be read at a time.
    pub fn is_large(self) -> bool {
        self.0 > LARGE_BYTES
    }

    /// As much as is ever read.
    pub fn full() -> Self {
        Self(READ_MAX_BYTES)
    }

    /// About what reading takes, in bytes.
    pub fn memory_bytes(self) -> u64 {
        self.0 as u64 * MEMORY_PER_BYTE + MEMORY_FLOOR_BYTES
    }
}

impl Answer {
    /// About what the answer takes until its visit is committed, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let links = self.links.iter().map(|link| &link.url);
        let urls = links.chain(self.announced.iter().map(|entry| &entry.url));
        urls.map(|url| url.as_str().len() as u64 + LINK_BYTES).sum()
    }
}

/// The body of a page's last version, as it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviousBody {
    /// The response head that came with it.
    pub response_head: Vec<u8>,
    /// The body.
    pub body: Vec<u8>,
}

/// Reads an exchange: headers, mark, links, and how it differs from the version before, which is
/// asked for only where it is needed. None if more of it would have to be decoded than the appetite
/// allows. Of a body that is larger than is ever read, the front is read, and the answer says so.
///
/// # Errors
/// What reading the body's file says.
pub fn read_exchange(
    order: &FetchOrder,
    exchange: &Exchange,
    now_s: i64,
    Appetite(appetite): Appetite,
    previous: impl FnOnce() -> Option<PreviousBody>,
) -> io::Result<Option<Answer>> {
    let content_type = exchange.header("content-type");
    let content_type = content_type.as_deref();
    let text = |name: &str| exchange.header(name).map(|value| value.to_string());
    let location = exchange.header("location").and_then(|value| order.url.join(&value).ok());
    let mut answer = Answer {
        status: exchange.status,
        with_login: order.with_login,
        validators: Validators {
            etag: text("etag").filter(|tag| tag.len() <= 256),
            last_modified: text("last-modified").filter(|date| date.len() <= 64),
        },
        last_modified_s: text("last-modified").and_then(|date| http_date::parse(&date)),
        retry_after_s: retry_after(exchange, now_s),
        mime: mime(content_type),
        mark: Some(mark_of(
            exchange.status,
            exchange.body.reader(),
            location.as_ref().map(|url| url.as_str()),
        )?),
        body_bytes: exchange.body.len(),
        location,
        ..Answer::default()
    };
    let good = (200..300).contains(&exchange.status);
    let same = answer.mark.is_some() && answer.mark == order.known_mark;
    if good && same && order.asks_conditionally() && !order.fingerprint {
        return Ok(Some(answer));
    }
    let encoding = exchange.header("content-encoding");
    let source = || Box::new(BufReader::new(exchange.body.reader())) as Box<dyn BufRead>;
    let decode =
        |max_bytes| decode_front(encoding.as_deref(), &source, exchange.body.len(), max_bytes);
    if order.purpose == Purpose::Robots {
        match decode(ROBOTS_MAX_BYTES) {
            Ok(front) if good => answer.robots_body = front.bytes,
            Err(error) if good => answer.unreadable = Some(undecoded(&error)),
            Ok(_) | Err(_) => {}
        }
        return Ok(Some(answer));
    }
    let mut front = match decode(GUARD_MAX_BYTES) {
        Ok(front) => front,
        Err(error) => {
            answer.unreadable = good.then(|| undecoded(&error));
            return Ok(Some(answer));
        }
    };
    answer.challenge = guard(exchange, &front.bytes);
    if !good || answer.challenge.is_some() {
        return Ok(Some(answer));
    }
    let kind = content_kind(content_type, &order.url, &front.bytes);
    let most = match kind {
        _ if is_sitemap(order, kind) => READ_MAX_BYTES,
        // Nothing is looked for in it.
        ContentKind::Image | ContentKind::Other => GUARD_MAX_BYTES,
        _ => PAGE_MAX_BYTES,
    };
    if front.cut.is_some() && most > GUARD_MAX_BYTES {
        front = match decode(most.min(appetite)) {
            Ok(front) if front.cut.is_some() && appetite < most => return Ok(None),
            Ok(front) => front,
            Err(error) => {
                answer.unreadable = Some(undecoded(&error));
                return Ok(Some(answer));
            }
        };
        answer.unreadable = front.cut.as_ref().map(undecoded);
    }
    let body = &front.bytes;
    read_body(order, kind, content_type, body, &mut answer);
    if !same && front.cut.is_none() {
        let compared = Compared { order, kind, content_type };
        let before = compared.before(previous, body);
        answer.comparison = before.as_ref().map(|old| compared.with(old, body));
        answer.blocks = order.blocks.then(|| blocks(kind, before.as_deref(), body));
    }
    Ok(Some(answer))
}

fn is_sitemap(order: &FetchOrder, kind: ContentKind) -> bool {
    let text_sitemap = order.sitemap && matches!(kind, ContentKind::Text | ContentKind::Other);
    kind == ContentKind::Sitemap || text_sitemap || order.purpose == Purpose::Sitemap
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
    if is_sitemap(order, kind) {
        read_sitemap(order, body, answer);
        return;
    }
    if kind == ContentKind::Feed {
        answer.signal = Some(SignalKind::Feed);
        let entries = feed(&order.url, content_type, body).entries.into_iter();
        answer.announced =
            entries.map(|e| Announcement { url: e.url, modified_s: e.modified_s }).collect();
    }
    (answer.links, answer.scripts) = links(order, kind, content_type, body);
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
        let parts: Vec<(PartSelector, u32)> = (self.order.ignored.iter())
            .filter_map(|(text, nth)| Some((PartSelector::parse(text).ok()?, *nth)))
            .collect();
        if parts.is_empty() || !self.kind.is_page() {
            return Box::new(compare(self.kind, self.content_type, before, body));
        }
        let rest = |body: &[u8]| {
            let text = charset(self.content_type, body).decode(body).0;
            without_parts(&text, &parts)
        };
        let (before, body) = (rest(before), rest(body));
        Box::new(compare(self.kind, Some(DECODED), before.as_bytes(), body.as_bytes()))
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
) -> (Vec<FoundLink>, Option<u64>) {
    let limits =
        ExtractLimits { likely_script_urls: order.likely_urls, ..ExtractLimits::default() };
    let found = page_links(&order.url, kind, content_type, body, &limits);
    let nofollow = found.robots.nofollow;
    let follows = |link: &nenrin_extract::Link| !nofollow || link.kind == LinkKind::Embed;
    (found.links.into_iter().filter(follows).map(role).collect(), found.scripts)
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
    let Ok(body) = decode_content(encoding.as_deref(), body, PAGE_MAX_BYTES) else {
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
    finish_mark(hasher, status, location)
}

/// The same as [`content_mark`], of a body that is read from a file or a buffer.
fn mark_of(
    status: u16,
    mut body: impl io::Read,
    location: Option<&str>,
) -> io::Result<ContentMark> {
    let mut hasher = blake3::Hasher::new();
    io::copy(&mut body, &mut hasher)?;
    Ok(finish_mark(hasher, status, location))
}

fn finish_mark(mut hasher: blake3::Hasher, status: u16, location: Option<&str>) -> ContentMark {
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
    use std::{io::Write, net::Ipv4Addr, time::Duration};

    use flate2::write::GzEncoder;
    use nenrin_fetch::{AddressPolicy, Protocol};
    use nenrin_state::VersionId;

    use super::*;
    use crate::answer::Ticket;

    fn exchange(body: &str) -> Exchange {
        Exchange {
            status: 200,
            protocol: Protocol::Http11,
            tls: None,
            server_address: Some(Ipv4Addr::LOCALHOST.into()),
            request_head: Vec::new(),
            response_head: b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n".to_vec(),
            body: body.as_bytes().to_vec().into(),
            time_to_head: Duration::ZERO,
            elapsed: Duration::ZERO,
        }
    }

    fn order(previous: Option<VersionId>, blocks: bool) -> FetchOrder {
        let url = CanonicalUrl::parse("http://e.com/a").unwrap();
        let plain = FetchOrder::plain(Ticket(1), Purpose::Page, url, AddressPolicy::Public);
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
        let read = |order: &FetchOrder| {
            read_exchange(order, &exchange(&new), 0, Appetite::full(), before)
                .unwrap()
                .unwrap()
                .blocks
        };
        let blocks = read(&order(Some(VersionId(1)), true)).unwrap();
        assert_eq!(blocks.now, page_fragments(new.as_bytes()));
        let lost = blocks.lost.unwrap();
        assert!(
            lost.len() > 2
                && lost.iter().all(|block| page_fragments(old.as_bytes()).contains(block))
        );
        assert!(lost.iter().all(|block| !blocks.now.contains(block)));
        assert_eq!(read(&order(None, true)).unwrap().lost, None, "there was no version before");
        assert_eq!(read(&order(Some(VersionId(1)), false)), None);
    }

    fn coded(content_type: &str, body: &str) -> Exchange {
        let mut gzip = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(body.as_bytes()).unwrap();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Encoding: gzip\r\n\r\n"
        );
        let body = gzip.finish().unwrap().into();
        Exchange { response_head: head.into_bytes(), body, ..exchange("") }
    }

    #[test]
    fn a_body_that_grows_much_is_read_again_with_more_memory_and_at_most_in_part() {
        let line = |n: usize| format!("<p>{n}{}", " ".repeat(200));
        let lines: String = (0..PAGE_MAX_BYTES / 200).map(line).collect();
        let exchange = coded("text/html", &format!("<a href=/b>{lines}<a href=/c>"));
        let order = order(None, false);
        let usual = Appetite::usual(&exchange);
        assert!(usual.memory_bytes() < 60 << 20, "{usual:?}");
        assert_eq!(read_exchange(&order, &exchange, 0, usual, || None).unwrap(), None);
        let read = read_exchange(&order, &exchange, 0, Appetite::full(), || None).unwrap().unwrap();
        let links: Vec<&str> = read.links.iter().map(|link| link.url.as_str()).collect();
        assert_eq!(links, ["http://e.com/b"]);
        let Some(Undecoded::TooLarge { limit_bytes, .. }) = read.unreadable else {
            panic!("{:?}", read.unreadable)
        };
        assert_eq!(limit_bytes, PAGE_MAX_BYTES as u64);
    }

    #[test]
    fn a_robots_txt_is_decoded_to_its_own_limit_only() {
        let rules = "user-agent: *\n".repeat(1 << 20);
        let exchange = coded("text/plain", &rules);
        let order = FetchOrder { purpose: Purpose::Robots, ..order(None, false) };
        let usual = Appetite::usual(&exchange);
        let read = read_exchange(&order, &exchange, 0, usual, || None).unwrap().unwrap();
        assert_eq!(read.robots_body.len(), ROBOTS_MAX_BYTES);
    }
}
