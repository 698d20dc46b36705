//! Pages in the order of a text that is not stored a second time.
//!
//! A list (the paths of a server, the keys of all URLs with versions) is cut into bags. A bag
//! stores the numbers of the pages whose texts are between its first text and the next bag's, in no
//! order; reading a bag means looking the texts up and sorting them. An index would repeat every
//! text: bags take a tenth of its space, for a few dozen look-ups when a list is read.

use nenrin_urls::{CanonicalUrl, UrlKey};
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::rows;
use crate::{PageId, ServerId};

/// A bag with more pages than this is divided.
const PAGES_MAX: usize = 64;
/// Into bags of about this many.
const PAGES_DIVIDED: usize = 32;

/// One ordered list of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum List {
    /// Every page with versions, by its URL's key.
    Keys,
    /// Every known page of a server, by its path.
    Paths(ServerId),
}

impl List {
    /// Servers are numbered from 1.
    fn number(self) -> u32 {
        match self {
            Self::Keys => 0,
            Self::Paths(server) => server.0,
        }
    }

    fn entry_bytes(self) -> usize {
        match self {
            Self::Keys => 10,
            Self::Paths(_) => 5,
        }
    }

    /// A page of a server is named by the lower part of its number; one of the keys by its number
    /// and two bytes of the key's hash, so that one look-up finds it.
    fn entry(self, text: &str, page: PageId) -> Vec<u8> {
        let number = page.0.to_le_bytes();
        match self {
            Self::Keys => [&number[..], &tag(text)].concat(),
            Self::Paths(_) => (page.0 & LOWER).to_le_bytes()[..5].to_vec(),
        }
    }

    fn page(self, entry: &[u8]) -> PageId {
        let mut number = [0; 8];
        let length = entry.len().min(8);
        number[..length].copy_from_slice(&entry[..length]);
        let number = i64::from_le_bytes(number);
        match self {
            Self::Keys => PageId(number),
            Self::Paths(server) => PageId(i64::from(server.0) << PageId::HASH_BITS | number),
        }
    }

    /// The text by which a page is in this list; `None` for a page that is not there.
    fn text(self, c: &Connection, page: PageId) -> rusqlite::Result<Option<String>> {
        match self {
            Self::Paths(_) => c
                .prepare_cached("SELECT path FROM pages WHERE id = ?1")?
                .query_row([page.0], |row| row.get(0))
                .optional(),
            Self::Keys => Ok(url(c, page)?.map(|url| url.key().as_str().to_owned())),
        }
    }
}

const LOWER: i64 = (1 << PageId::HASH_BITS) - 1;

fn tag(text: &str) -> [u8; 2] {
    let hash = blake3::hash(text.as_bytes());
    [hash.as_bytes()[0], hash.as_bytes()[1]]
}

/// The URL of a page.
pub(super) fn url(c: &Connection, page: PageId) -> rusqlite::Result<Option<CanonicalUrl>> {
    c.prepare_cached(
        "SELECT s.name || p.path FROM pages p JOIN servers s ON s.id = p.id >> 39 WHERE p.id = ?1",
    )?
    .query_row([page.0], |row| rows::url(row, 0))
    .optional()
}

struct Bag {
    first: String,
    pages: Vec<u8>,
    /// Where the next bag begins.
    next: Option<String>,
}

/// The bag that a text belongs to.
fn bag_of(c: &Connection, list: List, text: &str) -> rusqlite::Result<Bag> {
    let found = c
        .prepare_cached(
            "SELECT first, pages FROM bags WHERE list = ?1 AND first <= ?2
             ORDER BY first DESC LIMIT 1",
        )?
        .query_row(params![list.number(), text], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let (first, pages) = found.unwrap_or_default();
    let next = c
        .prepare_cached(
            "SELECT first FROM bags WHERE list = ?1 AND first > ?2 ORDER BY first LIMIT 1",
        )?
        .query_row(params![list.number(), text], |row| row.get(0))
        .optional()?;
    Ok(Bag { first, pages, next })
}

fn write_bag(t: &Connection, list: List, first: &str, pages: &[u8]) -> rusqlite::Result<()> {
    t.prepare_cached("INSERT OR REPLACE INTO bags VALUES (?1, ?2, ?3)")?.execute(params![
        list.number(),
        first,
        pages
    ])?;
    Ok(())
}

/// Pages to be entered in lists, written together.
#[derive(Default)]
pub(super) struct Entered(Vec<(List, String, PageId)>);

impl Entered {
    pub(super) fn path(&mut self, page: PageId, path: &str) {
        self.0.push((List::Paths(page.server()), path.to_owned(), page));
    }

    pub(super) fn key(&mut self, page: PageId, key: &UrlKey) {
        self.0.push((List::Keys, key.as_str().to_owned(), page));
    }

    /// Enters them all; one that is there already stays.
    pub(super) fn write(&mut self, t: &Transaction<'_>) -> rusqlite::Result<()> {
        let mut entered = std::mem::take(&mut self.0);
        entered.sort_unstable();
        entered.dedup();
        let mut rest = entered.as_slice();
        while let Some((list, text, _)) = rest.first() {
            let bag = bag_of(t, *list, text)?;
            let is_here = |(other, text, _): &&(List, String, PageId)| {
                other == list && bag.next.as_ref().is_none_or(|next| text < next)
            };
            let here = rest.iter().take_while(is_here).count();
            put(t, *list, bag, &rest[..here])?;
            rest = &rest[here..];
        }
        Ok(())
    }
}

fn put(
    t: &Transaction<'_>,
    list: List,
    bag: Bag,
    added: &[(List, String, PageId)],
) -> rusqlite::Result<()> {
    let size = list.entry_bytes();
    let mut pages = bag.pages;
    let before = pages.len();
    for (_, text, page) in added {
        let entry = list.entry(text, *page);
        // No two of those that are added are the same.
        if !pages[..before].chunks_exact(size).any(|other| other == entry) {
            pages.extend(entry);
        }
    }
    if pages.len() <= PAGES_MAX * size {
        return if pages.len() > before { write_bag(t, list, &bag.first, &pages) } else { Ok(()) };
    }
    let mut texts = sorted(t, list, &pages[..before])?;
    texts.extend(added.iter().map(|(_, text, page)| (text.clone(), *page)));
    texts.sort_unstable();
    texts.dedup();
    divide(t, list, bag.first, &texts)
}

/// The pages of a bag with their texts, in order.
fn sorted(c: &Connection, list: List, pages: &[u8]) -> rusqlite::Result<Vec<(String, PageId)>> {
    let mut texts = Vec::with_capacity(pages.len() / list.entry_bytes());
    for entry in pages.chunks_exact(list.entry_bytes()) {
        let page = list.page(entry);
        if let Some(text) = list.text(c, page)? {
            texts.push((text, page));
        }
    }
    texts.sort_unstable();
    Ok(texts)
}

fn divide(
    t: &Transaction<'_>,
    list: List,
    mut first: String,
    texts: &[(String, PageId)],
) -> rusqlite::Result<()> {
    let mut begin = 0;
    while begin < texts.len() {
        let mut end = begin + PAGES_DIVIDED;
        if end + PAGES_DIVIDED / 2 > texts.len() {
            end = texts.len();
        }
        // Equal texts stay in one bag.
        while end < texts.len() && texts[end].0 == texts[end - 1].0 {
            end += 1;
        }
        let pages: Vec<u8> =
            texts[begin..end].iter().flat_map(|(text, page)| list.entry(text, *page)).collect();
        write_bag(t, list, &first, &pages)?;
        if end < texts.len() {
            first = between(&texts[end - 1].0, &texts[end].0).to_owned();
        }
        begin = end;
    }
    Ok(())
}

/// The shortest beginning of `upper` that is greater than `lower`.
fn between<'a>(lower: &str, upper: &'a str) -> &'a str {
    let same = lower.bytes().zip(upper.bytes()).take_while(|(a, b)| a == b).count();
    let end = (same + 1..upper.len()).find(|&end| upper.is_char_boundary(end));
    &upper[..end.unwrap_or(upper.len())]
}

/// Takes a page out of the list of keys; returns whether it was there.
pub(super) fn take_key(t: &Transaction<'_>, key: &UrlKey, page: PageId) -> rusqlite::Result<bool> {
    let bag = bag_of(t, List::Keys, key.as_str())?;
    let entry = List::Keys.entry(key.as_str(), page);
    let mut left = bag.pages.clone();
    let kept = bag.pages.chunks_exact(entry.len()).filter(|other| **other != entry[..]);
    left.clear();
    left.extend(kept.flatten());
    if left.len() == bag.pages.len() {
        return Ok(false);
    }
    write_bag(t, List::Keys, &bag.first, &left)?;
    Ok(true)
}

/// The pages with versions that share a key; hardly ever more than a few.
pub(super) fn pages_of_key(c: &Connection, key: &UrlKey) -> rusqlite::Result<Vec<PageId>> {
    let bag = bag_of(c, List::Keys, key.as_str())?;
    let tag = tag(key.as_str());
    let mut found = Vec::new();
    for entry in bag.pages.chunks_exact(List::Keys.entry_bytes()).filter(|e| e[8..] == tag) {
        let page = List::Keys.page(entry);
        if url(c, page)?.is_some_and(|url| url.key() == *key) {
            found.push(page);
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Reads a list in order, from any text on.
pub(super) struct Walk<'c> {
    c: &'c Connection,
    list: List,
    first: String,
    texts: Vec<(String, PageId)>,
    at: usize,
    next: Option<String>,
}

impl<'c> Walk<'c> {
    /// Begins at the first text that is not less than `from`.
    pub(super) fn from(c: &'c Connection, list: List, from: &str) -> rusqlite::Result<Self> {
        let (first, next) = (String::new(), None);
        let mut walk = Self { c, list, first, texts: Vec::new(), at: 0, next };
        walk.load(from)?;
        Ok(walk)
    }

    fn load(&mut self, from: &str) -> rusqlite::Result<()> {
        let bag = bag_of(self.c, self.list, from)?;
        self.texts = sorted(self.c, self.list, &bag.pages)?;
        self.at = self.texts.partition_point(|(text, _)| text.as_str() < from);
        (self.first, self.next) = (bag.first, bag.next);
        Ok(())
    }

    /// Goes on at the first text that is not less than `from`.
    pub(super) fn seek(&mut self, from: &str) -> rusqlite::Result<()> {
        let is_here =
            from >= self.first.as_str() && self.next.as_deref().is_none_or(|next| from < next);
        if !is_here {
            return self.load(from);
        }
        self.at = self.texts.partition_point(|(text, _)| text.as_str() < from);
        Ok(())
    }

    /// The next page and its text.
    pub(super) fn step(&mut self) -> rusqlite::Result<Option<(String, PageId)>> {
        loop {
            if let Some(found) = self.texts.get(self.at) {
                self.at += 1;
                return Ok(Some(found.clone()));
            }
            let Some(next) = self.next.take() else { return Ok(None) };
            self.load(&next)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_separator_is_short_and_lies_between() {
        for (lower, upper, expected) in
            [("/a/1", "/a/22", "/a/2"), ("/a", "/a/", "/a/"), ("", "/", "/"), ("é", "êx", "ê")]
        {
            let found = between(lower, upper);
            assert_eq!(found, expected);
            assert!(lower < found && found <= upper);
        }
    }
}
