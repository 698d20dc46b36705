//! Positive numbers in two bytes.

use crate::varint::Reader;

/// A number from 7·10⁻⁸ to 10⁷, exact to 0.05%.
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

    pub(crate) fn write(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.0.to_le_bytes());
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        reader.array().map(|bytes| Self(u16::from_le_bytes(bytes)))
    }
}

/// A number from 10⁻⁴ to 10⁵ in one byte, exact to 4%; what is smaller is nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Rough(pub(crate) u8);

const ROUGH_STEPS: f32 = 12.2;
const ROUGH_LEAST: f32 = 1e-4;

impl Rough {
    pub(crate) fn new(value: f32) -> Self {
        if value.is_nan() || value < ROUGH_LEAST {
            return Self(0);
        }
        Self(((value / ROUGH_LEAST).ln() * ROUGH_STEPS).round() as u8)
    }

    pub(crate) fn value(self) -> f32 {
        if self.0 == 0 { 0.0 } else { ROUGH_LEAST * (f32::from(self.0) / ROUGH_STEPS).exp() }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        reader.array().map(|[byte]: [u8; 1]| Self(byte))
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
        assert!(Coded::new(f32::MAX).value() > 1e6);
    }

    #[test]
    fn rough_numbers_are_kept_to_a_twentieth() {
        for value in [2e-4f32, 0.01, 0.5, 1.0, 30.0, 9e4] {
            assert!((Rough::new(value).value() / value - 1.0).abs() < 0.05, "{value}");
        }
        assert_eq!(Rough::new(0.0).value(), 0.0);
        assert_eq!(Rough::new(f32::NAN).value(), 0.0);
    }
}
