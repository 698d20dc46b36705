//! Sites, their removal, and incidents.

use super::{NOW_S, adopt, conditions, removable, row, url};
use crate::{
    Incident, IncidentKind, Removal, SiteId, State, StateError, VersionId, VersionQuery, Watch,
    WatchEvent, WatchFinding, WatchHit, WatchId, WatchTrouble, WatchedPart,
};
use nenrin_lang::IncidentDetail;

pub fn a_site_makes_its_top_pages_known(state: &impl State) {
    let site = state.add_site("e", &conditions("http://e.com/a"), NOW_S).unwrap();
    assert_eq!(state.sites().unwrap(), vec![site.clone()]);
    assert_eq!(site.counts.pages, 1);
    let page = state.page(&url("http://e.com/a")).unwrap().unwrap();
    assert_eq!((page.site, page.discovered_s, page.visits), (site.id, NOW_S, 0));
    assert_eq!(state.page(&url("http://e.com/b")).unwrap(), None);
}

pub fn two_sites_cannot_share_a_name(state: &impl State) {
    state.add_site("e", &conditions("http://e.com/"), NOW_S).unwrap();
    let error = state.add_site("e", &conditions("http://f.com/"), NOW_S).unwrap_err();
    assert!(matches!(error, StateError::SiteExists { .. }), "{error}");
    assert_eq!(state.page(&url("http://f.com/")).unwrap(), None);
}

fn is_found(state: &impl State, text: &str) -> bool {
    let key = url(text).key();
    let found = state.version_as_of(&key, NOW_S).unwrap().is_some();
    assert_eq!(found, !state.versions(&key, VersionQuery::default()).unwrap().is_empty());
    assert_eq!(
        found,
        !state.newest_versions(&key, (i64::MAX, VersionId(u64::MAX)), 9).unwrap().is_empty()
    );
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

pub fn the_newest_incidents_are_kept_until_they_are_over(state: &impl State) {
    let incident = |n: i64| Incident {
        id: format!("i-{n}"),
        event: IncidentKind::SignalLost,
        at_s: NOW_S + n,
        over_s: None,
        site: (n % 2 == 0).then_some(SiteId(1)),
        name: "e".into(),
        detail: Some(IncidentDetail::SignalLost("<b>".into())),
        cause: "why".into(),
    };
    let all: Vec<Incident> = (0..203).map(incident).collect();
    state.keep_incidents(&all[..2]).unwrap();
    assert_eq!(state.incidents().unwrap(), [incident(1), incident(0)]);
    state.keep_incidents(&all[2..]).unwrap();
    state.end_incidents(&["i-202".into(), "nobody".into()], NOW_S + 900).unwrap();
    state.end_incidents(&["i-202".into()], NOW_S + 999).unwrap();
    let kept = state.incidents().unwrap();
    assert_eq!((kept.len(), kept[0].over_s), (Incident::KEPT, Some(NOW_S + 900)));
    assert_eq!((kept[199].id.as_str(), kept[199].over_s), ("i-3", None));
}

pub fn a_site_gets_another_name_that_is_free(state: &impl State) {
    let one = state.add_site("one", &conditions("http://e.com/"), NOW_S).unwrap();
    state.add_site("two", &conditions("http://f.com/"), NOW_S).unwrap();
    let error = state.rename_site(one.id, "two").unwrap_err();
    assert!(matches!(error, StateError::SiteExists { .. }), "{error}");
    state.rename_site(one.id, "one").unwrap();
    state.rename_site(one.id, "first").unwrap();
    assert_eq!(state.sites().unwrap()[0].name, "first");
    let error = state.rename_site(SiteId(99), "none").unwrap_err();
    assert!(matches!(error, StateError::NoSuchSite { .. }), "{error}");
}

pub fn watches_and_what_they_reported_come_back(state: &impl State) {
    let watch = Watch {
        id: WatchId(0),
        name: "<b>".into(),
        url: url("http://e.com/a"),
        part: WatchedPart::Selector { selector: "p.price".into(), nth: 2 },
        on: WatchEvent::Below(9.5),
        paused: false,
        created_s: NOW_S,
        last: Some(WatchFinding { at_s: NOW_S, text: Some("12".into()) }),
        trouble: Some(WatchTrouble::NoNumber),
    };
    let first = state.keep_watch(&watch).unwrap();
    let second = state.keep_watch(&watch).unwrap();
    assert_eq!((first.id, second.id), (WatchId(1), WatchId(2)));
    let paused = Watch { paused: true, ..first };
    assert_eq!(state.keep_watch(&paused).unwrap(), paused);
    assert_eq!(state.watches().unwrap(), [paused, second.clone()]);
    assert!(state.drop_watch(WatchId(1)).unwrap() && !state.drop_watch(WatchId(1)).unwrap());
    assert_eq!(state.watches().unwrap(), [second]);
    let hit = |n: i64| WatchHit {
        id: 0,
        watch: WatchId(2),
        title: format!("t{n}"),
        url: url("http://e.com/a"),
        at_s: NOW_S + n,
        before_s: None,
        before: None,
        after: Some("now".into()),
        trouble: None,
        mailed: false,
    };
    state.keep_watch_hits(&(1..=503).map(hit).collect::<Vec<_>>()).unwrap();
    let hits = state.watch_hits().unwrap();
    assert_eq!((hits.len(), hits[0].id, hits[499].id), (WatchHit::KEPT, 503, 4));
    let mailed = WatchHit { mailed: true, ..hits[0].clone() };
    state.keep_watch_hits(std::slice::from_ref(&mailed)).unwrap();
    assert_eq!(state.watch_hits().unwrap()[0], mailed);
}
