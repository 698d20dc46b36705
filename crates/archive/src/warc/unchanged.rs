//! Which visits of the log are revisits: those that found nothing new and left no version.

use std::collections::BTreeMap;

use nenrin_state::{Outcome, VersionRow, VisitRow};
use nenrin_warc::RevisitProfile;

/// The unchanged visits of a page among these, in their order, each with the profile of its record.
/// What was taken in may have a version although it was the same: the log does not say so, but
/// every version has a visit in its second, so that those are left that are more than the versions.
pub(crate) fn revisits(
    visits: Vec<VisitRow>,
    versions: &[VersionRow],
) -> Vec<(VisitRow, RevisitProfile)> {
    let mut unclaimed: BTreeMap<i64, i64> = BTreeMap::new();
    for version in versions.iter().filter(|row| (200..400).contains(&row.status)) {
        *unclaimed.entry(version.at_s).or_default() += 1;
    }
    let is_version = |visit: &&VisitRow| {
        let has_answer = (200..400).contains(&visit.status);
        visit.outcome == Outcome::Changed || (visit.outcome == Outcome::Failed && has_answer)
    };
    for visit in visits.iter().filter(is_version) {
        *unclaimed.entry(visit.at_s).or_default() -= 1;
    }
    let mut has_version = |visit: &VisitRow| match unclaimed.get_mut(&visit.at_s) {
        Some(left) if *left > 0 => {
            *left -= 1;
            true
        }
        _ => false,
    };
    let mut found = Vec::new();
    for visit in visits {
        match visit.outcome {
            Outcome::Same if !has_version(&visit) => {
                found.push((visit, RevisitProfile::IdenticalPayload));
            }
            Outcome::NotModified => found.push((visit, RevisitProfile::NotModified)),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use nenrin_state::SiteId;
    use nenrin_urls::CanonicalUrl;

    use super::*;

    fn visit(at_s: i64, outcome: Outcome) -> VisitRow {
        VisitRow {
            id: at_s,
            at_s,
            url: CanonicalUrl::parse("http://e.com/").unwrap(),
            site: SiteId(1),
            outcome,
            status: 200,
            reason: None,
            elapsed_ms: 0,
            received_bytes: 0,
        }
    }

    fn version(at_s: i64, status: u16) -> VersionRow {
        let (version, mime) = (nenrin_state::VersionId(at_s as u64), String::new());
        VersionRow { at_s, version, status, mime, bytes: 0, changed_permille: None }
    }

    #[test]
    fn an_unchanged_visit_counts_also_in_the_second_of_a_version() {
        use Outcome::{Changed, Failed, NotModified, Same};
        let visits = [(1, Changed), (1, Same), (2, Same), (3, Same), (3, Failed), (4, NotModified)];
        let visits = visits.map(|(at_s, outcome)| visit(at_s, outcome)).to_vec();
        // The second one came in with a version that was the same as before; an error has one too.
        let versions = [version(1, 200), version(2, 200), version(3, 500), version(4, 200)];
        let found: Vec<i64> = revisits(visits, &versions).iter().map(|(v, _)| v.at_s).collect();
        assert_eq!(found, [1, 3, 4]);
    }
}
