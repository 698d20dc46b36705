use std::collections::BTreeMap;

use nenrin_urls::CanonicalUrl;

use super::Findings;

/// The law: every change is seen at most once. Two versions in a row of one page never have the
/// same content.
#[derive(Debug, Default)]
pub struct Once {
    last: BTreeMap<CanonicalUrl, u64>,
    /// What was broken.
    pub findings: Findings,
}

impl Once {
    /// A version of a page was committed with this content.
    pub fn committed(&mut self, url: &CanonicalUrl, content: u64) {
        if self.last.insert(url.clone(), content) == Some(content) {
            self.findings.note(|| format!("{url}: the same content was committed twice in a row"));
        }
    }
}
