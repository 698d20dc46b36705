//! What is learnt of pages, servers and sites.

use nenrin_structure::PageFragments;

use super::{NOW_S, begun, commit, conditions, found, row, url, visit};
use crate::{
    Change, DuePage, Estimate, Incident, IncidentKind, OrderCurve, Outcome, RobotsCopy, RoundEnd,
    Schedule, ServerPace, SiteId, State, VisitCommit,
};

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
    imported.origin = crate::Origin::Imported;
    state.commit(&[Change::Visit(Box::new(imported))]).unwrap();
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
    let shares = |now: &[u32]| {
        let blocks = PageFragments { now: now.to_vec(), lost: Some(vec![7]) };
        Change::Blocks { page: top.page.id, blocks }
    };
    state.commit(&[shares(&[1])]).unwrap();
    state.commit(&[shares(&[2, 3])]).unwrap();
    commit(state, first);
    let map = state.site_pages(round.site).unwrap();
    let paths: Vec<&str> = map.pages.iter().map(|page| page.path.as_str()).collect();
    assert_eq!(paths, ["/", "/a?b", "/c"]);
    assert_eq!((&map.links, &map.tops), (&vec![(0, vec![1, 2])], &vec![0]));
    assert_eq!((map.pages[0].round, map.pages[0].visits), (Some(round.id), 1));
    assert_eq!((map.pages[1].round, map.pages[1].visited_s), (None, None));
    assert_eq!(map.rounds_s, [NOW_S]);
    assert_eq!(
        (&map.pages[0].blocks.now, &map.pages[0].blocks.lost),
        (&vec![2, 3], &Some(vec![7]))
    );
    assert_eq!(map.pages[1].blocks, PageFragments::default());
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
