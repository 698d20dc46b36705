use serde::{Deserialize, Serialize, Serializer, ser::SerializeStruct};

/// Visits that must have been compared before a source is believed.
const COMPARED_MIN: u32 = 8;
/// Announced changes that must have been seen.
const RIGHT_MIN: u32 = 3;
/// A change must be this many times as likely behind an announcement as behind silence.
const ODDS_MIN: f64 = 2.0;
/// Counts are halved at this number, so that trust can be lost and won again.
const COMPARED_MAX: u32 = 4_096;

/// How accurate a source was about the pages that it dates: announced or not, against changed or
/// not. Pages without dates say nothing about its dates, except that it misses their changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct Trust {
    /// Announced, and changed.
    pub right: u32,
    /// Announced, and the same.
    pub wrong: u32,
    /// Not announced, and changed.
    pub missed: u32,
    /// Not announced, and the same.
    pub silent: u32,
    /// Changes of pages that it does not date.
    #[serde(default)]
    pub undated: u32,
}

impl Trust {
    pub(super) fn count(&mut self, announced: bool, changed: bool) {
        *match (announced, changed) {
            (true, true) => &mut self.right,
            (true, false) => &mut self.wrong,
            (false, true) => &mut self.missed,
            (false, false) => &mut self.silent,
        } += 1;
        if self.compared() >= COMPARED_MAX {
            let Self { right, wrong, missed, silent, undated } = self;
            for count in [right, wrong, missed, silent, undated] {
                *count /= 2;
            }
        }
    }

    pub(super) fn count_undated(&mut self) {
        self.undated = self.undated.saturating_add(1);
    }

    /// Visits compared.
    pub fn compared(&self) -> u32 {
        self.right + self.wrong + self.missed + self.silent
    }

    /// The share of announced changes that were changes.
    pub fn precision(&self) -> Option<f64> {
        share(self.right, self.wrong)
    }

    /// The share of changes that had been announced.
    pub fn recall(&self) -> Option<f64> {
        share(self.right, self.missed.saturating_add(self.undated))
    }

    /// How many times as often a change is announced as no change is (the likelihood ratio): by
    /// this the odds of a change grow when it is announced. 1 when announcing means nothing, as
    /// with "now" on every entry.
    pub fn odds(&self) -> f64 {
        let smooth = |part: u32, other: u32| {
            (f64::from(part) + 1.0) / (f64::from(part) + f64::from(other) + 2.0)
        };
        smooth(self.right, self.missed) / smooth(self.wrong, self.silent)
    }

    /// Whether announcements pull pages forward.
    pub fn is_believed(&self) -> bool {
        self.compared() >= COMPARED_MIN && self.right >= RIGHT_MIN && self.odds() >= ODDS_MIN
    }
}

/// With names for the counts, for people who read the note without this code.
impl Serialize for Trust {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Trust", 9)?;
        fields.serialize_field("right", &self.right)?;
        fields.serialize_field("wrong", &self.wrong)?;
        fields.serialize_field("missed", &self.missed)?;
        fields.serialize_field("silent", &self.silent)?;
        fields.serialize_field("undated", &self.undated)?;
        fields.serialize_field("precision", &self.precision())?;
        fields.serialize_field("recall", &self.recall())?;
        fields.serialize_field("odds", &self.odds())?;
        fields.serialize_field("believed", &self.is_believed())?;
        fields.end()
    }
}

fn share(part: u32, other: u32) -> Option<f64> {
    let all = part.saturating_add(other);
    (all > 0).then(|| f64::from(part) / f64::from(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_is_lost_again() {
        let mut trust = Trust::default();
        (0..50).for_each(|_| trust.count(true, true));
        (0..50).for_each(|_| trust.count(false, false));
        assert!(trust.is_believed());
        (0..500).for_each(|_| trust.count(true, false));
        assert!(!trust.is_believed(), "{trust:?}");
        (0..100_000).for_each(|_| trust.count(true, true));
        assert!(trust.compared() <= COMPARED_MAX);
    }

    #[test]
    fn nothing_is_known_at_the_beginning() {
        let trust = Trust::default();
        assert_eq!((trust.precision(), trust.recall(), trust.odds()), (None, None, 1.0));
        assert!(!trust.is_believed());
    }
}
