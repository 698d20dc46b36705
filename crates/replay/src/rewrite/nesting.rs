//! How deeply a script is nested, before it is parsed: the parser calls itself for every level, and
//! a script made for it would take the whole stack. The answer is never too small. Where the words
//! of a script cannot be told apart for certain, the answer is that it is too deep.

/// The deepest nesting that is parsed. Real scripts, bundles included, stay far below.
const MAX_DEPTH: usize = 1500;

/// Words after which an expression begins, so that a slash begins a regular expression.
const BEFORE_VALUE: [&[u8]; 13] = [
    b"typeof",
    b"void",
    b"delete",
    b"new",
    b"return",
    b"throw",
    b"case",
    b"in",
    b"instanceof",
    b"do",
    b"else",
    b"extends",
    b"default",
];
/// Words that may be names or begin an expression.
const UNCLEAR: [&[u8]; 5] = [b"yield", b"await", b"of", b"let", b"async"];
/// Words that begin a statement inside of another.
const PREFIXES: [&[u8]; 6] = [b"if", b"for", b"while", b"do", b"else", b"with"];
/// Words that go on with a statement whose last part has ended.
const CONTINUING: [&[u8]; 7] =
    [b"else", b"while", b"catch", b"finally", b"in", b"of", b"instanceof"];

/// Whether a script may be parsed.
pub(super) fn is_shallow(script: &[u8]) -> bool {
    let mut scan =
        Scan { script, at: 0, levels: vec![Level::default()], sum: 0, last: Last::Start };
    scan.run().is_some()
}

/// What was read last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Start,
    /// A name, number, string or the like: a slash divides.
    Value,
    /// A word after which a value begins.
    Word,
    Unclear,
    /// `)`, of a condition or of another pair.
    Close {
        is_condition: bool,
    },
    Brace,
    Punctuation(u8),
}

/// One pair of brackets, or the script itself.
#[derive(Clone, Copy, Default)]
struct Level {
    open: u8,
    /// What nests since the last statement or element began.
    chain: usize,
    /// The part of it that a comma does not end: statements inside of statements.
    prefix: usize,
    /// Whether the pair comes after `if`, `while`, `for` or `with`.
    is_condition: bool,
    /// Whether the word before was one that a label's colon may follow.
    may_be_label: bool,
    is_after_prefix: bool,
    /// Whether a semicolon came last.
    has_ended: bool,
}

struct Scan<'a> {
    script: &'a [u8],
    at: usize,
    levels: Vec<Level>,
    /// All that nests in the levels around the innermost.
    sum: usize,
    last: Last,
}

impl Scan<'_> {
    /// `None` if the script is too deep or cannot be read.
    fn run(&mut self) -> Option<()> {
        let mut had_line_end = true;
        while let Some(&byte) = self.script.get(self.at) {
            let rest = &self.script[self.at..];
            match byte {
                b'\n' | b'\r' => {
                    had_line_end = true;
                    self.at += 1;
                    continue;
                }
                b' ' | b'\t' | 0x0b | 0x0c => {
                    self.at += 1;
                    continue;
                }
                b'/' if matches!(rest.get(1), Some(b'/')) => {
                    self.line_comment();
                    continue;
                }
                b'/' if matches!(rest.get(1), Some(b'*')) => {
                    let length = memchr::memmem::find(&rest[2..], b"*/")? + 4;
                    had_line_end |= memchr::memchr2(b'\n', b'\r', &rest[..length]).is_some();
                    self.at += length;
                    continue;
                }
                b'<' if rest.starts_with(b"<!--") => {
                    self.line_comment();
                    continue;
                }
                b'-' if rest.starts_with(b"-->") => {
                    if !had_line_end {
                        return None;
                    }
                    self.line_comment();
                    continue;
                }
                b'"' | b'\'' => self.string(byte)?,
                b'`' => {
                    self.begin(false);
                    self.at += 1;
                    self.template()?;
                }
                b'/' => self.slash()?,
                b'\\' => return None,
                b'0'..=b'9' => self.number(),
                _ if is_word_byte(byte) => self.word(had_line_end)?,
                _ => self.punctuation(byte)?,
            }
            had_line_end = false;
        }
        Some(())
    }

    fn line_comment(&mut self) {
        let rest = &self.script[self.at..];
        // U+2028 and U+2029 end a line, too: `e2 80 a8` and `e2 80 a9`.
        let plain = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let odd = memchr::memmem::find_iter(&rest[..plain], b"\xe2\x80")
            .find(|at| matches!(rest.get(at + 2), Some(0xa8 | 0xa9)));
        self.at += odd.map_or(plain, |at| at + 3);
    }

    /// What follows a semicolon is another statement, unless it goes on with one around it.
    fn begin(&mut self, goes_on: bool) {
        if let Some(level) = self.levels.last_mut()
            && std::mem::take(&mut level.has_ended)
            && !goes_on
        {
            (level.chain, level.prefix) = (0, 0);
        }
    }

    fn string(&mut self, quote: u8) -> Option<()> {
        self.begin(false);
        self.at += 1;
        loop {
            match *self.script.get(self.at)? {
                b'\\' if self.script[self.at..].starts_with(b"\\\r\n") => self.at += 2,
                b'\\' => self.at += 1,
                b'\n' | b'\r' => return None,
                byte if byte == quote => break,
                _ => {}
            }
            self.at += 1;
        }
        self.at += 1;
        self.last = Last::Value;
        Some(())
    }

    /// Called inside of a template; ends after it or inside its next `${`.
    fn template(&mut self) -> Option<()> {
        loop {
            match *self.script.get(self.at)? {
                b'\\' => self.at += 2,
                b'`' => break,
                b'$' if self.script.get(self.at + 1) == Some(&b'{') => {
                    self.at += 2;
                    self.last = Last::Punctuation(b'{');
                    return self.open(b'`');
                }
                _ => self.at += 1,
            }
        }
        self.at += 1;
        self.last = Last::Value;
        Some(())
    }

    fn slash(&mut self) -> Option<()> {
        let begins_expression = match self.last {
            Last::Start | Last::Word => true,
            Last::Value => false,
            Last::Close { is_condition } => is_condition,
            // After `++` it depends on what was in front of it, after a brace on what that closed.
            Last::Punctuation(b'+' | b'-') if self.is_doubled() => return None,
            Last::Punctuation(_) => true,
            Last::Brace | Last::Unclear => return None,
        };
        if !begins_expression {
            return self.punctuation(b'/');
        }
        self.begin(false);
        let mut in_class = false;
        self.at += 1;
        loop {
            match *self.script.get(self.at)? {
                b'\\' => self.at += 1,
                b'\n' | b'\r' => return None,
                b'[' => in_class = true,
                b']' => in_class = false,
                b'/' if !in_class => break,
                _ => {}
            }
            self.at += 1;
        }
        self.at += 1;
        // Its flags.
        self.at += self.script[self.at..].iter().take_while(|b| b.is_ascii_alphabetic()).count();
        self.last = Last::Value;
        Some(())
    }

    /// Whether the last sign before here, without spaces between, is written twice.
    fn is_doubled(&self) -> bool {
        let before = self.script[..self.at].trim_ascii_end();
        matches!(before, [.., b'+', b'+'] | [.., b'-', b'-'])
    }

    fn number(&mut self) {
        self.begin(false);
        let rest = &self.script[self.at..];
        let is_digit = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.');
        self.at += rest.iter().take_while(is_digit).count();
        self.last = Last::Value;
    }

    fn word(&mut self, had_line_end: bool) -> Option<()> {
        let rest = &self.script[self.at..];
        let word = &rest[..rest.iter().take_while(|b| is_word_byte(**b)).count()];
        let is_property = self.last == Last::Punctuation(b'.');
        let is = |list: &[&[u8]]| !is_property && list.contains(&word);
        self.at += word.len();
        // Spaces outside of ASCII would join words that are apart.
        let text = std::str::from_utf8(word).ok()?;
        if text.chars().any(|c| c.is_whitespace() || c == '\u{feff}') {
            return None;
        }
        self.begin(is(&CONTINUING));
        let has_ended = match self.last {
            Last::Brace => true,
            Last::Value => had_line_end,
            _ => false,
        };
        let level = self.levels.last_mut()?;
        if has_ended && !is(&CONTINUING) {
            (level.chain, level.prefix) = (0, 0);
        }
        level.may_be_label = matches!(
            self.last,
            Last::Start | Last::Brace | Last::Close { .. } | Last::Punctuation(b'{' | b';' | b':')
        ) || is(&PREFIXES)
            || level.is_after_prefix
            || has_ended;
        level.is_after_prefix = is(&[b"else", b"do"]);
        level.is_condition =
            is(&[b"if", b"while", b"for", b"with"]) || (level.is_condition && word == b"await");
        if is(&PREFIXES) {
            level.prefix += 1;
        }
        let nests = is(&BEFORE_VALUE) || is(&UNCLEAR) || is(&PREFIXES);
        let nests = nests || is(&[b"function", b"class"]);
        level.chain += usize::from(nests);
        self.last = match () {
            () if is(&BEFORE_VALUE) => Last::Word,
            () if is(&UNCLEAR) => Last::Unclear,
            () => Last::Value,
        };
        self.check()
    }

    fn punctuation(&mut self, byte: u8) -> Option<()> {
        self.begin(false);
        self.at += 1;
        match byte {
            b'(' | b'[' | b'{' => {
                self.last = Last::Punctuation(byte);
                return self.open(byte);
            }
            b')' | b']' | b'}' => return self.close(byte),
            _ => {}
        }
        let level = self.levels.last_mut()?;
        match byte {
            b';' => level.has_ended = true,
            b',' => level.chain = level.prefix,
            b':' if level.may_be_label => {
                level.prefix += 1;
                level.chain += 1;
            }
            _ => level.chain += 1,
        }
        if byte != b':' {
            level.may_be_label = false;
        }
        level.is_condition = false;
        level.is_after_prefix = false;
        self.last = Last::Punctuation(byte);
        self.check()
    }

    fn open(&mut self, byte: u8) -> Option<()> {
        let level = self.levels.last_mut()?;
        level.chain += 1;
        self.sum += level.chain;
        let is_condition = byte == b'(' && std::mem::take(&mut level.is_condition);
        self.levels.push(Level { open: byte, is_condition, ..Level::default() });
        self.check()
    }

    fn close(&mut self, byte: u8) -> Option<()> {
        let level = self.levels.pop()?;
        let around = self.levels.last_mut()?;
        around.may_be_label = false;
        around.is_after_prefix = false;
        self.sum -= around.chain;
        match (level.open, byte) {
            (b'(', b')') => self.last = Last::Close { is_condition: level.is_condition },
            (b'[', b']') => self.last = Last::Value,
            (b'{', b'}') => self.last = Last::Brace,
            (b'`', b'}') => return self.template(),
            _ => return None,
        }
        Some(())
    }

    fn check(&self) -> Option<()> {
        let here = self.levels.last()?.chain;
        (self.sum + here <= MAX_DEPTH).then_some(())
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'#' | b'@') || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_scripts_are_shallow() {
        let many = |text: &str| text.repeat(5000);
        for script in [
            "if (a) { b() } else if (c) d(); else e()".to_owned(),
            many("a = b ? c : d, "),
            many("if (a) b();\n"),
            many("if (a) { b() } "),
            many("let a = 1\nlet b = [2]\nf(a)\n"),
            format!("x = {{ {} }}", many("a: 1, ")),
            many("a(function () { return /[/\"]+/.test(b) ? `x${c}` : 'y\\'' });"),
            many("switch (a) { case 1: b(); break; default: c() }\n"),
            many("<!-- x\nf();\n//-->\n"),
            many("class A { b() {} get c() { return 1 } }\n"),
        ] {
            assert!(is_shallow(script.as_bytes()), "{}", &script[..40.min(script.len())]);
        }
    }

    #[test]
    fn deep_scripts_are_found_however_they_nest() {
        for unit in [
            "(",
            "[",
            "{",
            "!",
            "- ",
            "typeof ",
            "typeof\n",
            "new ",
            "a=>",
            "a=",
            "a?b:",
            "a**",
            "`${",
            "if(a)",
            "if(a)\n",
            "a:",
            "a:\n",
            "if(a)x;else ",
            "if(a){}else ",
            "for(;;)",
            "while(a)",
            "do ",
            "with(a)",
            "a+",
            "a.b(",
            "function f(){",
            "(\";)\"+",
            "/;)/,(",
            "(a,",
            "[a,",
            "f(a,",
            "if(a)if(a)x,function(){",
            "a:a:x,function(){",
            "if(a)if(a)do x;while(function(){",
            "(\n//)\n",
            "(/*)*/",
            "if(a)x;/*x*/else ",
            "typeof\u{a0}",
            "async a=>",
            "await ",
            "{a:",
            "x={y:",
            "()=>{",
            "if(a)(/[)]/,",
            "yield ",
            "a??",
            "a||",
            "...a",
            "else ",
            "class a extends ",
            "class{static{",
            "try{",
            "case ",
            "throw ",
            "return ",
        ] {
            let script = unit.repeat(20_000);
            assert!(!is_shallow(script.as_bytes()), "{unit:?}");
        }
    }

    #[test]
    fn what_cannot_be_told_is_not_parsed() {
        for script in ["}/a/", "a++/b/c", "'open", "`open", "/open", "a)", "(]", "\\u0061"] {
            assert!(!is_shallow(script.as_bytes()), "{script}");
        }
    }
}
