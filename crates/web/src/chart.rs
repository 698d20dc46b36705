//! Charts as SVG. Classes give the colours, so that the style sheet handles light and dark, and
//! every figure is also available as text.

mod calendar;
mod columns;
mod curve;
mod per_day;

pub(crate) use calendar::{calendar, first_day};
pub(crate) use columns::{Column, Key, columns};
pub(crate) use curve::{Curve, Curves, percent};
pub(crate) use per_day::{Marks, PerDay, Series};

/// Round numbers from 0 to at least `most`, a few of them.
fn ticks(most: u64) -> Vec<u64> {
    let target = most.max(1).div_ceil(4);
    let magnitude = 10_u64.pow(target.ilog10());
    let step = [1, 2, 5, 10]
        .into_iter()
        .map(|factor| magnitude.saturating_mul(factor))
        .find(|step| *step >= target)
        .unwrap_or(target);
    let mut ticks = vec![0];
    while ticks.last().is_some_and(|last| *last < most.max(1)) {
        ticks.push(step.saturating_mul(ticks.len() as u64));
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::ticks;

    #[test]
    fn ticks_are_round_few_and_reach_the_top() {
        assert_eq!(ticks(0), [0, 1]);
        assert_eq!(ticks(3), [0, 1, 2, 3]);
        assert_eq!(ticks(87), [0, 50, 100]);
        assert_eq!(ticks(1_234_567), [0, 500_000, 1_000_000, 1_500_000]);
        for most in [1, 9, 10, 11, 99, 12_345, u64::MAX / 8] {
            let ticks = ticks(most);
            assert!(ticks.len() <= 6 && *ticks.last().unwrap() >= most, "{most}: {ticks:?}");
        }
    }
}
