//! Links to pages of other partitions.

use crate::PartitionId;

/// A link to a page of another partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FarLink {
    /// The hash of the page's URL.
    pub(crate) hash: u64,
    /// The partition that has the page.
    pub(crate) to: PartitionId,
}

/// The links of a page that lead to other partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FarLinks {
    /// All of them, ascending.
    pub(crate) kept: Vec<FarLink>,
    /// Positions of those that are new, in the order in which they were given.
    pub(crate) fresh: Vec<usize>,
}

/// The links of a page that lead to other partitions now; `None` if they are as before.
pub(crate) fn far_links(before: &[FarLink], now: &[FarLink]) -> Option<FarLinks> {
    let mut kept = now.to_vec();
    kept.sort_unstable();
    kept.dedup();
    if kept == before {
        return None;
    }
    let mut fresh: Vec<usize> = Vec::new();
    for (at, link) in now.iter().enumerate() {
        if before.binary_search(link).is_err() && !fresh.iter().any(|&at| now[at] == *link) {
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
        let links = |hashes: &[u64]| -> Vec<FarLink> {
            hashes.iter().map(|&hash| FarLink { hash, to: PartitionId(hash as u32 % 2) }).collect()
        };
        for (before, now, kept, fresh) in [
            (&[][..], &[3, 2, 3][..], &[2, 3][..], vec![0, 1]),
            (&[2], &[3, 2], &[2, 3], vec![0]),
            (&[2, 3], &[3], &[3], vec![]),
        ] {
            let expected = Some(FarLinks { kept: links(kept), fresh });
            assert_eq!(far_links(&links(before), &links(now)), expected, "{before:?} {now:?}");
        }
        assert_eq!(far_links(&links(&[2, 3]), &links(&[3, 2, 2])), None, "as before");
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
