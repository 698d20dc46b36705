//! The golden cases of paper 000: sites, upper sites and visited pages, exactly.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test may fail loudly")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use nenrin_structure::{
    GatedPlan, PageIndex, PageRef, RoundPlan, Seen, SiteGraph, SiteSplit, SplitOptions, UpperSites,
    run_round,
};
use serde_json::Value;

fn golden() -> Option<Value> {
    let data = std::env::var("NENRIN_DATA").unwrap_or_else(|_| {
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data").to_owned()
    });
    let path = format!("{data}/structure/golden.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("SKIPPED: {path} is not there; set NENRIN_DATA");
        return None;
    };
    Some(serde_json::from_str(&text).unwrap())
}

struct Case {
    paths: Vec<String>,
    graph: Arc<SiteGraph>,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn texts(value: &Value) -> BTreeSet<String> {
    value.as_array().unwrap().iter().map(text).collect()
}

/// The figures name pages by letters, with their directory beside them.
fn path_in_directory(page: &Value) -> String {
    let (path, dir) = (text(&page["path"]), text(&page["dir"]));
    if path.starts_with(&dir) { path } else { dir + &path }
}

fn build(case: &Value) -> Case {
    let mut graph = SiteGraph::new();
    let (mut paths, mut index) = (Vec::new(), BTreeMap::new());
    for page in case["pages"].as_array().unwrap() {
        let page_index = graph.add_page(&path_in_directory(page)).unwrap();
        index.insert(text(&page["path"]), page_index);
        paths.push(text(&page["path"]));
    }
    let mut links: BTreeMap<PageIndex, Vec<PageIndex>> = BTreeMap::new();
    for link in case["links"].as_array().unwrap() {
        links.entry(index[&text(&link[0])]).or_default().push(index[&text(&link[1])]);
    }
    for (page, targets) in links {
        graph.set_links(page, &targets, &[]).unwrap();
    }
    graph.set_top(index[&text(&case["top"])]).unwrap();
    graph.refresh_depths();
    for page in case["pages"].as_array().unwrap() {
        let depth = graph.depth(index[&text(&page["path"])]).unwrap();
        assert_eq!(u64::from(depth), page["depth"].as_u64().unwrap(), "{}", page["path"]);
    }
    Case { paths, graph: Arc::new(graph) }
}

type Sites = BTreeSet<(BTreeSet<String>, BTreeSet<String>)>;

fn sites(case: &Case, split: &SiteSplit) -> Sites {
    let name = |page: PageIndex| case.paths[page.0 as usize].clone();
    (0..split.len())
        .map(|site| (split.tops(site).map(name).collect(), split.members(site).map(name).collect()))
        .collect()
}

fn golden_sites(value: &Value) -> Sites {
    let list = value.as_array().unwrap();
    list.iter().map(|site| (texts(&site["tops"]), texts(&site["members"]))).collect()
}

fn visited(case: &Case, plan: &mut dyn RoundPlan, changed: &BTreeSet<String>) -> BTreeSet<String> {
    let name = |page: PageRef| case.paths[page.page.0 as usize].clone();
    let look = |page| if changed.contains(&name(page)) { Seen::Changed } else { Seen::Same };
    run_round(plan, usize::MAX, look).into_iter().map(name).collect()
}

fn check(case: &Value) {
    let name = text(&case["name"]);
    let built = build(case);
    let options = SplitOptions::default();
    let by_directory = Arc::new(SiteSplit::by_directory(&built.graph, options));
    assert_eq!(sites(&built, &by_directory), golden_sites(&case["A"]), "{name}: A");
    let by_links = Arc::new(SiteSplit::by_links(&built.graph, options));
    assert_eq!(sites(&built, &by_links), golden_sites(&case["B_P"]), "{name}: B");
    let upper = Arc::new(UpperSites::new(&built.graph, &by_links));
    let top_name =
        |site: usize| built.paths[by_links.tops(site).next().unwrap().0 as usize].clone();
    for (site, above) in upper.list(&built.graph, &by_links).iter().enumerate() {
        let above: BTreeSet<String> = above.iter().map(|&site| top_name(site)).collect();
        assert_eq!(above, texts(&case["upper_P"][top_name(site)]), "{name}: above {site}");
    }
    for scenario in case["scenarios"].as_array().unwrap() {
        let changed = texts(&scenario["changed"]);
        let graph = || Arc::clone(&built.graph);
        let mut a = GatedPlan::new(0, graph(), Arc::clone(&by_directory));
        let mut b = GatedPlan::new(0, graph(), Arc::clone(&by_links));
        let mut c =
            GatedPlan::under_upper_sites(0, graph(), Arc::clone(&by_links), Arc::clone(&upper));
        for (plan, key) in [(&mut a, "visited_A"), (&mut b, "visited_B_P"), (&mut c, "visited_C_P")]
        {
            let expected = texts(&scenario[key]);
            assert_eq!(visited(&built, plan, &changed), expected, "{name}: {key}");
        }
    }
}

#[test]
fn sites_upper_sites_and_visits_are_those_of_the_golden_cases() {
    let Some(golden) = golden() else { return };
    let cases = golden["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 11);
    for case in cases {
        check(case);
    }
}
