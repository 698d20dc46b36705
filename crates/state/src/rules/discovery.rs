//! What it means that a page was found for a site.

use crate::Discovered;

/// What a found page is to a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finding {
    /// The site does not know it yet.
    New,
    /// The site knows it, and not by a longer way.
    Known,
    /// The site knows it by a longer way, at this depth.
    Nearer {
        /// The depth so far.
        depth: u32,
    },
}

/// What a found page is to a site that knows it at `depth`, or does not know it.
pub(crate) fn finding(depth: Option<u32>, found: &Discovered) -> Finding {
    match depth {
        None => Finding::New,
        Some(depth) if found.depth < depth => Finding::Nearer { depth },
        Some(_) => Finding::Known,
    }
}

/// No site has more levels than these below a page that is found on two ways: with so many left
/// before the site's limit, nothing below the page was cut off.
const LEVELS_BELOW: u32 = 32;

/// Whether a page that was known at `depth` and is nearer now must be received again. Links below
/// it may be inside the site's depth now, so the next visit asks without validators.
pub(crate) fn loses_validators(depth: u32, depth_limit: u32) -> bool {
    depth.saturating_add(LEVELS_BELOW) > depth_limit
}

/// When a found page is due. In a continuous site each page needs a time, however it was found.
pub(crate) fn due_when_found(found: &Discovered, is_continuous: bool, now_s: i64) -> Option<i64> {
    found.due_s.or(is_continuous.then_some(now_s))
}

#[cfg(test)]
mod tests {
    use nenrin_urls::CanonicalUrl;

    use super::*;

    fn found(depth: u32, due_s: Option<i64>) -> Discovered {
        let url = CanonicalUrl::parse("http://e.com/a").unwrap();
        Discovered { url, depth, hops: 0, due_s }
    }

    #[test]
    fn a_page_is_new_known_or_nearer() {
        for (known_at, found_at, expected) in [
            (None, 2, Finding::New),
            (Some(2), 2, Finding::Known),
            (Some(2), 3, Finding::Known),
            (Some(3), 2, Finding::Nearer { depth: 3 }),
        ] {
            assert_eq!(finding(known_at, &found(found_at, None)), expected, "{known_at:?}");
        }
    }

    #[test]
    fn a_nearer_page_is_received_again_where_links_may_have_been_cut_off() {
        for (depth, limit, expected) in
            [(3, 3, true), (3, 34, true), (3, 35, false), (70, 100, true), (u32::MAX, 9, true)]
        {
            assert_eq!(loses_validators(depth, limit), expected, "{depth} of {limit}");
        }
    }

    #[test]
    fn a_found_page_is_due_now_where_pages_have_their_own_times() {
        for (own, is_continuous, expected) in [
            (None, false, None),
            (None, true, Some(7)),
            (Some(9), true, Some(9)),
            (Some(9), false, Some(9)),
        ] {
            assert_eq!(due_when_found(&found(2, own), is_continuous, 7), expected);
        }
    }
}
