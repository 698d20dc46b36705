//! Tables for researchers, read back by DuckDB.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::{support::Nenrin, warc::collected};

/// What DuckDB counts; none if it is not there.
#[expect(clippy::print_stderr, reason = "a judge that was not asked must be noticed")]
fn judged(folder: &Path) -> Option<Value> {
    let environment = std::env::var_os("NENRIN_JUDGES")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target/judges"), PathBuf::from);
    let python = environment.join("bin/python");
    let has_duckdb = Command::new(&python).args(["-c", "import duckdb"]).output();
    if !has_duckdb.is_ok_and(|ran| ran.status.success()) {
        assert!(std::env::var_os("CI").is_none(), "no DuckDB at {}", environment.display());
        eprintln!("SKIPPED: no DuckDB at {}; scripts/test installs it", environment.display());
        return None;
    }
    let judge = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/judge_tables.py");
    let ran = Command::new(python).arg(judge).arg(folder).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    Some(serde_json::from_slice(&ran.stdout).unwrap())
}

fn export(nenrin: &Nenrin, folder: &Path) -> Value {
    nenrin.run(&["--json", "export", "parquet", folder.to_str().unwrap()]).expect(0).document()
}

/// What DuckDB counts is what the archive says of itself.
fn compare(nenrin: &Nenrin, folder: &Path) {
    let Some(found) = judged(folder) else { return };
    let stats = nenrin.run(&["--json", "stats"]).expect(0).document();
    let visits = nenrin.run(&["--json", "log", "--visits", "--limit", "100000"]).expect(0).lines();
    let sum: u64 = visits.iter().map(|visit| visit["received_bytes"].as_u64().unwrap()).sum();
    assert_eq!(found["visits"], visits.len());
    assert_eq!(found["distinct_visits"], visits.len());
    assert_eq!(found["received_bytes"], sum);
    assert_eq!(found["misplaced"], 0);
    for (outcome, count) in found["outcomes"].as_object().unwrap() {
        let of_log = visits.iter().filter(|visit| visit["outcome"] == **outcome).count();
        assert_eq!(*count, of_log, "{outcome}");
    }
    assert_eq!(found["versions"], stats["versions"], "{stats}");
    assert_eq!(found["version_rows"], stats["versions"]);
    assert_eq!(found["pages"], stats["pages"]);
    assert_eq!(found["page_visits"], visits.len());
    let sums = found["version_bytes"].as_object().unwrap();
    let some = sums.iter().filter(|(url, _)| url.ends_with('/') || url.ends_with("gzip"));
    for (url, bytes) in some {
        let versions = nenrin.versions(url);
        let sum: u64 = versions.iter().map(|version| version["bytes"].as_u64().unwrap()).sum();
        assert_eq!(*bytes, sum, "{url}");
    }
    assert!(found["top_links"].as_u64().unwrap() >= 60, "{found}");
    let titles = found["titles"].as_array().unwrap();
    assert_eq!(titles[0], "Front 0");
    assert_eq!(found["titles_gone"], titles.len() - 1);
}

#[test]
fn duckdb_counts_what_the_archive_has_and_a_second_run_writes_what_is_new() {
    let (nenrin, site) = collected(2);
    let folder = tempfile::tempdir().unwrap();
    let tables = folder.path().join("tables");
    let first = export(&nenrin, &tables);
    assert!(first["versions"].as_u64().unwrap() > 60, "{first}");
    compare(&nenrin, &tables);
    assert_eq!(export(&nenrin, &tables)["files"], 0);

    nenrin.collect(&[&site.top()]).expect(0);
    // What a run that was cut short left behind.
    let stray = tables.join("visits/month=2020-01/000099.parquet");
    std::fs::create_dir_all(stray.parent().unwrap()).unwrap();
    std::fs::write(&stray, b"half a file").unwrap();
    let second = export(&nenrin, &tables);
    assert!(!stray.exists());
    let (versions, before) = (second["versions"].as_u64(), first["versions"].as_u64());
    assert!(versions > Some(0) && versions < before, "{first}, then {second}");
    compare(&nenrin, &tables);

    let foreign = folder.path().join("foreign");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("thesis.txt"), b"mine").unwrap();
    let refused = nenrin.run(&["export", "parquet", foreign.to_str().unwrap()]);
    assert!(refused.stderr.contains("name another folder"), "{}", refused.stderr);
    assert_eq!(std::fs::read_dir(&foreign).unwrap().count(), 1);
}
