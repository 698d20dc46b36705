//! Whether a site may be collected now: its hours, its pause, its quota, its visits of the day.

use std::collections::BTreeMap;

use nenrin_state::SiteId;

use crate::sites::Sites;

/// Whether a site may be collected, and until when that holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Opening {
    pub(super) is_open: bool,
    /// Whether these are the site's hours.
    pub(super) in_hours: bool,
    pub(super) until_ms: i64,
}

#[derive(Debug, Clone, Copy)]
struct Watched {
    opening: Opening,
    /// Since when these are the site's hours, if they were not before.
    opened_ms: i64,
}

/// The openings of all sites.
#[derive(Debug)]
pub(super) struct Openings {
    openings: BTreeMap<SiteId, Watched>,
    /// When they are to be looked at next.
    until_ms: i64,
}

impl Default for Openings {
    fn default() -> Self {
        Self { openings: BTreeMap::new(), until_ms: i64::MIN }
    }
}

impl Openings {
    /// Whether a site may be collected; one that was not looked at yet may.
    pub(super) fn is_open(&self, site: SiteId) -> bool {
        self.openings.get(&site).is_none_or(|watched| watched.opening.is_open)
    }

    /// Since when these are a site's hours, if they were not before.
    pub(super) fn opened_ms(&self, site: SiteId) -> i64 {
        self.openings.get(&site).map_or(i64::MIN, |watched| watched.opened_ms)
    }

    /// When a site next opens or closes.
    pub(super) fn next_turn_ms(&self) -> Option<i64> {
        Some(self.until_ms).filter(|&until_ms| until_ms < i64::MAX)
    }

    /// Other sites are registered now.
    pub(super) fn follow(&mut self, sites: &Sites) {
        self.openings.retain(|&site, _| sites.get(site).is_some());
        self.forget_all();
    }

    /// A site is to be looked at again.
    pub(super) fn forget(&mut self, site: SiteId) {
        if let Some(watched) = self.openings.get_mut(&site) {
            watched.opening.until_ms = i64::MIN;
        }
        self.until_ms = i64::MIN;
    }

    pub(super) fn forget_all(&mut self) {
        self.openings.values_mut().for_each(|watched| watched.opening.until_ms = i64::MIN);
        self.until_ms = i64::MIN;
    }

    /// Looks at the sites that may have opened or closed. Returns whether one opened.
    pub(super) fn watch(
        &mut self,
        now_ms: i64,
        sites: &Sites,
        opening_of: impl Fn(&nenrin_state::Site) -> Opening,
    ) -> bool {
        if now_ms < self.until_ms {
            return false;
        }
        let mut has_opened = false;
        for site in sites.iter() {
            let before = self.openings.get(&site.id).copied();
            if before.is_some_and(|before| now_ms < before.opening.until_ms) {
                continue;
            }
            let opening = opening_of(site);
            let opened_ms = match before {
                None => i64::MIN,
                Some(before) if before.opening.in_hours => before.opened_ms,
                Some(_) => now_ms,
            };
            self.openings.insert(site.id, Watched { opening, opened_ms });
            has_opened |= opening.is_open && before.is_some_and(|before| !before.opening.is_open);
        }
        let until_ms = self.openings.values().map(|watched| watched.opening.until_ms);
        self.until_ms = until_ms.min().unwrap_or(i64::MAX);
        has_opened
    }
}
