//! Beliefs as bytes, for storing them in the state.

use crate::auto::beliefs::{Beliefs, PageBelief, SPREADS, SharedBeliefs, Spread};
use crate::auto::calibration::{Calibration, SITUATIONS};
use crate::auto::fragments::FRAGMENT_STATES;
use crate::auto::gaussian::Gaussian;
use crate::auto::layout::{FEATURES, GUIDE_CHANGED, GUIDE_SAME, GUIDE_UNSEEN, OF_TOP_PAGE, SHARED};
use crate::auto::options::AutoOptions;
use crate::auto::page_spread::{GUESSES, PageSpread, SharedPageSpread};
use crate::error::StructureError;

const MAGIC: [u8; 4] = *b"nbl3";
const SHARED_MAGIC: [u8; 4] = *b"nbs4";
/// Written before shared fragments were evidence.
const SECOND_MAGIC: [u8; 4] = *b"nbl2";
const THIRD_SHARED_MAGIC: [u8; 4] = *b"nbs3";
/// Written before scores were compared with outcomes.
const SECOND_SHARED_MAGIC: [u8; 4] = *b"nbs2";
/// Written before the differences between pages were learnt, and before servers shared spreads.
const FIRST_MAGIC: [u8; 4] = *b"nbl1";
const FIRST_SHARED_MAGIC: [u8; 4] = *b"nbs1";
const FIRST_GUIDE_STATES: usize = 2;
const FIRST_SPREADS: usize = 4;

impl Beliefs {
    /// As bytes: little-endian, groups first, then four bytes for each page.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let counts = [self.directories.len(), self.families.len(), self.pages.len()];
        for count in counts {
            bytes.extend((count as u32).to_le_bytes());
        }
        let groups = self.features.iter().chain(&self.directories).chain(&self.families);
        for effect in std::iter::once(&self.bias).chain(groups) {
            put(&mut bytes, *effect);
        }
        put_spreads(&mut bytes, &self.spreads);
        put_guesses(&mut bytes, &self.page_spread.logs);
        self.fragments.iter().for_each(|&effect| put(&mut bytes, effect));
        bytes.extend(self.pages.iter().flat_map(|page| page.to_bytes()));
        bytes
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote for `server` (named in the error).
    ///
    /// # Errors
    /// When the bytes are damaged or of another format.
    pub fn from_bytes(bytes: &[u8], server: &str) -> Result<Self, StructureError> {
        let damaged = |what| StructureError::DamagedBeliefs { server: server.to_owned(), what };
        let mut reader = Reader { bytes };
        let format = match reader.take::<4>() {
            Some(MAGIC) => 3,
            Some(SECOND_MAGIC) => 2,
            Some(FIRST_MAGIC) => 1,
            _ => return Err(damaged("not beliefs of this format")),
        };
        reader.beliefs(format).ok_or_else(|| damaged("cut short or with impossible numbers"))
    }
}

impl SharedBeliefs {
    /// As bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = SHARED_MAGIC.to_vec();
        self.effects.iter().for_each(|&effect| put(&mut bytes, effect));
        put_spreads(&mut bytes, &self.spreads);
        put_guesses(&mut bytes, &self.page_spread.rounds);
        for line in &self.calibration {
            put(&mut bytes, line.slope);
            put(&mut bytes, line.offset);
        }
        self.fragments.iter().for_each(|&effect| put(&mut bytes, effect));
        bytes
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// When the bytes are damaged or of another format.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, StructureError> {
        let mut reader = Reader { bytes };
        let format = match reader.take::<4>() {
            Some(SHARED_MAGIC) => Some(4),
            Some(THIRD_SHARED_MAGIC) => Some(3),
            Some(SECOND_SHARED_MAGIC) => Some(2),
            Some(FIRST_SHARED_MAGIC) => Some(1),
            _ => None,
        };
        let what = "not shared beliefs of this format";
        format
            .and_then(|format| reader.shared(format))
            .ok_or(StructureError::DamagedBeliefs { server: "all".to_owned(), what })
    }
}

fn put(bytes: &mut Vec<u8>, effect: Gaussian) {
    bytes.extend(effect.mean.to_le_bytes());
    bytes.extend(effect.variance.to_le_bytes());
}

fn put_spreads(bytes: &mut Vec<u8>, spreads: &[Spread]) {
    for spread in spreads {
        put(bytes, Gaussian { mean: spread.squares, variance: spread.shifts });
    }
}

fn put_guesses(bytes: &mut Vec<u8>, weights: &[f32]) {
    bytes.extend(weights.iter().flat_map(|weight| weight.to_le_bytes()));
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.bytes.split_first_chunk::<N>()?;
        self.bytes = rest;
        Some(*head)
    }

    fn count(&mut self) -> Option<usize> {
        self.take().map(|bytes| u32::from_le_bytes(bytes) as usize)
    }

    fn effect(&mut self) -> Option<Gaussian> {
        let mean = f32::from_le_bytes(self.take()?);
        let variance = f32::from_le_bytes(self.take()?);
        let sound = mean.is_finite() && variance.is_finite() && variance >= 0.0;
        sound.then_some(Gaussian { mean, variance })
    }

    /// The count is not trusted: it is compared with the bytes present before memory is allocated.
    fn effects(&mut self, count: usize) -> Option<Vec<Gaussian>> {
        if self.bytes.len() / 8 < count {
            return None;
        }
        (0..count).map(|_| self.effect()).collect()
    }

    fn shared(&mut self, format: u8) -> Option<SharedBeliefs> {
        let effects = self.features(format == 1, SHARED)?;
        let (mut spreads, mut page_spread) = Default::default();
        if format > 1 {
            spreads = self.spreads(SPREADS)?;
            page_spread = SharedPageSpread { rounds: self.guesses()? };
            page_spread.rounds.iter().all(|&rounds| rounds >= 0.0).then_some(())?;
        }
        let unknown = Calibration::new(AutoOptions::default().calibration_variance);
        let mut calibration = [unknown; SITUATIONS];
        if format > 2 {
            for line in &mut calibration {
                *line = Calibration { slope: self.effect()?, offset: self.effect()? };
            }
        }
        let mut fragments = SharedBeliefs::new(&AutoOptions::default()).fragments;
        if format > 3 {
            fragments = self.fragments()?;
        }
        Some(SharedBeliefs { effects, spreads, page_spread, calibration, fragments })
    }

    /// Effects that begin with those of a page's position and guide. The first format had none for
    /// guides that were not seen, and did not distinguish the top page from other guides.
    fn features(&mut self, first: bool, count: usize) -> Option<Vec<Gaussian>> {
        let states = 2 * OF_TOP_PAGE - FIRST_GUIDE_STATES;
        let mut effects = self.effects(if first { count - states } else { count })?;
        if first {
            let (changed, same) = (effects[GUIDE_CHANGED], effects[GUIDE_SAME]);
            let unseen = Gaussian { mean: 0.0, ..same };
            effects.splice(GUIDE_UNSEEN..GUIDE_UNSEEN, [unseen, changed, same, unseen]);
        }
        Some(effects)
    }

    fn guesses(&mut self) -> Option<[f32; GUESSES.len()]> {
        let mut weights = [0.0; GUESSES.len()];
        for weight in &mut weights {
            *weight = f32::from_le_bytes(self.take()?);
            weight.is_finite().then_some(())?;
        }
        Some(weights)
    }

    /// The first `count` spreads; the others are unknown.
    fn spreads(&mut self, count: usize) -> Option<[Spread; SPREADS]> {
        let mut spreads = [Spread::default(); SPREADS];
        for spread in spreads.iter_mut().take(count) {
            let stored = self.effect()?;
            *spread = Spread { squares: stored.mean, shifts: stored.variance };
        }
        Some(spreads)
    }

    fn fragments(&mut self) -> Option<[Gaussian; FRAGMENT_STATES]> {
        self.effects(FRAGMENT_STATES)?.try_into().ok()
    }

    fn beliefs(&mut self, format: u8) -> Option<Beliefs> {
        let first = format == 1;
        let (directories, families, pages) = (self.count()?, self.count()?, self.count()?);
        let bias = self.effect()?;
        let features = self.features(first, FEATURES)?;
        let directories = self.effects(directories)?;
        let families = self.effects(families)?;
        let spreads = self.spreads(if first { FIRST_SPREADS } else { SPREADS })?;
        let logs = if first { Default::default() } else { self.guesses()? };
        let page_spread = PageSpread { logs };
        let mut fragments = Beliefs::new(&AutoOptions::default()).fragments;
        if format > 2 {
            fragments = self.fragments()?;
        }
        if self.bytes.len() != pages.checked_mul(4)? {
            return None;
        }
        let pages = (0..pages).map(|_| PageBelief::from_bytes(self.take()?)).collect::<Option<_>>();
        Some(Beliefs {
            bias,
            features,
            directories,
            families,
            pages: pages?,
            spreads,
            page_spread,
            fragments,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn some_beliefs() -> Beliefs {
        let options = AutoOptions::default();
        let mut beliefs = Beliefs::new(&options);
        beliefs.grow(1000, 7, 40, &options);
        beliefs.pages[3].remember(true);
        beliefs.bias.mean = 0.25;
        beliefs
    }

    #[test]
    fn what_was_kept_is_read_back_at_four_bytes_a_page() {
        let beliefs = some_beliefs();
        let bytes = beliefs.to_bytes();
        assert_eq!(Beliefs::from_bytes(&bytes, "s").unwrap(), beliefs);
        assert!(bytes.len() < 1000 * 4 + 1000);
        let shared = SharedBeliefs::new(&AutoOptions::default());
        assert_eq!(SharedBeliefs::from_bytes(&shared.to_bytes()).unwrap(), shared);
    }

    /// Effects with the means 1, 2, 3…
    fn counted(count: usize) -> Vec<u8> {
        let effect = |n: usize| [(n as f32 + 1.0).to_le_bytes(), 0.5_f32.to_le_bytes()].concat();
        (0..count).flat_map(effect).collect()
    }

    #[test]
    fn beliefs_of_the_first_format_are_read() {
        let later = 2 * OF_TOP_PAGE - FIRST_GUIDE_STATES;
        let counts = [2_u32, 1, 3].map(u32::to_le_bytes).concat();
        // The bias, features, two directories and a family, and four spreads.
        let effects = counted(1 + FEATURES - later + 3 + FIRST_SPREADS);
        let bytes = [&FIRST_MAGIC[..], &counts, &effects, &[0, 0, 0, 1].repeat(3)].concat();
        let beliefs = Beliefs::from_bytes(&bytes, "s").unwrap();
        assert_eq!((beliefs.bias.mean, beliefs.pages.len()), (1.0, 3));
        assert_eq!(beliefs.features.len(), FEATURES);
        let guide = |state: usize| beliefs.features[state].mean;
        assert_eq!(guide(GUIDE_UNSEEN), 0.0);
        assert_eq!(guide(GUIDE_CHANGED + OF_TOP_PAGE), guide(GUIDE_CHANGED));
        assert_eq!(guide(GUIDE_SAME + OF_TOP_PAGE), guide(GUIDE_SAME));
        assert_eq!(beliefs.directories[0].mean, (1 + FEATURES - later + 1) as f32);
        assert_eq!(Beliefs::from_bytes(&beliefs.to_bytes(), "s").unwrap(), beliefs);

        let shared = [&FIRST_SHARED_MAGIC[..], &counted(SHARED - later)].concat();
        let shared = SharedBeliefs::from_bytes(&shared).unwrap();
        assert_eq!(shared.effects.last().unwrap().mean, (SHARED - later) as f32);
    }

    #[test]
    fn shared_beliefs_from_before_fragments_and_before_scores_were_held_against_outcomes_are_read()
    {
        let mut shared = SharedBeliefs::new(&AutoOptions::default());
        shared.effects[3].mean = 0.7;
        let mut bytes = shared.to_bytes();
        bytes.truncate(bytes.len() - 8 * FRAGMENT_STATES);
        bytes[..4].copy_from_slice(&THIRD_SHARED_MAGIC);
        assert_eq!(SharedBeliefs::from_bytes(&bytes).unwrap(), shared);
        bytes.truncate(bytes.len() - 16 * SITUATIONS);
        bytes[..4].copy_from_slice(&SECOND_SHARED_MAGIC);
        assert_eq!(SharedBeliefs::from_bytes(&bytes).unwrap(), shared);
        bytes[..4].copy_from_slice(&SHARED_MAGIC);
        assert!(SharedBeliefs::from_bytes(&bytes).is_err());
    }

    #[test]
    fn beliefs_from_before_fragments_were_evidence_are_read() {
        let beliefs = some_beliefs();
        let bytes = beliefs.to_bytes();
        let (head, pages) = bytes.split_at(bytes.len() - 4 * beliefs.pages.len());
        let before = &head[4..head.len() - 8 * FRAGMENT_STATES];
        let second = [&SECOND_MAGIC[..], before, pages].concat();
        assert_eq!(Beliefs::from_bytes(&second, "s").unwrap(), beliefs);
    }

    #[test]
    fn beliefs_cut_short_are_refused_with_the_servers_name() {
        let bytes = some_beliefs().to_bytes();
        let refusal = Beliefs::from_bytes(&bytes[..bytes.len() - 1], "example.org").unwrap_err();
        assert!(refusal.to_string().contains("example.org"));
    }

    proptest! {
        #[test]
        fn damaged_bytes_never_panic(at in 0usize..4500, value: u8, cut in 0usize..4500) {
            let mut bytes = some_beliefs().to_bytes();
            let at = at % bytes.len();
            bytes[at] = value;
            bytes.truncate(bytes.len() - cut % bytes.len());
            if let Ok(beliefs) = Beliefs::from_bytes(&bytes, "s") {
                prop_assert!(beliefs.pages.iter().all(|page| page.history >= 1));
            }
        }
    }
}
