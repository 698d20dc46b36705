//! The settings of the machine.

use nenrin_frontier::Politeness;
use nenrin_order::Strategy;

/// How the machine works. Every default has its reason beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct CrawlOptions {
    /// The name that robots.txt files know us by.
    pub agent_token: String,
    /// Requests under way at once over all servers: enough to fill a home line with polite pauses
    /// between requests to one server.
    pub parallel: usize,
    /// Exchanges that may wait for the store at once: collecting never runs further ahead of
    /// storing than this.
    pub unstored_max: usize,
    /// Pages held in the short-term queue at once; the others rest in the state.
    pub queue_max: usize,
    /// Pages loaded from the state at once.
    pub load_batch: usize,
    /// Pages of one server held in the short-term queue at once, so that a large server does not
    /// fill it; more are loaded when half of them are done.
    pub server_queue_max: usize,
    /// Servers that may be at rest in memory; beyond, those that have been for hours are left to
    /// the state. What is known of one takes a few kilobytes, 30 at most.
    pub servers_kept: usize,
    /// Pages of one server that a round which chooses its pages has under way: one is asked for while
    /// the last is stored, and more would be chosen without knowing what those showed.
    pub round_ahead: usize,
    /// Whether pages with a time of their own are visited; not when only certain rounds were
    /// requested.
    pub due_pages: bool,
    /// Width of the long-term queue's buckets, as the state has it.
    pub bucket_s: i64,
    /// Visits per day to pages with a time of their own, over all sites.
    pub visits_per_day: Option<u64>,
    /// Which new page of a server goes first; another one holds from the next start on.
    pub order: Strategy,
    /// How servers are treated.
    pub politeness: Politeness,
    /// A server that must rest longer than this is left for the site's next round. `None` waits.
    pub round_patience_ms: Option<i64>,
    /// Redirects followed from one page.
    pub redirects_max: u32,
    /// robots.txt is asked for again after this long (RFC 9309: at most a day).
    pub robots_fresh_s: i64,
    /// The last good robots.txt serves this long when a server can't be reached.
    pub robots_stale_s: i64,
    /// Every server counts as visited at this time at least: set after an unclean stop, when there
    /// may have been requests that no commit recorded.
    pub asked_before_ms: Option<i64>,
    /// Where the names of probes come from.
    pub probe_seed: u64,
}

impl CrawlOptions {
    /// The bucket of a moment.
    pub(crate) fn bucket(&self, now_ms: i64) -> i64 {
        now_ms.div_euclid(1000 * self.bucket_s.max(1))
    }

    /// When the bucket after that of a moment begins.
    pub(crate) fn next_bucket_ms(&self, now_ms: i64) -> i64 {
        (self.bucket(now_ms) + 1) * 1000 * self.bucket_s.max(1)
    }
}

impl Default for CrawlOptions {
    fn default() -> Self {
        Self {
            agent_token: "nenrin".to_owned(),
            parallel: 64,
            unstored_max: 256,
            queue_max: 50_000,
            load_batch: 2_000,
            server_queue_max: 200,
            servers_kept: 10_000,
            round_ahead: 2,
            due_pages: true,
            bucket_s: 3_600,
            visits_per_day: None,
            order: Strategy::Auto,
            politeness: Politeness::default(),
            round_patience_ms: None,
            redirects_max: 20,
            robots_fresh_s: 86_400,
            robots_stale_s: 30 * 86_400,
            asked_before_ms: None,
            probe_seed: 0,
        }
    }
}
