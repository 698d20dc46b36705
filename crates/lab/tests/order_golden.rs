//! The experiment of paper 003 against the reference results that come with the graphs.

use std::path::PathBuf;

use nenrin_lab::order::{
    Graph, GraphSource, OrderOptions, OrderReport, SyntheticWeb, WebKind, run,
};
use nenrin_order::Strategy;

/// The folder of graphs, if this machine has it.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn graphs() -> Option<PathBuf> {
    let data = std::env::var_os("NENRIN_DATA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")),
        PathBuf::from,
    );
    let graphs = data.join("graphs");
    if graphs.is_dir() {
        return Some(graphs);
    }
    eprintln!("SKIPPED: {} is not there; set NENRIN_DATA", graphs.display());
    None
}

fn run_on(source: GraphSource, start: u32, interleave: bool, names: &[&str]) -> OrderReport {
    let strategies = names.iter().map(|name| name.parse().expect("a known strategy")).collect();
    let options = OrderOptions { source, start, strategies, interleave, out: None };
    run(&options, &mut |_| {}).expect("the experiment runs")
}

/// Name, beginning of `order_sha256`, A (top 1% at 10%), B (at 30%), C.
type Expected = (&'static str, &'static str, f64, f64, f64);

fn assert_matches(report: &OrderReport, expected: &[Expected]) {
    for (result, (name, sha256, a, b, c)) in report.strategies.iter().zip(expected) {
        assert_eq!(result.strategy.name(), *name);
        assert!(result.order_sha256.starts_with(sha256), "{name}: {}", result.order_sha256);
        let measures = &result.measures;
        for (measured, expected) in [(measures.a[1][1], a), (measures.b[3], b), (measures.c, c)] {
            assert!((measured - expected).abs() < 0.001, "{name}: {measured} is not {expected}");
        }
    }
}

#[test]
fn hollins_is_crawled_in_the_reference_orders() {
    let Some(graphs) = graphs() else { return };
    let expected = [
        ("bf", "24a2b623a34e", 0.350, 0.392, 0.5862),
        ("blc", "ecbb651553fc", 0.417, 0.412, 0.5963),
        ("pr", "c10cc07fa834", 0.383, 0.465, 0.3556),
        ("ipr-dl1", "84c3f7d8c690", 0.367, 0.467, 0.3846),
        ("ipr-pl", "0652017c7de5", 0.400, 0.462, 0.3628),
        ("ipr-vr", "84c3f7d8c690", 0.367, 0.467, 0.3846),
        ("ipr-ar", "a729e67dd25c", 0.367, 0.455, 0.3771),
        ("omniscient", "b6955a83db", 0.450, 0.497, 0.2320),
    ];
    let names: Vec<&str> = expected.iter().map(|row| row.0).chain(["auto"]).collect();
    let source = GraphSource::File {
        edges: graphs.join("hollins.edges.zst"),
        urls: Some(graphs.join("hollins.urls.zst")),
    };
    let report = run_on(source, 0, false, &names);
    assert_matches(&report, &expected);
    let auto = &report.strategies[expected.len()];
    assert!(auto.measures.c <= 0.355, "C {}", auto.measures.c);
    assert!(auto.measures.a[1][1] >= 0.366, "A {}", auto.measures.a[1][1]);
    assert!(auto.additions <= 5 * 23_849, "{} additions", auto.additions);
}

#[test]
fn cnr_2000_is_crawled_in_the_reference_order_and_auto_is_better() {
    let Some(graphs) = graphs() else { return };
    let source = GraphSource::File { edges: graphs.join("cnr-2000.edges.zst"), urls: None };
    let report = run_on(source, 286_670, false, &["ipr-dl1", "auto"]);
    assert_matches(&report, &[("ipr-dl1", "03babf920665", 0.3179, 0.503, 0.3974)]);
    let auto = &report.strategies[1];
    assert!(auto.measures.c <= 0.375, "C {}", auto.measures.c);
    let dl1 = &report.strategies[0];
    assert!(auto.measures.a[1][1] >= dl1.measures.a[1][1], "A {}", auto.measures.a[1][1]);
    assert!(auto.additions <= 5 * 3_128_710, "{} additions", auto.additions);
}

#[test]
fn with_many_servers_in_turn_auto_is_better_than_breadth_first_on_every_criterion() {
    for seed in [1, 2] {
        let source =
            GraphSource::Synthetic(SyntheticWeb { kind: WebKind::Servers, pages: 50_000, seed });
        let report = run_on(source, 0, true, &["bf", "auto"]);
        let [bf, auto] = &report.strategies[..] else { panic!("two were requested") };
        assert!(auto.measures.a[1][1] > bf.measures.a[1][1], "A, seed {seed}");
        assert!(auto.measures.b[3] > bf.measures.b[3], "B, seed {seed}");
        assert!(auto.measures.c < bf.measures.c, "C, seed {seed}");
    }
}

#[test]
fn auto_has_less_error_than_depth_limit_1_and_ar_on_every_kind_of_web() {
    for kind in [WebKind::Servers, WebKind::PowerLaw, WebKind::Chains] {
        let source = GraphSource::Synthetic(SyntheticWeb { kind, pages: 10_000, seed: 5 });
        let report = run_on(source, 0, false, &["ipr-dl1", "ipr-ar", "auto"]);
        let [dl1, ar, auto] = &report.strategies[..] else { panic!("three were requested") };
        assert!(auto.measures.c < dl1.measures.c, "{kind:?}");
        assert!(auto.measures.c < ar.measures.c, "{kind:?}");
        assert!(auto.additions <= 5 * dl1.additions, "{kind:?}");
    }
}

#[test]
fn the_answer_has_the_fields_that_programs_read() {
    let graph = Graph::from_links([vec![1, 2], vec![2], vec![0]]);
    let source = GraphSource::Given("triangle".into(), graph);
    let json = run_on(source, 0, false, &["bf", "auto"]).to_json();
    assert_eq!((json["pages"].as_u64(), json["links"].as_u64()), (Some(3), Some(4)));
    let auto = &json["strategies"][1];
    assert_eq!(auto["name"], "auto");
    for top in ["0.1", "1", "10"] {
        assert_eq!(auto["a"][top].as_array().map(Vec::len), Some(5));
    }
    assert_eq!(auto["b"].as_array().map(Vec::len), Some(5));
    for number in ["c", "additions", "pages_per_second"] {
        assert!(auto[number].is_number(), "{number}");
    }
    assert_eq!(auto["order_sha256"].as_str().map(str::len), Some(64));
}

#[test]
fn the_report_has_the_figures_of_the_paper() {
    let dir = tempfile::tempdir().unwrap();
    let options = OrderOptions {
        source: GraphSource::Synthetic(SyntheticWeb {
            kind: WebKind::Servers,
            pages: 2_000,
            seed: 1,
        }),
        start: 0,
        strategies: Strategy::ALL.to_vec(),
        interleave: false,
        out: Some(dir.path().to_owned()),
    };
    run(&options, &mut |_| {}).unwrap();
    let html = std::fs::read_to_string(dir.path().join("report.html")).unwrap();
    for figure in 4..=10 {
        assert!(html.contains(&format!("Figure {figure}")), "figure {figure}");
    }
    assert!(dir.path().join("results.json").exists());
}

#[test]
fn a_start_outside_of_the_graph_is_refused() {
    let source = GraphSource::Given("one".into(), Graph::from_links([vec![]]));
    let options = OrderOptions {
        source,
        start: 1,
        strategies: vec![Strategy::Auto],
        interleave: false,
        out: None,
    };
    let error = run(&options, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("no page 1") && error.contains("0 to 0"), "{error}");
}

#[test]
fn a_file_that_is_not_a_graph_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.edges.zst");
    let whole =
        zstd::encode_all(&b"WGRAPH1\n\x02\0\0\0\x01\0\0\0\0\0\0\0\x01\x02\0"[..], 3).unwrap();
    std::fs::write(&path, whole).unwrap();
    let graph = Graph::read(&path, None).unwrap();
    assert_eq!((graph.pages(), graph.links(), graph.targets(0)), (2, 1, &[1][..]));
    let damaged: [(&str, &[u8]); 5] = [
        ("magic", b"WGRAPH2\n\x02\0\0\0\x01\0\0\0\0\0\0\0\x01\x02\0"),
        ("cut short", b"WGRAPH1\n\x02\0\0\0\x01\0\0\0\0\0\0\0\x01"),
        ("link to no page", b"WGRAPH1\n\x02\0\0\0\x01\0\0\0\0\0\0\0\x01\x04\0"),
        ("too many links", b"WGRAPH1\n\x02\0\0\0\x01\0\0\0\0\0\0\0\x02\x02\x01\0"),
        ("too many pages", b"WGRAPH1\n\xff\xff\xff\xff\x01\0\0\0\0\0\0\0\x01\x02\0"),
    ];
    for (damage, bytes) in damaged {
        std::fs::write(&path, zstd::encode_all(bytes, 3).unwrap()).unwrap();
        assert!(Graph::read(&path, None).is_err(), "{damage}");
    }
}
