//! What people type into the search box.
//!
//! ```text
//! query   = clause { clause }            all of them at the same time
//! clause  = [ "-" ] leaf { "OR" leaf }   any of them; with "-", none
//! leaf    = [ field ":" ] ( word | word "*" | '"' words '"' )
//! field   = "title" | "url"
//! filter  = [ "-" ] "site:" name | "type:" kind | "lang:" code
//!         | "at:" date | "during:" date ".." date | "appeared:" … | "vanished:" … | "is:significant"
//! ```

use std::{borrow::Cow, ops::Range};

use nenrin_archive::{Edge, parse_date};
use nenrin_lang::Lang;

use crate::{
    history::Span,
    language::{Language, WordForms},
    page_kind::PageKind,
    units::Units,
};

/// The longest query, in bytes.
const MAX_QUERY_BYTES: usize = 2_000;
/// The most words and phrases in a query.
const MAX_LEAVES: usize = 40;
/// The shortest beginning of a word that may be searched for, in characters.
const MIN_PREFIX_CHARS: usize = 2;

/// A query that was understood.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// All must hold at the same time.
    pub(crate) clauses: Vec<Clause>,
    /// Which pages and times are looked at.
    pub filters: Filters,
}

/// A condition on the text of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Clause {
    /// Any of these.
    pub(crate) any: Vec<Leaf>,
    pub(crate) is_excluded: bool,
}

/// Where a word is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    /// In the text and in the address.
    Any,
    /// In titles and headings.
    Title,
    /// In the address.
    Url,
}

/// A word, the beginning of one, or a phrase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leaf {
    pub(crate) field: Field,
    pub(crate) units: Units,
    /// Whether the last word may go on.
    pub(crate) is_prefix: bool,
    /// The forms of a single word, where it was not quoted.
    pub(crate) forms: Option<WordForms>,
}

/// Which pages and times are looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filters {
    /// Sites by name, number or URL; with true, pages of these are left out.
    pub sites: Vec<(String, bool)>,
    /// Kinds of pages; with true, those are left out.
    pub kinds: Vec<(PageKind, bool)>,
    /// Languages; with true, those are left out.
    pub languages: Vec<(Language, bool)>,
    /// As of this time.
    pub at_s: Option<i64>,
    /// At some time from the first to the last second.
    pub during_s: Option<(i64, i64)>,
    /// First seen in this time.
    pub appeared_s: Option<(i64, i64)>,
    /// Not seen any more since a moment in this time.
    pub vanished_s: Option<(i64, i64)>,
    /// Only what came with a change that matters to readers.
    pub is_significant: bool,
}

impl Filters {
    /// Whether a stretch of time is one of those looked for.
    pub(crate) fn takes(&self, span: &Span) -> bool {
        let within = |limits: Option<(i64, i64)>, at_s: i64| {
            limits.is_none_or(|(first, last)| (first..=last).contains(&at_s))
        };
        self.at_s.is_none_or(|at_s| (span.from_s..span.until_s).contains(&at_s))
            && self.during_s.is_none_or(|(from, to)| span.from_s <= to && span.until_s > from)
            && within(self.appeared_s, span.from_s)
            && within(self.vanished_s, span.until_s)
    }

    /// Whether pages of this kind and language are looked for.
    pub(crate) fn takes_page(&self, kind: PageKind, language: Language) -> bool {
        chosen(&self.kinds, &kind) && chosen(&self.languages, &language)
    }
}

/// Whether a value is among the wanted ones, if any are named, and not among those left out.
pub(crate) fn chosen<T: PartialEq>(named: &[(T, bool)], value: &T) -> bool {
    let is_out = named.iter().any(|(one, out)| *out && one == value);
    let mut wanted = named.iter().filter(|(_, out)| !out).peekable();
    !is_out && (wanted.peek().is_none() || wanted.any(|(one, _)| one == value))
}

/// A mistake in a query, and where it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} (at character {})", self.message(Lang::En), self.at + 1)]
pub struct QueryError {
    /// The characters that are wrong.
    pub at: usize,
    /// How many there are.
    pub length: usize,
    mistake: Mistake,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Mistake {
    Empty,
    TooLong,
    TooMany,
    OpenQuote,
    NoWord(String),
    ShortPrefix,
    LoneOr,
    Date(String, String),
    Range(String),
    Kind(String),
    Language(String),
    Is(String),
    Twice(&'static str),
}

impl QueryError {
    /// What is wrong, then the query and a line that points at the mistake.
    pub fn pointed(&self, query: &str) -> String {
        let message = self.message(Lang::En);
        if query.trim().is_empty() {
            return message;
        }
        let (space, mark) = (" ".repeat(self.at), "^".repeat(self.length.max(1)));
        format!("{message}\n  {query}\n  {space}{mark}")
    }

    /// What is wrong, in words.
    pub fn message(&self, lang: Lang) -> String {
        let t = |en: String, ja: String| if lang == Lang::Ja { ja } else { en };
        match &self.mistake {
            Mistake::Empty => {
                t("write a word to search for".into(), "検索する言葉を入力してください".into())
            }
            Mistake::TooLong => t(
                format!("the query is longer than {MAX_QUERY_BYTES} bytes"),
                format!("検索文が {MAX_QUERY_BYTES} バイトを超えています"),
            ),
            Mistake::TooMany => t(
                format!("the query has more than {MAX_LEAVES} words"),
                format!("検索語が {MAX_LEAVES} 個を超えています"),
            ),
            Mistake::OpenQuote => {
                t("a quotation mark is not closed".into(), "引用符が閉じられていません".into())
            }
            Mistake::NoWord(text) => t(
                format!("`{text}` has no letters or digits"),
                format!("「{text}」には文字も数字もありません"),
            ),
            Mistake::ShortPrefix => t(
                format!("write at least {MIN_PREFIX_CHARS} letters before `*`"),
                format!("「*」の前に {MIN_PREFIX_CHARS} 文字以上必要です"),
            ),
            Mistake::LoneOr => t(
                "`OR` needs a word before and after it".into(),
                "「OR」の前後に言葉が必要です".into(),
            ),
            Mistake::Date(field, why) => t(
                format!("{field}: {why}"),
                format!("{field}: 日付ではありません。2024-03-01 のように書いてください"),
            ),
            Mistake::Range(field) => t(
                format!("{field}: needs two dates, as in {field}:2024-01..2024-03"),
                format!("{field}: 二つの日付が必要です (例 {field}:2024-01..2024-03)"),
            ),
            Mistake::Kind(text) => t(
                format!("`{text}` is not a kind of page; there are {}", PageKind::names()),
                format!("「{text}」という種類はありません ({})", PageKind::names()),
            ),
            Mistake::Language(text) => t(
                format!("`{text}` is not a language that is known here; write en, de or ja"),
                format!("「{text}」は対応している言語ではありません (en, de, ja など)"),
            ),
            Mistake::Is(text) => t(
                format!("`is:{text}` is unknown; there is is:significant"),
                format!("「is:{text}」はありません (is:significant があります)"),
            ),
            Mistake::Twice(field) => t(
                format!("`{field}:` can be given once"),
                format!("「{field}:」は一度だけ指定できます"),
            ),
        }
    }
}

impl Query {
    /// Reads a query. Dates without a time zone are UTC.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        let mut parser = Parser { text, at: 0, query: Self::default(), leaves: 0 };
        if text.len() > MAX_QUERY_BYTES {
            return Err(parser.wrong(0..text.len(), Mistake::TooLong));
        }
        parser.read()?;
        Ok(parser.query)
    }

    /// Whether nothing was asked for.
    pub fn is_empty(&self) -> bool {
        self.clauses.is_empty() && self.filters == Filters::default()
    }

    #[cfg(test)]
    pub(crate) fn leaves(&self) -> impl Iterator<Item = &Leaf> {
        self.clauses.iter().flat_map(|clause| &clause.any)
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    query: Query,
    leaves: usize,
}

impl<'t> Parser<'t> {
    fn wrong(&self, place: Range<usize>, mistake: Mistake) -> QueryError {
        let chars = |range: Range<usize>| self.text.get(range).map_or(0, |t| t.chars().count());
        QueryError { at: chars(0..place.start), length: chars(place), mistake }
    }

    fn read(&mut self) -> Result<(), QueryError> {
        let mut or_at: Option<Range<usize>> = None;
        let mut last_is_clause = false;
        loop {
            self.skip_space();
            if self.at >= self.text.len() {
                break;
            }
            let start = self.at;
            if self.takes_word("OR") {
                if !last_is_clause || or_at.is_some() {
                    return Err(self.wrong(start..self.at, Mistake::LoneOr));
                }
                or_at = Some(start..self.at);
                continue;
            }
            let is_excluded = self.takes_minus();
            let is_filter = self.filter(is_excluded)?;
            if is_filter {
                if let Some(place) = or_at {
                    return Err(self.wrong(place, Mistake::LoneOr));
                }
                last_is_clause = false;
                continue;
            }
            let leaf = self.leaf()?;
            match self.query.clauses.last_mut().filter(|_| or_at.take().is_some()) {
                Some(clause) => clause.any.push(leaf),
                None => self.query.clauses.push(Clause { any: vec![leaf], is_excluded }),
            }
            last_is_clause = true;
        }
        match or_at {
            Some(place) => Err(self.wrong(place, Mistake::LoneOr)),
            None if self.query.is_empty() => Err(self.wrong(0..self.text.len(), Mistake::Empty)),
            None => Ok(()),
        }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let follows = self.rest().strip_prefix(word);
        let is_word =
            follows.is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace));
        if is_word {
            self.at += word.len();
        }
        is_word
    }

    fn takes_minus(&mut self) -> bool {
        let is_minus = self
            .rest()
            .strip_prefix('-')
            .is_some_and(|rest| !rest.is_empty() && !rest.starts_with(char::is_whitespace));
        if is_minus {
            self.at += 1;
        }
        is_minus
    }

    /// A value up to the next white space, or quoted.
    fn value(&mut self) -> Result<(&'t str, Range<usize>), QueryError> {
        let quotes = [('"', '"'), ('“', '”'), ('「', '」')];
        let opened = quotes.into_iter().find(|(open, _)| self.rest().starts_with(*open));
        if let Some((open, close)) = opened {
            let start = self.at + open.len_utf8();
            let Some(length) = self.text[start..].find(close) else {
                return Err(self.wrong(self.at..self.text.len(), Mistake::OpenQuote));
            };
            self.at = start + length + close.len_utf8();
            return Ok((&self.text[start..start + length], start..start + length));
        }
        let start = self.at;
        let length =
            self.rest().find(|c: char| c.is_whitespace() || c == '"').unwrap_or(self.rest().len());
        self.at += length;
        Ok((&self.text[start..self.at], start..self.at))
    }

    /// Reads a filter, if one is next.
    fn filter(&mut self, is_excluded: bool) -> Result<bool, QueryError> {
        const FILTERS: [&str; 8] =
            ["site", "type", "lang", "at", "during", "appeared", "vanished", "is"];
        let begins = |name: &&str| {
            let after = self.rest().strip_prefix(name).and_then(|rest| rest.strip_prefix(':'));
            after.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(char::is_whitespace))
        };
        let Some(name) = FILTERS.into_iter().find(begins) else { return Ok(false) };
        let start = self.at;
        self.at += name.len() + 1;
        let (value, place) = self.value()?;
        let whole = start..self.at;
        let text = || value.to_owned();
        match name {
            "site" => self.query.filters.sites.push((text(), is_excluded)),
            "type" => {
                let kind = PageKind::named(value)
                    .ok_or_else(|| self.wrong(place, Mistake::Kind(text())))?;
                self.query.filters.kinds.push((kind, is_excluded));
            }
            "lang" => {
                let language = Language::named(value)
                    .ok_or_else(|| self.wrong(place, Mistake::Language(text())))?;
                self.query.filters.languages.push((language, is_excluded));
            }
            "is" if value == "significant" => self.query.filters.is_significant = true,
            "is" => return Err(self.wrong(place, Mistake::Is(text()))),
            "at" => {
                let at_s = self.date("at", value, place, Edge::Last)?;
                if self.query.filters.at_s.replace(at_s).is_some() {
                    return Err(self.wrong(whole, Mistake::Twice("at")));
                }
            }
            name => {
                let range = self.range(name, value, place)?;
                let filters = &mut self.query.filters;
                let limits = match name {
                    "during" => &mut filters.during_s,
                    "appeared" => &mut filters.appeared_s,
                    _ => &mut filters.vanished_s,
                };
                if limits.replace(range).is_some() {
                    return Err(self.wrong(whole, Mistake::Twice(name)));
                }
            }
        }
        Ok(true)
    }

    fn date(
        &self,
        name: &str,
        value: &str,
        place: Range<usize>,
        edge: Edge,
    ) -> Result<i64, QueryError> {
        parse_date(&without_dash(value), edge)
            .map_err(|why| self.wrong(place, Mistake::Date(name.to_owned(), why)))
    }

    /// `2024-01..2024-03`; one date alone is all of its year, month or day.
    fn range(
        &self,
        name: &str,
        value: &str,
        place: Range<usize>,
    ) -> Result<(i64, i64), QueryError> {
        let (first, last) = value.split_once("..").unwrap_or((value, value));
        let end = |text: &str, edge: Edge, without: i64| match text {
            "" => Ok(without),
            text => self.date(name, text, place.clone(), edge),
        };
        let range = (end(first, Edge::First, i64::MIN)?, end(last, Edge::Last, i64::MAX - 1)?);
        match range.0 <= range.1 && value != ".." {
            true => Ok(range),
            false => Err(self.wrong(place, Mistake::Range(name.to_owned()))),
        }
    }

    fn leaf(&mut self) -> Result<Leaf, QueryError> {
        let fields = [("title:", Field::Title), ("url:", Field::Url)];
        let follows = |rest: &str| !rest.is_empty() && !rest.starts_with(char::is_whitespace);
        let named = fields
            .into_iter()
            .find(|(name, _)| self.rest().strip_prefix(name).is_some_and(follows));
        let field = match named {
            Some((name, field)) => {
                self.at += name.len();
                field
            }
            None => Field::Any,
        };
        let is_quoted = self.rest().starts_with(['"', '“', '「']);
        let (value, place) = self.value()?;
        self.leaves += 1;
        if self.leaves > MAX_LEAVES {
            return Err(self.wrong(place, Mistake::TooMany));
        }
        let is_prefix = value.ends_with('*');
        let units = Units::of(value);
        if units.len() == 0 {
            return Err(self.wrong(place, Mistake::NoWord(value.to_owned())));
        }
        let last = units.text(units.len() - 1);
        let is_character = units.get(units.len() - 1).is_some_and(|unit| unit.is_character);
        if is_prefix && !is_character && last.chars().count() < MIN_PREFIX_CHARS {
            return Err(self.wrong(place, Mistake::ShortPrefix));
        }
        let has_forms = !is_quoted && !is_prefix && units.len() == 1 && field != Field::Url;
        let forms = has_forms.then(|| WordForms::of(units.text(0))).filter(WordForms::has_any);
        Ok(Leaf { field, units, is_prefix, forms })
    }
}

/// `2024-03`, a month, as digits alone.
fn without_dash(date: &str) -> Cow<'_, str> {
    match date.split_once('-') {
        Some((year, month)) if year.len() == 4 && month.len() == 2 => {
            format!("{year}{month}").into()
        }
        _ => date.into(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn leaves(text: &str) -> Vec<(Field, String, bool, bool)> {
        let query = Query::parse(text).unwrap();
        let shown = |leaf: &Leaf| {
            let words: Vec<&str> = (0..leaf.units.len()).map(|at| leaf.units.text(at)).collect();
            (leaf.field, words.join(" "), leaf.is_prefix, leaf.forms.is_some())
        };
        query.leaves().map(shown).collect()
    }

    #[test]
    fn words_phrases_beginnings_and_fields_are_read() {
        assert_eq!(
            leaves("Rings \"of the Tree\" oak* title:bark url:blog/2024 foo-bar"),
            [
                (Field::Any, "rings".into(), false, true),
                (Field::Any, "of the tree".into(), false, false),
                (Field::Any, "oak".into(), true, false),
                (Field::Title, "bark".into(), false, true),
                (Field::Url, "blog 2024".into(), false, false),
                (Field::Any, "foo bar".into(), false, false),
            ]
        );
        let query = Query::parse("a -b \"c\" OR d -e").unwrap();
        let shape: Vec<(usize, bool)> =
            query.clauses.iter().map(|c| (c.any.len(), c.is_excluded)).collect();
        assert_eq!(shape, [(1, false), (1, true), (2, false), (1, true)]);
        assert_eq!(leaves("「年輪 の」")[0].1, "年 輪 の");
    }

    #[test]
    fn a_mistake_is_pointed_at() {
        let pointed = |query: &str| Query::parse(query).unwrap_err().pointed(query);
        let shown = pointed("oak at:soon");
        assert!(shown.ends_with("\n  oak at:soon\n         ^^^^"), "{shown}");
        assert_eq!(pointed(" "), "write a word to search for");
    }

    #[test]
    fn filters_are_read() {
        let query =
            Query::parse("x site:e -site:\"my site\" type:text lang:de at:2024 is:significant")
                .unwrap();
        let filters = &query.filters;
        assert_eq!(filters.sites, [("e".into(), false), ("my site".into(), true)]);
        assert_eq!(filters.at_s, Some(1_735_689_599));
        assert!(filters.is_significant);
        let query = Query::parse("appeared:2024-01..2024-03 vanished:2024 during:..2020").unwrap();
        assert_eq!(query.filters.appeared_s, Some((1_704_067_200, 1_711_929_599)));
        assert_eq!(query.filters.vanished_s, Some((1_704_067_200, 1_735_689_599)));
        assert_eq!(query.filters.during_s.unwrap().0, i64::MIN);
        assert_eq!(leaves("http://e.com/a")[0].1, "http e com a", "not a field");
    }

    #[test]
    fn a_mistake_is_named_with_its_place() {
        for (text, at, length, message) in [
            ("", 0, 0, "write a word to search for"),
            ("a \"b c", 2, 4, "a quotation mark is not closed"),
            ("年輪 ???", 3, 3, "`???` has no letters or digits"),
            ("a b*", 2, 2, "write at least 2 letters before `*`"),
            ("a OR", 2, 2, "`OR` needs a word before and after it"),
            ("OR a", 0, 2, "`OR` needs a word before and after it"),
            (
                "x type:video",
                7,
                5,
                "`video` is not a kind of page; there are html, text, feed, data, pdf",
            ),
            (
                "x lang:klingon",
                7,
                7,
                "`klingon` is not a language that is known here; write en, de or ja",
            ),
            (
                "x during:2024..2023",
                9,
                10,
                "during: needs two dates, as in during:2024-01..2024-03",
            ),
            ("x is:new", 5, 3, "`is:new` is unknown; there is is:significant"),
            ("at:2023 at:2024", 8, 7, "`at:` can be given once"),
        ] {
            let error = Query::parse(text).unwrap_err();
            assert_eq!(
                (error.at, error.length, error.message(Lang::En).as_str()),
                (at, length, message),
                "{text}"
            );
            assert_ne!(error.message(Lang::Ja), message);
        }
        let error = Query::parse("at:yesterday").unwrap_err();
        assert!(error.to_string().starts_with("at: `yesterday` is not a date"), "{error}");
        assert!(Query::parse(&"a ".repeat(50)).is_err());
        assert!(Query::parse(&"a".repeat(3000)).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_a_query_or_a_mistake_inside_it(
            text in "(site:|title:|url:|at:|during:|appeared:|is:|-|\"|「|」|\\*|OR| |\\.\\.|2024|\\PC){0,12}"
        ) {
            if let Err(error) = Query::parse(&text) {
                prop_assert!(error.at + error.length <= text.chars().count());
            }
        }
    }
}
