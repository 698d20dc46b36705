//! Paper 001's own method, counted: what is left of a collection after each of its four steps,
//! blocks uncompressed. The store does the same work in other ways (digests, references,
//! prefixes); this is what it is compared with.

use std::collections::{BTreeMap, BTreeSet};

use crate::Digest;
use crate::cut::cut;
use crate::media::Class;
use crate::similar::hash;

/// Bytes of one collection that remain after each step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PaperBytes {
    /// Everything, as a mirror would hold it.
    pub raw: u64,
    /// Without files that did not change since the last collection.
    pub after_file_in_time: u64,
    /// Without files that are twice in this collection.
    pub after_file_in_space: u64,
    /// Without blocks of HTML that were in the last collection.
    pub after_block_in_time: u64,
    /// Without blocks of HTML that are twice in this collection.
    pub after_block_in_space: u64,
}

impl PaperBytes {
    /// Adds another collection, or another kind of file.
    pub fn add(&mut self, other: &Self) {
        self.raw += other.raw;
        self.after_file_in_time += other.after_file_in_time;
        self.after_file_in_space += other.after_file_in_space;
        self.after_block_in_time += other.after_block_in_time;
        self.after_block_in_space += other.after_block_in_space;
    }
}

/// Counts the collections of one site, one after the other.
#[derive(Default)]
pub struct PaperCount {
    last: Collection,
    current: Collection,
}

#[derive(Default)]
struct Collection {
    by_path: BTreeMap<String, Digest>,
    files: BTreeSet<Digest>,
    blocks: BTreeSet<u64>,
}

impl PaperCount {
    /// Counts one file of the collection under way.
    pub fn file(&mut self, path: &str, class: Class, body: &[u8]) -> PaperBytes {
        let digest = Digest::of(body);
        let bytes = body.len() as u64;
        let mut count = PaperBytes { raw: bytes, ..PaperBytes::default() };
        let same_as_last = self.last.by_path.get(path) == Some(&digest);
        self.current.by_path.insert(path.to_owned(), digest);
        let seen = !self.current.files.insert(digest);
        let blocks: Vec<(u64, u64)> = match class {
            Class::Html => cut(body).map(|block| (hash(block), block.len() as u64)).collect(),
            Class::Text | Class::Other => Vec::new(),
        };
        let first: Vec<bool> =
            blocks.iter().map(|(block, _)| self.current.blocks.insert(*block)).collect();
        if same_as_last {
            return count;
        }
        count.after_file_in_time = bytes;
        if seen {
            return count;
        }
        count.after_file_in_space = bytes;
        if class != Class::Html {
            (count.after_block_in_time, count.after_block_in_space) = (bytes, bytes);
            return count;
        }
        for ((block, length), first) in blocks.into_iter().zip(first) {
            if !self.last.blocks.contains(&block) {
                count.after_block_in_time += length;
                count.after_block_in_space += if first { length } else { 0 };
            }
        }
        count
    }

    /// The collection is complete; the next one is compared with it.
    pub fn end(&mut self) {
        self.last = std::mem::take(&mut self.current);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_takes_away_what_it_should() {
        let mut count = PaperCount::default();
        let part = |n: u32| format!("<p>this is paragraph number {n:04}</p>");
        let (a, b) = (part(1) + &part(2), part(1) + &part(3));
        let first = count.file("a", Class::Html, a.as_bytes());
        assert_eq!(first.after_block_in_space, first.raw);
        let shared = count.file("b", Class::Html, b.as_bytes());
        assert_eq!(shared.after_block_in_time, shared.raw);
        assert_eq!(shared.after_block_in_space, part(3).len() as u64);
        let copy = count.file("c", Class::Html, b.as_bytes());
        assert_eq!((copy.after_file_in_time, copy.after_file_in_space), (copy.raw, 0));
        count.end();
        let same = count.file("a", Class::Html, a.as_bytes());
        assert_eq!((same.raw, same.after_file_in_time), (a.len() as u64, 0));
        let changed = count.file("b", Class::Html, (b + &part(9)).as_bytes());
        assert_eq!(changed.after_file_in_space, changed.raw);
        assert_eq!(changed.after_block_in_time, part(9).len() as u64);
    }
}
