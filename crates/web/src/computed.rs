//! Results that may take longer to compute than anyone waits for: computed in the background, while
//! the last one is shown.

use std::{
    collections::BTreeMap,
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::Duration,
};

use nenrin_state::{SiteId, StateError};

/// How long a page waits for a result; small sites are done by then.
const PATIENCE: Duration = Duration::from_millis(100);
/// A result is kept for this many times the time that it took, so that at most this part of a
/// processor is spent on it, however often someone looks.
const KEPT_TIMES: i64 = 20;

/// A result for each site.
pub(crate) struct Computed<T> {
    sites: Mutex<BTreeMap<SiteId, Kept<T>>>,
    done: Condvar,
    patience: Duration,
}

struct Kept<T> {
    is_under_way: bool,
    /// When it was computed, until when it is kept, and the result.
    result: Option<(i64, i64, Arc<T>)>,
    failure: Option<StateError>,
}

impl<T> Default for Computed<T> {
    fn default() -> Self {
        Self { sites: Mutex::default(), done: Condvar::new(), patience: PATIENCE }
    }
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self { is_under_way: false, result: None, failure: None }
    }
}

impl<T: Send + Sync + 'static> Computed<T> {
    /// The newest result and when it was computed; `None` while the first is being computed. Must
    /// be called where blocking is allowed.
    pub(crate) fn of(
        self: &Arc<Self>,
        site: SiteId,
        now_s: fn() -> i64,
        compute: impl FnOnce() -> Result<T, StateError> + Send + 'static,
    ) -> Result<Option<(i64, Arc<T>)>, StateError> {
        let mut sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = sites.entry(site).or_default();
        let is_good = kept.result.as_ref().is_some_and(|(_, until_s, _)| now_s() < *until_s);
        if !is_good {
            if !kept.is_under_way {
                kept.is_under_way = true;
                let this = self.clone();
                tokio::task::spawn_blocking(move || this.compute(site, now_s, compute));
            }
            let is_under_way = |sites: &mut BTreeMap<SiteId, Kept<T>>| {
                sites.get(&site).is_some_and(|kept| kept.is_under_way)
            };
            let waited = self.done.wait_timeout_while(sites, self.patience, is_under_way);
            sites = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let kept = sites.entry(site).or_default();
        match kept.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(kept.result.as_ref().map(|(at_s, _, result)| (*at_s, result.clone()))),
        }
    }

    /// The newest result without waiting, for callers that ask for all sites again and again. A
    /// result older than `good_s` seconds is computed again in the background, one site at a time.
    pub(crate) fn last(
        self: &Arc<Self>,
        site: SiteId,
        now_s: fn() -> i64,
        good_s: i64,
        compute: impl FnOnce() -> Result<T, StateError> + Send + 'static,
    ) -> Option<Arc<T>> {
        let mut sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        let is_busy = sites.values().any(|kept| kept.is_under_way);
        let kept = sites.entry(site).or_default();
        let is_good = kept.result.as_ref().is_some_and(|(at_s, ..)| now_s() < *at_s + good_s);
        if !is_good && !is_busy {
            kept.is_under_way = true;
            let this = self.clone();
            tokio::task::spawn_blocking(move || this.compute(site, now_s, compute));
        }
        kept.result.as_ref().map(|(.., result)| result.clone())
    }

    fn compute(
        &self,
        site: SiteId,
        now_s: fn() -> i64,
        compute: impl FnOnce() -> Result<T, StateError>,
    ) {
        let under_way = UnderWay { computed: self, site };
        let begun_s = now_s();
        let result = compute();
        let took_s = now_s() - begun_s;
        let mut sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = sites.entry(site).or_default();
        match result {
            Ok(result) => {
                let until_s = now_s() + KEPT_TIMES * took_s;
                kept.result = Some((begun_s, until_s, Arc::new(result)));
            }
            Err(failure) => kept.failure = Some(failure),
        }
        drop(sites);
        drop(under_way);
    }
}

/// Marks the work as ended, even if it panics: otherwise nobody would ever start it again.
struct UnderWay<'r, T> {
    computed: &'r Computed<T>,
    site: SiteId,
}

impl<T> Drop for UnderWay<'_, T> {
    fn drop(&mut self) {
        let mut sites = self.computed.sites.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = sites.get_mut(&self.site) {
            kept.is_under_way = false;
        }
        self.computed.done.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SITE: SiteId = SiteId(1);

    /// However busy the machine is, quick results are ready by then.
    fn patient() -> Arc<Computed<u32>> {
        Arc::new(Computed { patience: Duration::from_secs(60), ..Computed::default() })
    }

    async fn ask(
        computed: &Arc<Computed<u32>>,
        compute: impl FnOnce() -> Result<u32, StateError> + Send + 'static,
    ) -> Result<Option<u32>, StateError> {
        let computed = computed.clone();
        let asked = tokio::task::spawn_blocking(move || computed.of(SITE, || 7, compute));
        asked.await.unwrap().map(|found| found.map(|(at_s, value)| *value + at_s as u32))
    }

    #[tokio::test]
    async fn what_is_quick_is_always_new() {
        let computed = patient();
        assert_eq!(ask(&computed, || Ok(1)).await.unwrap(), Some(8));
        assert_eq!(ask(&computed, || Ok(2)).await.unwrap(), Some(9));
    }

    #[tokio::test]
    async fn who_asks_for_the_last_never_waits_and_starts_one_at_a_time() {
        let computed = Arc::new(Computed::default());
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let slow = move || wait.recv().map(|()| 5).map_err(|_| unreachable!("the sender is alive"));
        assert_eq!(computed.last(SITE, || 7, 60, slow), None);
        let other = SiteId(2);
        assert_eq!(computed.last(other, || 7, 60, || unreachable!("one is under way")), None);
        go.send(()).unwrap();
        while computed.sites.lock().unwrap()[&SITE].is_under_way {
            tokio::task::yield_now().await;
        }
        let again = || unreachable!("it is good for a minute");
        assert_eq!(computed.last(SITE, || 66, 60, again), Some(Arc::new(5)));
        assert_eq!(computed.last(SITE, || 67, 60, || Ok(6)), Some(Arc::new(5)), "old until done");
    }

    #[tokio::test]
    async fn nobody_waits_for_what_is_slow_and_it_is_done_once() {
        let computed = Arc::new(Computed::default());
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let slow = move || {
            let _ = wait.recv();
            Ok(1)
        };
        assert_eq!(ask(&computed, slow).await.unwrap(), None);
        let again = ask(&computed, || unreachable!("it is under way already")).await;
        assert_eq!(again.unwrap(), None);
        drop(go);
        while computed.sites.lock().unwrap()[&SITE].is_under_way {
            tokio::task::yield_now().await;
        }
        let kept = computed.last(SITE, || 7, 60, || unreachable!("it is there"));
        assert_eq!(kept, Some(Arc::new(1)));
    }

    #[tokio::test]
    async fn what_panicked_is_tried_again() {
        let computed = patient();
        let panics = || std::panic::resume_unwind(Box::new("on purpose"));
        assert_eq!(ask(&computed, panics).await.unwrap(), None);
        assert_eq!(ask(&computed, || Ok(1)).await.unwrap(), Some(8));
    }

    #[tokio::test]
    async fn a_failure_is_reported_and_tried_again() {
        let computed = patient();
        let failing = || Err(StateError::NoSuchSite { name: "1".into() });
        assert!(ask(&computed, failing).await.is_err());
        assert_eq!(ask(&computed, || Ok(1)).await.unwrap(), Some(8));
    }
}
