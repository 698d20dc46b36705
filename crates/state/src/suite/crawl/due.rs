//! Pages whose time has come.

use nenrin_lang::Hint;

use crate::{
    Change, Discovered, DuePage, DueQuery, Nth, Outcome, PullForward, Schedule, SiteConditions,
    State,
    suite::{NOW_S, begun, commit, conditions, found, make_known, url, visit},
};

pub fn a_page_is_loaded_when_its_time_has_come(state: &impl State) {
    let (_, due_page) = begun(state);
    let mut first = visit(&due_page, NOW_S, Outcome::Changed);
    first.update.due_s = Some(NOW_S + 10_000);
    commit(state, first);
    // Buckets are an hour wide here, and no order is kept inside one.
    assert_eq!(due(state, NOW_S + 10_000 - 3_600), vec![]);
    assert_eq!(due(state, NOW_S + 10_000), vec![due_page.page.id]);
    let mut second = visit(&due_page, NOW_S + 10_000, Outcome::Same);
    second.update.due_s = Some(NOW_S + 90_000);
    commit(state, second);
    assert_eq!(due(state, NOW_S + 90_000 - 3_600), vec![]);
    assert_eq!(due(state, NOW_S + 90_000), vec![due_page.page.id]);
    state.commit(&[Change::Due { page: due_page.page.id, due_s: NOW_S + 900_000 }]).unwrap();
    assert_eq!(due(state, NOW_S + 90_000), vec![]);
}

fn due_query(until_s: i64) -> DueQuery {
    DueQuery { until_s, per_server: 10, limit: 10, ..DueQuery::default() }
}

fn due(state: &dyn State, until_s: i64) -> Vec<crate::PageId> {
    let load = state.load_due(&due_query(until_s)).unwrap();
    load.pages.iter().map(|due| due.page.id).collect()
}

fn continuous(top: &str) -> SiteConditions {
    SiteConditions {
        schedule: Schedule::Continuous(nenrin_revisit::RevisitSettings::default()),
        ..conditions(top)
    }
}

pub fn a_large_server_does_not_hide_the_others(state: &impl State) {
    let large = state.add_site("large", &continuous("http://large.com/"), NOW_S).unwrap();
    state.add_site("small", &continuous("http://small.com/"), NOW_S).unwrap();
    let many: Vec<_> = (0..30)
        .map(|n| Discovered {
            due_s: Some(NOW_S + n * 600),
            ..found(&format!("http://large.com/{n}"), 1)
        })
        .collect();
    make_known(state, large.id, many, NOW_S);
    let query = DueQuery { per_server: 7, limit: 100, ..due_query(NOW_S + 100_000) };
    let load = state.load_due(&query).unwrap();
    assert_eq!((load.pages.len(), load.next, load.more.len()), (8, None, 1));
    let server = load.more[0];
    assert_eq!(load.pages[0].page.id.server(), server);
    let all = DueQuery { server: Some(server), per_server: 100, ..query.clone() };
    let rest = state.load_due(&all).unwrap();
    assert_eq!((rest.pages.len(), rest.next), (31, None));
    assert!(rest.pages.is_sorted_by_key(|due| due.page.due_s.unwrap() / 3_600));
    let without = DueQuery { without: vec![large.id], ..query.clone() };
    assert_eq!(state.load_due(&without).unwrap().pages.len(), 1);
    // In portions, each page comes once.
    let mut query = DueQuery { per_server: 100, limit: 5, ..query };
    let mut seen = std::collections::BTreeSet::new();
    loop {
        let load = state.load_due(&query).unwrap();
        assert!(load.pages.iter().all(|due| seen.insert(due.page.id)));
        query.after = load.next;
        if query.after.is_none() {
            break;
        }
    }
    assert_eq!(seen.len(), 32);
}

pub fn a_hint_brings_a_page_nearer_until_its_visit(state: &impl State) {
    let (_, page) = begun(state);
    let mut first = visit(&page, NOW_S, Outcome::Changed);
    first.update.due_s = Some(NOW_S + 1_000_000);
    commit(state, first.clone());
    let hint = |odds_percent, to_s| {
        let page = page.page.id;
        let hint = Hint::AnnouncedBy("feed".to_owned());
        let pull = PullForward { page, to_s, odds_percent, hint };
        state.commit(&[Change::PullForward(pull)]).unwrap();
        state.page(&url("http://e.com/")).unwrap().unwrap().due_s.unwrap()
    };
    assert_eq!(hint(50, NOW_S), NOW_S + 500_000);
    assert_eq!(hint(100, NOW_S + 600_000), NOW_S + 500_000);
    assert_eq!(hint(100, NOW_S + 10), NOW_S + 10);
    let load = state.load_due(&due_query(NOW_S + 10)).unwrap();
    assert!(load.pages[0].pulled);
    assert_eq!(state.pulled(page.page.id).unwrap(), Some(Hint::AnnouncedBy("feed".to_owned())));
    commit(state, first);
    assert_eq!(state.pulled(page.page.id).unwrap(), None);
}

pub fn a_site_may_change_to_schedules_of_pages_and_back(state: &impl State) {
    let (_, page) = begun(state);
    commit(state, visit(&page, NOW_S, Outcome::Changed));
    make_known(state, page.site, vec![found("http://e.com/new", 1)], NOW_S);
    assert_eq!(due(state, NOW_S + 1_000_000), vec![]);
    state.set_site(page.site, &continuous("http://e.com/"), NOW_S).unwrap();
    assert_eq!(due(state, NOW_S).len(), 1);
    assert_eq!(due(state, NOW_S + 86_400).len(), 2);
    let other = state.add_site("other", &continuous("http://e.com/"), NOW_S).unwrap();
    state.set_site(page.site, &conditions("http://e.com/"), NOW_S).unwrap();
    make_known(state, other.id, vec![found("http://e.com/later", 2)], NOW_S + 5_000);
    assert_eq!(state.page(&url("http://e.com/later")).unwrap().unwrap().due_s, Some(NOW_S + 5_000));
    let mut left = state.load_due(&due_query(NOW_S + 86_400)).unwrap().pages;
    left.extend(new_pages(state));
    assert_eq!(left.len(), 2);
    assert!(left.iter().all(|due| due.site == other.id));
}

fn new_pages(state: &dyn State) -> Vec<DuePage> {
    state.load_due(&DueQuery { new: true, ..due_query(NOW_S) }).unwrap().pages
}

pub fn new_pages_wait_apart_from_those_whose_time_has_come(state: &impl State) {
    let site = state.add_site("e", &continuous("http://e.com/"), NOW_S).unwrap();
    let top = state.load_due(&due_query(NOW_S)).unwrap().pages.remove(0);
    let mut first = visit(&top, NOW_S, Outcome::Changed);
    first.discovered = vec![Discovered { due_s: Some(NOW_S), ..found("http://e.com/a", 2) }];
    first.update.due_s = Some(NOW_S + 90_000);
    commit(state, first);
    assert_eq!(due(state, NOW_S), vec![]);
    let new = new_pages(state).remove(0);
    assert_eq!((new.page.url.path(), new.page.nth, new.site), ("/a", Nth(2), site.id));
    assert_eq!(state.load_found(&[Nth(2), Nth(3)]).unwrap(), vec![new.clone()]);
    let without = DueQuery { new: true, without: vec![site.id], ..due_query(NOW_S) };
    assert_eq!(state.load_due(&without).unwrap().pages, vec![]);
    // A hint or another time does not take it from among the new ones.
    state.commit(&[Change::Due { page: new.page.id, due_s: NOW_S + 10_000 }]).unwrap();
    assert_eq!(due(state, NOW_S + 10_000), vec![]);
    let mut failed = visit(&new, NOW_S + 1, Outcome::Failed);
    failed.update.due_s = Some(NOW_S + 20_000);
    commit(state, failed);
    assert_eq!(new_pages(state), vec![]);
    assert_eq!(due(state, NOW_S + 20_000), vec![new.page.id]);
    state.set_site(site.id, &conditions("http://e.com/"), NOW_S).unwrap();
    assert_eq!(due(state, NOW_S + 900_000), vec![]);
}

pub fn an_announcement_brings_pages_nearer_that_were_not_seen_since(state: &impl State) {
    let (_, due) = begun(state);
    let mut seen = visit(&due, NOW_S, Outcome::Changed);
    seen.update.due_s = Some(NOW_S + 1_000_000);
    commit(state, seen);
    let announce = |changed_s| {
        let pages = vec![(due.page.url.clone(), changed_s), (url("http://e.com/none"), changed_s)];
        let at_s = NOW_S + 1_000;
        let hint = Hint::AnnouncedBy("sitemap".to_owned());
        state.commit(&[Change::Announced(crate::Announced {
            at_s,
            pages,
            odds_percent: 100,
            hint,
        })])
    };
    let due_s = || state.page(&due.page.url).unwrap().unwrap().due_s;
    announce(NOW_S - 5).unwrap();
    assert_eq!(due_s(), Some(NOW_S + 1_000_000));
    announce(NOW_S + 5).unwrap();
    assert!(due_s().is_some_and(|due_s| due_s <= NOW_S + 1_000 + 100), "{:?}", due_s());
}
