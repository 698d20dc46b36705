//! Notes of servers: what other parts of the program learnt of them. Long ones are compressed.

use std::{borrow::Cow, collections::BTreeMap};

use rusqlite::{
    Connection, Transaction, params,
    types::{FromSqlError, FromSqlResult, ValueRef},
};

use super::packed;
use crate::{ServerId, ServerNote};

/// Stores a note, replacing the one of that name.
pub(super) fn write(t: &Transaction<'_>, note: &ServerNote) -> rusqlite::Result<()> {
    if note.value.is_empty() {
        t.prepare_cached("DELETE FROM notes WHERE server = ?1 AND name = ?2")?
            .execute(params![note.server.0, note.name])?;
        return Ok(());
    }
    let mut put = t.prepare_cached("INSERT OR REPLACE INTO notes VALUES (?1, ?2, ?3)")?;
    match packed::pack(note.value.as_bytes()) {
        Cow::Owned(bytes) => put.execute(params![note.server.0, note.name, bytes])?,
        Cow::Borrowed(_) => put.execute(params![note.server.0, note.name, note.value])?,
    };
    Ok(())
}

/// The notes of a server, by name.
pub(super) fn of_server(
    c: &Connection,
    server: ServerId,
) -> rusqlite::Result<BTreeMap<String, String>> {
    let mut query = c.prepare_cached("SELECT name, value FROM notes WHERE server = ?1")?;
    query.query_map([server.0], |row| Ok((row.get(0)?, text_of(row.get_ref(1)?)?)))?.collect()
}

fn text_of(value: ValueRef<'_>) -> FromSqlResult<String> {
    let ValueRef::Blob(bytes) = value else { return Ok(value.as_str()?.to_owned()) };
    String::from_utf8(packed::unpack(bytes)?.into_owned()).map_err(FromSqlError::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_notes_come_back_and_damage_is_an_error() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch("CREATE TABLE notes (server, name, value, PRIMARY KEY (server, name))")
            .unwrap();
        let t = connection.transaction().unwrap();
        let (server, long) = (ServerId(7), r#"{"seen":1,"changed":1}"#.repeat(1000));
        for (name, value) in [("short", "{}"), ("long", &long), ("none", "x"), ("none", "")] {
            write(&t, &ServerNote { server, name: name.into(), value: value.to_owned() }).unwrap();
        }
        let found = of_server(&t, server).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!((found["short"].as_str(), &found["long"]), ("{}", &long));
        let size = "SELECT length(value) FROM notes WHERE name = 'long'";
        let size: i64 = t.query_row(size, [], |row| row.get(0)).unwrap();
        assert!(size < 1_000, "{size}");
        t.execute("UPDATE notes SET value = x'28b52ffd00' WHERE name = 'long'", []).unwrap();
        assert!(of_server(&t, server).is_err());
    }
}
