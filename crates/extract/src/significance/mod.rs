//! Judges whether a change of a page matters to its readers.
//!
//! Two versions are cut at their tags ([`segment`]), their common segments are found
//! ([`mod@align`]), and the rest is judged: dates, counters, tokens and cache breakers are noise by
//! themselves ([`noise`]), rotating and site-wide parts once they are learnt ([`NoisyParts`]).
//! This only judges; every version is stored exactly.

mod align;
mod learn;
mod line;
mod noise;
pub(crate) mod segment;

use std::collections::{BTreeMap, BTreeSet};

use crate::ContentKind;
use crate::charset::charset;
use crate::hash::mixed;

use align::align;
use noise::{differ_by_noise, is_url_attribute, noise_free_hash};
pub(crate) use segment::{MAX_SEGMENTS, SegmentKind, attributes, markup_segments, tag_name};
use segment::{Segment, line_segments};

pub use learn::{MAX_NOISY_PARTS, NoisyParts};
pub use line::{ChangedLine, changed_line};

/// How much a page changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    /// No byte differs.
    Identical,
    /// Bytes differ, but nothing that a reader would call a change.
    Noise,
    /// What the page says or shows differs.
    Significant {
        /// The share of the page's content that changed, above 0 and at most 1.
        changed_share: f32,
    },
}

/// The differences between two versions of a page, before they are judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    identical: bool,
    /// Changes beyond noise, by context.
    changes: BTreeMap<u64, PartChange>,
    /// The contexts in the new version.
    contexts: BTreeSet<u64>,
    /// Amount of content of the larger version, in characters.
    weight: u32,
}

/// What changed in one context.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct PartChange {
    /// Content that appeared or disappeared, the larger of both, in characters.
    weight: u32,
    /// Hash of the content now.
    content: u64,
}

/// Whether the change from one version to the next matters to readers, given what was learnt about
/// the site. Combines [`compare`] and [`Comparison::judge`].
pub fn significance(
    kind: ContentKind,
    content_type: Option<&str>,
    previous: &[u8],
    new: &[u8],
    learnt: &NoisyParts,
) -> Change {
    compare(kind, content_type, previous, new).judge(learnt)
}

/// Compares two versions of a page, with content codings undone.
pub fn compare(
    kind: ContentKind,
    content_type: Option<&str>,
    previous: &[u8],
    new: &[u8],
) -> Comparison {
    if previous == new {
        return Comparison { identical: true, ..Comparison::nothing() };
    }
    let cut: fn(&str) -> Vec<Segment<'_>> = match kind {
        ContentKind::Html
        | ContentKind::Xhtml
        | ContentKind::Svg
        | ContentKind::Xml
        | ContentKind::Feed
        | ContentKind::Sitemap => markup_segments,
        ContentKind::Css | ContentKind::JavaScript | ContentKind::Json | ContentKind::Text => {
            line_segments
        }
        ContentKind::Image | ContentKind::Other => return Comparison::opaque(),
    };
    let old_text = charset(content_type, previous).decode(previous).0;
    let new_text = charset(content_type, new).decode(new).0;
    compare_segments(&cut(&old_text), &cut(&new_text))
}

impl Comparison {
    fn nothing() -> Self {
        Self { identical: false, changes: BTreeMap::new(), contexts: BTreeSet::new(), weight: 0 }
    }

    /// A change about which nothing more can be said.
    fn opaque() -> Self {
        let change = PartChange { weight: 1, content: 0 };
        Self { changes: BTreeMap::from([(0, change)]), weight: 1, ..Self::nothing() }
    }

    /// Judges the differences by what was learnt.
    pub fn judge(&self, learnt: &NoisyParts) -> Change {
        if self.identical {
            return Change::Identical;
        }
        let content = |(context, change): (&u64, &PartChange)| {
            if learnt.is_noise(*context, change.content) { 0 } else { u64::from(change.weight) }
        };
        let changed: u64 = self.changes.iter().map(content).sum();
        if changed == 0 {
            return Change::Noise;
        }
        let share = changed as f64 / f64::from(self.weight.max(1));
        Change::Significant { changed_share: share.clamp(f64::MIN_POSITIVE, 1.0) as f32 }
    }
}

fn compare_segments(old: &[Segment<'_>], new: &[Segment<'_>]) -> Comparison {
    let weights = Weights::of(old, new);
    let mut comparison = Comparison::nothing();
    comparison.weight = weights.total(old).max(weights.total(new));
    comparison.contexts = new.iter().map(|segment| segment.context).collect();
    let hashes = |segments: &[Segment<'_>]| segments.iter().map(|s| s.hash).collect::<Vec<_>>();
    let mut went: BTreeMap<u64, u32> = BTreeMap::new();
    let mut from = (0, 0);
    let end = (old.len(), new.len());
    for (i, j) in align(&hashes(old), &hashes(new)).into_iter().chain([end]) {
        let (gone, come) = changed_within(&old[from.0..i], &new[from.1..j]);
        for segment in gone {
            *went.entry(segment.context).or_default() += weights.of_segment(segment);
        }
        for segment in come {
            let change = comparison.changes.entry(segment.context).or_default();
            change.weight = change.weight.saturating_add(weights.of_segment(segment));
            change.content = mixed(change.content.rotate_left(9) ^ segment.hash);
        }
        from = (i + 1, j + 1);
    }
    for (context, weight) in went {
        let change = comparison.changes.entry(context).or_default();
        change.weight = change.weight.max(weight);
    }
    comparison.changes.retain(|_, change| change.weight > 0);
    comparison
}

/// What differs by more than noise between two stretches without a common segment.
fn changed_within<'s, 't>(
    old: &'s [Segment<'t>],
    new: &'s [Segment<'t>],
) -> (Vec<&'s Segment<'t>>, Vec<&'s Segment<'t>>) {
    let hashes =
        |segments: &[Segment<'_>]| segments.iter().map(noise_free_hash).collect::<Vec<_>>();
    let pairs = if old.is_empty() || new.is_empty() {
        Vec::new()
    } else {
        align(&hashes(old), &hashes(new))
    };
    let same: Vec<_> =
        pairs.into_iter().filter(|(i, j)| differ_by_noise(&old[*i], &new[*j])).collect();
    let gone = (0..old.len()).filter(|i| same.binary_search_by_key(i, |pair| pair.0).is_err());
    let come = (0..new.len()).filter(|j| same.binary_search_by_key(j, |pair| pair.1).is_err());
    (gone.map(|i| &old[i]).collect(), come.map(|j| &new[j]).collect())
}

/// Amount of content of each segment.
struct Weights {
    /// The page has almost no text of its own: its scripts contain the content.
    is_app_shell: bool,
}

/// A page with less visible text than this in both versions gets its content from scripts.
const APP_SHELL_CHARS: u32 = 200;

/// What a link or an image counts, in characters.
const LINK_WEIGHT: u32 = 4;

impl Weights {
    fn of(old: &[Segment<'_>], new: &[Segment<'_>]) -> Self {
        let text = |segments: &[Segment<'_>]| {
            let texts = segments.iter().filter(|segment| segment.kind == SegmentKind::Text);
            texts.map(|segment| visible_chars(segment.text)).fold(0, u32::saturating_add)
        };
        Self { is_app_shell: text(old).max(text(new)) < APP_SHELL_CHARS }
    }

    fn total(&self, segments: &[Segment<'_>]) -> u32 {
        segments.iter().map(|segment| self.of_segment(segment)).fold(0, u32::saturating_add)
    }

    fn of_segment(&self, segment: &Segment<'_>) -> u32 {
        match segment.kind {
            SegmentKind::Text => visible_chars(segment.text),
            SegmentKind::Tag if shows_a_resource(segment.text) => LINK_WEIGHT,
            SegmentKind::Script { json } if json || self.is_app_shell => {
                visible_chars(segment.text).min(1000)
            }
            SegmentKind::Tag
            | SegmentKind::Script { .. }
            | SegmentKind::Style
            | SegmentKind::Comment => 0,
        }
    }
}

fn visible_chars(text: &str) -> u32 {
    let count = text.chars().filter(|c| !c.is_whitespace()).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Links, images, frames and media; not style sheets and scripts, which readers do not see.
fn shows_a_resource(tag: &str) -> bool {
    const SHOWN: [&str; 13] = [
        "a", "area", "img", "iframe", "frame", "video", "audio", "source", "embed", "object",
        "form", "image", "loc",
    ];
    let name = tag_name(tag).to_ascii_lowercase();
    let has_url = || attributes(tag).any(|(name, _)| is_url_attribute(&name.to_ascii_lowercase()));
    SHOWN.contains(&name.as_str()) && has_url()
}

#[cfg(test)]
mod tests;
