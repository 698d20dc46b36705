//! The log, its sums and lists.

use nenrin_lang::{Reason, Unfetched};

use super::{NOW_S, adopt, begun, commit, conditions, found, row, visit};
use crate::{
    Change, DayQuery, Outcome, PageFilter, PathQuery, State, VersionQuery, VersionRow, VisitFilter,
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
    assert_eq!((counts.visits, counts.versions, counts.troubles, counts.raw_bytes), (2, 1, 1, 100));
    let page = state.page(&due.page.url).unwrap().unwrap();
    assert_eq!((page.visits, page.changes, page.failures), (2, 1, 0));
    assert_eq!((page.version, page.history.as_slice()), (Some(5), [1, 2, 3].as_slice()));
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

pub fn pages_are_listed_in_portions(state: &impl State) {
    let (_, due) = begun(state);
    let mut first = visit(&due, NOW_S + 1, Outcome::Changed);
    first.discovered = (0..25).map(|n| found(&format!("http://e.com/{n}"), 2)).collect();
    commit(state, first);
    let mut seen = Vec::new();
    loop {
        let filter = PageFilter { site: Some(due.site), after: seen.last().copied(), limit: 10 };
        let portion = state.pages(filter).unwrap();
        if portion.is_empty() {
            break;
        }
        seen.extend(portion.iter().map(|p| p.id));
    }
    assert_eq!(seen.len(), 26);
    assert!(seen.is_sorted());
    assert_eq!(state.pages(PageFilter { limit: 99, ..PageFilter::default() }).unwrap().len(), 26);
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
            .map(|d| (d.day - day, d.visits, d.versions, d.troubles, d.raw_bytes, d.stored_bytes))
            .collect();
        assert_eq!(seen, [(-1, 0, 1, 0, 100, 0), (0, 2, 1, 1, 100, 80), (1, 1, 0, 0, 100, 40)]);
    }
    let other = Some(crate::SiteId(due.site.0 + 1));
    assert_eq!(state.days(DayQuery { site: other, from_day: day, to_day: day }).unwrap(), vec![]);
    let sums = state.site_sums(day + 1).unwrap().remove(0);
    assert_eq!((sums.site, sums.received_bytes, sums.stored_bytes), (due.site, 300, 120));
    assert_eq!((sums.recent_stored_bytes, sums.recent_versions, sums.recent_troubles), (40, 0, 0));
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

pub fn troubles_are_grouped_by_cause(state: &impl State) {
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
    let groups = state.troubles(due.site, 100).unwrap();
    let seen: Vec<_> = groups.iter().map(|g| (g.status, g.count, g.last_s - NOW_S)).collect();
    assert_eq!(seen, [(0, 2, 1), (404, 1, 3), (503, 1, 2)]);
    assert_eq!(groups[0].reason, Some(refused()));
    assert_eq!(groups[0].last_url, due.page.url);
    assert_eq!(state.troubles(due.site, 1).unwrap()[0].count, 1);
}

pub fn pages_are_listed_by_path_and_by_directory(state: &impl State) {
    let (_, due) = begun(state);
    let mut first = visit(&due, NOW_S, Outcome::Changed);
    first.discovered = ["a/1", "a/2", "a/b/c", "a/", "z?x=/1", "m"]
        .iter()
        .map(|path| found(&format!("http://e.com/{path}"), 2))
        .chain([found("http://cdn.e.com/logo.png", 2)])
        .collect();
    commit(state, first);
    let stranger = state.add_site("s", &conditions("http://e.com/stranger"), NOW_S).unwrap();
    let servers = state.site_servers(due.site, 9).unwrap();
    let names: Vec<_> = servers.iter().map(|s| s.server.as_str()).collect();
    assert_eq!(names, ["http://e.com", "http://cdn.e.com"]);
    assert_eq!(state.site_servers(due.site, 1).unwrap().len(), 1);

    let query = |prefix: &str, after: Option<&str>, limit| PathQuery {
        site: due.site,
        server: servers[0].id,
        prefix: prefix.to_owned(),
        after: after.map(str::to_owned),
        limit,
    };
    let listed = |query| {
        let pages = state.pages_by_path(&query).unwrap();
        pages.iter().map(|p| p.url.path_and_query().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        listed(query("/", None, 99)),
        ["/", "/a/", "/a/1", "/a/2", "/a/b/c", "/m", "/z?x=/1"]
    );
    assert_eq!(listed(query("/a/", Some("/a/1"), 2)), ["/a/2", "/a/b/c"]);
    assert_eq!(listed(PathQuery { site: stranger.id, ..query("/", None, 9) }), ["/stranger"]);

    let tree = |query| {
        let entries = state.directory(&query).unwrap();
        entries.into_iter().map(|e| (e.path, e.page.is_some())).collect::<Vec<_>>()
    };
    let is = |path: &str, page| (path.to_owned(), page);
    assert_eq!(
        tree(query("/", None, 99)),
        [is("/", true), is("/a/", true), is("/m", true), is("/z?x=/1", true)]
    );
    assert_eq!(tree(query("/a/", Some("/a/"), 2)), [is("/a/1", true), is("/a/2", true)]);
    assert_eq!(tree(query("/a/", Some("/a/2"), 9)), [is("/a/b/", false)]);
}
