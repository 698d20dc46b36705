//! Maps of sites for rounds that choose their pages, and what those rounds leave.

use std::collections::BTreeMap;

use nenrin_structure::PageFragments;
use nenrin_urls::CanonicalUrl;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::{links, packed, read, rows, validators};
use crate::{
    DuePage, KeptStructure, MappedPage, Nth, PageId, Round, RoundEnd, RoundId, ServerId, SiteId,
    SitePages, Skips,
};

/// Beginnings of rounds that a map has; a page unseen for longer is simply long unseen.
const ROUNDS_MAX: usize = 64;

fn number(site: Option<SiteId>) -> u32 {
    site.map_or(0, |site| site.0)
}

pub(super) fn keep(t: &Transaction<'_>, kept: &KeptStructure) -> rusqlite::Result<()> {
    t.prepare_cached("INSERT OR REPLACE INTO structure VALUES (?1, ?2)")?
        .execute(params![number(kept.site), &*packed::pack(&kept.bytes)])?;
    Ok(())
}

/// Of a page that has nothing to share nothing is kept.
pub(super) fn keep_blocks(
    t: &Transaction<'_>,
    page: PageId,
    blocks: &PageFragments,
) -> rusqlite::Result<()> {
    if *blocks == PageFragments::default() {
        return forget_blocks(t, page);
    }
    t.prepare_cached("INSERT OR REPLACE INTO blocks VALUES (?1, ?2)")?
        .execute(params![page.0, blocks.to_bytes()])?;
    Ok(())
}

pub(super) fn forget_blocks(t: &Transaction<'_>, page: PageId) -> rusqlite::Result<()> {
    t.prepare_cached("DELETE FROM blocks WHERE page = ?1")?.execute([page.0])?;
    Ok(())
}

fn kept(c: &Connection, site: Option<SiteId>) -> rusqlite::Result<Vec<u8>> {
    let found = c
        .prepare_cached("SELECT state FROM structure WHERE site = ?1")?
        .query_row([number(site)], |row| {
            Ok(packed::unpack(row.get_ref(0)?.as_blob()?)?.into_owned())
        })
        .optional()?;
    Ok(found.unwrap_or_default())
}

/// The pages that a round left out are counted in its row.
pub(super) fn skipped(t: &Transaction<'_>, end: &RoundEnd) -> rusqlite::Result<()> {
    let Some(skips) = &end.skips else { return Ok(()) };
    let mut counts = rows::round_counts(t, end.round)?;
    counts.skipped = skips.pages();
    rows::keep_round_counts(t, end.round, &counts)?;
    // Reasons are plain data, which always has a JSON form.
    let reasons = serde_json::to_string(skips).unwrap_or_default();
    t.execute("INSERT OR REPLACE INTO skips VALUES (?1, ?2)", params![end.round, reasons])?;
    Ok(())
}

pub(super) fn skips(c: &Connection, round: RoundId) -> rusqlite::Result<Option<Skips>> {
    let text: Option<String> = c
        .prepare_cached("SELECT reasons FROM skips WHERE round = ?1")?
        .query_row([round], |row| row.get(0))
        .optional()?;
    text.map(|text| rows::json(&text, 0)).transpose()
}

pub(super) fn url_of(c: &Connection, page: PageId) -> rusqlite::Result<Option<CanonicalUrl>> {
    c.prepare_cached(
        "SELECT s.name || p.path FROM pages p JOIN servers s ON s.id = p.id >> 39 WHERE p.id = ?1",
    )?
    .query_row([page.0], |row| rows::url(row, 0))
    .optional()
}

pub(super) fn site_pages(c: &Connection, site: SiteId) -> rusqlite::Result<SitePages> {
    let (order, pages): (Vec<Nth>, Vec<MappedPage>) = pages(c, site)?.into_iter().unzip();
    let place: BTreeMap<Nth, u32> = order.into_iter().zip(0u32..).collect();
    let mut known_tops = Vec::new();
    let tops = read::sites(c)?.into_iter().find(|known| known.id == site);
    for top in tops.iter().flat_map(|site| &site.conditions.tops) {
        let Some(page) = read::find_page(c, top)? else { continue };
        known_tops.extend(place.get(&links::place(c, page)?).copied());
    }
    let mut rounds_s: Vec<i64> =
        read::rounds(c, Some(site), ROUNDS_MAX)?.iter().map(|round| round.started_s).collect();
    rounds_s.reverse();
    let mut ids: Vec<ServerId> = pages.iter().map(|page| page.id.server()).collect();
    ids.sort_unstable();
    ids.dedup();
    let servers = read::servers(c, &ids)?.into_iter().map(|record| (record.id, record.server));
    Ok(SitePages {
        servers: servers.collect(),
        links: links_of(c, site, &place)?,
        pages,
        tops: known_tops,
        rounds_s,
        kept: kept(c, Some(site))?,
        kept_of_all: kept(c, None)?,
    })
}

/// The pages of a site with their discovery numbers.
fn pages(c: &Connection, site: SiteId) -> rusqlite::Result<Vec<(Nth, MappedPage)>> {
    c.prepare_cached(
        "SELECT p.id, p.path, p.visited_s, p.outcome, p.visits, p.failures, p.last_modified, m.round,
            p.nth, b.blocks
         FROM members m JOIN pages p ON p.id = m.page LEFT JOIN blocks b ON b.page = p.id
         WHERE m.site = ?1 AND NOT EXISTS (SELECT 1 FROM denied d WHERE d.page = p.id)
         ORDER BY p.nth",
    )?
    .query_map([site.0], |row| {
        let kept_blocks = row.get_ref(9)?.as_blob_or_null()?;
        let page = MappedPage {
            id: PageId(row.get(0)?),
            path: row.get(1)?,
            visited_s: row.get(2)?,
            outcome: rows::optional_outcome(row, 3)?,
            visits: row.get(4)?,
            failures: row.get(5)?,
            last_modified: validators::date(row, 6)?,
            round: row.get(7)?,
            blocks: kept_blocks.map_or_else(PageFragments::default, PageFragments::from_bytes),
        };
        Ok((row.get(8)?, page))
    })?
    .collect()
}

/// Pages of a site by their numbers, as far as they were not tried in this round.
pub(super) fn load_pages(
    c: &Connection,
    round: &Round,
    pages: &[PageId],
) -> rusqlite::Result<Vec<DuePage>> {
    let mut query = c.prepare_cached(&format!(
        "SELECT {}, m.site, m.depth, m.hops, 0, {}
         FROM members m JOIN pages p ON p.id = m.page {}
         WHERE m.site = ?1 AND m.page = ?2 AND (m.round IS NULL OR m.round < ?3)",
        rows::PAGE,
        rows::MEETS,
        rows::PAGE_SERVER
    ))?;
    pages
        .iter()
        .filter_map(|page| {
            let bounds = params![round.site.0, page.0, round.id];
            query.query_row(bounds, rows::due_page_of_round).optional().transpose()
        })
        .collect()
}

/// Links between pages of a site, by their positions in its map.
fn links_of(
    c: &Connection,
    site: SiteId,
    place: &BTreeMap<Nth, u32>,
) -> rusqlite::Result<Vec<(u32, Vec<u32>)>> {
    let mut query = c.prepare_cached(
        "SELECT p.nth, l.targets FROM members m JOIN pages p ON p.id = m.page
         JOIN links l ON l.nth = p.nth WHERE m.site = ?1 ORDER BY p.nth",
    )?;
    let mut found = query.query([site.0])?;
    let mut all = Vec::new();
    while let Some(row) = found.next()? {
        let nth: Nth = row.get(0)?;
        let Some(&from) = place.get(&nth) else { continue };
        let targets = links::unpacked(row.get_ref(1)?.as_blob()?);
        let inside = targets.iter().filter_map(|nth| place.get(nth).copied());
        all.push((from, inside.collect()));
    }
    Ok(all)
}
