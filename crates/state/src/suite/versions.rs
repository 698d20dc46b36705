//! Versions as of a date, and those that come from elsewhere.

use nenrin_urls::CanonicalUrl;

use super::{NOW_S, adopt, begun, commit, conditions, found, row, url, visit};
use crate::{
    BodyKind, Change, Discovered, DuePage, FoundPages, KindSums, Origin, Outcome, PathQuery,
    SiteId, State, VersionQuery, VersionRow, VisitCommit, VisitedPage,
};

pub fn versions_are_found_as_of_a_date(state: &impl State) {
    let (_, due) = begun(state);
    for (number, at_s) in [(1, NOW_S), (2, NOW_S + 100), (3, NOW_S + 200)] {
        let mut changed = visit(&due, at_s, Outcome::Changed);
        changed.version = Some(row(number, at_s));
        commit(state, changed);
    }
    let key = url("https://www.e.com/").key();
    let all = state.versions(&key, VersionQuery::default()).unwrap();
    assert_eq!(all.iter().map(|(_, v)| v.version).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(all[0].0.as_str(), "http://e.com/");
    let mut each = Vec::new();
    state.each_version(&mut |url, row| each.push((url.clone(), row.clone()))).unwrap();
    assert_eq!(each, all);
    let some = VersionQuery { from_s: NOW_S + 1, to_s: NOW_S + 100, limit: 9 };
    assert_eq!(state.versions(&key, some).unwrap(), all[1..2]);
    for (asked, expected) in [(-5, 1), (0, 1), (99, 1), (100, 2), (150, 2), (9999, 3)] {
        let (_, version) = state.version_as_of(&key, NOW_S + asked).unwrap().unwrap();
        assert_eq!(version.version, expected, "at {asked}");
    }
    assert_eq!(state.version_as_of(&url("http://f.com/").key(), NOW_S).unwrap(), None);
}

pub fn urls_with_versions_are_found_by_their_keys(state: &impl State) {
    let site = state.add_site("e", &conditions("http://e.com/"), NOW_S).unwrap();
    for text in ["http://e.com/b/2", "http://e.com/b/1", "https://www.e.com/b", "http://f.com/b/"] {
        adopt(state, site.id, text, row(1, NOW_S));
    }
    let found = |from: &str, to: &str, limit: usize| {
        let urls = state.urls(from, to, limit).unwrap();
        urls.iter().map(|u| u.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(found("com,e)/b/", "com,e)/b0", 9), ["http://e.com/b/1", "http://e.com/b/2"]);
    assert_eq!(found("com,e)", "com,e*", 2), ["https://www.e.com/b", "http://e.com/b/1"]);
    assert!(found("org", "org~", 9).is_empty());
}

pub fn a_version_from_the_packs_is_adopted_once(state: &impl State) {
    let site = state.add_site("e", &conditions("http://e.com/"), NOW_S).unwrap();
    let lost = url("http://e.com/lost");
    assert!(adopt(state, site.id, lost.as_str(), row(2, NOW_S + 20)));
    assert!(adopt(state, site.id, lost.as_str(), row(1, NOW_S + 10)));
    assert!(!adopt(state, site.id, lost.as_str(), row(2, NOW_S + 20)));
    let page = state.page(&lost).unwrap().unwrap();
    assert_eq!((page.version, page.visited_s), (Some(2), Some(NOW_S + 20)));
    assert_eq!(state.versions(&lost.key(), VersionQuery::default()).unwrap().len(), 2);
}

pub fn a_site_as_of_a_date_leaves_out_what_was_gone(state: &impl State) {
    let (_, due) = begun(state);
    let mut steps = vec![
        (0, Outcome::Changed, Some(1)),
        (10, Outcome::Gone, None),
        (20, Outcome::Gone, None),
        (30, Outcome::Changed, Some(2)),
        (40, Outcome::Same, None),
    ];
    for (after_s, outcome, version) in steps.drain(..) {
        let mut step = visit(&due, NOW_S + after_s, outcome);
        step.version = version.map(|number| row(number, NOW_S + after_s));
        commit(state, step);
    }
    for (asked, expected) in [
        (-1, None),
        (0, Some(1)),
        (9, Some(1)),
        (10, None),
        (29, None),
        (30, Some(2)),
        (99, Some(2)),
    ] {
        let found = state.site_as_of(due.site, NOW_S + asked, None, 9).unwrap();
        assert_eq!(found.first().map(|(_, _, row)| row.version), expected, "at {asked}");
        if let Some((page, url, _)) = found.first() {
            assert_eq!((*page, url), (due.page.id, &due.page.url));
            assert_eq!(state.site_as_of(due.site, NOW_S + asked, Some(*page), 9).unwrap(), vec![]);
        }
    }
}

pub fn versions_are_read_backwards_in_portions(state: &impl State) {
    let (_, due) = begun(state);
    for n in 0..5_i64 {
        let mut changed = visit(&due, NOW_S + n / 2, Outcome::Changed);
        changed.version = Some(row(n as u64, NOW_S + n / 2));
        commit(state, changed);
    }
    let key = due.page.url.key();
    let mut before = (i64::MAX, u64::MAX);
    let mut seen = Vec::new();
    loop {
        let portion = state.newest_versions(&key, before, 2).unwrap();
        let Some((_, last)) = portion.last() else { break };
        before = (last.at_s, last.version);
        seen.extend(portion.into_iter().map(|(_, v)| v.version));
    }
    assert_eq!(seen, [4, 3, 2, 1, 0]);
    let day = NOW_S / 86_400;
    assert_eq!(state.version_days(&key, day - 1, day + 1).unwrap(), [(day, 5)]);
    assert_eq!(state.version_days(&key, day + 1, day + 2).unwrap(), []);
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
        visit.update.etag = Some(format!("{nth}"));
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
        let reading = |nth: u32| state.found(nth - 1, 1).unwrap()[0].reading;
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
    past.update.etag = None;
    past.update.mark = None;
    state.commit(&[Change::Visit(Box::new(past))]).unwrap();
    let mut later = visit(&due, NOW_S + 50, Outcome::Same);
    later.origin = Origin::Imported;
    later.update.etag = Some("later".into());
    state.commit(&[Change::Visit(Box::new(later))]).unwrap();
    let page = state.page(&due.page.url).unwrap().unwrap();
    assert_eq!((page.visits, page.changes, page.version), (3, 2, known.version));
    assert_eq!((page.mark, page.visited_s), (known.mark, Some(NOW_S + 50)));
    assert_eq!(page.etag.as_deref(), Some("later"));
    let times = |from_s, to_s| {
        let visits = state.visits_of(&due.page.url, from_s, to_s).unwrap();
        visits.iter().map(|v| (v.at_s - NOW_S, v.outcome)).collect::<Vec<_>>()
    };
    let all = [(-100, Outcome::Changed), (0, Outcome::Changed), (50, Outcome::Same)];
    assert_eq!(times(i64::MIN, i64::MAX), all);
    assert_eq!(times(NOW_S - 99, NOW_S + 49), all[1..2]);
    assert_eq!(state.visits_of(&url("http://e.com/none"), 0, i64::MAX).unwrap(), []);
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
