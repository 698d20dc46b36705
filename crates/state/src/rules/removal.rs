//! What removing a site, or undoing it, does.

use crate::{Removal, SiteId, StateError};

/// What a removal does to a site and its pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Effect {
    /// The site is paused.
    pub(crate) pauses: bool,
    /// Pages that no site shows any more are not found by their keys; else those that were denied
    /// for this site are found again.
    pub(crate) denies: bool,
}

/// What to do when a site that is removed as in `before` is to be removed as in `removal`.
pub(crate) fn remove(
    site: SiteId,
    before: Option<Removal>,
    removal: Option<Removal>,
) -> Result<Effect, StateError> {
    if before == Some(Removal::Delete) && removal != Some(Removal::Delete) {
        return Err(StateError::SiteDeleted { name: site.0.to_string() });
    }
    Ok(Effect { pauses: removal.is_some(), denies: removal >= Some(Removal::Deny) })
}

/// Whether a site shows its pages, so that they stay when another site that has them is denied.
pub(crate) fn shows_pages(removal: Option<Removal>) -> bool {
    removal < Some(Removal::Deny)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_removal_includes_the_ones_before_it() {
        let effect = |pauses, denies| Effect { pauses, denies };
        for (before, removal, expected) in [
            (None, Some(Removal::Hide), effect(true, false)),
            (None, Some(Removal::Deny), effect(true, true)),
            (Some(Removal::Deny), Some(Removal::Delete), effect(true, true)),
            (Some(Removal::Deny), Some(Removal::Hide), effect(true, false)),
            (Some(Removal::Deny), None, effect(false, false)),
            (Some(Removal::Delete), Some(Removal::Delete), effect(true, true)),
        ] {
            assert_eq!(remove(SiteId(1), before, removal).unwrap(), expected);
            assert_eq!(shows_pages(removal), !expected.denies);
        }
    }

    #[test]
    fn a_deletion_cannot_be_undone() {
        for removal in [None, Some(Removal::Hide), Some(Removal::Deny)] {
            let error = remove(SiteId(1), Some(Removal::Delete), removal).unwrap_err();
            assert!(matches!(error, StateError::SiteDeleted { .. }), "{error}");
        }
    }
}
