//! The bytes of an exported order: a magic number, little-endian fields, a checksum.

use crate::OrderError;

const MAGIC: &[u8; 8] = b"NNORDER2";
const CHECKSUM_BYTES: usize = 8;

pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn new(expected_bytes: usize) -> Self {
        let mut bytes = Vec::with_capacity(expected_bytes + 64);
        bytes.extend_from_slice(MAGIC);
        Self { bytes }
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        let checksum = fnv1a(&self.bytes);
        self.bytes.extend_from_slice(&checksum.to_le_bytes());
        self.bytes
    }
}

pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self, OrderError> {
        let damaged = OrderError::BadSnapshot { reason: "it is cut short or damaged" };
        let (body, checksum) = bytes
            .len()
            .checked_sub(CHECKSUM_BYTES)
            .map(|end| bytes.split_at(end))
            .ok_or_else(|| damaged.clone())?;
        if fnv1a(body).to_le_bytes() != checksum {
            return Err(damaged);
        }
        let rest = body
            .strip_prefix(MAGIC)
            .ok_or(OrderError::BadSnapshot { reason: "it is of another kind or version" })?;
        Ok(Self { rest })
    }

    pub(crate) fn u8(&mut self) -> Result<u8, OrderError> {
        Ok(self.take::<1>()?[0])
    }

    pub(crate) fn u32(&mut self) -> Result<u32, OrderError> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, OrderError> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    /// Nothing may follow the last field.
    pub(crate) fn end(&self) -> Result<(), OrderError> {
        let is_empty = self.rest.is_empty();
        is_empty.then_some(()).ok_or(OrderError::BadSnapshot { reason: "it is too long" })
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], OrderError> {
        let (taken, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(OrderError::BadSnapshot { reason: "it ends in the middle of a field" })?;
        self.rest = rest;
        Ok(*taken)
    }
}

/// FNV-1a: enough against accidents, because a snapshot comes from our own disk.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
