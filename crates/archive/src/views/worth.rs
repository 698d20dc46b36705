use nenrin_state::{SiteWorth, State, StateError};

/// The sums of the sites that were not removed.
pub fn shown_worth(state: &dyn State) -> Result<Vec<SiteWorth>, StateError> {
    let sites = state.sites()?;
    let is_shown =
        |worth: &SiteWorth| sites.iter().any(|s| s.id == worth.site && s.removed.is_none());
    Ok(state.site_worth()?.into_iter().filter(is_shown).collect())
}

/// Importance and rate of a site's pages, for a terminal; `share` is its part of the archive's importance.
pub fn worth_lines(worth: &SiteWorth, share: Option<f64>) -> Vec<String> {
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
            "  {:<11}{rate:.3} changes per page and day, {:.0}% sure, mean of {} pages",
            "rate",
            sure * 100.0,
            worth.estimated_pages
        ));
    }
    lines
}
