//! How fast an order decides, and what the machine's memory allows.

use std::time::{Duration, Instant};

use nenrin_order::Strategy;

use super::Graph;
use super::numbering::{ByFingerprint, ByPageId};
use super::simulate::Crawl;
use super::synthetic::Random;

/// A short crawl is repeated until it took this long in all, and the fastest time counts: other
/// work on the machine only ever slows it down.
const ENOUGH: Duration = Duration::from_millis(1_500);
const MAX_REPEATS: usize = 9;
/// Random accesses timed for the roofline.
const ACCESSES: u32 = 20_000_000;
/// Bytes that an order touches at random for each link: a discovery number and a page record.
const RECORD_BYTES: usize = 16;

/// Times a piece of work.
#[expect(clippy::disallowed_methods, reason = "speed is what is measured here")]
pub(super) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

/// The shortest of several times that the same work took, and its last result.
pub(super) fn fastest<T>(mut work: impl FnMut() -> T) -> (T, Duration) {
    let (mut result, mut best) = timed(&mut work);
    let mut total = best;
    for _ in 1..MAX_REPEATS {
        if total >= ENOUGH {
            break;
        }
        let (again, time) = timed(&mut work);
        result = again;
        best = best.min(time);
        total += time;
    }
    (result, best)
}

/// One measurement of speed.
#[derive(Clone, Debug, PartialEq)]
pub struct Speed {
    /// What was crawled.
    pub graph: String,
    /// The order.
    pub strategy: Strategy,
    /// Whether each link was looked up by the fingerprint of its URL.
    pub with_look_up: bool,
    /// Pages in the graph.
    pub pages: usize,
    /// Links in the graph.
    pub links: usize,
    /// Pages decided in a second.
    pub pages_per_second: f64,
    /// Links processed in a second.
    pub links_per_second: f64,
    /// Random read-modify-writes per second in as much memory as the page records take, measured
    /// right after.
    pub random_accesses_per_second: f64,
}

/// Crawls the whole graph and measures.
#[must_use]
pub fn measure_speed(
    name: &str,
    graph: &Graph,
    start: u32,
    strategy: Strategy,
    with_look_up: bool,
) -> Speed {
    let crawl = || {
        let mut order = strategy.build(graph.pages() as u64);
        if with_look_up {
            Crawl::new(graph, None, &mut *order, ByFingerprint::new(graph.pages())).run(start).len()
        } else {
            Crawl::new(graph, None, &mut *order, ByPageId::new(graph.pages())).run(start).len()
        }
    };
    let (pages, time) = fastest(crawl);
    let links_per_second = graph.links() as f64 / time.as_secs_f64();
    Speed {
        graph: name.to_owned(),
        strategy,
        with_look_up,
        pages,
        links: graph.links(),
        pages_per_second: pages as f64 / time.as_secs_f64(),
        links_per_second,
        random_accesses_per_second: random_accesses_per_second(graph.pages() * RECORD_BYTES),
    }
}

/// The upper bound for random additions: independent read-modify-writes in an array of that size.
fn random_accesses_per_second(bytes: usize) -> f64 {
    let mut cells = vec![0_u32; (bytes / size_of::<u32>()).max(1)];
    let bound = u32::try_from(cells.len()).unwrap_or(u32::MAX);
    let mut random = Random(1);
    let (sum, time) = timed(|| {
        for _ in 0..ACCESSES {
            let cell = &mut cells[random.below(bound) as usize];
            *cell = cell.wrapping_add(1);
        }
        cells[0]
    });
    std::hint::black_box(sum);
    f64::from(ACCESSES) / time.as_secs_f64()
}
