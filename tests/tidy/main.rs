//! Facts about the repository that no compiler checks: which crate may know which, that links in
//! documents lead somewhere, that nothing was left behind.

mod modules;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::Command,
};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Files that git knows or would know, with their text if they are text.
fn files() -> Vec<PathBuf> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git lists the repository's files");
    let listed = String::from_utf8_lossy(&output.stdout);
    listed.lines().map(PathBuf::from).filter(|path| root().join(path).is_file()).collect()
}

fn text(path: &Path) -> Option<String> {
    std::fs::read_to_string(root().join(path)).ok()
}

/// Crates in layers: each may know those of lower layers that it is allowed to, and no others.
fn allowed() -> BTreeMap<&'static str, Vec<&'static str>> {
    // What all may know: URLs, the calendar, and the deciders, which know nothing else.
    let deciders = ["urls", "calendar", "order", "revisit", "structure"];
    let mut allowed: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for pure in deciders {
        allowed.insert(pure, vec![]);
    }
    allowed.insert("revisit", vec!["calendar"]);
    for part in ["frontier", "extract", "store", "warc"] {
        allowed.insert(part, deciders.to_vec());
    }
    // Reasons are data; `lang` has their type and their words.
    for part in ["fetch", "state"] {
        allowed.insert(part, deciders.into_iter().chain(["lang"]).collect());
    }
    let parts = ["frontier", "fetch", "extract", "store", "state", "warc"];
    let joined: Vec<&str> = deciders.into_iter().chain(parts).chain(["lang"]).collect();
    allowed.insert("crawl", joined.clone());
    let readers = vec![
        "lang",
        "urls",
        "calendar",
        "store",
        "state",
        "extract",
        "warc",
        "revisit",
        "order",
        "structure",
        "archive",
    ];
    allowed.insert("replay", readers.clone());
    allowed.insert("search", readers.clone());
    allowed.insert("web", readers.into_iter().chain(["search"]).collect());
    // A browser that gets all its answers from its caller.
    allowed.insert("render", vec!["urls"]);
    let library = joined.iter().copied().chain(["crawl", "lang", "render"]);
    allowed.insert("archive", library.collect());
    // Messages about what happened: it knows the library, and nothing knows it but the program.
    allowed.insert("notify", joined.iter().copied().chain(["archive"]).collect());
    let everything: Vec<&str> =
        joined.iter().copied().chain(["crawl", "archive", "replay", "search", "web"]).collect();
    allowed.insert("lab", everything.clone());
    // It is for tests and the fuzzer; nothing of the product may know it.
    allowed.insert("checks", everything);
    allowed.insert("lang", vec![]);
    // It drives a browser in tests; nothing of the product may know it.
    allowed.insert("browser", vec!["render"]);
    allowed
}

#[test]
fn dependencies_point_downwards_only() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo tells the workspace's packages");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let allowed = allowed();
    let mut checked = 0;
    for package in metadata["packages"].as_array().unwrap() {
        let Some(name) = package["name"].as_str().unwrap().strip_prefix("nenrin-") else {
            continue;
        };
        let may =
            allowed.get(name).unwrap_or_else(|| panic!("crate {name} has no place in the layers"));
        for dependency in package["dependencies"].as_array().unwrap() {
            let dev = dependency["kind"].as_str() == Some("dev");
            let known = dependency["name"].as_str().unwrap();
            if let Some(known) = known.strip_prefix("nenrin-").filter(|_| !dev) {
                assert!(may.contains(&known), "crate {name} must not know {known}");
                checked += 1;
            }
        }
    }
    assert!(checked > 10, "the check saw only {checked} dependencies");
}

#[test]
fn every_build_script_was_read() {
    let host = Command::new("rustc").arg("-vV").output().expect("the compiler says where it is");
    let host = String::from_utf8_lossy(&host.stdout).into_owned();
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline", "--locked"])
        .args(["--filter-platform", host])
        .current_dir(root())
        .output()
        .expect("cargo tells all packages");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let has_script = |package: &&serde_json::Value| {
        let targets = package["targets"].as_array().unwrap();
        targets.iter().any(|target| target["kind"][0] == "custom-build")
    };
    let packages = metadata["packages"].as_array().unwrap().iter().filter(has_script);
    let found: BTreeSet<&str> = packages.map(|p| p["name"].as_str().unwrap()).collect();
    assert!(found.len() > 10, "the check saw only {found:?}");
    let list = text(Path::new("tests/tidy/build-scripts.txt")).unwrap();
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    let read: BTreeSet<&str> = lines.filter_map(|line| line.split(' ').next()).collect();
    let unread: Vec<_> = found.difference(&read).collect();
    assert!(unread.is_empty(), "read the build scripts of {unread:?}, then list them");
}

#[test]
fn every_crate_begins_with_what_to_read() {
    let headers: Vec<PathBuf> =
        files().into_iter().filter(|path| path.ends_with("src/lib.rs")).collect();
    assert!(headers.len() > 5);
    for path in headers {
        let header = text(&path).unwrap();
        assert!(header.starts_with("//!"), "{} has no header", path.display());
        assert!(header.contains("Read in this order"), "{} names no reading order", path.display());
    }
}

/// The names by which headings of a document are linked to.
fn headings(document: &str) -> BTreeSet<String> {
    let mut is_code = false;
    let mut found = BTreeSet::new();
    for line in document.lines() {
        is_code ^= line.starts_with("```");
        let heading =
            line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'));
        let Some(heading) = heading.filter(|_| !is_code) else { continue };
        let letters = heading.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let name: String = letters.flat_map(char::to_lowercase).collect();
        found.insert(name.replace(' ', "-"));
    }
    found
}

#[test]
fn links_in_documents_lead_somewhere() {
    let mut checked = 0;
    for path in files().iter().filter(|path| path.extension().is_some_and(|e| e == "md")) {
        let document = text(path).unwrap();
        for link in document.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (target, heading) = link.split_once('#').unwrap_or((link, ""));
            let file = match target {
                "" => path.clone(),
                target => path.parent().unwrap_or(Path::new("")).join(target),
            };
            assert!(root().join(&file).exists(), "{}: {link}", path.display());
            if !heading.is_empty() && file.extension().is_some_and(|e| e == "md") {
                let found = headings(&text(&file).unwrap());
                assert!(found.contains(heading), "{}: {link}: no such heading", path.display());
            }
            checked += 1;
        }
    }
    assert!(checked > 5, "the check saw only {checked} links");
}

#[test]
fn the_walk_of_one_visit_names_functions_that_exist() {
    let document = text(Path::new("ARCHITECTURE.md")).unwrap();
    let walk = document.split("\n## ").find(|part| part.starts_with("One visit")).unwrap();
    let steps = (1..).take_while(|step| walk.contains(&format!("\n{step}. "))).count();
    assert!((8..=12).contains(&steps), "the walk has {steps} steps");
    // Named as `path/to/file.rs: function`.
    let named: Vec<(&str, &str)> =
        walk.split('`').filter_map(|quoted| quoted.split_once(".rs: ")).collect();
    assert!(named.len() > steps, "the walk names only {} functions", named.len());
    for (file, function) in named {
        let source = text(&PathBuf::from(format!("{file}.rs")));
        let source = source.unwrap_or_else(|| panic!("there is no file {file}.rs"));
        let is_there = |end: char| source.contains(&format!("fn {function}{end}"));
        assert!(is_there('(') || is_there('<'), "{file}.rs has no function {function}");
    }
}

#[test]
fn nothing_is_left_behind() {
    // Written apart, so that this file does not find itself.
    let markers = [["TO", "DO"], ["FIX", "ME"], ["XX", "X:"], ["HA", "CK:"], ["<<<<", "<<<"]];
    let markers: Vec<String> = markers.iter().map(|parts| parts.concat()).collect();
    for path in files()
        .iter()
        .filter(|p| p.extension().is_some_and(|e| e == "rs" || e == "md" || e == "toml"))
    {
        let Some(document) = text(path) else { continue };
        for marker in &markers {
            assert!(!document.contains(marker), "{} holds {marker}", path.display());
        }
    }
}

#[test]
fn no_file_is_large() {
    const LIMIT_BYTES: u64 = 300_000;
    for path in files() {
        let bytes = std::fs::metadata(root().join(&path)).unwrap().len();
        let lock = path.ends_with("Cargo.lock");
        assert!(bytes <= LIMIT_BYTES || lock, "{} has {bytes} bytes", path.display());
    }
}

#[test]
fn names_that_say_nothing_are_not_used() {
    let empty: BTreeSet<&str> = ["utils", "util", "helpers", "misc", "common", "manager"].into();
    let in_source = |path: &&PathBuf| path.components().any(|part| part.as_os_str() == "src");
    for path in
        files().iter().filter(|path| path.extension().is_some_and(|e| e == "rs")).filter(in_source)
    {
        for part in path.with_extension("").components() {
            let part = part.as_os_str().to_string_lossy().into_owned();
            assert!(!empty.contains(part.as_str()), "{} is named after nothing", path.display());
        }
    }
}

#[test]
fn only_the_edges_ask_for_time_or_open_sockets() {
    // clippy enforces the bans; this keeps the list of edges short and known.
    let mut edges = BTreeSet::new();
    for path in files().iter().filter(|path| path.extension().is_some_and(|e| e == "rs")) {
        let in_source = path.components().any(|part| part.as_os_str() == "src");
        let marks = text(path).is_some_and(|t| t.contains("expect(clippy::disallowed_methods"));
        if in_source && marks {
            edges.insert(path.to_string_lossy().into_owned());
        }
    }
    // The lab's stopwatches measure speed, the store's how long a picture takes to give back: neither
    // decides about content. Proxies and clients of tests connect to their servers, a test of the
    // store's effort counts from any moment, and one of commits that wait has a clock.
    let known: BTreeSet<String> = [
        "src/clock.rs",
        "crates/archive/src/committing/tests.rs",
        "crates/fetch/src/http.rs",
        "crates/fetch/src/http/tests/roads.rs",
        "crates/lab/src/order/speed.rs",
        "crates/lab/src/storage/clock.rs",
        "crates/render/src/proxy.rs",
        "crates/state/src/postgres/tests.rs",
        "crates/store/src/backend/server.rs",
        "crates/store/src/effort.rs",
        "crates/store/src/recode/mod.rs",
        "crates/web/src/serving.rs",
    ]
    .map(str::to_owned)
    .into();
    assert_eq!(edges, known);
}

#[test]
fn memory_is_touched_by_hand_in_one_place_only() {
    let is_unsafe = |path: &&PathBuf| {
        let in_source = path.components().any(|part| part.as_os_str() == "src");
        in_source && text(path).is_some_and(|t| t.contains("(unsafe_code"))
    };
    let files = files();
    let unsafe_files: Vec<&PathBuf> = files.iter().filter(is_unsafe).collect();
    assert_eq!(unsafe_files, [Path::new("src/main.rs")]);
}

#[test]
fn modules_use_each_other_in_one_direction_only() {
    for name in ["archive", "crawl", "replay", "search", "state", "store"] {
        let modules = modules::Modules::read(&root().join("crates").join(name).join("src"));
        assert!(modules.count() > 5, "the check saw only {} modules of {name}", modules.count());
        assert_eq!(modules.cycles(), Vec::<String>::new(), "modules of {name} use each other");
    }
}

#[test]
fn a_cycle_among_modules_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("lib.rs", "mod a;\nmod b;\npub use a::{A, make};\npub use b::*;\n");
    write("a.rs", "use crate::B;\npub struct A(B);\npub fn make() {}\n");
    write("b.rs", "pub struct B;\n");
    let cycles = || modules::Modules::read(folder.path()).cycles();
    assert_eq!(cycles(), Vec::<String>::new());
    write("b.rs", "use crate::{x::Y, make};\npub struct B;\n");
    assert_eq!(cycles(), ["crate::: [\"a\", \"b\"]"]);
}

/// A contract that grows is cut again before it becomes the one everything passes through.
#[test]
fn no_contract_has_many_methods() {
    const METHODS_MAX: usize = 16;
    let mut traits = 0;
    for path in files().iter().filter(|path| path.extension().is_some_and(|e| e == "rs")) {
        let Some(text) = text(path) else { continue };
        for found in text.split("\npub trait ").skip(1) {
            traits += 1;
            let body = found.split("\n}").next().unwrap_or_default();
            let methods = body.lines().filter(|line| line.starts_with("    fn ")).count();
            let name = found.split([' ', ':', '<']).next().unwrap_or_default();
            assert!(methods <= METHODS_MAX, "{}: {name} has {methods} methods", path.display());
        }
    }
    assert!(traits > 5, "the check saw only {traits} traits");
}

/// What is not command line, configuration, terminal output, driver or clock belongs to a crate.
#[test]
fn the_command_line_stays_small() {
    const LINES_MAX: usize = 6_500;
    let is_of_binary = |path: &&PathBuf| path.starts_with("src");
    let lines: usize = files()
        .iter()
        .filter(is_of_binary)
        .filter_map(|path| text(path))
        .map(|text| text.lines().count())
        .sum();
    assert!(lines > 1_000, "the check saw only {lines} lines");
    assert!(lines <= LINES_MAX, "src/ has {lines} lines");
}
