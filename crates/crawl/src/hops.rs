//! How a page was reached without going deeper: by redirects, and as a part of other pages.
//!
//! Both are counted in the one number that the state keeps, so that chains of either end.

/// Redirects in a row are counted up to this number.
pub(crate) const REDIRECTS_MAX: u32 = 63;
/// Frames, images, styles inside each other: a frame, its style, what that imports, a font of it,
/// and some more.
pub(crate) const LEVELS_MAX: u32 = 6;

/// Redirects in a row.
pub(crate) fn redirects(hops: u32) -> u32 {
    hops % (REDIRECTS_MAX + 1)
}

/// How many pages it is a part of, one inside the other. For a sitemap: whether an index named it.
pub(crate) fn levels(hops: u32) -> u32 {
    hops / (REDIRECTS_MAX + 1)
}

/// One redirect on.
pub(crate) fn redirected(hops: u32) -> u32 {
    hops + u32::from(redirects(hops) < REDIRECTS_MAX)
}

/// A part of a page that was reached so.
pub(crate) fn part_of(hops: u32) -> u32 {
    (levels(hops) + 1) * (REDIRECTS_MAX + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_and_levels_are_counted_apart() {
        let frame = part_of(redirected(redirected(0)));
        assert_eq!((redirects(frame), levels(frame)), (0, 1));
        let moved = redirected(frame);
        assert_eq!((redirects(moved), levels(moved)), (1, 1));
        assert_eq!(levels(part_of(moved)), 2);
        let endless = (0..1000).fold(frame, |hops, _| redirected(hops));
        assert_eq!((redirects(endless), levels(endless)), (REDIRECTS_MAX, 1));
    }
}
