//! Results that are found by reading a whole site: read in portions in the background, while what was found so far
//! is shown.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use nenrin_state::StateError;

/// How long a page waits; small sites are read by then.
const PATIENCE: Duration = Duration::from_millis(60);
/// A result is good for this long at least, in seconds.
const GOOD_S: i64 = 10;
/// And for this many times the time that it took.
const GOOD_TIMES: i64 = 20;
/// Results kept; the oldest makes way, and its reading ends.
const KEPT_MAX: usize = 16;
/// Between two portions others have their turn.
const REST: Duration = Duration::from_millis(1);

/// Results by what was asked for.
pub(crate) struct Scans<T> {
    kept: Mutex<BTreeMap<String, Arc<Scan<T>>>>,
}

struct Scan<T> {
    begun_s: i64,
    found: Mutex<Found<T>>,
    moved: Condvar,
    is_unwanted: AtomicBool,
}

struct Found<T> {
    result: Arc<T>,
    /// When the reading ended.
    ended_s: Option<i64>,
    failure: Option<StateError>,
    /// It failed: the next request starts it again.
    has_failed: bool,
}

/// What was found so far.
pub(crate) struct SoFar<T> {
    pub(crate) result: Arc<T>,
    pub(crate) is_whole: bool,
}

impl<T> Default for Scans<T> {
    fn default() -> Self {
        Self { kept: Mutex::default() }
    }
}

impl<T: Clone + Default + Send + Sync + 'static> Scans<T> {
    /// What was found so far. `step` reads a portion and returns whether there is more. Must be called where
    /// blocking is allowed.
    pub(crate) fn of(
        &self,
        key: String,
        now_s: fn() -> i64,
        step: impl FnMut(&mut T) -> Result<bool, StateError> + Send + 'static,
    ) -> Result<SoFar<T>, StateError> {
        let scan = self.find_or_start(key, now_s, step);
        let is_under_way =
            |found: &mut Found<T>| found.ended_s.is_none() && found.failure.is_none();
        let waited = scan.moved.wait_timeout_while(scan.lock(), PATIENCE, is_under_way);
        let mut found = waited.unwrap_or_else(PoisonError::into_inner).0;
        match found.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(SoFar { result: found.result.clone(), is_whole: found.ended_s.is_some() }),
        }
    }

    fn find_or_start(
        &self,
        key: String,
        now_s: fn() -> i64,
        step: impl FnMut(&mut T) -> Result<bool, StateError> + Send + 'static,
    ) -> Arc<Scan<T>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, scan| scan.is_good(now_s()));
        if let Some(scan) = kept.get(&key) {
            return scan.clone();
        }
        if kept.len() >= KEPT_MAX
            && let Some(oldest) =
                kept.iter().min_by_key(|(_, scan)| scan.begun_s).map(|(key, _)| key.clone())
            && let Some(scan) = kept.remove(&oldest)
        {
            scan.is_unwanted.store(true, Ordering::Relaxed);
        }
        let found =
            Found { result: Arc::default(), ended_s: None, failure: None, has_failed: false };
        let scan = Arc::new(Scan {
            begun_s: now_s(),
            found: Mutex::new(found),
            moved: Condvar::new(),
            is_unwanted: AtomicBool::new(false),
        });
        kept.insert(key, scan.clone());
        let at_work = scan.clone();
        tokio::task::spawn_blocking(move || at_work.run(now_s, step));
        scan
    }
}

impl<T: Clone> Scan<T> {
    fn lock(&self) -> MutexGuard<'_, Found<T>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_good(&self, now_s: i64) -> bool {
        let found = self.lock();
        let until = |ended_s: i64| ended_s + GOOD_S.max(GOOD_TIMES * (ended_s - self.begun_s));
        !found.has_failed && found.ended_s.is_none_or(|ended_s| now_s < until(ended_s))
    }

    fn run(&self, now_s: fn() -> i64, mut step: impl FnMut(&mut T) -> Result<bool, StateError>) {
        // Where a step panics, nobody waits for ever: it counts as ended.
        let ended = Ended(self, now_s);
        while !self.is_unwanted.load(Ordering::Relaxed) {
            let more = step(Arc::make_mut(&mut self.lock().result));
            match more {
                Ok(true) => std::thread::sleep(REST),
                Ok(false) => break,
                Err(failure) => {
                    let mut found = self.lock();
                    (found.failure, found.has_failed) = (Some(failure), true);
                    break;
                }
            }
        }
        drop(ended);
    }
}

struct Ended<'a, T: Clone>(&'a Scan<T>, fn() -> i64);

impl<T: Clone> Drop for Ended<'_, T> {
    fn drop(&mut self) {
        self.0.lock().ended_s = Some((self.1)());
        self.0.moved.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ask(
        scans: &Arc<Scans<Vec<u32>>>,
        key: &str,
        step: impl FnMut(&mut Vec<u32>) -> Result<bool, StateError> + Send + 'static,
    ) -> Result<(Vec<u32>, bool), StateError> {
        let (scans, key) = (scans.clone(), key.to_owned());
        let asked = tokio::task::spawn_blocking(move || scans.of(key, || 7, step));
        asked.await.unwrap().map(|so_far| (so_far.result.to_vec(), so_far.is_whole))
    }

    #[tokio::test]
    async fn what_was_found_so_far_is_shown_until_all_is_read() {
        let scans = Arc::new(Scans::default());
        let slow = |found: &mut Vec<u32>| {
            found.push(1);
            std::thread::sleep(PATIENCE);
            Ok(found.len() < 4)
        };
        let (found, is_whole) = ask(&scans, "a", slow).await.unwrap();
        assert!((1..4).contains(&found.len()) && !is_whole, "{found:?}");
        let again = |_: &mut Vec<u32>| unreachable!("it is kept");
        while !ask(&scans, "a", again).await.unwrap().1 {}
        assert_eq!(ask(&scans, "a", again).await.unwrap(), (vec![1; 4], true));
    }

    #[tokio::test]
    async fn a_failure_is_reported_and_tried_again() {
        let scans = Arc::new(Scans::default());
        let failing = |_: &mut Vec<u32>| Err(StateError::NoSuchSite { name: "1".into() });
        assert!(ask(&scans, "a", failing).await.is_err());
        let good = |found: &mut Vec<u32>| {
            found.push(2);
            Ok(false)
        };
        assert_eq!(ask(&scans, "a", good).await.unwrap(), (vec![2], true));
    }

    #[tokio::test]
    async fn few_results_are_kept_and_the_oldest_stops() {
        let scans = Arc::new(Scans::default());
        for n in 0..3 * KEPT_MAX {
            let step = move |found: &mut Vec<u32>| {
                found.push(n as u32);
                Ok(false)
            };
            assert_eq!(ask(&scans, &n.to_string(), step).await.unwrap(), (vec![n as u32], true));
        }
        assert!(scans.kept.lock().unwrap().len() <= KEPT_MAX);
    }
}
