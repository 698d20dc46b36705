//! Look-ups of versions as of a date.

use super::{NOW_S, adopt, begun, commit, conditions, row, url, visit};
use crate::{Outcome, State, VersionId, VersionQuery};

pub fn versions_are_found_as_of_a_date(state: &impl State) {
    let (_, due) = begun(state);
    for (number, at_s) in [(1, NOW_S), (2, NOW_S + 100), (3, NOW_S + 200)] {
        let mut changed = visit(&due, at_s, Outcome::Changed);
        changed.version = Some(row(number, at_s));
        commit(state, changed);
    }
    let key = url("https://www.e.com/").key();
    let all = state.versions(&key, VersionQuery::default()).unwrap();
    assert_eq!(all.iter().map(|(_, v)| v.version.0).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(all[0].0.as_str(), "http://e.com/");
    let mut each = Vec::new();
    state.each_version(&mut |url, row| each.push((url.clone(), row.clone()))).unwrap();
    assert_eq!(each, all);
    let some = VersionQuery { from_s: NOW_S + 1, to_s: NOW_S + 100, limit: 9 };
    assert_eq!(state.versions(&key, some).unwrap(), all[1..2]);
    for (asked, expected) in [(-5, 1), (0, 1), (99, 1), (100, 2), (150, 2), (9999, 3)] {
        let (_, version) = state.version_as_of(&key, NOW_S + asked).unwrap().unwrap();
        assert_eq!(version.version.0, expected, "at {asked}");
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
    assert_eq!(state.gone_times(&due.page.url).unwrap(), [NOW_S + 10, NOW_S + 20]);
    assert!(state.gone_times(&url("http://f.com/")).unwrap().is_empty());
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
        assert_eq!(found.first().map(|(_, _, row)| row.version.0), expected, "at {asked}");
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
    let mut before = (i64::MAX, VersionId(u64::MAX));
    let mut seen = Vec::new();
    loop {
        let portion = state.newest_versions(&key, before, 2).unwrap();
        let Some((_, last)) = portion.last() else { break };
        before = (last.at_s, last.version);
        seen.extend(portion.into_iter().map(|(_, v)| v.version.0));
    }
    assert_eq!(seen, [4, 3, 2, 1, 0]);
    let day = NOW_S / 86_400;
    assert_eq!(state.version_days(&key, day - 1, day + 1).unwrap(), [(day, 5)]);
    assert_eq!(state.version_days(&key, day + 1, day + 2).unwrap(), []);
}
