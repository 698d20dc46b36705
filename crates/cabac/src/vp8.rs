//! The coder. `preflate-rs` asks for it by the name of a video format, with which it has nothing in
//! common.

use std::io::{self, Read, Write};

use crate::{CabacReader, CabacWriter};

/// Bits of a probability.
const SCALE_BITS: u32 = 16;
/// A decision is never quite certain.
const MIN_SHARE: u32 = 1 << 4;
/// A context learns quickly at first, and then by this part of the difference.
const SEEN_MAX: u32 = 255;
/// The range is kept above this.
const RANGE_MIN: u32 = 1 << 24;
/// Zeros at the end that a writer leaves out and a reader supplies.
const TRIMMED_MAX: usize = 8;
/// Bytes that a reader supplies behind the end: those, and what its range is ahead.
const SUPPLIED_MAX: usize = TRIMMED_MAX + 8;

/// What was learnt of the decisions in one context.
#[derive(Debug, Clone, Copy)]
pub struct VP8Context {
    /// How likely `false` is, of 2^16.
    share: u32,
    /// Twice the decisions that were seen, and one.
    seen: u32,
}

impl Default for VP8Context {
    fn default() -> Self {
        Self { share: 1 << (SCALE_BITS - 1), seen: 3 }
    }
}

impl VP8Context {
    /// The part of a range that means `false`.
    fn part(self, range: u32) -> u32 {
        (range >> SCALE_BITS) * self.share
    }

    fn learn(&mut self, decision: bool) {
        let goal = if decision { MIN_SHARE } else { (1 << SCALE_BITS) - MIN_SHARE };
        let step = (goal.abs_diff(self.share) * 2) / self.seen;
        match goal > self.share {
            true => self.share += step,
            false => self.share -= step,
        }
        if self.seen < SEEN_MAX {
            self.seen += 2;
        }
    }
}

/// Writes decisions as bytes.
pub struct VP8Writer<W> {
    out: W,
    bytes: Vec<u8>,
    /// The lower end of the range; a carry into what was written is the 33rd bit.
    low: u64,
    range: u32,
}

impl<W: Write> VP8Writer<W> {
    /// Begins a stream.
    pub fn new(out: W) -> io::Result<Self> {
        Ok(Self { out, bytes: Vec::new(), low: 0, range: u32::MAX })
    }

    fn carry(&mut self) {
        if self.low >> 32 != 0 {
            self.low &= u64::from(u32::MAX);
            for byte in self.bytes.iter_mut().rev() {
                *byte = byte.wrapping_add(1);
                if *byte != 0 {
                    break;
                }
            }
        }
    }

    fn shift(&mut self) {
        self.bytes.push((self.low >> 24) as u8);
        self.low = self.low << 8 & u64::from(u32::MAX);
    }
}

impl<W: Write> CabacWriter<VP8Context> for VP8Writer<W> {
    fn put(&mut self, decision: bool, context: &mut VP8Context) -> io::Result<()> {
        let part = context.part(self.range);
        match decision {
            false => self.range = part,
            true => {
                self.low += u64::from(part);
                self.range -= part;
                self.carry();
            }
        }
        context.learn(decision);
        while self.range < RANGE_MIN {
            self.range <<= 8;
            self.shift();
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        // Any number in the range will do: the one with most zeros behind it.
        let last = self.low + u64::from(self.range) - 1;
        for zeros in (0..=32).rev() {
            let end = last >> zeros << zeros;
            if end >= self.low {
                self.low = end;
                break;
            }
        }
        self.carry();
        (0..4).for_each(|_| self.shift());
        let zeros = self.bytes.iter().rev().take_while(|byte| **byte == 0).count();
        self.bytes.truncate(self.bytes.len() - zeros.min(TRIMMED_MAX));
        self.out.write_all(&self.bytes)?;
        self.bytes.clear();
        Ok(())
    }
}

/// Reads decisions.
pub struct VP8Reader<R> {
    input: R,
    /// Where the stream is in the range.
    code: u32,
    range: u32,
    supplied: usize,
}

impl<R: Read> VP8Reader<R> {
    /// Begins to read a stream.
    pub fn new(input: R) -> io::Result<Self> {
        let mut reader = Self { input, code: 0, range: u32::MAX, supplied: 0 };
        for _ in 0..4 {
            reader.code = reader.code << 8 | u32::from(reader.next_byte()?);
        }
        Ok(reader)
    }

    fn next_byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        if self.input.read(&mut byte)? == 0 {
            self.supplied += 1;
            if self.supplied > SUPPLIED_MAX {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(byte[0])
    }
}

impl<R: Read> CabacReader<VP8Context> for VP8Reader<R> {
    fn get(&mut self, context: &mut VP8Context) -> io::Result<bool> {
        let part = context.part(self.range);
        let decision = self.code >= part;
        match decision {
            false => self.range = part,
            true => {
                self.code -= part;
                self.range -= part;
            }
        }
        context.learn(decision);
        while self.range < RANGE_MIN {
            self.range <<= 8;
            self.code = self.code << 8 | u32::from(self.next_byte()?);
        }
        Ok(decision)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    fn coded(decisions: &[(usize, bool)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = VP8Writer::new(&mut bytes).unwrap();
        let mut contexts = [VP8Context::default(); 4];
        for (context, decision) in decisions {
            writer.put(*decision, &mut contexts[*context]).unwrap();
        }
        writer.finish().unwrap();
        bytes
    }

    proptest! {
        #[test]
        fn decisions_come_back(
            decisions in proptest::collection::vec((0usize..4, any::<bool>()), 0..3000),
            skew in 0usize..4,
        ) {
            // Some contexts see almost only one decision.
            let decisions: Vec<(usize, bool)> =
                decisions.into_iter().map(|(c, d)| (c, d && c >= skew)).collect();
            let bytes = coded(&decisions);
            let mut reader = VP8Reader::new(Cursor::new(&bytes)).unwrap();
            let mut contexts = [VP8Context::default(); 4];
            for (context, decision) in decisions {
                prop_assert_eq!(reader.get(&mut contexts[context]).unwrap(), decision);
            }
        }

        #[test]
        fn numbers_come_back(numbers in proptest::collection::vec((0usize..33, any::<u32>()), 0..300)) {
            let mut bytes = Vec::new();
            let mut writer = VP8Writer::new(&mut bytes).unwrap();
            let (mut unary, mut bits) = ([VP8Context::default(); 32], [VP8Context::default(); 32]);
            for (length, number) in &numbers {
                writer.put_unary_encoded(*length, &mut unary).unwrap();
                writer.put_n_bits(u64::from(*number), *length, &mut bits).unwrap();
            }
            writer.finish().unwrap();
            let mut reader = VP8Reader::new(Cursor::new(&bytes)).unwrap();
            let (mut unary, mut bits) = ([VP8Context::default(); 32], [VP8Context::default(); 32]);
            for (length, number) in numbers {
                prop_assert_eq!(reader.get_unary_encoded(&mut unary).unwrap(), length);
                let mask = (1u64 << length) - 1;
                let found = reader.get_n_bits(length, &mut bits).unwrap();
                prop_assert_eq!(found, u64::from(number) & mask);
            }
        }

        #[test]
        fn every_stream_ends(junk: Vec<u8>) {
            let mut reader = VP8Reader::new(Cursor::new(&junk)).unwrap();
            let mut context = VP8Context::default();
            let ends = (0..(junk.len() + 32) * 40_000).any(|_| reader.get(&mut context).is_err());
            prop_assert!(ends);
        }
    }

    #[test]
    fn what_is_expected_takes_almost_nothing() {
        let certain: Vec<(usize, bool)> = (0..10_000).map(|n| (0, n % 1000 == 999)).collect();
        assert!(coded(&certain).len() < 40, "{} bytes", coded(&certain).len());
        assert_eq!(coded(&[]).len(), 0);
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused() {
        let mut writer = VP8Writer::new(Vec::new()).unwrap();
        let mut contexts = [VP8Context::default(); 2];
        assert!(writer.put_unary_encoded(3, &mut contexts).is_err());
        assert!(writer.put_n_bits(1, 3, &mut contexts).is_err());
    }
}
