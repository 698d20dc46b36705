//! Bodies that come compressed: a large import need not compress again what is compressed in its
//! file. Compacting makes it smaller later.

use crate::wire::{Malformed, Reader, put_varint};

/// What may precede a body in its deflated bytes: the heads of a record and a response.
const MAX_FRONT_BYTES: usize = 4 << 20;
/// What may follow it.
const MAX_BEHIND_BYTES: usize = 1 << 10;
/// What is around a body may be at most one part in so many: it takes space for nothing.
const BODY_PER_AROUND: usize = 8;
/// No deflated byte holds more.
pub(crate) const MAX_EXPANSION: usize = 1032;

/// What is known of a body before it is stored.
#[derive(Clone, Copy, Debug, Default)]
pub enum Packing<'a> {
    /// Nothing is known.
    #[default]
    Unknown,
    /// Somebody tried to compress it, and it did not become smaller.
    Dense,
    /// It is in deflated bytes.
    Deflated(Deflated<'a>),
}

/// Deflated bytes that contain a body. The caller has inflated them and found it there.
#[derive(Clone, Copy, Debug)]
pub struct Deflated<'a> {
    /// The deflated bytes, without any head or trailer.
    pub data: &'a [u8],
    /// How many bytes they hold in front of the body.
    pub front_bytes: usize,
    /// How many bytes they hold behind the body.
    pub behind_bytes: usize,
}

impl Deflated<'_> {
    /// Whether storing them as they are wastes little.
    pub(crate) fn is_worth_keeping(&self, body_bytes: usize) -> bool {
        let around_bytes = self.front_bytes + self.behind_bytes;
        self.front_bytes <= MAX_FRONT_BYTES
            && self.behind_bytes <= MAX_BEHIND_BYTES
            && around_bytes * BODY_PER_AROUND <= body_bytes
            && self.data.len() < body_bytes
    }

    /// What precedes the deflated bytes in the data of a bodies chunk.
    pub(crate) fn around(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(8);
        put_varint(&mut out, self.front_bytes as u64);
        put_varint(&mut out, self.behind_bytes as u64);
        out
    }
}

/// The body of `body_bytes` bytes that the data of a bodies chunk holds.
pub(crate) fn inflate(data: &[u8], body_bytes: usize) -> Result<Vec<u8>, Malformed> {
    let mut reader = Reader::new(data);
    let front_bytes = reader.count(MAX_FRONT_BYTES)?;
    let behind_bytes = reader.count(MAX_BEHIND_BYTES)?;
    let deflated = reader.rest();
    let length = front_bytes + body_bytes + behind_bytes;
    if length / MAX_EXPANSION > deflated.len() {
        return Err(Malformed("longer than its deflated bytes can hold"));
    }
    let mut out = vec![0; length];
    let found = libdeflater::Decompressor::new().deflate_decompress(deflated, &mut out);
    if found != Ok(length) {
        return Err(Malformed("deflated bytes not readable"));
    }
    out.truncate(front_bytes + body_bytes);
    out.drain(..front_bytes);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn deflate(parts: &[&[u8]]) -> Vec<u8> {
        miniz_oxide::deflate::compress_to_vec(&parts.concat(), 6)
    }

    proptest! {
        #[test]
        fn a_body_comes_back_without_what_stands_around_it(
            front in proptest::collection::vec(any::<u8>(), 0..100), body: Vec<u8>,
            behind in proptest::collection::vec(any::<u8>(), 0..5),
        ) {
            let data = deflate(&[&front, &body, &behind]);
            let (front_bytes, behind_bytes) = (front.len(), behind.len());
            let around = Deflated { data: &data, front_bytes, behind_bytes }.around();
            let encoded = [around, data].concat();
            prop_assert_eq!(inflate(&encoded, body.len()), Ok(body.clone()));
            prop_assert!(inflate(&encoded, body.len() + 1).is_err());
        }

        #[test]
        fn junk_is_refused_without_panic(junk: Vec<u8>, length in 0usize..4096) {
            let _ = inflate(&junk, length);
        }
    }

    #[test]
    fn only_what_wastes_little_is_kept() {
        let kept = |front_bytes, behind_bytes, body_bytes| {
            let data = &[0; 1000][..];
            Deflated { data, front_bytes, behind_bytes }.is_worth_keeping(body_bytes)
        };
        assert!(kept(1000, 4, 20_000));
        assert!(!kept(1000, 4, 8000));
        assert!(!kept(0, 4, 900), "it is not smaller");
        assert!(!kept(MAX_FRONT_BYTES + 1, 4, usize::MAX));
        assert!(!kept(0, MAX_BEHIND_BYTES + 1, usize::MAX));
    }

    #[test]
    fn a_length_that_cannot_be_is_refused_before_memory_is_taken() {
        let data = deflate(&[b"short"]);
        let around = Deflated { data: &data, front_bytes: 0, behind_bytes: 0 }.around();
        let encoded = [around, data].concat();
        assert!(inflate(&encoded, 1 << 40).is_err());
    }
}
