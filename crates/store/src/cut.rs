//! Cutting HTML at tags into blocks (paper 001). Joined, the blocks are the input, whatever it is.

/// Tags that begin something a person would see as a part of the page, and those that a head is
/// made of. Inline tags would only make the blocks smaller and their lists longer.
const CUT_TAGS: [&[u8]; 38] = [
    b"a", b"article", b"aside", b"body", b"br", b"dd", b"div", b"dl", b"dt", b"footer", b"form",
    b"h1", b"h2", b"h3", b"h4", b"head", b"header", b"hr", b"img", b"li", b"link", b"main",
    b"meta", b"nav", b"ol", b"option", b"p", b"pre", b"script", b"section", b"span", b"style",
    b"table", b"td", b"th", b"title", b"tr", b"ul",
];
const MAX_TAG_BYTES: usize = 7;
/// The same as numbers, which are compared at once; in the same order.
const CUT_WORDS: [u64; CUT_TAGS.len()] = {
    let mut words = [0; CUT_TAGS.len()];
    let mut tag = 0;
    while tag < words.len() {
        let mut name = [0; 8];
        let mut at = 0;
        while at < CUT_TAGS[tag].len() {
            name[at] = CUT_TAGS[tag][at];
            at += 1;
        }
        words[tag] = u64::from_be_bytes(name);
        tag += 1;
    }
    words
};
/// A block is at least this long, so that a list of links is not cut into crumbs.
const MIN_BLOCK_BYTES: usize = 24;

/// The blocks of `body` in order.
pub fn cut(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = body;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (block, behind) = rest.split_at(first_cut(rest));
        rest = behind;
        Some(block)
    })
}

/// Where the first block ends.
fn first_cut(html: &[u8]) -> usize {
    let Some(tail) = html.get(MIN_BLOCK_BYTES..) else { return html.len() };
    memchr::memchr_iter(b'<', tail)
        .map(|at| at + MIN_BLOCK_BYTES)
        .find(|at| begins_part(&html[at + 1..]))
        .unwrap_or(html.len())
}

/// Whether the bytes behind a `<` name one of the tags.
fn begins_part(behind: &[u8]) -> bool {
    let mut name = [0; 8];
    let letters = behind.iter().take_while(|byte| byte.is_ascii_alphanumeric());
    for (at, byte) in letters.take(MAX_TAG_BYTES + 1).enumerate() {
        name[at] = byte.to_ascii_lowercase();
    }
    CUT_WORDS.binary_search(&u64::from_be_bytes(name)).is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_tags_are_sorted_and_short_enough() {
        assert!(CUT_TAGS.is_sorted() && CUT_WORDS.is_sorted());
        assert!(CUT_TAGS.iter().all(|tag| begins_part(tag)));
        assert!(!begins_part(b"") && !begins_part(b"b") && !begins_part(b"articles"));
        assert!(CUT_TAGS.iter().all(|tag| tag.len() <= MAX_TAG_BYTES));
    }

    #[test]
    fn a_page_is_cut_in_front_of_its_parts() {
        let page = b"<!DOCTYPE html><html lang=ja><HEAD><title>A title</title></head><body class=x><p>one paragraph of text<b>bold</b><p>another";
        let blocks: Vec<&str> = cut(page).map(|b| std::str::from_utf8(b).unwrap()).collect();
        assert_eq!(
            blocks,
            [
                "<!DOCTYPE html><html lang=ja>",
                "<HEAD><title>A title</title></head>",
                "<body class=x><p>one paragraph of text<b>bold</b>",
                "<p>another"
            ]
        );
    }

    #[test]
    fn a_change_in_one_part_leaves_the_other_blocks_alone() {
        let page = |middle: &str| {
            (0..20)
                .map(|n| {
                    format!("<div class=entry>part {n} {}</div>", if n == 9 { middle } else { "" })
                })
                .collect::<String>()
        };
        let (before, after) = (page("before"), page("after, and rather longer than that"));
        let before: Vec<&[u8]> = cut(before.as_bytes()).collect();
        let changed = cut(after.as_bytes()).filter(|block| !before.contains(block)).count();
        assert_eq!(changed, 1);
    }

    proptest! {
        #[test]
        fn joined_blocks_are_the_input(body: Vec<u8>) {
            prop_assert_eq!(cut(&body).collect::<Vec<_>>().concat(), body);
        }

        #[test]
        fn joined_blocks_are_the_input_for_broken_html(
            parts in proptest::collection::vec("(<(/|!--)?(div|p|br|table|xyzxyzxyz|)( |>|=\"|)|text|<|[あ-ん]){0,4}", 0..60)
        ) {
            let body = parts.concat();
            let blocks: Vec<&[u8]> = cut(body.as_bytes()).collect();
            prop_assert!(blocks.iter().all(|block| !block.is_empty()));
            prop_assert_eq!(blocks.concat(), body.as_bytes());
        }
    }
}
