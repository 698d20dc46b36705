//! Values as they are written in PDF files.

/// How deep values may be nested.
const MAX_DEPTH: usize = 48;
/// Values that are read at once: the pages of a large file are in one array.
const MAX_VALUES: usize = 200_000;

/// A value.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum Value {
    #[default]
    Null,
    Number(f64),
    Name(Vec<u8>),
    Text(Vec<u8>),
    Array(Vec<Value>),
    Dict(Dict),
    /// The object of this number.
    Reference(u32),
    /// A keyword: an operator, `true`, `obj`.
    Word(Vec<u8>),
}

/// A dictionary.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Dict(Vec<(Vec<u8>, Value)>);

const NULL: Value = Value::Null;

impl Dict {
    pub(super) fn get(&self, name: &[u8]) -> &Value {
        self.0.iter().find(|(key, _)| key == name).map_or(&NULL, |(_, value)| value)
    }

    pub(super) fn is_a(&self, kind: &[u8]) -> bool {
        self.get(b"Type").as_name() == Some(kind)
    }
}

impl Value {
    pub(super) fn as_name(&self) -> Option<&[u8]> {
        if let Self::Name(name) = self { Some(name) } else { None }
    }

    pub(super) fn as_number(&self) -> Option<f64> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }

    pub(super) fn into_dict(self) -> Option<Dict> {
        if let Self::Dict(dict) = self { Some(dict) } else { None }
    }

    pub(super) fn into_text(self) -> Option<Vec<u8>> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// The values of an array; a value alone is one.
    pub(super) fn into_list(self) -> Vec<Self> {
        match self {
            Self::Array(values) => values,
            Self::Null => Vec::new(),
            one => vec![one],
        }
    }
}

/// Reads values from bytes, one after the other.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    pub(super) at: usize,
    left: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at: at.min(bytes.len()), left: MAX_VALUES }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(super) fn skip_space(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b'%' => self.at += line_length(&self.bytes[self.at..]),
                byte if is_space(byte) => self.at += 1,
                _ => break,
            }
        }
    }

    /// The next value; `None` at the end, or where too much is nested or written.
    pub(super) fn value(&mut self) -> Option<Value> {
        self.left = MAX_VALUES;
        self.nested(0)
    }

    fn nested(&mut self, depth: usize) -> Option<Value> {
        self.left = self.left.checked_sub(1)?;
        if depth > MAX_DEPTH {
            return None;
        }
        self.skip_space();
        match (self.peek()?, self.bytes.get(self.at + 1)) {
            (b'<', Some(b'<')) => {
                self.at += 2;
                self.dict(depth)
            }
            (b'<', _) => Some(Value::Text(self.hexadecimal())),
            (b'(', _) => Some(Value::Text(self.literal())),
            (b'/', _) => {
                self.at += 1;
                Some(Value::Name(self.name()))
            }
            (b'[', _) => {
                self.at += 1;
                self.array(depth)
            }
            (b'+' | b'-' | b'.' | b'0'..=b'9', _) => Some(self.number()),
            (b']' | b'>' | b')' | b'{' | b'}', _) => {
                self.at += 1;
                Some(Value::Word(vec![self.bytes[self.at - 1]]))
            }
            _ => {
                let word = self.regular();
                Some(if word == b"null" { Value::Null } else { Value::Word(word.to_vec()) })
            }
        }
    }

    /// Bytes up to the next space or delimiter.
    fn regular(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        let ends = |byte: &u8| is_space(*byte) || b"()<>[]{}/%".contains(byte);
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn name(&mut self) -> Vec<u8> {
        let written = self.regular();
        let mut name = Vec::with_capacity(written.len());
        let mut at = 0;
        while let Some(&byte) = written.get(at) {
            let code = written
                .get(at + 1..at + 3)
                .and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok());
            match (byte, code) {
                (b'#', Some(code)) => {
                    name.push(code);
                    at += 3;
                }
                _ => {
                    name.push(byte);
                    at += 1;
                }
            }
        }
        name
    }

    /// A number, or a reference `12 0 R`.
    fn number(&mut self) -> Value {
        let written = self.regular();
        let number = std::str::from_utf8(written).ok().and_then(|text| text.parse::<f64>().ok());
        let Some(number) = number.filter(|number| number.is_finite()) else {
            return Value::Number(0.0);
        };
        let is_plain = written.iter().all(u8::is_ascii_digit);
        if is_plain && number <= f64::from(u32::MAX) && self.takes_reference() {
            return Value::Reference(number as u32);
        }
        Value::Number(number)
    }

    /// Whether a generation and `R` follow; they are read then.
    fn takes_reference(&mut self) -> bool {
        let rest = &self.bytes[self.at..self.bytes.len().min(self.at + 16)];
        let digits = |bytes: &[u8]| bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let spaces = |bytes: &[u8]| bytes.iter().take_while(|byte| is_space(**byte)).count();
        let first = spaces(rest);
        let generation = digits(&rest[first..]);
        let second = spaces(&rest[first + generation..]);
        let end = first + generation + second;
        let ends =
            rest.get(end + 1).is_none_or(|byte| is_space(*byte) || b"<>[]/()%".contains(byte));
        let is_reference =
            first > 0 && generation > 0 && second > 0 && rest.get(end) == Some(&b'R') && ends;
        if is_reference {
            self.at += end + 1;
        }
        is_reference
    }

    fn hexadecimal(&mut self) -> Vec<u8> {
        let rest = &self.bytes[self.at + 1..];
        let length = memchr::memchr(b'>', rest).unwrap_or(rest.len());
        self.at = (self.at + length + 2).min(self.bytes.len());
        let digit = |byte: &u8| char::from(*byte).to_digit(16).map(|digit| digit as u8);
        let digits: Vec<u8> = rest[..length].iter().filter_map(digit).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or(0)).collect()
    }

    fn literal(&mut self) -> Vec<u8> {
        self.at += 1;
        let mut text = Vec::new();
        let mut open = 1;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'(' => open += 1,
                b')' => {
                    open -= 1;
                    if open == 0 {
                        break;
                    }
                }
                b'\\' => {
                    text.extend(self.escaped());
                    continue;
                }
                _ => {}
            }
            text.push(byte);
        }
        text
    }

    fn escaped(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(match byte {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'b' => 8,
            b'f' => 12,
            b'\n' => return None,
            b'\r' => {
                self.at += usize::from(self.peek() == Some(b'\n'));
                return None;
            }
            b'0'..=b'7' => {
                let mut code = u32::from(byte - b'0');
                for _ in 0..2 {
                    let Some(digit @ b'0'..=b'7') = self.peek() else { break };
                    code = code * 8 + u32::from(digit - b'0');
                    self.at += 1;
                }
                code as u8
            }
            other => other,
        })
    }

    fn array(&mut self, depth: usize) -> Option<Value> {
        let mut values = Vec::new();
        loop {
            match self.nested(depth + 1)? {
                Value::Word(word) if word == b"]" => return Some(Value::Array(values)),
                // The end of the object: the bracket is missing.
                Value::Word(word) if word == b"endobj" => return None,
                value => values.push(value),
            }
        }
    }

    fn dict(&mut self, depth: usize) -> Option<Value> {
        let mut entries = Vec::new();
        loop {
            self.skip_space();
            if self.bytes[self.at..].starts_with(b">>") {
                self.at += 2;
                return Some(Value::Dict(Dict(entries)));
            }
            match self.nested(depth + 1)? {
                Value::Name(name) => {
                    self.skip_space();
                    if self.bytes[self.at..].starts_with(b">>") {
                        continue;
                    }
                    entries.push((name, self.nested(depth + 1)?));
                }
                Value::Word(word) if word == b"endobj" => return None,
                _ => {}
            }
        }
    }
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, 0 | 9 | 10 | 12 | 13 | 32)
}

fn line_length(bytes: &[u8]) -> usize {
    memchr::memchr2(b'\n', b'\r', bytes).unwrap_or(bytes.len())
}
