use nenrin_urls::{CanonicalUrl, UrlKey};
use rusqlite::Connection;

use crate::*;

crate::partition_suite!(partitions, |partitioning, own| {
    SqliteState::partition_in_memory(3600, partitioning, own).unwrap()
});
crate::contract_suite!(in_memory, || SqliteState::in_memory(3600).unwrap());

#[test]
fn a_long_read_holds_no_other_reader_up() {
    let folder = tempfile::tempdir().unwrap();
    let state = SqliteState::open(&folder.path().join("state.sqlite"), 3600).unwrap();
    let reader = state.reader.as_ref().unwrap();
    assert!(state.read_long(|_| Ok(reader.try_lock().is_ok())).unwrap());
    assert!(!state.read(|_| Ok(reader.try_lock().is_ok())).unwrap());
}

#[test]
fn a_file_that_is_no_database_is_named_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.sqlite");
    std::fs::write(&path, vec![b'x'; 8192]).unwrap();
    let error = SqliteState::open(&path, 3600).err().unwrap();
    assert!(matches!(error, StateError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("reindex"), "{error}");
}

#[test]
fn a_newer_schema_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.sqlite");
    drop(SqliteState::open(&path, 3600).unwrap());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 999).unwrap();
    let error = SqliteState::open(&path, 3600).err().unwrap();
    assert!(matches!(error, StateError::SchemaTooNew { found: 999, .. }), "{error}");
}

#[test]
fn a_state_of_the_first_schema_gets_what_came_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.sqlite");
    drop(SqliteState::open(&path, 3600).unwrap());
    let first = Connection::open(&path).unwrap();
    for table in ["sites", "days"] {
        let rename = format!("ALTER TABLE {table} RENAME COLUMN problems TO troubles");
        first.execute(&rename, []).unwrap();
    }
    first.pragma_update(None, "user_version", 1).unwrap();
    drop(first);
    let state = SqliteState::open(&path, 3600).unwrap();
    assert_eq!(state.received().unwrap(), []);
    drop(state);
    let number = |c: &Connection| c.pragma_query_value(None, "user_version", |row| row.get(0));
    let found: i64 = number(&Connection::open(&path).unwrap()).unwrap();
    assert_eq!(found, 6);
}

#[test]
fn a_state_of_a_pre_release_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.sqlite");
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 2).unwrap();
    let error = SqliteState::open(&path, 3600).err().unwrap();
    assert!(matches!(error, StateError::PreRelease { .. }), "{error}");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(16))]

    /// Many more pages than a bag holds, so that bags are divided again and again.
    #[test]
    fn pages_and_keys_are_listed_in_order_however_they_came(
        paths in proptest::collection::vec("/[a-c]{0,3}/?[0-9]{0,3}", 1..400),
        together in 1_usize..200,
    ) {
        let state = SqliteState::in_memory(3600).unwrap();
        let top = CanonicalUrl::parse("http://e.com/").unwrap();
        let site = state.add_site("e", &SiteConditions::new(vec![top.clone()]), 0).unwrap().id;
        let mut urls = std::collections::BTreeSet::from([top]);
        for group in paths.chunks(together) {
            let found: Vec<Discovered> = group
                .iter()
                .map(|path| CanonicalUrl::parse(&format!("http://e.com{path}")).unwrap())
                .map(|url| Discovered { url, depth: 2, hops: 0, due_s: None })
                .collect();
            let pages = FoundPages { site, at_s: 0, pages: found.clone() };
            state.commit(&[Change::Found(pages)]).unwrap();
            urls.extend(found.into_iter().map(|found| found.url));
        }
        let mut expected: Vec<&str> = urls.iter().map(CanonicalUrl::path_and_query).collect();
        expected.sort_unstable();
        let server = state.site_servers(site, 1).unwrap()[0].id;
        let mut query =
            PathQuery { site, server, prefix: "/".into(), after: None, limit: together };
        let mut listed: Vec<String> = Vec::new();
        loop {
            let portion = state.pages_by_path(&query).unwrap();
            let Some(last) = portion.last() else { break };
            query.after = Some(last.url.path_and_query().to_owned());
            listed.extend(portion.iter().map(|page| page.url.path_and_query().to_owned()));
        }
        proptest::prop_assert_eq!(listed, expected);

        for (number, url) in urls.iter().enumerate() {
            let version = VersionId(number as u64);
            let row = VersionRow {
                at_s: 9, version, status: 200, mime: "a/b".into(), bytes: 1,
                changed_permille: None,
            };
            let visit = VisitCommit::in_packs(site, url.clone(), row);
            state.commit(&[Change::Visit(Box::new(visit))]).unwrap();
        }
        let mut keys: Vec<UrlKey> = urls.iter().map(CanonicalUrl::key).collect();
        keys.sort_unstable();
        let found = state.urls("", "~", usize::MAX).unwrap();
        proptest::prop_assert_eq!(found.iter().map(CanonicalUrl::key).collect::<Vec<_>>(), keys);
        for url in &urls {
            let versions = state.versions(&url.key(), VersionQuery::default()).unwrap();
            proptest::prop_assert!(versions.iter().any(|(of, _)| of == url));
        }
    }

    /// Times are set near and far, again and again, while the queue is laid out.
    #[test]
    fn a_page_is_due_when_its_record_says_so_and_only_then(
        steps in proptest::collection::vec((0_usize..12, 0_i64..40, 0_i64..10), 1..120),
    ) {
        let state = SqliteState::in_memory(3600).unwrap();
        let top = CanonicalUrl::parse("http://e.com/").unwrap();
        let site = state.add_site("e", &SiteConditions::new(vec![top]), 0).unwrap().id;
        let found: Vec<Discovered> = (0..12)
            .map(|n| CanonicalUrl::parse(&format!("http://e.com/{n}")).unwrap())
            .map(|url| Discovered { url, depth: 1, hops: 0, due_s: Some(0) })
            .collect();
        let found = FoundPages { site, at_s: 0, pages: found };
        let new = state.commit(&[Change::Found(found)]).unwrap().new_pages;
        let pages: Vec<PageId> = new.iter().map(|new| new.due.page.id).collect();
        let mut due_s = [0; 12];
        let mut now_s = 0;
        for (page, hours, pass_hours) in steps {
            now_s += pass_hours * 3600;
            due_s[page] = now_s + hours * 3600;
            state.commit(&[Change::Due { page: pages[page], due_s: due_s[page] }]).unwrap();
            let query =
                DueQuery { until_s: now_s, per_server: 99, limit: 99, ..DueQuery::default() };
            let load = state.load_due(&query).unwrap();
            let mut loaded: Vec<PageId> = load.pages.iter().map(|due| due.page.id).collect();
            loaded.sort_unstable();
            let mut expected: Vec<PageId> =
                (0..12).filter(|&n| due_s[n] <= now_s).map(|n| pages[n]).collect();
            expected.sort_unstable();
            proptest::prop_assert_eq!(loaded, expected);
        }
        proptest::prop_assert_eq!(state.check().unwrap(), Vec::<String>::new());
    }
}

#[test]
fn an_opened_state_keeps_its_bucket_resolution() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.sqlite");
    drop(SqliteState::open(&path, 60).unwrap());
    assert_eq!(SqliteState::open(&path, 3600).unwrap().bucket_s(), 60);
}

#[test]
fn a_state_has_small_pages_until_it_is_large() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.sqlite");
    let state = SqliteState::open(&path, 3600).unwrap();
    let page_bytes = || {
        let read =
            |c: &Connection| c.pragma_query_value(None, "page_size", |row| row.get::<_, i64>(0));
        state.read(read).unwrap()
    };
    let add = |note: i64| {
        let add = "INSERT INTO notes VALUES (?1, 'long', ?2)";
        state.write("grown", |t| Ok(t.execute(add, (note, "x".repeat(4096)))?)).unwrap();
    };
    assert_eq!(page_bytes(), 512);
    let other = Connection::open(&path).unwrap();
    other.query_row("SELECT count(*) FROM notes", [], |row| row.get::<_, i64>(0)).unwrap();
    (0..300).for_each(add);
    assert_eq!(page_bytes(), 512, "another connection is in the way");
    drop(other);
    (300..700).for_each(add);
    assert_eq!(page_bytes(), 4096);
    let mode =
        |c: &Connection| c.pragma_query_value(None, "journal_mode", |row| row.get::<_, String>(0));
    assert_eq!(state.read(mode).unwrap(), "wal");
    let count = "SELECT count(*) FROM notes";
    let count = |c: &Connection| c.query_row(count, [], |row| row.get::<_, i64>(0));
    assert_eq!(state.read(count).unwrap(), 700);
    drop(state);
    let state = SqliteState::open(&path, 3600).unwrap();
    assert_eq!(state.read(count).unwrap(), 700);
    let files = std::fs::read_dir(folder.path()).unwrap().count();
    assert!(files <= 3, "{files} files");
}
