//! Visits of other collections, and versions found in packs.

use nenrin_revisit::{PageRevisitScheduler, RevisitSettings};
use nenrin_urls::CanonicalUrl;

use crate::{
    Change, Discovered, DuePage, DueQuery, Estimate, FoundPages, Nth, Origin, Outcome, PageLessons,
    PathQuery, Schedule, State, VersionId, VersionQuery, VersionRow, VisitCommit, VisitedPage,
    suite::{NOW_S, adopt, begun, commit, conditions, found, row, url, visit},
};

pub fn a_version_from_the_packs_is_adopted_once(state: &impl State) {
    let site = state.add_site("e", &conditions("http://e.com/"), NOW_S).unwrap();
    let lost = url("http://e.com/lost");
    assert!(adopt(state, site.id, lost.as_str(), row(2, NOW_S + 20)));
    assert!(adopt(state, site.id, lost.as_str(), row(1, NOW_S + 10)));
    assert!(!adopt(state, site.id, lost.as_str(), row(2, NOW_S + 20)));
    let page = state.page(&lost).unwrap().unwrap();
    assert_eq!((page.version, page.visited_s), (Some(VersionId(2)), Some(NOW_S + 20)));
    assert_eq!(state.versions(&lost.key(), VersionQuery::default()).unwrap().len(), 2);
}

/// Visits of several pages, some new, with the pages that they are about.
fn visits_of_another_collection(due: &DuePage) -> Vec<(Discovered, VisitCommit)> {
    let mut visits = Vec::new();
    for (nth, outcome) in [Outcome::Changed, Outcome::Gone, Outcome::Failed].into_iter().enumerate()
    {
        for server in ["http://one.com/", "http://two.com/"] {
            let mut visit = visit(due, NOW_S + nth as i64, outcome);
            let number = 10 + visits.len() as u64;
            visit.origin = Origin::Imported;
            visit.version = (nth < 2).then(|| row(number, NOW_S + nth as i64));
            visit.update.due_s = (nth == 0).then_some(NOW_S + 50_000);
            visits.push((found(&format!("{server}{nth}"), 2), visit));
        }
    }
    // One page twice, a known one, and one of the past.
    let again = visits[0].1.clone();
    visits.push((found("http://one.com/0", 2), VisitCommit { at_s: NOW_S + 9, ..again.clone() }));
    visits
        .push((found(due.page.url.as_str(), 2), VisitCommit { at_s: NOW_S - 9, ..again.clone() }));
    // Many of one page, which are written together.
    let many = [
        (3, Outcome::Changed),
        (4, Outcome::Same),
        (2, Outcome::Changed),
        (9, Outcome::NotModified),
        (9, Outcome::Changed),
        (1, Outcome::Same),
        (11, Outcome::Gone),
        (10, Outcome::Changed),
    ];
    for (nth, (after_s, outcome)) in many.into_iter().enumerate() {
        let mut visit = VisitCommit { outcome, at_s: NOW_S + after_s, ..again.clone() };
        let has_version = outcome == Outcome::Changed;
        visit.version = has_version.then(|| row(30 + nth as u64, NOW_S + after_s));
        visit.update.validators.etag = Some(format!("{nth}"));
        visit.update.due_s = (nth % 2 == 0).then_some(NOW_S + 60_000 + nth as i64);
        visits.push((found("http://three.com/", 2), visit));
    }
    visits
}

pub fn visits_by_url_are_as_if_their_pages_were_known_before(state: &impl State) {
    let (_, due) = begun(state);
    let known = due.page.url.clone();
    let visits = visits_of_another_collection(&due);
    // The same by the numbers of pages, on servers of other names.
    let others: Vec<Discovered> = visits
        .iter()
        .map(|(found, _)| {
            let url = found.url.as_str().replace(".com/", ".org/");
            Discovered { url: CanonicalUrl::parse(&url).unwrap(), ..found.clone() }
        })
        .collect();
    let pages = FoundPages { site: due.site, at_s: NOW_S, pages: others.clone() };
    state.commit(&[Change::Found(pages)]).unwrap();
    let change = |page: VisitedPage, visit: &VisitCommit| {
        Change::Visit(Box::new(VisitCommit { page, ..visit.clone() }))
    };
    let by_number: Vec<Change> = visits
        .iter()
        .zip(&others)
        .map(|((_, visit), other)| {
            change(state.page(&other.url).unwrap().unwrap().id.into(), visit)
        })
        .collect();
    state.commit(&by_number).unwrap();
    let urls: Vec<CanonicalUrl> = visits.iter().map(|(found, _)| found.url.clone()).collect();
    let pages_before = state.sites().unwrap()[0].counts.pages;
    let by_url: Vec<Change> =
        visits.iter().map(|(found, visit)| change(found.clone().into(), visit)).collect();
    state.commit(&by_url).unwrap();
    assert_eq!(state.sites().unwrap()[0].counts.pages, pages_before + 7);
    for (taken, other) in urls.iter().zip(&others) {
        let all = VersionQuery { from_s: i64::MIN, to_s: i64::MAX, limit: 9 };
        let versions = |url: &CanonicalUrl| -> Vec<VersionRow> {
            state.versions(&url.key(), all).unwrap().into_iter().map(|(_, row)| row).collect()
        };
        let visits = |url: &CanonicalUrl| -> Vec<(i64, Outcome)> {
            let visits = state.visits_of(url, i64::MIN, i64::MAX).unwrap();
            visits.iter().map(|visit| (visit.at_s, visit.outcome)).collect()
        };
        assert_eq!(versions(taken), versions(&other.url), "{taken}");
        assert_eq!(visits(taken), visits(&other.url), "{taken}");
        if *taken == known {
            continue;
        }
        let page = state.page(taken).unwrap().unwrap();
        let other = state.page(&other.url).unwrap().unwrap();
        let (id, url, nth) = (page.id, page.url.clone(), page.nth);
        let discovered_s = page.discovered_s;
        assert_eq!(page, crate::PageRecord { id, url, nth, discovered_s, ..other.clone() });
        let reading = |nth: Nth| state.found(Nth(nth.0 - 1), 1).unwrap()[0].reading;
        assert_eq!(reading(page.nth), reading(other.nth));
    }
    let url_of_none = url("http://one.com/none");
    let together: Vec<&CanonicalUrl> = urls.iter().chain([&url_of_none]).collect();
    let one_by_one: Vec<_> = together.iter().map(|url| state.page(url).unwrap()).collect();
    assert_eq!(state.pages_of(&together).unwrap(), one_by_one);
    let server = state.page(&urls[0]).unwrap().unwrap().id.server();
    let (site, prefix) = (due.site, "/".to_owned());
    let paths = PathQuery { site, server, prefix, after: None, limit: 9 };
    assert_eq!(state.pages_by_path(&paths).unwrap().len(), 3);
    assert_eq!(state.check().unwrap(), Vec::<String>::new());
}

pub fn an_imported_visit_of_the_past_leaves_what_is_known_last(state: &impl State) {
    let (_, due) = begun(state);
    let mut last = visit(&due, NOW_S, Outcome::Changed);
    last.version = Some(row(2, NOW_S));
    commit(state, last);
    let known = state.page(&due.page.url).unwrap().unwrap();
    let mut past = visit(&due, NOW_S - 100, Outcome::Changed);
    past.version = Some(row(3, NOW_S - 100));
    past.origin = Origin::Imported;
    past.update.validators.etag = None;
    past.update.mark = None;
    state.commit(&[Change::Visit(Box::new(past))]).unwrap();
    let mut later = visit(&due, NOW_S + 50, Outcome::Same);
    later.origin = Origin::Imported;
    later.update.validators.etag = Some("later".into());
    state.commit(&[Change::Visit(Box::new(later))]).unwrap();
    let page = state.page(&due.page.url).unwrap().unwrap();
    assert_eq!((page.visits, page.changes, page.version), (3, 2, known.version));
    assert_eq!((page.mark, page.visited_s), (known.mark, Some(NOW_S + 50)));
    assert_eq!(page.validators.etag.as_deref(), Some("later"));
    let times = |from_s, to_s| {
        let visits = state.visits_of(&due.page.url, from_s, to_s).unwrap();
        visits.iter().map(|v| (v.at_s - NOW_S, v.outcome)).collect::<Vec<_>>()
    };
    let all = [(-100, Outcome::Changed), (0, Outcome::Changed), (50, Outcome::Same)];
    assert_eq!(times(i64::MIN, i64::MAX), all);
    assert_eq!(times(NOW_S - 99, NOW_S + 49), all[1..2]);
    assert_eq!(state.visits_of(&url("http://e.com/none"), 0, i64::MAX).unwrap(), []);
}

/// A page with two imported versions.
fn imported(state: &impl State) -> DuePage {
    let (_, due) = begun(state);
    for (version, at_s) in [(1, NOW_S), (2, NOW_S + 50)] {
        let mut visit = visit(&due, at_s, Outcome::Changed);
        visit.version = Some(row(version, at_s));
        visit.origin = Origin::Imported;
        state.commit(&[Change::Visit(Box::new(visit))]).unwrap();
    }
    due
}

pub fn lessons_of_imported_visits_set_times_and_tell_noise(state: &impl State) {
    let due = imported(state);
    let estimate = Some(Estimate { rate_micros: 7, confidence_percent: 30 });
    let lessons = PageLessons {
        page: due.page.id,
        until_s: NOW_S + 50,
        history: vec![1, 2],
        failures: 0,
        due_s: Some(NOW_S + 90_000),
        estimate,
        compared: vec![(VersionId(2), 0)],
    };
    let significant = |state: &dyn State| state.site_worth().unwrap()[0].significant_versions;
    assert_eq!(
        (state.page(&due.page.url).unwrap().unwrap().significant, significant(state)),
        (2, 2)
    );
    state.commit(&[Change::Lessons(Box::new(lessons.clone()))]).unwrap();
    let page = state.page(&due.page.url).unwrap().unwrap();
    assert_eq!((page.history.as_slice(), page.due_s), ([1, 2].as_slice(), Some(NOW_S + 90_000)));
    assert_eq!((page.estimate, page.significant, significant(state)), (estimate, 1, 1));
    let versions = state.versions(&due.page.url.key(), VersionQuery::default()).unwrap();
    let permille: Vec<_> = versions.iter().map(|(_, row)| row.changed_permille).collect();
    assert_eq!(permille, [None, Some(0)]);
    // Said again, it changes nothing; a page that was visited since has learnt more.
    state.commit(&[Change::Lessons(Box::new(lessons.clone()))]).unwrap();
    assert_eq!(state.page(&due.page.url).unwrap().unwrap(), page);
    let late = PageLessons { until_s: NOW_S + 49, history: vec![9], ..lessons };
    state.commit(&[Change::Lessons(Box::new(late))]).unwrap();
    assert_eq!(state.page(&due.page.url).unwrap().unwrap(), page);
    assert_eq!(state.check().unwrap(), Vec::<String>::new());
}

pub fn pages_that_get_times_of_their_own_get_those_that_were_learnt(state: &impl State) {
    let due = imported(state);
    let settings = RevisitSettings::default();
    let mut scheduler = PageRevisitScheduler::new(settings.clone(), state.bucket_s());
    let mut page = due.page.clone();
    for day in 0..20 {
        let at_s = NOW_S + 50 - (19 - day) * 86_400;
        let found = if day == 0 { Outcome::Changed } else { Outcome::Same };
        page.history = scheduler.visited(at_s, &page.known(), found, None, 1.0).history;
        page.outcome = Some(Outcome::Same);
    }
    let lessons = PageLessons {
        page: page.id,
        until_s: NOW_S + 50,
        history: page.history.clone(),
        failures: 0,
        due_s: None,
        estimate: None,
        compared: Vec::new(),
    };
    let shared = Change::Shared { site: due.site, bytes: scheduler.keep_now().unwrap() };
    state.commit(&[Change::Lessons(Box::new(lessons)), shared]).unwrap();
    let mut conditions = conditions("http://e.com/");
    conditions.schedule = Schedule::Continuous(settings);
    state.set_site(due.site, &conditions, NOW_S + 100).unwrap();
    let due_s = state.page(&page.url).unwrap().unwrap().due_s.unwrap();
    assert!(due_s > NOW_S + 50 + 2 * 86_400, "quiet for 19 days, due after {}", due_s - NOW_S);
    let query = DueQuery { until_s: due_s, per_server: 9, limit: 9, ..DueQuery::default() };
    assert_eq!(state.load_due(&query).unwrap().pages.len(), 1);
}
