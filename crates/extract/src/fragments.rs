//! The fragments at both ends of a page, which other pages may share: head, menu, sidebar, footer.

use crate::hash::{mixed, stable_hash};

/// The most fragments of one page.
pub const MAX_PAGE_FRAGMENTS: usize = 24;
/// Pieces looked at from either end of a page: shared frames are at the ends.
const END_PIECES: usize = 64;
/// One piece in this many ends a fragment.
const PIECES_PER_FRAGMENT: u64 = 4;

/// Hashes of the fragments at both ends of a page, ascending.
///
/// A page is cut in front of its start tags. The content of the pieces decides where a fragment
/// ends, so pages made from one template have the fragments of its frame in common, wherever these
/// are. Everything in a shared frame is in some fragment, and any change there replaces one: small
/// changes are not missed, as they would be by a sample.
pub fn page_fragments(html: &[u8]) -> Vec<u32> {
    let pieces = pieces(html);
    let mut fragments = Vec::new();
    if pieces.len() <= 2 * END_PIECES {
        cut(&pieces, [true, true], &mut fragments);
    } else {
        cut(&pieces[..END_PIECES], [true, false], &mut fragments);
        cut(&pieces[pieces.len() - END_PIECES..], [false, true], &mut fragments);
    }
    fragments.sort_unstable();
    fragments.dedup();
    // If there are more, pages with the same fragments keep the same ones.
    fragments.truncate(MAX_PAGE_FRAGMENTS);
    fragments
}

/// The page cut in front of its start tags, without white space around the pieces.
fn pieces(html: &[u8]) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    let mut from = 0;
    for at in memchr::memchr_iter(b'<', html) {
        if html.get(at + 1).is_some_and(u8::is_ascii_alphabetic) {
            pieces.push(html[from..at].trim_ascii());
            from = at;
        }
    }
    pieces.push(html[from..].trim_ascii());
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// Gathers pieces into fragments. A fragment that is cut off, and not by the beginning or end of
/// the page itself, is left out.
fn cut(pieces: &[&[u8]], [begins, ends]: [bool; 2], fragments: &mut Vec<u32>) {
    let mut fragment = 0_u64;
    let (mut whole, mut empty) = (begins, true);
    for piece in pieces {
        let hash = stable_hash(piece.iter().copied());
        fragment = mixed(fragment.rotate_left(23) ^ hash);
        empty = false;
        if hash.is_multiple_of(PIECES_PER_FRAGMENT) {
            if whole {
                fragments.push(short(fragment));
            }
            (fragment, whole, empty) = (0, true, true);
        }
    }
    if ends && whole && !empty {
        fragments.push(short(fragment));
    }
}

fn short(hash: u64) -> u32 {
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn page(menu: &[&str], name: &str, paragraphs: u32) -> Vec<u32> {
        let menu: String =
            menu.iter().map(|entry| format!("<li><a href='{entry}'>{entry}</a>")).collect();
        let text: String = (0..paragraphs).map(|n| format!("<p>{name} says {n}")).collect();
        page_fragments(format!("<title>{name}</title><ul>{menu}</ul>{text}<hr>").as_bytes())
    }

    fn menu() -> Vec<&'static str> {
        "oak ash elm fir yew larch pine beech hazel rowan maple cedar birch alder lime plum pear \
         cherry apple willow poplar spruce cypress juniper holly"
            .split_whitespace()
            .collect()
    }

    fn shared(a: &[u32], b: &[u32]) -> usize {
        a.iter().filter(|fragment| b.contains(fragment)).count()
    }

    #[test]
    fn pages_of_one_template_have_its_fragments_in_common_however_long_they_are() {
        let (short, long) = (page(&menu(), "short", 3), page(&menu(), "long", 900));
        assert!(shared(&short, &long) >= 4, "{short:?} {long:?}");
        assert!(long.len() <= MAX_PAGE_FRAGMENTS && long.is_sorted());
        let other: Vec<&str> = menu().into_iter().rev().collect();
        assert!(shared(&short, &page(&other, "other", 3)) <= 1, "but for how they end");
    }

    #[test]
    fn an_entry_that_comes_or_goes_replaces_a_shared_fragment_and_leaves_others() {
        let before = page(&menu(), "a", 3);
        let others = page(&menu(), "b", 5);
        for at in 3..20 {
            let (mut longer, mut shorter) = (menu(), menu());
            longer.insert(at, "walnut");
            shorter.remove(at);
            for entries in [longer, shorter] {
                let after = page(&entries, "a", 3);
                let lost = before.iter().filter(|fragment| !after.contains(fragment));
                let lost_and_shared = lost.filter(|fragment| others.contains(fragment)).count();
                assert!((1..=3).contains(&lost_and_shared), "{at}: {lost_and_shared}");
                assert!(shared(&before, &after) >= 2, "{at}");
            }
        }
    }

    #[test]
    fn kept_fragments_stay_valid() {
        assert_eq!(page_fragments(b"<p>one<p>two"), [3_060_691_199, 4_138_028_000]);
        assert!(page_fragments(b" \n").is_empty());
    }

    proptest! {
        #[test]
        fn any_bytes_have_few_fragments_in_order(html: Vec<u8>) {
            let fragments = page_fragments(&html);
            prop_assert!(fragments.len() <= MAX_PAGE_FRAGMENTS);
            prop_assert!(fragments.is_sorted_by(|a, b| a < b));
        }
    }
}
