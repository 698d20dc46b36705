//! The log, sums and curves.

use nenrin_lang::{Reason, Unfetched};

use super::{NOW_S, adopt, begun, commit, conditions, found, row, visit};
use crate::{
    BodyKind, Change, DayQuery, DuePage, Estimate, KindSums, OrderCurve, Outcome, Schedule, SiteId,
    State, VersionQuery, VersionRow, VisitCommit, VisitFilter,
};

fn refused() -> Reason {
    let (host, why) = ("e.com".to_owned(), "refused".to_owned());
    Reason::Unfetched(Unfetched::Connect { host, port: 80, why })
}

pub fn a_visit_is_in_the_log_and_in_the_sums(state: &impl State) {
    let (round, due) = begun(state);
    let mut failed = visit(&due, NOW_S + 1, Outcome::Failed);
    failed.round = Some(round.id);
    failed.reason = Some(refused());
    failed.update.failures = 1;
    commit(state, failed);
    let mut changed = visit(&due, NOW_S + 2, Outcome::Changed);
    changed.version = Some(row(5, NOW_S + 2));
    commit(state, changed);
    let log = state.visits(VisitFilter { limit: 10, ..VisitFilter::default() }).unwrap();
    assert_eq!(log.len(), 2);
    assert_eq!((log[0].outcome, log[1].outcome), (Outcome::Changed, Outcome::Failed));
    assert_eq!(log[1].reason, Some(refused()));
    let older =
        VisitFilter { before: Some(log[0].id), limit: 10, site: Some(due.site), outcome: None };
    assert_eq!(state.visits(older).unwrap(), log[1..]);
    let counts = state.sites().unwrap()[0].counts;
    assert_eq!((counts.visits, counts.versions, counts.problems, counts.raw_bytes), (2, 1, 1, 100));
    let page = state.page(&due.page.url).unwrap().unwrap();
    assert_eq!((page.visits, page.changes, page.failures), (2, 1, 0));
    assert_eq!(
        (page.version, page.history.as_slice()),
        (Some(crate::VersionId(5)), [1, 2, 3].as_slice())
    );
}

pub fn noise_is_counted_apart_from_significant_changes(state: &impl State) {
    let (_, due) = begun(state);
    let shares = [None, Some(0), Some(250)];
    for (at_s, changed_permille) in (NOW_S..).zip(shares) {
        let mut seen = visit(&due, at_s, Outcome::Changed);
        seen.version = Some(VersionRow { changed_permille, ..row(at_s as u64, at_s) });
        commit(state, seen);
    }
    let page = state.page(&due.page.url).unwrap().unwrap();
    assert_eq!((page.changes, page.significant), (3, 2));
    assert_eq!((page.importance_percent, page.known().importance_percent), (0, 100));
    let mut weighed = visit(&due, NOW_S + 50, Outcome::Same);
    weighed.importance_percent = Some(250);
    commit(state, weighed);
    commit(state, visit(&due, NOW_S + 60, Outcome::Same));
    let page = state.page(&due.page.url).unwrap().unwrap();
    assert_eq!(page.known().importance_percent, 250);
    let versions = state.versions(&due.page.url.key(), VersionQuery::default()).unwrap();
    assert_eq!(versions.iter().map(|(_, row)| row.changed_permille).collect::<Vec<_>>(), shares);
}

pub fn days_sum_up_what_was_committed(state: &impl State) {
    let (_, due) = begun(state);
    let day = NOW_S / 86_400;
    let mut changed = visit(&due, NOW_S, Outcome::Changed);
    changed.version = Some(row(1, NOW_S));
    let failed = visit(&due, NOW_S + 1, Outcome::Failed);
    state.commit(&[Change::Visit(Box::new(changed)), Change::Visit(Box::new(failed))]).unwrap();
    commit(state, visit(&due, NOW_S + 86_400, Outcome::Same));
    adopt(state, due.site, due.page.url.as_str(), row(9, NOW_S - 86_400));
    for site in [None, Some(due.site)] {
        let days = state.days(DayQuery { site, from_day: day - 9, to_day: day + 9 }).unwrap();
        let seen: Vec<_> = days
            .iter()
            .map(|d| (d.day - day, d.visits, d.versions, d.problems, d.raw_bytes, d.stored_bytes))
            .collect();
        assert_eq!(seen, [(-1, 0, 1, 0, 100, 0), (0, 2, 1, 1, 100, 80), (1, 1, 0, 0, 100, 40)]);
    }
    let other = Some(crate::SiteId(due.site.0 + 1));
    assert_eq!(state.days(DayQuery { site: other, from_day: day, to_day: day }).unwrap(), vec![]);
    let sums = state.site_sums(day + 1).unwrap().remove(0);
    assert_eq!((sums.site, sums.received_bytes, sums.stored_bytes), (due.site, 300, 120));
    assert_eq!((sums.recent_stored_bytes, sums.recent_versions, sums.recent_problems), (40, 0, 0));
}

pub fn the_log_answers_every_filter_in_portions(state: &impl State) {
    let (_, due) = begun(state);
    let other = state.add_site("other", &conditions("http://e.com/"), NOW_S).unwrap();
    for n in 0..24_i64 {
        let mut one = visit(&due, NOW_S + n, Outcome::ALL[n as usize % 6]);
        one.site = if n < 18 { due.site } else { other.id };
        commit(state, one);
    }
    let all = state.visits(VisitFilter { limit: 99, ..VisitFilter::default() }).unwrap();
    assert_eq!(all.len(), 24);
    assert!(all.is_sorted_by_key(|v| std::cmp::Reverse(v.id)));
    for site in [None, Some(due.site), Some(other.id)] {
        for outcome in [None, Some(Outcome::Changed), Some(Outcome::Failed)] {
            let expected: Vec<_> = all
                .iter()
                .filter(|v| site.is_none_or(|s| v.site == s))
                .filter(|v| outcome.is_none_or(|o| v.outcome == o))
                .collect();
            let mut before = None;
            let mut found = Vec::new();
            loop {
                let portion =
                    state.visits(VisitFilter { site, outcome, before, limit: 2 }).unwrap();
                before = portion.last().map(|v| v.id);
                if portion.is_empty() {
                    break;
                }
                found.extend(portion);
            }
            assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{site:?} {outcome:?}");
        }
    }
}

pub fn problems_are_grouped_by_cause(state: &impl State) {
    let (_, due) = begun(state);
    for (n, (outcome, status, reason)) in [
        (Outcome::Failed, 0, Some(refused())),
        (Outcome::Failed, 0, Some(refused())),
        (Outcome::Failed, 503, None),
        (Outcome::Gone, 404, None),
        (Outcome::Changed, 200, None),
    ]
    .into_iter()
    .enumerate()
    {
        let mut one = visit(&due, NOW_S + n as i64, outcome);
        one.status = status;
        one.reason = reason;
        commit(state, one);
    }
    let groups = state.problems(due.site, 100).unwrap();
    let seen: Vec<_> = groups.iter().map(|g| (g.status, g.count, g.last_s - NOW_S)).collect();
    assert_eq!(seen, [(0, 2, 1), (404, 1, 3), (503, 1, 2)]);
    assert_eq!(groups[0].reason, Some(refused()));
    assert_eq!(groups[0].last_url, due.page.url);
    assert_eq!(state.problems(due.site, 1).unwrap()[0].count, 1);
}

pub fn versions_are_summed_up_by_kind(state: &impl State) {
    let (round, due) = begun(state);
    for (at_s, mime) in (NOW_S..).zip(["text/html", "image/png", "text/html; charset=utf-8"]) {
        let mut seen = visit(&due, at_s, Outcome::Changed);
        seen.version = Some(VersionRow { mime: mime.into(), ..row(at_s as u64, at_s) });
        commit(state, seen);
    }
    commit(state, visit(&due, NOW_S + 9, Outcome::Same));
    let of = |kind, versions| KindSums {
        kind,
        versions,
        received_bytes: 100 * versions,
        stored_bytes: 40 * versions,
    };
    let sums = state.kind_sums(Some(round.site)).unwrap();
    assert_eq!(sums, [of(BodyKind::Html, 2), of(BodyKind::Image, 1)]);
    assert_eq!(state.kind_sums(None).unwrap(), sums);
    assert_eq!(state.kind_sums(Some(SiteId(9))).unwrap(), []);
}

pub fn rates_and_importance_are_summed_up_per_site(state: &impl State) {
    let (round, top) = begun(state);
    let seen = |due: &DuePage, at_s, importance_percent, rate, sure| VisitCommit {
        importance_percent: Some(importance_percent),
        estimate: Some(Estimate::new(rate, sure)),
        version: Some(row(at_s as u64, at_s)),
        ..visit(due, at_s, Outcome::Changed)
    };
    let mut first = seen(&top, NOW_S, 300, 1.0, 0.2);
    first.discovered = vec![found("http://e.com/a", 2)];
    let a = commit(state, first).remove(0).due;
    commit(state, seen(&a, NOW_S + 1, 50, 0.5, 0.6));
    let worth = state.site_worth().unwrap().remove(0);
    assert_eq!((worth.site, worth.estimated_pages, worth.weighed_pages), (round.site, 2, 2));
    assert_eq!(worth.mean_rate_per_day(), Some(0.75));
    assert_eq!((worth.mean_confidence(), worth.importance()), (Some(0.4), 3.5));
    assert_eq!(worth.significant_versions, 2);

    commit(state, seen(&top, NOW_S + 2, 200, 0.25, 1.0));
    commit(state, visit(&top, NOW_S + 3, Outcome::Failed));
    commit(state, visit(&a, NOW_S + 4, Outcome::Gone));
    state.commit(&[Change::Weighed(vec![(a.page.nth, 150), (crate::Nth(999), 1)])]).unwrap();
    let worth = state.site_worth().unwrap();
    assert_eq!(worth[0].mean_rate_per_day(), Some(0.25), "what is gone has no rate");
    assert_eq!((worth[0].importance(), worth[0].share_of(&worth)), (3.5, Some(1.0)));
    let page = state.page(&a.page.url).unwrap().unwrap();
    assert_eq!(page.importance_percent, 150);

    // The schedule of a page that a second site knows as well may go over to that site.
    let mut continuous = conditions("http://e.com/a");
    continuous.schedule = Schedule::Continuous(Default::default());
    let second = state.add_site("second", &continuous, NOW_S).unwrap().id;
    let worth = state.site_worth().unwrap();
    let sums: Vec<_> = worth.iter().map(|site| (site.site, site.importance())).collect();
    assert_eq!(sums, [(round.site, 2.0), (second, 1.5)]);
    state.set_site(round.site, &continuous, NOW_S).unwrap();
    assert_eq!(state.check().unwrap(), Vec::<String>::new());
}

pub fn the_order_of_collecting_is_held_against_the_best(state: &impl State) {
    let (round, top) = begun(state);
    let mut first = visit(&top, NOW_S, Outcome::Changed);
    first.version = Some(row(1, NOW_S));
    first.importance_percent = Some(100);
    first.discovered = (0..3).map(|n| found(&format!("http://e.com/{n}"), 2)).collect();
    let pages = commit(state, first);
    assert_eq!(state.order_curve(None).unwrap().collected.len(), 1);
    for (page, importance_percent) in pages.iter().zip([100, 700, 100]) {
        let at_s = NOW_S + i64::from(page.due.page.nth.0);
        let mut seen = visit(&page.due, at_s, Outcome::Changed);
        seen.version = Some(row(at_s as u64, at_s));
        seen.importance_percent = Some(importance_percent);
        commit(state, seen);
    }
    let shares = |groups: &[crate::WorthGroup]| OrderCurve::points(groups);
    let curve = state.order_curve(Some(round.site)).unwrap();
    assert_eq!(curve, state.order_curve(None).unwrap());
    assert_eq!(
        shares(&curve.collected),
        [(0.0, 0.0), (0.25, 0.1), (0.5, 0.2), (0.75, 0.9), (1.0, 1.0)]
    );
    assert_eq!(shares(&curve.best), [(0.0, 0.0), (0.25, 0.7), (1.0, 1.0)]);
    // A page keeps its rank, whatever its importance becomes later.
    state.commit(&[Change::Weighed(vec![(top.page.nth, 1_000)])]).unwrap();
    let curve = state.order_curve(Some(round.site)).unwrap();
    assert_eq!(curve.collected[0].importance_percent, 1_000);
    assert_eq!(curve.best[0].importance_percent, 1_000);
    let pages: u64 = curve.best.iter().map(|group| group.pages).sum();
    assert_eq!(pages, 4);
    assert_eq!(state.order_curve(Some(SiteId(9))).unwrap(), OrderCurve::default());
}
