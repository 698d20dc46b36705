//! Finds the segments that two versions have in common, in order.

use std::ops::Range;

/// How often a stretch between two common segments is searched again for more of them.
const MAX_ROUNDS: usize = 12;

/// Pairs of positions at which `old` and `new` agree, rising in both.
///
/// Common beginnings and ends are taken first, then segments that occur once in both (Cohen's
/// patience diff), then the same within the stretches between those. The difference is not the
/// shortest possible, but it takes n log n time on any input and puts changes where a reader would.
pub(super) fn align(old: &[u64], new: &[u64]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    align_stretch(old, new, Stretch { old: 0..old.len(), new: 0..new.len() }, 0, &mut pairs);
    pairs
}

#[derive(Clone)]
struct Stretch {
    old: Range<usize>,
    new: Range<usize>,
}

fn align_stretch(
    old: &[u64],
    new: &[u64],
    mut stretch: Stretch,
    round: usize,
    pairs: &mut Vec<(usize, usize)>,
) {
    let (a, b) = (&old[stretch.old.clone()], &new[stretch.new.clone()]);
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    pairs.extend((0..start).map(|at| (stretch.old.start + at, stretch.new.start + at)));
    stretch.old.start += start;
    stretch.new.start += start;
    let (a, b) = (&a[start..], &b[start..]);
    let end = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    stretch.old.end -= end;
    stretch.new.end -= end;
    if !stretch.old.is_empty() && !stretch.new.is_empty() && round < MAX_ROUNDS {
        let mut from = (stretch.old.start, stretch.new.start);
        for (i, j) in anchors(old, new, &stretch) {
            let between = Stretch { old: from.0..i, new: from.1..j };
            align_stretch(old, new, between, round + 1, pairs);
            pairs.push((i, j));
            from = (i + 1, j + 1);
        }
        if from != (stretch.old.start, stretch.new.start) {
            let behind = Stretch { old: from.0..stretch.old.end, new: from.1..stretch.new.end };
            align_stretch(old, new, behind, round + 1, pairs);
        }
    }
    pairs.extend((0..end).map(|at| (stretch.old.end + at, stretch.new.end + at)));
}

/// Segments that occur once in both stretches, reduced to a sequence that rises in both.
fn anchors(old: &[u64], new: &[u64], stretch: &Stretch) -> Vec<(usize, usize)> {
    let in_old = once(old, stretch.old.clone());
    let in_new = once(new, stretch.new.clone());
    let mut common = Vec::new();
    let mut rest = in_new.as_slice();
    for (hash, i) in in_old {
        rest = &rest[rest.partition_point(|(other, _)| *other < hash)..];
        if let Some((_, j)) = rest.first().filter(|(other, _)| *other == hash) {
            common.push((i, *j));
        }
    }
    common.sort_unstable();
    longest_rising(&common)
}

/// The hashes that occur once, sorted, with their positions.
fn once(hashes: &[u64], range: Range<usize>) -> Vec<(u64, usize)> {
    let mut all: Vec<(u64, usize)> = range.map(|at| (hashes[at], at)).collect();
    all.sort_unstable();
    all.chunk_by(|a, b| a.0 == b.0).filter(|same| same.len() == 1).map(|same| same[0]).collect()
}

/// The longest part of the pairs, sorted by the first number, that rises in the second as well.
fn longest_rising(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (at, (_, j)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < *j);
        before.push(length.checked_sub(1).map(|last| ends[last]));
        if length == ends.len() {
            ends.push(at);
        } else {
            ends[length] = at;
        }
    }
    let mut rising = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied();
    while let Some(at) = next {
        rising.push(pairs[at]);
        next = before[at];
    }
    rising.reverse();
    rising
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn insertions_removals_and_changes_are_found() {
        assert_eq!(align(&[1, 2, 3], &[1, 2, 3]), [(0, 0), (1, 1), (2, 2)]);
        assert_eq!(align(&[1, 2, 3], &[1, 9, 2, 3]), [(0, 0), (1, 2), (2, 3)]);
        assert_eq!(align(&[1, 2, 3], &[1, 8, 3]), [(0, 0), (2, 2)]);
        assert_eq!(align(&[7, 1, 7, 2, 7], &[7, 2, 7, 1, 7]).len(), 3);
        assert_eq!(align(&[], &[1]), []);
        // A repeated segment between two anchors is found in the second round.
        assert_eq!(align(&[5, 1, 5, 5, 2, 6], &[4, 1, 5, 3, 2, 8]), [(1, 1), (2, 2), (4, 4)]);
    }

    proptest! {
        #[test]
        fn pairs_agree_and_rise(
            old in prop::collection::vec(0_u64..12, 0..60),
            new in prop::collection::vec(0_u64..12, 0..60),
        ) {
            let pairs = align(&old, &new);
            prop_assert!(pairs.iter().all(|(i, j)| old[*i] == new[*j]));
            prop_assert!(pairs.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 < w[1].1));
        }

        #[test]
        fn what_is_only_inserted_leaves_all_the_rest(
            old in prop::collection::vec(0_u64..1000, 0..60), at in 0_usize..60, inserted in 2000_u64..3000
        ) {
            let mut new = old.clone();
            new.insert(at.min(old.len()), inserted);
            prop_assert_eq!(align(&old, &new).len(), old.len());
        }
    }
}
