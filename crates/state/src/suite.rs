//! The suite that every implementation of [`State`] runs: `contract_suite!(name, || make())`.
#![expect(clippy::unwrap_used, reason = "a law that cannot be checked must fail its test")]
#![expect(missing_docs, reason = "the laws' names are sentences")]

use nenrin_urls::{CanonicalUrl, Scope};

use crate::{
    BodyKind, Change, ContentMark, DayQuery, Discovered, DuePage, DueQuery, Estimate, Incident,
    IncidentKind, KindSums, LogQuery, OrderCurve, Outcome, PageFilter, PageUpdate, PathQuery,
    PruneRow, PullForward, Removal, RobotsCopy, RobotsPolicy, RoundEnd, Schedule, ServerPace,
    SiteConditions, SiteId, State, StateError, VersionQuery, VersionRow, VisitCommit, VisitFilter,
};

/// Declares one test per law of the contract, each on a fresh state.
#[macro_export]
macro_rules! contract_suite {
    ($module:ident, $make:expr) => {
        mod $module {
            use super::*;

            $crate::contract_suite!(@tests $make;
                a_site_makes_its_top_pages_known
                two_sites_cannot_share_a_name
                a_round_goes_on_until_it_is_ended
                a_page_found_twice_is_known_once
                a_shorter_path_brings_the_body_again
                a_page_may_belong_to_two_sites
                a_page_is_loaded_when_its_time_has_come
                a_large_server_does_not_hide_the_others
                a_hint_brings_a_page_nearer_until_its_visit
                a_site_may_change_to_schedules_of_pages_and_back
                new_pages_wait_apart_from_those_whose_time_has_come
                links_to_known_pages_are_kept_and_told_once
                what_a_crawl_order_knows_comes_back
                a_sites_map_has_its_pages_links_and_what_rounds_left
                what_pages_share_is_kept_with_a_commit
                a_visit_is_in_the_log_and_in_the_sums
                versions_are_found_as_of_a_date
                urls_with_versions_are_found_by_their_keys
                a_commit_is_all_or_nothing
                a_servers_record_comes_back
                what_was_learnt_of_a_server_comes_back
                noise_is_counted_apart_from_significant_changes
                pages_become_known_outside_a_visit
                an_announcement_brings_pages_nearer_that_were_not_seen_since
                a_version_from_the_packs_is_adopted_once
                pages_are_listed_in_portions
                a_redirected_top_page_adds_a_top_page
                a_site_as_of_a_date_leaves_out_what_was_gone
                a_round_begun_in_the_second_of_the_last_visits_every_page
                days_sum_up_what_was_committed
                versions_are_summed_up_by_kind
                the_log_answers_every_filter_in_portions
                troubles_are_grouped_by_cause
                versions_are_read_backwards_in_portions
                pages_are_listed_by_path_and_by_directory
                a_hidden_site_is_paused_and_its_versions_are_found
                what_is_denied_is_found_no_more_until_it_is_given_back
                a_page_that_another_site_has_is_not_denied
                what_was_deleted_stays_deleted
                pruned_versions_wait_until_the_store_has_forgotten_them
                visits_taken_in_are_as_if_their_pages_were_known_before
                an_imported_visit_of_the_past_leaves_what_is_known_last
                rates_and_importance_are_summed_up_per_site
                the_order_of_collecting_is_held_against_the_best
                the_newest_incidents_are_kept_until_they_are_over
            );
        }
    };
    (@tests $make:expr; $($law:ident)+) => {
        $(
            #[test]
            fn $law() {
                let state = ($make)();
                $crate::suite::$law(&state);
                assert_eq!($crate::State::check(&state).unwrap(), Vec::<String>::new());
            }
        )+
    };
}

const NOW_S: i64 = 1_700_000_000;

fn url(text: &str) -> CanonicalUrl {
    CanonicalUrl::parse(text).unwrap()
}

fn conditions(top: &str) -> SiteConditions {
    SiteConditions {
        tops: vec![url(top)],
        scope: Scope::Host,
        depth: 3,
        max_pages: None,
        embeds: true,
        schedule: Schedule::Manual,
        delay_ms: None,
        allow_private: false,
        robots: RobotsPolicy::Obey,
        ..SiteConditions::new(Vec::new())
    }
}

fn visit(due: &DuePage, at_s: i64, outcome: Outcome) -> VisitCommit {
    VisitCommit {
        page: due.page.id,
        site: due.site,
        round: None,
        at_s,
        outcome,
        status: 200,
        detail: None,
        elapsed_ms: 12,
        received_bytes: 100,
        stored_bytes: 40,
        version: None,
        update: PageUpdate {
            etag: Some("\"e\"".into()),
            last_modified: None,
            mark: Some(ContentMark([7; 16])),
            bytes: 100,
            history: vec![1, 2, 3],
            due_s: None,
            failures: 0,
        },
        discovered: Vec::new(),
        new_tops: Vec::new(),
        trapped: 0,
        links: None,
        importance_percent: None,
        estimate: None,
    }
}

fn found(text: &str, depth: u32) -> Discovered {
    Discovered { url: url(text), depth, hops: 0, due_s: None }
}

fn row(version: u64, at_s: i64) -> VersionRow {
    VersionRow {
        at_s,
        version,
        status: 200,
        mime: "text/html".into(),
        bytes: 100,
        changed_permille: None,
    }
}

/// A site with one top page, in an unfinished round.
fn begun(state: &impl State) -> (crate::Round, DuePage) {
    let site = state.add_site("e", &conditions("http://e.com/"), NOW_S).unwrap();
    let round = state.begin_round(site.id, NOW_S).unwrap();
    let due = state.load_round(&round, None, 10).unwrap().remove(0);
    (round, due)
}

fn commit(state: &impl State, visit: VisitCommit) -> Vec<crate::NewPage> {
    state.commit(&[Change::Visit(Box::new(visit))]).unwrap().new_pages
}

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
    let numbers = state.make_known(due.site, &more, NOW_S + 2).unwrap();
    assert_eq!(numbers[0], new[0].due.page.id);
    assert_eq!(numbers[1], state.page(&url("http://e.com/y")).unwrap().unwrap().id);
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
    let next = crate::Round { id: round.id + 1, ..round };
    let again = state.load_round(&next, None, 10).unwrap();
    let deep = again.iter().find(|d| d.page.id == deep.page.id).unwrap();
    assert_eq!((deep.depth, &deep.page.etag), (2, &None));
    assert_eq!(deep.page.mark, Some(ContentMark([7; 16])));
}

pub fn a_page_may_belong_to_two_sites(state: &impl State) {
    let (_, due) = begun(state);
    commit(state, visit(&due, NOW_S + 1, Outcome::Changed));
    let second = state.add_site("other", &conditions("http://e.com/"), NOW_S + 2).unwrap();
    let round = state.begin_round(second.id, NOW_S + 2).unwrap();
    let loaded = state.load_round(&round, None, 10).unwrap();
    assert_eq!((loaded.len(), loaded[0].page.id, loaded[0].site), (1, due.page.id, second.id));
    assert_eq!(state.stats().unwrap().pages, 1);
}

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
    state.make_known(large.id, &many, NOW_S).unwrap();
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
        let pull = PullForward { page, to_s, odds_percent, why: "feed".to_owned() };
        state.commit(&[Change::PullForward(pull)]).unwrap();
        state.page(&url("http://e.com/")).unwrap().unwrap().due_s.unwrap()
    };
    assert_eq!(hint(50, NOW_S), NOW_S + 500_000);
    assert_eq!(hint(100, NOW_S + 600_000), NOW_S + 500_000);
    assert_eq!(hint(100, NOW_S + 10), NOW_S + 10);
    let load = state.load_due(&due_query(NOW_S + 10)).unwrap();
    assert!(load.pages[0].pulled);
    assert_eq!(state.pulled(page.page.id).unwrap().as_deref(), Some("feed"));
    commit(state, first);
    assert_eq!(state.pulled(page.page.id).unwrap(), None);
}

pub fn a_site_may_change_to_schedules_of_pages_and_back(state: &impl State) {
    let (_, page) = begun(state);
    commit(state, visit(&page, NOW_S, Outcome::Changed));
    state.make_known(page.site, &[found("http://e.com/new", 1)], NOW_S).unwrap();
    assert_eq!(due(state, NOW_S + 1_000_000), vec![]);
    state.set_site(page.site, &continuous("http://e.com/"), NOW_S).unwrap();
    assert_eq!(due(state, NOW_S).len(), 1);
    assert_eq!(due(state, NOW_S + 86_400).len(), 2);
    let other = state.add_site("other", &continuous("http://e.com/"), NOW_S).unwrap();
    state.set_site(page.site, &conditions("http://e.com/"), NOW_S).unwrap();
    state.make_known(other.id, &[found("http://e.com/later", 2)], NOW_S + 5_000).unwrap();
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
    assert_eq!((new.page.url.path(), new.page.nth, new.site), ("/a", 2, site.id));
    assert_eq!(state.load_found(&[2, 3]).unwrap(), vec![new.clone()]);
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

pub fn links_to_known_pages_are_kept_and_told_once(state: &impl State) {
    let (_, top) = begun(state);
    state.add_site("other", &conditions("http://other.com/"), NOW_S).unwrap();
    let told = |visit: VisitCommit| state.commit(&[Change::Visit(Box::new(visit))]).unwrap().linked;
    let mut first = visit(&top, NOW_S, Outcome::Changed);
    first.version = Some(row(1, NOW_S));
    first.discovered = vec![found("http://e.com/a", 2), found("http://e.com/b", 2)];
    let urls =
        ["http://e.com/b", "http://e.com/a", "http://other.com/", "http://x.com/", "http://e.com/"];
    first.links = Some(urls.iter().map(|text| url(text)).collect());
    let linked = told(first.clone());
    let all = vec![2, 3, 4];
    assert_eq!(
        linked,
        vec![crate::Linked { nth: 1, targets: all.clone(), links: 3, again: false }]
    );
    assert_eq!(state.links(&[1]).unwrap()[0].targets.as_deref(), Some(&all[..]));
    assert_eq!(told(first.clone()), vec![]);
    first.discovered = vec![found("http://e.com/c", 2)];
    first.links = Some(vec![url("http://e.com/c"), url("http://e.com/a")]);
    let (targets, links) = (vec![5], 2);
    assert_eq!(told(first), vec![crate::Linked { nth: 1, targets, links, again: true }]);
    let unread = &state.links(&[3]).unwrap()[0];
    assert_eq!((&unread.targets, unread.url.path(), unread.version), (&None, "/a", None));
    // A page that came from elsewhere is read later.
    let a = state.load_round(&state.begin_round(top.site, NOW_S).unwrap(), None, 10).unwrap();
    let a = a.into_iter().find(|due| due.page.nth == 3).unwrap();
    let mut imported = visit(&a, NOW_S + 5, Outcome::Changed);
    imported.version = Some(row(2, NOW_S + 5));
    state.commit(&[Change::Imported(Box::new(imported))]).unwrap();
    let reading = |nth: u32| state.found(nth - 1, 1).unwrap()[0].reading;
    assert_eq!(
        [1, 2, 3].map(reading),
        [crate::Reading::Read, crate::Reading::New, crate::Reading::Unread]
    );
    let links = vec![url("http://e.com/b")];
    let late = state.commit(&[Change::Links { page: a.page.id, links }]).unwrap().linked;
    assert_eq!((late[0].nth, &late[0].targets, late[0].again), (3, &vec![4], false));
    assert_eq!(reading(3), crate::Reading::Read);
    let places: Vec<u32> = state.found(0, 10).unwrap().iter().map(|page| page.nth).collect();
    assert_eq!(places, [1, 2, 3, 4, 5]);
}

pub fn a_sites_map_has_its_pages_links_and_what_rounds_left(state: &impl State) {
    let (round, top) = begun(state);
    state.add_site("other", &conditions("http://other.com/"), NOW_S).unwrap();
    let mut first = visit(&top, NOW_S, Outcome::Changed);
    first.round = Some(round.id);
    first.discovered = vec![found("http://e.com/a?b", 2), found("http://e.com/c", 2)];
    let links = ["http://e.com/c", "http://other.com/", "http://e.com/a?b"];
    first.links = Some(links.iter().map(|text| url(text)).collect());
    commit(state, first);
    let map = state.site_pages(round.site).unwrap();
    let paths: Vec<&str> = map.pages.iter().map(|page| page.path.as_str()).collect();
    assert_eq!(paths, ["/", "/a?b", "/c"]);
    assert_eq!((&map.links, &map.tops), (&vec![(0, vec![1, 2])], &vec![0]));
    assert_eq!((map.pages[0].round, map.pages[0].visits), (Some(round.id), 1));
    assert_eq!((map.pages[1].round, map.pages[1].visited_s), (None, None));
    assert_eq!(map.rounds_s, [NOW_S]);
    assert!(map.kept.is_empty() && map.kept_of_all.is_empty());
    let pages: Vec<crate::PageId> = map.pages.iter().map(|page| page.id).collect();
    let untried = state.load_pages(&round, &pages).unwrap();
    assert_eq!(untried.iter().map(|due| due.page.id).collect::<Vec<_>>(), pages[1..]);
    assert_eq!(state.url_of(pages[1]).unwrap(), Some(url("http://e.com/a?b")));
    assert!(state.sites().unwrap()[0].round_open);
    assert_eq!(state.skips(round.id).unwrap(), None);

    let why = nenrin_structure::Why::TopSame;
    let left = nenrin_structure::LeftOut { why, pages: 2, examples: vec![pages[1].0] };
    let skips = crate::Skips { reasons: vec![left] };
    let end =
        RoundEnd { round: round.id, site: round.site, at_s: NOW_S + 5, skips: Some(skips.clone()) };
    let kept = |site, bytes: &[u8]| {
        Change::Structure(crate::KeptStructure { site, bytes: bytes.to_vec() })
    };
    let changes = [kept(Some(round.site), b"of e"), kept(None, b"of all"), Change::RoundEnd(end)];
    state.commit(&changes).unwrap();
    let map = state.site_pages(round.site).unwrap();
    assert_eq!((&map.kept[..], &map.kept_of_all[..]), (&b"of e"[..], &b"of all"[..]));
    assert_eq!(state.skips(round.id).unwrap(), Some(skips));
    let row = &state.rounds(Some(round.site), 1).unwrap()[0];
    assert_eq!((row.counts.skipped, row.counts.visits()), (2, 1));
    assert!(!state.sites().unwrap()[0].round_open);
}

pub fn what_a_crawl_order_knows_comes_back(state: &impl State) {
    assert_eq!(state.order().unwrap(), Vec::<u8>::new());
    let large: Vec<u8> = (0..700_000_u32).map(|n| (n >> 8) as u8).collect();
    for bytes in [large, vec![3]] {
        state.commit(&[Change::Order(bytes.clone())]).unwrap();
        assert_eq!(state.order().unwrap(), bytes);
    }
}

pub fn what_pages_share_is_kept_with_a_commit(state: &impl State) {
    let (_, page) = begun(state);
    assert_eq!(state.shared(page.site).unwrap(), Vec::<u8>::new());
    for bytes in [vec![1, 2], vec![3]] {
        state.commit(&[Change::Shared { site: page.site, bytes: bytes.clone() }]).unwrap();
        assert_eq!(state.shared(page.site).unwrap(), bytes);
    }
}

pub fn a_visit_is_in_the_log_and_in_the_sums(state: &impl State) {
    let (round, due) = begun(state);
    let mut failed = visit(&due, NOW_S + 1, Outcome::Failed);
    failed.round = Some(round.id);
    failed.detail = Some("connect: refused".into());
    failed.update.failures = 1;
    commit(state, failed);
    let mut changed = visit(&due, NOW_S + 2, Outcome::Changed);
    changed.version = Some(row(5, NOW_S + 2));
    commit(state, changed);
    let log = state.visits(VisitFilter { limit: 10, ..VisitFilter::default() }).unwrap();
    assert_eq!(log.len(), 2);
    assert_eq!((log[0].outcome, log[1].outcome), (Outcome::Changed, Outcome::Failed));
    assert_eq!(log[1].detail.as_deref(), Some("connect: refused"));
    let older = VisitFilter { before: Some(log[0].id), limit: 10, site: Some(due.site) };
    assert_eq!(state.visits(older).unwrap(), log[1..]);
    let counts = state.sites().unwrap()[0].counts;
    assert_eq!((counts.visits, counts.versions, counts.troubles, counts.raw_bytes), (2, 1, 1, 100));
    let page = state.page(&due.page.url).unwrap().unwrap();
    assert_eq!((page.visits, page.changes, page.failures), (2, 1, 0));
    assert_eq!((page.version, page.history.as_slice()), (Some(5), [1, 2, 3].as_slice()));
}

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
        state.adopt_version(site.id, &url(text), &row(1, NOW_S)).unwrap();
    }
    let found = |from: &str, to: &str, limit: usize| {
        let urls = state.urls(from, to, limit).unwrap();
        urls.iter().map(|u| u.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(found("com,e)/b/", "com,e)/b0", 9), ["http://e.com/b/1", "http://e.com/b/2"]);
    assert_eq!(found("com,e)", "com,e*", 2), ["https://www.e.com/b", "http://e.com/b/1"]);
    assert!(found("org", "org~", 9).is_empty());
}

pub fn a_commit_is_all_or_nothing(state: &impl State) {
    let (_, due) = begun(state);
    let mut good = visit(&due, NOW_S + 1, Outcome::Changed);
    good.discovered = vec![found("http://e.com/x", 2)];
    good.version = Some(row(1, NOW_S + 1));
    let mut unknown = good.clone();
    unknown.page = crate::PageId(due.page.id.0 + 1);
    let batch = [Change::Visit(Box::new(good)), Change::Visit(Box::new(unknown))];
    assert!(state.commit(&batch).is_err());
    assert_eq!(state.page(&url("http://e.com/x")).unwrap(), None);
    assert_eq!(state.page(&due.page.url).unwrap(), Some(due.page));
    assert_eq!(state.stats().unwrap().visits, 0);
}

pub fn a_servers_record_comes_back(state: &impl State) {
    let (_, due) = begun(state);
    let mut server = state.servers(&[due.page.id.server()]).unwrap().remove(0);
    assert_eq!(server.server, due.page.url.server());
    assert_eq!((&server.robots, server.strikes), (&None, 0));
    let copy = RobotsCopy { good_at_s: NOW_S, status: 200, body: b"User-agent: *".to_vec() };
    let robots = |tried_s, copy| Change::Robots { server: server.id, tried_s, copy };
    let asked_ms = NOW_S * 1000 + 5;
    let pace = ServerPace {
        server: server.id,
        asked_ms,
        resting_until_ms: Some(asked_ms + 60_000),
        strikes: 3,
        stretch_percent: 150,
    };
    state
        .commit(&[robots(NOW_S, Some(copy.clone())), Change::Pace(pace), robots(NOW_S + 9, None)])
        .unwrap();
    server.robots = Some(copy);
    server.robots_tried_s = Some(NOW_S + 9);
    server.asked_ms = Some(asked_ms);
    server.resting_until_ms = Some(asked_ms + 60_000);
    server.strikes = 3;
    server.stretch_percent = 150;
    assert_eq!(state.servers(&[server.id, crate::ServerId(99)]).unwrap(), vec![server]);
}

pub fn what_was_learnt_of_a_server_comes_back(state: &impl State) {
    let (_, due) = begun(state);
    let server = due.page.id.server();
    let note = |name: &str, value: &str| {
        Change::Note(crate::ServerNote { server, name: name.into(), value: value.into() })
    };
    let read = || state.servers(&[server]).unwrap().remove(0).notes;
    state.commit(&[note("a", "{}"), note("b", "[1]"), note("a", "{\"x\":1}")]).unwrap();
    assert_eq!(
        read().into_iter().collect::<Vec<_>>(),
        [("a".to_owned(), "{\"x\":1}".to_owned()), ("b".to_owned(), "[1]".to_owned())]
    );
    state.commit(&[note("b", "")]).unwrap();
    assert_eq!(read().len(), 1);
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

pub fn pages_become_known_outside_a_visit(state: &impl State) {
    let (round, _) = begun(state);
    let pages = vec![found("http://e.com/sitemap.xml", 1), found("http://e.com/", 1)];
    let change = Change::Found(crate::FoundPages { site: round.site, at_s: NOW_S, pages });
    let new = state.commit(std::slice::from_ref(&change)).unwrap();
    assert_eq!(new.new_pages.len(), 1);
    assert_eq!(new.new_pages[0].due.page.url, url("http://e.com/sitemap.xml"));
    assert_eq!(state.commit(&[change]).unwrap().new_pages, vec![]);
}

pub fn an_announcement_brings_pages_nearer_that_were_not_seen_since(state: &impl State) {
    let (_, due) = begun(state);
    let mut seen = visit(&due, NOW_S, Outcome::Changed);
    seen.update.due_s = Some(NOW_S + 1_000_000);
    commit(state, seen);
    let announce = |changed_s| {
        let pages = vec![(due.page.url.clone(), changed_s), (url("http://e.com/none"), changed_s)];
        let at_s = NOW_S + 1_000;
        let why = "announced".to_owned();
        state.commit(&[Change::Announced(crate::Announced { at_s, pages, odds_percent: 100, why })])
    };
    let due_s = || state.page(&due.page.url).unwrap().unwrap().due_s;
    announce(NOW_S - 5).unwrap();
    assert_eq!(due_s(), Some(NOW_S + 1_000_000));
    announce(NOW_S + 5).unwrap();
    assert!(due_s().is_some_and(|due_s| due_s <= NOW_S + 1_000 + 100), "{:?}", due_s());
}

pub fn a_version_from_the_packs_is_adopted_once(state: &impl State) {
    let site = state.add_site("e", &conditions("http://e.com/"), NOW_S).unwrap();
    let lost = url("http://e.com/lost");
    assert!(state.adopt_version(site.id, &lost, &row(2, NOW_S + 20)).unwrap());
    assert!(state.adopt_version(site.id, &lost, &row(1, NOW_S + 10)).unwrap());
    assert!(!state.adopt_version(site.id, &lost, &row(2, NOW_S + 20)).unwrap());
    let page = state.page(&lost).unwrap().unwrap();
    assert_eq!((page.version, page.visited_s), (Some(2), Some(NOW_S + 20)));
    assert_eq!(state.versions(&lost.key(), VersionQuery::default()).unwrap().len(), 2);
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

pub fn a_round_begun_in_the_second_of_the_last_visits_every_page(state: &impl State) {
    let (round, due) = begun(state);
    let mut only = visit(&due, NOW_S, Outcome::Changed);
    only.round = Some(round.id);
    let end = RoundEnd { round: round.id, site: round.site, at_s: NOW_S, skips: None };
    state.commit(&[Change::Visit(Box::new(only)), Change::RoundEnd(end)]).unwrap();
    let next = state.begin_round(round.site, NOW_S).unwrap();
    assert_eq!(state.load_round(&next, None, 10).unwrap().len(), 1);
}

pub fn days_sum_up_what_was_committed(state: &impl State) {
    let (_, due) = begun(state);
    let day = NOW_S / 86_400;
    let mut changed = visit(&due, NOW_S, Outcome::Changed);
    changed.version = Some(row(1, NOW_S));
    let failed = visit(&due, NOW_S + 1, Outcome::Failed);
    state.commit(&[Change::Visit(Box::new(changed)), Change::Visit(Box::new(failed))]).unwrap();
    commit(state, visit(&due, NOW_S + 86_400, Outcome::Same));
    state.adopt_version(due.site, &due.page.url, &row(9, NOW_S - 86_400)).unwrap();
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
    let all = state.visit_log(LogQuery { limit: 99, ..LogQuery::default() }).unwrap();
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
                    state.visit_log(LogQuery { site, outcome, before, limit: 2 }).unwrap();
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
    for (n, (outcome, status, detail)) in [
        (Outcome::Failed, 0, Some("connect: refused")),
        (Outcome::Failed, 0, Some("connect: refused")),
        (Outcome::Failed, 503, None),
        (Outcome::Gone, 404, None),
        (Outcome::Changed, 200, None),
    ]
    .into_iter()
    .enumerate()
    {
        let mut one = visit(&due, NOW_S + n as i64, outcome);
        one.status = status;
        one.detail = detail.map(str::to_owned);
        commit(state, one);
    }
    let groups = state.troubles(due.site, 100).unwrap();
    let seen: Vec<_> = groups.iter().map(|g| (g.status, g.count, g.last_s - NOW_S)).collect();
    assert_eq!(seen, [(0, 2, 1), (404, 1, 3), (503, 1, 2)]);
    assert_eq!(groups[0].detail.as_deref(), Some("connect: refused"));
    assert_eq!(groups[0].last_url, due.page.url);
    assert_eq!(state.troubles(due.site, 1).unwrap()[0].count, 1);
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

/// A site with two pages, one version each.
fn removable(state: &impl State) -> crate::SiteId {
    let site = state.add_site("r", &conditions("http://r.com/"), NOW_S).unwrap().id;
    state.adopt_version(site, &url("http://r.com/"), &row(71, NOW_S)).unwrap();
    state.adopt_version(site, &url("http://r.com/b"), &row(72, NOW_S)).unwrap();
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
    state.adopt_version(site, &url("http://r.com/b"), &row(73, NOW_S + 9)).unwrap();
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
    // The current one stays, whoever asks.
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
    assert!(!state.adopt_version(site, &due.page.url, &row(2, NOW_S + 10)).unwrap());
    assert_eq!(found(), [1, 3]);
    state.pruned(&[2]).unwrap();
    assert!(state.pruning(9).unwrap().is_empty());
    assert_eq!(state.prune(&about, &versions[1..2]).unwrap(), 0);
    let log = state.prunes().unwrap();
    assert_eq!(log, [PruneRow { versions: 1, raw_bytes: 100, ..about }]);
    let visits = state.visits_of(&due.page.url, i64::MIN, i64::MAX).unwrap();
    assert_eq!(visits.len(), 3, "the log of visits stays");
}

pub fn visits_taken_in_are_as_if_their_pages_were_known_before(state: &impl State) {
    let (_, due) = begun(state);
    let known = due.page.url.clone();
    let mut visits = Vec::new();
    for (nth, outcome) in [Outcome::Changed, Outcome::Gone, Outcome::Failed].into_iter().enumerate()
    {
        for server in ["http://one.com/", "http://two.com/"] {
            let mut visit = visit(&due, NOW_S + nth as i64, outcome);
            let number = 10 + visits.len() as u64;
            visit.round = None;
            visit.links = None;
            visit.version = (nth < 2).then(|| row(number, NOW_S + nth as i64));
            visit.update.due_s = (nth == 0).then_some(NOW_S + 50_000);
            visits.push((found(&format!("{server}{nth}"), 2), visit));
        }
    }
    // One page twice, a known one, and one of the past.
    let again = visits[0].1.clone();
    visits.push((found("http://one.com/0", 2), VisitCommit { at_s: NOW_S + 9, ..again.clone() }));
    visits.push((found(known.as_str(), 2), VisitCommit { at_s: NOW_S - 9, ..again.clone() }));
    // The same by way of the other contract, on servers of other names.
    let others: Vec<Discovered> = visits
        .iter()
        .map(|(found, _)| {
            let url = found.url.as_str().replace(".com/", ".org/");
            Discovered { url: CanonicalUrl::parse(&url).unwrap(), ..found.clone() }
        })
        .collect();
    let numbers = state.make_known(due.site, &others, NOW_S).unwrap();
    let changes: Vec<Change> = visits
        .iter()
        .zip(numbers)
        .map(|((_, visit), page)| Change::Imported(Box::new(VisitCommit { page, ..visit.clone() })))
        .collect();
    state.commit(&changes).unwrap();
    let urls: Vec<CanonicalUrl> = visits.iter().map(|(found, _)| found.url.clone()).collect();
    let pages_before = state.sites().unwrap()[0].counts.pages;
    state.take_in(visits, NOW_S).unwrap();
    assert_eq!(state.sites().unwrap()[0].counts.pages, pages_before + 6);
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
        assert_eq!(page, crate::PageRecord { id, url, nth, ..other.clone() });
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
    past.update.etag = None;
    past.update.mark = None;
    state.commit(&[Change::Imported(Box::new(past))]).unwrap();
    let mut later = visit(&due, NOW_S + 50, Outcome::Same);
    later.update.etag = Some("later".into());
    state.commit(&[Change::Imported(Box::new(later))]).unwrap();
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

pub fn rates_and_importance_are_summed_up_per_site(state: &impl State) {
    let (round, top) = begun(state);
    let seen = |due: &DuePage, at_s, importance_percent, rate, sure| VisitCommit {
        importance_percent: Some(importance_percent),
        estimate: Some(Estimate::new(rate, sure)),
        version: Some(row(at_s as u64, at_s)),
        ..visit(due, at_s, Outcome::Changed)
    };
    let mut first = seen(&top, NOW_S, 300, 1.0, 0.2);
    first.discovered = vec![found("http://e.com/a", 2)];
    let a = commit(state, first).remove(0).due;
    commit(state, seen(&a, NOW_S + 1, 50, 0.5, 0.6));
    let worth = state.site_worth().unwrap().remove(0);
    assert_eq!((worth.site, worth.estimated_pages, worth.weighed_pages), (round.site, 2, 2));
    assert_eq!(worth.mean_rate_per_day(), Some(0.75));
    assert_eq!((worth.mean_confidence(), worth.importance()), (Some(0.4), 3.5));
    assert_eq!(worth.significant_versions, 2);

    commit(state, seen(&top, NOW_S + 2, 200, 0.25, 1.0));
    commit(state, visit(&top, NOW_S + 3, Outcome::Failed));
    commit(state, visit(&a, NOW_S + 4, Outcome::Gone));
    state.commit(&[Change::Weighed(vec![(a.page.nth, 150), (999, 1)])]).unwrap();
    let worth = state.site_worth().unwrap();
    assert_eq!(worth[0].mean_rate_per_day(), Some(0.25), "what is gone has no rate");
    assert_eq!((worth[0].importance(), worth[0].share_of(&worth)), (3.5, Some(1.0)));
    let page = state.page(&a.page.url).unwrap().unwrap();
    assert_eq!(page.importance_percent, 150);

    // The schedule of a page that a second site knows as well may go over to that site.
    let mut continuous = conditions("http://e.com/a");
    continuous.schedule = Schedule::Continuous(Default::default());
    let second = state.add_site("second", &continuous, NOW_S).unwrap().id;
    let worth = state.site_worth().unwrap();
    let sums: Vec<_> = worth.iter().map(|site| (site.site, site.importance())).collect();
    assert_eq!(sums, [(round.site, 2.0), (second, 1.5)]);
    state.set_site(round.site, &continuous, NOW_S).unwrap();
    assert_eq!(state.check().unwrap(), Vec::<String>::new());
}

pub fn the_order_of_collecting_is_held_against_the_best(state: &impl State) {
    let (round, top) = begun(state);
    let mut first = visit(&top, NOW_S, Outcome::Changed);
    first.version = Some(row(1, NOW_S));
    first.importance_percent = Some(100);
    first.discovered = (0..3).map(|n| found(&format!("http://e.com/{n}"), 2)).collect();
    let pages = commit(state, first);
    assert_eq!(state.order_curve(None).unwrap().collected.len(), 1);
    for (page, importance_percent) in pages.iter().zip([100, 700, 100]) {
        let at_s = NOW_S + i64::from(page.due.page.nth);
        let mut seen = visit(&page.due, at_s, Outcome::Changed);
        seen.version = Some(row(at_s as u64, at_s));
        seen.importance_percent = Some(importance_percent);
        commit(state, seen);
    }
    let shares = |groups: &[crate::WorthGroup]| OrderCurve::points(groups);
    let curve = state.order_curve(Some(round.site)).unwrap();
    assert_eq!(curve, state.order_curve(None).unwrap());
    assert_eq!(
        shares(&curve.collected),
        [(0.0, 0.0), (0.25, 0.1), (0.5, 0.2), (0.75, 0.9), (1.0, 1.0)]
    );
    assert_eq!(shares(&curve.best), [(0.0, 0.0), (0.25, 0.7), (1.0, 1.0)]);
    // A page keeps its place, whatever is thought of it later.
    state.commit(&[Change::Weighed(vec![(top.page.nth, 1_000)])]).unwrap();
    let curve = state.order_curve(Some(round.site)).unwrap();
    assert_eq!(curve.collected[0].importance_percent, 1_000);
    assert_eq!(curve.best[0].importance_percent, 1_000);
    let pages: u64 = curve.best.iter().map(|group| group.pages).sum();
    assert_eq!(pages, 4);
    assert_eq!(state.order_curve(Some(SiteId(9))).unwrap(), OrderCurve::default());
}

pub fn the_newest_incidents_are_kept_until_they_are_over(state: &impl State) {
    let incident = |n: i64| Incident {
        id: format!("i-{n}"),
        event: IncidentKind::SignalLost,
        at_s: NOW_S + n,
        over_s: None,
        site: (n % 2 == 0).then_some(SiteId(1)),
        name: "e".into(),
        detail: "<b>".into(),
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
