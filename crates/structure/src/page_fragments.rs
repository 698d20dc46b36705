//! The fragments of a page as they are stored between visits.

/// The most fragments of one page that are stored.
const FRAGMENTS_MAX: usize = 255;

/// Hashes of the fragments of a page that other pages may share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageFragments {
    /// Those that the page had when it was last seen changed, ascending.
    pub now: Vec<u32>,
    /// Those that it had lost then; `None` if that is not known.
    pub lost: Option<Vec<u32>>,
}

impl PageFragments {
    /// As bytes: two counts, and four bytes for each fragment.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let now = &self.now[..self.now.len().min(FRAGMENTS_MAX)];
        let lost = self.lost.as_deref().unwrap_or_default();
        let lost = &lost[..lost.len().min(FRAGMENTS_MAX - 1)];
        let lost_count = if self.lost.is_some() { lost.len() + 1 } else { 0 };
        let mut bytes = vec![now.len() as u8, lost_count as u8];
        bytes.extend(now.iter().chain(lost).flat_map(|fragment| fragment.to_le_bytes()));
        bytes
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote; anything else gives an empty value.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let Some((&[now_count, lost_count], rest)) = bytes.split_first_chunk::<2>() else {
            return Self::default();
        };
        let (fragments, []) = rest.as_chunks::<4>() else { return Self::default() };
        let fragments: Vec<u32> =
            fragments.iter().map(|fragment| u32::from_le_bytes(*fragment)).collect();
        let lost_fragments = usize::from(lost_count.saturating_sub(1));
        match fragments.split_at_checked(usize::from(now_count)) {
            Some((now, lost)) if lost.len() == lost_fragments => {
                Self { now: now.to_vec(), lost: (lost_count > 0).then(|| lost.to_vec()) }
            }
            _ => Self::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn fragments_come_back_as_they_were(
            now in prop::collection::vec(any::<u32>(), 0..30),
            lost in prop::option::of(prop::collection::vec(any::<u32>(), 0..30)),
        ) {
            let fragments = PageFragments { now, lost };
            prop_assert_eq!(PageFragments::from_bytes(&fragments.to_bytes()), fragments);
        }

        #[test]
        fn of_damaged_bytes_nothing_is_known(bytes: Vec<u8>) {
            let read = PageFragments::from_bytes(&bytes);
            prop_assert!(read == PageFragments::default() || read.to_bytes() == bytes);
        }
    }
}
