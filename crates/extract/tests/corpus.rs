//! Real pages: a personal site as it was at two dates.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test may fail and must tell")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use nenrin_extract::{
    Change, ContentKind, ExtractLimits, LinkKind, NoisyParts, content_kind, fingerprint,
    page_links, significance,
};
use nenrin_urls::CanonicalUrl;

const SITE: &str = "azhenley";
const HOME: &str = "http://azhenley.example/";

/// The folder with the files of one visit; `None` with a message where the data is missing.
fn visit(number: u32, folder: &Path) -> Option<PathBuf> {
    let data = std::env::var("NENRIN_DATA").unwrap_or_else(|_| {
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data").to_owned()
    });
    let materialise = Path::new(&data).join("sites/materialise");
    if !materialise.is_file() {
        eprintln!("SKIPPED: {} is not there; set NENRIN_DATA", materialise.display());
        return None;
    }
    let target = folder.join(number.to_string());
    let done = Command::new(&materialise)
        .args([SITE, &number.to_string()])
        .arg(&target)
        .env("CORPUS_CACHE", folder.join("cache"))
        .status()
        .unwrap();
    assert!(done.success(), "{} failed", materialise.display());
    Some(target)
}

fn files(folder: &Path) -> BTreeSet<String> {
    fn walk(folder: &Path, root: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, root, found);
            } else {
                found.insert(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    let mut found = BTreeSet::new();
    walk(folder, folder, &mut found);
    found
}

fn url_of(path: &str) -> CanonicalUrl {
    CanonicalUrl::parse(HOME).unwrap().join(path).unwrap()
}

#[test]
fn a_real_sites_links_lead_to_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let Some(root) = visit(1, folder.path()) else { return };
    let files = files(&root);
    let (mut inside, mut found, mut parts, mut titles, mut pages) = (0, 0, 0, 0, 0);
    for path in &files {
        let url = url_of(path);
        let body = std::fs::read(root.join(path)).unwrap();
        let kind = content_kind(None, &url, &body);
        let links = page_links(&url, kind, None, &body, &ExtractLimits::default());
        assert!(!links.truncated, "{path}");
        if kind == ContentKind::Html {
            pages += 1;
            titles += usize::from(links.title.is_some());
        }
        parts += links.links.iter().filter(|link| link.kind == LinkKind::Embed).count();
        // The corpus leaves out large files, so only pages and styles are certain to be there.
        let is_kept = |path: &str| path.ends_with(".html") || path.ends_with(".css");
        for link in links.links.iter().filter(|link| link.url.as_str().starts_with(HOME)) {
            if is_kept(link.url.path()) {
                inside += 1;
                found += usize::from(files.contains(link.url.path().trim_start_matches('/')));
            }
        }
    }
    eprintln!(
        "{pages} pages, {titles} titles, {inside} links inside, {parts} of parts, {found} led to files"
    );
    assert!(pages > 50 && titles * 10 >= pages * 9, "{titles} of {pages} pages have titles");
    assert!(inside > 200 && parts > 100);
    assert!(found * 100 >= inside * 95, "{found} of {inside} links inside lead to a file");
}

#[test]
fn a_real_sites_changes_are_judged_and_its_pages_are_distinguished() {
    let folder = tempfile::tempdir().unwrap();
    let (Some(first), Some(last)) = (visit(1, folder.path()), visit(8, folder.path())) else {
        return;
    };
    let learnt = NoisyParts::default();
    let (mut same, mut noise, mut significant) = (0, 0, 0);
    let mut prints = Vec::new();
    for path in files(&first).intersection(&files(&last)) {
        let url = url_of(path);
        let (old, new) =
            (std::fs::read(first.join(path)).unwrap(), std::fs::read(last.join(path)).unwrap());
        let kind = content_kind(None, &url, &new);
        match significance(kind, None, &old, &new, &learnt) {
            Change::Identical => {
                assert_eq!(old, new);
                same += 1;
            }
            Change::Noise => noise += 1,
            Change::Significant { .. } => significant += 1,
        }
        if kind == ContentKind::Html {
            prints.push((path.clone(), fingerprint(&url, kind, None, &new)));
        }
    }
    eprintln!("{same} identical, {noise} noise, {significant} significant");
    assert!(same > 0 && significant > 0);
    let alike = |a: usize, b: usize| prints[a].1.resembles(&prints[b].1);
    let pairs = (0..prints.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
    let taken: Vec<_> =
        pairs.filter(|(a, b)| alike(*a, *b)).map(|(a, b)| (&prints[a].0, &prints[b].0)).collect();
    assert!(taken.is_empty(), "taken for the same page: {taken:?}");
}
