use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use nenrin_lang::Lang;
use nenrin_urls::VersionId;

use super::Prepared;
use crate::{modifier::Modifier, stage::Stage};

/// Everything that a rewritten page depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PageKey {
    pub(crate) version: VersionId,
    pub(crate) at_s: i64,
    pub(crate) modifier: Modifier,
    pub(crate) is_not_document: bool,
    pub(crate) lang: Lang,
    pub(crate) stage: Stage,
}

/// Rewritten pages; the least recently used is dropped first.
pub(crate) struct PageCache {
    max_bytes: usize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    pages: BTreeMap<PageKey, (Arc<Prepared>, u64)>,
    by_use: BTreeMap<u64, PageKey>,
    uses: u64,
    bytes: usize,
}

impl PageCache {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { max_bytes, inner: Mutex::default() }
    }

    pub(crate) fn get(&self, key: PageKey) -> Option<Arc<Prepared>> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let inner = &mut *inner;
        let (page, used) = inner.pages.get_mut(&key)?;
        inner.by_use.remove(used);
        inner.uses += 1;
        *used = inner.uses;
        inner.by_use.insert(inner.uses, key);
        Some(Arc::clone(page))
    }

    pub(crate) fn put(&self, key: PageKey, page: &Arc<Prepared>) {
        let bytes = page.weight_bytes();
        // One page must not push out most of the others.
        if bytes > self.max_bytes / 4 {
            return;
        }
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.pages.contains_key(&key) {
            return;
        }
        inner.uses += 1;
        let used = inner.uses;
        inner.pages.insert(key, (Arc::clone(page), used));
        inner.by_use.insert(used, key);
        inner.bytes += bytes;
        while inner.bytes > self.max_bytes {
            let Some((_, oldest)) = inner.by_use.pop_first() else { break };
            if let Some((page, _)) = inner.pages.remove(&oldest) {
                inner.bytes -= page.weight_bytes();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(version: u64) -> PageKey {
        let (version, lang, stage) = (VersionId(version), Lang::En, Stage::Shared);
        PageKey { version, at_s: 0, modifier: Modifier::Page, is_not_document: false, lang, stage }
    }

    #[test]
    fn the_least_recently_used_page_is_dropped_first() {
        let cache = PageCache::new(10_000);
        let page = Arc::new(Prepared::of_bytes(vec![0; 1500]));
        for version in 0..4 {
            cache.put(key(version), &page);
        }
        assert!(cache.get(key(0)).is_some());
        for version in 4..7 {
            cache.put(key(version), &page);
        }
        assert!(cache.get(key(0)).is_some());
        assert!(cache.get(key(1)).is_none());
    }

    #[test]
    fn a_page_that_is_too_large_is_not_kept() {
        let cache = PageCache::new(10_000);
        cache.put(key(1), &Arc::new(Prepared::of_bytes(vec![0; 9000])));
        assert!(cache.get(key(1)).is_none());
    }
}
