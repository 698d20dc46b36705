use std::collections::BTreeSet;

use nenrin_state::{State, StateError};
use nenrin_urls::CanonicalUrl;

use super::Findings;

/// The law: no known page is ever lost. A page that was committed as known is known at the end, and
/// every page that a committed visit linked to is known.
#[derive(Debug, Default)]
pub struct Durability {
    owed: BTreeSet<CanonicalUrl>,
    /// What was broken.
    pub findings: Findings,
}

impl Durability {
    /// A commit returned: what it made known must stay known.
    pub fn committed<'a>(&mut self, urls: impl Iterator<Item = &'a CanonicalUrl>) {
        for url in urls {
            if !self.owed.contains(url) {
                self.owed.insert(url.clone());
            }
        }
    }

    /// Compares with the state of the partition that has some of the pages.
    pub fn check(
        &mut self,
        state: &dyn State,
        is_own: impl Fn(&CanonicalUrl) -> bool,
    ) -> Result<(), StateError> {
        for url in self.owed.iter().filter(|url| is_own(url)) {
            if state.page(url)?.is_none() {
                self.findings.note(|| format!("{url} was known and is lost"));
            }
        }
        Ok(())
    }
}
