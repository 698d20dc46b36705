//! Look-ups of pages.

use super::{NOW_S, begun, commit, conditions, found, visit};
use crate::{Outcome, PageFilter, PathQuery, State};

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
