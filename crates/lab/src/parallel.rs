//! Work that can be done side by side.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

/// Does the same for every item, on several threads, and gives the results in the order of the items.
pub(crate) fn each<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let take_turns = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { break };
            let result = work(item);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
        }
    };
    std::thread::scope(|scope| {
        (1..threads.min(items.len())).for_each(|_| drop(scope.spawn(take_turns)));
        take_turns();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// As many threads as the machine has cores.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..100).collect();
        let doubled: Vec<u64> = items.iter().map(|n| n * 2).collect();
        for threads in [0, 1, 4, 200] {
            assert_eq!(each(&items, threads, |n| n * 2), doubled, "{threads} threads");
        }
        assert!(each(&[0_u8; 0], 4, |n| *n).is_empty());
    }
}
