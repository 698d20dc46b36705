//! Whether a page is rendered in a browser, why, and what its renderings left behind.

use nenrin_crawl::{Families, TRIALS};
use nenrin_lang::{Lang, RenderReason};
use nenrin_state::{PageRecord, RenderWhen, State, StateError, VersionId};
use nenrin_structure::family_of;
use nenrin_urls::{CanonicalUrl, RenderedRecord};
use serde::Serialize;

/// The most pictures of a page that are named, the newest.
const VIEWS_MAX: usize = 500;

/// What is known of the renderings of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PageRenderings {
    /// Why it is rendered or not.
    pub why: RenderReason,
    /// The same in words.
    pub detail: String,
    /// Where its pictures are stored.
    pub view: Option<CanonicalUrl>,
    /// Where the pictures of the whole page are stored.
    pub whole: Option<CanonicalUrl>,
    /// When they were taken, in seconds since the epoch, oldest first.
    pub views_s: Vec<i64>,
}

/// The renderings of a page. A record of a rendering has none.
///
/// # Errors
/// What the state says.
pub fn renderings_of(
    state: &dyn State,
    page: &PageRecord,
) -> Result<Option<PageRenderings>, StateError> {
    if RenderedRecord::is_one(&page.url) {
        return Ok(None);
    }
    let site = state.sites()?.into_iter().find(|site| site.id == page.site);
    let when = site.map(|site| site.conditions.scripts.render(&page.url)).unwrap_or_default();
    let why = match when {
        RenderWhen::Never => RenderReason::Never,
        RenderWhen::Always => RenderReason::Always,
        RenderWhen::Auto => {
            let servers = state.servers(&[page.id.server()])?;
            let note = servers.first().and_then(|server| server.notes.get("families"));
            let families: Families =
                note.and_then(|note| serde_json::from_str(note).ok()).unwrap_or_default();
            match families.get(&family_of(page.url.path())) {
                None => RenderReason::Untried,
                Some(family) if family.is_useful => RenderReason::Useful,
                Some(family) if family.trials < TRIALS => RenderReason::Trial(family.trials),
                Some(_) => RenderReason::Useless,
            }
        }
    };
    let view = RenderedRecord::View.of(&page.url);
    let taken = match &view {
        Some(view) => {
            state.newest_versions(&view.key(), (i64::MAX, VersionId(u64::MAX)), VIEWS_MAX)?
        }
        None => Vec::new(),
    };
    let views_s: Vec<i64> = taken.into_iter().rev().map(|(_, row)| row.at_s).collect();
    let view = view.filter(|_| !views_s.is_empty());
    let whole = match RenderedRecord::Whole.of(&page.url) {
        Some(whole) if state.version_as_of(&whole.key(), i64::MAX)?.is_some() => Some(whole),
        _ => None,
    };
    Ok(Some(PageRenderings { why, detail: why.text(Lang::En), view, whole, views_s }))
}
