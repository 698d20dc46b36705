//! Mirrored folders as visits, given back byte by byte, and the experiments on such an archive.

use std::{collections::BTreeMap, fs, path::Path};

use crate::support::Nenrin;

const DATES: [&str; 4] = ["2024-01-01", "2024-02-01", "2024-03-01", "2024-04-01"];

/// What the site holds at its `visit`th mirror, from 0: its news changes with its front page, its
/// manual never, and one page is gone at the end.
fn pages(visit: usize) -> BTreeMap<String, Vec<u8>> {
    let mut pages = BTreeMap::new();
    let front = format!(
        "<h1>{visit}</h1><a href=news/>news</a><a href=manual/>manual</a><a href=old.html>old</a>"
    );
    pages.insert("index.html".to_owned(), front.into_bytes());
    let list: String = (0..4).map(|n| format!("<a href={n}.html>{n}</a>")).collect();
    for (directory, edition) in [("news", visit), ("manual", 0)] {
        let index = format!("{list} {edition}").into_bytes();
        pages.insert(format!("{directory}/index.html"), index);
        for n in 0..4 {
            let page = format!("<p>{directory} {n}, edition {edition}</p><a href=./>up</a>");
            pages.insert(format!("{directory}/{n}.html"), page.into_bytes());
        }
    }
    if visit + 1 < DATES.len() {
        pages.insert("old.html".to_owned(), b"\xff\x00 not even text".to_vec());
    }
    pages
}

fn write(folder: &Path, pages: &BTreeMap<String, Vec<u8>>) {
    for (path, body) in pages {
        let file = folder.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, body).unwrap();
    }
}

fn read(folder: &Path, inside: &str, pages: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder.join(inside)).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{inside}{}", entry.file_name().to_str().unwrap());
        match entry.file_type().unwrap().is_dir() {
            true => read(folder, &format!("{path}/"), pages),
            false => drop(pages.insert(path, fs::read(entry.path()).unwrap())),
        }
    }
}

fn imported() -> Nenrin {
    let nenrin = Nenrin::new();
    for (visit, date) in DATES.iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &pages(visit));
        let from = folder.path().to_str().unwrap();
        let args = ["import", "mirror", from, "--url", "http://mirrored.test/", "--at", date];
        nenrin.run(&args).expect(0);
    }
    nenrin
}

#[test]
fn every_mirror_is_given_back_exactly() {
    let nenrin = imported();
    for (visit, date) in DATES.iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().to_str().unwrap();
        nenrin.run(&["export", "mirror", "--at", date, "-o", to]).expect(0);
        let mut found = BTreeMap::new();
        read(folder.path(), "", &mut found);
        assert!(found == pages(visit), "{date}: {:?}", found.keys());
    }
    nenrin.assert_sound();
}

#[test]
fn the_experiments_run_on_the_archive_itself() {
    let nenrin = imported();
    let structure =
        nenrin.run(&["lab", "structure", "--learn", "2", "--json"]).expect(0).document();
    let site = &structure["sites"][0];
    assert_eq!(site["visits"], 4, "{site}");
    let spans = structure["spans"][0]["methods"].as_array().unwrap();
    let method = |name: &str| spans.iter().find(|method| method["name"] == name).unwrap();
    // Three steps: six pages of front and news each time, and the page that went at the last.
    assert_eq!(method("everything")["changed"], 3 * 6 + 1);
    assert_eq!(method("A")["coverage"], 1.0);
    assert!(method("A")["visits"].as_u64() < method("everything")["visits"].as_u64());

    let order = nenrin.run(&["lab", "order", "--strategy", "bf", "auto", "--json"]).expect(0);
    let order = order.document();
    // The eleven pages that are still there and the page about the archive.
    assert_eq!((&order["pages"], &order["reachable"]), (&12.into(), &12.into()));

    let args = ["lab", "revisit", "--policy", "every(30d)", "auto", "--json"];
    let revisit = nenrin.run(&args).expect(0).document();
    // The page that went has one change only, the manual none.
    assert_eq!((&revisit["pages"], &revisit["versions"]), (&6.into(), &18.into()));
}

#[test]
fn an_archive_without_pages_says_what_to_do() {
    let nenrin = Nenrin::new();
    nenrin.run(&["site", "add", "http://nowhere.test/"]).expect(0);
    nenrin.run(&["lab", "order"]).expect_said(2, &["has no pages", "collect or import"]);
    nenrin.run(&["lab", "structure"]).expect_said(2, &["two visits"]);
    let policy = ["lab", "revisit", "--policy", "auto"];
    nenrin.run(&policy).expect_said(2, &["seen changing", "--log"]);
}

#[test]
fn what_changed_is_listed_by_time_and_between_two_dates() {
    let nenrin = imported();
    let text =
        nenrin.run(&["diff", "--site", "mirrored.test", DATES[0], DATES[3]]).expect(0).text();
    assert!(text.contains("12 pages compared: 0 new, 6 changed, 1 gone"), "{text}");
    assert!(text.contains("/news/") && !text.contains("/manual/"), "by folder: {text}");
    assert!(text.contains("gone     http://mirrored.test/old.html"), "{text}");
    let pages =
        nenrin.run(&["diff", "--site", "1", DATES[3], DATES[0], "--json"]).expect(0).lines();
    assert_eq!(pages.len(), 7, "in either order of dates");
    assert!(pages.iter().all(|page| page["old"]["at"].as_str() < Some("2024-02")), "{pages:?}");
    nenrin.run(&["diff", "--site", "1", DATES[0]]).expect_said(2, &["two dates"]);
    nenrin.run(&["diff", "--site", "1", "then", "now"]).expect_said(2, &["not a date"]);
    nenrin.run(&["diff", DATES[0], DATES[1]]).expect_said(2, &["--site"]);
    nenrin.run(&["changes"]).expect_said(0, &["--since 2024-04-01"]);
    nenrin.run(&["changes", "--since", "2024-04-01"]).expect_said(0, &["2024-04-01 (UTC)"]);
    nenrin.run(&["changes", "--since", "soon"]).expect_said(2, &["neither a duration nor a date"]);
    let all = ["changes", "--since", "3650d", "--site", "mirrored.test", "--limit", "1000"];
    let text = nenrin.run(&all).expect(0).text();
    assert!(text.contains("2024-03-01 (UTC)\n  mirrored.test\n"), "{text}");
    assert!(text.contains("only dates, counters"), "editions are counted: {text}");
    assert!(text.contains("gone     http://mirrored.test/old.html"), "{text}");
    let mut wanted = all.to_vec();
    wanted.extend(["--kind", "new", "--text", "MANUAL 2", "--json"]);
    let found = nenrin.run(&wanted).expect(0).lines();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["url"], "http://mirrored.test/manual/2.html");
    assert_eq!(
        (&found[0]["kind"], &found[0]["line"]),
        (&"new".into(), &"manual 2, edition 0".into())
    );
    nenrin.run(&["changes", "--kind", "odd"]).expect_said(2, &["new, changed or gone"]);
    nenrin.assert_sound();
}
