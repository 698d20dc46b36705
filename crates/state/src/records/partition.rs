//! Partitions, and the mail between them.

use nenrin_lang::Hint;
use nenrin_urls::{CanonicalUrl, Server};
use serde::{Deserialize, Serialize};

use crate::{Discovered, Nth, SiteId};

/// The number of a partition, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PartitionId(pub u32);

/// How the servers of an archive are divided, fixed when it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partitioning {
    /// How many partitions there are, at least 1.
    pub count: u32,
}

impl Partitioning {
    /// One partition that has every server.
    pub const SINGLE: Self = Self { count: 1 };

    /// The partition of a server: by a hash of its name, so that everyone finds the same one.
    pub fn of(self, server: &Server) -> PartitionId {
        if self.count <= 1 {
            return PartitionId(0);
        }
        let mut first = [0; 8];
        first.copy_from_slice(&blake3::hash(server.as_str().as_bytes()).as_bytes()[..8]);
        PartitionId((u64::from_le_bytes(first) % u64::from(self.count)) as u32)
    }

    /// Every partition.
    pub fn all(self) -> impl Iterator<Item = PartitionId> {
        (0..self.count.max(1)).map(PartitionId)
    }
}

/// The epoch under which a partition is held. Each worker that takes it over gets a greater one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);

/// What a commit in one partition has to say to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mail {
    /// A page was found for a site.
    Found {
        /// The site.
        site: SiteId,
        /// When it was found, in seconds since the epoch.
        at_s: i64,
        /// The page.
        page: Discovered,
    },
    /// A site gained a top page. Every partition gets this mail, since top pages decide what is in scope.
    Top {
        /// The site.
        site: SiteId,
        /// When it was added, in seconds since the epoch.
        at_s: i64,
        /// The page.
        url: CanonicalUrl,
    },
    /// A sitemap or feed says that a page changed.
    Hint {
        /// When it was read.
        at_s: i64,
        /// The page.
        url: CanonicalUrl,
        /// When it is said to have changed.
        changed_s: i64,
        /// How likely it is right, in percent.
        odds_percent: u8,
        /// Where it was read.
        hint: Hint,
    },
    /// A page links to one of the receiver's: a share of its score.
    Share {
        /// The page that gets it.
        url: CanonicalUrl,
        /// The share, in millionths.
        micros: u64,
    },
    /// A page got more score later and hands it on. Its links had a [`Mail::Share`] before.
    MoreShare {
        /// The hash of the URL of the page that gets it ([`url_hash`]).
        hash: u64,
        /// The share, in millionths.
        micros: u64,
    },
    /// A round of a site has ended in the sender's partition. Every partition gets this mail.
    RoundEnd {
        /// The site.
        site: SiteId,
        /// How many rounds of it have ended there.
        ended: u64,
    },
    /// What the pages of a site, or of all sites, in the sender's partition ask for on a day. Every
    /// partition gets this mail.
    Need {
        /// The site; none means the whole archive.
        site: Option<SiteId>,
        /// The day, in days since the epoch.
        day: i64,
        /// What they ask for.
        need: Need,
    },
}

/// What pages ask for on a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Need {
    /// Thousandths of a visit.
    pub milli_visits: u64,
    /// How many pages they are.
    pub pages: u64,
}

/// The number by which partitions name a page of another one without its URL.
pub fn url_hash(url: &CanonicalUrl) -> u64 {
    let mut first = [0; 8];
    first.copy_from_slice(&blake3::hash(url.as_str().as_bytes()).as_bytes()[..8]);
    u64::from_le_bytes(first)
}

/// The score that a page got from pages of other partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// The page.
    pub nth: Nth,
    /// All of it, in millionths.
    pub micros: u64,
    /// The part that is in what was last kept of the crawl order ([`Change::Order`](crate::Change)).
    pub kept: u64,
}

/// How the visits that a site, or the whole archive, may have on one day are divided among the
/// partitions. Each gets what its pages ask for, but where that is too much for all, no more visits a
/// page than the others that lack some: pages that change often must not take the visits that the
/// others wait for. Where the needs are not known of all, visits are divided equally.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Division {
    /// The day, in days since the epoch.
    pub day: i64,
    /// What the pages of each partition ask for.
    pub needs: Vec<Need>,
    /// The partition whose part is asked for.
    pub own: PartitionId,
}

impl Division {
    /// Spreads what is left over by rounding: each day it falls to other partitions.
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    /// A partition counts for so many pages more than it knows: where few are known, a visit often
    /// finds the others.
    const FIRST_PAGES: u64 = 8;

    /// This partition's part of a number of visits. The parts of all partitions add up to it.
    pub fn part_of(&self, visits: u64) -> u64 {
        let shares = self.shares(visits);
        let sum = shares.iter().sum::<u128>().max(1);
        let turn = u128::from((self.day as u64).wrapping_mul(Self::GOLDEN) >> 32);
        let offset = (turn * sum) >> 32;
        let upto = |partitions: usize| {
            let shared: u128 = shares.iter().take(partitions).sum();
            (u128::from(visits) * shared + offset) / sum
        };
        let own = self.own.0 as usize;
        (upto(own + 1) - upto(own)) as u64
    }

    /// What each partition gets, in thousandths of a visit: those with the smallest needs for their
    /// pages first, and what they leave goes to the others.
    fn shares(&self, visits: u64) -> Vec<u128> {
        let pages = |at: &usize| match self.needs[*at].pages {
            0 => 0,
            pages => u128::from(pages + Self::FIRST_PAGES),
        };
        let need = |at: &usize| u128::from(self.needs[*at].milli_visits);
        let mut order: Vec<usize> = (0..self.needs.len()).collect();
        order.sort_by(|a, b| (need(a) * pages(b)).cmp(&(need(b) * pages(a))).then(a.cmp(b)));
        let mut left = u128::from(visits) * 1_000;
        let mut left_pages: u128 = order.iter().map(pages).sum();
        let mut shares = vec![0; self.needs.len()];
        for at in &order {
            let share = need(at).min(left * pages(at) / left_pages.max(1));
            shares[*at] = share;
            left -= share;
            left_pages -= pages(at);
        }
        shares
    }
}

/// Mail with its number among all that its sender ever sent to its receiver, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberedMail {
    /// The number.
    pub number: u64,
    /// What it says.
    pub mail: Mail,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_spread_over_the_partitions_and_stay_there() {
        let server = |n: u32| CanonicalUrl::parse(&format!("http://s{n}.com/")).unwrap().server();
        let eight = Partitioning { count: 8 };
        let mut counts = [0; 8];
        for n in 0..800 {
            counts[eight.of(&server(n)).0 as usize] += 1;
            assert_eq!(Partitioning::SINGLE.of(&server(n)), PartitionId(0));
        }
        assert!(counts.iter().all(|count| (60..140).contains(count)), "{counts:?}");
        // Written down: another hash would lose every archive with partitions.
        let found = [1, 2, 3, 4].map(|n| eight.of(&server(n)).0);
        assert_eq!(found, [0, 7, 6, 3]);
    }

    #[test]
    fn the_parts_of_a_budget_add_up_to_it_and_follow_the_needs() {
        // Small enough to be met, so that each gets what it asks for in proportion.
        for needs in [vec![1, 1, 1, 1, 1, 1, 1, 1], vec![0, 500, 100, 1], vec![7], vec![0, 0]] {
            let part = |visits: u64, day: i64, own: usize| {
                let own = PartitionId(own as u32);
                let needs = needs.iter().map(|&milli_visits| Need { milli_visits, pages: 1 });
                Division { day, needs: needs.collect(), own }.part_of(visits)
            };
            let sum: u64 = needs.iter().sum();
            for (visits, day) in [(20, 19_723), (3, -4), (0, 0), (1_000_003, 20_000)] {
                let parts: Vec<u64> = (0..needs.len()).map(|own| part(visits, day, own)).collect();
                let expected = if sum == 0 { 0 } else { visits };
                assert_eq!(parts.iter().sum::<u64>(), expected, "{needs:?} {visits} {day}");
                for (part, need) in parts.iter().zip(&needs) {
                    let exact = visits as f64 * *need as f64 / sum.max(1) as f64;
                    assert!((*part as f64 - exact).abs() <= 1.0, "{needs:?} {visits} {day}");
                }
            }
            // What is left over falls to each of them in turn, here with three visits a day.
            for (own, need) in needs.iter().enumerate().filter(|(_, need)| **need > 0) {
                let days = 10_000;
                let all: u64 = (0..days).map(|day| part(3, day, own)).sum();
                let exact = 3.0 * days as f64 * *need as f64 / sum as f64;
                assert!((all as f64 - exact).abs() <= exact * 0.1 + 3.0, "{needs:?} {own}: {all}");
            }
        }
    }

    #[test]
    fn a_partition_whose_pages_change_often_leaves_the_others_their_part() {
        let need = |milli_visits, pages| Need { milli_visits, pages };
        // 300 pages that ask for 600 visits, 30 that ask for 4, and 3 that ask for 2.
        let needs = vec![need(600_000, 300), need(4_000, 30), need(2_000, 3)];
        // What is left over by rounding falls to another partition every day.
        let check = |visits: u64, exact: [f64; 3]| {
            for day in 0..100 {
                let part = |own| Division { day, needs: needs.clone(), own: PartitionId(own) };
                let parts = [0, 1, 2].map(|own| part(own).part_of(visits));
                assert_eq!(parts.iter().sum::<u64>(), visits, "day {day}: {parts:?}");
                for (part, exact) in parts.into_iter().zip(exact) {
                    assert!((part as f64 - exact).abs() < 1.1, "day {day}: {parts:?}");
                }
            }
        };
        // All are met, and the rest is divided like the needs.
        check(666, [659.4, 4.4, 2.2]);
        // As many for each page, where each partition counts for eight more.
        check(33, [28.5, 3.5, 1.0]);
    }
}
