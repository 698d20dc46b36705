//! Changes by time, and what was read of versions.

use super::{NOW_S, adopt, begun, commit, found, row, visit};
use crate::{ChangeQuery, Outcome, PageChange, Removal, State, Summary, VersionId, VersionRow};

fn all() -> ChangeQuery {
    ChangeQuery {
        from_s: i64::MIN,
        to_s: i64::MAX,
        limit: 100,
        looked_at: 100,
        ..ChangeQuery::default()
    }
}

/// Path, time, version and the version before.
fn seen(changes: &[PageChange]) -> Vec<(&str, i64, Option<u64>, Option<u64>)> {
    let number = |row: &Option<VersionRow>| row.as_ref().map(|row| row.version.0);
    let one = |change: &PageChange| {
        (change.at_s - NOW_S, number(&change.version), number(&change.previous))
    };
    changes
        .iter()
        .map(|change| {
            let (at_s, version, previous) = one(change);
            (change.url.path_and_query(), at_s, version, previous)
        })
        .collect()
}

pub fn changes_are_listed_by_time_with_the_version_before(state: &impl State) {
    let (_, due) = begun(state);
    let site = due.site;
    for (n, permille) in [(1, None), (3, Some(0)), (5, Some(250))] {
        let mut changed = visit(&due, NOW_S + n, Outcome::Changed);
        let version = row(n as u64, NOW_S + n);
        changed.version = Some(VersionRow { changed_permille: permille, ..version });
        changed.discovered = vec![found("http://e.com/b", 2)];
        commit(state, changed);
    }
    adopt(state, site, "http://e.com/b", row(4, NOW_S + 4));
    for at_s in [NOW_S + 7, NOW_S + 9] {
        commit(state, visit(&due, at_s, Outcome::Gone));
    }
    let expected = [
        ("/", 7, None, Some(5)),
        ("/", 5, Some(5), Some(3)),
        ("/b", 4, Some(4), None),
        ("/", 3, Some(3), Some(1)),
        ("/", 1, Some(1), None),
    ];
    for is_indexed in [false, true] {
        if is_indexed {
            state.index_changes().unwrap();
            state.index_changes().unwrap();
        }
        let listed = state.changes(&all()).unwrap();
        assert_eq!((seen(&listed.changes), listed.next), (expected.to_vec(), None));
        let significant = ChangeQuery { significant: true, ..all() };
        assert_eq!(state.changes(&significant).unwrap().changes.len(), 4, "without the noise");
        let between = ChangeQuery { from_s: NOW_S + 3, to_s: NOW_S + 5, ..all() };
        assert_eq!(seen(&state.changes(&between).unwrap().changes), expected[1..4]);
        let (mut query, mut portions) = (ChangeQuery { limit: 2, ..all() }, Vec::new());
        loop {
            let portion = state.changes(&query).unwrap();
            portions.extend(portion.changes);
            query.before = portion.next;
            if portion.next.is_none() {
                break;
            }
        }
        assert_eq!(seen(&portions), expected);
        let other = ChangeQuery { site: Some(crate::SiteId(site.0 + 1)), looked_at: 2, ..all() };
        let portion = state.changes(&other).unwrap();
        assert!(portion.changes.is_empty() && portion.next.is_some(), "it says where it stopped");
    }
    state.remove_site(site, Some(Removal::Deny), "", NOW_S).unwrap();
    assert_eq!(state.changes(&all()).unwrap().changes, [], "nobody may read them");
}

pub fn what_was_read_of_versions_goes_with_them(state: &impl State) {
    let site = super::removable(state);
    let page = |text: &str| state.page(&super::url(text)).unwrap().unwrap().id;
    let read =
        |title: &str| Summary { title: title.into(), line: "x".into(), ..Summary::default() };
    let kept = |versions: &[u64]| {
        let versions: Vec<VersionId> = versions.iter().copied().map(VersionId).collect();
        let found = state.summaries(&versions).unwrap();
        found.into_iter().map(|summary| summary.map(|s| s.title)).collect::<Vec<_>>()
    };
    assert_eq!(kept(&[71, 72]), [None, None]);
    let (top, other) = (page("http://r.com/"), page("http://r.com/b"));
    let summaries = [(top, 71, "a"), (other, 72, "b"), (other, 99, "c")]
        .map(|(page, version, title)| (page, VersionId(version), read(title)));
    state.keep_summaries(&summaries, 100).unwrap();
    assert_eq!(kept(&[72, 99, 71]), [Some("b".into()), None, Some("a".into())], "99 is not there");
    state
        .keep_summaries(
            &[(top, VersionId(71), Summary { previous: Some(VersionId(7)), ..read("d") })],
            1,
        )
        .unwrap();
    assert_eq!(kept(&[71, 72]), [None, Some("b".into())], "the oldest are forgotten first");
    state.keep_summaries(&summaries, 100).unwrap();
    state.remove_site(site, Some(Removal::Delete), "", NOW_S).unwrap();
    let denied = state.denied_versions(site, None, 10).unwrap();
    let pages: Vec<_> = denied.iter().map(|(page, _)| *page).collect();
    state.drop_versions(&pages).unwrap();
    assert_eq!(kept(&[71, 72]), [None, None], "deleted is deleted");
}

pub fn the_last_visits_of_a_page_are_read_backwards(state: &impl State) {
    let (_, due) = begun(state);
    for n in 1..=5 {
        commit(state, visit(&due, NOW_S + n, Outcome::Same));
    }
    for is_indexed in [false, true] {
        if is_indexed {
            state.visits_of(&due.page.url, 0, 1).unwrap();
        }
        let (visits, next) = state.recent_visits(due.page.id, None, 100).unwrap();
        let times: Vec<i64> = visits.iter().map(|visit| visit.at_s - NOW_S).collect();
        assert_eq!((times, next), (vec![5, 4, 3, 2, 1], None));
        let older = state.recent_visits(due.page.id, Some(visits[3].id), 100).unwrap().0;
        assert_eq!(older, visits[4..]);
        let other = crate::PageId(due.page.id.0 + 1);
        assert_eq!(state.recent_visits(other, None, 100).unwrap(), (Vec::new(), None));
    }
}
