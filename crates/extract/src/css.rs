//! What a style sheet refers to.

use cssparser::{ParseError, Parser, Token};

/// The deepest nesting of blocks and functions that is read; deeper content is skipped.
const MAX_DEPTH: u8 = 32;

/// Calls `found` with each reference of a style sheet or a style attribute: `url()`, `src()`,
/// `@import`, `image-set()`. Comments and other strings contain none, and the name in `@namespace`
/// is not a reference. Returns whether something was nested too deep to be read.
pub(crate) fn css_references(css: &str, found: &mut dyn FnMut(&str)) -> bool {
    let mut scan = Scan { found, depth: 0, too_deep: false };
    scan.tokens(&mut Parser::new(css), Context::Block);
    scan.too_deep
}

/// What a quoted string means in its context.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    /// Nothing.
    Block,
    /// The argument of `url()` or `src()`.
    Url,
    /// An image of an `image-set()`.
    ImageSet,
}

struct Scan<'f> {
    found: &'f mut dyn FnMut(&str),
    depth: u8,
    too_deep: bool,
}

impl Scan<'_> {
    fn tokens(&mut self, parser: &mut Parser<'_>, context: Context) {
        let mut after_import = false;
        let mut in_namespace = false;
        while let Ok(token) = parser.next() {
            let was_import = std::mem::take(&mut after_import);
            match token {
                Token::AtKeyword(name) if name.eq_ignore_ascii_case("import") => {
                    after_import = true
                }
                Token::AtKeyword(name) if name.eq_ignore_ascii_case("namespace") => {
                    in_namespace = true;
                }
                Token::Semicolon => in_namespace = false,
                Token::UnquotedUrl(url) if !in_namespace => (self.found)(url),
                Token::QuotedString(url) if was_import || context != Context::Block => {
                    (self.found)(url);
                }
                Token::Function(name) => {
                    let inner = context_of_function(name);
                    if !(in_namespace && inner == Context::Url) {
                        self.nested(parser, inner);
                    }
                }
                Token::CurlyBracketBlock => {
                    in_namespace = false;
                    self.nested(parser, Context::Block);
                }
                Token::ParenthesisBlock | Token::SquareBracketBlock => {
                    self.nested(parser, Context::Block);
                }
                _ => {}
            }
        }
    }

    fn nested(&mut self, parser: &mut Parser<'_>, context: Context) {
        if self.depth == MAX_DEPTH {
            // The parser skips a block that is not entered.
            self.too_deep = true;
            return;
        }
        self.depth += 1;
        let _ = parser.parse_nested_block(|inner| {
            self.tokens(inner, context);
            Ok::<(), ParseError<()>>(())
        });
        self.depth -= 1;
    }
}

fn context_of_function(name: &str) -> Context {
    if name.eq_ignore_ascii_case("url") || name.eq_ignore_ascii_case("src") {
        Context::Url
    } else if name.eq_ignore_ascii_case("image-set")
        || name.eq_ignore_ascii_case("-webkit-image-set")
    {
        Context::ImageSet
    } else {
        Context::Block
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn references(css: &str) -> Vec<String> {
        let mut found = Vec::new();
        css_references(css, &mut |url| found.push(url.to_owned()));
        found
    }

    #[test]
    fn references_are_found_where_css_has_them() {
        for (css, expected) in [
            ("@import 'a.css';", vec!["a.css"]),
            ("@IMPORT \"a.css\" screen;", vec!["a.css"]),
            ("@import url(a.css) layer(x);", vec!["a.css"]),
            ("@import url('a.css') supports(display: grid);", vec!["a.css"]),
            ("a { background: url( a.png ) }", vec!["a.png"]),
            (
                "a { background: URL(\"a b.png\") no-repeat, url('c.png') }",
                vec!["a b.png", "c.png"],
            ),
            ("a { background: u\\72l(a.png) }", vec!["a.png"]),
            ("a { b: url(a\\).png) }", vec!["a).png"]),
            (
                "@font-face { src: local('x'), url(a.woff2) format('woff2'), url(b.woff) }",
                vec!["a.woff2", "b.woff"],
            ),
            (
                "a { b: image-set('a.png' 1x, url(b.png) 2x type('image/png')) }",
                vec!["a.png", "b.png"],
            ),
            ("@media print { @supports (a:b) { a { b: url(c.png) } } }", vec!["c.png"]),
            ("a { --x: url(a.png); filter: url(#f) }", vec!["a.png", "#f"]),
            ("background: url(a.png); color: red", vec!["a.png"]),
            ("a { b: src('a.png') }", vec!["a.png"]),
        ] {
            assert_eq!(references(css), expected, "{css}");
        }
    }

    #[test]
    fn nothing_is_found_in_comments_strings_and_namespaces() {
        for css in [
            "/* url(a.png) @import 'x'; */",
            "a::before { content: 'url(a.png)' }",
            "a { content: \"@import 'a.css'\" }",
            "@namespace url(http://www.w3.org/1999/xhtml);",
            "@namespace svg url('http://www.w3.org/2000/svg');",
            "a[href='x.png'] { }",
            "@charset 'utf-8';",
        ] {
            assert_eq!(references(css), Vec::<String>::new(), "{css}");
        }
        assert_eq!(references("@namespace url(x); a { b: url(y) }"), ["y"]);
    }

    #[test]
    fn what_is_nested_too_deep_is_skipped_and_reported() {
        let deep =
            format!("{}url(a.png){} a {{ b: url(c.png) }}", "(".repeat(5000), ")".repeat(5000));
        let mut found = Vec::new();
        assert!(css_references(&deep, &mut |url| found.push(url.to_owned())));
        assert_eq!(found, ["c.png"]);
    }

    #[test]
    fn broken_css_still_gives_what_can_be_read() {
        assert_eq!(references("}}} a { b: url(c.png"), ["c.png"]);
        assert_eq!(references("a { b: url('c.png"), ["c.png"]);
        assert_eq!(references("<!-- a { b: url(c.png) } -->"), ["c.png"]);
    }

    proptest! {
        #[test]
        fn any_text_is_read(css in "(url\\(|\\)|'|\"|@import|\\{|\\}|/\\*|\\*/|\\\\|\\PC){0,30}") {
            references(&css);
        }
    }
}
