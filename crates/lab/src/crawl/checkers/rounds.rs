use std::collections::{BTreeMap, BTreeSet};

use nenrin_state::{Round, RoundId, SiteId};

use super::Findings;

/// The law: a round of a site is one round over all partitions. None begins anywhere before the one
/// before it has ended everywhere, and none ends in a partition without having begun there.
#[derive(Debug, Default)]
pub struct RoundsTogether {
    /// Rounds that began and that ended, by site and partition.
    sites: BTreeMap<SiteId, BTreeMap<usize, Counts>>,
    /// What was broken.
    pub findings: Findings,
}

#[derive(Debug, Default)]
struct Counts {
    begun: BTreeSet<RoundId>,
    ended: BTreeSet<RoundId>,
}

impl RoundsTogether {
    /// A round begins in a partition, or goes on.
    pub fn begun(&mut self, partitions: usize, partition: usize, round: &Round) {
        let site = self.sites.entry(round.site).or_default();
        let counts = site.entry(partition).or_default();
        if !counts.begun.insert(round.id) {
            return;
        }
        let before = counts.begun.len() - 1;
        let ended = |other| site.get(&other).map_or(0, |counts: &Counts| counts.ended.len());
        for other in (0..partitions).filter(|&other| ended(other) < before) {
            let (site, number) = (round.site.0, before + 1);
            let says = || {
                format!(
                    "site {site}: round {number} began in {partition} before {other} ended {before}"
                )
            };
            self.findings.note(says);
        }
    }

    /// The end of a round is committed in a partition.
    pub fn ended(&mut self, partition: usize, site: SiteId, round: RoundId) {
        let counts = self.sites.entry(site).or_default().entry(partition).or_default();
        if !counts.begun.contains(&round) {
            self.findings.note(|| format!("site {}: {round} ended in {partition} unbegun", site.0));
        }
        counts.ended.insert(round);
    }

    /// Compares with what the rounds of a site look like together.
    pub fn check(&mut self, partitions: usize, site: SiteId, joined: &[Round]) {
        let of_site = self.sites.entry(site).or_default();
        let ended = |n: &usize| of_site.get(n).map_or(0, |counts| counts.ended.len());
        let everywhere = (0..partitions).map(|n| ended(&n)).min().unwrap_or(0);
        let over = joined.iter().filter(|round| round.ended_s.is_some()).count();
        if over != everywhere {
            let says = format!("site {}: {over} rounds are over, {everywhere} everywhere", site.0);
            self.findings.note(|| says);
        }
    }
}

#[cfg(test)]
mod tests {
    use nenrin_state::RoundCounts;

    use super::*;

    fn round(id: i64) -> Round {
        let counts = RoundCounts::default();
        Round { id: RoundId(id), site: SiteId(1), started_s: 0, ended_s: None, counts }
    }

    #[test]
    fn a_round_that_does_not_wait_for_the_others_is_noticed() {
        let mut rounds = RoundsTogether::default();
        rounds.begun(2, 0, &round(1));
        rounds.begun(2, 1, &round(1));
        rounds.ended(0, SiteId(1), RoundId(1));
        rounds.begun(2, 1, &round(1));
        assert!(rounds.findings.0.is_empty(), "a round that goes on does not begin");
        rounds.begun(2, 0, &round(2));
        assert_eq!(rounds.findings.0.len(), 1, "the other partition has not ended its first");
        rounds.ended(1, SiteId(1), RoundId(1));
        rounds.begun(2, 1, &round(2));
        assert_eq!(rounds.findings.0.len(), 1);
        let over = Round { ended_s: Some(1), ..round(1) };
        rounds.check(2, SiteId(1), std::slice::from_ref(&over));
        assert_eq!(rounds.findings.0.len(), 1);
        rounds.check(2, SiteId(1), &[over.clone(), over]);
        assert_eq!(rounds.findings.0.len(), 2, "only one is over everywhere");
    }
}
