//! What a commit adds to the sums that are kept, so that rows need not be counted.

use std::collections::BTreeMap;

use nenrin_calendar::DAY_S;

use super::worth::{ALL_SITES, WorthSums};
use crate::{
    BodyKind, DayCounts, RoundCounts, RoundId, SiteCounts, SiteId, VersionRow, VisitCommit,
    records::is_problem,
};

/// What a commit adds to the sums.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    /// Running totals by site.
    pub(crate) sites: BTreeMap<SiteId, SiteCounts>,
    /// By round.
    pub(crate) rounds: BTreeMap<RoundId, RoundCounts>,
    /// By site and day.
    pub(crate) days: BTreeMap<(u32, i64), DayCounts>,
    /// Versions, received and stored bytes, by site and kind.
    pub(crate) kinds: BTreeMap<(u32, BodyKind), (i64, i64, i64)>,
    /// What pages are worth.
    pub(crate) worth: WorthSums,
}

impl Sums {
    /// A page became known to a site.
    pub(crate) fn count_page(&mut self, site: SiteId) {
        self.sites.entry(site).or_default().pages += 1;
    }

    /// A visit was made that made so many pages known.
    pub(crate) fn count_visit(&mut self, visit: &VisitCommit, new_pages: u64) {
        let day = DayCounts {
            day: 0,
            visits: 1,
            versions: u64::from(visit.version.is_some()),
            problems: u64::from(is_problem(visit.outcome, visit.reason.as_ref())),
            raw_bytes: if visit.outcome.is_seen() { visit.update.bytes } else { 0 },
            received_bytes: visit.received_bytes,
            stored_bytes: visit.stored_bytes,
        };
        self.add_day(visit.site, visit.at_s, &day);
        if let Some(version) = &visit.version {
            self.count_kind(visit, version);
        }
        let site = self.sites.entry(visit.site).or_default();
        site.visits += 1;
        site.versions += day.versions;
        site.problems += day.problems;
        site.raw_bytes += day.raw_bytes;
        if let Some(round) = visit.round {
            let round = self.rounds.entry(round).or_default();
            round.count(visit);
            round.new_pages += new_pages;
        }
    }

    /// A version was found in the packs.
    pub(crate) fn count_adopted(&mut self, site: SiteId, row: &VersionRow) {
        let day = DayCounts { versions: 1, raw_bytes: row.bytes, ..DayCounts::default() };
        self.add_day(site, row.at_s, &day);
        if row.is_significant() {
            self.worth.count_significant(site);
        }
        let site = self.sites.entry(site).or_default();
        site.versions += 1;
        site.raw_bytes += row.bytes;
    }

    fn count_kind(&mut self, visit: &VisitCommit, version: &VersionRow) {
        for site in [ALL_SITES, visit.site.0] {
            let sum = self.kinds.entry((site, BodyKind::of(&version.mime))).or_default();
            let (received, stored) = (visit.received_bytes as i64, visit.stored_bytes as i64);
            *sum = (sum.0 + 1, sum.1 + received, sum.2 + stored);
        }
        if version.is_significant() {
            self.worth.count_significant(visit.site);
        }
    }

    fn add_day(&mut self, site: SiteId, at_s: i64, counts: &DayCounts) {
        for site in [ALL_SITES, site.0] {
            let sum = self.days.entry((site, at_s.div_euclid(DAY_S))).or_default();
            sum.visits += counts.visits;
            sum.versions += counts.versions;
            sum.problems += counts.problems;
            sum.raw_bytes += counts.raw_bytes;
            sum.received_bytes += counts.received_bytes;
            sum.stored_bytes += counts.stored_bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use nenrin_lang::Reason;

    use super::*;
    use crate::{Outcome, PageId, PageUpdate, VersionId};

    #[test]
    fn a_visit_is_counted_by_site_day_kind_and_round() {
        let row = |version| VersionRow {
            at_s: DAY_S + 5,
            version,
            status: 200,
            mime: "text/html".into(),
            bytes: 9,
            changed_permille: None,
        };
        // Outcome, versions, problems, raw bytes.
        for (outcome, reason, versions, problems, raw_bytes) in [
            (Outcome::Changed, None, 1, 0, 9),
            (Outcome::NotModified, None, 0, 0, 9),
            (Outcome::Gone, None, 0, 0, 0),
            (Outcome::Failed, None, 0, 1, 0),
            (Outcome::Refused, None, 0, 1, 0),
            (Outcome::Refused, Some(Reason::Challenge("guard".into())), 0, 1, 0),
            (Outcome::Refused, Some(Reason::Robots { line: None }), 0, 0, 0),
            (Outcome::Refused, Some(Reason::LeftOut), 0, 0, 0),
        ] {
            let mut sums = Sums::default();
            let visit = VisitCommit {
                round: Some(RoundId(4)),
                version: (versions > 0).then(|| row(VersionId(1))),
                received_bytes: 7,
                stored_bytes: 3,
                reason,
                update: PageUpdate { bytes: 9, ..PageUpdate::default() },
                ..VisitCommit::new(PageId(1), SiteId(2), DAY_S + 5, outcome)
            };
            sums.count_visit(&visit, 6);
            let site = sums.sites[&SiteId(2)];
            assert_eq!(
                (site.visits, site.versions, site.problems, site.raw_bytes),
                (1, versions, problems, raw_bytes)
            );
            for site in [ALL_SITES, 2] {
                let day = sums.days[&(site, 1)];
                assert_eq!((day.visits, day.versions, day.problems), (1, versions, problems));
                let kind = sums.kinds.get(&(site, BodyKind::Html));
                assert_eq!(kind.copied(), (versions > 0).then_some((1, 7, 3)));
            }
            let round = sums.rounds[&RoundId(4)];
            assert_eq!((round.visits(), round.new_pages, round.received_bytes), (1, 6, 7));
        }
        let mut sums = Sums::default();
        sums.count_adopted(SiteId(2), &row(VersionId(1)));
        assert_eq!((sums.sites[&SiteId(2)].visits, sums.sites[&SiteId(2)].versions), (0, 1));
        assert_eq!((sums.days[&(2, 1)].visits, sums.days[&(2, 1)].versions), (0, 1));
    }
}
