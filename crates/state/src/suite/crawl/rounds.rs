//! Rounds, and the pages that become known in them.

use crate::{
    Change, ContentMark, FoundPages, Outcome, RoundEnd, State,
    suite::{NOW_S, begun, commit, conditions, found, row, url, visit},
};

pub fn a_round_goes_on_until_it_is_ended(state: &impl State) {
    let (round, due) = begun(state);
    assert_eq!(state.begin_round(round.site, NOW_S + 9).unwrap(), round);
    let mut first = visit(&due, NOW_S + 1, Outcome::Changed);
    first.round = Some(round.id);
    first.discovered = vec![found("http://e.com/x", 2)];
    let end = RoundEnd { round: round.id, site: round.site, at_s: NOW_S + 5, skips: None };
    commit(state, first);
    let left = state.load_round(&round, None, 10).unwrap();
    assert_eq!(left.iter().map(|d| d.page.url.as_str()).collect::<Vec<_>>(), ["http://e.com/x"]);
    let mut last = visit(&left[0], NOW_S + 4, Outcome::Gone);
    last.round = Some(round.id);
    state.commit(&[Change::RoundEnd(end), Change::Visit(Box::new(last))]).unwrap();
    let ended = state.rounds(Some(round.site), 9).unwrap().remove(0);
    assert_eq!((ended.ended_s, ended.counts.visits()), (Some(NOW_S + 5), 2));
    assert_eq!((ended.counts.changed, ended.counts.gone, ended.counts.new_pages), (1, 1, 1));
    let next = state.begin_round(round.site, NOW_S + 100).unwrap();
    assert_ne!(next.id, round.id);
    assert_eq!(state.load_round(&next, None, 10).unwrap().len(), 2);
    assert_eq!(state.sites().unwrap()[0].collected_s, Some(NOW_S + 100));
    let began = |after_s, until_s| state.round_began(round.site, after_s, until_s).unwrap();
    assert!(began(NOW_S - 1, NOW_S) && began(NOW_S + 99, NOW_S + 100));
    assert!(!began(NOW_S, NOW_S + 99) && !began(NOW_S + 100, NOW_S + 200));
}

pub fn a_page_found_twice_is_known_once(state: &impl State) {
    let (_, due) = begun(state);
    let mut first = visit(&due, NOW_S + 1, Outcome::Changed);
    first.discovered =
        vec![found("http://e.com/x", 2), found("http://e.com/x", 2), found("http://e.com/", 2)];
    let new = commit(state, first.clone());
    assert_eq!(new.len(), 1);
    assert_eq!((new[0].due.page.url.as_str(), new[0].due.depth), ("http://e.com/x", 2));
    assert_eq!(commit(state, first), vec![]);
    assert_eq!(state.sites().unwrap()[0].counts.pages, 2);
    let more = [found("http://e.com/x", 2), found("http://e.com/y", 2)];
    let more = FoundPages { site: due.site, at_s: NOW_S + 2, pages: more.to_vec() };
    let new = state.commit(&[Change::Found(more)]).unwrap().new_pages;
    assert_eq!(new.len(), 1);
    assert_eq!(new[0].due.page, state.page(&url("http://e.com/y")).unwrap().unwrap());
    assert_eq!(state.sites().unwrap()[0].counts.pages, 3);
}

pub fn a_shorter_path_brings_the_body_again(state: &impl State) {
    let (round, due) = begun(state);
    let mut first = visit(&due, NOW_S + 1, Outcome::Changed);
    first.discovered = vec![found("http://e.com/deep", 3)];
    let deep = commit(state, first.clone()).remove(0).due;
    commit(state, visit(&deep, NOW_S + 2, Outcome::Changed));
    first.discovered = vec![found("http://e.com/deep", 2)];
    assert_eq!(commit(state, first), vec![]);
    let next = crate::Round { id: crate::RoundId(round.id.0 + 1), ..round };
    let again = state.load_round(&next, None, 10).unwrap();
    let deep = again.iter().find(|d| d.page.id == deep.page.id).unwrap();
    assert_eq!((deep.depth, &deep.page.validators.etag), (2, &None));
    assert_eq!(deep.page.mark, Some(ContentMark([7; 16])));
}

pub fn a_page_may_belong_to_two_sites(state: &impl State) {
    let (_, due) = begun(state);
    commit(state, visit(&due, NOW_S + 1, Outcome::Changed));
    let second = state.add_site("other", &conditions("http://e.com/"), NOW_S + 2).unwrap();
    let round = state.begin_round(second.id, NOW_S + 2).unwrap();
    let loaded = state.load_round(&round, None, 10).unwrap();
    assert_eq!((loaded.len(), loaded[0].page.id, loaded[0].site), (1, due.page.id, second.id));
    // It does not know the page's links, so it asks for all of it once.
    assert!(loaded[0].page.validators.is_empty());
    let mut seen = visit(&loaded[0], NOW_S + 3, Outcome::Same);
    seen.round = Some(round.id);
    commit(state, seen);
    let next = crate::Round { id: crate::RoundId(round.id.0 + 1), ..round };
    let again = state.load_round(&next, None, 10).unwrap();
    assert!(!again[0].page.validators.is_empty());
    assert_eq!(state.stats().unwrap().pages, 1);
}

pub fn a_commit_is_all_or_nothing(state: &impl State) {
    let (_, due) = begun(state);
    let mut good = visit(&due, NOW_S + 1, Outcome::Changed);
    good.discovered = vec![found("http://e.com/x", 2)];
    good.version = Some(row(1, NOW_S + 1));
    let mut unknown = good.clone();
    unknown.page = crate::PageId(due.page.id.0 + 1).into();
    let batch = [Change::Visit(Box::new(good)), Change::Visit(Box::new(unknown))];
    assert!(state.commit(&batch).is_err());
    assert_eq!(state.page(&url("http://e.com/x")).unwrap(), None);
    assert_eq!(state.page(&due.page.url).unwrap(), Some(due.page));
    assert_eq!(state.stats().unwrap().visits, 0);
}

pub fn pages_become_known_outside_a_visit(state: &impl State) {
    let (round, _) = begun(state);
    let pages = vec![found("http://e.com/sitemap.xml", 1), found("http://e.com/", 1)];
    let change = Change::Found(FoundPages { site: round.site, at_s: NOW_S, pages });
    let new = state.commit(std::slice::from_ref(&change)).unwrap();
    assert_eq!(new.new_pages.len(), 1);
    assert_eq!(new.new_pages[0].due.page.url, url("http://e.com/sitemap.xml"));
    assert_eq!(state.commit(&[change]).unwrap().new_pages, vec![]);
}

pub fn a_redirected_top_page_adds_a_top_page(state: &impl State) {
    let (_, due) = begun(state);
    let mut moved = visit(&due, NOW_S + 1, Outcome::Changed);
    moved.status = 301;
    moved.new_tops = vec![url("https://www.e.com/")];
    commit(state, moved);
    let tops = state.sites().unwrap().remove(0).conditions.tops;
    assert_eq!(tops, [url("http://e.com/"), url("https://www.e.com/")]);
    assert!(state.page(&url("https://www.e.com/")).unwrap().is_some());
}

pub fn a_round_begun_in_the_second_of_the_last_visits_every_page(state: &impl State) {
    let (round, due) = begun(state);
    let mut only = visit(&due, NOW_S, Outcome::Changed);
    only.round = Some(round.id);
    let end = RoundEnd { round: round.id, site: round.site, at_s: NOW_S, skips: None };
    state.commit(&[Change::Visit(Box::new(only)), Change::RoundEnd(end)]).unwrap();
    let next = state.begin_round(round.site, NOW_S).unwrap();
    assert_eq!(state.load_round(&next, None, 10).unwrap().len(), 1);
}
