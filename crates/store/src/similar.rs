//! Which stored page resembles a new one most: those that share its rarest blocks.

use std::collections::BTreeMap;

use crate::cut::cut;
use crate::digest::BodyKey;

/// Blocks of a page that are remembered: those with the smallest hashes, so that two pages that
/// share most blocks remember mostly the same ones.
const FEATURES: usize = 12;
/// Features kept in memory over all sites, about 60 bytes each; the oldest go first.
const MAX_FEATURES: usize = 200_000;

/// The features of one page.
pub(crate) type Sketch = Vec<u64>;

/// Remembers which page had which features lately. It only ever costs space to forget them.
#[derive(Default)]
pub(crate) struct Similar {
    pages: BTreeMap<(u32, u64), (u64, BodyKey)>,
    by_age: BTreeMap<u64, (u32, u64)>,
    clock: u64,
}

impl Similar {
    /// The page of this site that shares the most features, the newest of equals.
    pub(crate) fn find(&self, group: u32, sketch: &Sketch) -> Option<BodyKey> {
        let mut votes: BTreeMap<BodyKey, (usize, u64)> = BTreeMap::new();
        for feature in sketch {
            if let Some((age, key)) = self.pages.get(&(group, *feature)) {
                let vote = votes.entry(*key).or_default();
                *vote = (vote.0 + 1, vote.1.max(*age));
            }
        }
        votes.into_iter().max_by_key(|(_, vote)| *vote).map(|(key, _)| key)
    }

    pub(crate) fn remember(&mut self, group: u32, sketch: &Sketch, key: BodyKey) {
        for feature in sketch {
            self.clock += 1;
            let before = self.pages.insert((group, *feature), (self.clock, key));
            if let Some((age, _)) = before {
                self.by_age.remove(&age);
            }
            self.by_age.insert(self.clock, (group, *feature));
            if self.pages.len() > MAX_FEATURES
                && let Some((_, oldest)) = self.by_age.pop_first()
            {
                self.pages.remove(&oldest);
            }
        }
    }
}

/// The features of a page.
pub(crate) fn sketch(body: &[u8]) -> Sketch {
    let mut hashes: Vec<u64> = cut(body).map(hash).collect();
    hashes.sort_unstable();
    hashes.dedup();
    hashes.truncate(FEATURES);
    hashes
}

/// Quick, not secure: a page that forces collisions only makes its own storage larger.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut state = PRIME ^ bytes.len() as u64;
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    for word in words.iter().chain([&last]) {
        let product = u128::from(state ^ u64::from_le_bytes(*word)) * u128::from(PRIME);
        state = (product >> 64) as u64 ^ product as u64;
    }
    state ^ (state >> 29)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Digest;

    fn page(topic: &str, news: u32) -> Vec<u8> {
        (0..60)
            .map(|n| format!("<p>{topic} paragraph {n} {}</p>", n * news))
            .collect::<String>()
            .into()
    }

    #[test]
    fn the_page_that_shares_most_blocks_is_found_within_the_site() {
        let mut similar = Similar::default();
        for (topic, group) in [("cats", 1), ("dogs", 1), ("cats", 2)] {
            let body = page(topic, 0);
            similar.remember(group, &sketch(&body), Digest::of(topic.as_bytes()).key());
        }
        let mut news = page("dogs", 0);
        news.extend_from_slice(b"<p>and something that is new today</p>");
        assert_eq!(similar.find(1, &sketch(&news)), Some(Digest::of(b"dogs").key()));
        assert_eq!(similar.find(3, &sketch(&news)), None);
        assert_eq!(similar.find(1, &sketch(&page("birds", 7))), None);
    }

    #[test]
    fn memory_stays_bounded() {
        let mut similar = Similar::default();
        for n in 0..(MAX_FEATURES as u64 / 10) {
            let sketch: Sketch = (0..12).map(|k| n * 12 + k).collect();
            similar.remember(0, &sketch, Digest::of(&n.to_le_bytes()).key());
        }
        assert!(similar.pages.len() <= MAX_FEATURES && similar.by_age.len() == similar.pages.len());
    }
}
