//! Parts of a page: the text of the elements that a selector names, the blocks that a reader can
//! point at, and the page without some of them.
//!
//! The work and the memory grow with the page and the selector, never faster; no page makes this
//! panic.

mod outline;
mod selector;

use std::collections::BTreeSet;

use outline::{Element, Outline, truncated};
pub use selector::{MAX_SELECTOR_CHARS, PartSelector, SelectorError};

/// Elements of one page that a selector may name; the rest is left out.
const MAX_SELECTED: usize = 200;
/// The longest text of one element.
const MAX_TEXT_BYTES: usize = 20_000;
/// Blocks of one page that are offered.
const MAX_BLOCKS: usize = 400;
/// The longest text of one block that is offered.
const MAX_BLOCK_BYTES: usize = 1_000;
/// Elements that are compared to number a block.
const MAX_NUMBERED: usize = 20_000;

/// A block of a page that a reader can point at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextBlock {
    /// A selector that names it, perhaps with others.
    pub selector: String,
    /// Which of the elements that the selector names it is, from 1.
    pub nth: u32,
    /// Its text.
    pub text: String,
}

/// The text of every element that the selector names, in the order of the page. Elements without
/// text have an empty one.
pub fn selected_texts(html: &str, selector: &PartSelector) -> Vec<String> {
    let page = Outline::read(html);
    let text = |at: usize| {
        let element = &page.elements[at];
        page.text(element.start, element.end, MAX_TEXT_BYTES)
    };
    selector.select(&page).into_iter().take(MAX_SELECTED).map(text).collect()
}

/// The blocks of a page with text of their own, and the numbers among them that have a name.
pub fn text_blocks(html: &str) -> Vec<TextBlock> {
    let page = Outline::read(html);
    let mut blocks = BTreeSet::new();
    for piece in &page.pieces {
        let mut at = piece.within;
        while let Some(inner) = at {
            let element = &page.elements[inner];
            if !element.is_inline() {
                break;
            }
            if has_name(element) && page.text(element.start, element.end, 200).contains(is_digit) {
                blocks.insert(inner);
            }
            at = element.parent;
        }
        blocks.extend(at);
        if blocks.len() >= MAX_BLOCKS {
            break;
        }
    }
    let block = |at: usize| {
        let element = &page.elements[at];
        if is_hidden(element) || !is_plain(element.name) {
            return None;
        }
        let text =
            truncated(page.text(element.start, element.end, MAX_BLOCK_BYTES), MAX_BLOCK_BYTES);
        let (selector, nth) = named(&page, at);
        (!text.is_empty()).then_some(TextBlock { selector, nth, text })
    };
    blocks.into_iter().filter_map(block).collect()
}

fn is_digit(c: char) -> bool {
    c.is_numeric()
}

/// What is in the page without being shown as its content.
fn is_hidden(element: &Element<'_>) -> bool {
    ["html", "head", "script", "style", "template"]
        .iter()
        .any(|name| element.name.eq_ignore_ascii_case(name))
}

fn has_name(element: &Element<'_>) -> bool {
    element.attribute("id").is_some_and(|id| is_plain(&id)) || !classes(element).is_empty()
}

/// The first two classes that can be written without escapes.
fn classes(element: &Element<'_>) -> Vec<String> {
    let all = element.attribute("class").unwrap_or_default();
    all.split_ascii_whitespace().filter(|c| is_plain(c)).take(2).map(str::to_owned).collect()
}

fn is_plain(name: &str) -> bool {
    let rest = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    name.len() <= 60
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(rest)
}

/// A selector for an element, and which of the elements that it names this is.
fn named(page: &Outline<'_>, at: usize) -> (String, u32) {
    let element = &page.elements[at];
    let first = at.saturating_sub(MAX_NUMBERED);
    let before = &page.elements[first..at];
    let (selector, alike) = match element.attribute("id").filter(|id| is_plain(id)) {
        Some(id) => {
            let has_id =
                |other: &&Element<'_>| other.attribute("id").is_some_and(|own| own.trim() == id);
            (format!("#{id}"), before.iter().filter(has_id).count())
        }
        None => {
            let (name, classes) = (element.name.to_ascii_lowercase(), classes(element));
            let is_alike = |other: &&Element<'_>| {
                other.name.eq_ignore_ascii_case(&name) && classes.iter().all(|c| other.has_class(c))
            };
            let alike = before.iter().filter(is_alike).count();
            let parts = std::iter::once(name.as_str()).chain(classes.iter().map(String::as_str));
            (parts.collect::<Vec<_>>().join("."), alike)
        }
    };
    (selector, u32::try_from(alike + 1).unwrap_or(u32::MAX))
}

/// The page without the elements that the selectors name. With a number, only that one of the
/// elements that its selector names.
pub fn without_parts(html: &str, parts: &[(PartSelector, u32)]) -> String {
    let page = Outline::read(html);
    let mut cuts: Vec<(usize, usize)> = Vec::new();
    for (selector, nth) in parts {
        let selected = selector.select(&page);
        let chosen: &[usize] = match *nth as usize {
            0 => &selected,
            nth => selected.get(nth - 1..nth).unwrap_or_default(),
        };
        cuts.extend(chosen.iter().map(|at| (page.elements[*at].start, page.elements[*at].end)));
    }
    cuts.sort_unstable();
    let mut rest = String::with_capacity(html.len());
    let mut from = 0;
    for (start, end) in cuts {
        rest.push_str(html.get(from..start.max(from)).unwrap_or_default());
        from = from.max(end);
    }
    rest.push_str(html.get(from..).unwrap_or_default());
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOP: &str = "<html><head><title>Shop</title><style>p{}</style></head><body>\
        <div id=main><h1>Tea</h1><p class='price big'>Price: <b>1,200</b>&nbsp;yen<p class=price>Old: 9\
        <ul><li>one<li>two <i>and</i> a half</ul></div>\
        <div class=ad>Buy<script>var a = '<p>no</p>'</script> now</div></body></html>";

    fn texts(selector: &str) -> Vec<String> {
        selected_texts(SHOP, &PartSelector::parse(selector).unwrap())
    }

    #[test]
    fn selectors_name_elements() {
        assert_eq!(texts("p.price.big b"), ["1,200"]);
        assert_eq!(texts("p"), ["Price: 1,200 yen", "Old: 9"], "a paragraph ends the one before");
        assert_eq!(texts("#main > p:nth-of-type(2)"), ["Old: 9"]);
        assert_eq!(texts("li"), ["one", "two and a half"]);
        assert_eq!(texts("ul li:nth-child(2), h1"), ["Tea", "two and a half"]);
        assert_eq!(texts("div[class=ad]"), ["Buy now"]);
        let menu = "<nav><a>One</a> <a>Two</a>\n<a>T<b>hree</b></a></nav>";
        let nav = PartSelector::parse("nav").unwrap();
        assert_eq!(selected_texts(menu, &nav), ["One Two Three"]);
        assert_eq!(texts("body > li"), Vec::<String>::new());
        assert_eq!(texts("[id=\"main\"] h1:first-child"), ["Tea"]);
        assert_eq!(texts(r"#\6d ain h1"), ["Tea"], "as browsers write it");
    }

    #[test]
    fn what_is_not_understood_is_named() {
        let wrong = |text: &str| PartSelector::parse(text).unwrap_err();
        assert_eq!(wrong(""), SelectorError::Empty);
        assert_eq!(wrong("p:hover"), SelectorError::Unknown(":hover".into()));
        assert_eq!(wrong("p >"), SelectorError::Empty);
        assert_eq!(wrong("p + p"), SelectorError::Unknown("+ p".into()));
        assert_eq!(wrong(&"p ".repeat(100)), SelectorError::TooLong);
        assert_eq!(wrong(&"p".repeat(501)), SelectorError::TooLong);
    }

    #[test]
    fn every_block_is_found_again_by_its_selector() {
        let blocks = text_blocks(SHOP);
        let shown: Vec<&str> = blocks.iter().map(|block| block.text.as_str()).collect();
        assert_eq!(
            shown,
            ["Shop", "Tea", "Price: 1,200 yen", "Old: 9", "one", "two and a half", "Buy now"]
        );
        for block in &blocks {
            let found = selected_texts(SHOP, &PartSelector::parse(&block.selector).unwrap());
            assert_eq!(found[block.nth as usize - 1], block.text, "{}", block.selector);
        }
    }

    #[test]
    fn parts_are_cut_out() {
        let cut = |selector: &str, nth| {
            without_parts(SHOP, &[(PartSelector::parse(selector).unwrap(), nth)])
        };
        assert!(!cut("div.ad", 0).contains("now"));
        assert!(cut("div.ad", 2).contains("now"));
        let one = cut("li", 1);
        assert!(!one.contains("one") && one.contains("half"));
        let both = PartSelector::parse("#main, h1").unwrap();
        assert!(without_parts(SHOP, &[(both, 0)]).starts_with("<html><head>"));
    }

    proptest::proptest! {
        #[test]
        fn no_page_breaks_it(html in "(<|>|/|p|div|li|class=|\"|'| |&amp;|é|<!--|-->|\\PC){0,60}", selector in "(p|div|\\.a|#b|>| |,|\\[c\\]|:nth-child\\(1\\)|\\PC){0,8}") {
            for block in text_blocks(&html) {
                let parsed = PartSelector::parse(&block.selector).unwrap();
                let found = selected_texts(&html, &parsed);
                if let Some(text) = found.get(block.nth as usize - 1) {
                    proptest::prop_assert!(text.starts_with(&block.text));
                }
            }
            if let Ok(parsed) = PartSelector::parse(&selector) {
                let _ = selected_texts(&html, &parsed);
                let _ = without_parts(&html, &[(parsed, 0)]);
            }
        }
    }
}
