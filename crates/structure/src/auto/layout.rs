//! Which effects apply to which page: the features of its position in the site, its history and the
//! evidence.

use crate::auto::evidence::{Evidence, Hint};
use crate::graph::{PageIndex, SiteGraph};

const DEPTHS: usize = 8;
const LINK_STEPS: usize = 18;
/// Features of a page's position: depth, top of its directory, links out, links in, index.
const POSITION_FEATURES: usize = DEPTHS + 2 + 2 * LINK_STEPS + 2;
/// Plus whether its guide changed in this round, did not, or has not been seen.
pub(crate) const FEATURES: usize = POSITION_FEATURES + GUIDE_STATES;
/// The same three states, apart for a server's top page and for other guides: the top page changes
/// with anything, so it says less about each page.
pub(crate) const GUIDE_STATES: usize = 6;
pub(crate) const OF_TOP_PAGE: usize = 3;
pub(crate) const GUIDE_CHANGED: usize = POSITION_FEATURES;
pub(crate) const GUIDE_SAME: usize = POSITION_FEATURES + 1;
pub(crate) const GUIDE_UNSEEN: usize = POSITION_FEATURES + 2;
pub(crate) const FEATURES_PER_PAGE: usize = 5;
/// Patterns of up to four last outcomes, as a number with a leading 1 bit.
pub(crate) const HISTORIES: usize = 32;
const AGES: usize = 12;
const HINTS: usize = 3;
const UNSEEN: usize = 5;
/// Effects that all servers share.
pub(crate) const SHARED: usize = FEATURES + HISTORIES + AGES + HINTS + UNSEEN;
pub(crate) const SHARED_PER_PAGE: usize = FEATURES_PER_PAGE + 4;

const SECONDS_PER_DAY: i64 = 86_400;

/// The position of every page in its site, computed once per round.
pub(crate) struct SiteLayout {
    links_in: Vec<u32>,
    /// The guide of each page: the page above that may announce its changes.
    guide: Vec<Option<PageIndex>>,
    /// The smallest depth in each directory.
    least_depth: Vec<u32>,
}

impl SiteLayout {
    pub(crate) fn of(graph: &SiteGraph) -> Self {
        let mut links_in = vec![0u32; graph.page_count()];
        let mut least_depth = vec![u32::MAX; graph.directory_count()];
        for page in (0..graph.page_count() as u32).map(PageIndex) {
            for target in graph.links(page) {
                links_in[target.at()] += 1;
            }
            if let Some(depth) = graph.depth(page) {
                let least = &mut least_depth[graph.directory(page) as usize];
                *least = depth.min(*least);
            }
        }
        Self { links_in, least_depth, guide: guides(graph) }
    }

    pub(crate) fn guide(&self, page: PageIndex) -> Option<PageIndex> {
        self.guide[page.at()]
    }

    pub(crate) fn features(&self, graph: &SiteGraph, page: PageIndex) -> [u16; FEATURES_PER_PAGE] {
        let depth = graph.depth(page);
        let step = depth.map_or(0, |depth| (depth as usize).min(DEPTHS - 1));
        let is_top = depth == Some(self.least_depth[graph.directory(page) as usize]);
        let outs = DEPTHS + 2;
        let ins = outs + LINK_STEPS;
        let index = ins + LINK_STEPS;
        [
            step,
            DEPTHS + usize::from(is_top),
            outs + link_step(graph.links(page).len()),
            ins + link_step(self.links_in[page.at()] as usize),
            index + usize::from(graph.is_index(page)),
        ]
        .map(|feature| feature as u16)
    }
}

/// Chooses the page that may announce changes of another: of the shallower pages that link to it,
/// one in the same directory, or else the shallowest.
fn guides(graph: &SiteGraph) -> Vec<Option<PageIndex>> {
    let mut guides: Vec<Option<PageIndex>> = vec![None; graph.page_count()];
    let rank = |guide: PageIndex, page: PageIndex| {
        let elsewhere = graph.directory(guide) != graph.directory(page);
        (elsewhere, graph.depth(guide), guide)
    };
    for page in (0..graph.page_count() as u32).map(PageIndex) {
        let Some(depth) = graph.depth(page) else { continue };
        for ward in graph.links(page).filter(|&ward| graph.depth(ward) > Some(depth)) {
            let known = &mut guides[ward.at()];
            if known.is_none_or(|known| rank(page, ward) < rank(known, ward)) {
                *known = Some(page);
            }
        }
    }
    guides
}

fn link_step(links: usize) -> usize {
    ((links + 1).ilog2() as usize).min(LINK_STEPS - 1)
}

/// The depth step among a page's features.
pub(crate) fn depth_step(features: [u16; FEATURES_PER_PAGE]) -> usize {
    usize::from(features[0])
}

/// The effects on a page that all servers share.
pub(crate) fn shared_effects(
    features: [u16; FEATURES_PER_PAGE],
    history: u8,
    evidence: &Evidence,
) -> [u16; SHARED_PER_PAGE] {
    let mut effects = [0; SHARED_PER_PAGE];
    effects[..FEATURES_PER_PAGE].copy_from_slice(&features);
    let ages = FEATURES + HISTORIES;
    let hints = ages + AGES;
    let unseen = hints + HINTS;
    effects[FEATURES_PER_PAGE] = (FEATURES + usize::from(history).min(HISTORIES - 1)) as u16;
    effects[FEATURES_PER_PAGE + 1] = (ages + age_step(evidence.age_at_last_visit_s)) as u16;
    effects[FEATURES_PER_PAGE + 2] = (hints + hint_step(evidence.hint)) as u16;
    effects[FEATURES_PER_PAGE + 3] = (unseen + unseen_step(evidence.rounds_unseen)) as u16;
    effects
}

/// The age as the number of doublings of a day; 0 when Last-Modified is not known.
fn age_step(age_s: Option<i64>) -> usize {
    let Some(age_s) = age_s else { return 0 };
    let days = (age_s.max(0) / SECONDS_PER_DAY) as u64;
    1 + ((days + 1).ilog2() as usize).min(AGES - 2)
}

fn hint_step(hint: Hint) -> usize {
    match hint {
        Hint::Silent => 0,
        Hint::SaysChanged => 1,
        Hint::SaysSame => 2,
    }
}

fn unseen_step(rounds: u32) -> usize {
    if rounds == 0 { 0 } else { (1 + rounds.ilog2() as usize).min(UNSEEN - 1) }
}

/// Prior means other than "no effect": hints, and rounds unseen. Each doubling of the rounds unseen
/// adds to the chance about a third of a page's noise.
pub(crate) fn shared_prior_mean(effect: usize) -> f64 {
    let hints = FEATURES + HISTORIES + AGES;
    if is_guide(effect) {
        return [0.4, -0.4, 0.0][(effect - GUIDE_CHANGED) % OF_TOP_PAGE];
    }
    match effect.checked_sub(hints) {
        Some(1) => 1.5,
        Some(2) => -0.7,
        Some(unseen) if unseen >= HINTS => 0.35 * (unseen - HINTS) as f64,
        _ => 0.0,
    }
}

pub(crate) fn is_guide(effect: usize) -> bool {
    (POSITION_FEATURES..FEATURES).contains(&effect)
}

/// The kind of evidence that a shared effect measures.
pub(crate) fn shared_kind(effect: usize) -> SharedKind {
    if is_guide(effect) {
        SharedKind::Guide
    } else if effect < FEATURES {
        SharedKind::Feature
    } else if effect < FEATURES + HISTORIES {
        SharedKind::History
    } else {
        SharedKind::Evidence
    }
}

pub(crate) enum SharedKind {
    Feature,
    Guide,
    History,
    Evidence,
}
