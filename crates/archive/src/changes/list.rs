//! Changes by time, with filters, in portions.

use std::collections::BTreeMap;

use nenrin_state::{
    ChangeCursor, ChangeQuery, PageChange, PageId, Site, SiteId, State, StateError, Summary,
    VersionRow,
};
use nenrin_urls::{CanonicalUrl, VersionId};

use super::kind::{ChangeKind, is_unseen_part, searched};

/// Rows of the state that one list looks at. Filters that little passes end there and go on with the next portion.
const LOOKED_AT_MAX: usize = 5_000;
/// Rows loaded at once.
const TOGETHER: usize = 200;

/// Which changes to list, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeFilter {
    /// Only this site's.
    pub site: Option<SiteId>,
    /// Seen at or after this time.
    pub from_s: i64,
    /// Seen at or before this time.
    pub to_s: i64,
    /// Begin after this one.
    pub before: Option<ChangeCursor>,
    /// Only this kind.
    pub kind: Option<ChangeKind>,
    /// Without changes that no reader would notice.
    pub significant: bool,
    /// Only where the address, the title or the line has this text, in any case.
    pub text: String,
    /// Also styles, scripts and fonts, and files of other servers.
    pub parts: bool,
    /// At most this many.
    pub limit: usize,
}

/// A change in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedChange {
    /// What happened.
    pub kind: ChangeKind,
    /// To which page, and when.
    pub change: PageChange,
    /// What the version says, as far as it was read.
    pub summary: Option<Summary>,
}

impl ListedChange {
    /// The version that its title and line are read from.
    pub fn wanted(&self) -> Option<Wanted> {
        let change = &self.change;
        let (row, previous) = match (&change.version, &change.previous) {
            (Some(row), previous) => (row, previous.as_ref().map(|row| row.version)),
            (None, Some(last)) => (last, None),
            (None, None) => return None,
        };
        Some(Wanted {
            page: change.page,
            url: change.url.clone(),
            version: row.version,
            previous,
            title_only: change.version.is_none(),
        })
    }

    /// The title, if one is known.
    pub fn title(&self) -> Option<&str> {
        self.summary
            .as_ref()
            .map(|summary| summary.title.as_str())
            .filter(|title| !title.is_empty())
    }

    /// The line that says most about the change, and whether it was taken out.
    pub fn line(&self) -> Option<(&str, bool)> {
        let summary = self.summary.as_ref().filter(|_| self.kind != ChangeKind::Gone)?;
        (!summary.line.is_empty()).then_some((summary.line.as_str(), summary.removed))
    }

    /// Whether a reader would notice it.
    pub fn is_significant(&self) -> bool {
        self.change.version.as_ref().is_none_or(VersionRow::is_significant)
    }
}

/// Some changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListedChanges {
    /// The changes, newest first.
    pub items: Vec<ListedChange>,
    /// Where to go on; `None` when there are no more.
    pub next: Option<ChangeCursor>,
}

/// Lists changes of the sites that were not removed. What is not yet known of the versions can be read by a
/// [`ChangeReader`].
pub fn list(state: &dyn State, filter: &ChangeFilter) -> Result<ListedChanges, StateError> {
    let sites: BTreeMap<SiteId, Site> =
        state.sites()?.into_iter().map(|site| (site.id, site)).collect();
    let text = searched(&filter.text);
    let mut listed = ListedChanges { items: Vec::new(), next: filter.before };
    let mut left = LOOKED_AT_MAX;
    while left > 0 && listed.items.len() < filter.limit {
        let wanted = filter.limit - listed.items.len();
        let query = ChangeQuery {
            site: filter.site,
            from_s: filter.from_s,
            to_s: filter.to_s,
            before: listed.next,
            significant: filter.significant,
            limit: wanted.min(TOGETHER),
            looked_at: left,
        };
        let portion = state.changes(&query)?;
        left = left.saturating_sub(portion.looked_at.max(1));
        let mut found: Vec<ListedChange> = portion
            .changes
            .into_iter()
            .filter(|change| is_listed(&sites, filter, change))
            .map(|change| ListedChange { kind: ChangeKind::of(&change), change, summary: None })
            .filter(|one| filter.kind.is_none_or(|kind| kind == one.kind))
            .collect();
        add_known(state, &mut found)?;
        found.retain(|one| text.is_empty() || has_text(one, &text));
        listed.items.extend(found);
        listed.next = portion.next;
        if portion.next.is_none() {
            break;
        }
    }
    Ok(listed)
}

fn is_listed(sites: &BTreeMap<SiteId, Site>, filter: &ChangeFilter, change: &PageChange) -> bool {
    let Some(site) = sites.get(&filter.site.unwrap_or(change.site)) else { return false };
    if site.removed.is_some() {
        return false;
    }
    let mime = change.version.as_ref().or(change.previous.as_ref()).map(|row| row.mime.as_str());
    filter.parts || (site.conditions.is_own(&change.url) && !is_unseen_part(mime.unwrap_or("")))
}

/// Adds what is known without reading any content.
fn add_known(state: &dyn State, found: &mut [ListedChange]) -> Result<(), StateError> {
    let wanted: Vec<Option<Wanted>> = found.iter().map(ListedChange::wanted).collect();
    let versions: Vec<VersionId> = wanted.iter().flatten().map(|wanted| wanted.version).collect();
    let mut known = state.summaries(&versions)?.into_iter();
    for (one, wanted) in found.iter_mut().zip(&wanted) {
        if let Some(wanted) = wanted {
            one.summary = known.next().flatten().filter(|summary| wanted.is_met_by(summary));
        }
    }
    Ok(())
}

fn has_text(one: &ListedChange, text: &str) -> bool {
    let has = |place: &str| place.to_lowercase().contains(text);
    has(one.change.url.as_str())
        || has(&one.change.url.shown())
        || one.title().is_some_and(has)
        || one.line().is_some_and(|(line, _)| has(line))
}

/// A version whose title and line are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The page.
    pub page: PageId,
    /// Its URL.
    pub url: CanonicalUrl,
    /// The version.
    pub version: VersionId,
    /// The version that it is compared with.
    pub previous: Option<VersionId>,
    /// Whether any summary of the version will do, whatever it was compared with.
    pub title_only: bool,
}

impl Wanted {
    pub(super) fn is_met_by(&self, summary: &Summary) -> bool {
        self.title_only || summary.previous == self.previous
    }
}
