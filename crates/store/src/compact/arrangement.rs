//! How the bodies of a site are put next to each other: each page with its versions, or the pages
//! of one time with each other. Front pages whose texts are replaced at every visit, and that show the
//! same teasers, share more with their neighbours of the same day than with themselves a month
//! before. Which is smaller is found by trying both on a part of the site.

use std::collections::{BTreeMap, BTreeSet};

use super::arrange::Page;
use super::limits::{Arrangement, Limits};
use super::options::CompactOptions;
use super::portion::Seen;
use crate::error::StoreError;
use crate::media::Class;
use crate::pack::Location;
use crate::prefix::Read;
use crate::{Digest, prefix, squeeze};

/// What is tried: so many bytes and bodies, all in memory.
const SAMPLE_BYTES: u64 = 64 << 20;
const SAMPLE_BODIES: usize = 4096;
/// They are taken from this many positions in the site.
const SAMPLE_PLACES: usize = 4;
/// Quick, and good enough to see which arrangement is smaller.
const TRIAL_LEVEL: i32 = 6;
/// Frames by time are larger, and so slower to read: they must save at least one in so many bytes.
const WORTHWHILE_PART: u64 = 20;
/// Pages that say how frames are arranged.
const ENOUGH_VOTES: usize = 64;

/// A group for each page.
pub(super) fn by_page(pages: &[Vec<Seen>]) -> Vec<Vec<Digest>> {
    pages.iter().map(|page| page.iter().map(|seen| seen.digest).collect()).collect()
}

/// A group for each time: in the order of visits, until a page comes again.
pub(super) fn by_time(pages: &[Vec<Seen>]) -> Vec<Vec<Digest>> {
    let mut all: Vec<(i64, usize, Digest)> = Vec::new();
    for (page, bodies) in pages.iter().enumerate() {
        all.extend(bodies.iter().map(|seen| (seen.visited_at_s, page, seen.digest)));
    }
    all.sort_unstable_by_key(|(visited_at_s, page, _)| (*visited_at_s, *page));
    let mut groups: Vec<Vec<Digest>> = Vec::new();
    let mut in_group = BTreeSet::new();
    for (_, page, digest) in all {
        if in_group.contains(&page) || groups.is_empty() {
            in_group.clear();
            groups.push(Vec::new());
        }
        in_group.insert(page);
        groups.last_mut().into_iter().for_each(|group| group.push(digest));
    }
    groups
}

/// How bodies that are in frames already are arranged, as their pages show it.
#[derive(Default)]
pub(super) struct Votes {
    by_page: usize,
    by_time: usize,
}

impl Votes {
    /// Takes the frames of a page's bodies, and which of the frame's bodies each is.
    pub(super) fn add(&mut self, places: &[(Location, usize)]) {
        let Some([first, second]) = places.first_chunk() else { return };
        let is_next = first.0 == second.0 && first.1.abs_diff(second.1) <= 1;
        if is_next { self.by_page += 1 } else { self.by_time += 1 }
    }

    pub(super) fn are_enough(&self) -> bool {
        self.by_page + self.by_time >= ENOUGH_VOTES
    }

    pub(super) fn most(&self) -> Option<Arrangement> {
        match (self.by_page, self.by_time) {
            (0, 0) => None,
            (by_page, by_time) if by_time > by_page => Some(Arrangement::ByTime),
            _ => Some(Arrangement::ByPage),
        }
    }
}

/// Some of the pages, those in a row that frames take in a row. `length` says how long a body is.
pub(super) fn sample(
    arranged: &[Page],
    pages: &[Vec<Seen>],
    length: &dyn Fn(&Digest) -> Result<u64, StoreError>,
) -> Result<Vec<Vec<Seen>>, StoreError> {
    let by_first: BTreeMap<Digest, &Vec<Seen>> =
        pages.iter().rev().filter_map(|page| Some((page.first()?.digest, page))).collect();
    let mut taken = Vec::new();
    let mut end = 0;
    for place in 0..SAMPLE_PLACES {
        let (mut bytes, mut bodies) = (0, 0);
        let begin = (arranged.len() * place / SAMPLE_PLACES).max(end);
        end = begin;
        for page in &arranged[begin..] {
            if bytes >= SAMPLE_BYTES / SAMPLE_PLACES as u64
                || bodies >= SAMPLE_BODIES / SAMPLE_PLACES
            {
                break;
            }
            end += 1;
            let Some(page) = page.bodies.first().and_then(|digest| by_first.get(digest)) else {
                continue;
            };
            for seen in *page {
                bytes += length(&seen.digest)?;
            }
            bodies += page.len();
            taken.push((*page).clone());
        }
    }
    Ok(taken)
}

/// Whether frames by time are enough smaller than frames by page.
pub(super) fn is_smaller_by_time(
    sample: &[Vec<Seen>],
    options: &CompactOptions,
    read: Read<'_>,
) -> Result<bool, StoreError> {
    // Then the one is the other.
    if sample.len() < 2 || sample.iter().all(|page| page.len() < 2) {
        return Ok(false);
    }
    let mut bodies: BTreeMap<Digest, Vec<u8>> = BTreeMap::new();
    let mut bytes = 0;
    for seen in sample.iter().flatten() {
        if bytes < SAMPLE_BYTES && !bodies.contains_key(&seen.digest) {
            let body = read(&seen.digest)?.unwrap_or_default();
            bytes += body.len() as u64;
            bodies.insert(seen.digest, body);
        }
    }
    let weigh = |groups, arrangement| weigh(groups, &bodies, options, arrangement);
    let page_bytes = weigh(by_page(sample), Arrangement::ByPage)?;
    let time_bytes = weigh(by_time(sample), Arrangement::ByTime)?;
    Ok(time_bytes + page_bytes / WORTHWHILE_PART < page_bytes)
}

/// What these groups take in frames, compressed quickly.
fn weigh(
    groups: Vec<Vec<Digest>>,
    bodies: &BTreeMap<Digest, Vec<u8>>,
    options: &CompactOptions,
    arrangement: Arrangement,
) -> Result<u64, StoreError> {
    let limits = Limits::new(options, Class::Html, arrangement);
    let mut frames: Vec<Vec<Digest>> = vec![Vec::new()];
    let mut placed = BTreeSet::new();
    let mut filled = 0;
    let mut shown = Vec::new();
    for group in groups {
        let mut begins_group = true;
        for digest in group.into_iter().filter(|digest| placed.insert(*digest)) {
            let bytes = bodies.get(&digest).map_or(0, Vec::len);
            let in_frame = frames.last().map_or(0, Vec::len);
            if limits.is_full((filled, in_frame), bytes, begins_group) {
                filled = 0;
                frames.push(Vec::new());
            }
            if arrangement == Arrangement::ByPage && !begins_group {
                shown.pop();
            }
            shown.push(digest);
            begins_group = false;
            filled += bytes;
            frames.last_mut().into_iter().for_each(|frame| frame.push(digest));
        }
    }
    let read = |digest: &Digest| Ok(bodies.get(digest).cloned());
    let all_bytes = bodies.values().map(|body| body.len() as u64).sum();
    let limit_bytes = limits.prefix_bytes(bodies.len(), all_bytes);
    let prefix = prefix::choose(&shown, frames.len(), limit_bytes, &read)?;
    let mut bytes = squeeze::compress(&prefix, TRIAL_LEVEL, b"").len() as u64;
    for frame in frames {
        let raw: Vec<u8> =
            frame.iter().filter_map(|digest| bodies.get(digest)).flatten().copied().collect();
        bytes += squeeze::compress(&raw, TRIAL_LEVEL, &prefix).len() as u64;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(page: u8, visited_at_s: i64) -> Seen {
        Seen {
            digest: Digest([page, visited_at_s as u8].repeat(16).try_into().unwrap()),
            visited_at_s,
        }
    }

    #[test]
    fn a_group_by_time_ends_where_a_page_comes_again() {
        let pages =
            [vec![seen(1, 10), seen(1, 20)], vec![seen(2, 11)], vec![seen(3, 12), seen(3, 40)]];
        let groups = by_time(&pages);
        let wanted = [vec![seen(1, 10), seen(2, 11), seen(3, 12)], vec![seen(1, 20), seen(3, 40)]];
        assert_eq!(groups, by_page(&wanted));
        assert!(by_time(&[]).is_empty());
    }

    #[test]
    fn neighbours_in_a_frame_show_how_it_is_arranged() {
        let place = |offset| Location { pack: 1, offset };
        let mut votes = Votes::default();
        votes.add(&[(place(0), 3)]);
        assert_eq!(votes.most(), None);
        votes.add(&[(place(0), 3), (place(0), 4)]);
        assert_eq!(votes.most(), Some(Arrangement::ByPage));
        votes.add(&[(place(0), 3), (place(0), 9)]);
        votes.add(&[(place(0), 3), (place(7), 4)]);
        assert_eq!(votes.most(), Some(Arrangement::ByTime));
    }

    #[test]
    fn a_sample_takes_pages_in_a_row_from_all_over_the_site() {
        let pages: Vec<Vec<Seen>> =
            (0..200).map(|page| vec![seen(page, 1), seen(page, 2)]).collect();
        let arranged: Vec<Page> =
            by_page(&pages).into_iter().map(|bodies| Page { bodies, is_at: None }).collect();
        let all = sample(&arranged, &pages, &|_| Ok(1)).unwrap();
        assert_eq!(all, pages);
        let some = sample(&arranged, &pages, &|_| Ok(SAMPLE_BYTES / 32)).unwrap();
        assert_eq!(some.len(), 16);
        assert!([0, 50, 100, 150].iter().all(|page| some.contains(&pages[*page])));
    }
}
