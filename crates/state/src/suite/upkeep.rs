//! What is deleted and pruned.

use super::{NOW_S, adopt, begun, commit, removable, row, visit};
use crate::{
    Change, Outcome, PruneRow, Removal, ServerNote, ServerPace, State, StateError, VersionId,
    VersionQuery,
};

pub fn what_was_deleted_stays_deleted(state: &impl State) {
    let site = removable(state);
    state.remove_site(site, Some(Removal::Delete), "must go", NOW_S).unwrap();
    let first = state.denied_versions(site, None, 1).unwrap();
    let rest = state.denied_versions(site, Some(first[0].0), 9).unwrap();
    let mut versions: Vec<VersionId> =
        first.iter().chain(&rest).map(|(_, version)| *version).collect();
    versions.sort_unstable();
    assert_eq!(versions, [VersionId(71), VersionId(72)]);
    let pages: Vec<crate::PageId> = first.iter().chain(&rest).map(|(page, _)| *page).collect();
    assert_eq!(state.drop_versions(&pages).unwrap(), 2);
    assert_eq!(state.denied_versions(site, None, 9).unwrap(), []);
    assert_eq!(state.sites().unwrap()[0].counts.versions, 0);
    let error = state.remove_site(site, None, "oh", NOW_S).unwrap_err();
    assert!(matches!(error, StateError::SiteDeleted { .. }), "{error}");
}

pub fn pruned_versions_wait_until_the_store_has_forgotten_them(state: &impl State) {
    let (_, due) = begun(state);
    for (version, at_s) in [(1, NOW_S), (2, NOW_S + 10), (3, NOW_S + 20)] {
        let mut changed = visit(&due, at_s, Outcome::Changed);
        changed.version = Some(row(version, at_s));
        commit(state, changed);
    }
    let site = due.site;
    let versions = state.site_versions(site, None, 9).unwrap();
    assert_eq!(versions.iter().map(|v| v.version.0).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(versions.iter().map(|v| v.is_current).collect::<Vec<_>>(), [false, false, true]);
    assert_eq!(state.site_versions(site, Some(due.page.id), 9).unwrap(), []);
    let rule = "0d,month".to_owned();
    let about = PruneRow { site, at_s: NOW_S + 30, rule, versions: 0, raw_bytes: 0 };
    // The current one stays.
    assert_eq!(state.prune(&about, &versions[1..]).unwrap(), 1);
    let key = due.page.url.key();
    let found = || {
        let found = state.versions(&key, VersionQuery::default()).unwrap();
        found.iter().map(|(_, row)| row.version.0).collect::<Vec<_>>()
    };
    assert_eq!(found(), [1, 3]);
    assert_eq!(state.version_as_of(&key, NOW_S + 15).unwrap().unwrap().1.version, VersionId(1));
    assert_eq!(state.pruning(9).unwrap(), [VersionId(2)]);
    assert_eq!(state.sites().unwrap()[0].counts.versions, 2);
    // An index that is rebuilt meanwhile does not bring it back.
    assert!(!adopt(state, site, due.page.url.as_str(), row(2, NOW_S + 10)));
    assert_eq!(found(), [1, 3]);
    state.pruned(&[VersionId(2)]).unwrap();
    assert!(state.pruning(9).unwrap().is_empty());
    assert_eq!(state.prune(&about, &versions[1..2]).unwrap(), 0);
    let log = state.prunes().unwrap();
    assert_eq!(log, [PruneRow { versions: 1, raw_bytes: 100, ..about }]);
    let visits = state.visits_of(&due.page.url, i64::MIN, i64::MAX).unwrap();
    assert_eq!(visits.len(), 3, "the log of visits stays");
}

pub fn lost_versions_leave_the_list_and_pages_are_fetched_as_a_whole(state: &impl State) {
    let (_, due) = begun(state);
    for (version, at_s) in [(1, NOW_S), (2, NOW_S + 10), (3, NOW_S + 20)] {
        let mut changed = visit(&due, at_s, Outcome::Changed);
        changed.version = Some(row(version, at_s));
        commit(state, changed);
    }
    let key = due.page.url.key();
    let found = || {
        let found = state.versions(&key, VersionQuery::default()).unwrap();
        found.iter().map(|(_, row)| row.version.0).collect::<Vec<_>>()
    };
    assert_eq!(state.drop_lost(&[3, 99].map(VersionId), "lost", NOW_S + 30).unwrap(), 1);
    assert_eq!(found(), [1, 2]);
    let page = state.page(&due.page.url).unwrap().unwrap();
    assert_eq!((page.version, page.validators.is_empty()), (Some(VersionId(2)), true));
    assert_eq!(state.check().unwrap(), [""; 0]);
    assert_eq!(state.sites().unwrap()[0].counts.versions, 2);
    assert_eq!(state.drop_lost(&[1, 2].map(VersionId), "lost", NOW_S + 40).unwrap(), 2);
    assert!(found().is_empty());
    assert_eq!(state.check().unwrap(), [""; 0]);
    let log = state.prunes().unwrap();
    assert_eq!(log.iter().map(|row| row.versions).collect::<Vec<_>>(), [2, 1]);
    assert!(
        adopt(state, due.site, due.page.url.as_str(), row(2, NOW_S + 10)),
        "it was found again"
    );
    assert_eq!(found(), [2]);
    assert_eq!(state.check().unwrap(), [""; 0]);
}

pub fn what_was_visited_in_the_future_is_due_now(state: &impl State) {
    let (_, due) = begun(state);
    let ahead_s = NOW_S + 20 * 365 * 86_400;
    assert_eq!(state.set_clock_back(NOW_S).unwrap(), None);
    let mut changed = visit(&due, ahead_s, Outcome::Changed);
    changed.version = Some(row(1, ahead_s));
    changed.update.due_s = Some(ahead_s + 86_400);
    commit(state, changed);
    let pace = ServerPace {
        server: due.page.id.server(),
        asked_ms: ahead_s * 1000,
        resting_until_ms: Some(ahead_s * 1000 + 1),
        strikes: 3,
        stretch_percent: 900,
    };
    let epoch = state.take_over().unwrap();
    let note = |name: &str| {
        let (server, name, value) = (due.page.id.server(), name.to_owned(), "{}".to_owned());
        Change::Note(ServerNote { server, name, value })
    };
    let changes = [Change::Pace(pace), note("signals"), note("probe")];
    state.commit_under(epoch, &changes).unwrap();
    // A minute ahead is not a wrong clock.
    assert_eq!(state.set_clock_back(ahead_s - 60).unwrap(), None);
    let pages = state.set_clock_back(NOW_S).unwrap();
    assert!(pages.is_some_and(|pages| pages >= 1), "{pages:?}");
    let page = state.page(&due.page.url).unwrap().unwrap();
    assert_eq!((page.visited_s, page.due_s), (Some(NOW_S), Some(NOW_S)));
    assert!(page.history.is_empty() && page.version == Some(VersionId(1)));
    let server = &state.servers(&[due.page.id.server()]).unwrap()[0];
    assert_eq!((server.asked_ms, server.resting_until_ms), (Some(NOW_S * 1000), None));
    assert_eq!((server.strikes, server.stretch_percent), (0, 100), "everything looked late");
    let notes: Vec<&str> = server.notes.keys().map(String::as_str).collect();
    assert_eq!(notes, ["probe"], "how missing pages look does not depend on the time");
    assert_eq!(state.set_clock_back(NOW_S).unwrap(), None);
    assert_eq!(state.check().unwrap(), Vec::<String>::new());
}
