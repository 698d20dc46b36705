//! The schedules of 300 pages under six settings, slot by slot.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails where data is odd")]
#![expect(clippy::approx_constant, reason = "a measured figure resembles a constant")]

use std::path::PathBuf;

use nenrin_lab::revisit::{Measures, Walk, walk};
use nenrin_lab::updates::{LoggedPage, UpdateLog, Window};
use nenrin_revisit::{Limits, PageHistory, PolicySpec};
use serde_json::Value;

const DAY_S: i64 = 86_400;

fn data(file: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("NENRIN_DATA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")),
        PathBuf::from,
    );
    let path = folder.join("updates").join(file);
    if path.exists() {
        return Some(path);
    }
    eprintln!("SKIPPED: {} is not there; set NENRIN_DATA", path.display());
    None
}

/// Our names of the settings, by the names in the file.
const SETTINGS: [(&str, &str); 6] = [
    ("MLE.mix(0.1-10,2nd=7)", "mle.mix(0.1-10,2nd=7d)"),
    ("MLE.mix(0.1-10,2nd=15)+LM", "mle.mix(0.1-10,2nd=15d,lm)"),
    ("MLE.min(0.5-2,2nd=7)", "mle.min(0.5-2,2nd=7d)"),
    ("MLE.avg(0.1-10,2nd=7,x0.5)", "mle.avg(0.1-10,2nd=7d,x0.5)"),
    ("AIMD(d=1,r=0.5,init=7)", "aimd(d=1d,r=0.5)"),
    ("AIMD(d=1/2,r=0.75,init=7)", "aimd(d=1/2d,r=0.75)"),
];

fn numbers(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as u32).collect()
}

/// Every visit and every version got, in slots after the first visit.
fn schedule(page: &LoggedPage, spec: &PolicySpec) -> (Vec<u32>, Vec<u32>) {
    let mut policy = spec.build(Limits::experiment(DAY_S));
    let mut history = PageHistory::default();
    let mut walk = Walk::new(page);
    let (mut visits, mut slot) = (Vec::new(), 0u32);
    while slot < page.end_slot {
        visits.push(slot);
        let seen = walk.visit(slot, DAY_S);
        // The bytes are the truth: a history that loses something in them shows here.
        history = PageHistory::from_bytes(&history.to_bytes()).unwrap();
        let now_s = (i64::from(slot) + 1) * DAY_S;
        slot = (policy.next(now_s, &mut history, seen).due_s / DAY_S - 1) as u32;
    }
    let found = walk.finish().found.iter().map(|&n| page.updates[n as usize]).collect();
    (visits, found)
}

#[test]
fn golden_schedules_are_reproduced_exactly() {
    let Some(path) = data("golden.json") else { return };
    let golden: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let pages = golden["pages"].as_array().unwrap();
    assert_eq!(pages.len(), 300);
    for known in pages {
        let page = LoggedPage {
            id: known["page_id"].as_u64().unwrap(),
            path: String::new(),
            source: 0,
            first_slot: 0,
            end_slot: known["slots"].as_u64().unwrap() as u32,
            updates: numbers(&known["updates"]),
        };
        for (theirs, ours) in SETTINGS {
            let (visits, found) = schedule(&page, &ours.parse().unwrap());
            let expected = &known["m"][theirs];
            let context = format!("page {} under {ours}", page.id);
            assert_eq!(found.len() as u64, expected["detections"].as_u64().unwrap(), "{context}");
            match expected["accesses"].as_u64() {
                Some(count) => assert_eq!(visits.len() as u64, count, "{context}"),
                None => {
                    assert_eq!(visits, numbers(&expected["accesses"]), "{context}");
                    assert_eq!(found, numbers(&expected["versions"]), "{context}");
                }
            }
        }
    }
}

/// coverage, efficiency, coverage_total, efficiency_total, visits.
const REFERENCE: [(&str, [f64; 4], u64); 11] = [
    ("mle.mix(0.1-10,2nd=7d)", [0.5678, 0.4176, 0.7394, 0.5521], 1_032_467),
    ("mle.mix(0.1-10,2nd=7d,lm)", [0.5681, 0.4342, 0.7372, 0.5487], 1_035_669),
    ("mle.mix(0.1-10,2nd=15d)", [0.6051, 0.4754, 0.7278, 0.5740], 980_727),
    ("mle.mix(0.5-2,2nd=7d)", [0.7175, 0.3769, 0.7960, 0.5036], 1_207_795),
    ("mle.avg(0.1-10,2nd=15d)", [0.5972, 0.5044, 0.7028, 0.6193], 884_071),
    ("mle.min(0.1-10,2nd=7d)", [0.5788, 0.3899, 0.7659, 0.4505], 1_294_755),
    ("aimd(d=1d,r=0.5)", [0.9063, 0.1806, 0.8589, 0.2712], 2_359_751),
    ("aimd(d=1/2d,r=0.5)", [0.9282, 0.1443, 0.9059, 0.2155], 3_113_494),
    ("nutch(7d)", [0.7931, 0.3403, 0.7738, 0.4901], 1_206_629),
    ("stormcrawler(7d,max=365d)", [0.8127, 0.3033, 0.8412, 0.4389], 1_451_725),
    ("every(30d)", [0.7948, 0.4301, 0.2858, 0.3367], 676_426),
];

#[test]
fn the_reference_table_is_reproduced_to_a_thousandth() {
    let Some(path) = data("updates.tsv.zst") else { return };
    let log = UpdateLog::read(&path, None, Window::default()).unwrap();
    // The reference counts 59,874 pages and 726,261 versions: one page with 364 versions less.
    assert_eq!((log.pages.len(), log.versions()), (59_875, 726_625));
    for (name, expected, visits) in REFERENCE {
        let (tallies, _) = walk(&log, &name.parse().unwrap(), None);
        let m = Measures::of(&log, &tallies);
        let got = [m.coverage, m.efficiency, m.coverage_total, m.efficiency_total];
        eprintln!("{name}: {got:.4?} {}", m.visits);
        for (got, expected) in got.iter().zip(expected) {
            assert!((got - expected).abs() < 0.001, "{name}: {got} instead of {expected}");
        }
        assert!(m.visits.abs_diff(visits) * 500 <= visits, "{name}: {} visits", m.visits);
    }
}
