use std::collections::BTreeMap;

use nenrin_urls::CanonicalUrl;
use serde::{Deserialize, Serialize};

use super::Comparison;
use crate::hash::stable_hash;

/// Parts of a site's pages that change without the content changing: rotating advertisements,
/// navigation, boxes that are new on every visit. Learnt by [`NoisyParts::learn`] from each
/// comparison of two versions; a site needs one of these.
///
/// A part is identified by its context (the tags before it with their classes), so it is the same
/// part on all pages made from one template. It is noise when
/// - it is small and changed on nearly every visit (at least six), or
/// - its contents come back again and again (it rotates), or
/// - the same change was seen on three other pages of the site, or most of its changes came on
///   several pages at once (it is navigation).
///
/// A large part that changes on every visit is a busy front page, not noise.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NoisyParts {
    parts: BTreeMap<u64, NoisyPart>,
    /// Comparisons learnt from.
    visits: u32,
}

/// The most parts that are remembered; the least informative is forgotten first. About 100 bytes
/// each.
pub const MAX_NOISY_PARTS: usize = 256;

/// The most new parts from one comparison: a page that changed as a whole teaches nothing about
/// single parts.
const MAX_NEW_PARTS: usize = 32;

const MIN_VISITS: u16 = 6;
const MIN_ROTATIONS: u16 = 4;
const MIN_PAGES: u8 = 3;
const MIN_SHARED: u16 = 6;

/// A part with more visible characters than this is never noise because of its rate alone.
const SMALL_PART: u32 = 300;

/// Counts are halved at this number, so that new observations can outweigh old ones.
const MAX_COUNT: u16 = 64;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct NoisyPart {
    /// Visits on which a page had the part.
    seen: u16,
    /// Visits on which it had changed.
    changed: u16,
    /// Changes back to a content that it had shown before.
    repeats: u16,
    /// Changes that came on several pages.
    shared: u16,
    /// Pages on which the newest content appeared by a change.
    pages: u8,
    last_page: u32,
    /// Average number of visible characters that changed.
    weight: u32,
    /// Hashes of the last contents, the newest first.
    shown: [u32; 4],
    last_visit: u32,
}

impl NoisyParts {
    /// Whether a change to this content in this context is noise.
    pub(super) fn is_noise(&self, context: u64, content: u64) -> bool {
        let part = self.parts.get(&context);
        part.is_some_and(|part| part.is_noisy() || part.is_shared(content))
    }

    /// How many parts are remembered, and how many of them are noise.
    pub fn counts(&self) -> (usize, usize) {
        (self.parts.len(), self.parts.values().filter(|part| part.is_noisy()).count())
    }

    /// Learns from the comparison of two versions of a page of this site.
    pub fn learn(&mut self, page: &CanonicalUrl, comparison: &Comparison) {
        self.visits = self.visits.saturating_add(1);
        let visit = self.visits;
        for context in &comparison.contexts {
            if let Some(part) = self.parts.get_mut(context) {
                part.seen = part.seen.saturating_add(1);
                part.last_visit = visit;
            }
        }
        let page = low_half(stable_hash(page.as_str().bytes()));
        let mut brought = 0;
        for (context, change) in &comparison.changes {
            let known = self.parts.contains_key(context);
            if !known && brought == MAX_NEW_PARTS {
                continue;
            }
            if !known {
                brought += 1;
                self.forget_one();
            }
            let part = self.parts.entry(*context).or_insert_with(|| NoisyPart::new(visit));
            part.change(change.content, change.weight, page);
        }
    }

    /// Forgets the part that changed least, and longest ago.
    fn forget_one(&mut self) {
        if self.parts.len() < MAX_NOISY_PARTS {
            return;
        }
        let least = self
            .parts
            .iter()
            .min_by_key(|(_, part)| (part.is_noisy(), part.last_visit, part.changed))
            .map(|(context, _)| *context);
        if let Some(context) = least {
            self.parts.remove(&context);
        }
    }
}

impl NoisyPart {
    fn new(visit: u32) -> Self {
        Self { seen: 1, last_visit: visit, ..Self::default() }
    }

    fn change(&mut self, content: u64, weight: u32, page: u32) {
        let content = low_half(content);
        if self.shown[0] == content {
            // The same change on another page.
            if self.last_page != page {
                self.pages = self.pages.saturating_add(1);
                self.shared = self.shared.saturating_add(u16::from(self.pages >= MIN_PAGES));
            }
        } else {
            self.repeats = self.repeats.saturating_add(u16::from(self.shown.contains(&content)));
            self.shown.rotate_right(1);
            self.shown[0] = content;
            self.pages = 1;
        }
        self.last_page = page;
        self.changed = self.changed.saturating_add(1);
        let count = u64::from(self.changed);
        let mean = (u64::from(self.weight) * (count - 1) + u64::from(weight)) / count;
        self.weight = u32::try_from(mean).unwrap_or(u32::MAX);
        if self.seen >= MAX_COUNT {
            for count in [&mut self.seen, &mut self.changed, &mut self.repeats, &mut self.shared] {
                *count /= 2;
            }
        }
    }

    /// Whether exactly this content came to several pages.
    fn is_shared(&self, content: u64) -> bool {
        self.pages >= MIN_PAGES && self.shown[0] == low_half(content)
    }

    fn is_noisy(&self) -> bool {
        let nearly_always = self.seen >= MIN_VISITS
            && u32::from(self.changed) * 100 >= u32::from(self.seen) * 85
            && self.weight <= SMALL_PART;
        let rotates = self.changed >= MIN_ROTATIONS && self.repeats * 2 >= self.changed;
        let is_navigation = self.shared >= MIN_SHARED && self.shared * 2 >= self.changed;
        nearly_always || rotates || is_navigation
    }
}

#[expect(clippy::cast_possible_truncation, reason = "half of a hash is a hash")]
fn low_half(hash: u64) -> u32 {
    hash as u32
}
