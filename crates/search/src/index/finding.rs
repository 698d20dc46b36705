//! Answering a query from the index.

use nenrin_state::{PageId, SiteId};

use super::{
    opened::{Index, Snapshot},
    pages::{PageInfo, PageTable},
    words::{BlockHit, Look},
};
use crate::{
    SearchError,
    history::{OPEN, Slot, SlotSet, Span},
    language::Language,
    page_kind::PageKind,
    query::{Clause, Query},
    record::Record,
};

/// How much more a word counts in some kinds of blocks: the address, titles, headings, text, texts
/// of images, data.
const BOOSTS: [f32; 8] = [2.0, 4.0, 2.0, 1.0, 0.7, 0.5, 0.0, 0.0];
/// How much each doubling of the blocks with a word adds.
const MORE_BLOCKS: f32 = 0.15;
/// How much importance counts: each doubling beyond the average, and the most of it.
const IMPORTANCE: (f32, f32) = (0.1, 0.8);
/// How much a page counts that has not changed for so long: half of this is lost after a year.
const AGE_SHARE: f32 = 0.3;
const YEAR_S: f32 = 31_557_600.0;

/// In which order pages are found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// By match, importance and time.
    #[default]
    Best,
    /// What appeared last, first.
    Newest,
}

impl Order {
    /// Sorts pages of several indexes.
    pub(crate) fn sort(self, found: &mut [Found]) {
        match self {
            Self::Best => {
                found.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.page.cmp(&b.page)));
            }
            Self::Newest => found.sort_by_key(|one| std::cmp::Reverse((newest(one), one.page))),
        }
    }
}

/// Which of the answers are wanted.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) order: Order,
    pub(crate) skip: usize,
    pub(crate) limit: usize,
    /// Whether pages of a site may be found.
    pub(crate) takes_site: &'a dyn Fn(SiteId) -> bool,
}

/// A page that answers a query.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Found {
    pub(crate) page: PageId,
    pub(crate) site: SiteId,
    pub(crate) kind: PageKind,
    pub(crate) language: Language,
    pub(crate) score: f32,
    pub(crate) spans: Vec<Span>,
    pub(crate) slots: Vec<Slot>,
}

impl Index {
    /// The pages that answer a query, and whether there are more.
    pub(crate) fn find(
        &self,
        query: &Query,
        wanted: &Wanted<'_>,
    ) -> Result<(Vec<Found>, bool), SearchError> {
        let mut shared = self.snapshot();
        let Snapshot { records, table } = &mut *shared;
        if table.catch_up(records)? {
            self.words.reload()?;
        }
        let look = self.words.look();
        let takes = |info: &PageInfo| {
            query.filters.takes_page(info.kind, info.language) && (wanted.takes_site)(info.site)
        };
        let mut candidates =
            Candidates { allowed: vec![false; table.places()], scores: Vec::new() };
        for place in 0..table.places() as u32 {
            candidates.allowed[place as usize] = table.get(place).is_some_and(takes);
        }
        let hits = collect(&look, query, table, &mut candidates)?;
        let mut ranked: Vec<(u32, f32)> = candidates
            .places()
            .filter_map(|place| {
                let info = table.get(place)?;
                Some((place, candidates.score(place) * weight(info, table.newest_s)))
            })
            .collect();
        let changed = |place: u32| table.get(place).map_or(0, |info| info.changed_s);
        match wanted.order {
            Order::Best => ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0))),
            Order::Newest => ranked.sort_by_key(|(place, _)| (-changed(*place), *place)),
        }
        let mut found = Vec::new();
        let enough = wanted.skip.saturating_add(wanted.limit).saturating_add(1);
        for (place, score) in ranked {
            // What follows changed earlier, so nothing can have appeared there later.
            let is_settled = wanted.order == Order::Best
                || found.get(enough - 1).is_some_and(|last: &Found| newest(last) >= changed(place));
            if found.len() >= enough && is_settled {
                break;
            }
            let (Some(info), Some(record)) = (table.get(place), records.record(place)?) else {
                continue;
            };
            let spans = spans(query, &hits, place, &record);
            if !spans.is_empty() {
                found.push(Found {
                    page: info.page,
                    site: info.site,
                    kind: info.kind,
                    language: info.language,
                    score,
                    spans,
                    slots: record.slots,
                });
                if wanted.order == Order::Newest {
                    Order::Newest.sort(&mut found);
                    found.truncate(enough);
                }
            }
        }
        let has_more = found.len() >= enough;
        let found = found.into_iter().skip(wanted.skip).take(wanted.limit).collect();
        Ok((found, has_more))
    }
}

fn newest(found: &Found) -> i64 {
    found.spans.iter().map(|span| span.from_s).max().unwrap_or(i64::MIN)
}

/// How much a page counts by itself.
fn weight(info: &PageInfo, newest_s: i64) -> f32 {
    let importance = match info.importance_percent {
        0 => 0.0,
        percent => (percent as f32 / 100.0).log2() * IMPORTANCE.0,
    };
    let age = (newest_s - info.changed_s).max(0) as f32 / YEAR_S;
    (1.0 + importance.clamp(-IMPORTANCE.1, IMPORTANCE.1)) * (1.0 - AGE_SHARE * age / (1.0 + age))
}

/// Pages that may answer the query.
struct Candidates {
    allowed: Vec<bool>,
    scores: Vec<f32>,
}

impl Candidates {
    fn places(&self) -> impl Iterator<Item = u32> + '_ {
        (0_u32..).zip(&self.allowed).filter(|(_, allowed)| **allowed).map(|(place, _)| place)
    }

    fn is_allowed(&self, place: u32) -> bool {
        self.allowed.get(place as usize).copied().unwrap_or(false)
    }

    fn score(&self, place: u32) -> f32 {
        self.scores.get(place as usize).copied().unwrap_or(1.0)
    }

    /// Only pages with a hit stay.
    fn narrow(&mut self, hits: &[BlockHit]) {
        let mut stays = vec![false; self.allowed.len()];
        hits.iter().for_each(|hit| stays[hit.page as usize] = true);
        self.allowed = stays;
    }

    fn add_scores(&mut self, hits: &[BlockHit], blocks: u64) {
        self.scores.resize(self.allowed.len(), 1.0);
        let rarity = (1.0 + blocks as f32 / (1.0 + hits.len() as f32)).ln();
        for of_page in hits.chunk_by(|a, b| a.page == b.page) {
            let boost = of_page.iter().map(|hit| BOOSTS[usize::from(hit.kind & 7)]);
            let best = boost.fold(0.0, f32::max);
            let more = (of_page.len() as f32).log2() * MORE_BLOCKS;
            self.scores[of_page[0].page as usize] += rarity * (best + more);
        }
    }
}

/// The hits of each clause, sorted by page, for the pages that may answer the query.
fn collect(
    look: &Look,
    query: &Query,
    table: &PageTable,
    candidates: &mut Candidates,
) -> Result<Vec<Vec<BlockHit>>, SearchError> {
    let mut hits = vec![Vec::new(); query.clauses.len()];
    let estimate =
        |clause: &Clause| -> u64 { clause.any.iter().map(|leaf| look.estimate(leaf)).sum() };
    let mut order: Vec<(bool, u64, usize)> = query
        .clauses
        .iter()
        .enumerate()
        .map(|(at, clause)| (clause.is_excluded, estimate(clause), at))
        .collect();
    // What is rare narrows the rest; what is excluded matters for the rest alone.
    order.sort_unstable();
    for (is_excluded, _, at) in order {
        let mut found = Vec::new();
        for leaf in &query.clauses[at].any {
            look.each(leaf, table.languages, &mut |hit, in_languages| {
                let mut take = |page: u32, block: u32| {
                    let is_of_language = |info: &PageInfo| info.language.bit() & in_languages != 0;
                    if candidates.is_allowed(page) && table.get(page).is_some_and(is_of_language) {
                        found.push(BlockHit { page, block, ..hit });
                    }
                };
                take(hit.page, hit.block);
                table.borrowers(hit.page, hit.block, &mut take);
            })?;
        }
        found.sort_unstable();
        found.dedup();
        if !is_excluded {
            candidates.narrow(&found);
            candidates.add_scores(&found, look.blocks());
        }
        hits[at] = found;
    }
    Ok(hits)
}

/// When a page answers the query.
fn spans(query: &Query, hits: &[Vec<BlockHit>], place: u32, record: &Record) -> Vec<Span> {
    let count = record.slots.len();
    let mut answers = SlotSet::from_fn(count, |at| record.slots[at].is_readable);
    for (clause, hits) in query.clauses.iter().zip(hits) {
        let first = hits.partition_point(|hit| hit.page < place);
        let of_page = hits[first..].iter().take_while(|hit| hit.page == place);
        let mut there = SlotSet::none(count);
        for hit in of_page {
            if hit.block == 0 {
                there.add(0, count);
            }
            for &(from, until) in record.blocks.of(hit.block) {
                let is_noise = record.slots.get(from as usize).is_some_and(|slot| slot.is_noise);
                if !(query.filters.is_significant && is_noise) {
                    there.add(from as usize, if until == OPEN { count } else { until as usize });
                }
            }
        }
        answers.and(&there, clause.is_excluded);
    }
    let spans = answers.spans(&record.slots).into_iter();
    spans.filter(|span| query.filters.takes(span)).collect()
}
