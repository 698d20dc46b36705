const UNKNOWN: u32 = u32::MAX;

/// Maps the pages of a graph to their discovery numbers.
pub(super) trait Numbering {
    /// The number of a page, if it was found.
    fn number(&self, id: u32) -> Option<u32>;
    /// Gives a page that was found its number.
    fn set(&mut self, id: u32, number: u32);
}

/// Numbers in an array by page id: nothing to look up.
pub(super) struct ByPageId(Vec<u32>);

impl ByPageId {
    pub(super) fn new(pages: usize) -> Self {
        Self(vec![UNKNOWN; pages])
    }
}

impl Numbering for ByPageId {
    fn number(&self, id: u32) -> Option<u32> {
        let number = self.0[id as usize];
        (number != UNKNOWN).then_some(number)
    }

    fn set(&mut self, id: u32, number: u32) {
        self.0[id as usize] = number;
    }
}

/// Numbers in a hash table by the 64-bit fingerprint of the URL, as a crawler must look them up
/// for every link. The text of a URL is hashed each time, by the hash that the state uses.
pub(super) struct ByFingerprint {
    /// Open addressing: the upper half of the fingerprint and the number, in one word, so that a
    /// look-up costs one cache miss.
    slots: Vec<(u32, u32)>,
}

impl ByFingerprint {
    pub(super) fn new(pages: usize) -> Self {
        let capacity = (pages + pages / 2).next_power_of_two().max(16);
        Self { slots: vec![(0, UNKNOWN); capacity] }
    }

    /// The slot that contains the page, or the empty one where it would be.
    fn slot(&self, id: u32) -> usize {
        let (fingerprint, mask) = (fingerprint(id), self.slots.len() - 1);
        let mut slot = fingerprint as usize & mask;
        loop {
            let (upper, number) = self.slots[slot];
            if number == UNKNOWN || upper == (fingerprint >> 32) as u32 {
                return slot;
            }
            slot = (slot + 1) & mask;
        }
    }
}

/// The URL of a page that has none: as long as real ones, with its id twice in the text.
const URL: [u8; 72] = *b"https://www.site-00000.example/section-17/2011/07/minutes-0000000000.htm";
const SERVER_END: usize = 22;
const PAGE_END: usize = 68;

fn fingerprint(id: u32) -> u64 {
    let mut url = URL;
    write_digits(&mut url[SERVER_END - 5..SERVER_END], id / 100 % 100_000);
    write_digits(&mut url[PAGE_END - 10..PAGE_END], id);
    let mut first = [0; 8];
    first.copy_from_slice(&blake3::hash(&url).as_bytes()[..8]);
    u64::from_le_bytes(first)
}

fn write_digits(places: &mut [u8], mut number: u32) {
    for place in places.iter_mut().rev() {
        *place = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

impl Numbering for ByFingerprint {
    fn number(&self, id: u32) -> Option<u32> {
        let (_, number) = self.slots[self.slot(id)];
        (number != UNKNOWN).then_some(number)
    }

    fn set(&mut self, id: u32, number: u32) {
        let slot = self.slot(id);
        self.slots[slot] = ((fingerprint(id) >> 32) as u32, number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_a_url_of_its_own() {
        let all: std::collections::BTreeSet<u64> = (0..20_000).map(fingerprint).collect();
        assert_eq!(all.len(), 20_000);
    }

    #[test]
    fn both_numberings_agree() {
        let (mut direct, mut hashed) = (ByPageId::new(5_000), ByFingerprint::new(5_000));
        for id in (0..5_000).step_by(3) {
            direct.set(id, id / 3);
            hashed.set(id, id / 3);
        }
        for id in 0..5_000 {
            assert_eq!(direct.number(id), hashed.number(id), "page {id}");
        }
    }
}
