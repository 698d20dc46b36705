//! Fonts: what the codes in a string mean, and how wide they are.

use std::collections::BTreeMap;

use encoding_rs::Encoding;

use super::{
    glyphs,
    objects::Objects,
    syntax::{Dict, Reader, Value},
};

/// Codes whose meaning is read from a font.
const MAX_CODES: usize = 70_000;
/// Ranges of widths that are read.
const MAX_WIDTHS: usize = 70_000;

/// What the codes of a string are.
enum Codes {
    /// One byte each; the meaning of each.
    Simple(Vec<String>),
    /// Two bytes each.
    Wide,
    /// Text in an encoding of a country.
    Encoded(&'static Encoding),
}

/// A font.
pub(super) struct Font {
    codes: Codes,
    /// What the font itself says that codes mean.
    meaning: BTreeMap<u32, String>,
    /// From the first code of a range: the last, and the width.
    widths: BTreeMap<u32, (u32, f64)>,
    usual_width: f64,
}

impl Font {
    pub(super) fn of(objects: &Objects<'_>, font: &Dict) -> Self {
        let meaning = match objects.stream(font.get(b"ToUnicode")) {
            Some((_, map)) => meanings(&map),
            None => BTreeMap::new(),
        };
        if font.get(b"Subtype").as_name() == Some(b"Type0") {
            return Self::composite(objects, font, meaning);
        }
        let matrix = objects.get(font, b"FontMatrix").into_list();
        let unit = matrix.first().and_then(Value::as_number).unwrap_or(0.001);
        let mut widths = BTreeMap::new();
        let first = objects.get(font, b"FirstChar").as_number().unwrap_or(0.0) as u32;
        let listed = objects.get(font, b"Widths").into_list();
        for (code, width) in (first..).zip(listed.iter().take(256)) {
            if let Some(width) = objects.resolve(width).as_number() {
                widths.insert(code, (code, width * unit));
            }
        }
        let codes = Codes::Simple(simple_codes(objects, font));
        Self { codes, meaning, widths, usual_width: 0.5 }
    }

    fn composite(objects: &Objects<'_>, font: &Dict, meaning: BTreeMap<u32, String>) -> Self {
        let encoding = objects.get(font, b"Encoding");
        let codes = match encoding.as_name().and_then(encoding_named) {
            Some(encoding) => Codes::Encoded(encoding),
            None => Codes::Wide,
        };
        let descendant = objects.get(font, b"DescendantFonts").into_list();
        let descendant = descendant.first().and_then(|one| objects.resolve(one).into_dict());
        let descendant = descendant.unwrap_or_default();
        let usual = objects.get(&descendant, b"DW").as_number().unwrap_or(1000.0);
        let widths = wide_widths(&objects.get(&descendant, b"W").into_list(), objects);
        Self { codes, meaning, widths, usual_width: usual / 1000.0 }
    }

    fn width(&self, code: u32) -> f64 {
        let range = self.widths.range(..=code).next_back();
        let found = range.filter(|(_, (last, _))| code <= *last).map(|(_, (_, width))| *width);
        found.unwrap_or(self.usual_width)
    }

    /// Hands the meaning of each code to `take`, with its width and whether it is the byte of a
    /// space.
    pub(super) fn each(&self, text: &[u8], take: &mut dyn FnMut(&str, f64, bool)) {
        match &self.codes {
            Codes::Simple(plain) => {
                for &byte in text {
                    let code = u32::from(byte);
                    let usual = || plain.get(usize::from(byte)).map_or("", String::as_str);
                    let meaning = self.meaning.get(&code).map_or_else(usual, String::as_str);
                    take(meaning, self.width(code), byte == b' ');
                }
            }
            Codes::Wide => {
                for pair in text.chunks_exact(2) {
                    let code = u32::from(pair[0]) << 8 | u32::from(pair[1]);
                    let meaning = self.meaning.get(&code).map_or("", String::as_str);
                    take(meaning, self.width(code), false);
                }
            }
            Codes::Encoded(encoding) => {
                for c in encoding.decode_without_bom_handling(text).0.chars() {
                    let width = if c.is_ascii() { 0.5 } else { self.usual_width };
                    take(c.encode_utf8(&mut [0; 4]), width, false);
                }
            }
        }
    }
}

/// The encodings of composite fonts that are text as it is written elsewhere, too.
fn encoding_named(name: &[u8]) -> Option<&'static Encoding> {
    let name = std::str::from_utf8(name).ok()?;
    let known: [(&str, &'static Encoding); 8] = [
        ("RKSJ", encoding_rs::SHIFT_JIS),
        ("UCS2", encoding_rs::UTF_16BE),
        ("UTF16", encoding_rs::UTF_16BE),
        ("GBK", encoding_rs::GBK),
        ("GB-EUC", encoding_rs::GBK),
        ("B5", encoding_rs::BIG5),
        ("KSC", encoding_rs::EUC_KR),
        ("EUC", encoding_rs::EUC_JP),
    ];
    known.iter().find(|(part, _)| name.contains(part)).map(|(_, encoding)| *encoding)
}

/// What the bytes of a simple font mean.
fn simple_codes(objects: &Objects<'_>, font: &Dict) -> Vec<String> {
    let encoding = objects.get(font, b"Encoding");
    let (base, differences) = match encoding {
        Value::Name(name) => (Some(name), Vec::new()),
        Value::Dict(dict) => {
            let base = objects.get(&dict, b"BaseEncoding").as_name().map(<[u8]>::to_vec);
            (base, objects.get(&dict, b"Differences").into_list())
        }
        _ => (None, Vec::new()),
    };
    let mut codes: Vec<String> =
        (0..=255).map(|byte| base_meaning(base.as_deref(), byte)).collect();
    let mut code = 0_usize;
    for value in differences {
        match value {
            Value::Number(number) => code = number as usize,
            Value::Name(name) => {
                if let Some(meaning) = codes.get_mut(code) {
                    *meaning = glyphs::of_name(&name);
                }
                code += 1;
            }
            _ => {}
        }
    }
    codes
}

fn base_meaning(base: Option<&[u8]>, byte: u8) -> String {
    let decoded = |encoding: &'static Encoding| {
        let text = encoding.decode_without_bom_handling(&[byte]).0.into_owned();
        if text.chars().all(char::is_control) { String::new() } else { text }
    };
    match (base, byte) {
        (Some(b"MacRomanEncoding"), _) => decoded(encoding_rs::MACINTOSH),
        (Some(_), _) => decoded(encoding_rs::WINDOWS_1252),
        // Fonts of TeX have their ligatures here, others of the standard encoding there.
        (None, 11..=15) => ["ff", "fi", "fl", "ffi", "ffl"][usize::from(byte - 11)].to_owned(),
        (None, 0xAE) => "fi".to_owned(),
        (None, 0xAF) => "fl".to_owned(),
        (None, _) => decoded(encoding_rs::WINDOWS_1252),
    }
}

fn wide_widths(listed: &[Value], objects: &Objects<'_>) -> BTreeMap<u32, (u32, f64)> {
    let mut widths = BTreeMap::new();
    let mut rest = listed.iter();
    while let Some(first) = rest.next().and_then(Value::as_number) {
        let first = first as u32;
        match rest.next().map(|value| objects.resolve(value)) {
            Some(Value::Array(each)) => {
                for (code, width) in (first..).zip(each) {
                    widths.insert(code, (code, width.as_number().unwrap_or(1000.0) / 1000.0));
                }
            }
            Some(Value::Number(last)) => {
                let width = rest.next().and_then(Value::as_number).unwrap_or(1000.0);
                widths.insert(first, (last as u32, width / 1000.0));
            }
            _ => break,
        }
        if widths.len() >= MAX_WIDTHS {
            break;
        }
    }
    widths
}

/// Reads a table from codes to text.
fn meanings(map: &[u8]) -> BTreeMap<u32, String> {
    let mut found = BTreeMap::new();
    let mut reader = Reader::new(map, 0);
    let mut operands: Vec<Value> = Vec::new();
    while let Some(value) = reader.value() {
        let Value::Word(word) = value else {
            if operands.len() < MAX_CODES {
                operands.push(value);
            }
            continue;
        };
        match word.as_slice() {
            b"endbfchar" => {
                for pair in operands.chunks_exact(2) {
                    if let [Value::Text(code), Value::Text(meaning)] = pair {
                        found.insert(number(code), utf16(meaning));
                    }
                }
            }
            b"endbfrange" => {
                for range in operands.chunks_exact(3) {
                    if let [Value::Text(first), Value::Text(last), meaning] = range {
                        add_range(&mut found, (number(first), number(last)), meaning);
                    }
                }
            }
            _ => {}
        }
        operands.clear();
        if found.len() >= MAX_CODES {
            break;
        }
    }
    found
}

fn add_range(found: &mut BTreeMap<u32, String>, (first, last): (u32, u32), meaning: &Value) {
    let codes = (first..=last).take(MAX_CODES.saturating_sub(found.len()));
    match meaning {
        Value::Array(meanings) => {
            for (code, meaning) in codes.zip(meanings) {
                if let Value::Text(meaning) = meaning {
                    found.insert(code, utf16(meaning));
                }
            }
        }
        Value::Text(meaning) => {
            // The last character counts up.
            let text = utf16(meaning);
            let Some(end) = text.chars().next_back() else { return };
            let beginning = &text[..text.len() - end.len_utf8()];
            for (code, end) in codes.zip(u32::from(end)..) {
                let end = char::from_u32(end).unwrap_or('\u{fffd}');
                found.insert(code, format!("{beginning}{end}"));
            }
        }
        _ => {}
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn utf16(bytes: &[u8]) -> String {
    let bytes = &bytes[..bytes.len().min(64)];
    encoding_rs::UTF_16BE.decode_without_bom_handling(bytes).0.into_owned()
}
