//! Pages that were found gone are left out of some rounds: of more rounds the longer they are gone.

use nenrin_state::{DuePage, Outcome, Schedule, Site};

/// A page that is gone is looked for once in a quarter of a year at least.
const GONE_REST_MAX_S: i64 = 90 * 86_400;

/// How long a page that was found gone several times in a row is not visited.
pub(crate) fn gone_rest_s(
    schedule: &Schedule,
    outcome: Option<Outcome>,
    failures: u32,
) -> Option<i64> {
    let Schedule::Rounds { period_s } = *schedule else { return None };
    let rounds = (1_i64 << failures.saturating_sub(1).min(16)) - 1;
    let rests = outcome == Some(Outcome::Gone) && failures > 1;
    rests.then(|| rounds.saturating_mul(period_s).min(GONE_REST_MAX_S))
}

/// Whether a round leaves a page out because it was found gone too often.
pub(crate) fn rests_while_gone(site: &Site, due: &DuePage, now_s: i64) -> bool {
    let page = &due.page;
    let rest_s = gone_rest_s(&site.conditions.schedule, page.outcome, page.failures);
    rest_s.zip(page.visited_s).is_some_and(|(rest_s, visited_s)| now_s < visited_s + rest_s)
}
