//! What is hidden, denied, deleted or pruned.

use super::{NOW_S, adopt, begun, commit, conditions, row, url, visit};
use crate::{Outcome, PruneRow, Removal, State, StateError, VersionQuery};

/// A site with two pages, one version each.
fn removable(state: &impl State) -> crate::SiteId {
    let site = state.add_site("r", &conditions("http://r.com/"), NOW_S).unwrap().id;
    adopt(state, site, "http://r.com/", row(71, NOW_S));
    adopt(state, site, "http://r.com/b", row(72, NOW_S));
    site
}

fn is_found(state: &impl State, text: &str) -> bool {
    let key = url(text).key();
    let found = state.version_as_of(&key, NOW_S).unwrap().is_some();
    assert_eq!(found, !state.versions(&key, VersionQuery::default()).unwrap().is_empty());
    assert_eq!(found, !state.newest_versions(&key, (i64::MAX, u64::MAX), 9).unwrap().is_empty());
    let listed = state.urls(key.as_str(), &format!("{key}~"), 9).unwrap();
    assert_eq!(found, listed.contains(&url(text)));
    found
}

pub fn a_hidden_site_is_paused_and_its_versions_are_found(state: &impl State) {
    let site = removable(state);
    state.remove_site(site, Some(Removal::Hide), "dull", NOW_S + 1).unwrap();
    let found = &state.sites().unwrap()[0];
    assert_eq!((found.paused, found.removed), (true, Some(Removal::Hide)));
    assert!(is_found(state, "http://r.com/b"));
    let log = state.removals().unwrap();
    assert_eq!((log.len(), log[0].reason.as_str(), log[0].at_s), (1, "dull", NOW_S + 1));
}

pub fn what_is_denied_is_found_no_more_until_it_is_given_back(state: &impl State) {
    let site = removable(state);
    state.remove_site(site, Some(Removal::Deny), "asked to", NOW_S).unwrap();
    for page in ["http://r.com/", "http://r.com/b"] {
        assert!(!is_found(state, page));
    }
    assert_eq!(state.site_as_of(site, NOW_S, None, 9).unwrap(), []);
    // Neither a new version nor a rebuilt index opens it again.
    adopt(state, site, "http://r.com/b", row(73, NOW_S + 9));
    assert!(!is_found(state, "http://r.com/b"));
    state.remove_site(site, None, "they changed their mind", NOW_S + 10).unwrap();
    assert!(is_found(state, "http://r.com/") && is_found(state, "http://r.com/b"));
    assert_eq!(state.sites().unwrap()[0].removed, None);
    assert_eq!(state.removals().unwrap().len(), 2);
}

pub fn a_page_that_another_site_has_is_not_denied(state: &impl State) {
    let site = removable(state);
    let other = state.add_site("o", &conditions("http://r.com/b"), NOW_S).unwrap().id;
    state.remove_site(site, Some(Removal::Deny), "asked to", NOW_S).unwrap();
    assert!(!is_found(state, "http://r.com/"));
    assert!(is_found(state, "http://r.com/b"));
    state.remove_site(other, Some(Removal::Deny), "asked to", NOW_S).unwrap();
    assert!(!is_found(state, "http://r.com/b"));
}

pub fn what_was_deleted_stays_deleted(state: &impl State) {
    let site = removable(state);
    state.remove_site(site, Some(Removal::Delete), "must go", NOW_S).unwrap();
    let first = state.denied_versions(site, None, 1).unwrap();
    let rest = state.denied_versions(site, Some(first[0].0), 9).unwrap();
    let mut versions: Vec<u64> = first.iter().chain(&rest).map(|(_, version)| *version).collect();
    versions.sort_unstable();
    assert_eq!(versions, [71, 72]);
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
    assert_eq!(versions.iter().map(|v| v.version).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(versions.iter().map(|v| v.is_current).collect::<Vec<_>>(), [false, false, true]);
    assert_eq!(state.site_versions(site, Some(due.page.id), 9).unwrap(), []);
    let rule = "0d,month".to_owned();
    let about = PruneRow { site, at_s: NOW_S + 30, rule, versions: 0, raw_bytes: 0 };
    // The current one stays.
    assert_eq!(state.prune(&about, &versions[1..]).unwrap(), 1);
    let key = due.page.url.key();
    let found = || {
        let found = state.versions(&key, VersionQuery::default()).unwrap();
        found.iter().map(|(_, row)| row.version).collect::<Vec<_>>()
    };
    assert_eq!(found(), [1, 3]);
    assert_eq!(state.version_as_of(&key, NOW_S + 15).unwrap().unwrap().1.version, 1);
    assert_eq!(state.pruning(9).unwrap(), [2]);
    assert_eq!(state.sites().unwrap()[0].counts.versions, 2);
    // An index that is rebuilt meanwhile does not bring it back.
    assert!(!adopt(state, site, due.page.url.as_str(), row(2, NOW_S + 10)));
    assert_eq!(found(), [1, 3]);
    state.pruned(&[2]).unwrap();
    assert!(state.pruning(9).unwrap().is_empty());
    assert_eq!(state.prune(&about, &versions[1..2]).unwrap(), 0);
    let log = state.prunes().unwrap();
    assert_eq!(log, [PruneRow { versions: 1, raw_bytes: 100, ..about }]);
    let visits = state.visits_of(&due.page.url, i64::MIN, i64::MAX).unwrap();
    assert_eq!(visits.len(), 3, "the log of visits stays");
}
