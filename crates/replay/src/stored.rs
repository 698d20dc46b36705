//! The archive made of a state and a store.

use std::sync::Arc;

use bytes::Bytes;
use nenrin_state::{State, VersionQuery, VersionRow};
use nenrin_store::{Store, VersionHead, VersionId};
use nenrin_urls::{CanonicalUrl, UrlKey};

use crate::{Archive, ArchiveError, Capture, Content, ContentBlock, ContentHead};

fn capture((url, row): (CanonicalUrl, VersionRow)) -> Capture {
    Capture {
        url,
        at_s: row.at_s,
        version: row.version,
        status: row.status,
        mime: row.mime,
        body_bytes: row.bytes,
    }
}

fn content_head(head: VersionHead) -> ContentHead {
    ContentHead { response_head: head.response_head, digest: format!("blake3:{}", head.digest) }
}

impl Archive for (Arc<dyn State>, Arc<Store>) {
    fn as_of(&self, key: &UrlKey, at_s: i64) -> Result<Option<Capture>, ArchiveError> {
        let found = self.0.version_as_of(key, at_s);
        Ok(found.map_err(|e| ArchiveError::new("look up a version", e))?.map(capture))
    }

    fn versions(
        &self,
        key: &UrlKey,
        from_s: i64,
        to_s: i64,
        limit: usize,
    ) -> Result<Vec<Capture>, ArchiveError> {
        let found = self.0.versions(key, VersionQuery { from_s, to_s, limit });
        let found = found.map_err(|e| ArchiveError::new("list versions", e))?;
        Ok(found.into_iter().map(capture).collect())
    }

    fn last_seen_s(&self, url: &CanonicalUrl) -> Result<Option<i64>, ArchiveError> {
        let page = self.0.page(url).map_err(|e| ArchiveError::new("look up a page", e))?;
        let seen = page.filter(|page| page.outcome.is_some_and(|outcome| outcome.is_seen()));
        Ok(seen.and_then(|page| page.visited_s))
    }

    fn gone_times_s(&self, url: &CanonicalUrl) -> Result<Vec<i64>, ArchiveError> {
        self.0.gone_times(url).map_err(|e| ArchiveError::new("look up when a page was gone", e))
    }

    fn round_began(
        &self,
        url: &CanonicalUrl,
        after_s: i64,
        until_s: i64,
    ) -> Result<bool, ArchiveError> {
        let page = self.0.page(url).map_err(|e| ArchiveError::new("look up a page", e))?;
        page.map_or(Ok(false), |page| self.0.round_began(page.site, after_s, until_s))
            .map_err(|e| ArchiveError::new("look up a round", e))
    }

    fn is_closed(&self, url: &CanonicalUrl) -> Result<bool, ArchiveError> {
        nenrin_state::is_closed(&*self.0, url).map_err(|e| ArchiveError::new("look up a page", e))
    }

    fn urls(&self, from: &str, to: &str, limit: usize) -> Result<Vec<CanonicalUrl>, ArchiveError> {
        self.0.urls(from, to, limit).map_err(|e| ArchiveError::new("list URLs", e))
    }

    fn head(&self, version: VersionId) -> Result<ContentHead, ArchiveError> {
        let head = self.1.head(version);
        Ok(content_head(head.map_err(|e| ArchiveError::new("read a version's head", e))?))
    }

    fn read(&self, version: VersionId) -> Result<Content, ArchiveError> {
        let found = self.1.read(version);
        let found = found.map_err(|e| ArchiveError::new("read a version", e))?;
        Ok(Content { head: content_head(found.head), body: Bytes::from(found.body) })
    }

    fn read_part(
        &self,
        version: VersionId,
        from: u64,
        length: usize,
    ) -> Result<Bytes, ArchiveError> {
        let part = self.1.read_part(version, from, length);
        Ok(Bytes::from(part.map_err(|e| ArchiveError::new("read a part of a version", e))?))
    }

    fn blocks(&self, version: VersionId) -> Result<Vec<ContentBlock>, ArchiveError> {
        let found = self.1.blocks(version);
        let found = found.map_err(|e| ArchiveError::new("read a version's blocks", e))?;
        let block = |b: nenrin_store::Block| ContentBlock {
            digest: b.digest.0,
            bytes: Bytes::from(b.bytes),
        };
        Ok(found.into_iter().map(block).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nenrin_state::{Change, RobotsPolicy, Schedule, SiteConditions, SqliteState, VisitCommit};
    use nenrin_store::{MemoryBackend, NewVersion, StoreOptions};
    use nenrin_urls::Scope;

    #[test]
    fn what_state_and_store_hold_is_found_and_read() {
        let state: Arc<dyn State> = Arc::new(SqliteState::in_memory(3600).unwrap());
        let backend = Arc::new(MemoryBackend::default());
        let store = Arc::new(Store::open(backend, StoreOptions::default()).unwrap());
        let url = CanonicalUrl::parse("http://e.com/a").unwrap();
        let conditions = SiteConditions {
            tops: vec![url.clone()],
            scope: Scope::Host,
            depth: 1,
            max_pages: None,
            embeds: true,
            schedule: Schedule::Manual,
            windows: Vec::new(),
            delay_ms: None,
            allow_private: false,
            robots: RobotsPolicy::Obey,
            hints: nenrin_state::SiteHints::default(),
            ..SiteConditions::new(Vec::new())
        };
        let site = state.add_site("e", &conditions, 0).unwrap();
        let put = store
            .put(&NewVersion {
                url: &url,
                group: 1,
                visited_at_s: 100,
                status: 200,
                protocol: "http/1.1",
                tls: None,
                server_address: None,
                request_head: b"",
                response_head: b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n",
                body: b"<p>hello",
                truncated: None,
                previous: None,
            })
            .unwrap();
        store.sync().unwrap();
        let row = VersionRow {
            at_s: 100,
            version: put.id,
            status: 200,
            mime: "text/html".into(),
            bytes: 8,
            changed_permille: None,
        };
        let visit = VisitCommit::in_packs(site.id, url.clone(), row);
        state.commit(&[Change::Visit(Box::new(visit))]).unwrap();
        let archive = (state, store);
        let found = archive.as_of(&url.key(), 500).unwrap().unwrap();
        assert_eq!((&found.url, found.at_s, found.body_bytes), (&url, 100, 8));
        let content = archive.read(found.version).unwrap();
        assert_eq!(&content.body[..], b"<p>hello");
        assert_eq!(archive.head(found.version).unwrap(), content.head);
        assert_eq!(&archive.read_part(found.version, 3, 2).unwrap()[..], b"he");
        assert!(archive.read_part(found.version, 8, 2).unwrap().is_empty());
        assert_eq!(archive.urls("com,e)", "com,e*", 9).unwrap(), std::slice::from_ref(&url));
        assert_eq!(archive.versions(&url.key(), 0, 99, 9).unwrap(), []);
        assert!(archive.read(VersionId(999)).is_err());
    }
}
