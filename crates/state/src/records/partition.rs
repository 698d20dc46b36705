//! Partitions, and the mail between them.

use nenrin_lang::Hint;
use nenrin_urls::{CanonicalUrl, Server};
use serde::{Deserialize, Serialize};

use crate::{Discovered, SiteId};

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
        /// When.
        at_s: i64,
        /// The page.
        page: Discovered,
    },
    /// A site gained a top page. Every partition gets this mail, since top pages decide what is in scope.
    Top {
        /// The site.
        site: SiteId,
        /// When.
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
}
