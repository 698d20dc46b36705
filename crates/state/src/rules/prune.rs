//! What may be dropped.

use crate::VersionId;

/// Whether a version of a page may go. The last one stays, since the next visit is compared with
/// it.
pub(crate) fn may_go(last: Option<VersionId>, version: VersionId) -> bool {
    last != Some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_version_stays() {
        for (last, expected) in [(None, true), (Some(1), true), (Some(2), false)] {
            assert_eq!(may_go(last.map(VersionId), VersionId(2)), expected);
        }
    }
}
