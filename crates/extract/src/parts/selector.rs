//! A small part of CSS selectors: tags, `#id`, `.class`, `[attribute="value"]`, `:nth-child(n)`,
//! `:nth-of-type(n)`, `:first-child`, descendants and children (`>`), and lists with commas.

use super::outline::{Element, Outline};

/// The longest selector that is read.
pub const MAX_SELECTOR_CHARS: usize = 500;
/// One bit of a mask for each compound of a selector.
const MAX_COMPOUNDS: usize = 64;

/// A selector that can be looked for in a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartSelector {
    compounds: Vec<Compound>,
}

/// Why a text is not a selector that is understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// It has no tag, class, id or attribute.
    #[error("the selector is empty")]
    Empty,
    /// It is longer than any that is useful.
    #[error("the selector is longer than {MAX_SELECTOR_CHARS} characters or has too many parts")]
    TooLong,
    /// It cannot be understood from here on.
    #[error(
        "`{0}` is not understood; use tags, #id, .class, [name=value], :nth-child(2), spaces and >"
    )]
    Unknown(String),
}

/// How a compound is connected with the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    First,
    Within,
    Child,
}

/// What one element must be like: `a.big[href]`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Compound {
    link: Link,
    /// Whether an element that matches it is selected.
    is_last: bool,
    tests: Vec<Test>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    Any,
    Tag(String),
    Id(String),
    Class(String),
    Attribute(String, Option<String>),
    NthChild(u32),
    NthOfType(u32),
}

impl PartSelector {
    /// Reads a selector.
    ///
    /// # Errors
    /// [`SelectorError`], with the part that is not understood.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        if text.chars().count() > MAX_SELECTOR_CHARS {
            return Err(SelectorError::TooLong);
        }
        let mut reader = Reader { rest: text.trim() };
        let mut compounds = Vec::new();
        let mut link = Link::First;
        loop {
            let tests = reader.compound()?;
            if tests.is_empty() {
                return Err(reader.stuck());
            }
            compounds.push(Compound { link, is_last: false, tests });
            if compounds.len() > MAX_COMPOUNDS {
                return Err(SelectorError::TooLong);
            }
            let next = reader.link();
            if !matches!(next, Some(Link::Within | Link::Child))
                && let Some(last) = compounds.last_mut()
            {
                last.is_last = true;
            }
            match next {
                Some(next) => link = next,
                None if reader.rest.is_empty() => return Ok(Self { compounds }),
                None => return Err(reader.stuck()),
            }
        }
    }

    /// The elements that are selected, in the order of the page. The work grows with the page and
    /// the selector only: for every element, a mask says which beginnings of the selector end there.
    pub(super) fn select(&self, page: &Outline<'_>) -> Vec<usize> {
        let mut here: Vec<u64> = Vec::with_capacity(page.elements.len());
        let mut above: Vec<u64> = Vec::with_capacity(page.elements.len());
        let mut selected = Vec::new();
        for (at, element) in page.elements.iter().enumerate() {
            let (parent_here, over) = match element.parent {
                Some(parent) => (here[parent], above[parent] | here[parent]),
                None => (0, 0),
            };
            let mut mask = 0_u64;
            let mut is_selected = false;
            for (bit, compound) in self.compounds.iter().enumerate() {
                let before = 1_u64 << bit.saturating_sub(1);
                let is_linked = match compound.link {
                    Link::First => true,
                    Link::Within => over & before != 0,
                    Link::Child => parent_here & before != 0,
                };
                if is_linked && compound.tests.iter().all(|test| test.holds(element)) {
                    mask |= 1 << bit;
                    is_selected |= compound.is_last;
                }
            }
            here.push(mask);
            above.push(over);
            if is_selected {
                selected.push(at);
            }
        }
        selected
    }
}

impl Test {
    fn holds(&self, element: &Element<'_>) -> bool {
        match self {
            Self::Any => true,
            Self::Tag(name) => element.name.eq_ignore_ascii_case(name),
            Self::Id(id) => element.attribute("id").is_some_and(|value| value.trim() == id),
            Self::Class(class) => element.has_class(class),
            Self::Attribute(name, None) => element.attribute(name).is_some(),
            Self::Attribute(name, Some(wanted)) => {
                element.attribute(name).is_some_and(|value| value == *wanted)
            }
            Self::NthChild(n) => element.nth_child == *n,
            Self::NthOfType(n) => element.nth_of_type == *n,
        }
    }
}

struct Reader<'t> {
    rest: &'t str,
}

impl Reader<'_> {
    fn stuck(&self) -> SelectorError {
        match self.rest.is_empty() {
            true => SelectorError::Empty,
            false => SelectorError::Unknown(self.rest.chars().take(40).collect()),
        }
    }

    fn take(&mut self, c: char) -> bool {
        let after = self.rest.strip_prefix(c);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn compound(&mut self) -> Result<Vec<Test>, SelectorError> {
        let mut tests = Vec::new();
        if self.take('*') {
            tests.push(Test::Any);
        } else if let Some(name) = self.name() {
            tests.push(Test::Tag(name));
        }
        loop {
            let before = self.rest;
            let test = if self.take('#') {
                self.name().map(Test::Id)
            } else if self.take('.') {
                self.name().map(Test::Class)
            } else if self.take('[') {
                self.attribute()
            } else if self.take(':') {
                self.position()
            } else {
                return Ok(tests);
            };
            let Some(test) = test else {
                self.rest = before;
                return Err(self.stuck());
            };
            tests.push(test);
        }
    }

    /// What connects this compound with the next one; `None` where there is no next one.
    fn link(&mut self) -> Option<Link> {
        let trimmed = self.rest.trim_start();
        let had_space = trimmed.len() < self.rest.len();
        self.rest = trimmed;
        let link = if self.take('>') {
            Link::Child
        } else if self.take(',') {
            Link::First
        } else if had_space && !self.rest.is_empty() {
            Link::Within
        } else {
            return None;
        };
        self.rest = self.rest.trim_start();
        Some(link)
    }

    /// A name, with the escapes that browsers write.
    fn name(&mut self) -> Option<String> {
        let mut name = String::new();
        while let Some(c) = self.rest.chars().next() {
            let plain = c.is_ascii_alphanumeric() || matches!(c, '-' | '_') || !c.is_ascii();
            if plain {
                name.push(c);
                self.rest = &self.rest[c.len_utf8()..];
            } else if c == '\\' {
                self.rest = &self.rest[1..];
                name.push(self.escaped()?);
            } else {
                break;
            }
        }
        (!name.is_empty()).then_some(name)
    }

    fn escaped(&mut self) -> Option<char> {
        let digits = self.rest.bytes().take(6).take_while(u8::is_ascii_hexdigit).count();
        if digits == 0 {
            let c = self.rest.chars().next()?;
            self.rest = &self.rest[c.len_utf8()..];
            return Some(c);
        }
        let (code, after) = self.rest.split_at(digits);
        self.rest = after.strip_prefix(' ').unwrap_or(after);
        char::from_u32(u32::from_str_radix(code, 16).ok()?)
    }

    fn attribute(&mut self) -> Option<Test> {
        let name = self.name()?.to_ascii_lowercase();
        if self.take(']') {
            return Some(Test::Attribute(name, None));
        }
        if !self.take('=') {
            return None;
        }
        let value = match self.rest.chars().next()? {
            quote @ ('"' | '\'') => {
                let (value, after) = self.rest[1..].split_once(quote)?;
                self.rest = after;
                value.to_owned()
            }
            _ => self.name()?,
        };
        self.take(']').then_some(Test::Attribute(name, Some(value)))
    }

    fn position(&mut self) -> Option<Test> {
        match self.name()?.to_ascii_lowercase().as_str() {
            "first-child" => Some(Test::NthChild(1)),
            "nth-child" => self.number().map(Test::NthChild),
            "nth-of-type" => self.number().map(Test::NthOfType),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<u32> {
        let (digits, after) = self.rest.strip_prefix('(')?.split_once(')')?;
        self.rest = after;
        digits.trim().parse().ok().filter(|n| *n > 0)
    }
}
