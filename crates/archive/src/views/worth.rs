use nenrin_state::{SiteId, SiteWorth, State, StateError};
use serde_json::{Value, json};

use crate::counted;

/// The sums of the sites that were not removed.
pub fn shown_worth(state: &dyn State) -> Result<Vec<SiteWorth>, StateError> {
    let sites = state.sites()?;
    let is_shown =
        |worth: &SiteWorth| sites.iter().any(|s| s.id == worth.site && s.removed.is_none());
    Ok(state.site_worth()?.into_iter().filter(is_shown).collect())
}

/// What a site's pages are worth and how often they change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WorthOfSite {
    worth: SiteWorth,
    /// The site's part of the archive's importance.
    share: Option<f64>,
}

/// What a site's pages are worth, if anything is known of it.
pub fn worth_of(state: &dyn State, site: SiteId) -> Result<Option<WorthOfSite>, StateError> {
    let all = shown_worth(state)?;
    let own = all.iter().find(|worth| worth.site == site);
    Ok(own.map(|worth| WorthOfSite { worth: *worth, share: worth.share_of(&all) }))
}

impl WorthOfSite {
    /// For programs.
    pub fn as_json(&self) -> Value {
        let Self { worth, share } = self;
        json!({
            "importance": worth.importance(), "importance_share": share,
            "weighed_pages": worth.weighed_pages, "estimated_pages": worth.estimated_pages,
            "rate_per_day": worth.mean_rate_per_day(), "confidence": worth.mean_confidence(),
            "significant_versions": worth.significant_versions,
        })
    }

    /// Importance and rate, for a terminal.
    pub fn lines(&self) -> Vec<String> {
        let Self { worth, share } = self;
        let mut lines = Vec::new();
        if let Some(share) = share {
            lines.push(format!(
                "  {:<11}{:.1}% of the archive's, {:.0} times the average page's",
                "importance",
                share * 100.0,
                worth.importance()
            ));
        }
        if let (Some(rate), Some(sure)) = (worth.mean_rate_per_day(), worth.mean_confidence()) {
            lines.push(format!(
                "  {:<11}{rate:.3} changes per page and day, {:.0}% sure, mean of {}",
                "rate",
                sure * 100.0,
                counted(worth.estimated_pages, "page")
            ));
        }
        lines
    }
}
