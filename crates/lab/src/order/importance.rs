use super::Graph;

const DAMPING: f64 = 0.85;
const MAX_CHANGE: f64 = 1e-10;
const MAX_SWEEPS: usize = 1_000;

/// The true importance for judging orders: PageRank over the pages that can be reached.
#[derive(Clone, Debug)]
pub struct Importance {
    /// PageRank by page id; 0 for pages that cannot be reached. The sum is 1.
    pub of_page: Vec<f64>,
    /// Pages by decreasing importance; equal ones by id.
    pub ranking: Vec<u32>,
    /// How many sweeps it took.
    pub sweeps: usize,
}

impl Importance {
    /// PageRank with damping 0.85 and the rank of pages without links spread evenly, to an L1
    /// change below 1e-10.
    #[must_use]
    pub fn of(graph: &Graph, reachable: &[u32]) -> Self {
        let count = reachable.len() as f64;
        let mut ranks = vec![0.0; graph.pages()];
        for page in reachable {
            ranks[*page as usize] = 1.0 / count;
        }
        let mut incoming = vec![0.0; graph.pages()];
        let mut sweeps = 0;
        while sweeps < MAX_SWEEPS {
            sweeps += 1;
            if sweep(graph, reachable, &mut ranks, &mut incoming) < MAX_CHANGE {
                break;
            }
        }
        let mut ranking = reachable.to_vec();
        ranking.sort_by(|a, b| {
            ranks[*b as usize].total_cmp(&ranks[*a as usize]).then_with(|| a.cmp(b))
        });
        Self { of_page: ranks, ranking, sweeps }
    }
}

/// One step of the power iteration; returns the L1 change.
fn sweep(graph: &Graph, reachable: &[u32], ranks: &mut [f64], incoming: &mut [f64]) -> f64 {
    let mut dangling = 0.0;
    for page in reachable {
        let targets = graph.targets(*page);
        let rank = ranks[*page as usize];
        if targets.is_empty() {
            dangling += rank;
        }
        for target in targets {
            incoming[*target as usize] += rank / targets.len() as f64;
        }
    }
    let count = reachable.len() as f64;
    let even = (1.0 - DAMPING) / count + DAMPING * dangling / count;
    let mut change = 0.0;
    for page in reachable {
        let rank = even + DAMPING * std::mem::take(&mut incoming[*page as usize]);
        change += (rank - ranks[*page as usize]).abs();
        ranks[*page as usize] = rank;
    }
    change
}
