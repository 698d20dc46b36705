//! Links to pages of other partitions, and the shares of scores that leave with them.

use std::collections::BTreeSet;

use nenrin_urls::CanonicalUrl;
use rusqlite::{Connection, OptionalExtension, params};

use super::batch::Batch;
use crate::{Linked, Mail, Nth, PartitionId, VisitCommit, rules, rules::FarLink, url_hash};

/// Bytes of a link as it is kept: the hash of its URL, and the partition.
const LINK_BYTES: usize = 12;

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
    let now: Vec<FarLink> =
        far.iter().map(|&(to, url)| FarLink { hash: url_hash(url), to }).collect();
    let before = kept(b.t, nth)?;
    let Some(links) = rules::far_links(&before, &now) else {
        linked.into_iter().for_each(|linked| linked.links += before.len());
        return Ok(());
    };
    b.t.prepare_cached("INSERT OR REPLACE INTO far_links VALUES (?1, ?2)")?
        .execute(params![nth, to_bytes(&links.kept)])?;
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

/// Pages handed score on: their links to other partitions get their shares by mail.
pub(super) fn hand_on(b: &mut Batch<'_>, pages: &[(Nth, u64)]) -> rusqlite::Result<()> {
    for &(nth, micros) in pages {
        for FarLink { hash, to } in kept(b.t, nth)? {
            b.outbox.send(to, Mail::MoreShare { hash, micros });
        }
    }
    Ok(())
}

/// The far links that are kept of a page.
fn kept(c: &Connection, nth: Nth) -> rusqlite::Result<Vec<FarLink>> {
    let found = c
        .prepare_cached("SELECT targets FROM far_links WHERE nth = ?1")?
        .query_row([nth], |row| Ok(from_bytes(row.get_ref(0)?.as_blob()?)))
        .optional()?;
    Ok(found.unwrap_or_default())
}

/// How many links of a page lead to other partitions.
pub(super) fn count(c: &Connection, nth: Nth) -> rusqlite::Result<usize> {
    Ok(kept(c, nth)?.len())
}

fn to_bytes(links: &[FarLink]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(links.len() * LINK_BYTES);
    for link in links {
        bytes.extend(link.hash.to_le_bytes());
        bytes.extend(link.to.0.to_le_bytes());
    }
    bytes
}

fn from_bytes(bytes: &[u8]) -> Vec<FarLink> {
    let link = |bytes: &[u8]| {
        let (hash, to) = bytes.split_at_checked(8)?;
        Some(FarLink {
            hash: u64::from_le_bytes(hash.try_into().ok()?),
            to: PartitionId(u32::from_le_bytes(to.try_into().ok()?)),
        })
    };
    bytes.chunks_exact(LINK_BYTES).filter_map(link).collect()
}
