//! The objects of a file, found by looking for them rather than by the file's own table, which
//! damaged files have wrong.

use std::{borrow::Cow, cell::Cell, collections::BTreeMap};

use memchr::memmem;

use super::{
    filters::unpack,
    syntax::{Dict, Reader, Value, is_space},
};

/// Objects that are remembered.
const MAX_OBJECTS: usize = 400_000;
/// Bytes of unpacked objects that are held.
const MAX_HELD: usize = 24 << 20;
/// Bytes that are unpacked of one stream.
const MAX_STREAM: usize = 16 << 20;
/// Bytes that are unpacked, parsed or looked through, all together.
const MAX_WORK: usize = 192 << 20;
/// Entries of trailers that are looked at, and how much of each.
const MAX_TRAILERS: usize = 64;
const TRAILER_ENTRY: usize = 4096;
/// References that lead to references.
const MAX_STEPS: usize = 8;
const MAX_FILTERS: usize = 4;

/// Where an object is.
#[derive(Clone, Copy)]
enum Location {
    File(usize),
    /// In an unpacked stream of objects.
    Held(usize, usize),
}

/// The objects of a file.
pub(super) struct Objects<'a> {
    file: &'a [u8],
    found: BTreeMap<u32, Location>,
    held: Vec<Vec<u8>>,
    left: Cell<usize>,
}

impl<'a> Objects<'a> {
    pub(super) fn of(file: &'a [u8]) -> Self {
        let mut objects =
            Self { file, found: BTreeMap::new(), held: Vec::new(), left: Cell::new(MAX_WORK) };
        let mut held_bytes = 0;
        // What is written later replaces what was written before.
        for end in memmem::find_iter(file, b"obj") {
            if objects.found.len() >= MAX_OBJECTS {
                break;
            }
            let Some(number) = number_before(&file[..end]) else { continue };
            objects.found.insert(number, Location::File(end + 3));
            let beginning = &file[end + 3..file.len().min(end + 515)];
            if memmem::find(beginning, b"ObjStm").is_some() && held_bytes < MAX_HELD {
                held_bytes += objects.hold(end + 3).unwrap_or(0);
            }
        }
        objects
    }

    /// Unpacks a stream of objects; returns how much it is.
    fn hold(&mut self, at: usize) -> Option<usize> {
        let (dict, packed) = self.stream_at(at)?;
        if !dict.is_a(b"ObjStm") {
            return None;
        }
        let bytes = self.unpacked(&dict, packed, MAX_HELD);
        let first = self.get(&dict, b"First").as_number()? as usize;
        let mut numbers = Reader::new(&bytes[..first.min(bytes.len())], 0);
        let held = self.held.len();
        while let (Some(Value::Number(number)), Some(Value::Number(offset))) =
            (numbers.value(), numbers.value())
        {
            if self.found.len() >= MAX_OBJECTS {
                break;
            }
            self.found.insert(number as u32, Location::Held(held, first + offset as usize));
        }
        let length = bytes.len();
        self.held.push(bytes);
        Some(length)
    }

    fn at(&self, location: Location) -> Option<Value> {
        let (bytes, at) = match location {
            Location::File(at) => (self.file, at),
            Location::Held(held, at) => (self.held.get(held)?.as_slice(), at),
        };
        if self.is_spent() {
            return None;
        }
        let mut reader = Reader::new(bytes, at);
        let value = reader.value();
        self.spend(reader.at.saturating_sub(at));
        value
    }

    fn spend(&self, bytes: usize) {
        self.left.set(self.left.get().saturating_sub(bytes.max(1)));
    }

    /// A value; a reference is followed.
    pub(super) fn resolve(&self, value: &Value) -> Value {
        let mut value = value.clone();
        for _ in 0..MAX_STEPS {
            let Value::Reference(number) = value else { return value };
            let found = self.found.get(&number).and_then(|location| self.at(*location));
            value = found.unwrap_or_default();
        }
        Value::Null
    }

    pub(super) fn get(&self, dict: &Dict, name: &[u8]) -> Value {
        self.resolve(dict.get(name))
    }

    /// The dictionary and the unpacked bytes of a stream.
    pub(super) fn stream(&self, value: &Value) -> Option<(Dict, Vec<u8>)> {
        let Value::Reference(number) = value else { return None };
        match self.found.get(number)? {
            Location::File(at) => {
                let (dict, packed) = self.stream_at(*at)?;
                let bytes = self.unpacked(&dict, packed, MAX_STREAM);
                Some((dict, bytes))
            }
            Location::Held(..) => None,
        }
    }

    /// Whether all the work that is allowed for this file was done.
    pub(super) fn is_spent(&self) -> bool {
        self.left.get() == 0
    }

    fn stream_at(&self, at: usize) -> Option<(Dict, &'a [u8])> {
        let mut reader = Reader::new(self.file, at);
        let dict = reader.value()?.into_dict()?;
        reader.skip_space();
        let rest = self.file.get(reader.at..)?.strip_prefix(b"stream")?;
        let rest = rest.strip_prefix(b"\r").unwrap_or(rest);
        let rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        let ends_there = |length: usize| {
            let mut after = rest.get(length..)?.iter().skip_while(|byte| is_space(**byte));
            after.by_ref().take(9).eq(b"endstream").then_some(length)
        };
        let stated = self.get(&dict, b"Length").as_number().map(|length| length as usize);
        let length = stated.and_then(ends_there).or_else(|| memmem::find(rest, b"endstream"));
        let packed = &rest[..length.unwrap_or(rest.len())];
        self.spend(packed.len());
        Some((dict, packed))
    }

    fn unpacked(&self, dict: &Dict, packed: &[u8], max_bytes: usize) -> Vec<u8> {
        let filter = |name: &[u8]| self.get(dict, name).into_list();
        let filters = filter(b"Filter");
        let mut bytes = Cow::Borrowed(packed);
        for filter in filters.iter().take(MAX_FILTERS) {
            let filter = self.resolve(filter);
            let allowed = max_bytes.min(self.left.get());
            let unpacked = filter.as_name().and_then(|name| unpack(name, &bytes, allowed));
            let Some(unpacked) = unpacked else { return Vec::new() };
            self.spend(unpacked.len());
            bytes = Cow::Owned(unpacked);
        }
        let length = bytes.len().min(max_bytes);
        match bytes {
            Cow::Borrowed(bytes) => bytes[..length].to_vec(),
            Cow::Owned(mut bytes) => {
                bytes.truncate(length);
                bytes
            }
        }
    }

    /// The value of the last entry of this name outside of objects: trailers have it, and so do the
    /// dictionaries of streams that stand for trailers.
    fn of_trailer(&self, name: &[u8]) -> Value {
        let found = memmem::rfind_iter(self.file, name).take(MAX_TRAILERS).find_map(|at| {
            let rest = &self.file[at + name.len()..];
            let value = Reader::new(&rest[..rest.len().min(TRAILER_ENTRY)], 0).value()?;
            matches!(value, Value::Reference(_) | Value::Dict(_)).then_some(value)
        });
        found.unwrap_or_default()
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.of_trailer(b"/Encrypt") != Value::Null
    }

    /// Where the tree of pages is.
    pub(super) fn catalog(&self) -> Option<Dict> {
        let named = self.resolve(&self.of_trailer(b"/Root")).into_dict();
        let is_catalog = |dict: &Dict| *dict.get(b"Pages") != Value::Null;
        let mut any = self.found.values().filter_map(|location| self.at(*location)?.into_dict());
        named.filter(is_catalog).or_else(|| any.find(|dict| dict.is_a(b"Catalog")))
    }

    /// Title and other facts of the file.
    pub(super) fn info(&self) -> Option<Dict> {
        self.resolve(&self.of_trailer(b"/Info")).into_dict()
    }
}

/// The number of the object whose `obj` begins here: `12 0 obj`.
fn number_before(before: &[u8]) -> Option<u32> {
    let before = &before[before.len().saturating_sub(24)..];
    let back = |bytes: &[u8], takes: fn(u8) -> bool| {
        bytes.iter().rev().take_while(|byte| takes(**byte)).count()
    };
    let digit = |byte: u8| byte.is_ascii_digit();
    let rest = &before[..before.len() - back(before, is_space)];
    let generation = back(rest, digit);
    let rest = &rest[..rest.len() - generation];
    let space = back(rest, is_space);
    let rest = &rest[..rest.len() - space];
    let digits = back(rest, digit);
    if generation == 0 || space == 0 || digits == 0 {
        return None;
    }
    std::str::from_utf8(&rest[rest.len() - digits..]).ok()?.parse().ok()
}
