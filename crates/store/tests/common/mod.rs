//! A small website to store, and what must come back.

use std::sync::Arc;

use nenrin_store::{
    ContentBackend, NewVersion, Packing, Put, Store, StoreError, StoreOptions, VersionId,
};
use nenrin_urls::CanonicalUrl;

/// One version as a test remembers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) url: String,
    pub(crate) group: u32,
    pub(crate) visited_at_s: i64,
    pub(crate) response_head: Vec<u8>,
    pub(crate) body: Vec<u8>,
}

impl Kept {
    pub(crate) fn page(number: u64, visit: u64, body: Vec<u8>) -> Self {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nX-Visit: {visit}\r\n\r\n",
            body.len()
        );
        Self {
            url: format!("https://example.org/dir-{}/page-{number}", number % 3),
            group: (number % 2) as u32,
            visited_at_s: 1_700_000_000 + 86_400 * visit as i64,
            response_head: head.into_bytes(),
            body,
        }
    }

    pub(crate) fn put(
        &self,
        store: &Store,
        previous: Option<VersionId>,
    ) -> Result<Put, StoreError> {
        self.put_packed(store, previous, Packing::Unknown)
    }

    pub(crate) fn put_packed(
        &self,
        store: &Store,
        previous: Option<VersionId>,
        packing: Packing<'_>,
    ) -> Result<Put, StoreError> {
        let url = CanonicalUrl::parse(&self.url).unwrap();
        let version = NewVersion {
            url: &url,
            group: self.group,
            visited_at_s: self.visited_at_s,
            status: 200,
            protocol: "h2",
            tls: Some("tls/1.3"),
            server_address: Some([192, 0, 2, 7].into()),
            request_head: b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
            response_head: &self.response_head,
            body: &self.body,
            truncated: None,
            previous,
        };
        store.put_packed(&version, nenrin_store::Digest::of(version.body), packing)
    }

    pub(crate) fn check(&self, store: &Store, id: VersionId) {
        let version = store.read(id).unwrap_or_else(|error| panic!("version {id}: {error}"));
        assert_eq!(version.head.url.as_str(), self.url);
        assert_eq!(version.head.visited_at_s, self.visited_at_s);
        assert_eq!(version.head.response_head, self.response_head);
        assert_eq!(version.head.request_head, b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n");
        assert_eq!(version.head.tls.as_deref(), Some("tls/1.3"));
        assert_eq!(version.head.body_bytes, self.body.len() as u64);
        assert!(version.body == self.body, "the body of version {id} differs");
    }
}

/// A page that changes a little from visit to visit.
pub(crate) fn html(number: u64, visit: u64) -> Vec<u8> {
    let mut page = format!("<!DOCTYPE html><html><head><title>{number}</title></head><body>");
    for line in 0..30u64 {
        let salt = if line % 7 == visit % 7 { visit } else { 0 };
        let word = (number * 31 + line * 17 + salt * 1009).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        page.push_str(&format!("<div class=entry><p>paragraph {line} {word:x}</p></div>\n"));
    }
    page.push_str("</body></html>");
    page.into_bytes()
}

pub(crate) fn open(backend: &Arc<impl ContentBackend + 'static>) -> Store {
    Store::open(backend.clone(), options()).unwrap()
}

/// Small packs, so that a test sees several of them.
pub(crate) fn options() -> StoreOptions {
    StoreOptions { pack_bytes: 8 << 10, ..StoreOptions::default() }
}

pub(crate) fn assert_sound(store: &Store) {
    let report = store.verify(true, &mut |_, _| {}).unwrap();
    assert!(report.is_sound(), "{:#?}", report.damage);
}
