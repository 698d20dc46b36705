use std::net::SocketAddr;

/// How pages are replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayOptions {
    /// Parts of a page are collected after it. So a version of a part that came within this time
    /// (in seconds) after the date, and nearer to it than the one before, counts as of the date. An
    /// hour covers a round over a site of some thousand pages at the usual pace.
    pub part_grace_s: i64,
    /// For parts of a page, an error is replaced by a good answer at most this many seconds away:
    /// servers fail for days, rarely for a month.
    pub good_span_s: i64,
    /// The banner warns if the parts of a page are further apart in time than this, in seconds.
    pub wide_span_s: i64,
    /// Bodies larger than this, with content coding undone, are sent without rewriting.
    pub max_rewritten_bytes: usize,
    /// Memory in bytes for rewritten pages.
    pub cache_bytes: usize,
    /// Origins that may show replayed pages in a frame, besides replay itself:
    /// `http://localhost:8080` for the interface.
    pub frame_ancestors: Vec<String>,
    /// The origin of replay, such as `http://replay.localhost:8081`. Browsers that come to a
    /// loopback address are redirected to it, because cookies are shared between ports.
    pub origin: Option<String>,
    /// Whether names below the origin's host name lead here too, so that every archived server is
    /// shown on an origin of its own: always below `localhost`, elsewhere with wildcard DNS and TLS.
    /// Without it, pages are shown on the one origin, in a sandbox that takes their origin away.
    pub has_names_below: bool,
    /// Where the interface listens: replay's own pages link back to it. Archived pages do not, as
    /// they must not learn of it.
    pub interface: Option<SocketAddr>,
    /// Whether to refuse host names other than the origin's, loopback's and addresses: other
    /// people's pages could reach a loopback port by a name of their own.
    pub refuses_foreign_names: bool,
}

impl Default for ReplayOptions {
    fn default() -> Self {
        Self {
            part_grace_s: 3600,
            good_span_s: 30 * 86_400,
            wide_span_s: 30 * 86_400,
            max_rewritten_bytes: 64 << 20,
            cache_bytes: 32 << 20,
            frame_ancestors: Vec::new(),
            origin: None,
            has_names_below: false,
            interface: None,
            refuses_foreign_names: false,
        }
    }
}
