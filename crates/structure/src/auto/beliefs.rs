//! What is remembered between rounds: a server's beliefs, and those that all servers share.

use crate::auto::calibration::{Calibration, SITUATIONS};
use crate::auto::fragments::{FRAGMENT_PRIOR_MEANS, FRAGMENT_STATES};
use crate::auto::gaussian::Gaussian;
use crate::auto::layout::{FEATURES, SHARED, SharedKind, is_guide, shared_kind, shared_prior_mean};
use crate::auto::options::AutoOptions;
use crate::auto::page_spread::{PageSpread, SharedPageSpread};

/// The belief about one page, in four bytes: its own level of change, the certainty of that, and
/// its last four outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageBelief {
    mean_steps: i16,
    variance_steps: u8,
    /// Up to four outcomes after a leading 1 bit, the newest in the lowest bit.
    pub(crate) history: u8,
}

const MEAN_STEP: f64 = 1.0 / 2048.0;
/// Variances are stored from 8 downwards, with 28 steps for each halving.
const VARIANCE_MAX: f64 = 8.0;
const STEPS_PER_HALVING: f64 = 28.0;

impl PageBelief {
    fn unknown(options: &AutoOptions) -> Self {
        let mut belief = Self { mean_steps: 0, variance_steps: 0, history: 1 };
        belief.set(Gaussian::new(0.0, options.page_variance));
        belief
    }

    pub(crate) fn level(self) -> Gaussian {
        let halvings = f64::from(self.variance_steps) / STEPS_PER_HALVING;
        Gaussian::new(f64::from(self.mean_steps) * MEAN_STEP, VARIANCE_MAX * (-halvings).exp2())
    }

    pub(crate) fn set(&mut self, level: Gaussian) {
        // The casts saturate, as they should at the ends of the scales.
        self.mean_steps = (f64::from(level.mean) / MEAN_STEP).round() as i16;
        let halvings = (VARIANCE_MAX / f64::from(level.variance)).log2();
        self.variance_steps = (halvings * STEPS_PER_HALVING).round() as u8;
    }

    /// Whether any outcome is known.
    pub(crate) fn was_seen(self) -> bool {
        self.history > 1
    }

    pub(crate) fn remember(&mut self, changed: bool) {
        let last_three = if self.history >= 16 { 8 | (self.history & 7) } else { self.history };
        self.history = last_three << 1 | u8::from(changed);
    }

    pub(crate) fn to_bytes(self) -> [u8; 4] {
        let [low, high] = self.mean_steps.to_le_bytes();
        [low, high, self.variance_steps, self.history]
    }

    pub(crate) fn from_bytes([low, high, variance_steps, history]: [u8; 4]) -> Option<Self> {
        let mean_steps = i16::from_le_bytes([low, high]);
        (1..32).contains(&history).then_some(Self { mean_steps, variance_steps, history })
    }
}

/// How much a level shifts from round to round. This is learnt, because some servers change as a
/// whole and others page by page. Squares are counted beyond what noise explains, so the sum may be
/// negative.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Spread {
    pub(crate) squares: f32,
    pub(crate) shifts: f32,
}

/// No level is ever believed not to vary at all.
const VARIANCE_MIN: f64 = 0.02;
/// Beyond this many shifts older ones are forgotten, so that a server may change its habits.
pub(crate) const SHIFTS_KEPT: f32 = 200.0;
/// The same for the beliefs that all servers share, and the greatest weight of one server's round
/// there.
pub(crate) const SHARED_SHIFTS_KEPT: f32 = 1000.0;
pub(crate) const SERVER_WEIGHT_MAX: f32 = 10.0;

impl Spread {
    pub(crate) fn variance(self, prior: f64, prior_rounds: f64) -> f64 {
        let squares = prior_rounds * prior + f64::from(self.squares);
        (squares / (prior_rounds + f64::from(self.shifts))).max(VARIANCE_MIN)
    }

    /// The same, shrunk towards 0 instead of towards the prior: only what was observed.
    pub(crate) fn learnt_variance(self, prior_rounds: f64) -> f64 {
        f64::from(self.squares).max(0.0) / (prior_rounds + f64::from(self.shifts))
    }

    /// Adds the result of a round with a weight of at most `weight_max`; beyond `kept` shifts older
    /// ones are forgotten.
    pub(crate) fn add(&mut self, other: Self, weight_max: f32, kept: f32) {
        let share = (weight_max / other.shifts.max(f32::MIN_POSITIVE)).min(1.0);
        self.squares += share * other.squares;
        self.shifts += share * other.shifts;
        if self.shifts > kept {
            self.squares *= kept / self.shifts;
            self.shifts = kept;
        }
    }

    /// Learns from a shift at the end of its round, as far as the round has shown it.
    pub(crate) fn learn(&mut self, shift: Gaussian, prior_variance: f64) {
        let known = (1.0 - f64::from(shift.variance) / prior_variance).clamp(0.0, 1.0);
        let noise = known * f64::from(shift.variance);
        self.squares += (f64::from(shift.mean).powi(2) - noise) as f32;
        self.shifts += (known * known) as f32;
        if self.shifts > SHIFTS_KEPT {
            self.squares *= SHIFTS_KEPT / self.shifts;
            self.shifts = SHIFTS_KEPT;
        }
    }
}

/// The levels that shift in each round.
pub(crate) const SPREADS: usize = 6;
#[derive(Debug, Clone, Copy)]
pub(crate) enum Level {
    Server,
    Directory,
    Family,
    Template,
    Depth,
    History,
}

impl Level {
    pub(crate) const ALL: [Self; SPREADS] =
        [Self::Server, Self::Directory, Self::Family, Self::Template, Self::Depth, Self::History];

    pub(crate) fn prior_variance(self, options: &AutoOptions) -> f64 {
        match self {
            Self::Server => options.round_server_variance,
            Self::Directory => options.round_directory_variance,
            Self::Family => options.round_family_variance,
            Self::Template => options.round_template_variance,
            Self::Depth => options.round_depth_variance,
            Self::History => options.round_history_variance,
        }
    }
}

/// The beliefs about one server that are stored between rounds: four bytes for each page, and eight
/// for each directory and family.
#[derive(Debug, Clone, PartialEq)]
pub struct Beliefs {
    pub(crate) bias: Gaussian,
    pub(crate) features: Vec<Gaussian>,
    pub(crate) directories: Vec<Gaussian>,
    pub(crate) families: Vec<Gaussian>,
    pub(crate) pages: Vec<PageBelief>,
    pub(crate) spreads: [Spread; SPREADS],
    pub(crate) page_spread: PageSpread,
    /// What the fragments that a page shares say about it, beyond what they say on all servers.
    pub(crate) fragments: [Gaussian; FRAGMENT_STATES],
}

impl Beliefs {
    /// Beliefs about a server of which nothing is known.
    #[must_use]
    pub fn new(options: &AutoOptions) -> Self {
        let mut features = vec![Gaussian::new(0.0, options.feature_variance); FEATURES];
        for (_, guide) in features.iter_mut().enumerate().filter(|(at, _)| is_guide(*at)) {
            guide.variance = options.guide_variance as f32;
        }
        Self {
            bias: Gaussian::new(options.bias, options.bias_variance),
            features,
            directories: Vec::new(),
            families: Vec::new(),
            pages: Vec::new(),
            spreads: [Spread::default(); SPREADS],
            page_spread: PageSpread::default(),
            fragments: [Gaussian::new(0.0, options.fragment_variance); FRAGMENT_STATES],
        }
    }

    /// Adds entries for pages, directories and families that were found since.
    pub(crate) fn grow(
        &mut self,
        pages: usize,
        directories: usize,
        families: usize,
        options: &AutoOptions,
    ) {
        let directory = Gaussian::new(0.0, options.directory_variance);
        let family = Gaussian::new(0.0, options.family_variance);
        grow_to(&mut self.pages, pages, PageBelief::unknown(options));
        grow_to(&mut self.directories, directories, directory);
        grow_to(&mut self.families, families, family);
    }

    /// The believed variance of a level on this server, starting from what all servers have shown.
    pub(crate) fn shift_variance(
        &self,
        level: Level,
        shared: &SharedBeliefs,
        options: &AutoOptions,
    ) -> f64 {
        let prior = level.prior_variance(options);
        let everywhere =
            shared.spreads[level as usize].variance(prior, options.shared_spread_prior);
        self.spreads[level as usize].variance(everywhere, options.spread_prior_rounds)
    }

    /// The believed lasting variance between the pages of this server.
    pub(crate) fn page_variance(&self, shared: &SharedBeliefs, options: &AutoOptions) -> f64 {
        self.page_spread.variance(&shared.page_spread, options.page_spread_prior)
    }

    pub(crate) fn learnt_shift_variance(&self, level: Level, options: &AutoOptions) -> f64 {
        self.spreads[level as usize].learnt_variance(options.spread_prior_rounds)
    }

    /// How much the pages of the server, of a directory, a family and a template were seen to shift
    /// together, as variances; 0 where nothing was learnt.
    #[must_use]
    pub fn learnt_shifts(
        &self,
        options: &AutoOptions,
    ) -> std::collections::BTreeMap<&'static str, f64> {
        let levels = [
            ("server", Level::Server),
            ("directory", Level::Directory),
            ("family", Level::Family),
            ("template", Level::Template),
        ];
        levels
            .into_iter()
            .map(|(name, level)| (name, self.learnt_shift_variance(level, options)))
            .collect()
    }

    /// A round has passed: earlier beliefs become a little less certain.
    pub(crate) fn drift(&mut self, options: &AutoOptions) {
        let drift = options.drift as f32;
        self.bias.variance += drift;
        let groups = [&mut self.features, &mut self.directories, &mut self.families];
        for effect in groups.into_iter().flatten().chain(&mut self.fragments) {
            effect.variance += drift;
        }
        for page in &mut self.pages {
            let mut level = page.level();
            level.variance = (level.variance + drift).min(options.page_variance as f32);
            page.set(level);
        }
    }

    /// The page's last outcomes, newest first, at most four.
    #[must_use]
    pub fn last_outcomes(&self, page: crate::graph::PageIndex) -> Vec<bool> {
        let Some(belief) = self.pages.get(page.at()) else { return Vec::new() };
        let known = belief.history.ilog2();
        (0..known).map(|back| belief.history >> back & 1 == 1).collect()
    }
}

fn grow_to<T: Clone>(list: &mut Vec<T>, len: usize, value: T) {
    if list.len() < len {
        list.resize(len, value);
    }
}

/// What is learnt from all servers together: the meaning of positions, histories and evidence
/// anywhere.
#[derive(Debug, Clone, PartialEq)]
pub struct SharedBeliefs {
    pub(crate) effects: Vec<Gaussian>,
    /// How much levels shift on servers in general.
    pub(crate) spreads: [Spread; SPREADS],
    pub(crate) page_spread: SharedPageSpread,
    /// How well scores and outcomes agree, by situation.
    pub(crate) calibration: [Calibration; SITUATIONS],
    /// What the fragments that a page shares say about it.
    pub(crate) fragments: [Gaussian; FRAGMENT_STATES],
}

impl SharedBeliefs {
    /// Beliefs before anything was learnt.
    #[must_use]
    pub fn new(options: &AutoOptions) -> Self {
        let effect = |at: usize| {
            let variance = match shared_kind(at) {
                SharedKind::Feature => options.shared_feature_variance,
                SharedKind::Guide => options.guide_variance,
                SharedKind::History => options.history_variance,
                SharedKind::Evidence => options.modified_variance,
            };
            Gaussian::new(shared_prior_mean(at), variance)
        };
        Self {
            effects: (0..SHARED).map(effect).collect(),
            spreads: [Spread::default(); SPREADS],
            page_spread: SharedPageSpread::default(),
            calibration: [Calibration::new(options.calibration_variance); SITUATIONS],
            fragments: FRAGMENT_PRIOR_MEANS
                .map(|mean| Gaussian::new(mean, options.fragment_variance)),
        }
    }

    pub(crate) fn drift(&mut self, options: &AutoOptions) {
        for effect in self.effects.iter_mut().chain(&mut self.fragments) {
            effect.variance += (options.drift / 10.0) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_kept_in_four_bytes_within_a_few_percent() {
        let mut belief = PageBelief::unknown(&AutoOptions::default());
        for (mean, variance) in [(0.0, 2.0), (-1.75, 0.31), (2.5, 1.0), (-7.9, 0.05)] {
            belief.set(Gaussian::new(mean, variance));
            let level = PageBelief::from_bytes(belief.to_bytes()).unwrap().level();
            assert!((f64::from(level.mean) - mean).abs() < 0.001);
            assert!((f64::from(level.variance) / variance - 1.0).abs() < 0.02);
        }
    }

    #[test]
    fn only_the_last_four_outcomes_are_remembered() {
        let mut beliefs = Beliefs::new(&AutoOptions::default());
        beliefs.grow(1, 0, 0, &AutoOptions::default());
        assert!(beliefs.last_outcomes(crate::PageIndex(0)).is_empty());
        for changed in [true, false, false, true, true, false] {
            beliefs.pages[0].remember(changed);
        }
        assert_eq!(beliefs.last_outcomes(crate::PageIndex(0)), [false, true, true, false]);
        assert!(beliefs.pages[0].history < 32);
    }

    #[test]
    fn a_server_that_never_shifts_is_believed_to_shift_less() {
        let options = AutoOptions::default();
        let mut beliefs = Beliefs::new(&options);
        let shared = SharedBeliefs::new(&options);
        let before = beliefs.shift_variance(Level::Server, &shared, &options);
        beliefs.spreads[Level::Server as usize].learn(Gaussian::new(0.1, 0.2), 10.0);
        assert!(beliefs.shift_variance(Level::Server, &shared, &options) < before);
    }
}
