/// Limits on what is taken from one body. Reaching a limit sets
/// [`PageLinks::truncated`](crate::PageLinks::truncated); nothing fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtractLimits {
    /// Different URLs of one page. The largest real pages (indexes, archives by day) have some
    /// ten thousand.
    pub max_links: usize,
    /// Bytes of the URLs of one page, all together. A short reference may stand for a long URL.
    pub max_link_bytes: usize,
    /// References of one page, including repeated ones: they are held in memory until they are
    /// resolved.
    pub max_references: usize,
    /// Characters of a title that are stored.
    pub max_title_chars: usize,
    /// Candidates of one `srcset`.
    pub max_srcset_candidates: usize,
    /// Documents within documents: `srcdoc`, `noscript`, `noframes`.
    pub max_document_depth: usize,
    /// Memory in bytes for the HTML parser's own use: open elements, and a tag that is cut off.
    pub max_parser_bytes: usize,
    /// Whether strings in scripts that only look like URLs count as references: a choice, not a
    /// limit. Some of them lead nowhere.
    pub likely_script_urls: bool,
}

impl Default for ExtractLimits {
    fn default() -> Self {
        Self {
            max_links: 50_000,
            max_link_bytes: 16 << 20,
            max_references: 200_000,
            max_title_chars: 500,
            max_srcset_candidates: 200,
            max_document_depth: 3,
            max_parser_bytes: 24 << 20,
            likely_script_urls: false,
        }
    }
}
