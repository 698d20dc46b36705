//! One group of pages: what its last visits showed, and how far that is to be believed.

use super::Seen;

/// A change counts for a page if it came after the page's last visit with at least this chance.
const AFTER: f32 = 0.5;
/// What is learnt within this time of its beginning is one burst of changes.
const BURST_S: i64 = 3 * 86_400;
/// Visits of one burst that count fully: many pages of one event are hardly more than its witnesses.
const BURST_VISITS: f32 = 8.0;
/// Bursts that must have been seen.
const BURSTS_MIN: f32 = 3.0;
/// Visits after which old ones count half, so that trust can be lost and won again.
const MEMORY_VISITS: f32 = 64.0;
/// Standard deviations by which changes must exceed what chance explains.
const BEYOND_DOUBT: f32 = 3.0;
/// Chances by their own past that divide pages into classes: in one group, some take part in what is
/// common and others do not.
pub(super) const CLASSES: usize = 5;
const CLASS_ENDS: [f32; CLASSES - 1] = [0.05, 0.15, 0.35, 0.65];
/// Visits of a class before it is used, and visits at the chance of its own past that it starts
/// with.
const CLASS_MIN: f32 = 3.0;
const CLASS_PRIOR: f32 = 3.0;

/// Other pages are looked at for a changed one at most this often, and besides after so many pulled
/// ones that did change: a group too large to be looked at as a whole is followed as far as it holds.
const ASK_S: i64 = 3_600;
const ASK_HITS: u32 = 16;

/// What a page's circle showed since the page was last visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// Nothing changed, as far as is known.
    Quiet,
    /// Some changed.
    Stirred,
    /// At least half of those that were visited since changed.
    Hot,
}

impl Sign {
    /// Whether others changed.
    pub(super) fn is_change(self) -> bool {
        matches!(self, Self::Stirred | Self::Hot)
    }
}

/// Visits to pages whose circle showed changes (stirred or hot).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct SignTally {
    /// Visits and changes by class.
    pub(super) classes: [(f32, f32); CLASSES],
    /// Changes that the pages' own past predicts, and the variance of their number.
    pub(super) expected: f32,
    pub(super) variance: f32,
}

impl SignTally {
    pub(super) fn visits(&self) -> f32 {
        self.classes.iter().map(|(visits, _)| visits).sum()
    }

    fn changes(&self) -> f32 {
        self.classes.iter().map(|(_, changes)| changes).sum()
    }

    fn add(&mut self, chance: f32, changed: bool, weight: f32) {
        let class = &mut self.classes[class_of(chance)];
        class.0 += weight;
        class.1 += if changed { weight } else { 0.0 };
        self.expected += chance * weight;
        self.variance += chance * (1.0 - chance) * weight;
        if self.visits() > MEMORY_VISITS {
            let halves = self.classes.map(|(visits, changes)| (visits * 0.5, changes * 0.5));
            let (expected, variance) = (self.expected * 0.5, self.variance * 0.5);
            *self = Self { classes: halves, expected, variance };
        }
    }
}

fn class_of(chance: f32) -> usize {
    CLASS_ENDS.iter().filter(|end| chance >= **end).count()
}

/// When pages of a group last changed, as if it had been at one time: the time is in the gaps of
/// all visits that saw it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Event {
    pub(super) from_s: i64,
    pub(super) to_s: i64,
    /// Visits that saw a change, and visits that should have and did not.
    pub(super) changed: u32,
    pub(super) same: u32,
}

impl Event {
    /// What it is for a page last visited at a time.
    pub(super) fn sign(&self, last_s: i64) -> Sign {
        let after_s = self.to_s - self.from_s.max(last_s);
        let share = after_s as f32 / (self.to_s - self.from_s).max(1) as f32;
        match share {
            share if share < AFTER => Sign::Quiet,
            _ if self.changed < self.same => Sign::Stirred,
            _ => Sign::Hot,
        }
    }
}

/// Pages that may change together.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Group {
    pub(super) stirred: SignTally,
    pub(super) hot: SignTally,
    pub(super) bursts: f32,
    /// When other pages were last looked at for one that changed, and pulled ones that changed since.
    pub(super) asked_s: Option<i64>,
    pub(super) hits: u32,
    pub(super) burst_from_s: i64,
    pub(super) burst_visits: f32,
    pub(super) visited_s: i64,
    pub(super) event: Option<Event>,
}

impl Group {
    /// What the pages showed since `last_s`. A change that the page itself showed last does not count.
    pub(super) fn sign(&self, last_s: i64) -> Sign {
        self.event.map_or(Sign::Quiet, |event| event.sign(last_s))
    }

    /// A page was visited after its circle showed changes (stirred or hot).
    pub(super) fn learn(&mut self, sign: Sign, seen: &Seen<'_>) {
        let chance = seen.chance as f32;
        let tally = match sign {
            Sign::Quiet => return,
            Sign::Stirred => &mut self.stirred,
            Sign::Hot => &mut self.hot,
        };
        if seen.to_s - self.burst_from_s >= BURST_S {
            self.burst_from_s = seen.to_s;
            self.burst_visits = 0.0;
            self.bursts += 1.0;
        }
        self.burst_visits += 1.0;
        tally.add(chance, seen.changed, (BURST_VISITS / self.burst_visits).min(1.0));
    }

    /// Takes a visit into what is known of the last change.
    pub(super) fn remember(&mut self, seen: &Seen<'_>) {
        self.visited_s = seen.to_s;
        let (from_s, to_s) = (seen.from_s, seen.to_s);
        match &mut self.event {
            Some(event) if seen.changed && from_s < event.to_s && event.from_s < to_s => {
                event.from_s = event.from_s.max(from_s);
                event.to_s = event.to_s.min(to_s);
                event.changed += 1;
            }
            _ if seen.changed => {
                self.event = Some(Event { from_s, to_s, changed: 1, same: 0 });
            }
            Some(event) if from_s <= event.from_s && event.to_s <= to_s => event.same += 1,
            _ => {}
        }
    }

    /// Whether enough bursts were seen to conclude anything about its pages.
    pub(super) fn is_grown(&self) -> bool {
        self.bursts >= BURSTS_MIN
    }

    /// Whether more pages changed, where their circle showed changes, than their own past and
    /// chance explain.
    pub(super) fn has_evidence(&self, sign: Sign) -> bool {
        let Some(tally) = self.tally(sign) else { return false };
        if !self.is_grown() {
            return false;
        }
        let spread = (tally.variance + 0.5).sqrt();
        tally.changes() - tally.expected >= BEYOND_DOUBT * spread
    }

    /// Whether its pages are known to change together.
    pub(super) fn is_significant(&self) -> bool {
        self.has_evidence(Sign::Hot) || self.has_evidence(Sign::Stirred)
    }

    /// The chance that a page changed whose circle showed changes, given the chance by its own
    /// past; `None` while too few pages like it were seen.
    pub(super) fn chance(&self, sign: Sign, own: f64) -> Option<f64> {
        if !self.has_evidence(sign) {
            return None;
        }
        let (visits, changes) = self.tally(sign)?.classes[class_of(own as f32)];
        let chance = (changes + CLASS_PRIOR * own as f32) / (visits + CLASS_PRIOR);
        (visits >= CLASS_MIN).then_some(f64::from(chance))
    }

    /// Whether other pages are to be looked at now, for one that changed.
    pub(super) fn asks(&mut self, seen: &Seen<'_>) -> bool {
        self.hits += u32::from(!seen.planned);
        let rested = self.asked_s.is_none_or(|asked_s| seen.to_s - asked_s >= ASK_S);
        let asks = rested || self.hits >= ASK_HITS;
        if asks {
            (self.asked_s, self.hits) = (Some(seen.to_s), 0);
        }
        asks
    }

    fn tally(&self, sign: Sign) -> Option<&SignTally> {
        match sign {
            Sign::Quiet => None,
            Sign::Stirred => Some(&self.stirred),
            Sign::Hot => Some(&self.hot),
        }
    }
}
