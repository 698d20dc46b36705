//! The tokens of a script, as far as strings in it are to be found: strings and templates are told
//! apart from comments and regular expressions. JSON is read as a script.

use std::borrow::Cow;

/// Templates within templates that are followed; deeper ones are read as plain text.
const MAX_TEMPLATES: usize = 32;

/// One token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// A name or a keyword.
    Word(&'t str),
    /// A string, or a template without substitutions, with its escapes undone.
    String(Cow<'t, str>),
    /// One character of punctuation.
    Mark(u8),
    /// A number, a regular expression, or a piece of a template.
    Other,
}

/// The tokens of a text.
pub(super) struct Tokens<'t> {
    text: &'t str,
    at: usize,
    /// Whether a slash would begin a regular expression.
    may_be_regex: bool,
    /// For each template that is open: the braces open within its substitution.
    templates: Vec<u32>,
}

impl<'t> Tokens<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0, may_be_regex: true, templates: Vec::new() }
    }

    fn byte(&self, at: usize) -> u8 {
        self.text.as_bytes().get(at).copied().unwrap_or(0)
    }

    /// Skips white space and comments. Returns whether something is left.
    fn skip_blank(&mut self) -> bool {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            match (byte, self.byte(self.at + 1)) {
                (b'/', b'/') => self.at = self.position_of(b"\n", self.at),
                (b'/', b'*') => {
                    self.at = (self.position_of(b"*/", self.at + 2) + 2).min(bytes.len())
                }
                // Scripts in old pages are hidden in comments of HTML, which count as line comments.
                (b'<', b'!') if bytes[self.at..].starts_with(b"<!--") => {
                    self.at = self.position_of(b"\n", self.at);
                }
                (byte, _) if byte.is_ascii_whitespace() => self.at += 1,
                _ => return true,
            }
        }
        false
    }

    /// Where something begins, or the end of the text.
    fn position_of(&self, wanted: &[u8], from: usize) -> usize {
        let bytes = self.text.as_bytes();
        let rest = bytes.get(from..).unwrap_or_default();
        memchr::memmem::find(rest, wanted).map_or(bytes.len(), |n| from + n)
    }

    fn word(&mut self) -> Token<'t> {
        let is_part =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80;
        let start = self.at;
        while is_part(self.byte(self.at)) {
            self.at += 1;
        }
        let word = &self.text[start..self.at];
        self.may_be_regex = matches!(
            word,
            "return"
                | "typeof"
                | "case"
                | "in"
                | "of"
                | "delete"
                | "void"
                | "do"
                | "else"
                | "await"
                | "yield"
                | "throw"
                | "new"
                | "instanceof"
        );
        if word.as_bytes()[0].is_ascii_digit() { Token::Other } else { Token::Word(word) }
    }

    /// A string in quotes. One that does not end on its line is a slip of the reader: it is skipped.
    fn string(&mut self, quote: u8) -> Token<'t> {
        self.may_be_regex = false;
        let start = self.at + 1;
        let mut at = start;
        loop {
            match self.byte(at) {
                b'\\' => at += 2,
                byte if byte == quote => break,
                b'\n' => {
                    self.at = at;
                    return Token::Other;
                }
                0 if at >= self.text.len() => {
                    self.at = self.text.len();
                    return Token::Other;
                }
                _ => at += 1,
            }
        }
        self.at = at + 1;
        self.text.get(start..at).map_or(Token::Other, |raw| Token::String(unescaped(raw)))
    }

    /// A template from its beginning, or from the end of a substitution.
    fn template(&mut self, is_beginning: bool) -> Token<'t> {
        self.may_be_regex = false;
        let start = self.at + 1;
        let mut at = start;
        loop {
            match (self.byte(at), self.byte(at + 1)) {
                (b'\\', _) => at += 2,
                (b'`', _) => break,
                (b'$', b'{') if self.templates.len() < MAX_TEMPLATES => {
                    self.templates.push(0);
                    self.at = at + 2;
                    self.may_be_regex = true;
                    return Token::Other;
                }
                (0, _) if at >= self.text.len() => {
                    self.at = self.text.len();
                    return Token::Other;
                }
                _ => at += 1,
            }
        }
        self.at = at + 1;
        match self.text.get(start..at) {
            Some(raw) if is_beginning => Token::String(unescaped(raw)),
            _ => Token::Other,
        }
    }

    /// The end of a regular expression that begins here, if it ends on its line.
    fn regex_end(&self) -> Option<usize> {
        let mut in_class = false;
        let mut at = self.at + 1;
        loop {
            match self.byte(at) {
                b'\\' => at += 2,
                b'[' => (in_class, at) = (true, at + 1),
                b']' => (in_class, at) = (false, at + 1),
                b'/' if !in_class => return Some(at + 1),
                b'\n' => return None,
                0 if at >= self.text.len() => return None,
                _ => at += 1,
            }
        }
    }

    fn mark(&mut self, byte: u8) -> Token<'t> {
        match (byte, self.templates.last_mut()) {
            (b'{', Some(braces)) => *braces += 1,
            (b'}', Some(0)) => {
                self.templates.pop();
                return self.template(false);
            }
            (b'}', Some(braces)) => *braces -= 1,
            _ => {}
        }
        self.at += 1;
        self.may_be_regex = !matches!(byte, b')' | b']' | b'}');
        Token::Mark(byte)
    }
}

impl<'t> Iterator for Tokens<'t> {
    type Item = Token<'t>;

    fn next(&mut self) -> Option<Token<'t>> {
        if !self.skip_blank() {
            return None;
        }
        let byte = self.byte(self.at);
        Some(match byte {
            b'"' | b'\'' => self.string(byte),
            b'`' => self.template(true),
            b'/' if self.may_be_regex => match self.regex_end() {
                Some(end) => {
                    (self.at, self.may_be_regex) = (end, false);
                    Token::Other
                }
                None => self.mark(byte),
            },
            b'_' | b'$' | 0x80.. => self.word(),
            byte if byte.is_ascii_alphanumeric() => self.word(),
            byte => self.mark(byte),
        })
    }
}

/// A string with its escapes undone.
fn unescaped(raw: &str) -> Cow<'_, str> {
    if !raw.contains('\\') {
        return Cow::Borrowed(raw);
    }
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let mut chars = after.chars();
        let escape = chars.next();
        rest = chars.as_str();
        match escape {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('\n') | None => {}
            Some('x') => rest = take_code(rest, 2, &mut out),
            Some('u') if rest.starts_with('{') => {
                let end = rest.find('}').unwrap_or(0);
                let digits = rest.get(1..end).unwrap_or_default();
                out.extend(code(digits));
                rest = rest.get(end + 1..).unwrap_or_default();
            }
            Some('u') => rest = take_code(rest, 4, &mut out),
            Some(other) => out.push(other),
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn take_code<'r>(rest: &'r str, digits: usize, out: &mut String) -> &'r str {
    match rest.get(..digits).and_then(code) {
        Some(character) => {
            out.push(character);
            &rest[digits..]
        }
        None => rest,
    }
}

fn code(digits: &str) -> Option<char> {
    u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn strings(script: &str) -> Vec<String> {
        let string = |token| match token {
            Token::String(text) => Some(text.into_owned()),
            _ => None,
        };
        Tokens::new(script).filter_map(string).collect()
    }

    #[test]
    fn strings_are_found_and_nothing_else() {
        for (script, expected) in [
            ("a('x', \"y\", `z`)", vec!["x", "y", "z"]),
            ("// 'x'\n/* 'y' */ 'z'", vec!["z"]),
            ("<!-- 'x'\n'z'", vec!["z"]),
            ("a = /'/g; 'x'", vec!["x"]),
            ("a = /[/']/; 'x'", vec!["x"]),
            ("return /'/.test('x')", vec!["x"]),
            ("a / b; 'x' / 2", vec!["x"]),
            ("(a) / 2; 'x'", vec!["x"]),
            (r"'a\'b' '\u0041\x42\u{43}\/' '\q'", vec!["a'b", "ABC/", "q"]),
            ("`a${ {b: 'x'}[`y`] }c` + 'z'", vec!["x", "y", "z"]),
            ("'not ended\n'x'", vec!["x"]),
            ("`not ended", vec![]),
            ("'not ended", vec![]),
            ("é = 'ü'", vec!["ü"]),
            (r#"{"a\/b":["\u00e9",1.5e3,true,null]}"#, vec!["a/b", "é"]),
        ] {
            assert_eq!(strings(script), expected, "{script}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_to_its_end(text in "('|\"|`|\\$\\{|\\{|\\}|/|\\*|\\\\|\\\\u|\\[|\n|a|é|<!--|\\PC){0,40}") {
            prop_assert!(Tokens::new(&text).count() <= text.len());
        }
    }
}
