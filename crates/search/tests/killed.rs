//! A process that keeps the index is killed again and again, at any moment: the next one finds the
//! index as it is, mends it or builds it anew, and its answers are those of a scan.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test with processes")]

use crate::support;

use std::{
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use nenrin_archive::{Archive, Capture, OpenOptions};
use nenrin_search::{Keeper, Query, Search, SearchError};
use nenrin_state::{SiteConditions, SiteId};
use nenrin_urls::CanonicalUrl;
use support::{Dice, compare, index, pages};

const KILLS: usize = 24;
const PAGES: usize = 120;
const FOLDER: &str = "NENRIN_TEST_ARCHIVE";
const WORDS: [&str; 12] = [
    "oak", "ash", "ring", "bark", "年輪", "の木", "leaf", "root", "branch", "river", "stone",
    "moss",
];
const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n";

fn url(path: usize) -> CanonicalUrl {
    CanonicalUrl::parse(&format!("http://e.com/{path}.html")).unwrap()
}

/// New versions of some pages.
fn collect(archive: &Archive, site: SiteId, at_s: i64, dice: &mut Dice) {
    let mut ingest = archive.ingest(site).unwrap();
    for page in 0..PAGES {
        if at_s > 0 && dice.below(4) > 0 {
            continue;
        }
        let mut body = format!("<title>page {page}</title>");
        for _ in 0..40 {
            body.push_str("<p>");
            for _ in 0..12 {
                body += WORDS[dice.below(WORDS.len())];
                body += &format!(" w{} ", dice.below(3_000));
            }
        }
        ingest.take(&Capture::new(&url(page), 1_000 + at_s, 200, HEAD, body.as_bytes())).unwrap();
    }
    ingest.finish().unwrap();
}

/// The process that is killed. By itself it does nothing.
#[test]
#[ignore = "is run by the other test"]
fn keeps_the_index() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let archive = Arc::new(Archive::open(Path::new(&folder), &OpenOptions::reading()).unwrap());
    let mut keeper = Keeper::new(archive);
    loop {
        keeper.catch_up(&mut |_, _| {}).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_kill_at_any_moment_leaves_an_index_that_is_right_again() {
    let folder = tempfile::tempdir().unwrap();
    let archive = Arc::new(Archive::open(folder.path(), &OpenOptions::writing()).unwrap());
    let site = archive.state().add_site("e", &SiteConditions::new(vec![url(0)]), 0).unwrap().id;
    let mut dice = Dice(7);
    collect(&archive, site, 0, &mut dice);
    let mut answered = 0;
    for kill in 1..=KILLS {
        let mut keeper = Command::new(std::env::current_exe().unwrap())
            .args(["killed::keeps_the_index", "--exact", "--ignored"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Something to do before the kill, and while it is done.
        std::thread::sleep(Duration::from_millis(dice.below(250) as u64));
        collect(&archive, site, kill as i64 * 1_000, &mut dice);
        std::thread::sleep(Duration::from_millis(dice.below(250) as u64));
        assert_eq!(keeper.try_wait().unwrap(), None, "it ended by itself");
        keeper.kill().unwrap();
        keeper.wait().unwrap();
        // Whatever is left can be asked: it answers, or says that there is nothing yet.
        let query = Query::parse("oak ring").unwrap();
        match Search::new(archive.clone()).spans(&query) {
            Ok(found) => answered += usize::from(!found.is_empty()),
            Err(SearchError::NoIndex) => {}
            Err(error) => panic!("after kill {kill}: {error}"),
        }
        if kill % 6 == 0 {
            // The next start mends it, with everything that was collected meanwhile.
            let search = index(&archive);
            let found = compare(&search, &pages(&archive), &mut dice, 60);
            assert!(found > 20, "only {found} queries found something");
        }
    }
    assert!(answered > KILLS / 3, "the index was there after {answered} kills of {KILLS}");
}
