use nenrin_state::{SiteWorth, State, StateError};

/// The sums of the sites that were not removed.
pub fn shown_worth(state: &dyn State) -> Result<Vec<SiteWorth>, StateError> {
    let sites = state.sites()?;
    let is_shown =
        |worth: &SiteWorth| sites.iter().any(|s| s.id == worth.site && s.removed.is_none());
    Ok(state.site_worth()?.into_iter().filter(is_shown).collect())
}
