//! Positive numbers in two bytes.

use crate::varint::Reader;

/// A number from 7·10⁻⁸ to 10⁷, exact to 0.05%; 0 stands for the least, or for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Coded(pub(crate) u16);

const STEPS: f32 = 2_000.0;
const OFFSET: f32 = 16.5;

impl Coded {
    pub(crate) fn new(value: f32) -> Self {
        Self(((value.max(f32::MIN_POSITIVE).ln() + OFFSET) * STEPS).round() as u16)
    }

    pub(crate) fn value(self) -> f32 {
        (f32::from(self.0) / STEPS - OFFSET).exp()
    }

    pub(crate) fn new_or_zero(value: f32) -> Self {
        if value > 0.0 { Self::new(value) } else { Self(0) }
    }

    pub(crate) fn value_or_zero(self) -> f32 {
        if self.0 == 0 { 0.0 } else { self.value() }
    }

    pub(crate) fn write(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.0.to_le_bytes());
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        reader.array().map(|bytes| Self(u16::from_le_bytes(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_kept_to_a_two_thousandth() {
        for value in [1e-7f32, 0.003, 0.5, 1.0, 3.0, 1e4, 1e6] {
            assert!((Coded::new(value).value() / value - 1.0).abs() < 5e-4, "{value}");
        }
        assert_eq!(Coded::new_or_zero(0.0).value_or_zero(), 0.0);
        assert!(Coded::new(f32::MAX).value() > 1e6);
    }
}
