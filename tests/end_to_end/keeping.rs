//! What visits take, and how much is kept: the storage experiment, quotas and pruning.

use std::fs;

use serde_json::Value;

use crate::support::{Nenrin, Reply, Site, get, until};

#[test]
fn the_storage_experiment_measures_import_compact_and_export_on_a_folder_of_visits() {
    let nenrin = Nenrin::new();
    let corpus = tempfile::tempdir().unwrap();
    let paragraph = "<p>Every page of this site begins with the same sentence.</p>\n".repeat(30);
    for visit in 1..=3 {
        for (path, body) in [
            ("index.html", format!("{paragraph}<p>visit {visit}</p>")),
            ("deep/a b.html", paragraph.clone()),
            ("logo.png", "\u{1}not a picture".repeat(20)),
        ] {
            let file = corpus.path().join(format!("small/{visit}")).join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, body).unwrap();
        }
    }
    let (from, out) = (corpus.path().to_str().unwrap(), tempfile::tempdir().unwrap());
    let to = out.path().to_str().unwrap();
    let args = ["--json", "lab", "storage", "--corpus", from, "--overlap", "--out", to];
    let results = nenrin.run(&args).expect(0).document();
    assert_eq!(results["ours"]["is_identical"], true);
    let site = &results["sites"][0];
    assert_eq!(site["raw"].as_array().unwrap().len(), 3);
    let new: Vec<u64> =
        site["ours"]["by_visit"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
    assert!(new[0] > new[1] && new[0] > new[2], "{new:?}");
    let ways = site["others"]["ways"].as_array().unwrap();
    for way in ["zip", "tar.gz -9", "zstd -19 per file", "WARC.gz", "zstd -19 solid"] {
        assert!(ways.iter().any(|found| found["name"] == way), "{way}");
    }
    let runs = results["overlap"]["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    // The list of files and three files, three times; robots.txt is no visit.
    assert!(runs.iter().all(|run| run["visits"] == 12), "{runs:?}");
    assert!(fs::read_to_string(out.path().join("report.html")).unwrap().contains("(fig. 10)"));
    let text = nenrin.run(&["lab", "storage", "--corpus", from]).expect(0).text();
    assert!(text.contains("byte for byte") && text.contains("Nenrin, compacted"), "{text}");
    nenrin.run(&["lab", "storage", "--corpus", to]).expect(2);
}

#[test]
fn versions_are_thinned_out_by_rule_and_the_rest_comes_back() {
    let nenrin = Nenrin::new();
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().to_str().unwrap();
    for day in 1..=9 {
        fs::write(folder.path().join("a.html"), format!("<p>day {day}</p>")).unwrap();
        let at = format!("2024-01-0{day}");
        nenrin.run(&["import", "mirror", from, "--url", "http://p.test/", "--at", &at]).expect(0);
    }
    let url = "http://p.test/a.html";
    assert_eq!(nenrin.versions(url).len(), 9);
    nenrin.run(&["prune"]).expect_said(2, &["no site has a rule"]);
    let rule = ["--keep-all-for", "30d", "--then", "one-per-week"];
    let dry: Vec<&str> = ["--json", "prune", "--dry-run"].into_iter().chain(rule).collect();
    let would = nenrin.run(&dry).expect(0).lines().remove(0);
    assert_eq!((&would["versions_before"], &would["versions_pruned"]), (&9.into(), &6.into()));
    assert_eq!(nenrin.versions(url).len(), 9, "nothing was changed");
    // The week from Monday 1 January ends on the 7th; the first and the newest stay as well.
    nenrin.run(&["site", "set", "p.test", "--prune", "30d,week"]).expect(0);
    nenrin.run(&["prune"]).expect(0);
    let days = |at: &str| {
        let body = nenrin.run(&["cat", url, "--at", at]).expect(0).text();
        body.trim_start_matches("<p>day ").trim_end_matches("</p>").to_owned()
    };
    assert_eq!(nenrin.versions(url).len(), 3);
    assert_eq!(
        ["2024-01-01", "2024-01-05", "2024-01-07", "2024-01-20"].map(days),
        ["1", "1", "7", "9"]
    );
    nenrin.run(&["compact"]).expect(0);
    nenrin.assert_sound();
    nenrin.run(&["reindex"]).expect(0);
    assert_eq!(nenrin.versions(url).len(), 3);
    let removals = nenrin.run(&["site", "removals"]).expect(0).text();
    assert!(removals.contains("6 versions pruned") && removals.contains("30d,week"), "{removals}");
}

fn large_pages() -> Site {
    Site::serve(|request| match request.path.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        "/" => Reply::html((0..60).map(|n| format!("<a href=/{n}>x</a>")).collect::<String>()),
        path => {
            // Nothing that any compressor could take away.
            let noise = (0..2_000_u64).map(|n| {
                let seed = path.len() as u64 * 7_919 + path.as_bytes()[1] as u64 * 104_729 + n;
                format!("{:016x}", seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29))
            });
            Reply::html(noise.collect::<String>())
        }
    })
}

#[test]
fn a_site_pauses_at_its_quota_says_why_and_goes_on_when_it_is_raised() {
    let nenrin = Nenrin::new();
    let site = large_pages();
    let top = site.top();
    let args = ["collect", &top, "--allow-private", "--delay", "100ms", "--quota", "10kB"];
    let failed = nenrin.run(&args).expect(3);
    assert!(failed.said().contains("has reached its quota"), "{}", failed.said());
    nenrin.assert_sound();
    let listed = nenrin.run(&["site", "list"]).expect(0).text();
    assert!(listed.contains("paused: quota reached"), "{listed}");
    let asked = site.requests().len();
    nenrin.run(&["collect", &top]).expect(3);
    assert!(site.requests().len() <= asked + 3, "next to nothing more is asked for");
    nenrin.run(&["collect", &top, "--delay", "0ms", "--quota", "0"]).expect(0);
    assert!(!nenrin.run(&["site", "list"]).expect(0).text().contains("quota"));
    assert_eq!(site.asked()["/59"], 1);
}

#[test]
fn a_running_archive_pauses_at_its_quota_and_shows_it_in_the_metrics() {
    let nenrin = Nenrin::new();
    let site = large_pages();
    let config = "[disk]\nquota = \"200kB\"\n[serve]\ninterface = \"127.0.0.1:0\"\nreplay = \"127.0.0.1:0\"\n[politeness]\ndelay = \"200ms\"\n";
    let file = nenrin.file("quota.toml", config);
    nenrin.run(&["site", "add", &site.top(), "--allow-private"]).expect(0);
    let running = nenrin.start(&["--config", &file, "--json", "run"]);
    let interface = running.first_line()["interface"].as_str().unwrap().to_owned();
    until("the quota is reached", || {
        get(&format!("{interface}metrics")).2.contains("nenrin_quota_reached{site=\"\"}")
    });
    let before = site.requests().len();
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert!(site.requests().len() <= before + 2);
    assert!(running.stderr().contains("the archive has reached its quota"));
    running.kill();
    nenrin.assert_sound();
}
