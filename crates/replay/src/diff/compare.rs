//! What two sequences have in common (Myers, "An O(ND) difference algorithm", 1986).

use std::ops::Range;

/// The most differences searched for; sequences that differ more are compared by what only one of
/// them has.
const MAX_EDITS: usize = 1000;

/// A run of two sequences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// In both.
    Same(Range<usize>, Range<usize>),
    /// Removed, added or replaced; one of the ranges may be empty.
    Changed(Range<usize>, Range<usize>),
}

/// Splits both sequences into runs that are the same or changed.
pub(crate) fn compare<T: PartialEq>(old: &[T], new: &[T]) -> Vec<Change> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let rest = old.iter().rev().zip(new.iter().rev());
    let tail = rest.take(old.len().min(new.len()) - head).take_while(|(a, b)| a == b).count();
    let (old_end, new_end) = (old.len() - tail, new.len() - tail);
    let mut pairs: Vec<(usize, usize)> = (0..head).map(|i| (i, i)).collect();
    let inner = common(&old[head..old_end], &new[head..new_end]);
    pairs.extend(inner.into_iter().map(|(a, b)| (a + head, b + head)));
    pairs.extend((0..tail).map(|i| (old_end + i, new_end + i)));
    runs(&pairs, old.len(), new.len())
}

/// Pairs of positions with equal elements, in order.
fn common<T: PartialEq>(old: &[T], new: &[T]) -> Vec<(usize, usize)> {
    let (n, m) = (old.len() as isize, new.len() as isize);
    if n == 0 || m == 0 {
        return Vec::new();
    }
    let max = (n + m).min(MAX_EDITS as isize);
    let offset = max + 1;
    let mut furthest = vec![0_isize; (2 * max + 3) as usize];
    let mut history: Vec<Vec<isize>> = Vec::new();
    for edits in 0..=max {
        // Only the diagonals reached so far are stored, so that memory grows with the edits.
        history
            .push(furthest[(offset - edits - 1) as usize..=(offset + edits + 1) as usize].to_vec());
        let mut diagonal = -edits;
        while diagonal <= edits {
            let at = |d: isize| furthest[(offset + d) as usize];
            let goes_down =
                diagonal == -edits || (diagonal != edits && at(diagonal - 1) < at(diagonal + 1));
            let mut x = if goes_down { at(diagonal + 1) } else { at(diagonal - 1) + 1 };
            while x < n && x - diagonal < m && old[x as usize] == new[(x - diagonal) as usize] {
                x += 1;
            }
            furthest[(offset + diagonal) as usize] = x;
            if x >= n && x - diagonal >= m {
                return path(&history, n, m);
            }
            diagonal += 2;
        }
    }
    Vec::new()
}

/// Walks back from the end along the furthest points and collects the common elements.
fn path(history: &[Vec<isize>], n: isize, m: isize) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    let (mut x, mut y) = (n, m);
    for (edits, row) in history.iter().enumerate().rev() {
        let edits = edits as isize;
        let at = |d: isize| row[(d + edits + 1) as usize];
        let diagonal = x - y;
        let goes_down =
            diagonal == -edits || (diagonal != edits && at(diagonal - 1) < at(diagonal + 1));
        let before = if goes_down { diagonal + 1 } else { diagonal - 1 };
        let (from_x, from_y) = if edits == 0 { (0, 0) } else { (at(before), at(before) - before) };
        while x > from_x && y > from_y {
            x -= 1;
            y -= 1;
            pairs.push((x as usize, y as usize));
        }
        (x, y) = (from_x, from_y);
    }
    pairs.reverse();
    pairs
}

fn runs(pairs: &[(usize, usize)], old_length: usize, new_length: usize) -> Vec<Change> {
    let mut runs: Vec<Change> = Vec::new();
    let (mut x, mut y) = (0, 0);
    for &(a, b) in pairs {
        if a > x || b > y {
            runs.push(Change::Changed(x..a, y..b));
        }
        match runs.last_mut() {
            Some(Change::Same(old, new)) if old.end == a && new.end == b => {
                old.end += 1;
                new.end += 1;
            }
            _ => runs.push(Change::Same(a..a + 1, b..b + 1)),
        }
        (x, y) = (a + 1, b + 1);
    }
    if x < old_length || y < new_length {
        runs.push(Change::Changed(x..old_length, y..new_length));
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_in_both_stays_and_the_rest_is_named() {
        let old: Vec<char> = "abcabba".chars().collect();
        let new: Vec<char> = "cbabac".chars().collect();
        let same: usize = compare(&old, &new)
            .iter()
            .map(|c| if let Change::Same(a, _) = c { a.len() } else { 0 })
            .sum();
        assert_eq!(same, 4);
    }

    #[test]
    fn sequences_that_differ_entirely_are_one_change() {
        let old: Vec<u32> = (0..3000).collect();
        let new: Vec<u32> = (5000..8000).collect();
        assert_eq!(compare(&old, &new), [Change::Changed(0..3000, 0..3000)]);
    }

    proptest! {
        #[test]
        fn the_runs_make_both_sequences(old in "[ab]{0,30}", new in "[ab]{0,30}") {
            let (old, new) = (old.into_bytes(), new.into_bytes());
            let (mut x, mut y) = (0, 0);
            for change in compare(&old, &new) {
                let (a, b, is_same) = match change {
                    Change::Same(a, b) => (a, b, true),
                    Change::Changed(a, b) => (a, b, false),
                };
                prop_assert_eq!((a.start, b.start), (x, y));
                (x, y) = (a.end, b.end);
                if is_same {
                    prop_assert_eq!(&old[a], &new[b]);
                }
            }
            prop_assert_eq!((x, y), (old.len(), new.len()));
        }
    }
}
