//! A site's structure for people: tops with their members, families, and what changed together.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::auto::AutoOptions;
use crate::graph::PageIndex;
use crate::paths::family_of;
use crate::rounds_by::RoundsBy;
use crate::site::map::MappedSite;
use crate::site::memory::ROUNDS_KEPT;
use crate::split::{SiteSplit, SplitOptions};

/// Sites and families shown, the largest first.
const SHOWN: usize = 200;
/// Pages listed for each.
const NAMED: usize = 20;

/// How often pages changed together in the last rounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Together {
    /// Rounds that saw at least two of them.
    pub rounds: u32,
    /// Rounds in which all that were seen had changed.
    pub all: u32,
    /// Rounds in which some had changed.
    pub some: u32,
    /// Visits to them.
    pub seen: u32,
    /// Visits that found them changed.
    pub changed: u32,
}

/// One of the sites that the method finds on the server: its tops decide about its members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TopsView {
    /// Paths of the tops.
    pub tops: Vec<String>,
    /// Depth of the shallowest top.
    pub depth: u32,
    /// Paths of members, at most twenty.
    pub members: Vec<String>,
    /// Number of members.
    pub member_count: usize,
    /// Rounds in which a top was seen.
    pub top_seen: u32,
    /// Of these, the rounds in which a top had changed.
    pub top_changed: u32,
    /// Visits to members in rounds in which a top had changed, and how many of these found a
    /// change.
    pub under_changed: (u32, u32),
    /// The same for rounds in which no top had changed.
    pub under_same: (u32, u32),
}

/// Pages whose paths differ in numbers alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FamilyView {
    /// The path with numbers masked.
    pub family: String,
    /// Number of pages.
    pub pages: usize,
    /// How often they changed together.
    pub together: Together,
}

/// A site's structure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StructureView {
    /// Pages of the site.
    pub pages: usize,
    /// Links between them.
    pub links: usize,
    /// Rounds so far that chose their pages; the last eight are counted below.
    pub rounds: u32,
    /// The method whose sites are shown; B if rounds choose otherwise.
    pub method: RoundsBy,
    /// Number of sites it finds.
    pub site_count: usize,
    /// The largest of them.
    pub sites: Vec<TopsView>,
    /// Number of families with at least two pages.
    pub family_count: usize,
    /// The largest of them.
    pub families: Vec<FamilyView>,
    /// How much pages of one server, directory, family and template shift together, as learnt; 0
    /// where nothing is.
    pub learnt_shifts: BTreeMap<&'static str, f64>,
}

impl MappedSite {
    /// The structure, for people.
    #[must_use]
    pub fn view(&self, by: RoundsBy) -> StructureView {
        let options = SplitOptions::default();
        let method = if by == RoundsBy::A { RoundsBy::A } else { RoundsBy::B };
        let split = match method {
            RoundsBy::A => SiteSplit::by_directory(&self.graph, options),
            _ => SiteSplit::by_links(&self.graph, options),
        };
        let mut order: Vec<usize> = (0..split.len()).collect();
        order.sort_by_key(|&site| (std::cmp::Reverse(split.members(site).count()), site));
        order.truncate(SHOWN);
        let mut sites: Vec<TopsView> =
            order.into_iter().map(|site| self.tops_view(&split, site)).collect();
        sites.sort_by(|a, b| (a.depth, &a.tops).cmp(&(b.depth, &b.tops)));
        let (family_count, families) = self.families();
        StructureView {
            pages: self.graph.page_count(),
            links: self.graph.link_count(),
            rounds: self.memory.rounds,
            method,
            site_count: split.len(),
            sites,
            family_count,
            families,
            learnt_shifts: self.beliefs.learnt_shifts(&AutoOptions::default()),
        }
    }

    fn path(&self, page: PageIndex) -> String {
        format!("/{}", self.paths[page.at()])
    }

    fn bits(&self, page: PageIndex) -> (u8, u8) {
        (self.memory.seen[page.at()], self.memory.changed[page.at()])
    }

    fn tops_view(&self, split: &SiteSplit, site: usize) -> TopsView {
        let of_tops = split.tops(site).map(|top| self.bits(top));
        let (seen, changed) = of_tops.fold((0, 0), |sum, bits| (sum.0 | bits.0, sum.1 | bits.1));
        let (mut under_changed, mut under_same) = ((0, 0), (0, 0));
        for (member_seen, member_changed) in split.members(site).map(|page| self.bits(page)) {
            let same = seen & !changed;
            under_changed.0 += (member_seen & changed).count_ones();
            under_changed.1 += (member_changed & changed).count_ones();
            under_same.0 += (member_seen & same).count_ones();
            under_same.1 += (member_changed & same).count_ones();
        }
        TopsView {
            tops: split.tops(site).take(NAMED).map(|top| self.path(top)).collect(),
            depth: split.tops(site).filter_map(|top| self.graph.depth(top)).min().unwrap_or(0),
            members: split.members(site).take(NAMED).map(|page| self.path(page)).collect(),
            member_count: split.members(site).count(),
            top_seen: seen.count_ones(),
            top_changed: changed.count_ones(),
            under_changed,
            under_same,
        }
    }

    fn families(&self) -> (usize, Vec<FamilyView>) {
        let mut members: BTreeMap<u32, Vec<PageIndex>> = BTreeMap::new();
        for page in (0..self.graph.page_count() as u32).map(PageIndex) {
            members.entry(self.graph.family(page)).or_default().push(page);
        }
        let mut families: Vec<Vec<PageIndex>> =
            members.into_values().filter(|pages| pages.len() > 1).collect();
        families.sort_by_key(|pages| (std::cmp::Reverse(pages.len()), pages[0]));
        let count = families.len();
        let shown = families.iter().take(SHOWN).map(|pages| FamilyView {
            family: format!("/{}", family_of(&self.paths[pages[0].at()])),
            pages: pages.len(),
            together: self.together(pages),
        });
        (count, shown.collect())
    }

    fn together(&self, pages: &[PageIndex]) -> Together {
        let mut together = Together::default();
        for round in 0..ROUNDS_KEPT {
            let count = |of: fn((u8, u8)) -> u8| {
                pages.iter().filter(|&&page| of(self.bits(page)) >> round & 1 == 1).count() as u32
            };
            let (seen, changed) = (count(|bits| bits.0), count(|bits| bits.1));
            together.seen += seen;
            together.changed += changed;
            if seen > 1 {
                together.rounds += 1;
                together.all += u32::from(changed == seen);
                together.some += u32::from(changed > 0 && changed < seen);
            }
        }
        together
    }
}

#[cfg(test)]
mod tests {
    use crate::auto::{AutoOptions, Evidence, SharedBeliefs};
    use crate::round::Seen;
    use crate::site::map::{MapPage, MappedSite, SiteMap};
    use crate::{RoundsBy, SitePlan};

    #[test]
    fn what_changed_together_is_counted_over_the_last_rounds() {
        let options = AutoOptions::default();
        let page = |key: i64, path: &str| MapPage {
            key,
            path: path.to_owned(),
            alive: true,
            fragments: Vec::new(),
        };
        let map = SiteMap {
            pages: vec![page(1, ""), page(2, "n/"), page(3, "n/1.html"), page(4, "n/2.html")],
            links: vec![(0, vec![1]), (1, vec![2, 3])],
            tops: vec![0],
        };
        let mut kept = Vec::new();
        for round in 0..12 {
            let site = MappedSite::new(map.clone(), &kept, &options).unwrap();
            let known = |_| Some(Evidence::default());
            let shared = SharedBeliefs::new(&options);
            let mut plan = SitePlan::new(RoundsBy::A, site, known, shared, options.clone());
            // The index changes in every other round, and the pages below it with it.
            let seen = if round % 2 == 0 { Seen::Changed } else { Seen::Same };
            for key in 2..=4 {
                plan.seen(key, seen, None);
            }
            kept = plan.finish().0;
        }
        let view = MappedSite::new(map, &kept, &options).unwrap().view(RoundsBy::A);
        assert_eq!((view.pages, view.rounds, view.site_count), (4, 12, 2));
        let news = view.sites.iter().find(|site| site.tops == ["/n/"]).unwrap();
        assert_eq!((news.top_seen, news.top_changed, news.member_count), (8, 4, 2));
        assert_eq!((news.under_changed, news.under_same), ((8, 8), (8, 0)));
        let family = &view.families[0];
        assert_eq!((family.family.as_str(), family.pages), ("/n/#.html", 2));
        assert_eq!((family.together.rounds, family.together.all, family.together.some), (8, 4, 0));
    }
}
