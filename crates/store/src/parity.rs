//! Parity: the bytes of a range cut into stripes of equal length, all of them joined by XOR.

use std::ops::Range;

use crate::error::StoreError;
use crate::packfile::PackFile;
use crate::wire::{Malformed, Reader, put_varint};

/// Stripes that parity joins: more make it smaller, and shorter damage is all that it restores.
pub(crate) const STRIPES: u64 = 2048;
/// A range as long as this gets its parity at once: its stripes are as long as the sector of a disk.
pub(crate) const RANGE_BYTES: u64 = 8 << 20;
const WINDOW_BYTES: u64 = 1 << 20;

/// The payload of a parity chunk.
pub(crate) struct Parity {
    /// How many bytes in front of the chunk it covers.
    pub(crate) covered_bytes: u64,
    pub(crate) stripe: Vec<u8>,
}

impl Parity {
    /// Of this range of a pack.
    pub(crate) fn of(pack: &PackFile<'_>, range: Range<u64>) -> Result<Self, StoreError> {
        let covered_bytes = range.end - range.start;
        let mut parity = Self { covered_bytes, stripe: vec![0; stripe_bytes(covered_bytes)] };
        let mut at = range.start;
        while at < range.end {
            let count = (range.end - at).min(WINDOW_BYTES);
            let Some(window) = pack.read(at, count as usize)? else { break };
            parity.join((at - range.start) as usize, &window);
            at += count;
        }
        Ok(parity)
    }

    /// Joins bytes at this distance from the beginning of the range.
    pub(crate) fn join(&mut self, at: usize, mut bytes: &[u8]) {
        let mut at = at % self.stripe.len();
        while !bytes.is_empty() {
            let count = bytes.len().min(self.stripe.len() - at);
            let (now, rest) = bytes.split_at(count);
            self.stripe[at..at + count].iter_mut().zip(now).for_each(|(sum, byte)| *sum ^= byte);
            (at, bytes) = (0, rest);
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.stripe.len() + 10);
        put_varint(&mut out, self.covered_bytes);
        out.extend_from_slice(&self.stripe);
        out
    }

    pub(crate) fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload);
        let covered_bytes = reader.varint()?;
        let stripe = reader.rest().to_vec();
        match covered_bytes > 0 && stripe.len() == stripe_bytes(covered_bytes) {
            true => Ok(Self { covered_bytes, stripe }),
            false => Err(Malformed("parity of another length")),
        }
    }
}

/// How long a stripe is.
pub(crate) fn stripe_bytes(covered_bytes: u64) -> usize {
    covered_bytes.div_ceil(STRIPES) as usize
}
