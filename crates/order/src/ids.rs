use crate::dary::push_tight;
use crate::{OrderError, PageIndex};

/// Which page id of the state belongs to which [`PageIndex`].
///
/// Ids grow with discovery and mostly follow each other, as row ids do, so runs of consecutive
/// ids are kept: 12 bytes for each run, however long. Ids scattered singly cost 12 bytes each.
#[derive(Debug, Default)]
pub struct PageIds {
    /// First id of each run.
    first_ids: Vec<u64>,
    /// Index of that id.
    first_indices: Vec<u32>,
    len: u32,
}

impl PageIds {
    /// Adds the id of the page that was discovered next.
    ///
    /// # Errors
    /// [`OrderError::IdNotAscending`] when the id is not larger than all before.
    pub fn push(&mut self, id: u64) -> Result<PageIndex, OrderError> {
        let index = PageIndex(self.len);
        match self.last_id() {
            Some(last) if id <= last => return Err(OrderError::IdNotAscending { id, last }),
            Some(last) if id - last == 1 => {}
            _ => {
                push_tight(&mut self.first_ids, id);
                push_tight(&mut self.first_indices, index.0);
            }
        }
        self.len += 1;
        Ok(index)
    }

    /// The index of an id, if it is known.
    #[must_use]
    pub fn index(&self, id: u64) -> Option<PageIndex> {
        let run = self.first_ids.partition_point(|first| *first <= id).checked_sub(1)?;
        let offset = id - self.first_ids[run];
        let end = self.first_indices.get(run + 1).copied().unwrap_or(self.len);
        let length = u64::from(end - self.first_indices[run]);
        (offset < length).then(|| PageIndex(self.first_indices[run] + offset as u32))
    }

    /// The id of an index, if it is known.
    #[must_use]
    pub fn id(&self, index: PageIndex) -> Option<u64> {
        if index.0 >= self.len {
            return None;
        }
        let run = self.first_indices.partition_point(|first| *first <= index.0).checked_sub(1)?;
        Some(self.first_ids[run] + u64::from(index.0 - self.first_indices[run]))
    }

    /// How many ids are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether no id is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes held on the heap.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.first_ids.capacity() * size_of::<u64>()
            + self.first_indices.capacity() * size_of::<u32>()
    }

    fn last_id(&self) -> Option<u64> {
        self.id(PageIndex(self.len.checked_sub(1)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn consecutive_ids_cost_no_memory() {
        let mut ids = PageIds::default();
        for id in 1..=10_000 {
            ids.push(id).unwrap();
        }
        assert!(ids.memory_bytes() < 100, "{}", ids.memory_bytes());
        assert_eq!(ids.index(7_000), Some(PageIndex(6_999)));
    }

    #[test]
    fn an_id_that_does_not_grow_is_refused() {
        let mut ids = PageIds::default();
        ids.push(5).unwrap();
        assert_eq!(ids.push(5), Err(OrderError::IdNotAscending { id: 5, last: 5 }));
        assert_eq!(ids.len(), 1);
    }

    proptest! {
        #[test]
        fn every_id_is_found_and_no_other(gaps in prop::collection::vec(1_u64..4, 0..200)) {
            let mut ids = PageIds::default();
            let known: Vec<u64> = gaps
                .iter()
                .scan(10_u64, |id, gap| { *id += gap; Some(*id) })
                .collect();
            for (index, id) in known.iter().enumerate() {
                prop_assert_eq!(ids.push(*id).unwrap(), PageIndex(index as u32));
            }
            for id in 0..1_000 {
                let expected = known.binary_search(&id).ok().map(|index| PageIndex(index as u32));
                prop_assert_eq!(ids.index(id), expected);
            }
            for (index, id) in known.iter().enumerate() {
                prop_assert_eq!(ids.id(PageIndex(index as u32)), Some(*id));
            }
            prop_assert_eq!(ids.id(PageIndex(known.len() as u32)), None);
        }
    }
}
