//! Which partitions a worker takes, and which it leaves to others: so that all have about the same
//! load. Every worker reckons with the same rows, so that two seldom want the same.

use std::time::Duration;

use nenrin_state::{IDLE_LOAD, PartitionId, Renewed, WorkerId};

/// Looks over which visits are averaged: visits come in bursts, and partitions should not move with
/// each.
const LOOKS: u64 = 64;

/// What a partition weighs: visits a minute lately.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoadGauge {
    seen: u64,
    sum: u64,
}

impl LoadGauge {
    /// The load, when so many visits were made in all. To be asked once in every `pause`.
    pub fn load(&mut self, visits: u64, pause: Duration) -> u64 {
        let lately = visits.saturating_sub(self.seen) * 60_000 / (pause.as_millis() as u64).max(1);
        self.seen = visits;
        self.sum = self.sum - self.sum / LOOKS + lately;
        IDLE_LOAD + self.sum / LOOKS
    }
}

/// The free partitions that are for this worker: the heaviest goes first, each to whoever has the
/// least then.
pub fn taken_by(worker: WorkerId, now: &Renewed) -> Vec<PartitionId> {
    let mut workers = now.workers.clone();
    workers.entry(worker).or_default();
    let mut free = now.free.clone();
    free.sort_by_key(|&(partition, load)| (std::cmp::Reverse(load), partition));
    let mut own = Vec::new();
    for (partition, load) in free {
        let least = workers.iter_mut().min_by_key(|(id, load)| (**load, **id));
        let Some((id, of_worker)) = least else { continue };
        *of_worker += load.max(1);
        if *id == worker {
            own.push(partition);
        }
    }
    own
}

/// The partitions that this worker should leave to others: those that weigh at most two thirds of what
/// lies between its load and the least one, so that none goes to and fro.
pub fn left_by(worker: WorkerId, now: &Renewed) -> Vec<PartitionId> {
    let mut others = now.workers.clone();
    others.remove(&worker);
    let (mut own, mut held) = (now.held.values().sum::<u64>(), now.held.clone());
    // What nobody holds goes to the others first.
    let free: u64 = now.free.iter().map(|(_, load)| load).sum();
    let mut left = Vec::new();
    while let Some((&id, &least)) = others.iter().min_by_key(|(id, load)| (**load, **id)) {
        let gap = own.saturating_sub(least + free);
        let fitting = held.iter().filter(|(_, load)| 2 * gap >= 3 * **load);
        let Some((&partition, &load)) = fitting.max_by_key(|(at, load)| (**load, **at)) else {
            break;
        };
        held.remove(&partition);
        own -= load;
        others.insert(id, least + load.max(1));
        left.push(partition);
    }
    left
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Lets workers take and leave until nothing moves any more; returns who holds what.
    fn settled(
        count: i64,
        loads: &[u64],
        mut holders: BTreeMap<PartitionId, WorkerId>,
    ) -> (BTreeMap<WorkerId, Vec<u64>>, usize) {
        let load = |at: PartitionId| loads[at.0 as usize];
        for turn in 0.. {
            assert!(turn < 1_000, "partitions go to and fro: {holders:?}");
            let before = holders.clone();
            for id in (0..count).map(WorkerId) {
                let mut all = Renewed::default();
                for id in (0..count).map(WorkerId) {
                    let own = holders.iter().filter(|(_, holder)| **holder == id);
                    all.workers.insert(id, own.map(|(at, _)| load(*at)).sum());
                }
                let every = (0..loads.len() as u32).map(PartitionId);
                all.free =
                    every.filter(|at| !holders.contains_key(at)).map(|at| (at, load(at))).collect();
                let held = holders.iter().filter(|(_, holder)| **holder == id);
                all.held = held.map(|(at, _)| (*at, load(*at))).collect();
                for at in left_by(id, &all) {
                    holders.remove(&at);
                }
                for at in taken_by(id, &all) {
                    holders.insert(at, id);
                }
            }
            if holders == before && holders.len() == loads.len() {
                let mut by_worker: BTreeMap<WorkerId, Vec<u64>> = BTreeMap::new();
                for (at, id) in holders {
                    by_worker.entry(id).or_default().push(load(at));
                }
                return (by_worker, turn);
            }
        }
        unreachable!()
    }

    #[test]
    fn idle_partitions_are_divided_by_their_number() {
        let (held, _) = settled(3, &[IDLE_LOAD; 12], BTreeMap::new());
        assert!(held.values().all(|own| own.len() == 4), "{held:?}");
    }

    #[test]
    fn heavy_partitions_count_for_more() {
        let mut loads = [IDLE_LOAD; 12];
        loads[3] = 500;
        let (held, _) = settled(3, &loads, BTreeMap::new());
        let alone = held.values().find(|own| own.contains(&500)).unwrap();
        assert_eq!(alone.len(), 1, "{held:?}");
    }

    #[test]
    fn a_new_worker_gets_its_share_and_then_nothing_moves() {
        for partitions in [2, 3, 16, 100] {
            let loads: Vec<u64> = (0..partitions).map(|n| IDLE_LOAD + (n * 37) % 90).collect();
            let most = *loads.iter().max().unwrap();
            let all_at_one = (0..partitions as u32).map(|at| (PartitionId(at), WorkerId(0)));
            for workers in [2, 3, 7] {
                let (held, _) = settled(workers, &loads, all_at_one.clone().collect());
                let sums: Vec<u64> = held.values().map(|own| own.iter().sum()).collect();
                if partitions as i64 >= workers {
                    assert_eq!(sums.len() as i64, workers, "{held:?}");
                }
                let (least, greatest) = (sums.iter().min().unwrap(), sums.iter().max().unwrap());
                assert!(greatest - least <= 2 * most, "{partitions} {workers}: {held:?}");
            }
        }
    }

    #[test]
    fn bursts_weigh_as_much_as_the_same_visits_in_a_steady_flow() {
        let pause = Duration::from_secs(5);
        let (mut steady, mut bursts) = (LoadGauge::default(), LoadGauge::default());
        let (mut flow, mut burst) = (0, 0);
        for look in 1..1_000 {
            flow = steady.load(10 * look, pause);
            burst = bursts.load(10 * (look / 24 * 24), pause);
        }
        assert!((120..=IDLE_LOAD + 120).contains(&flow), "{flow}");
        assert!(burst.abs_diff(flow) < flow / 3, "{burst} {flow}");
    }

    #[test]
    fn what_is_almost_balanced_stays() {
        let mut all = Renewed {
            held: BTreeMap::from([(PartitionId(0), 100), (PartitionId(1), 40)]),
            workers: BTreeMap::from([(WorkerId(1), 140), (WorkerId(2), 100)]),
            free: Vec::new(),
        };
        assert_eq!(left_by(WorkerId(1), &all), []);
        all.workers.insert(WorkerId(2), 60);
        assert_eq!(left_by(WorkerId(1), &all), [PartitionId(1)]);
    }
}
