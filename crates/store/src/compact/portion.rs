//! A site in portions: so many of its bodies that what is known of them fits into memory, however
//! large the site is. Most sites are one portion.

use crate::Digest;
use crate::error::StoreError;
use crate::similar::hash;

/// A version in the order of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) url: String,
    pub(super) visited_at_s: i64,
    pub(super) id: i64,
    pub(super) digest: Digest,
}

impl Item {
    fn seen(&self) -> Seen {
        Seen { digest: self.digest, visited_at_s: self.visited_at_s }
    }
}

/// A body of a page, and when the page was visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) digest: Digest,
    pub(super) visited_at_s: i64,
}

/// Pages that are arranged together.
pub(super) struct Portion {
    /// The bodies of each page.
    pub(super) pages: Vec<Vec<Seen>>,
    /// The next portion begins behind this.
    pub(super) last: Item,
}

/// Where a portion might end: in front of which page, behind which version.
struct End {
    hash: u64,
    page: usize,
    last: Item,
}

impl Portion {
    /// Takes what `next` gives, in order: all of it if that is fewer than `max_versions`, or else at
    /// least half as many. Of the pages in front of which the portion may end, the one with the
    /// smallest hash is chosen: when pages come and go, or get new versions, that is mostly the
    /// same page as before, so that frames still hold pages of one portion.
    pub(super) fn take(
        max_versions: usize,
        next: &mut dyn FnMut() -> Result<Option<Item>, StoreError>,
    ) -> Result<Option<Self>, StoreError> {
        let Some(first) = next()? else { return Ok(None) };
        let mut pages = vec![vec![first.seen()]];
        let mut last = first;
        let mut end: Option<End> = None;
        let mut versions = 1;
        while let Some(item) = next()? {
            if item.url == last.url {
                pages.last_mut().into_iter().for_each(|bodies| bodies.push(item.seen()));
            } else {
                let hash = hash(item.url.as_bytes());
                if versions >= max_versions / 2 && end.as_ref().is_none_or(|end| hash < end.hash) {
                    end = Some(End { hash, page: pages.len(), last });
                }
                pages.push(vec![item.seen()]);
            }
            last = item;
            versions += 1;
            if versions < max_versions {
                continue;
            }
            return Ok(Some(match end {
                Some(end) => {
                    pages.truncate(end.page);
                    Self { pages, last: end.last }
                }
                // One page with more versions than a portion takes.
                None => Self { pages, last },
            }));
        }
        Ok(Some(Self { pages, last }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_VERSIONS: usize = 1000;

    /// So many versions of each of these pages, in order.
    fn items(pages: impl Iterator<Item = (usize, usize)>) -> Vec<Item> {
        let item = |(page, version): (usize, usize)| Item {
            url: format!("page-{page:09}"),
            visited_at_s: version as i64,
            id: 0,
            digest: Digest([page as u8; 32]),
        };
        pages.flat_map(|(page, versions)| (0..versions).map(move |v| (page, v))).map(item).collect()
    }

    /// The last item of each portion; all items must be in some portion, in order.
    fn ends(items: &[Item]) -> Vec<Item> {
        let mut from = 0;
        let mut ends = Vec::new();
        loop {
            let mut at = from;
            let mut next = || {
                at += 1;
                Ok(items.get(at - 1).cloned())
            };
            let Some(portion) = Portion::take(MAX_VERSIONS, &mut next).unwrap() else {
                return ends;
            };
            let bodies: Vec<Seen> = portion.pages.concat();
            assert!(bodies.len() <= MAX_VERSIONS);
            assert!(
                bodies.iter().copied().eq(items[from..][..bodies.len()].iter().map(Item::seen))
            );
            from += bodies.len();
            assert_eq!(items[from - 1], portion.last);
            ends.push(portion.last);
        }
    }

    #[test]
    fn a_site_of_fewer_versions_is_one_portion() {
        let site = items((0..166).map(|page| (page, 6)));
        assert_eq!(ends(&site), [site[site.len() - 1].clone()]);
        assert!(ends(&[]).is_empty());
    }

    #[test]
    fn a_large_site_is_cut_between_pages_and_a_page_of_many_versions_inside() {
        let pages = (0..1000).map(|page| (page, 5)).chain([(1000, 3000)]);
        let site = items(pages);
        let ends = ends(&site);
        assert!(ends.len() >= 8, "{} portions", ends.len());
        for end in ends.iter().filter(|end| end.url.as_str() < "page-000001000") {
            assert_eq!(end.visited_at_s, 4, "{end:?}");
        }
    }

    #[test]
    fn portions_mostly_stay_the_same_when_a_few_pages_come_and_get_versions() {
        let before = items((0..20_000).filter(|page| page % 1000 != 3).map(|page| (page, 2)));
        let after = items((0..20_000).map(|page| (page, 2 + usize::from(page % 500 == 0))));
        let (before, after) = (ends(&before), ends(&after));
        let same = before.iter().filter(|end| after.iter().any(|a| a.url == end.url)).count();
        assert!(same * 10 >= before.len() * 8, "{same} of {} are the same", before.len());
    }
}
