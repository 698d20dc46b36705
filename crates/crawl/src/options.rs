use nenrin_frontier::Politeness;

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
    /// Every server counts as asked at this time at least: set after an unclean stop, when
    /// requests may have been made that no commit tells of.
    pub asked_before_ms: Option<i64>,
    /// Where the names of probes come from.
    pub probe_seed: u64,
}

impl Default for CrawlOptions {
    fn default() -> Self {
        Self {
            agent_token: "nenrin".to_owned(),
            parallel: 64,
            unstored_max: 256,
            queue_max: 50_000,
            load_batch: 2_000,
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
