use std::collections::BTreeMap;

use crate::media::Class;

/// What one site takes in one pack, or in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) html_bytes: u64,
    pub(crate) text_bytes: u64,
    pub(crate) other_bytes: u64,
    pub(crate) record_bytes: u64,
    pub(crate) unique_bytes: u64,
    pub(crate) versions: u64,
}

impl Share {
    pub(crate) fn add(&mut self, other: &Self) {
        self.html_bytes += other.html_bytes;
        self.text_bytes += other.text_bytes;
        self.other_bytes += other.other_bytes;
        self.record_bytes += other.record_bytes;
        self.unique_bytes += other.unique_bytes;
        self.versions += other.versions;
    }

    /// What a bodies chunk of `written` bytes adds to its site.
    pub(crate) fn of_bodies(class: Class, unique_bytes: u64, written: u64) -> Self {
        let mut share = Self { unique_bytes, ..Self::default() };
        match class {
            Class::Html => share.html_bytes = written,
            Class::Text => share.text_bytes = written,
            Class::Other => share.other_bytes = written,
        }
        share
    }

    /// A versions chunk is divided among the sites of its rows by their number.
    pub(crate) fn of_rows(
        sites: impl Iterator<Item = u32>,
        payload_bytes: u64,
    ) -> Vec<(u32, Self)> {
        let mut counts = BTreeMap::<u32, u64>::new();
        sites.for_each(|site| *counts.entry(site).or_default() += 1);
        let rows: u64 = counts.values().sum();
        let share = |versions: u64| {
            let record_bytes = payload_bytes * versions / rows;
            Self { record_bytes, versions, ..Self::default() }
        };
        counts.into_iter().map(|(group, versions)| (group, share(versions))).collect()
    }
}
