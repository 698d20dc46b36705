//! What is learnt of pages, servers and sites.

use nenrin_structure::PageFragments;

use crate::{
    Change, Nth, Outcome, RobotsCopy, RoundEnd, ServerPace, State, VisitCommit,
    suite::{NOW_S, begun, commit, conditions, found, row, url, visit},
};

pub fn links_to_known_pages_are_kept_and_told_once(state: &impl State) {
    let (_, top) = begun(state);
    state.add_site("other", &conditions("http://other.com/"), NOW_S).unwrap();
    let linked_by =
        |visit: VisitCommit| state.commit(&[Change::Visit(Box::new(visit))]).unwrap().linked;
    let mut first = visit(&top, NOW_S, Outcome::Changed);
    first.version = Some(row(1, NOW_S));
    first.discovered = vec![found("http://e.com/a", 2), found("http://e.com/b", 2)];
    let urls =
        ["http://e.com/b", "http://e.com/a", "http://other.com/", "http://x.com/", "http://e.com/"];
    first.links = Some(urls.iter().map(|text| url(text)).collect());
    let linked = linked_by(first.clone());
    let all = [2, 3, 4].map(Nth).to_vec();
    assert_eq!(
        linked,
        vec![crate::Linked { nth: Nth(1), targets: all.clone(), links: 3, again: false }]
    );
    assert_eq!(state.links(&[Nth(1)]).unwrap()[0].targets.as_deref(), Some(&all[..]));
    assert_eq!(linked_by(first.clone()), vec![]);
    first.discovered = vec![found("http://e.com/c", 2)];
    first.links = Some(vec![url("http://e.com/c"), url("http://e.com/a")]);
    let (targets, links) = (vec![Nth(5)], 2);
    assert_eq!(linked_by(first), vec![crate::Linked { nth: Nth(1), targets, links, again: true }]);
    let unread = &state.links(&[Nth(3)]).unwrap()[0];
    assert_eq!((&unread.targets, unread.url.path(), unread.version), (&None, "/a", None));
    // A page that came from elsewhere is read later.
    let a = state.load_round(&state.begin_round(top.site, NOW_S).unwrap(), None, 10).unwrap();
    let a = a.into_iter().find(|due| due.page.nth == Nth(3)).unwrap();
    let mut imported = visit(&a, NOW_S + 5, Outcome::Changed);
    imported.version = Some(row(2, NOW_S + 5));
    imported.origin = crate::Origin::Imported;
    state.commit(&[Change::Visit(Box::new(imported))]).unwrap();
    let reading = |nth: u32| state.found(Nth(nth - 1), 1).unwrap()[0].reading;
    assert_eq!(
        [1, 2, 3].map(reading),
        [crate::Reading::Read, crate::Reading::New, crate::Reading::Unread]
    );
    let links = vec![url("http://e.com/b")];
    let late = state.commit(&[Change::Links { page: a.page.id, links }]).unwrap().linked;
    assert_eq!((late[0].nth, &late[0].targets, late[0].again), (Nth(3), &vec![Nth(4)], false));
    assert_eq!(reading(3), crate::Reading::Read);
    let places: Vec<Nth> = state.found(Nth(0), 10).unwrap().iter().map(|page| page.nth).collect();
    assert_eq!(places, [1, 2, 3, 4, 5].map(Nth));
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
    let order = |bytes| Change::Order { bytes, received: Vec::new(), handed_on: Vec::new() };
    assert_eq!(state.order().unwrap(), Vec::<u8>::new());
    let large: Vec<u8> = (0..700_000_u32).map(|n| (n >> 8) as u8).collect();
    for bytes in [large, vec![3]] {
        state.commit(&[order(bytes.clone())]).unwrap();
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
