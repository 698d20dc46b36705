use std::path::PathBuf;
use std::time::Duration;

/// How pages are rendered, and a limit for everything that a page could make large or slow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderOptions {
    /// The browser's program; by default the first that is found under its usual names.
    pub program: Option<PathBuf>,
    /// Whether the browser may run as root, without its sandbox. Not by default: the pages are
    /// strangers' programs.
    pub as_root: bool,
    /// The window's width and height: a common desktop.
    pub window: (u32, u32),
    /// The longest time for one page. Default 30 s: what is not shown by then, readers do not wait
    /// for.
    pub page_timeout: Duration,
    /// How long nothing may be under way until a page counts as done. Default 500 ms.
    pub quiet: Duration,
    /// The most requests of one page. Default 1,000: the largest front pages have some hundred.
    pub max_requests: usize,
    /// The most bytes that one page gets, over all requests. Default 100 MB.
    pub max_bytes: u64,
    /// The most characters of a page's text that are taken. Default 2 million.
    pub max_text_chars: usize,
    /// The most links of a page that are taken. Default 10,000.
    pub max_links: usize,
    /// The highest picture of a whole page, in pixels. Default 10,000: higher ones take hundreds of
    /// megabytes in the browser.
    pub max_picture_height: u32,
    /// The most bytes of a picture of a whole page. Default 2 MB: of a page with larger ones, only the
    /// upper part is taken, as much as fits.
    pub max_picture_bytes: usize,
    /// The most memory of a page's scripts, in megabytes. Default 512.
    pub script_memory_mb: u32,
    /// The most memory of the browser with all of its processes, in bytes. Default 2 GB; looked at
    /// once a second, on Linux.
    pub max_memory_bytes: u64,
    /// After so many pages the browser is started anew. Default 100: what pages leave behind in it
    /// goes away.
    pub recycle_after: u32,
}

impl Default for RenderOptions {
    fn default() -> Self {
        Self {
            program: None,
            as_root: false,
            window: (1280, 800),
            page_timeout: Duration::from_secs(30),
            quiet: Duration::from_millis(500),
            max_requests: 1_000,
            max_bytes: 100 << 20,
            max_text_chars: 2_000_000,
            max_links: 10_000,
            max_picture_height: 10_000,
            max_picture_bytes: 2 << 20,
            script_memory_mb: 512,
            max_memory_bytes: 2 << 30,
            recycle_after: 100,
        }
    }
}
