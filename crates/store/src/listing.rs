//! What a pack holds, by its directory and records; no bodies are read.

use crate::chunk::ChunkKind;
use crate::digest::BodyKey;
use crate::directory::{self, Content, Listed, Named, Table, TableBodies, TableRow};
use crate::error::StoreError;
use crate::packfile::PackFile;

/// The chunks of a pack that has ended. None if there is no directory, or a damaged one: then the
/// pack can be walked.
pub(crate) fn read(pack: &PackFile<'_>) -> Result<Option<Vec<Listed>>, StoreError> {
    let Some(end) = directory::find_end(pack)? else { return Ok(None) };
    let Ok(raw) = directory::unpack(&end.payload) else { return Ok(None) };
    let Ok(table) = Table::parse(&raw) else { return Ok(None) };
    if table.chunks.iter().map(|chunk| chunk.total_bytes).sum::<u64>() != end.offset {
        return Ok(None);
    }
    resolve(table, pack).map(Some)
}

/// Reads the records and what else is small, and leaves the bodies where they are.
fn resolve(table: Table, pack: &PackFile<'_>) -> Result<Vec<Listed>, StoreError> {
    let mut listed = Vec::with_capacity(table.chunks.len());
    let mut rows: Vec<Option<(BodyKey, u64)>> = Vec::new();
    let mut row_counts = table.row_counts.into_iter();
    let mut offset = 0;
    for TableRow { kind, total_bytes } in table.chunks {
        let content = match kind {
            ChunkKind::Versions | ChunkKind::Forgotten | ChunkKind::Generation => {
                let chunk = pack.chunk_or_mended(offset)?.filter(|chunk| chunk.kind == kind);
                chunk.and_then(|chunk| Content::of(kind, &chunk.payload).ok())
            }
            _ => None,
        };
        if kind == ChunkKind::Versions {
            let end = rows.len() + row_counts.next().unwrap_or(0);
            if let Some(Content::Versions(keys)) = &content {
                rows.extend(keys.iter().map(|row| Some((row.key, row.body_bytes))));
            }
            rows.resize(end, None);
        }
        let content = content.unwrap_or(Content::Nothing);
        listed.push(Listed { offset, kind, total_bytes, content });
        offset += total_bytes;
    }
    let of_bodies = listed.iter_mut().filter(|chunk| chunk.kind == ChunkKind::Bodies);
    for (chunk, TableBodies { site, class, bodies }) in of_bodies.zip(table.bodies) {
        let body = |named| match named {
            Named::ByRow(row) => rows.get(row).copied().flatten(),
            Named::ByKey(key, body_bytes) => Some((key, body_bytes)),
        };
        match bodies.into_iter().map(body).collect::<Option<Vec<_>>>() {
            Some(bodies) => chunk.content = Content::Bodies { site, class, bodies },
            // The record that names a body is damaged: then the chunk itself says it.
            None => {
                *chunk = directory::list_chunk(pack, chunk.offset)?.unwrap_or_else(|| chunk.clone())
            }
        }
    }
    Ok(listed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Digest;
    use crate::backend::{ContentBackend, MemoryBackend};
    use crate::bodies::{BodiesHead, BodyEntry, Coding, Reference};
    use crate::chunk::seal_chunk;
    use crate::media::Class;
    use crate::mend::Found;
    use crate::rows::{self, Row};

    fn row(id: u64, body: u8) -> Row {
        Row {
            id,
            group: 3,
            url: format!("https://example.org/{id}"),
            visited_at_s: 1_700_000_000,
            status: 200,
            protocol: "h2".to_owned(),
            tls: None,
            server_address: None,
            request_head: Vec::new(),
            response_head: Vec::new(),
            body_bytes: u64::from(body),
            digest: Digest::of(&[body]),
            truncated: None,
        }
    }

    fn bodies(numbers: &[u8]) -> Vec<u8> {
        let entry = |number: &u8| BodyEntry {
            key: Digest::of(&[*number]).key(),
            body_bytes: u64::from(*number),
            recoding: 0,
            stored_bytes: u64::from(*number),
        };
        let head = BodiesHead {
            group: 5,
            class: Class::Text,
            coding: Coding::Zstd,
            reference: Reference::Nothing,
            depth: 0,
            entries: numbers.iter().map(entry).collect(),
        };
        head.encode(&[7; 3000])
    }

    /// A pack of lists of bodies and records, with or without its directory.
    fn pack(parts: &[(bool, Vec<u8>)], has_directory: bool) -> MemoryBackend {
        let backend = MemoryBackend::default();
        let mut bytes = Vec::new();
        for (is_rows, numbers) in parts {
            let rows: Vec<Row> = (1..).zip(numbers).map(|(id, n)| row(id, *n)).collect();
            let (kind, payload) = match is_rows {
                true => (ChunkKind::Versions, rows::encode(&rows, 0, 3)),
                false => (ChunkKind::Bodies, bodies(numbers)),
            };
            bytes.extend(seal_chunk(kind, 1, bytes.len() as u64, &payload));
        }
        backend.append("pack-0000000001", 0, &bytes).unwrap();
        if has_directory {
            let at = bytes.len() as u64;
            let payload = directory::build(&PackFile::new(&backend, 1, at), at).unwrap().unwrap();
            let end = seal_chunk(ChunkKind::PackEnd, 1, at, &payload);
            backend.append("pack-0000000001", at, &end).unwrap();
        }
        backend
    }

    proptest! {
        #[test]
        fn a_directory_says_what_a_walk_finds(
            parts in proptest::collection::vec(
                (any::<bool>(), proptest::collection::vec(0u8..9, 1..20)), 0..8,
            ),
        ) {
            let (with, without) = (pack(&parts, true), pack(&parts, false));
            let length = |backend: &MemoryBackend| backend.list().unwrap()[0].1;
            let mut walked = Vec::new();
            PackFile::new(&without, 1, length(&without)).walk(0, &mut |found| {
                let Found::Chunk(chunk) = found else { panic!("nothing is damaged") };
                walked.push(Listed::of(&chunk).unwrap());
                Ok(())
            }).unwrap();
            let listed = read(&PackFile::new(&with, 1, length(&with))).unwrap();
            prop_assert_eq!(listed, Some(walked));
            prop_assert_eq!(read(&PackFile::new(&without, 1, length(&without))).unwrap(), None);
        }

        #[test]
        fn junk_never_panics(junk: Vec<u8>) {
            let _ = directory::unpack(&junk);
            if let Ok(table) = Table::parse(&junk) {
                let backend = pack(&[(true, vec![1]), (false, vec![1])], true);
                let length = backend.list().unwrap()[0].1;
                resolve(table, &PackFile::new(&backend, 1, length)).unwrap();
            }
        }
    }
}
