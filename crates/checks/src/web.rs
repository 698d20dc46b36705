//! What servers send.

use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use nenrin_crawl::{Appetite, FetchOrder, Purpose, Ticket, read_exchange};
use nenrin_extract::{
    ContentKind, ExtractLimits, MAX_ENTRIES, NoisyParts, challenge, compare, content_kind,
    decode_content, fingerprint, link_header, page_fragments, page_links, visible_text,
    x_robots_tag,
};
use nenrin_fetch::{
    AddressPolicy, Exchange, Protocol, RobotsRules, header_fields, http_date, retry_after,
};
use nenrin_urls::{CanonicalUrl, MAX_URL_BYTES, Scope, shown_text};
use nenrin_warc::{HttpResponse, archived_head, split_message};

use crate::chosen;

/// No decoded body in these checks is larger.
const DECODED_MAX_BYTES: usize = 1 << 20;

fn page() -> CanonicalUrl {
    CanonicalUrl::parse("http://example.com/a/b?c=d").expect("a URL")
}

/// An address is written in one way only, and what is made of it fits.
pub(crate) fn url(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = (shown_text(&text), CanonicalUrl::parse_typed(&text));
    for found in [CanonicalUrl::parse(&text), page().join(&text)] {
        let Ok(url) = found else { continue };
        assert!(url.as_str().len() <= MAX_URL_BYTES && url.as_str().is_ascii(), "{url}");
        assert!(matches!(url.scheme(), "http" | "https"), "{url}");
        assert!(!url.as_str().contains(['#', ' ', '\n', '\r', '\0']), "{url}");
        let again = CanonicalUrl::parse(url.as_str()).expect("what was written is read");
        assert_eq!(again, url);
        assert_eq!(again.key(), url.key());
        let of_server = url.server().url(url.path_and_query()).expect("a path of its server");
        assert_eq!(of_server, url);
        assert!(Scope::Host.contains(std::slice::from_ref(&url), &url));
        let _ = (url.shown(), url.shown_host(), url.index_file(), url.is_on_private_network());
    }
}

/// A head is taken apart without a loss, and its dates are dates.
pub(crate) fn http_head(bytes: &[u8]) {
    let (head, body) = split_message(bytes);
    assert_eq!([head, body].concat(), bytes);
    if let Some(response) = HttpResponse::parse(bytes) {
        let written = archived_head(&response.head, response.body.len());
        assert!(written.len() >= response.head.len());
    }
    let mut fields = Vec::new();
    for (name, value) in header_fields(bytes) {
        assert!(!name.contains(&b'\n') && !value.contains(&b'\n'));
        let text = String::from_utf8_lossy(&value).into_owned();
        let _ = (link_header(&page(), &text), x_robots_tag(&text, "nenrin"));
        if let Some(at_s) = http_date::parse(&text) {
            let written = http_date::format(at_s);
            assert_eq!(http_date::parse(&written), Some(at_s), "{text} {written}");
        }
        fields.push((String::from_utf8_lossy(name).into_owned(), text));
    }
    let fields: Vec<_> = fields.iter().map(|(name, value)| (&**name, &**value)).collect();
    let _ = challenge(503, &fields, body);
    let wait_s = retry_after(&exchange_of(bytes, b"", 503), 1_700_000_000);
    assert!(wait_s.is_none_or(|wait_s| (0..=86_400).contains(&wait_s)));
}

/// Rules are read whatever the file looks like, and robots.txt itself may always be fetched.
pub(crate) fn robots(bytes: &[u8]) {
    let rules = RobotsRules::parse(bytes, "nenrin");
    assert!(rules.allows("/robots.txt").allowed);
    assert!(rules.crawl_delay().is_none_or(|delay| delay <= Duration::from_secs(86_400)));
    assert!(rules.sitemaps(&page()).len() <= 1000);
    for path in ["/", "/a/b?c=d", "/%E3%81%82/*$", &String::from_utf8_lossy(bytes)] {
        let verdict = rules.allows(path);
        assert!(verdict.rule.is_none_or(|line| line.number > 0 && !line.text.is_empty()));
    }
}

/// A coding is undone within its limit, or says why not.
pub(crate) fn decoding(bytes: &[u8]) {
    const CODINGS: [&str; 8] =
        ["gzip", "deflate", "br", "zstd", "gzip, gzip", "br, zstd, deflate", "x-gzip,identity", ""];
    let (choice, body) = chosen(bytes);
    if let Ok(decoded) = decode_content(Some(CODINGS[choice % 8]), body, DECODED_MAX_BYTES) {
        assert!(decoded.len() <= DECODED_MAX_BYTES);
    }
    let listed = String::from_utf8_lossy(&body[..body.len().min(64)]);
    let _ = decode_content(Some(&listed), body, DECODED_MAX_BYTES);
}

/// Every body has an encoding and a kind.
pub(crate) fn charset(bytes: &[u8]) {
    let (line, body) = bytes.split_at(bytes.len().min(40));
    let content_type = String::from_utf8_lossy(line);
    for content_type in [None, Some(&*content_type), Some("text/html; charset=iso-2022-jp")] {
        let encoding = nenrin_extract::charset(content_type, body);
        let _ = encoding.decode(body);
        let kind = content_kind(content_type, &page(), body);
        let _ = visible_text(kind, content_type, body, 1 << 16);
    }
}

fn links(kind: ContentKind, content_type: &str, body: &[u8]) {
    let limits = ExtractLimits::default();
    let found = page_links(&page(), kind, Some(content_type), body, &limits);
    assert!(found.links.len() <= limits.max_links);
    for link in &found.links {
        let again = CanonicalUrl::parse(link.url.as_str()).expect("a link is a canonical URL");
        assert_eq!(again, link.url);
    }
}

/// Links of pages are canonical and not too many.
pub(crate) fn html(bytes: &[u8]) {
    let (choice, body) = chosen(bytes);
    let (kind, content_type) = [
        (ContentKind::Html, "text/html"),
        (ContentKind::Html, "text/html; charset=shift_jis"),
        (ContentKind::Xhtml, "application/xhtml+xml"),
        (ContentKind::Svg, "image/svg+xml"),
        (ContentKind::Html, "text/html; charset=utf-16le"),
    ][choice % 5];
    links(kind, content_type, body);
    let _ = fingerprint(&page(), kind, Some(content_type), body);
    let _ = visible_text(kind, Some(content_type), body, 1 << 16);
    let _ = page_fragments(body);
}

/// The same of style sheets, scripts and other texts.
pub(crate) fn css(bytes: &[u8]) {
    links(ContentKind::Css, "text/css", bytes);
    links(ContentKind::JavaScript, "text/javascript", bytes);
    links(ContentKind::Json, "application/json", bytes);
}

/// Two versions of a page can be compared, and the same page has not changed.
pub(crate) fn comparison(bytes: &[u8]) {
    let (choice, bytes) = chosen(bytes);
    let (before, after) = bytes.split_at(bytes.len() * choice / 256);
    let kind = [ContentKind::Html, ContentKind::Text, ContentKind::Css][choice % 3];
    let found = compare(kind, None, before, after);
    let mut learnt = NoisyParts::default();
    learnt.learn(&page(), &found);
    let _ = found.judge(&learnt);
    let _ = compare(kind, None, bytes, bytes).judge(&learnt);
}

/// A sitemap names canonical pages and not too many.
pub(crate) fn sitemap(bytes: &[u8]) {
    let found = nenrin_extract::sitemap(&page(), bytes);
    assert!(found.entries.len() + found.sitemaps.len() <= 2 * MAX_ENTRIES);
    for entry in found.entries.iter().chain(&found.sitemaps) {
        assert!(CanonicalUrl::parse(entry.url.as_str()).is_ok_and(|again| again == entry.url));
    }
}

/// The same of a feed: RSS, Atom or JSON.
pub(crate) fn feed(bytes: &[u8]) {
    for content_type in [None, Some("application/rss+xml"), Some("application/feed+json")] {
        let found = nenrin_extract::feed(&page(), content_type, bytes);
        assert!(found.entries.len() <= MAX_ENTRIES);
        for entry in &found.entries {
            assert!(CanonicalUrl::parse(entry.url.as_str()).is_ok_and(|again| again == entry.url));
        }
    }
}

fn exchange_of(head: &[u8], body: &[u8], status: u16) -> Exchange {
    Exchange {
        status,
        protocol: Protocol::Http11,
        tls: None,
        server_address: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        request_head: Vec::new(),
        response_head: head.to_vec(),
        body: body.to_vec().into(),
        time_to_head: Duration::ZERO,
        elapsed: Duration::ZERO,
    }
}

/// A whole answer is read, whatever it was asked for.
pub(crate) fn exchange(bytes: &[u8]) {
    let (choice, message) = chosen(bytes);
    let (head, body) = split_message(message);
    let purpose =
        [Purpose::Page, Purpose::Robots, Purpose::Probe, Purpose::Sitemap][choice / 8 % 4];
    let status = [200, 206, 301, 304, 404, 429, 503, 200][choice % 8];
    let mut order = FetchOrder::plain(Ticket(1), purpose, page(), AddressPolicy::Public);
    order.fingerprint = choice & 32 != 0;
    order.sitemap = choice & 64 != 0;
    order.blocks = choice & 128 != 0;
    let exchange = exchange_of(head, body, status);
    let answer = read_exchange(&order, &exchange, 1_700_000_000, Appetite::full(), || None);
    let answer = answer.expect("memory can be read").expect("all that is wanted may be read");
    assert_eq!(answer.status, status);
    assert!(answer.mime.len() <= 100);
}
