//! Bodies too large for memory: cut into pieces, each a chunk of its own, and a list of them.
//!
//! A piece belongs to its site: its key is made of the site's number and its content. So a list and
//! its pieces are always in packs of the same site, and compacting that site finds both.

use std::io::{Read, Write};

use crate::bodies::{BodiesHead, BodyEntry, Coding, LIST, MAX_BODY_BYTES, Reference};
use crate::compress::{MAX_DELTA_BYTES, Squeezed};
use crate::decoded::Stored;
use crate::digest::BodyKey;
use crate::error::StoreError;
use crate::media::Class;
use crate::pack::damaged;
use crate::read::version_head;
use crate::rows::Row;
use crate::store::Store;
use crate::wire::{Malformed, Reader, put_varint};
use crate::{Digest, NewVersion, Put, VersionHead, VersionId, squeeze};

/// A larger body is cut: no other version is compared with it in any case.
pub(crate) const CUT_FROM_BYTES: usize = MAX_DELTA_BYTES;
/// The length of every piece but the last.
const PIECE_BYTES: usize = 4 << 20;
/// Pieces of one body.
const MAX_PIECES: usize = (MAX_BODY_BYTES as usize).div_ceil(PIECE_BYTES);
/// After so many bytes what was put is synced, so that a pack can end inside a large body.
const SYNCED_AFTER_BYTES: u64 = 32 << 20;

/// A piece, stored as it is; it counts as no body of its own.
pub(crate) const PIECE: u8 = 8;

/// A piece in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    digest: Digest,
    bytes: u64,
}

impl Piece {
    fn of(group: u32, bytes: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"piece");
        hasher.update(&group.to_le_bytes());
        hasher.update(bytes);
        Self { digest: Digest(*hasher.finalize().as_bytes()), bytes: bytes.len() as u64 }
    }

    pub(crate) fn key(&self) -> BodyKey {
        self.digest.key()
    }
}

fn encode(pieces: &[Piece]) -> Vec<u8> {
    let mut out = Vec::with_capacity(pieces.len() * 37 + 4);
    put_varint(&mut out, pieces.len() as u64);
    for piece in pieces {
        out.extend_from_slice(&piece.digest.0);
        put_varint(&mut out, piece.bytes);
    }
    out
}

fn parse(list: &[u8]) -> Result<Vec<Piece>, Malformed> {
    let mut reader = Reader::new(list);
    let count = reader.count(MAX_PIECES)?;
    let mut pieces = Vec::with_capacity(count.min(list.len() / 33 + 1));
    for _ in 0..count {
        let digest = Digest(reader.array()?);
        let bytes = reader.varint()?;
        if bytes > PIECE_BYTES as u64 {
            return Err(Malformed("piece above its limit"));
        }
        pieces.push(Piece { digest, bytes });
    }
    Ok(pieces)
}

impl Store {
    /// As [`put`](Self::put), for a body that is read piece by piece; `version.body` is empty. At
    /// most 16 MiB of it are in memory at a time. Whatever `body` says when it fails ends the call
    /// with [`StoreError::Stopped`], and nothing refers to what was stored by then.
    pub fn put_read(
        &self,
        version: &NewVersion<'_>,
        body: &mut dyn Read,
    ) -> Result<Put, StoreError> {
        let mut front = Vec::new();
        fill(body, &mut front, CUT_FROM_BYTES + 1)?;
        match front.len() > CUT_FROM_BYTES {
            true => self.put_cut(version, &mut front.as_slice().chain(body)),
            false => self.put(&NewVersion { body: &front, ..*version }),
        }
    }

    /// Stores a body in pieces.
    pub(crate) fn put_cut(
        &self,
        version: &NewVersion<'_>,
        body: &mut dyn Read,
    ) -> Result<Put, StoreError> {
        let mut held = Vec::new();
        let put = self.put_pieces(version, body, &mut held);
        let mut writer = self.writer();
        for key in held {
            writer.release(key);
        }
        put
    }

    fn put_pieces(
        &self,
        version: &NewVersion<'_>,
        body: &mut dyn Read,
        held: &mut Vec<BodyKey>,
    ) -> Result<Put, StoreError> {
        let mut pieces = Vec::new();
        let mut whole = blake3::Hasher::new();
        let (mut new_bytes, mut unsynced_bytes, mut body_bytes) = (0, 0, 0);
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            fill(body, &mut bytes, PIECE_BYTES)?;
            if bytes.is_empty() {
                break;
            }
            body_bytes += bytes.len() as u64;
            if body_bytes > MAX_BODY_BYTES {
                let (what, found, limit) = ("the body", body_bytes, MAX_BODY_BYTES);
                return Err(StoreError::TooLarge { what, found, limit });
            }
            whole.update(&bytes);
            let piece = Piece::of(version.group, &bytes);
            let written = self.put_piece(version.group, piece, &bytes, held)?;
            new_bytes += written;
            unsynced_bytes += written;
            if unsynced_bytes >= SYNCED_AFTER_BYTES {
                self.sync()?;
                unsynced_bytes = 0;
            }
            pieces.push(piece);
        }
        let digest = Digest(*whole.finalize().as_bytes());
        let list = encode(&pieces);
        let squeezed = |key| {
            let stored_bytes = list.len() as u64;
            let entry = BodyEntry { key, body_bytes, recoding: LIST, stored_bytes };
            Squeezed::plain(version.group, entry, &list)
        };
        let put = self.put_squeezed(version, body_bytes, digest, &squeezed)?;
        Ok(Put { new_bytes: put.new_bytes + new_bytes, ..put })
    }

    /// Returns how much the pack grew.
    fn put_piece(
        &self,
        group: u32,
        piece: Piece,
        bytes: &[u8],
        held: &mut Vec<BodyKey>,
    ) -> Result<u64, StoreError> {
        let key = piece.key();
        let was_known = self.find_body(key)?.is_some();
        let squeeze = || {
            let data = squeeze::compress(bytes, self.options.level, b"");
            let entry =
                BodyEntry { key, body_bytes: 0, recoding: PIECE, stored_bytes: piece.bytes };
            let is_smaller = data.len() < bytes.len();
            let coding = if is_smaller { Coding::Zstd } else { Coding::Plain };
            let (class, reference) = (Class::Other, Reference::Nothing);
            let entries = vec![entry];
            let head = BodiesHead { group, class, coding, reference, depth: 0, entries };
            Squeezed::new(head, &[if is_smaller { &data } else { bytes }])
        };
        let squeezed = (!was_known).then(squeeze);
        let mut writer = self.writer();
        writer.check()?;
        // From here on compacting keeps it, although no record names it yet.
        writer.hold(key)?;
        held.push(key);
        if self.find_body(key)?.is_some() {
            return Ok(0);
        }
        // It may have been compacted away since it was looked for.
        let written = self.keep_body(&mut writer, key, squeezed.unwrap_or_else(squeeze))?;
        self.write_group(&mut writer)?;
        Ok(written)
    }

    /// Writes a version's body to `out` without having all of it in memory, and returns the rest of
    /// the version. What was written is the body only if this succeeds: a large body is compared
    /// with its digest at the end.
    pub fn read_to(&self, id: VersionId, out: &mut dyn Write) -> Result<VersionHead, StoreError> {
        let row = self.row(id)?;
        self.visit_body(&row, &mut |bytes| {
            out.write_all(bytes).map_err(|error| StoreError::Stopped(error.to_string()))
        })?;
        version_head(&row)
    }

    /// A part of a version's body: at most `length` bytes from `from` on, fewer where a piece of a
    /// large body ends. Empty at the body's end. Of a large body only the piece is read and checked.
    pub fn read_part(
        &self,
        id: VersionId,
        from: u64,
        length: usize,
    ) -> Result<Vec<u8>, StoreError> {
        let row = self.row(id)?;
        let stored = match row.body_bytes > CUT_FROM_BYTES as u64 {
            true => Some(self.stored(row.digest.key())?),
            false => None,
        };
        let Some(list) = stored.filter(|stored| stored.entry.recoding == LIST) else {
            return Ok(part(&self.body(&row.digest)?, from, length));
        };
        let mut before = 0;
        for piece in parse(&list.bytes).map_err(|why| damaged("body", list.place, why))? {
            if from < before + piece.bytes {
                return Ok(part(&self.piece(&piece)?, from - before, length));
            }
            before += piece.bytes;
        }
        Ok(Vec::new())
    }

    fn piece(&self, piece: &Piece) -> Result<Vec<u8>, StoreError> {
        let stored = self.stored(piece.key())?;
        if stored.entry.recoding != PIECE || stored.bytes.len() as u64 != piece.bytes {
            return Err(damaged("piece of a body", stored.place, Malformed("it is another")));
        }
        Ok(stored.bytes)
    }

    /// Visits the body of a row piece by piece, checked.
    pub(crate) fn visit_body(
        &self,
        row: &Row,
        visit: &mut dyn FnMut(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        if row.body_bytes <= CUT_FROM_BYTES as u64 {
            return visit(&self.body(&row.digest)?);
        }
        let stored = self.stored(row.digest.key())?;
        if stored.entry.recoding != LIST {
            return visit(&self.body(&row.digest)?);
        }
        self.visit_pieces(&stored, &row.digest, visit)
    }

    /// Visits the pieces of a list, and compares the whole with its digest.
    pub(crate) fn visit_pieces(
        &self,
        list: &Stored,
        digest: &Digest,
        visit: &mut dyn FnMut(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let unreadable = |why| damaged("body", list.place, why);
        let pieces = parse(&list.bytes).map_err(unreadable)?;
        let mut whole = blake3::Hasher::new();
        for piece in pieces {
            let bytes = self.piece(&piece)?;
            whole.update(&bytes);
            visit(&bytes)?;
        }
        match whole.finalize() == digest.0 {
            true => Ok(()),
            false => Err(unreadable(Malformed("its digest differs"))),
        }
    }

    /// The keys under which a body is stored: its own, and those of its pieces.
    pub(crate) fn keys_under(&self, key: BodyKey) -> Result<Vec<BodyKey>, StoreError> {
        let mut keys = vec![key];
        let Some(place) = self.find_body(key)? else { return Ok(keys) };
        let head = self.bodies_head(place)?;
        if head.find(key).is_some_and(|(_, entry)| entry.recoding == LIST) {
            let list = self.stored(key)?;
            let pieces = parse(&list.bytes).map_err(|why| damaged("body", place, why))?;
            keys.extend(pieces.iter().map(Piece::key));
        }
        Ok(keys)
    }
}

fn part(bytes: &[u8], from: u64, length: usize) -> Vec<u8> {
    let from = usize::try_from(from).unwrap_or(usize::MAX).min(bytes.len());
    bytes[from..from.saturating_add(length).min(bytes.len())].to_vec()
}

/// Reads up to `most` bytes, fewer only at the end.
fn fill(body: &mut dyn Read, into: &mut Vec<u8>, most: usize) -> Result<(), StoreError> {
    let stopped = |error: std::io::Error| StoreError::Stopped(error.to_string());
    body.take(most as u64).read_to_end(into).map_err(stopped)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_list_comes_back(lengths in proptest::collection::vec(0..PIECE_BYTES as u64, 0..20)) {
            let piece = |bytes: u64| Piece { digest: Digest::of(&bytes.to_le_bytes()), bytes };
            let pieces: Vec<Piece> = lengths.into_iter().map(piece).collect();
            prop_assert_eq!(parse(&encode(&pieces)), Ok(pieces));
        }

        #[test]
        fn junk_never_panics(junk: Vec<u8>) {
            let _ = parse(&junk);
        }
    }

    #[test]
    fn a_list_longer_than_any_body_is_refused() {
        let mut list = Vec::new();
        put_varint(&mut list, MAX_PIECES as u64 + 1);
        assert!(parse(&list).is_err());
        let piece = Piece { digest: Digest::of(b""), bytes: PIECE_BYTES as u64 + 1 };
        assert!(parse(&encode(&[piece])).is_err());
    }
}
