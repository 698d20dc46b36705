//! Writes down the text that the content of pages shows, in lines and paragraphs.

use std::{collections::BTreeMap, rc::Rc};

use super::{
    font::Font,
    objects::Objects,
    syntax::{Dict, Reader, Value},
};

/// Operands that an operator may have.
const MAX_OPERANDS: usize = 64;
/// States that may be saved.
const MAX_SAVED: usize = 64;
/// Drawings in drawings.
const MAX_DEPTH: usize = 6;
/// Fonts that are remembered.
const MAX_FONTS: usize = 200;
/// Parts of the size of the letters: a move that is a space, a move that is another line, and one
/// that is another paragraph.
const SPACE: f64 = 0.16;
const LINE: f64 = 0.5;
const PARAGRAPH: f64 = 1.7;

/// A map of points: x' = a x + c y + e, y' = b x + d y + f.
#[derive(Clone, Copy)]
struct Matrix([f64; 6]);

impl Matrix {
    const SAME: Self = Self([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);

    /// First this map, then another.
    fn then(self, other: Self) -> Self {
        let ([a, b, c, d, e, f], [g, h, i, j, k, l]) = (self.0, other.0);
        Self([
            a * g + b * i,
            a * h + b * j,
            c * g + d * i,
            c * h + d * j,
            e * g + f * i + k,
            e * h + f * j + l,
        ])
    }

    fn moved(x: f64, y: f64) -> Self {
        Self([1.0, 0.0, 0.0, 1.0, x, y])
    }

    fn of(operands: &[Value]) -> Option<Self> {
        let numbers: Vec<f64> = operands.iter().filter_map(Value::as_number).collect();
        Some(Self(numbers.try_into().ok()?))
    }
}

/// What `q` saves and `Q` restores.
#[derive(Clone)]
struct State {
    map: Matrix,
    font: Option<Rc<Font>>,
    size: f64,
    letter_space: f64,
    word_space: f64,
    stretch: f64,
    leading: f64,
}

/// What is between the text so far and the next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    None,
    Space,
    Line,
    Paragraph,
}

impl Gap {
    /// By how far the next letter is from the last, in sizes of letters.
    fn of(along: f64, across: f64) -> Self {
        if across >= PARAGRAPH {
            Self::Paragraph
        } else if across >= LINE || along <= -LINE {
            Self::Line
        } else if along >= SPACE {
            Self::Space
        } else {
            Self::None
        }
    }
}

/// Writes down the text of pages.
pub(super) struct Writer<'a> {
    objects: &'a Objects<'a>,
    fonts: BTreeMap<u32, Rc<Font>>,
    text: String,
    max_bytes: usize,
    gap: Gap,
    /// Where the last letter ended.
    pen: Option<(f64, f64)>,
    state: State,
    saved: Vec<State>,
    line: Matrix,
    at: Matrix,
}

impl<'a> Writer<'a> {
    pub(super) fn new(objects: &'a Objects<'a>, max_bytes: usize) -> Self {
        Self {
            objects,
            fonts: BTreeMap::new(),
            text: String::new(),
            max_bytes,
            gap: Gap::None,
            pen: None,
            state: State::new(),
            saved: Vec::new(),
            line: Matrix::SAME,
            at: Matrix::SAME,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.text.len() >= self.max_bytes || self.objects.is_spent()
    }

    pub(super) fn finish(self) -> String {
        self.text
    }

    pub(super) fn page(&mut self, page: &Dict, resources: &Dict) {
        self.gap = Gap::Paragraph;
        self.pen = None;
        self.state = State::new();
        self.saved.clear();
        let mut content = Vec::new();
        let contents = page.get(b"Contents");
        let parts = match self.objects.stream(contents) {
            Some((_, bytes)) => {
                content = bytes;
                Vec::new()
            }
            None => self.objects.resolve(contents).into_list(),
        };
        for part in parts {
            if let Some((_, bytes)) = self.objects.stream(&part) {
                content.extend(bytes);
                content.push(b'\n');
            }
            if self.is_full() {
                break;
            }
        }
        self.content(&content, resources, 0);
    }

    fn content(&mut self, content: &[u8], resources: &Dict, depth: usize) {
        let mut reader = Reader::new(content, 0);
        let mut operands: Vec<Value> = Vec::new();
        while let Some(value) = reader.value() {
            let Value::Word(operator) = value else {
                if operands.len() < MAX_OPERANDS {
                    operands.push(value);
                }
                continue;
            };
            match operator.as_slice() {
                b"ID" => {
                    let rest = &content[reader.at..];
                    reader.at += memchr::memmem::find(rest, b"EI").map_or(rest.len(), |at| at + 2);
                }
                b"Do" => self.drawing(&operands, resources, depth),
                b"Tf" => self.choose_font(&operands, resources),
                operator => self.operator(operator, &operands),
            }
            operands.clear();
            if self.is_full() {
                return;
            }
        }
    }

    fn operator(&mut self, operator: &[u8], operands: &[Value]) {
        let number = |at: usize| operands.get(at).and_then(Value::as_number).unwrap_or(0.0);
        match operator {
            b"q" if self.saved.len() < MAX_SAVED => self.saved.push(self.state.clone()),
            b"Q" => self.state = self.saved.pop().unwrap_or_else(|| self.state.clone()),
            b"cm" => {
                if let Some(matrix) = Matrix::of(operands) {
                    self.state.map = matrix.then(self.state.map);
                }
            }
            b"BT" => (self.line, self.at) = (Matrix::SAME, Matrix::SAME),
            b"Tc" => self.state.letter_space = number(0),
            b"Tw" => self.state.word_space = number(0),
            b"Tz" => self.state.stretch = number(0) / 100.0,
            b"TL" => self.state.leading = number(0),
            b"Td" => self.next_line(number(0), number(1)),
            b"TD" => {
                self.state.leading = -number(1);
                self.next_line(number(0), number(1));
            }
            b"Tm" => {
                if let Some(matrix) = Matrix::of(operands) {
                    (self.line, self.at) = (matrix, matrix);
                }
            }
            b"T*" => self.next_line(0.0, -self.state.leading),
            b"Tj" => self.show(operands.first()),
            b"'" => {
                self.next_line(0.0, -self.state.leading);
                self.show(operands.first());
            }
            b"\"" => {
                (self.state.word_space, self.state.letter_space) = (number(0), number(1));
                self.next_line(0.0, -self.state.leading);
                self.show(operands.get(2));
            }
            b"TJ" => {
                let Some(Value::Array(parts)) = operands.first() else { return };
                for part in parts {
                    match part {
                        Value::Number(back) => {
                            let x = -back / 1000.0 * self.state.size * self.state.stretch;
                            self.at = Matrix::moved(x, 0.0).then(self.at);
                        }
                        text => self.show(Some(text)),
                    }
                }
            }
            _ => {}
        }
    }

    fn next_line(&mut self, x: f64, y: f64) {
        self.line = Matrix::moved(x, y).then(self.line);
        self.at = self.line;
    }

    fn choose_font(&mut self, operands: &[Value], resources: &Dict) {
        let [Value::Name(name), Value::Number(size)] = operands else { return };
        self.state.size = *size;
        let fonts = self.objects.get(resources, b"Font").into_dict().unwrap_or_default();
        let font = fonts.get(name);
        let known = match font {
            Value::Reference(number) => self.fonts.get(number).cloned(),
            _ => None,
        };
        self.state.font = known.or_else(|| {
            let dict = self.objects.resolve(font).into_dict()?;
            let read = Rc::new(Font::of(self.objects, &dict));
            if let Value::Reference(number) = font {
                if self.fonts.len() >= MAX_FONTS {
                    self.fonts.clear();
                }
                self.fonts.insert(*number, read.clone());
            }
            Some(read)
        });
    }

    /// A drawing that is used like a stamp may have text, too.
    fn drawing(&mut self, operands: &[Value], resources: &Dict, depth: usize) {
        let Some(Value::Name(name)) = operands.first() else { return };
        let drawings = self.objects.get(resources, b"XObject").into_dict().unwrap_or_default();
        let drawing = drawings.get(name);
        let Some(dict) = self.objects.resolve(drawing).into_dict() else { return };
        if depth >= MAX_DEPTH || dict.get(b"Subtype").as_name() != Some(b"Form") {
            return;
        }
        let Some((dict, content)) = self.objects.stream(drawing) else { return };
        let own = self.objects.get(&dict, b"Resources").into_dict();
        let before = (self.state.clone(), std::mem::take(&mut self.saved));
        let matrix = self.objects.get(&dict, b"Matrix").into_list();
        if let Some(matrix) = Matrix::of(&matrix) {
            self.state.map = matrix.then(self.state.map);
        }
        self.content(&content, own.as_ref().unwrap_or(resources), depth + 1);
        (self.state, self.saved) = before;
    }

    fn show(&mut self, text: Option<&Value>) {
        let (Some(Value::Text(text)), Some(font)) = (text, self.state.font.clone()) else { return };
        font.each(text, &mut |meaning, width, is_space| {
            let all = self.at.then(self.state.map).0;
            let length = all[0].hypot(all[1]);
            let letter = (all[0] * all[3] - all[1] * all[2]).abs().sqrt() * self.state.size.abs();
            if let Some((x, y)) = self.pen
                && letter > 0.0
                && length > 0.0
            {
                let (right, up) = (all[4] - x, all[5] - y);
                let along = (right * all[0] + up * all[1]) / length / letter;
                let across = ((up * all[0] - right * all[1]) / length / letter).abs();
                self.gap = self.gap.max(Gap::of(along, across));
            }
            self.write(meaning);
            let state = &self.state;
            let word = if is_space { state.word_space } else { 0.0 };
            let x = (width * state.size + state.letter_space + word) * state.stretch;
            self.at = Matrix::moved(x, 0.0).then(self.at);
            let end = self.at.then(state.map).0;
            self.pen = Some((end[4], end[5]));
        });
    }

    fn write(&mut self, meaning: &str) {
        let Some(first) = meaning.chars().next() else { return };
        if self.text.len() >= self.max_bytes {
            return;
        }
        if meaning.chars().all(char::is_whitespace) {
            self.gap = self.gap.max(Gap::Space);
            return;
        }
        let last = self.text.chars().next_back();
        match self.gap {
            _ if self.text.is_empty() => {}
            Gap::None => {}
            Gap::Space => self.text.push(' '),
            Gap::Line if self.is_divided() && first.is_lowercase() => {
                self.text.pop();
            }
            Gap::Line if last.is_some_and(is_wide) && is_wide(first) => {}
            Gap::Line => self.text.push('\n'),
            Gap::Paragraph => self.text.push_str("\n\n"),
        }
        self.gap = Gap::None;
        self.text.extend(meaning.chars().filter(|c| !c.is_control()));
    }

    /// Whether the text ends with a word that is divided at the end of its line.
    fn is_divided(&self) -> bool {
        let mut back = self.text.chars().rev();
        matches!(back.next(), Some('-' | '\u{ad}' | '‐'))
            && back.next().is_some_and(char::is_alphabetic)
    }
}

impl State {
    fn new() -> Self {
        Self {
            map: Matrix::SAME,
            font: None,
            size: 1.0,
            letter_space: 0.0,
            word_space: 0.0,
            stretch: 1.0,
            leading: 0.0,
        }
    }
}

/// Whether a character is of a script that has no spaces between words.
fn is_wide(c: char) -> bool {
    matches!(c, '\u{3000}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{FF00}'..='\u{FFEF}')
}
