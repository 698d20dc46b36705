//! A site on two dates.

use std::collections::BTreeMap;

use nenrin_state::{PageId, Site, State, StateError, VersionQuery, VersionRow};
use nenrin_urls::CanonicalUrl;
use serde::Serialize;

use super::kind::{ChangeKind, folder_of, is_unseen_part};

/// Folders that are counted; the pages of further ones are counted together.
const FOLDERS_MAX: usize = 300;
/// The name under which the pages of further folders are counted.
const OTHER_FOLDERS: &str = "…";
/// Versions between the two dates that are asked whether they were more than noise.
const STEPS_MAX: usize = 50;

/// Two dates of a site.
#[derive(Debug, Clone, Copy)]
pub struct Between<'a> {
    /// The site.
    pub site: &'a Site,
    /// The earlier date.
    pub from_s: i64,
    /// The later date.
    pub to_s: i64,
    /// Whether styles, scripts, fonts and files of other servers are compared, too.
    pub parts: bool,
}

/// A page that differs between two dates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageDifference {
    /// The page.
    pub page: PageId,
    /// Its URL.
    pub url: CanonicalUrl,
    /// What happened to it.
    pub kind: ChangeKind,
    /// Its version on the earlier date.
    pub old: Option<VersionRow>,
    /// Its version on the later date.
    pub new: Option<VersionRow>,
    /// Whether a reader would notice the difference, as far as each step between was judged.
    pub is_significant: bool,
}

/// The pages of a site after a page, in the order of pages: those that differ, how many were looked at, and where
/// to go on.
pub fn between(
    state: &dyn State,
    dates: Between<'_>,
    after: Option<PageId>,
    limit: usize,
) -> Result<(Vec<PageDifference>, u64, Option<PageId>), StateError> {
    let site = dates.site;
    let old = state.site_as_of(site.id, dates.from_s, after, limit)?;
    let new = state.site_as_of(site.id, dates.to_s, after, limit)?;
    // Beyond the last page of a full portion, that side is not known yet.
    let end = |rows: &[(PageId, CanonicalUrl, VersionRow)]| {
        rows.last().filter(|_| rows.len() >= limit).map(|last| last.0)
    };
    let end = match (end(&old), end(&new)) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    let mut pages: BTreeMap<PageId, (CanonicalUrl, [Option<VersionRow>; 2])> = BTreeMap::new();
    for (side, rows) in [old, new].into_iter().enumerate() {
        let known = rows.into_iter().filter(|(page, ..)| end.is_none_or(|end| *page <= end));
        for (page, url, row) in known {
            pages.entry(page).or_insert_with(|| (url, [None, None])).1[side] = Some(row);
        }
    }
    let mut found = Vec::new();
    let mut looked_at = 0;
    for (page, (url, [old, new])) in pages {
        let mime = new.as_ref().or(old.as_ref()).map_or("", |row| row.mime.as_str());
        if !dates.parts && (!site.conditions.is_own(&url) || is_unseen_part(mime)) {
            continue;
        }
        looked_at += 1;
        let kind = match (&old, &new) {
            (None, _) => ChangeKind::New,
            (_, None) => ChangeKind::Gone,
            (Some(old), Some(new)) if old.version == new.version => continue,
            _ => ChangeKind::Changed,
        };
        let is_significant = match (&old, &new) {
            (Some(old), Some(new)) => has_significant_step(state, &url, old, new)?,
            _ => true,
        };
        found.push(PageDifference { page, url, kind, old, new, is_significant });
    }
    Ok((found, looked_at, end))
}

fn has_significant_step(
    state: &dyn State,
    url: &CanonicalUrl,
    old: &VersionRow,
    new: &VersionRow,
) -> Result<bool, StateError> {
    if new.is_significant() {
        return Ok(true);
    }
    let steps = VersionQuery { from_s: old.at_s + 1, to_s: new.at_s, limit: STEPS_MAX };
    let steps = state.versions(&url.key(), steps)?;
    Ok(steps.len() >= STEPS_MAX || steps.iter().any(|(_, row)| row.is_significant()))
}

/// How many pages of a folder differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FolderCounts {
    /// Pages that only the later date has.
    pub new: u64,
    /// Pages that both dates have, in other versions.
    pub changed: u64,
    /// Pages that only the earlier date has.
    pub gone: u64,
}

impl FolderCounts {
    fn add(&mut self, kind: ChangeKind) {
        *match kind {
            ChangeKind::New => &mut self.new,
            ChangeKind::Changed => &mut self.changed,
            ChangeKind::Gone => &mut self.gone,
        } += 1;
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.new + self.changed + self.gone
    }
}

/// The difference of a site between two dates, as far as it was compared.
#[derive(Debug, Clone, Default)]
pub struct SiteDifference {
    /// Pages compared.
    pub looked_at: u64,
    /// All folders together.
    pub counts: FolderCounts,
    /// By folder.
    pub folders: BTreeMap<String, FolderCounts>,
    /// Pages, in the order in which they were compared; at most [`SiteDifference::PAGES_MAX`].
    pub pages: Vec<PageDifference>,
    /// Where to go on.
    pub after: Option<PageId>,
}

impl SiteDifference {
    /// Pages that are kept for the list; the others are counted.
    pub const PAGES_MAX: usize = 2_000;

    /// Compares further pages, about `limit` of them; returns whether there are more.
    pub fn go_on(
        &mut self,
        state: &dyn State,
        dates: Between<'_>,
        limit: usize,
    ) -> Result<bool, StateError> {
        let (found, looked_at, next) = between(state, dates, self.after, limit)?;
        self.looked_at += looked_at;
        for page in found {
            self.counts.add(page.kind);
            let mut folder = folder_of(dates.site, &page.url);
            if self.folders.len() >= FOLDERS_MAX && !self.folders.contains_key(&folder) {
                folder = OTHER_FOLDERS.to_owned();
            }
            self.folders.entry(folder).or_default().add(page.kind);
            if self.pages.len() < Self::PAGES_MAX {
                self.pages.push(page);
            }
        }
        self.after = next;
        Ok(next.is_some())
    }
}
