//! What people type wrongly: exit code, words, and an archive that is left as it was.

use crate::support::{Kept, Nenrin};

/// Runs a command that can't be right.
#[track_caller]
fn refused(args: &[&str], words: &[&str]) {
    let kept = Kept::new();
    kept.nenrin.run(args).expect_said(2, words);
    kept.assert_intact();
    let sites = kept.nenrin.run(&["site", "list", "--json"]).expect(0).lines();
    assert_eq!(sites.len(), 1, "nothing was registered");
}

#[test]
fn an_unknown_scheme_is_refused() {
    refused(&["collect", "gopher://example.com/"], &["gopher", "http"]);
}

#[test]
fn what_is_no_url_is_refused() {
    refused(&["collect", "http://"], &["http://"]);
    refused(&["collect", "http://a b/"], &["a b"]);
    refused(&["versions", "http://[::1/"], &["[::1"]);
}

#[test]
fn one_bad_url_among_good_ones_stops_before_anything_is_done() {
    refused(&["collect", "http://127.0.0.1:9/", "ftp://example.com/"], &["ftp"]);
}

#[test]
fn a_bad_date_is_refused() {
    refused(&["cat", "http://example.com/", "--at", "yesterday"], &["yesterday", "2024"]);
    refused(&["versions", "http://example.com/", "--from", "2024-13-01"], &["2024-13-01"]);
}

#[test]
fn a_bad_duration_is_refused() {
    refused(&["collect", "http://example.com/", "--delay", "soon"], &["soon", "90s"]);
}

#[test]
fn a_bad_scope_is_refused() {
    refused(&["collect", "http://example.com/", "--scope", "world"], &["world", "prefix"]);
}

#[test]
fn a_depth_of_nothing_is_refused() {
    refused(&["collect", "http://example.com/", "--depth", "0"], &["0", "depth"]);
}

#[test]
fn an_unknown_field_of_the_configuration_is_refused() {
    let kept = Kept::new();
    let config = kept.nenrin.file("nenrin.toml", "[politeness]\ndelai = \"1s\"\n");
    let words = ["delai", "nenrin.toml", "delay"];
    kept.nenrin.run(&["--config", &config, "stats"]).expect_said(2, &words);
    kept.assert_intact();
}

#[test]
fn the_printed_configuration_can_be_read_back() {
    let kept = Kept::new();
    let changed = "contact = \"say \\\"hello\\\"\"\n[crawl]\norder = \"bf\"\n[politeness]\n\
                   delay = \"7s\"\nresponse_factor = 3.0\n[serve]\npublic_reading = true\n\
                   host_names = [\"archive.example\"]\n";
    for text in ["", changed] {
        let config = kept.nenrin.file("nenrin.toml", text);
        let printed = kept.nenrin.run(&["--config", &config, "config"]).expect(0).text();
        let again = kept.nenrin.file("again.toml", &printed);
        assert_eq!(kept.nenrin.run(&["--config", &again, "config"]).expect(0).text(), printed);
        assert_eq!(printed.matches("# default").count(), if text.is_empty() { 0 } else { 6 });
    }
}

#[test]
fn secrets_are_not_printed() {
    let kept = Kept::new();
    let config = kept.nenrin.file(
        "nenrin.toml",
        "[serve]\npassword = \"$argon2id$hash\"\n[[webhook]]\nurl = \"http://e.com/\"\n\
         secret = \"sixteen characters\"\n",
    );
    let printed = kept.nenrin.run(&["--config", &config, "config"]).expect(0).text();
    assert!(!printed.contains("argon2id") && !printed.contains("sixteen"), "{printed}");
    let again = kept.nenrin.file("again.toml", &printed);
    kept.nenrin.run(&["--config", &again, "config"]).expect(0);
}

#[test]
fn a_configuration_that_is_not_there_is_named() {
    refused(&["--config", "no-such.toml", "stats"], &["no-such.toml"]);
}

#[test]
fn a_file_in_place_of_the_archive_is_named() {
    let nenrin = Nenrin::new();
    let file = nenrin.file("not-a-folder", "text");
    for command in [&["collect", "http://example.com/"][..], &["stats"]] {
        let args = [&["--archive", &file], command].concat();
        nenrin.run(&args).expect_said(2, &["not-a-folder", "--archive"]);
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"text");
}

#[test]
fn an_archive_that_is_not_there_is_not_made_by_looking() {
    let nenrin = Nenrin::new();
    for command in ["stats", "verify", "log", "pages"] {
        nenrin.run(&[command]).expect_said(2, &["no archive", "--archive", "nenrin collect"]);
    }
    assert!(!nenrin.archive().exists());
}

#[test]
fn a_page_that_is_not_archived_is_named() {
    refused(&["cat", "http://example.com/none"], &["http://example.com/none", "nenrin collect"]);
    refused(&["versions", "http://example.com/none"], &["http://example.com/none"]);
}

#[test]
fn a_site_that_is_not_there_is_named() {
    refused(&["site", "show", "nobody"], &["nobody"]);
    refused(&["log", "--site", "nobody"], &["nobody"]);
}

#[test]
fn a_date_before_the_first_version_says_when_that_was() {
    let kept = Kept::new();
    let year = kept.nenrin.versions(&kept.url())[0]["timestamp"].as_str().unwrap()[..4].to_owned();
    let asked = kept.nenrin.run(&["cat", &kept.url(), "--at", "1999"]);
    asked.expect_said(2, &["1999", &year]);
    kept.assert_intact();
}

#[test]
fn an_address_that_is_registered_is_not_added_twice_by_accident() {
    let nenrin = Nenrin::new();
    nenrin.run(&["site", "add", "https://example.com/", "--manual"]).expect(0);
    for address in ["https://example.com/", "example.com", "https://EXAMPLE.com"] {
        let ways = [
            "already the site `example.com`",
            "site show 1",
            "site set 1",
            "nenrin collect",
            "--name",
        ];
        nenrin.run(&["site", "add", address]).expect_said(2, &ways);
    }
    assert_eq!(nenrin.run(&["site", "list", "--json"]).expect(0).lines().len(), 1);
    nenrin.run(&["site", "add", "example.com", "--name", "by hand", "--manual"]).expect(0);
    let names = nenrin.run(&["site", "list", "--json"]).expect(0).lines();
    assert_eq!(
        names.iter().map(|site| site["name"].as_str()).collect::<Vec<_>>(),
        [Some("example.com"), Some("by hand")]
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_configuration_without_end_is_refused() {
    refused(&["--config", "/dev/zero", "stats"], &["/dev/zero", "larger than 1 MiB"]);
}
