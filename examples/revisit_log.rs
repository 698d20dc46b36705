//! Runs a revisit policy over a log of updates, and prints how many versions its visits saw:
//! `cargo run --example revisit_log -- updates.tsv auto`
//!
//! A line of the log is the name of a page, a tab, and the second at which it was updated.

use std::{
    collections::BTreeMap,
    error::Error,
    io::{self, Write},
};

use nenrin_revisit::{Limits, Observation, PageHistory, PolicySpec};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [log, policy] = &arguments[..] else {
        return Err("usage: revisit_log LOG POLICY".into());
    };
    let mut updates: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for line in std::fs::read_to_string(log)?.lines() {
        let (page, at_s) = line.split_once('\t').ok_or("a line without a tab")?;
        updates.entry(page.to_owned()).or_default().push(at_s.trim().parse()?);
    }
    let all = updates.values().flatten();
    let (Some(&from_s), Some(&to_s)) = (all.clone().min(), all.max()) else {
        return Err("the log is empty".into());
    };

    let spec: PolicySpec = policy.parse()?;
    let mut policy = spec.build(Limits::default());
    let (mut visits, mut seen_versions, mut versions) = (0, 0, 0);
    for times in updates.values_mut() {
        times.sort_unstable();
        versions += times.len();
        // The first visit is at the beginning of the log; each one sets the next.
        let (mut history, mut last_s, mut now_s) = (PageHistory::default(), i64::MIN, from_s);
        while now_s <= to_s {
            let is_new = times.iter().any(|&at_s| last_s < at_s && at_s <= now_s);
            let seen = if is_new { Observation::changed() } else { Observation::same() };
            visits += 1;
            seen_versions += usize::from(is_new);
            last_s = now_s;
            now_s = policy.next(now_s, &mut history, seen).due_s.max(now_s + 1);
        }
    }
    let share = 100.0 * seen_versions as f64 / versions as f64;
    writeln!(
        io::stdout(),
        "{spec}: {visits} visits of {} pages saw {seen_versions} of {versions} versions ({share:.1}%)",
        updates.len()
    )?;
    Ok(())
}
