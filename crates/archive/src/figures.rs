//! The metrics of a running driver, for Prometheus.

use std::collections::BTreeMap;

use nenrin_crawl::{Crawl, OrderStats, Purpose};
use nenrin_frontier::FrontierStats;
use nenrin_state::{Outcome, VisitCommit};

use crate::Reached;

/// The kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// Only increases; its name ends in `_total`.
    Counter,
    /// Goes up and down.
    Gauge,
}

/// Labels that distinguish the samples of one metric.
pub type Labels = Vec<(&'static str, String)>;

/// A metric, possibly with several labels. Labels are few and small: never a URL.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// `nenrin_<noun>_<unit>[_total]`, in base units.
    pub name: &'static str,
    /// Its meaning, in one line.
    pub help: &'static str,
    /// What kind of figure it is.
    pub kind: MetricKind,
    /// Labels and value.
    pub samples: Vec<(Labels, f64)>,
}

impl Metric {
    /// A metric without labels.
    pub fn single(name: &'static str, help: &'static str, kind: MetricKind, value: f64) -> Self {
        Self { name, help, kind, samples: vec![(Vec::new(), value)] }
    }
}

/// What a driver has done since it began, and its state a few seconds ago.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    requests: BTreeMap<&'static str, u64>,
    request_ms: u64,
    visits: BTreeMap<Outcome, u64>,
    received_bytes: u64,
    stored_bytes: u64,
    trapped: u64,
    /// The short-term queues.
    pub frontier: FrontierStats,
    order: OrderStats,
    called_gone: u64,
    believed_signals: u64,
    /// Free bytes on the archive's disk.
    pub free_bytes: Option<u64>,
    /// Bytes that must stay free.
    pub min_free_bytes: u64,
    /// Memory that bodies being received and read take.
    pub fetch_memory_bytes: u64,
    /// Whether collecting waits for disk space.
    pub waits_for_space: bool,
    /// Number of times the configuration was read again.
    pub reloads: u64,
    /// Versions that wait to be stored.
    pub store_waiting: usize,
    /// Quotas that are reached.
    pub reached: Vec<Reached>,
}

/// A number without labels: name, help and value.
type Single = (&'static str, &'static str, f64);

impl Figures {
    /// Visits so far.
    pub fn all_visits(&self) -> u64 {
        self.visits.values().sum()
    }

    /// A request is made.
    pub fn asked(&mut self, purpose: Purpose) {
        let name = match purpose {
            Purpose::Page => "page",
            Purpose::Robots => "robots",
            Purpose::Probe => "probe",
            Purpose::Sitemap => "sitemap",
            Purpose::LoginPage => "login-page",
        };
        *self.requests.entry(name).or_default() += 1;
    }

    /// An answer came after this time.
    pub fn answered(&mut self, elapsed_ms: i64) {
        self.request_ms += u64::try_from(elapsed_ms).unwrap_or(0);
    }

    /// A visit is committed.
    pub fn visited(&mut self, visit: &VisitCommit) {
        *self.visits.entry(visit.outcome).or_default() += 1;
        self.received_bytes += visit.received_bytes;
        self.stored_bytes += visit.stored_bytes;
        self.trapped += visit.trapped;
    }

    /// Reads the machine's own numbers; not for every event, since it looks at all servers.
    pub fn look(&mut self, machine: &Crawl, now_ms: i64) {
        self.frontier = machine.frontier_stats(now_ms);
        self.order = machine.order_stats();
        (self.called_gone, self.believed_signals) = (0, 0);
        for learnt in machine.learnt() {
            self.called_gone += learnt.probe.called_gone;
            let believed = |source: &&nenrin_crawl::Source| source.trust.is_believed();
            self.believed_signals +=
                learnt.signals.sources.values().filter(believed).count() as u64;
        }
    }

    /// The numbers under their names.
    pub fn metrics(&self) -> Vec<Metric> {
        use MetricKind::{Counter, Gauge};
        let label = |name, value: &str| -> Labels { vec![(name, value.to_owned())] };
        let requests = self.requests.iter().map(|(p, &n)| (label("purpose", p), n as f64));
        let visits = self.visits.iter().map(|(o, &n)| (label("outcome", &o.to_string()), n as f64));
        let servers = [
            ("known", self.frontier.servers),
            ("busy", self.frontier.busy),
            ("resting", self.frontier.resting),
        ];
        let servers = servers.map(|(state, n)| (label("state", state), n as f64));
        let reached = self.reached.iter().map(|reached| {
            let whose = reached.site.as_ref().map_or("", |(_, name)| name);
            (label("site", whose), reached.bytes as f64 / reached.quota_bytes as f64)
        });
        let mut all = vec![
            Metric {
                name: "nenrin_quota_reached",
                help: "Share of its quota that a site paused by it takes; without a name, the archive",
                kind: Gauge,
                samples: reached.collect(),
            },
            Metric {
                name: "nenrin_requests_total",
                help: "Requests made since the start, by purpose",
                kind: Counter,
                samples: requests.collect(),
            },
            Metric {
                name: "nenrin_visits_total",
                help: "Visits since the start, by outcome",
                kind: Counter,
                samples: visits.collect(),
            },
            Metric {
                name: "nenrin_frontier_servers",
                help: "Servers in the short-term queue",
                kind: Gauge,
                samples: servers.to_vec(),
            },
        ];
        for (name, help, value) in self.of_process().into_iter().chain(self.of_crawl()) {
            let kind = if name.ends_with("_total") { Counter } else { Gauge };
            all.push(Metric::single(name, help, kind, value));
        }
        if let Some(free_bytes) = self.free_bytes {
            all.push(Metric::single(
                "nenrin_disk_free_bytes",
                "Free space on the archive's disk",
                Gauge,
                free_bytes as f64,
            ));
        }
        all
    }

    /// Numbers of the process and its space.
    fn of_process(&self) -> [Single; 9] {
        [
            (
                "nenrin_request_seconds_total",
                "Total duration of requests since the start",
                self.request_ms as f64 / 1000.0,
            ),
            (
                "nenrin_received_bytes_total",
                "Bytes of bodies received since the start",
                self.received_bytes as f64,
            ),
            (
                "nenrin_stored_bytes_total",
                "Bytes added to packs since the start",
                self.stored_bytes as f64,
            ),
            (
                "nenrin_trapped_links_total",
                "Links not followed since the start because they look like traps",
                self.trapped as f64,
            ),
            (
                "nenrin_disk_min_free_bytes",
                "Space that must stay free on the archive's disk",
                self.min_free_bytes as f64,
            ),
            (
                "nenrin_collecting_paused",
                "Whether all collecting waits for space, on the disk or in the archive's quota",
                f64::from(u8::from(self.waits_for_space)),
            ),
            (
                "nenrin_fetch_memory_bytes",
                "Memory that bodies being received and read take",
                self.fetch_memory_bytes as f64,
            ),
            ("nenrin_store_waiting", "Versions that wait to be stored", self.store_waiting as f64),
            (
                "nenrin_config_reloads_total",
                "Number of times the configuration was read again",
                self.reloads as f64,
            ),
        ]
    }

    /// Numbers of the queues, the crawl order and what was learnt.
    fn of_crawl(&self) -> [Single; 7] {
        [
            ("nenrin_frontier_pages", "Pages in the short-term queue", self.frontier.queued as f64),
            ("nenrin_order_pages", "Pages that the crawl order knows", self.order.pages as f64),
            (
                "nenrin_order_unscored_pages",
                "Collected pages whose links are not yet scored",
                self.order.unscored as f64,
            ),
            (
                "nenrin_order_additions_total",
                "Additions to scores by the crawl order since the start",
                self.order.additions as f64,
            ),
            (
                "nenrin_order_memory_bytes",
                "Memory of the crawl order for all known pages",
                self.order.memory_bytes as f64,
            ),
            (
                "nenrin_soft_404_visits",
                "Visits judged gone because they looked like the server's missing pages",
                self.called_gone as f64,
            ),
            (
                "nenrin_believed_signals",
                "Sitemaps and feeds whose dates are trusted",
                self.believed_signals as f64,
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_conventions() {
        let mut figures = Figures { free_bytes: Some(1), ..Figures::default() };
        figures.asked(Purpose::Probe);
        for metric in figures.metrics() {
            assert!(metric.name.starts_with("nenrin_"), "{}", metric.name);
            let counts = metric.kind == MetricKind::Counter;
            assert_eq!(metric.name.ends_with("_total"), counts, "{}", metric.name);
        }
    }
}
