//! Whether a word or phrase is in a block of text, and where.

use std::ops::Range;

use nenrin_extract::TextKind;

use crate::{
    language::Language,
    query::{Field, Leaf},
    units::Units,
};

/// What a block is, as far as searching goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BlockKind {
    Url,
    Text(TextKind),
}

impl BlockKind {
    /// Its number, less than 8.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Url => 0,
            Self::Text(TextKind::Title) => 1,
            Self::Text(TextKind::Heading) => 2,
            Self::Text(TextKind::Body) => 3,
            Self::Text(TextKind::Alt) => 4,
            Self::Text(TextKind::Data) => 5,
        }
    }
}

impl Field {
    /// The kinds of blocks that it means, as bits of their numbers.
    pub(crate) fn kinds(self) -> u8 {
        match self {
            Self::Any => u8::MAX,
            Self::Title => 0b110,
            Self::Url => 0b1,
        }
    }
}

impl Leaf {
    /// Whether it is in a block.
    pub(crate) fn is_in(&self, kind: BlockKind, language: Language, block: &Units) -> bool {
        self.field.kinds() & (1 << kind.number()) != 0
            && self.places(language, block).next().is_some()
    }

    /// Where it is in a block: ranges of units.
    pub(crate) fn places<'l>(
        &'l self,
        language: Language,
        block: &'l Units,
    ) -> impl Iterator<Item = Range<usize>> + 'l {
        let length = self.units.len();
        let last = (block.len() + 1).saturating_sub(length);
        (0..last)
            .filter(move |at| self.begins_at(*at, language, block))
            .map(move |at| at..at + length)
    }

    fn begins_at(&self, at: usize, language: Language, block: &Units) -> bool {
        if let Some(forms) = &self.forms {
            return forms.languages(block.text(at), language.bit()) & language.bit() != 0
                || forms.word() == block.text(at);
        }
        (0..self.units.len()).all(|nth| self.unit_is(nth, at + nth, block))
    }

    fn unit_is(&self, nth: usize, at: usize, block: &Units) -> bool {
        let (Some(wanted), Some(found)) = (self.units.get(nth), block.get(at)) else {
            return false;
        };
        let is_last = nth + 1 == self.units.len();
        let is_same = match is_last && self.is_prefix && !wanted.is_character {
            true => block.text(at).starts_with(self.units.text(nth)),
            false => block.text(at) == self.units.text(nth),
        };
        // Characters that were typed together are together.
        is_same && (!wanted.is_joined || found.is_joined)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Query;

    fn is_in(query: &str, text: &str) -> bool {
        let query = Query::parse(query).unwrap();
        let (block, language) = (Units::of(text), Language::named("en").unwrap());
        query.leaves().all(|leaf| leaf.is_in(BlockKind::Text(TextKind::Body), language, &block))
    }

    #[test]
    fn words_forms_phrases_and_beginnings_are_found() {
        for (query, text, expected) in [
            ("ring", "Tree rings.", true),
            ("\"ring\"", "Tree rings.", false),
            ("\"tree rings\"", "Tree rings.", true),
            ("\"rings tree\"", "Tree rings.", false),
            ("rin*", "Tree rings.", true),
            ("\"tree rin*\"", "Tree rings.", true),
            ("年輪", "木の年輪の色", true),
            ("輪の色", "木の年輪の色", true),
            ("年の", "木の年輪の色", false),
            ("輪", "木の年輪", true),
            ("ネンリン", "ねんりん", true),
            ("2024年", "2024年3月", true),
            ("\"年輪 色\"", "年輪色", true),
            ("\"木 輪\"", "木輪", true),
            ("年輪色", "年輪、色", false),
            ("title:ring", "ring", false),
        ] {
            assert_eq!(is_in(query, text), expected, "{query} in {text}");
        }
    }
}
