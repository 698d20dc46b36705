//! Import specifiers in scripts. Nothing else in a script is changed.

use super::{edits::Edits, links::Links};
use crate::modifier::Modifier;

/// The deepest nesting of templates that is read.
const MAX_DEPTH: usize = 64;

/// Rewrites the specifiers of `import` and `export … from` that are not relative paths; `None` if
/// nothing changes.
pub(crate) fn rewrite(script: &[u8], links: &Links) -> Option<Vec<u8>> {
    let names_modules = memchr::memmem::find(script, b"import").is_some()
        || memchr::memmem::find(script, b"export").is_some();
    if !names_modules {
        return None;
    }
    let mut scan = Scan {
        script,
        at: 0,
        links,
        edits: Edits::default(),
        before: Before::Operator,
        templates: Vec::new(),
    };
    scan.run();
    (!scan.edits.is_empty()).then(|| scan.edits.apply(script))
}

/// What came before, as needed to tell a division from a regular expression and a specifier from
/// another string.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// A value ended: `/` divides.
    Value,
    /// A value must follow: `/` begins a regular expression.
    Operator,
    /// `import` or `from`: a string is a specifier.
    Import,
    /// `import(`: a string is a specifier here too.
    ImportCall,
}

struct Scan<'a> {
    script: &'a [u8],
    at: usize,
    links: &'a Links,
    edits: Edits,
    before: Before,
    /// For each template that is open, the braces open inside its current `${`.
    templates: Vec<usize>,
}

impl Scan<'_> {
    fn run(&mut self) {
        while let Some(&byte) = self.script.get(self.at) {
            match byte {
                b'/' => self.slash(),
                b'"' | b'\'' => self.string(byte),
                b'`' => {
                    self.at += 1;
                    self.template();
                }
                b'{' => self.brace(true),
                b'}' => self.brace(false),
                _ if is_word_byte(byte) => self.word(),
                _ if byte.is_ascii_whitespace() => self.at += 1,
                _ => {
                    self.before = match (byte, self.before) {
                        (b'(', Before::Import) => Before::ImportCall,
                        (b')' | b']', _) => Before::Value,
                        _ => Before::Operator,
                    };
                    self.at += 1;
                }
            }
        }
    }

    fn slash(&mut self) {
        let rest = &self.script[self.at..];
        match rest.get(1) {
            Some(b'/') => self.at += memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len()),
            Some(b'*') => {
                let end = memchr::memmem::find(&rest[2..], b"*/");
                self.at += end.map_or(rest.len(), |end| end + 4);
            }
            _ if self.before == Before::Value => {
                self.before = Before::Operator;
                self.at += 1;
            }
            _ => {
                self.at += regular_expression_length(rest);
                self.before = Before::Value;
            }
        }
    }

    fn string(&mut self, quote: u8) {
        let start = self.at + 1;
        let mut end = start;
        while let Some(&byte) = self.script.get(end) {
            match byte {
                b'\\' => end += 1,
                b'\n' => break,
                _ if byte == quote => break,
                _ => {}
            }
            end += 1;
        }
        let end = end.min(self.script.len());
        let specifier = &self.script[start..end];
        if matches!(self.before, Before::Import | Before::ImportCall)
            && !specifier.contains(&b'\\')
            && let Some(new) = self.links.rewrite(specifier, Modifier::Script)
        {
            self.edits.replace(start..end, new);
        }
        self.before = Before::Value;
        self.at = (end + 1).min(self.script.len());
    }

    /// Called inside a template; ends after it or inside its next `${`.
    fn template(&mut self) {
        while let Some(&byte) = self.script.get(self.at) {
            match byte {
                b'\\' => self.at += 2,
                b'`' => {
                    self.at += 1;
                    self.before = Before::Value;
                    return;
                }
                b'$' if self.script.get(self.at + 1) == Some(&b'{') => {
                    self.at += 2;
                    if self.templates.len() < MAX_DEPTH {
                        self.templates.push(0);
                    }
                    self.before = Before::Operator;
                    return;
                }
                _ => self.at += 1,
            }
        }
    }

    fn brace(&mut self, opens: bool) {
        self.at += 1;
        // After a block a regular expression is more likely than a division.
        self.before = Before::Operator;
        match (self.templates.last_mut(), opens) {
            (Some(open), true) => *open += 1,
            (Some(0), false) => {
                self.templates.pop();
                self.template();
            }
            (Some(open), false) => *open -= 1,
            (None, _) => {}
        }
    }

    fn word(&mut self) {
        let rest = &self.script[self.at..];
        let length = rest.iter().take_while(|b| is_word_byte(**b)).count();
        let is_property = self.at > 0 && self.script[self.at - 1] == b'.';
        self.before = match &rest[..length] {
            b"import" | b"from" if !is_property => Before::Import,
            b"return" | b"typeof" | b"case" | b"in" | b"of" | b"do" | b"else" | b"void"
            | b"delete" | b"throw" | b"new" | b"instanceof" | b"yield" | b"await"
                if !is_property =>
            {
                Before::Operator
            }
            _ => Before::Value,
        };
        self.at += length;
    }
}

fn regular_expression_length(text: &[u8]) -> usize {
    let mut in_class = false;
    let mut at = 1;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\\' => at += 1,
            b'[' => in_class = true,
            b']' => in_class = false,
            b'/' if !in_class => return at + 1,
            // It was not one: a division after all.
            b'\n' => return 1,
            _ => {}
        }
        at += 1;
    }
    1
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;
    use nenrin_urls::CanonicalUrl;
    use proptest::prelude::*;

    fn links() -> Links {
        let url = CanonicalUrl::parse("http://e.com/js/main.js").unwrap();
        Links::new(0, Modifier::Script, url)
    }

    fn rewritten(script: &str) -> String {
        let new = rewrite(script.as_bytes(), &links()).unwrap_or(script.as_bytes().to_vec());
        String::from_utf8(new).unwrap().replace("/web/19700101000000", "@@")
    }

    #[test]
    fn specifiers_that_leave_the_path_are_rewritten() {
        for (script, expected) in [
            ("import '/a.js'", "import '@@js_/http://e.com/a.js'"),
            ("import{a}from\"https://f.org/a.js\"", "import{a}from\"@@js_/https://f.org/a.js\""),
            ("import * as b from '//f.org/b.js';", "import * as b from '@@js_/http://f.org/b.js';"),
            ("export * from '/a.js'", "export * from '@@js_/http://e.com/a.js'"),
            (
                "const m = await import('/m.js')",
                "const m = await import('@@js_/http://e.com/m.js')",
            ),
            ("a = `${import('/x.js')}`", "a = `${import('@@js_/http://e.com/x.js')}`"),
            ("b = c / d; import '/a.js'", "b = c / d; import '@@js_/http://e.com/a.js'"),
            ("r = /['\"`]/g; import '/a.js'", "r = /['\"`]/g; import '@@js_/http://e.com/a.js'"),
        ] {
            assert_eq!(rewritten(script), expected, "{script}");
        }
    }

    #[test]
    fn everything_else_in_a_script_stays() {
        for script in [
            "import './a.js'; import 'lit'",
            "// import '/a.js'",
            "/* import '/a.js' */",
            "x = \"import '/a.js'\"",
            "x = `import '/a.js'`",
            "x.from('/a')",
            "fetch('/import')",
            "x = /import '\\/a.js'/",
            "import.meta.url + '/x'",
        ] {
            assert_eq!(rewritten(script), script);
        }
    }

    proptest! {
        #[test]
        fn any_script_is_scanned_without_harm(script in "(import|from|'|\"|`|\\$|\\{|\\}|/|\\\\|\\(|\\[|a|\n| )*") {
            let _ = rewrite(script.as_bytes(), &links());
        }
    }
}
