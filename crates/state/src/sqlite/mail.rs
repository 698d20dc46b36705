//! Mail between partitions: written with the commit of its cause, taken in once.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::{read, rows};
use crate::{Mail, NumberedMail, PartitionId};

/// Mail that leaves with a commit.
#[derive(Default)]
pub(super) struct Outbox(BTreeMap<PartitionId, Vec<Mail>>);

impl Outbox {
    pub(super) fn send(&mut self, to: PartitionId, mail: Mail) {
        self.0.entry(to).or_default().push(mail);
    }

    pub(super) fn write(&self, t: &Transaction<'_>) -> rusqlite::Result<()> {
        for (to, mails) in &self.0 {
            let mut number = number(t, "sent", *to)?;
            let mut insert = t.prepare_cached("INSERT INTO outbox VALUES (?1, ?2, ?3)")?;
            for mail in mails {
                number += 1;
                // Mail is plain data, which always has a JSON form.
                let text = serde_json::to_string(mail).unwrap_or_default();
                insert.execute(params![to.0, number as i64, text])?;
            }
            set_number(t, "sent", *to, number)?;
        }
        Ok(())
    }
}

pub(super) fn outbox(
    c: &Connection,
    to: PartitionId,
    after: u64,
    limit: usize,
) -> rusqlite::Result<Vec<NumberedMail>> {
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    c.prepare_cached(
        "SELECT number, mail FROM outbox WHERE receiver = ?1 AND number > ?2
         ORDER BY number LIMIT ?3",
    )?
    .query_map(params![to.0, after, read::count(limit)], |row| {
        let text: String = row.get(1)?;
        Ok(NumberedMail { number: rows::unsigned(row, 0)?, mail: rows::json(&text, 1)? })
    })?
    .collect()
}

/// The receiver has taken in mail up to a number: it need not be kept any longer.
pub(super) fn delivered(t: &Transaction<'_>, to: PartitionId, upto: u64) -> rusqlite::Result<()> {
    let upto = i64::try_from(upto).unwrap_or(i64::MAX);
    t.prepare_cached("DELETE FROM outbox WHERE receiver = ?1 AND number <= ?2")?
        .execute(params![to.0, upto])?;
    Ok(())
}

/// The number of the last mail that was taken in from a partition.
pub(super) fn last_read(c: &Connection, from: PartitionId) -> rusqlite::Result<u64> {
    number(c, "read", from)
}

pub(super) fn set_last_read(
    t: &Transaction<'_>,
    from: PartitionId,
    upto: u64,
) -> rusqlite::Result<()> {
    set_number(t, "read", from, upto)
}

/// The last number of mail sent to or read from a partition; `column` says which.
fn number(c: &Connection, column: &str, partition: PartitionId) -> rusqlite::Result<u64> {
    c.prepare_cached(&format!("SELECT {column} FROM mailboxes WHERE partition = ?1"))?
        .query_row([partition.0], |row| rows::unsigned(row, 0))
        .optional()
        .map(Option::unwrap_or_default)
}

fn set_number(
    t: &Transaction<'_>,
    column: &str,
    partition: PartitionId,
    number: u64,
) -> rusqlite::Result<()> {
    t.prepare_cached(&format!(
        "INSERT INTO mailboxes (partition, {column}) VALUES (?1, ?2)
         ON CONFLICT DO UPDATE SET {column} = ?2"
    ))?
    .execute(params![partition.0, number as i64])?;
    Ok(())
}
