//! Pages of a site in the order in which frames take them: beside the page that resembles them,
//! wherever in the site that is. A manual that is there once for each release, or an article
//! under two addresses, is then compressed against its like and not only against its directory.

use crate::Digest;
use crate::cut::cut;
use crate::error::StoreError;
use crate::prefix::Read;
use crate::similar::hash;

/// Blocks that a page is compared by: those with the smallest hashes, so that two pages that
/// share most blocks are compared by mostly the same ones.
const FEATURES: usize = 64;
/// A block of more pages than this is the site's, not the pages'. Where few pages are new, it is
/// a block of more than this part of them.
const MAX_SHARED_BY: usize = 16;
const MAX_SHARED_PART: usize = 4;
/// Pages share at least this many such blocks to be put side by side.
const MIN_SHARED: u32 = 3;
/// Pages that are compared, about two kilobytes of memory each; further ones of the portion stay in
/// order.
const MAX_PAGES: usize = 1 << 14;

/// A page and its bodies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) bodies: Vec<Digest>,
    /// Where the page is already, in the order of the packs; none for a page that is new.
    pub(super) is_at: Option<(u64, u64, u64)>,
}

/// Puts pages in order, given in the order of their addresses. Pages that are in frames keep
/// their order, so that these can be copied; new ones follow the page that they resemble among
/// the new ones, or else their neighbour by address.
pub(super) fn arrange(pages: Vec<Page>, read: Read<'_>) -> Result<Vec<Page>, StoreError> {
    let parents = parents(&pages, read)?;
    Ok(in_frames_order(pages, &parents))
}

/// The same with the page in front of each new one, if there is one that it must follow.
pub(super) fn in_frames_order(pages: Vec<Page>, parents: &[Option<usize>]) -> Vec<Page> {
    // The page after which each one goes; the last entry is for those at the very front.
    let mut behind: Vec<Vec<usize>> = vec![Vec::new(); pages.len() + 1];
    let mut neighbour = pages.len();
    let mut framed = Vec::new();
    for (at, page) in pages.iter().enumerate() {
        if page.is_at.is_some() {
            framed.push(at);
            neighbour = at;
        } else {
            behind[parents[at].unwrap_or(neighbour)].push(at);
        }
    }
    framed.sort_by_key(|at| pages[*at].is_at);
    let mut order = Vec::with_capacity(pages.len());
    let mut waiting: Vec<usize> = framed.into_iter().rev().collect();
    waiting.extend(behind[pages.len()].iter().rev());
    while let Some(at) = waiting.pop() {
        order.push(at);
        waiting.extend(behind[at].iter().rev());
    }
    let mut pages: Vec<Option<Page>> = pages.into_iter().map(Some).collect();
    order.into_iter().filter_map(|at| pages[at].take()).collect()
}

/// For each new page, the new one in front of it that it resembles most.
fn parents(pages: &[Page], read: Read<'_>) -> Result<Vec<Option<usize>>, StoreError> {
    let mut sketches: Vec<(usize, Vec<u64>)> = Vec::new();
    let is_new = |(_, page): &(usize, &Page)| page.is_at.is_none();
    for (at, page) in pages.iter().enumerate().filter(is_new).take(MAX_PAGES) {
        let newest = page.bodies.last().map(read).transpose()?.flatten();
        sketches.push((at, newest.map_or_else(Vec::new, |body| sketch(&body))));
    }
    // In a site without frames a page has no neighbour with a fixed position.
    let max_shared_by = match sketches.len() == pages.len() {
        true => MAX_SHARED_BY,
        false => MAX_SHARED_BY.min(sketches.len() / MAX_SHARED_PART),
    };
    let by_feature = ByFeature::new(&sketches);
    let mut parents = vec![None; pages.len()];
    let mut votes = vec![0u32; sketches.len()];
    for (number, (at, sketch)) in sketches.iter().enumerate() {
        let sharing = sketch.iter().map(|feature| by_feature.pages(*feature));
        let few: Vec<u32> = sharing
            .filter(|pages| pages.len() <= max_shared_by)
            .flatten()
            .map(|(_, other)| *other)
            .filter(|other| (*other as usize) < number)
            .collect();
        few.iter().for_each(|other| votes[*other as usize] += 1);
        // Of equals the nearest by address.
        let best = few.iter().max_by_key(|other| (votes[**other as usize], **other)).copied();
        parents[*at] = best
            .filter(|other| votes[*other as usize] >= MIN_SHARED)
            .map(|other| sketches[other as usize].0);
        few.iter().for_each(|other| votes[*other as usize] = 0);
    }
    Ok(parents)
}

/// Which pages have which features.
struct ByFeature(Vec<(u64, u32)>);

impl ByFeature {
    fn new(sketches: &[(usize, Vec<u64>)]) -> Self {
        let with_number = |(number, (_, sketch)): (usize, &(usize, Vec<u64>))| {
            sketch.iter().map(|feature| (*feature, number as u32)).collect::<Vec<_>>()
        };
        let mut all: Vec<_> = sketches.iter().enumerate().flat_map(with_number).collect();
        all.sort_unstable();
        Self(all)
    }

    /// In the order of their numbers.
    fn pages(&self, feature: u64) -> &[(u64, u32)] {
        let begin = self.0.partition_point(|(of, _)| *of < feature);
        let end = self.0[begin..].partition_point(|(of, _)| *of == feature);
        &self.0[begin..begin + end]
    }
}

fn sketch(body: &[u8]) -> Vec<u64> {
    let mut hashes: Vec<u64> = cut(body).map(hash).collect();
    hashes.sort_unstable();
    hashes.dedup();
    hashes.truncate(FEATURES);
    hashes
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// A page with the site's own blocks around the topic's.
    fn body(topic: &str, release: u32) -> Vec<u8> {
        let site = (0..40).map(|n| format!("<p>navigation that every page has, line {n}</p>"));
        let own = (0..40).map(|n| format!("<p>what {topic} does, in its paragraph {n}</p>"));
        let mut page: String = site.chain(own).collect();
        page.push_str(&format!("<p>of release {release}, written for it</p>"));
        page.into_bytes()
    }

    /// Names in the order in which they are arranged; names with a position are there already.
    fn arranged(bodies: &[(&str, Vec<u8>, Option<u64>)]) -> Vec<String> {
        let mut by_digest = BTreeMap::new();
        let mut pages = Vec::new();
        for (name, body, place) in bodies {
            let digest = Digest::of(name.as_bytes());
            by_digest.insert(digest, (name, body));
            let is_at = place.map(|offset| (1, offset, 0));
            pages.push(Page { bodies: vec![digest], is_at });
        }
        let read = |digest: &Digest| Ok(by_digest.get(digest).map(|(_, body)| (*body).clone()));
        let order = arrange(pages, &read).unwrap();
        order.iter().map(|page| (*by_digest[&page.bodies[0]].0).to_owned()).collect()
    }

    #[test]
    fn a_page_follows_its_like_of_another_directory() {
        let mut pages = Vec::new();
        let topics: Vec<String> = (0..20).map(|n| format!("topic{n}")).collect();
        let names: Vec<String> = ["dev/", ""]
            .iter()
            .flat_map(|folder| topics.iter().map(move |topic| format!("{folder}{topic}")))
            .collect();
        for (at, name) in names.iter().enumerate() {
            pages.push((name.as_str(), body(&topics[at % 20], (at / 20) as u32), None));
        }
        let order = arranged(&pages);
        for topic in &topics {
            let at = order.iter().position(|name| *name == format!("dev/{topic}")).unwrap();
            assert_eq!(order[at + 1], **topic);
        }
        assert_eq!(order.len(), 40);
    }

    #[test]
    fn what_is_in_frames_keeps_its_order_and_new_pages_follow_their_neighbour() {
        let page = |name| (name, body(name, 0), None);
        let framed = |name, at| (name, body(name, 0), Some(at));
        let order = arranged(&[
            page("a"),
            framed("b", 30),
            page("c"),
            page("d"),
            framed("e", 10),
            page("f"),
        ]);
        assert_eq!(order, ["a", "e", "f", "b", "c", "d"]);
    }

    #[test]
    fn a_body_that_cannot_be_read_leaves_its_page_where_it_is() {
        let pages: Vec<Page> =
            (0u8..5).map(|n| Page { bodies: vec![Digest::of(&[n])], is_at: None }).collect();
        assert_eq!(arrange(pages.clone(), &|_| Ok(None)).unwrap(), pages);
    }
}
