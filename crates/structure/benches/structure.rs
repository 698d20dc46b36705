//! A server of a million pages and ten million links: its split, one update, a probing step.
//!
//! `cargo bench -p nenrin-structure`. Figures are printed with their ratio to the bar.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a bench is a command")]

use std::sync::Arc;
use std::time::Duration;

use nenrin_structure::{
    AutoOptions, AutoRound, AutoServer, Beliefs, PageIndex, RoundPlan, Seen, SharedBeliefs,
    SiteGraph, SiteSplit, SplitOptions, Step, UpperSites,
};

const PAGES: u32 = 1_000_000;
const LINKS_PER_PAGE: u32 = 10;
const PAGES_PER_DIRECTORY: u32 = 50;

/// Times some work: the only function in this crate that reads a clock.
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    #[expect(clippy::disallowed_methods, reason = "a bench measures time")]
    let start = std::time::Instant::now();
    let result = work();
    (result, start.elapsed())
}

fn against(name: &str, value: f64, bar: f64, unit: &str) {
    println!("{name:<52} {value:>10.3} {unit:<3} bar {bar:>6} {unit:<3} ratio {:.3}", value / bar);
}

/// Peak memory in megabytes, where the system reports it.
fn peak_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    let kb = line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok());
    kb.map_or(f64::NAN, |kb| kb / 1024.0)
}

fn spread(page: u32, link: u32) -> u32 {
    let mixed = (u64::from(page) << 32 | u64::from(link)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 40) as u32
}

/// Pages link to their directory's index, its neighbours, and a few pages anywhere.
fn targets(page: u32) -> Vec<PageIndex> {
    let home = page / PAGES_PER_DIRECTORY * PAGES_PER_DIRECTORY;
    let near = (0..6).map(|link| home + spread(page, link) % PAGES_PER_DIRECTORY);
    let far = (6..LINKS_PER_PAGE - 2).map(|link| spread(page, link) % PAGES);
    let tree = [home, (page * 4 + 1).min(PAGES - 1)];
    near.chain(far).chain(tree).map(|target| PageIndex(target % PAGES)).collect()
}

fn build() -> SiteGraph {
    let mut graph = SiteGraph::new();
    for page in 0..PAGES {
        let directory = page / PAGES_PER_DIRECTORY;
        let letters = |n: u32| (b'a' + (n % 26) as u8) as char;
        let inside = page % PAGES_PER_DIRECTORY;
        let name = format!("d{directory}/{}{}.html", letters(inside), letters(inside / 26));
        graph.add_page(&name).unwrap();
    }
    for page in 0..PAGES {
        graph.set_links(PageIndex(page), &targets(page), &[]).unwrap();
    }
    graph.set_top(PageIndex(0)).unwrap();
    graph
}

fn splits(graph: &mut SiteGraph) {
    let (_, depths) = timed(|| graph.refresh_depths());
    println!("{:<52} {:>10.3} s", "depths of all pages", depths.as_secs_f64());
    let options = SplitOptions { depth_max: u32::MAX, ..SplitOptions::default() };
    let (a, by_directory) = timed(|| SiteSplit::by_directory(graph, options));
    println!("{:<52} {:>10.3} s, {} sites", "split A", by_directory.as_secs_f64(), a.len());
    let ((b, upper), by_links) = timed(|| {
        let split = SiteSplit::by_links(graph, options);
        let upper = UpperSites::new(graph, &split);
        (split, upper)
    });
    println!("sites of B: {}, always checked by C: {}", b.len(), upper.always_checked().count());
    let whole = depths.as_secs_f64() + by_links.as_secs_f64();
    against("depths, split B and upper sites", whole, 10.0, "s");
    against("peak memory", peak_mb(), 1024.0, "MB");
}

/// Each update finds depths fresh, so that it has to repair them.
fn updates(graph: &mut SiteGraph) {
    let (mut sum, mut slowest) = (Duration::ZERO, Duration::ZERO);
    let mut stale = 0;
    let count = 30;
    for at in 0..count {
        let page = spread(at, 99) % PAGES;
        let mut links = targets(page);
        links.push(PageIndex(spread(at, 7) % PAGES));
        if at % 2 == 0 {
            links.remove(0);
        }
        let ((), one) = timed(|| graph.set_links(PageIndex(page), &links, &[]).unwrap());
        (sum, slowest) = (sum + one, slowest.max(one));
        stale += u32::from(graph.depths_are_stale());
        graph.refresh_depths();
    }
    let mean_ms = sum.as_secs_f64() * 1e3 / f64::from(count);
    against("update of one page's links, mean", mean_ms, 1.0, "ms");
    against("update of one page's links, slowest", slowest.as_secs_f64() * 1e3, 1.0, "ms");
    println!("{stale} of {count} updates left depths to be refreshed before the next split");
}

/// The menu of all pages, that of one of eight templates which are scattered over the directories,
/// a fragment of the directory, and one of the page's own.
fn fragments(page: u32) -> Vec<u32> {
    let template = 10 + spread(page, 3) % 8;
    vec![1, template, 100 + page / PAGES_PER_DIRECTORY, 1_000_000 + page]
}

/// Pages that change lose their fragments from `lost_from` on.
fn probing(graph: SiteGraph, name: &str, lost_from: usize, changed: impl Fn(u32) -> bool) {
    let options = AutoOptions { stop_below: 0.0, ..AutoOptions::default() };
    let pages = (0..PAGES).map(PageIndex).collect();
    let graph = Arc::new(graph);
    let (mut plan, begun) = timed(|| {
        let beliefs = Beliefs::new(&options);
        let mut server = AutoServer::new(0, Arc::clone(&graph), beliefs, pages);
        server.fragments = (0..PAGES).map(fragments).collect();
        AutoRound::new(options.clone(), SharedBeliefs::new(&options), vec![server])
    });
    println!("{:<52} {:>10.3} s", format!("{name}: round begun"), begun.as_secs_f64());
    let before = plan.estimate().looked_at;
    let steps = 50_000u32;
    let (_, took) = timed(|| {
        for _ in 0..steps {
            let Step::Visit(page) = plan.next() else { break };
            let seen = if changed(page.page.0) { Seen::Changed } else { Seen::Same };
            plan.saw(page, seen, Some(&fragments(page.page.0)[lost_from..]));
        }
    });
    let looked_at = plan.estimate().looked_at - before;
    let micros = took.as_secs_f64() * 1e6;
    println!("{name}: {steps} steps, {:.1} candidates each", looked_at as f64 / f64::from(steps));
    against(&format!("{name}: per candidate considered"), micros / looked_at as f64, 10.0, "us");
    println!("{:<52} {:>10.3} us", format!("{name}: per step"), micros / f64::from(steps));
    let (kept, _) = plan.finish();
    println!("kept: {:.2} bytes a page", kept[0].1.to_bytes().len() as f64 / f64::from(PAGES));
}

fn main() {
    let (mut graph, built) = timed(build);
    println!(
        "{} pages, {} links, built in {:.1} s",
        graph.page_count(),
        graph.link_count(),
        built.as_secs_f64()
    );
    splits(&mut graph);
    updates(&mut graph);
    probing(graph.clone(), "directories change", 2, |page| {
        (page / PAGES_PER_DIRECTORY).is_multiple_of(5)
    });
    probing(graph, "single pages change", 3, |page| spread(page, 5).is_multiple_of(10));
    against("peak memory with a round under way", peak_mb(), 1024.0, "MB");
}
