//! Adds what a commit brings to the sums that are kept.

use rusqlite::{Transaction, params};

use super::rows;
use crate::rules::{ALL_SITES, Sums, WorthSums};

pub(super) fn write(t: &Transaction<'_>, sums: &Sums) -> rusqlite::Result<()> {
    write_days(t, sums)?;
    write_worth(t, &sums.worth)?;
    for (site, counts) in &sums.sites {
        t.prepare_cached(
            "UPDATE sites SET pages = pages + ?2, visits = visits + ?3,
                versions = versions + ?4, problems = problems + ?5,
                raw_bytes = raw_bytes + ?6 WHERE id = ?1",
        )?
        .execute(params![
            site.0,
            counts.pages as i64,
            counts.visits as i64,
            counts.versions as i64,
            counts.problems as i64,
            counts.raw_bytes as i64
        ])?;
    }
    for (round, counts) in &sums.rounds {
        let mut total = rows::round_counts(t, *round)?;
        total.add(counts);
        rows::keep_round_counts(t, *round, &total)?;
    }
    Ok(())
}

fn write_days(t: &Transaction<'_>, sums: &Sums) -> rusqlite::Result<()> {
    for (&(site, kind), sum) in &sums.kinds {
        t.prepare_cached(
            "INSERT INTO kind_sums VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO UPDATE SET
                versions = versions + ?3, received_bytes = received_bytes + ?4,
                stored_bytes = stored_bytes + ?5",
        )?
        .execute(params![site, kind as u8, sum.0, sum.1, sum.2])?;
    }
    for (&(site, day), sum) in &sums.days {
        t.prepare_cached(
            "INSERT INTO days VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT DO UPDATE SET visits = visits + ?3, versions = versions + ?4,
                problems = problems + ?5, raw_bytes = raw_bytes + ?6,
                received_bytes = received_bytes + ?7, stored_bytes = stored_bytes + ?8",
        )?
        .execute(params![
            site,
            day,
            sum.visits as i64,
            sum.versions as i64,
            sum.problems as i64,
            sum.raw_bytes as i64,
            sum.received_bytes as i64,
            sum.stored_bytes as i64,
        ])?;
        if site != ALL_SITES {
            t.prepare_cached(
                "INSERT INTO site_sums VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET
                    received_bytes = received_bytes + ?2, stored_bytes = stored_bytes + ?3",
            )?
            .execute(params![
                site,
                sum.received_bytes as i64,
                sum.stored_bytes as i64
            ])?;
        }
    }
    Ok(())
}

fn write_worth(t: &Transaction<'_>, worth: &WorthSums) -> rusqlite::Result<()> {
    for (site, delta) in &worth.sites {
        t.prepare_cached(
            "INSERT INTO site_worth VALUES (?1, COALESCE(?2, 0), ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT DO UPDATE SET turns = COALESCE(?2, turns),
                estimated = estimated + ?3, rate = rate + ?4, sure = sure + ?5,
                weighed = weighed + ?6, importance = importance + ?7,
                significant = significant + ?8",
        )?
        .execute(params![
            site,
            delta.turns.map(|turns| turns as i64),
            delta.estimated,
            delta.rate,
            delta.sure,
            delta.weighed,
            delta.importance,
            delta.significant,
        ])?;
    }
    for (&(site, best, group), &(pages, importance)) in &worth.groups {
        if (pages, importance) == (0, 0) {
            continue;
        }
        t.prepare_cached(
            "INSERT INTO worth_groups VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO UPDATE SET
                pages = pages + ?4, importance = importance + ?5",
        )?
        .execute(params![site, best, group, pages, importance])?;
    }
    Ok(())
}
