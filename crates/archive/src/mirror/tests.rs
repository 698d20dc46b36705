use std::{collections::BTreeMap, fs, path::Path};

use nenrin_state::SiteConditions;
use nenrin_urls::CanonicalUrl;

use super::{MirrorImportOptions, listing, path_of};
use crate::{Archive, ArchiveError, Capture, ImportedMirror, OpenOptions, Result, sites};

const DAY_S: i64 = 86_400;
const NOW_S: i64 = 1_000 * DAY_S;

struct World {
    archive: Archive,
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let archive = Archive::open(&folder.path().join("archive"), &OpenOptions::writing());
        Self { archive: archive.unwrap(), folder }
    }

    /// A folder with these files and nothing else.
    fn mirror(&self, files: &[(&str, &str)]) -> std::path::PathBuf {
        let mirror = self.folder.path().join("mirror");
        let _ = fs::remove_dir_all(&mirror);
        for (name, content) in files {
            let path = mirror.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        mirror
    }

    fn import(&self, day: i64, files: &[(&str, &str)]) -> Result<ImportedMirror> {
        self.import_as("http://e.com/", day, files)
    }

    fn import_as(&self, url: &str, day: i64, files: &[(&str, &str)]) -> Result<ImportedMirror> {
        let base = CanonicalUrl::parse(url).unwrap();
        let options = MirrorImportOptions { base, at_s: day * DAY_S, depth: 3, now_s: NOW_S };
        self.archive.import_mirror(&self.mirror(files), &options, &mut |_, _| {})
    }

    /// What an export as of the end of a day has.
    fn export(&self, day: i64, name: &str) -> Result<BTreeMap<String, String>> {
        let site = sites::find(&**self.archive.state(), "e.com").unwrap();
        let output = self.folder.path().join(name);
        let at_s = (day + 1) * DAY_S - 1;
        self.archive.export_mirror(&[site], at_s, (&output, false), &mut |_, _| {})?;
        let mut found = BTreeMap::new();
        let base = CanonicalUrl::parse("http://e.com/").unwrap();
        super::paths::files_below(&output, &base, &mut |file| {
            let name = file.path.strip_prefix(&output).unwrap().to_string_lossy().into_owned();
            found.insert(name, fs::read_to_string(&file.path).unwrap());
            Ok(())
        })?;
        Ok(found)
    }

    fn take(&self, day: i64, pages: &[(&str, &str)]) {
        let state = self.archive.state();
        let site = sites::find(&**state, "e.com").unwrap_or_else(|_| {
            let top = CanonicalUrl::parse("http://e.com/").unwrap();
            state.add_site("e.com", &SiteConditions::new(vec![top]), 0).unwrap()
        });
        let mut ingest = self.archive.ingest(site.id).unwrap();
        for (path, body) in pages {
            let url = CanonicalUrl::parse(&format!("http://e.com{path}")).unwrap();
            let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
            ingest.take(&Capture::new(&url, day * DAY_S, 200, head, body.as_bytes())).unwrap();
        }
        ingest.finish().unwrap();
    }
}

fn files(of: &[(&str, &str)]) -> BTreeMap<String, String> {
    of.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn the_same_folder_for_the_same_date_changes_nothing() {
    let world = World::new();
    let mirror = [("index.html", "one"), ("a/b.html", "two")];
    world.import(10, &mirror).unwrap();
    world.import(20, &mirror).unwrap();
    let state = world.archive.state();
    let before = (
        state.stats().unwrap(),
        state.rounds(None, 99).unwrap(),
        world.archive.store().stats().unwrap(),
    );
    for day in [20, 10, 20] {
        let again = world.import(day, &mirror).unwrap();
        assert_eq!((again.files, again.known, again.counts.visits()), (2, 2, 0), "{day}");
    }
    let after = (
        state.stats().unwrap(),
        state.rounds(None, 99).unwrap(),
        world.archive.store().stats().unwrap(),
    );
    assert_eq!(
        (before.0.visits, before.0.raw_bytes, before.1),
        (after.0.visits, after.0.raw_bytes, after.1)
    );
    assert_eq!(before.2.versions, after.2.versions);
}

#[test]
fn other_content_for_the_same_date_is_refused_and_leaves_nothing_unfinished() {
    let world = World::new();
    world.import(10, &[("index.html", "one")]).unwrap();
    world.import(20, &[("index.html", "two")]).unwrap();
    for (day, stored) in [(10, "one"), (20, "two")] {
        let error = world.import(day, &[("index.html", "other")]).unwrap_err();
        let text = error.to_string();
        for content in [stored, "other"] {
            let digest = nenrin_store::Digest::of(content.as_bytes()).to_string();
            assert!(text.contains(&digest), "{text}");
        }
        assert!(matches!(error, ArchiveError::OtherContent { .. }));
    }
    let rounds = world.archive.state().rounds(None, 99).unwrap();
    assert_eq!(rounds.len(), 2);
    assert!(rounds.iter().all(|round| round.ended_s.is_some()));
}

#[test]
fn a_date_in_the_future_is_refused() {
    let world = World::new();
    let error = world.import(1_001, &[("index.html", "one")]).unwrap_err();
    assert!(error.to_string().contains("1972-09-28 00:00:00 is in the future"), "{error}");
    assert!(world.archive.state().sites().unwrap().is_empty());
}

#[test]
fn visits_may_be_imported_in_any_order() {
    let visits: [(i64, &[(&str, &str)]); 4] = [
        (10, &[("index.html", "A"), ("x.html", "x")]),
        (20, &[("index.html", "B"), ("y.html", "y")]),
        (30, &[("index.html", "A"), ("x.html", "x"), ("y.html", "y")]),
        (40, &[("index.html", "A"), ("x.html", "z")]),
    ];
    for order in [[0, 1, 2, 3], [0, 2, 3, 1], [2, 0, 1, 3], [0, 2, 1, 3]] {
        let world = World::new();
        for visit in order {
            let (day, files) = visits[visit];
            world.import(day, files).unwrap();
        }
        for (number, (day, expected)) in visits.iter().enumerate() {
            let found = world.export(*day, &format!("out-{number}")).unwrap();
            assert_eq!(found, files(expected), "{order:?}, day {day}");
        }
        let verified = world.archive.verify(true, &mut |_, _| {}).unwrap();
        assert!(verified.is_sound(), "{order:?}: {:?}", verified.text(true));
        assert_eq!(world.archive.state().sites().unwrap()[0].collected_s, Some(40 * DAY_S));
    }
}

#[test]
fn the_url_of_a_folder_is_understood_or_refused() {
    for (url, page, site) in [
        ("http://e.com/", "http://e.com/x.html", "e.com"),
        ("http://e.com/docs/", "http://e.com/docs/x.html", "e.com/docs"),
        ("http://e.com/docs", "http://e.com/docs/x.html", "e.com/docs"),
        ("http://e.com/docs/index.html", "http://e.com/docs/x.html", "e.com/docs"),
        ("http://e.com/index.htm", "http://e.com/x.html", "e.com"),
        ("http://e.com/v1.2", "http://e.com/v1.2/x.html", "e.com/v1.2"),
    ] {
        let world = World::new();
        world.import_as(url, 10, &[("x.html", "one")]).unwrap();
        world.import_as(url, 20, &[("x.html", "two")]).unwrap();
        let sites = world.archive.state().sites().unwrap();
        assert_eq!(sites.iter().map(|site| &site.name).collect::<Vec<_>>(), [site], "{url}");
        assert_eq!(world.archive.versions(page).unwrap().len(), 2, "{url}");
    }
    let world = World::new();
    for url in [
        "http://e.com/?q=1",
        "http://e.com/docs/page.html",
        "http://e.com/docs/?a",
        "http://e.com/a.php",
        "http://e.com/docs/List.ASPX",
        "http://e.com/logo.png",
    ] {
        assert!(world.import_as(url, 10, &[("x.html", "one")]).is_err(), "{url}");
    }
    assert!(world.archive.state().sites().unwrap().is_empty());
}

#[test]
fn names_that_clash_or_cannot_be_are_mapped_and_listed() {
    let world = World::new();
    let long = format!("/{}.html", "long".repeat(80));
    let pages = [
        ("/", "top"),
        ("/about", "about"),
        ("/about/team", "team"),
        ("/About", "capital"),
        ("/index.html", "the file"),
        ("/a%2Fb", "escaped"),
        ("/con", "device"),
        ("/%FF.html", "odd"),
        (long.as_str(), "long"),
        ("/plain.html?q=1", "query"),
    ];
    world.take(10, &pages);
    let found = world.export(10, "out").unwrap();
    let mut bodies: Vec<&String> = found.values().collect();
    bodies.sort();
    let mut expected: Vec<&str> = pages.iter().map(|(_, body)| *body).collect();
    expected.sort_unstable();
    assert_eq!(bodies, expected);
    for name in ["about/team", "plain.html?q=1"] {
        assert!(found.contains_key(name), "{found:?}");
    }
    let folded: std::collections::BTreeSet<String> =
        found.keys().map(|name| name.to_lowercase()).collect();
    assert_eq!(folded.len(), pages.len());
    let mut listed = BTreeMap::new();
    let list = world.folder.path().join("out.mirror.jsonl");
    let head = listing::read(&list, &mut |file| {
        listed.insert(file.path.to_string_lossy().into_owned(), file);
        Ok(())
    });
    assert_eq!(head.unwrap().unwrap().sites, ["e.com"]);
    assert_eq!(listed.keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>());
    for (name, file) in &listed {
        let (path, body) = pages.iter().find(|(path, _)| file.url.ends_with(path)).unwrap();
        assert_eq!(&found[name], body, "{path}");
        let url = CanonicalUrl::parse(&file.url).unwrap();
        let base = CanonicalUrl::parse("http://e.com/").unwrap();
        let own = path_of(&url, Some(&base), false);
        assert_eq!(file.mapped, own.is_mapped || own.path != Path::new(name), "{name}");
    }
}

#[test]
fn an_earlier_export_is_brought_up_to_date_and_nothing_else_is_touched() {
    let world = World::new();
    world.take(10, &[("/a.html", "a"), ("/b", "b"), ("/c/d.html", "d")]);
    world.take(20, &[("/a.html", "a2"), ("/b/c.html", "below")]);
    assert!(
        world
            .export(5, "out")
            .unwrap_err()
            .to_string()
            .contains("the first visit was on 1970-01-11")
    );
    assert!(!world.folder.path().join("out").exists());
    world.export(10, "in/a/new/folder").unwrap();
    world.export(10, "out").unwrap();
    let foreign = world.folder.path().join("out/mine.txt");
    fs::write(&foreign, "mine").unwrap();
    // As if the next export had been cut short.
    let list = world.folder.path().join("out.mirror.jsonl");
    for is_cut in [false, true] {
        if is_cut {
            let part = listing::unfinished(&list);
            fs::copy(&list, &part).unwrap();
            fs::write(world.folder.path().join("out/a.html"), "half").unwrap();
        }
        let now = world.export(20, "out").unwrap();
        let mut names: Vec<&str> = now.keys().map(String::as_str).collect();
        names.retain(|name| !name.starts_with("b~"));
        assert_eq!(names, ["a.html", "b/c.html", "c/d.html", "mine.txt"]);
        assert_eq!(now["a.html"], "a2");
    }
    let back = world.export(10, "out").unwrap();
    assert_eq!(
        back,
        files(&[("a.html", "a"), ("b", "b"), ("c/d.html", "d"), ("mine.txt", "mine")])
    );
    fs::create_dir(world.folder.path().join("other")).unwrap();
    fs::write(world.folder.path().join("other/x"), "x").unwrap();
    let refused = world.export(20, "other").unwrap_err().to_string();
    assert!(refused.contains("not an earlier export"), "{refused}");
}

#[test]
fn sites_are_found_by_name_number_or_url() {
    let world = World::new();
    let state = world.archive.state();
    let top = |text: &str| CanonicalUrl::parse(text).unwrap();
    for (name, address) in [
        ("first", "https://e.com/"),
        ("docs", "https://f.com/docs/"),
        ("blog", "https://f.com/blog/"),
    ] {
        state.add_site(name, &SiteConditions::new(vec![top(address)]), 0).unwrap();
    }
    for (text, name) in [
        ("first", "first"),
        ("2", "docs"),
        ("e.com", "first"),
        ("http://e.com/", "first"),
        ("https://f.com/blog/", "blog"),
    ] {
        assert_eq!(sites::find(&**state, text).unwrap().name, name, "{text}");
    }
    assert!(sites::find(&**state, "f.com").unwrap_err().to_string().contains("several sites"));
    for unknown in ["frist", "9", "g.com", "https://e.com/page.html"] {
        assert!(sites::find(&**state, unknown).is_err(), "{unknown}");
    }
}
