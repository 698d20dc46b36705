/// How values are spread along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal steps are equal differences.
    Linear,
    /// Equal steps are equal ratios; values that are not positive cannot be shown.
    Log,
}

/// One axis of a plot: its label with the unit, its scale and perhaps fixed ends.
#[derive(Clone, Debug)]
pub struct Axis {
    pub(super) label: String,
    pub(super) scale: Scale,
    from: Option<f64>,
    to: Option<f64>,
}

impl Axis {
    /// A linear axis; write the unit into the label: `pages collected (%)`.
    #[must_use]
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Linear, from: None, to: None }
    }

    /// A logarithmic axis.
    #[must_use]
    pub fn log(label: impl Into<String>) -> Self {
        Self { scale: Scale::Log, ..Self::linear(label) }
    }

    /// Fixes the lower end.
    #[must_use]
    pub fn from(mut self, value: f64) -> Self {
        self.from = Some(value);
        self
    }

    /// Fixes the upper end.
    #[must_use]
    pub fn to(mut self, value: f64) -> Self {
        self.to = Some(value);
        self
    }

    /// Whether a value can be shown on this axis.
    pub(super) fn can_show(&self, value: f64) -> bool {
        value.is_finite() && (self.scale == Scale::Linear || value > 0.0)
    }

    /// The axis with ends and ticks chosen for these values.
    pub(super) fn fit(&self, values: impl Iterator<Item = f64>) -> Ruler {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| self.can_show(*value)) {
            low = low.min(value);
            high = high.max(value);
        }
        if low > high {
            (low, high) = (1.0, 10.0);
        }
        let usable = |end: &f64| self.can_show(*end);
        let low = self.from.filter(usable).unwrap_or(low);
        let high = self.to.filter(usable).unwrap_or(high).max(low);
        match self.scale {
            Scale::Linear => linear_ruler(low, high, self.from.is_some(), self.to.is_some()),
            Scale::Log => log_ruler(low, high, self.from.is_some(), self.to.is_some()),
        }
    }
}

/// An axis with its ends and ticks fixed: turns values into fractions of its length.
#[derive(Clone, Debug)]
pub(super) struct Ruler {
    low: f64,
    high: f64,
    scale: Scale,
    pub(super) ticks: Vec<f64>,
}

impl Ruler {
    /// Position of a value, 0 at the lower end and 1 at the upper.
    pub(super) fn fraction(&self, value: f64) -> f64 {
        let fraction = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        // A point outside of fixed ends is drawn at the border rather than over the labels.
        if fraction.is_finite() { fraction.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// The value where bars begin.
    pub(super) fn base(&self) -> f64 {
        if self.scale == Scale::Linear { 0.0_f64.clamp(self.low, self.high) } else { self.low }
    }
}

const TICKS_WANTED: f64 = 5.0;

fn linear_ruler(low: f64, high: f64, keep_low: bool, keep_high: bool) -> Ruler {
    let (mut low, mut high) = if high > low { (low, high) } else { widen(low) };
    // A linear axis starts at zero when that costs little space: lengths then compare correctly.
    if !keep_low && low > 0.0 && low < 0.5 * high {
        low = 0.0;
    }
    let step = nice_step((high - low) / TICKS_WANTED);
    if !keep_low {
        low = (low / step + 1e-9).floor() * step;
    }
    if !keep_high {
        high = (high / step - 1e-9).ceil() * step;
    }
    let first = (low / step - 1e-9).ceil();
    let count = ((high / step + 1e-9).floor() - first).clamp(0.0, 50.0) as usize;
    let ticks = (0..=count).map(|index| (first + index as f64) * step).collect();
    Ruler { low, high, scale: Scale::Linear, ticks }
}

fn widen(value: f64) -> (f64, f64) {
    if value == 0.0 { (0.0, 1.0) } else { (value - value.abs() * 0.5, value + value.abs() * 0.5) }
}

/// The smallest of 1, 2, 5 times a power of ten that is not below the rough step.
fn nice_step(rough: f64) -> f64 {
    let magnitude = 10.0_f64.powf(rough.log10().floor());
    let digit = [1.0, 2.0, 5.0, 10.0].into_iter().find(|digit| digit * magnitude >= rough * 0.999);
    digit.unwrap_or(10.0) * magnitude
}

fn log_ruler(low: f64, high: f64, keep_low: bool, keep_high: bool) -> Ruler {
    let (low, high) = if high > low { (low, high) } else { (low / 2.0, low * 2.0) };
    let decades = (high / low).log10();
    let digits: &[f64] = if decades < 1.5 {
        &[1.0, 2.0, 3.0, 5.0, 7.0]
    } else if decades < 3.5 {
        &[1.0, 2.0, 5.0]
    } else {
        &[1.0]
    };
    let stride = (decades / 9.0).ceil().max(1.0) as usize;
    let from = low.log10().floor() as i32 - 1;
    let to = high.log10().ceil() as i32 + 1;
    let candidates: Vec<f64> = (from..=to)
        .step_by(stride)
        .flat_map(|power| digits.iter().map(move |digit| digit * 10.0_f64.powi(power)))
        .collect();
    let below = candidates.iter().copied().rfind(|tick| *tick <= low * 1.0001);
    let above = candidates.iter().copied().find(|tick| *tick >= high * 0.9999);
    let low = if keep_low { low } else { below.unwrap_or(low) };
    let high = if keep_high { high } else { above.unwrap_or(high) };
    let ticks = candidates
        .into_iter()
        .filter(|tick| *tick >= low * 0.9999 && *tick <= high * 1.0001)
        .collect();
    Ruler { low, high, scale: Scale::Log, ticks }
}

/// A number as people write it: no needless zeros, k, M and G above a thousand.
pub(super) fn short_number(value: f64) -> String {
    let size = value.abs();
    let (scaled, suffix) = match size {
        _ if size >= 1e15 => return format!("{value:.1e}"),
        _ if size >= 1e9 => (value / 1e9, "G"),
        _ if size >= 1e6 => (value / 1e6, "M"),
        _ if size >= 1e4 => (value / 1e3, "k"),
        _ if size > 0.0 && size < 1e-4 => return format!("{value:.0e}"),
        _ => (value, ""),
    };
    format!("{}{suffix}", trimmed(scaled, 4))
}

/// A number with up to `digits` significant digits and no trailing zeros.
pub(super) fn trimmed(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".into() } else { "–".into() };
    }
    let before_point = value.abs().log10().floor() as i64 + 1;
    let decimals = usize::try_from(digits as i64 - before_point).unwrap_or(0).min(12);
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ticks_are_round_numbers() {
        let ruler = Axis::linear("x").fit([0.0, 0.93].into_iter());
        assert_eq!(ruler.ticks, [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        let ruler = Axis::log("x").fit([3.0, 40_000.0].into_iter());
        assert_eq!(ruler.ticks, [1.0, 10.0, 100.0, 1_000.0, 10_000.0, 100_000.0]);
    }

    #[test]
    fn a_rounding_error_does_not_lengthen_the_axis() {
        let ruler = Axis::linear("x").fit([0.0, 100.000_000_000_01].into_iter());
        assert_eq!(ruler.ticks, [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
    }

    #[test]
    fn fixed_ends_are_kept() {
        let ruler = Axis::linear("x").from(10.0).to(97.0).fit([3.0].into_iter());
        assert_eq!((ruler.low, ruler.high), (10.0, 97.0));
        assert_eq!(ruler.fraction(3.0), 0.0, "what is outside is drawn at the border");
    }

    #[test]
    fn numbers_are_written_short() {
        let written = [0.0, 0.25, 1234.0, 12_000.0, 3_500_000.0, -2.0, 0.00002].map(short_number);
        assert_eq!(written, ["0", "0.25", "1234", "12k", "3.5M", "-2", "2e-5"]);
        assert_eq!(trimmed(0.375_04, 3), "0.375");
        assert_eq!(trimmed(f64::NAN, 3), "–");
    }

    proptest! {
        #[test]
        fn every_value_is_within_its_ruler(
            values in prop::collection::vec(-1e12_f64..1e12, 1..20),
            log in any::<bool>(),
        ) {
            let axis = if log { Axis::log("x") } else { Axis::linear("x") };
            let ruler = axis.fit(values.iter().copied());
            prop_assert!(ruler.high > ruler.low);
            prop_assert!(!ruler.ticks.is_empty() && ruler.ticks.len() <= 60);
            for value in values.into_iter().filter(|value| axis.can_show(*value)) {
                prop_assert!(value >= ruler.low * (1.0 - 1e-3) - 1e-3 || ruler.low < 0.0);
                let fraction = ruler.fraction(value);
                prop_assert!((0.0..=1.0).contains(&fraction));
            }
        }
    }
}
