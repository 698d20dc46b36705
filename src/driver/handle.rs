//! How the rest of the program talks to a driver that is at work.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use nenrin_archive::Figures;
use nenrin_crawl::{Event, Ticket};
use nenrin_fetch::Fetcher;
use nenrin_state::PartitionId;
use nenrin_urls::CanonicalUrl;
use tokio::sync::mpsc::UnboundedSender;

use super::happening::{Happening, Reload};
use crate::config::Config;

/// The requests under way.
pub(super) type Requests = Arc<Mutex<BTreeMap<Ticket, UnderWay>>>;

/// A request under way, for the interface.
#[derive(Debug, Clone)]
pub(crate) struct UnderWay {
    pub url: CanonicalUrl,
    pub since_ms: i64,
    /// `receiving`, then `reading` what came.
    pub phase: &'static str,
}

/// A way to talk to a driver that is at work.
#[derive(Clone)]
pub(crate) struct DriverHandle {
    pub(super) happenings: UnboundedSender<Happening>,
    pub(super) under_way: Requests,
    pub(super) figures: Arc<Mutex<Figures>>,
    pub(super) store_waiting: Arc<AtomicUsize>,
}

/// The drivers that are at work in this process.
#[derive(Clone, Default)]
pub(crate) struct Drivers {
    at_work: Arc<Mutex<BTreeMap<PartitionId, DriverHandle>>>,
    /// How many partitions the archive has, where workers share it.
    pub(crate) of: Option<usize>,
}

impl Drivers {
    /// The only one.
    pub(crate) fn one(driver: DriverHandle) -> Self {
        let drivers = Self::default();
        drivers.set(BTreeMap::from([(PartitionId(0), driver)]));
        drivers
    }

    /// None yet, of so many partitions.
    pub(crate) fn of(partitions: usize) -> Self {
        Self { of: Some(partitions), ..Self::default() }
    }

    /// These are at work now.
    pub(crate) fn set(&self, drivers: BTreeMap<PartitionId, DriverHandle>) {
        *self.at_work.lock().unwrap_or_else(PoisonError::into_inner) = drivers;
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<DriverHandle> {
        self.at_work.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

impl DriverHandle {
    /// Sends an event to the machine; ignored once the driver has ended.
    pub(crate) fn tell(&self, event: Event) {
        let _ = self.happenings.send(Happening::Event(event));
    }

    /// The sites changed in the state: read them again.
    pub(crate) fn sites_changed(&self) {
        let _ = self.happenings.send(Happening::SitesChanged);
    }

    /// The configuration was read again: what may change while running, changes.
    pub(crate) fn reload(&self, config: &Config) -> anyhow::Result<()> {
        let reload = Reload {
            fetcher: Fetcher::new(config.fetch_options()?)?,
            options: Box::new(config.crawl_options()),
            min_free_bytes: config.disk.min_free.0,
            quotas: config.quotas(),
        };
        let _ = self.happenings.send(Happening::Reload(Box::new(reload)));
        Ok(())
    }

    /// The driver's numbers.
    pub(crate) fn figures(&self) -> Figures {
        let mut figures = self.figures.lock().unwrap_or_else(PoisonError::into_inner).clone();
        figures.store_waiting = self.store_waiting();
        figures
    }

    /// Versions that wait to be stored.
    pub(crate) fn store_waiting(&self) -> usize {
        self.store_waiting.load(Ordering::Relaxed)
    }

    /// Requests under way.
    pub(crate) fn under_way(&self) -> Vec<UnderWay> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}
