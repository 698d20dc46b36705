//! Digests of the golden cases: graph, sites and visited pages of six real sites, read from their
//! HTML.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test may fail loudly")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use nenrin_lab::structure::{MirrorSite, SiteHistory, load_mirrors};
use nenrin_structure::{
    GatedPlan, PageIndex, RoundPlan, Seen, SiteGraph, SiteSplit, SplitOptions, UpperSites,
    run_round,
};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The hosts under which the pages of each site link to each other.
const HOSTS: [(&str, &[&str]); 6] = [
    ("azhenley", &["azhenley.github.io", "austinhenley.com", "www.austinhenley.com"]),
    ("tromp", &["tromp.github.io"]),
    ("dplyr", &["dplyr.tidyverse.org"]),
    ("openbsd", &["www.openbsd.org", "openbsd.org"]),
    ("vimdoc", &["vim-jp.org"]),
    ("umio", &["blog.coelacanth-dream.com", "www.coelacanth-dream.com", "umio-yasuno.github.io"]),
];

fn data() -> Option<PathBuf> {
    let data = std::env::var("NENRIN_DATA").unwrap_or_else(|_| {
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data").to_owned()
    });
    let data = PathBuf::from(data);
    if !data.join("structure/golden.json").exists() {
        eprintln!(
            "SKIPPED: {}/structure/golden.json is not there; set NENRIN_DATA",
            data.display()
        );
        return None;
    }
    Some(data)
}

/// All visits of a site, written out for the test.
fn site(data: &Path, name: &str, into: &Path) -> SiteHistory {
    let folders: Vec<PathBuf> = (1..=8).map(|visit| into.join(format!("{name}/{visit}"))).collect();
    for (visit, folder) in (1..).zip(&folders) {
        let script = data.join("sites/materialise");
        let mut command = Command::new("bash");
        command.arg(script).arg(name).arg(format!("{visit}")).arg(folder);
        assert!(command.env("CORPUS_CACHE", into.join("cache")).status().unwrap().success());
    }
    let hosts = HOSTS.iter().find(|(site, _)| *site == name).unwrap().1;
    let hosts = hosts.iter().map(|&host| host.to_owned()).collect();
    let site = MirrorSite { name: name.to_owned(), kind: String::new(), hosts, folders };
    load_mirrors(&[site]).unwrap().sites.remove(0)
}

fn digest(mut lines: Vec<String>) -> String {
    lines.sort();
    Sha256::digest(lines.join("\n")).iter().map(|byte| format!("{byte:02x}")).collect()
}

struct Built<'a> {
    paths: Vec<&'a str>,
    graph: Arc<SiteGraph>,
    changed: Vec<bool>,
}

impl<'a> Built<'a> {
    fn new(site: &'a SiteHistory, from: usize, to: usize) -> Self {
        let (now, later) = (&site.visits[from - 1].pages, &site.visits[to - 1].pages);
        let mut graph = SiteGraph::new();
        let index: BTreeMap<&str, PageIndex> =
            now.keys().map(|path| (path.as_str(), graph.add_page(path).unwrap())).collect();
        for (path, page) in now {
            let targets: Vec<PageIndex> =
                page.links.iter().filter_map(|link| index.get(link.as_str()).copied()).collect();
            graph.set_links(index[path.as_str()], &targets, &[]).unwrap();
        }
        graph.set_top(index["index.html"]).unwrap();
        graph.refresh_depths();
        let changed = now
            .iter()
            .map(|(path, page)| later.get(path).is_none_or(|later| later.digest != page.digest));
        Self {
            changed: changed.collect(),
            paths: now.keys().map(String::as_str).collect(),
            graph: Arc::new(graph),
        }
    }

    fn path(&self, page: PageIndex) -> String {
        self.paths[page.0 as usize].to_owned()
    }

    fn is_reached(&self, page: PageIndex) -> bool {
        self.graph.depth(page).is_some_and(|depth| depth <= 12)
    }

    fn reached(&self) -> impl Iterator<Item = PageIndex> + '_ {
        (0..self.paths.len() as u32).map(PageIndex).filter(|&page| self.is_reached(page))
    }

    fn graph_digest(&self) -> String {
        let lines = self.reached().flat_map(|page| {
            let targets = self.graph.links(page).filter(|&target| self.is_reached(target));
            targets.map(move |target| format!("{}\t{}", self.path(page), self.path(target)))
        });
        digest(lines.collect())
    }

    fn sites_digest(&self, split: &SiteSplit) -> String {
        let line = |site| {
            let mut members: Vec<String> = split.members(site).map(|p| self.path(p)).collect();
            members.sort();
            let top = self.path(split.tops(site).next().unwrap());
            std::iter::once(top).chain(members).collect::<Vec<_>>().join("\t")
        };
        digest((0..split.len()).map(line).collect())
    }

    fn visited(&self, plan: &mut dyn RoundPlan) -> (usize, usize, String) {
        let is_changed = |page: PageIndex| self.changed[page.0 as usize];
        let visited = run_round(plan, usize::MAX, |page| {
            if is_changed(page.page) { Seen::Changed } else { Seen::Same }
        });
        let found = visited.iter().filter(|page| is_changed(page.page)).count();
        let paths = visited.iter().map(|page| self.path(page.page)).collect();
        (visited.len(), found, digest(paths))
    }

    fn check(&self, golden: &Value) {
        let name = format!("{} {} to {}", golden["site"], golden["v"], golden["w"]);
        assert_eq!(self.reached().count() as u64, golden["pages"].as_u64().unwrap(), "{name}");
        assert_eq!(self.graph_digest(), golden["graph_sha256"].as_str().unwrap(), "{name}: graph");
        let options = SplitOptions::default();
        let a = Arc::new(SiteSplit::by_directory(&self.graph, options));
        let b = Arc::new(SiteSplit::by_links(&self.graph, options));
        assert_eq!(a.len() as u64, golden["A_sites"].as_u64().unwrap(), "{name}: sites of A");
        assert_eq!(b.len() as u64, golden["B_P_sites"].as_u64().unwrap(), "{name}: sites of B");
        let sites = golden["B_P_sites_sha256"].as_str().unwrap();
        assert_eq!(self.sites_digest(&b), sites, "{name}: B");
        let upper = Arc::new(UpperSites::new(&self.graph, &b));
        let graph = || Arc::clone(&self.graph);
        let plans = [
            ("A_visited", GatedPlan::new(0, graph(), a)),
            ("B_P_visited", GatedPlan::new(0, graph(), Arc::clone(&b))),
            ("C_P_visited", GatedPlan::under_upper_sites(0, graph(), b, upper)),
        ];
        for (key, mut plan) in plans {
            let (visits, found, paths) = self.visited(&mut plan);
            assert_eq!(serde_json::json!([visits, found, paths]), golden[key], "{name}: {key}");
        }
    }
}

fn check_site(name: &str) {
    let Some(data) = data() else { return };
    let text = std::fs::read_to_string(data.join("structure/golden.json")).unwrap();
    let golden: Value = serde_json::from_str(&text).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let site = site(&data, name, folder.path());
    let digests = golden["digests"].as_array().unwrap();
    let of_site: Vec<&Value> = digests.iter().filter(|digest| digest["site"] == name).collect();
    assert_eq!(of_site.len(), 7);
    for golden in of_site {
        let at = |key: &str| golden[key].as_u64().unwrap() as usize;
        Built::new(&site, at("v"), at("w")).check(golden);
    }
}

#[test]
fn azhenley_has_the_golden_digests() {
    check_site("azhenley");
}

#[test]
fn tromp_has_the_golden_digests() {
    check_site("tromp");
}

#[test]
#[ignore = "reads some 50 MB of HTML: run with --run-ignored all, best in release"]
fn dplyr_has_the_golden_digests() {
    check_site("dplyr");
}

#[test]
#[ignore = "reads some 80 MB of HTML: run with --run-ignored all, best in release"]
fn openbsd_has_the_golden_digests() {
    check_site("openbsd");
}

#[test]
#[ignore = "reads some 120 MB of HTML: run with --run-ignored all, best in release"]
fn vimdoc_has_the_golden_digests() {
    check_site("vimdoc");
}

#[test]
#[ignore = "reads some 60 MB of HTML: run with --run-ignored all, best in release"]
fn umio_has_the_golden_digests() {
    check_site("umio");
}
