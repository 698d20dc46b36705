//! Pages in the order of their discovery, and the links between them: input of the crawl order
//! after a restart, and the links of pages that hand on their score.

use nenrin_urls::CanonicalUrl;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::{far, packed, read, rows};
use crate::{
    DuePage, FoundPage, Linked, Nth, PageId, PageLinks, Reading, SiteId, VersionId, VisitCommit,
    known::{Fresh, Known},
    rules,
};

/// Links of one page that are kept; some pages are nothing but links.
const TARGETS_MAX: usize = 2_000;
/// A snapshot of the crawl order is kept in parts of this size.
const PART_BYTES: usize = 256 << 10;

fn number(reading: Reading) -> u8 {
    match reading {
        Reading::New => 0,
        Reading::Tried => 1,
        Reading::Unread => 2,
        Reading::Read => 3,
    }
}

fn reading(number: u8) -> Reading {
    match number {
        0 => Reading::New,
        1 => Reading::Tried,
        2 => Reading::Unread,
        _ => Reading::Read,
    }
}

/// Gives a page that just became known its discovery number.
pub(super) fn enter(t: &Transaction<'_>, page: PageId, reading: Reading) -> rusqlite::Result<Nth> {
    t.prepare_cached("INSERT INTO found (page, reading) VALUES (?1, ?2)")?
        .execute(params![page.0, number(reading)])?;
    let nth = t.last_insert_rowid();
    u32::try_from(nth).map(Nth).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(0, nth))
}

/// A known page's discovery number.
pub(super) fn place(c: &Connection, page: PageId) -> rusqlite::Result<Nth> {
    c.prepare_cached("SELECT nth FROM pages WHERE id = ?1")?.query_row([page.0], |row| row.get(0))
}

fn place_of_url(c: &Connection, url: &CanonicalUrl) -> rusqlite::Result<Option<Nth>> {
    read::find_page(c, url)?.map(|page| place(c, page)).transpose()
}

fn set_reading(t: &Transaction<'_>, nth: Nth, to: Reading) -> rusqlite::Result<()> {
    t.prepare_cached("UPDATE found SET reading = ?2 WHERE nth = ?1 AND reading < ?2")?
        .execute(params![nth, number(to)])?;
    Ok(())
}

/// Where a visit's links are looked up: what is known of the site, and what the visit added.
pub(super) struct Places<'a> {
    pub(super) site: SiteId,
    pub(super) known: &'a Known,
    pub(super) fresh: &'a [Fresh],
}

impl Places<'_> {
    fn get(&self, c: &Connection, url: &CanonicalUrl) -> rusqlite::Result<Option<Nth>> {
        let key = Known::key(self.site, url);
        if let Some((_, place)) = self.known.get(&key) {
            return Ok(place.map(|nth| Nth(nth.get())));
        }
        match self.fresh.iter().find(|(fresh, ..)| *fresh == key) {
            Some((.., place)) => Ok(place.map(|nth| Nth(nth.get()))),
            None => place_of_url(c, url),
        }
    }
}

/// A page that was visited: its discovery number, and whether it had been visited before.
#[derive(Clone, Copy)]
pub(super) struct Visited {
    pub(super) nth: Nth,
    pub(super) is_new: bool,
}

/// A visit was made: its page is no longer new, and its links are kept if it could read them.
pub(super) fn visited(
    t: &Transaction<'_>,
    Visited { nth, is_new }: Visited,
    visit: &VisitCommit,
    places: &Places<'_>,
) -> rusqlite::Result<Option<Linked>> {
    if let Some(urls) = &visit.links {
        return keep(t, nth, urls, |url| places.get(t, url));
    }
    let reading = rules::reading_without_links(visit);
    // A page that was visited before was tried then at the latest.
    if is_new || reading != Reading::Tried {
        set_reading(t, nth, reading)?;
    }
    Ok(None)
}

/// The links of a page were read outside a visit.
pub(super) fn read_outside(
    t: &Transaction<'_>,
    page: PageId,
    urls: &[CanonicalUrl],
    known: &Known,
) -> rusqlite::Result<Option<Linked>> {
    let record = read::page_by_id(t, page)?;
    let places = Places { site: record.site, known, fresh: &[] };
    keep(t, record.nth, urls, |url| places.get(t, url))
}

/// A version was adopted from the packs.
pub(super) fn adopted(t: &Transaction<'_>, page: PageId) -> rusqlite::Result<()> {
    set_reading(t, place(t, page)?, Reading::Unread)
}

fn keep(
    t: &Transaction<'_>,
    nth: Nth,
    urls: &[CanonicalUrl],
    place: impl Fn(&CanonicalUrl) -> rusqlite::Result<Option<Nth>>,
) -> rusqlite::Result<Option<Linked>> {
    let found: rusqlite::Result<Vec<Option<Nth>>> =
        urls.iter().take(TARGETS_MAX).map(place).collect();
    let targets = found?.into_iter().flatten().collect();
    let Some(links) = rules::linked(nth, targets_of(t, nth)?, targets) else { return Ok(None) };
    t.prepare_cached("INSERT OR REPLACE INTO links VALUES (?1, ?2)")?
        .execute(params![nth, packed(&links.targets)])?;
    set_reading(t, nth, Reading::Read)?;
    Ok(Some(links.linked))
}

fn targets_of(c: &Connection, nth: Nth) -> rusqlite::Result<Option<Vec<Nth>>> {
    c.prepare_cached("SELECT targets FROM links WHERE nth = ?1")?
        .query_row([nth], |row| Ok(unpacked(row.get_ref(0)?.as_blob()?)))
        .optional()
}

/// How many pages of this partition a page links to.
pub(super) fn count(c: &Connection, nth: Nth) -> rusqlite::Result<usize> {
    Ok(targets_of(c, nth)?.map_or(0, |targets| targets.len()))
}

pub(super) fn found(c: &Connection, after: Nth, limit: usize) -> rusqlite::Result<Vec<FoundPage>> {
    c.prepare_cached("SELECT nth, page, reading FROM found WHERE nth > ?1 ORDER BY nth LIMIT ?2")?
        .query_map(params![after, read::count(limit)], |row| {
            let server = PageId(row.get(1)?).server();
            Ok(FoundPage { nth: row.get(0)?, server, reading: reading(row.get(2)?) })
        })?
        .collect()
}

pub(super) fn load_found(c: &Connection, places: &[Nth]) -> rusqlite::Result<Vec<DuePage>> {
    let mut query = c.prepare_cached(&format!(
        "SELECT {}, p.site, m.depth, m.hops, EXISTS (SELECT 1 FROM pulled u WHERE u.page = p.id)
         FROM found f CROSS JOIN pages p ON p.id = f.page {}
         JOIN members m ON m.site = p.site AND m.page = p.id
         WHERE f.nth = ?1 AND p.due_s IS NOT NULL",
        rows::PAGE,
        rows::PAGE_SERVER
    ))?;
    places
        .iter()
        .filter_map(|nth| query.query_row([nth], rows::due_page).optional().transpose())
        .collect()
}

pub(super) fn links(
    c: &Connection,
    places: &[Nth],
    is_divided: bool,
) -> rusqlite::Result<Vec<PageLinks>> {
    let mut query = c.prepare_cached(&format!(
        "SELECT p.id, s.name || p.path, p.version FROM found f CROSS JOIN pages p ON p.id = f.page {}
         WHERE f.nth = ?1",
        rows::PAGE_SERVER
    ))?;
    let mut all = Vec::with_capacity(places.len());
    for &nth in places {
        let targets = targets_of(c, nth)?;
        let far = if is_divided { far::count(c, nth)? } else { 0 };
        let page = query.query_row([nth], |row| {
            let version = row.get::<_, Option<i64>>(2)?.map(|version| VersionId(version as u64));
            Ok(PageLinks {
                nth,
                targets,
                far,
                page: PageId(row.get(0)?),
                url: rows::url(row, 1)?,
                version,
            })
        });
        all.extend(page.optional()?);
    }
    Ok(all)
}

pub(super) fn keep_order(t: &Transaction<'_>, bytes: &[u8]) -> rusqlite::Result<()> {
    t.execute("DELETE FROM crawl_order", [])?;
    let mut insert = t.prepare_cached("INSERT INTO crawl_order (bytes) VALUES (?1)")?;
    bytes.chunks(PART_BYTES).try_for_each(|part| insert.execute([&*packed::pack(part)]).map(|_| ()))
}

pub(super) fn order(c: &Connection) -> rusqlite::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut query = c.prepare_cached("SELECT bytes FROM crawl_order ORDER BY part")?;
    let mut parts = query.query([])?;
    while let Some(part) = parts.next()? {
        bytes.extend_from_slice(&packed::unpack(part.get_ref(0)?.as_blob()?)?);
    }
    Ok(bytes)
}

/// Ascending numbers as differences, seven bits to a byte, the lowest first.
fn packed(targets: &[Nth]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(targets.len() * 2);
    let mut last = 0;
    for &Nth(target) in targets {
        let mut rest = target - last;
        while rest >= 0x80 {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
        last = target;
    }
    bytes
}

/// The numbers back; what cannot be one ends the list.
pub(super) fn unpacked(bytes: &[u8]) -> Vec<Nth> {
    let mut targets = Vec::with_capacity(bytes.len().min(TARGETS_MAX));
    let (mut last, mut rest, mut shift) = (0_u32, 0_u64, 0);
    for &byte in bytes {
        rest |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            let Some(next) = u32::try_from(rest).ok().and_then(|rest| last.checked_add(rest))
            else {
                break;
            };
            targets.push(Nth(next));
            (last, rest, shift) = (next, 0, 0);
        } else if shift > 28 {
            break;
        }
    }
    targets
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn links_come_back_as_they_were(targets in prop::collection::btree_set(1_u32.., 0..50)) {
            let targets: Vec<Nth> = targets.into_iter().map(Nth).collect();
            prop_assert_eq!(unpacked(&packed(&targets)), targets);
        }

        #[test]
        fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..50)) {
            prop_assert!(unpacked(&bytes).is_sorted());
        }
    }
}
