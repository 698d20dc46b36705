//! Links to pages of other partitions, and the shares of scores that leave with them.

use std::collections::BTreeSet;

use nenrin_urls::CanonicalUrl;
use rusqlite::{Connection, OptionalExtension, params};

use super::batch::Batch;
use crate::{Linked, Mail, Nth, PartitionId, VisitCommit, rules};

/// The links of a visit that lead to pages of other partitions: those that the visit made known, so
/// that their partitions know them.
fn far_links<'v>(b: &Batch<'_>, visit: &'v VisitCommit) -> Vec<(PartitionId, &'v CanonicalUrl)> {
    let Some(links) = visit.links.as_ref().filter(|_| b.is_divided()) else { return Vec::new() };
    let inside: BTreeSet<&CanonicalUrl> = visit.discovered.iter().map(|found| &found.url).collect();
    let links = links.iter().filter(|url| inside.contains(url));
    links.filter_map(|url| Some((b.elsewhere(url)?, url))).collect()
}

/// Keeps the links of a visited page that lead to other partitions. Each that is new gets its share
/// of what the page gives, by mail, in the same commit. `linked` counts them from now on.
pub(super) fn visited(
    b: &mut Batch<'_>,
    nth: Nth,
    visit: &VisitCommit,
    near: usize,
    linked: Option<&mut Linked>,
) -> rusqlite::Result<()> {
    let far = far_links(b, visit);
    if !b.is_divided() || visit.links.is_none() {
        return Ok(());
    }
    let hashes: Vec<u64> = far.iter().map(|(_, url)| hash(url)).collect();
    let before = kept(b.t, nth)?;
    let Some(links) = rules::far_links(&before, &hashes) else {
        linked.into_iter().for_each(|linked| linked.links += before.len());
        return Ok(());
    };
    let bytes: Vec<u8> = links.kept.iter().flat_map(|hash| hash.to_le_bytes()).collect();
    b.t.prepare_cached("INSERT OR REPLACE INTO far_links VALUES (?1, ?2)")?
        .execute(params![nth, bytes])?;
    let all = near + links.kept.len();
    if let Some(gives_micros) = visit.gives_micros {
        let micros = rules::share_micros(gives_micros, all);
        for (to, url) in links.fresh.iter().map(|&at| far[at]) {
            b.outbox.send(to, Mail::Share { url: url.clone(), micros });
        }
    }
    linked.into_iter().for_each(|linked| linked.links += links.kept.len());
    Ok(())
}

/// The hashes of the far links that are kept of a page.
fn kept(c: &Connection, nth: Nth) -> rusqlite::Result<Vec<u64>> {
    let hashes = |bytes: &[u8]| {
        bytes
            .chunks_exact(8)
            .filter_map(|hash| hash.try_into().ok())
            .map(u64::from_le_bytes)
            .collect()
    };
    let found = c
        .prepare_cached("SELECT targets FROM far_links WHERE nth = ?1")?
        .query_row([nth], |row| Ok(hashes(row.get_ref(0)?.as_blob()?)))
        .optional()?;
    Ok(found.unwrap_or_default())
}

/// How many links of a page lead to other partitions.
pub(super) fn count(c: &Connection, nth: Nth) -> rusqlite::Result<usize> {
    Ok(kept(c, nth)?.len())
}

fn hash(url: &CanonicalUrl) -> u64 {
    let mut first = [0; 8];
    first.copy_from_slice(&blake3::hash(url.as_str().as_bytes()).as_bytes()[..8]);
    u64::from_le_bytes(first)
}
