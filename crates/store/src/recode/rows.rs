//! Rows of a PNG without their filters: the pixels as they are compress better by LZMA than what
//! the filters, made for deflate, left of them.

use super::MAX_PLAIN_BYTES;
use super::lzma::Unit;

/// The shape of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// How far back a filter looks.
    pub(super) pixel_bytes: usize,
    /// Without the byte that names the filter.
    pub(super) row_bytes: usize,
}

impl Shape {
    /// From the front of a PNG; none where rows are interlaced, or for what no PNG has.
    pub(super) fn of_png(front: &[u8]) -> Option<Self> {
        let is_interlaced = *front.get(28)? != 0;
        Self::of_picture(front).filter(|_| !is_interlaced)
    }

    /// The same as if nothing were interlaced.
    fn of_picture(front: &[u8]) -> Option<Self> {
        let head = front.get(16..26)?;
        let width = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let (depth, colours) = (usize::from(head[8]), head[9]);
        let channels = match colours {
            0 | 3 => 1,
            2 => 3,
            4 => 2,
            6 => 4,
            _ => return None,
        };
        let row_bytes = width.checked_mul(channels * depth)?.div_ceil(8);
        let shape = Self { pixel_bytes: (channels * depth).div_ceil(8), row_bytes };
        shape.is_possible().then_some(shape)
    }

    pub(super) fn is_possible(self) -> bool {
        (1..=8).contains(&self.pixel_bytes) && (1..=MAX_PLAIN_BYTES).contains(&self.row_bytes)
    }

    pub(super) fn unit(self) -> Unit {
        match self.pixel_bytes {
            2 | 6 => Unit::Two,
            3 | 4 | 8 => Unit::Four,
            _ => Unit::One,
        }
    }

    /// RGB gets a fourth byte, so that the position in a pixel shows in the position in the data.
    fn is_padded(self) -> bool {
        self.pixel_bytes == 3 && self.row_bytes.is_multiple_of(3)
    }

    fn padded_row_bytes(self) -> usize {
        if self.is_padded() { self.row_bytes / 3 * 4 } else { self.row_bytes }
    }
}

/// How much the rows of a PNG come to, as its head says; about as much if it is interlaced.
pub(super) fn pixel_bytes(body: &[u8]) -> Option<usize> {
    let height = body.get(20..24)?;
    let height = u32::from_be_bytes([height[0], height[1], height[2], height[3]]) as usize;
    Shape::of_picture(body)?.row_bytes.checked_mul(height)
}

/// All pixels, then the filter of each row.
pub(super) fn unfilter(filtered: &[u8], shape: Shape) -> Option<Vec<u8>> {
    let stride = shape.row_bytes + 1;
    if filtered.is_empty() || !filtered.len().is_multiple_of(stride) {
        return None;
    }
    let rows = filtered.len() / stride;
    let mut out = Vec::with_capacity(rows * (shape.padded_row_bytes() + 1));
    let mut filters = Vec::with_capacity(rows);
    let mut above = vec![0; shape.row_bytes];
    let mut row = above.clone();
    for line in filtered.chunks_exact(stride) {
        let (filter, data) = line.split_first()?;
        filters.push(*filter);
        row.copy_from_slice(data);
        add(*filter, &mut row, &above, shape.pixel_bytes)?;
        match shape.is_padded() {
            true => row.chunks_exact(3).for_each(|p| out.extend([p[0], p[1], p[2], 0])),
            false => out.extend_from_slice(&row),
        }
        std::mem::swap(&mut row, &mut above);
    }
    out.extend(filters);
    Some(out)
}

/// What [`unfilter`] was given.
pub(super) fn filter(unfiltered: &[u8], shape: Shape) -> Option<Vec<u8>> {
    let padded = shape.padded_row_bytes();
    if !unfiltered.len().is_multiple_of(padded + 1) {
        return None;
    }
    let rows = unfiltered.len() / (padded + 1);
    let (pixels, filters) = unfiltered.split_at(rows * padded);
    let mut out = Vec::with_capacity(rows * (shape.row_bytes + 1));
    let mut above = vec![0; shape.row_bytes];
    let mut row = above.clone();
    for (line, filter) in pixels.chunks_exact(padded).zip(filters) {
        match shape.is_padded() {
            true => row.chunks_exact_mut(3).zip(line.chunks_exact(4)).for_each(|(to, from)| {
                to.copy_from_slice(&from[..3]);
            }),
            false => row.copy_from_slice(line),
        }
        out.push(*filter);
        let begin = out.len();
        out.extend_from_slice(&row);
        subtract(*filter, &mut out[begin..], &row, &above, shape.pixel_bytes)?;
        std::mem::swap(&mut row, &mut above);
    }
    Some(out)
}

/// Takes from each byte of `out`, a copy of `row`, what the filter predicts for it. All pixels
/// are known here, so the loops go over many bytes at once.
fn subtract(
    filter: u8,
    out: &mut [u8],
    row: &[u8],
    above: &[u8],
    pixel_bytes: usize,
) -> Option<()> {
    let (first, rest) = out.split_at_mut(pixel_bytes.min(row.len()));
    let (above_first, above_rest) = above.split_at(first.len());
    // For each byte of the rest, the one left of it and the one left of that above it.
    let (left, corner) = (&row[..rest.len()], &above[..rest.len()]);
    match filter {
        0 => {}
        1 => rest.iter_mut().zip(left).for_each(|(to, left)| *to = to.wrapping_sub(*left)),
        2 => {
            first.iter_mut().zip(above_first).for_each(|(to, b)| *to = to.wrapping_sub(*b));
            rest.iter_mut().zip(above_rest).for_each(|(to, b)| *to = to.wrapping_sub(*b));
        }
        3 => {
            first.iter_mut().zip(above_first).for_each(|(to, b)| *to = to.wrapping_sub(*b / 2));
            for ((to, a), b) in rest.iter_mut().zip(left).zip(above_rest) {
                *to = to.wrapping_sub(((u16::from(*a) + u16::from(*b)) / 2) as u8);
            }
        }
        4 => {
            first.iter_mut().zip(above_first).for_each(|(to, b)| *to = to.wrapping_sub(*b));
            for (((to, a), b), c) in rest.iter_mut().zip(left).zip(above_rest).zip(corner) {
                *to = to.wrapping_sub(paeth(*a, *b, *c));
            }
        }
        _ => return None,
    }
    Some(())
}

/// Adds to each byte of `row`, from left to right, what the filter predicts for it.
fn add(filter: u8, row: &mut [u8], above: &[u8], pixel_bytes: usize) -> Option<()> {
    let length = row.len();
    let left_of = |row: &[u8], at: usize| if at < pixel_bytes { 0 } else { row[at - pixel_bytes] };
    let change = |row: &mut [u8], at: usize, predicted: u8| {
        row[at] = row[at].wrapping_add(predicted);
    };
    match filter {
        0 => {}
        1 => (pixel_bytes..length).for_each(|at| {
            let left = row[at - pixel_bytes];
            change(row, at, left);
        }),
        2 => (0..length).for_each(|at| change(row, at, above[at])),
        3 => (0..length).for_each(|at| {
            let sum = u16::from(left_of(row, at)) + u16::from(above[at]);
            change(row, at, (sum / 2) as u8);
        }),
        4 => (0..length).for_each(|at| {
            let predicted = paeth(left_of(row, at), above[at], left_of(above, at));
            change(row, at, predicted);
        }),
        _ => return None,
    }
    Some(())
}

/// Which of the three is nearest to their plane.
fn paeth(left: u8, above: u8, corner: u8) -> u8 {
    let (a, b, c) = (i16::from(left), i16::from(above), i16::from(corner));
    let (to_left, to_above, to_corner) = ((b - c).abs(), (a - c).abs(), (a + b - 2 * c).abs());
    if to_left <= to_above && to_left <= to_corner {
        left
    } else if to_above <= to_corner {
        above
    } else {
        corner
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_rows_come_back(
            pixel_bytes in 1usize..9, pixels in 1usize..20, rows in 1usize..12, seed: u64,
        ) {
            let shape = Shape { pixel_bytes, row_bytes: pixels * pixel_bytes };
            let mut state = seed;
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) as u8
            };
            let filtered: Vec<u8> = (0..rows)
                .flat_map(|_| {
                    let filter = next() % 5;
                    std::iter::once(filter)
                        .chain((0..shape.row_bytes).map(|_| next()).collect::<Vec<_>>())
                        .collect::<Vec<_>>()
                })
                .collect();
            let unfiltered = unfilter(&filtered, shape).unwrap();
            prop_assert_eq!(filter(&unfiltered, shape), Some(filtered));
        }

        #[test]
        fn junk_never_panics(junk: Vec<u8>, pixel_bytes in 1usize..9, row_bytes in 1usize..99) {
            let shape = Shape { pixel_bytes, row_bytes };
            let _ = unfilter(&junk, shape);
            let _ = filter(&junk, shape);
            let _ = Shape::of_png(&junk);
        }
    }

    #[test]
    fn pixels_are_those_of_the_picture() {
        let shape = Shape { pixel_bytes: 1, row_bytes: 3 };
        // No filter, then above, left, average and Paeth, all of the same grey steps.
        let filtered = [0, 10, 20, 30, 2, 0, 0, 0, 1, 10, 10, 10, 3, 5, 5, 5, 4, 0, 10, 10];
        let unfiltered = unfilter(&filtered, shape).unwrap();
        assert_eq!(unfiltered[..12], [10, 20, 30, 10, 20, 30, 10, 20, 30, 10, 20, 30]);
        assert_eq!(unfiltered[15..], [0, 2, 1, 3, 4]);
    }
}
