//! All partitions of an archive as one state: for readers, and for people who register sites. What only
//! the holder of a partition may do is refused.
//!
//! Numbers say where they belong: a server's, a round's and a visit's number modulo the number of
//! partitions is the partition's.

mod crawl;
mod people;
mod reading;

use std::{collections::BTreeMap, sync::Arc};

use nenrin_urls::CanonicalUrl;

use crate::{PageId, Partitioning, ServerId, State, StateError};

/// All partitions of an archive.
pub struct JoinedState {
    parts: Vec<Arc<dyn State>>,
    partitioning: Partitioning,
}

impl JoinedState {
    /// All partitions, in the order of their numbers; at least one.
    pub fn new(parts: Vec<Arc<dyn State>>) -> Self {
        let partitioning = Partitioning { count: parts.len() as u32 };
        Self { parts, partitioning }
    }

    /// The first partition, which keeps what the archive has once.
    fn first(&self) -> &dyn State {
        &*self.parts[0]
    }

    fn of_server(&self, server: ServerId) -> &dyn State {
        &*self.parts[server.0 as usize % self.parts.len()]
    }

    fn of_page(&self, page: PageId) -> &dyn State {
        self.of_server(page.server())
    }

    fn of_url(&self, url: &CanonicalUrl) -> &dyn State {
        &*self.parts[self.partitioning.of(&url.server()).0 as usize]
    }

    /// What a number that counts in steps of the number of partitions belongs to.
    fn of_number(&self, number: i64) -> &dyn State {
        &*self.parts[number.rem_euclid(self.parts.len() as i64) as usize]
    }

    /// What every partition says, together.
    fn gather<T>(
        &self,
        ask: impl Fn(&dyn State) -> Result<Vec<T>, StateError>,
    ) -> Result<Vec<T>, StateError> {
        let mut all = Vec::new();
        for part in &self.parts {
            all.extend(ask(&**part)?);
        }
        Ok(all)
    }

    /// The first ones of what every partition says, in an order.
    fn first_of<T, K: Ord>(
        &self,
        limit: usize,
        ask: impl Fn(&dyn State) -> Result<Vec<T>, StateError>,
        key: impl FnMut(&T) -> K,
    ) -> Result<Vec<T>, StateError> {
        let mut all = self.gather(ask)?;
        all.sort_by_key(key);
        all.truncate(limit);
        Ok(all)
    }

    /// What every partition says of the same things, added up.
    fn added<T, K: Ord>(
        &self,
        ask: impl Fn(&dyn State) -> Result<Vec<T>, StateError>,
        key: impl Fn(&T) -> K,
        add: impl Fn(&mut T, &T),
    ) -> Result<Vec<T>, StateError> {
        let mut sums: BTreeMap<K, T> = BTreeMap::new();
        for one in self.gather(ask)? {
            match sums.get_mut(&key(&one)) {
                Some(sum) => add(sum, &one),
                None => drop(sums.insert(key(&one), one)),
            }
        }
        Ok(sums.into_values().collect())
    }

    /// Does something in every partition.
    fn each(&self, act: impl Fn(&dyn State) -> Result<(), StateError>) -> Result<(), StateError> {
        self.parts.iter().try_for_each(|part| act(&**part))
    }

    /// Things by the partition that they belong to.
    fn sorted<'a, T>(
        &self,
        things: &'a [T],
        partition: impl Fn(&T) -> usize,
    ) -> Vec<(&dyn State, Vec<&'a T>)> {
        let mut by_part: BTreeMap<usize, Vec<&T>> = BTreeMap::new();
        for thing in things {
            by_part.entry(partition(thing) % self.parts.len()).or_default().push(thing);
        }
        by_part.into_iter().map(|(at, things)| (&*self.parts[at], things)).collect()
    }
}

/// The partition of a page, before it is taken modulo their number.
fn partition_of(page: PageId) -> usize {
    page.server().0 as usize
}
