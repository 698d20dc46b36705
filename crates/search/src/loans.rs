//! Text that pages of a site share is indexed once: the first page that has a block lends it, and
//! others borrow it.

use std::collections::BTreeSet;

use nenrin_state::SiteId;

use crate::record::{get, get_signed, put, put_signed};

/// Longer runs are cut, so that those with a given block are found nearby.
pub(crate) const MAX_RUN: u32 = 64;
/// Blocks that are remembered while pages are taken in, about 40 bytes each.
const MAX_KNOWN: usize = 300_000;

/// Blocks of a page that are indexed as blocks of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Loan {
    /// The first of them in the page.
    pub(crate) own: u32,
    /// The place of the page that lends them, and the first of them there.
    pub(crate) lender: u32,
    pub(crate) block: u32,
    pub(crate) count: u32,
}

/// What a page borrows. Loans are only added: those that were written stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Loans {
    /// In the order of the page's own blocks.
    list: Vec<Loan>,
    written: usize,
}

impl Loans {
    pub(crate) fn list(&self) -> &[Loan] {
        &self.list
    }

    /// A block of the page is borrowed; it follows all others.
    pub(crate) fn add(&mut self, own: u32, (lender, block): (u32, u32)) {
        if let Some(last) = self.list.get_mut(self.written..).and_then(<[_]>::last_mut)
            && (last.lender, last.own + last.count, last.block + last.count) == (lender, own, block)
            && last.count < MAX_RUN
        {
            last.count += 1;
            return;
        }
        self.list.push(Loan { own, lender, block, count: 1 });
    }

    /// Where a block of the page is indexed, if it is borrowed.
    pub(crate) fn of(&self, own: u32) -> Option<(u32, u32)> {
        let at = self.list.partition_point(|loan| loan.own <= own).checked_sub(1)?;
        let loan = self.list.get(at)?;
        let nth = own - loan.own;
        (nth < loan.count).then_some((loan.lender, loan.block + nth))
    }

    /// Numbers of seven bits a byte; what follows the loan before it in page and lender is short.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut before = Loan { own: 0, lender: 0, block: 0, count: 0 };
        for loan in &self.list {
            put(&mut out, u64::from(loan.own - (before.own + before.count)));
            put_signed(&mut out, i64::from(loan.lender) - i64::from(before.lender));
            put_signed(&mut out, i64::from(loan.block) - i64::from(before.block + before.count));
            put(&mut out, u64::from(loan.count));
            before = *loan;
        }
        out
    }

    /// Reads what [`Loans::encode`] wrote; `None` if it is damaged.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = bytes;
        let mut list = Vec::new();
        let (mut own, mut lender, mut block) = (0_u32, 0_i64, 0_i64);
        while !input.is_empty() {
            own = own.checked_add(u32::try_from(get(&mut input)?).ok()?)?;
            lender = lender.checked_add(get_signed(&mut input)?)?;
            block = block.checked_add(get_signed(&mut input)?)?;
            let count = u32::try_from(get(&mut input)?).ok().filter(|count| *count <= MAX_RUN)?;
            let (place, first) = (u32::try_from(lender).ok()?, u32::try_from(block).ok()?);
            first.checked_add(MAX_RUN)?;
            list.push(Loan { own, lender: place, block: first, count });
            own = own.checked_add(count)?;
            block += i64::from(count);
        }
        let written = list.len();
        Some(Self { list, written })
    }
}

/// Blocks that were seen lately and where they are indexed. It only saves space: what is not in it
/// is indexed again.
#[derive(Default)]
pub(crate) struct Known {
    #[expect(clippy::disallowed_types, reason = "it is never gone through")]
    blocks: std::collections::HashMap<(SiteId, u64), (u32, u32)>,
    /// Places that are no longer there.
    gone: BTreeSet<u32>,
}

impl Known {
    /// Where a block of this hash is indexed.
    pub(crate) fn get(&self, site: SiteId, hash: u64) -> Option<(u32, u32)> {
        let found = self.blocks.get(&(site, hash)).copied()?;
        (!self.gone.contains(&found.0)).then_some(found)
    }

    pub(crate) fn add(&mut self, site: SiteId, hash: u64, block: (u32, u32)) {
        if self.blocks.len() >= MAX_KNOWN {
            self.blocks.clear();
            self.gone.clear();
        }
        self.blocks.insert((site, hash), block);
    }

    pub(crate) fn forget(&mut self, place: u32) {
        self.gone.insert(place);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn neighbours_that_are_borrowed_together_are_one_loan() {
        let mut loans = Loans::default();
        for (own, block) in [(1, 7), (2, 8), (3, 10), (5, 11), (6, 12)] {
            loans.add(own, (40, block));
        }
        loans.add(7, (41, 13));
        let counts: Vec<u32> = loans.list().iter().map(|loan| loan.count).collect();
        assert_eq!(counts, [2, 1, 2, 1]);
        let written = Loans::decode(&loans.encode()).unwrap();
        assert_eq!(written.list(), loans.list());
        let places: Vec<_> = (1..=8).map(|own| written.of(own)).collect();
        let at = |block| Some((40, block));
        assert_eq!(places, [at(7), at(8), at(10), None, at(11), at(12), Some((41, 13)), None]);
        let mut more = written.clone();
        more.add(8, (41, 14));
        assert_eq!(more.list().len(), written.list().len() + 1, "what was written stays");
    }

    #[test]
    fn nothing_is_borrowed_from_a_page_that_went() {
        let mut known = Known::default();
        known.add(SiteId(1), 9, (3, 4));
        assert_eq!(known.get(SiteId(1), 9), Some((3, 4)));
        assert_eq!(known.get(SiteId(2), 9), None);
        known.forget(3);
        assert_eq!(known.get(SiteId(1), 9), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_loans_or_damage(bytes: Vec<u8>) {
            let _ = Loans::decode(&bytes);
        }
    }
}
