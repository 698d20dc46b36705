//! Columns of rough numbers of which most are as expected.
//!
//! A bit for each number says whether it is another than expected; only those follow, a byte each.
//! On most days a group's exposure is the day's before, and most groups went as the one above
//! them: that is what keeps the clocks of many small groups within a page's few bytes.

use super::coded::Rough;
use crate::varint::Reader;

/// Appends a column; `expected` gets the numbers before.
pub(crate) fn write(bytes: &mut Vec<u8>, column: &[Rough], expected: impl Fn(&[Rough]) -> Rough) {
    let flags_at = bytes.len();
    bytes.resize(flags_at + column.len().div_ceil(8), 0);
    for (at, &number) in column.iter().enumerate() {
        if number != expected(&column[..at]) {
            bytes[flags_at + at / 8] |= 1 << (at % 8);
            bytes.push(number.0);
        }
    }
}

/// Reads a column of `length` numbers that was written with the same expectations.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    length: usize,
    expected: impl Fn(&[Rough]) -> Rough,
) -> Option<Vec<Rough>> {
    let flags: Vec<u8> =
        (0..length.div_ceil(8)).map(|_| Some(reader.array::<1>()?[0])).collect::<Option<_>>()?;
    let mut column = Vec::with_capacity(length);
    for at in 0..length {
        let is_other = flags[at / 8] >> (at % 8) & 1 == 1;
        column.push(if is_other { Rough::read(reader)? } else { expected(&column) });
    }
    Some(column)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn as_before(before: &[Rough]) -> Rough {
        before.last().copied().unwrap_or(Rough(0))
    }

    proptest! {
        #[test]
        fn columns_read_back_as_written(numbers in prop::collection::vec(0u8..4, 0..60)) {
            let column: Vec<Rough> = numbers.into_iter().map(Rough).collect();
            let mut bytes = Vec::new();
            write(&mut bytes, &column, as_before);
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(read(&mut reader, column.len(), as_before), Some(column));
            prop_assert!(reader.is_at_end());
        }
    }

    #[test]
    fn numbers_as_expected_take_a_bit_each() {
        let mut bytes = Vec::new();
        write(&mut bytes, &[Rough(7); 30], as_before);
        assert_eq!(bytes, [1, 0, 0, 0, 7]);
    }

    #[test]
    fn a_column_that_is_cut_off_is_refused() {
        let mut bytes = Vec::new();
        write(&mut bytes, &[1, 2, 3, 4, 4, 4, 4, 4, 5].map(Rough), as_before);
        for cut in 0..bytes.len() {
            assert_eq!(read(&mut Reader::new(&bytes[..cut]), 9, as_before), None);
        }
    }
}
