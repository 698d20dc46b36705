use std::net::SocketAddr;

/// How pages are replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayOptions {
    /// Parts of a page are collected after it: a version of a part that came within this time after
    /// the date, and nearer to it than the one before, counts as of the date. An hour covers a
    /// round over a site of some thousand pages at the usual pace.
    pub part_grace_s: i64,
    /// An error gives way to a good answer this near to it, for parts of a page: servers fail for
    /// days, rarely for a month.
    pub good_span_s: i64,
    /// From which span of time between the parts of a page the banner warns.
    pub wide_span_s: i64,
    /// Bodies beyond this size, content coding undone, are sent as they are, without rewriting.
    pub max_rewritten_bytes: usize,
    /// Memory for pages that were rewritten.
    pub cache_bytes: usize,
    /// Origins that may show replayed pages in a frame, besides replay itself:
    /// `http://localhost:8080` for the interface.
    pub frame_ancestors: Vec<String>,
    /// The origin that replay goes by, such as `http://replay.localhost:8081`: browsers that come
    /// to a loopback address are led to it, because cookies do not tell ports apart.
    pub origin: Option<String>,
    /// Where the interface listens: replay's own pages lead back to it. Archived pages do not, they
    /// need not know of it.
    pub interface: Option<SocketAddr>,
    /// Whether host names other than the origin's, loopback's and addresses are refused: pages of
    /// strangers could reach a loopback port by a name of their own.
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
            interface: None,
            refuses_foreign_names: false,
        }
    }
}
