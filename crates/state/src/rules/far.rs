//! Links to pages of other partitions.

/// The links of a page that lead to other partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FarLinks {
    /// The hashes of all their URLs, ascending.
    pub(crate) kept: Vec<u64>,
    /// Positions of those that are new, in the order in which they were given.
    pub(crate) fresh: Vec<usize>,
}

/// The links of a page that lead to other partitions now, by the hashes of their URLs; `None` if
/// they are as before.
pub(crate) fn far_links(before: &[u64], now: &[u64]) -> Option<FarLinks> {
    let mut kept = now.to_vec();
    kept.sort_unstable();
    kept.dedup();
    if kept == before {
        return None;
    }
    let mut fresh: Vec<usize> = Vec::new();
    for (at, hash) in now.iter().enumerate() {
        if before.binary_search(hash).is_err() && !fresh.iter().any(|&at| now[at] == *hash) {
            fresh.push(at);
        }
    }
    Some(FarLinks { kept, fresh })
}

/// What each of a page's links gets of what it gives, in millionths.
pub(crate) fn share_micros(gives_micros: u64, links: usize) -> u64 {
    gives_micros / links.max(1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_that_were_not_there_are_new() {
        for (before, now, kept, fresh) in [
            (vec![], vec![3, 2, 3], vec![2, 3], vec![0, 1]),
            (vec![2], vec![3, 2], vec![2, 3], vec![0]),
            (vec![2, 3], vec![3], vec![3], vec![]),
        ] {
            let expected = Some(FarLinks { kept, fresh });
            assert_eq!(far_links(&before, &now), expected, "{before:?} {now:?}");
        }
        assert_eq!(far_links(&[2, 3], &[3, 2, 2]), None, "as before");
        assert_eq!(far_links(&[], &[]), None);
    }

    #[test]
    fn shares_are_never_more_than_what_is_given() {
        assert_eq!(
            [0, 1, 3].map(|links| share_micros(1_000_000, links)),
            [1_000_000, 1_000_000, 333_333]
        );
    }
}
