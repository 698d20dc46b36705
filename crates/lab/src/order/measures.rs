use super::Importance;

/// Shares of all pages collected at which criteria A and B are read.
pub const POINTS: [f64; 5] = [0.05, 0.1, 0.2, 0.3, 0.5];
/// Shares of the most important pages that criterion A looks for.
pub const TOPS: [f64; 3] = [0.001, 0.01, 0.1];
/// The constant of criterion C.
const C_CONSTANT: f64 = 1000.0;
/// Points of the curves in the report.
const CURVE_POINTS: usize = 200;

/// How good an order of collection was, by the three criteria of paper 003.
#[derive(Clone, Debug, PartialEq)]
pub struct Measures {
    /// A: for each of [`TOPS`], the share of those pages collected at each of [`POINTS`].
    pub a: [[f64; POINTS.len()]; TOPS.len()],
    /// B: the PageRank sum collected at each of [`POINTS`].
    pub b: [f64; POINTS.len()],
    /// C: the distance of the order from the true ranking, 1 for the worst order.
    pub c: f64,
    /// Curves over the share collected, for the plots.
    pub curve: Vec<CurvePoint>,
}

/// One point of the curves: values when a share of the pages was collected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// Share of all pages collected.
    pub collected: f64,
    /// Share of each of [`TOPS`] collected.
    pub tops: [f64; TOPS.len()],
    /// PageRank sum collected.
    pub importance: f64,
    /// Criterion C's sum over the pages collected so far, divided by the worst order's whole sum.
    pub error: f64,
}

impl Measures {
    /// Measures an order of all reachable pages against the truth.
    #[must_use]
    pub fn of(order: &[u32], truth: &Importance) -> Self {
        let count = order.len();
        let mut true_place = vec![0_u32; truth.of_page.len()];
        for (place, page) in truth.ranking.iter().enumerate() {
            true_place[*page as usize] = place as u32;
        }
        let top_sizes = TOPS.map(|top| ((top * count as f64).round_ties_even() as usize).max(1));
        let point_sizes = POINTS.map(|point| (point * count as f64).round_ties_even() as usize);
        let worst = worst_error(count);
        let stride = count.div_ceil(CURVE_POINTS).max(1);

        let mut a = [[0.0; POINTS.len()]; TOPS.len()];
        let mut b = [0.0; POINTS.len()];
        let mut curve = vec![CurvePoint::default()];
        let mut found = [0_usize; TOPS.len()];
        let (mut importance, mut error) = (0.0, 0.0);
        for (place, page) in order.iter().enumerate() {
            let true_place = true_place[*page as usize] as usize;
            importance += truth.of_page[*page as usize];
            error += misplacement(place, true_place);
            for (found, size) in found.iter_mut().zip(top_sizes) {
                *found += usize::from(true_place < size);
            }
            let tops = std::array::from_fn(|top| found[top] as f64 / top_sizes[top] as f64);
            let done = place + 1;
            for (point, size) in point_sizes.iter().enumerate() {
                if done == *size {
                    b[point] = importance;
                    (0..TOPS.len()).for_each(|top| a[top][point] = tops[top]);
                }
            }
            if done % stride == 0 || done == count {
                let collected = done as f64 / count as f64;
                curve.push(CurvePoint { collected, tops, importance, error: error / worst });
            }
        }
        Self { a, b, c: error / worst, curve }
    }
}

impl Default for CurvePoint {
    fn default() -> Self {
        Self { collected: 0.0, tops: [0.0; TOPS.len()], importance: 0.0, error: 0.0 }
    }
}

fn misplacement(rank: usize, true_rank: usize) -> f64 {
    let (rank, true_rank) = (rank as f64 + 1.0, true_rank as f64 + 1.0);
    (rank - true_rank).abs() / (rank + C_CONSTANT).sqrt()
}

/// Criterion C's sum when the least important page comes first.
fn worst_error(count: usize) -> f64 {
    let sum: f64 = (0..count).map(|place| misplacement(place, count - 1 - place)).sum();
    sum.max(f64::MIN_POSITIVE)
}
