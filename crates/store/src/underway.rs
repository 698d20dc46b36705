//! A compaction that is under way is noted beside the packs, so that the pack that it was writing
//! can be deleted if it is interrupted: until it is complete, everything is still where it was
//! taken from. Packs that it had ended stay: the next compaction copies what is in them.

use std::collections::BTreeSet;

use crate::backend::ContentBackend;
use crate::chunk::{CHUNK_HEAD_BYTES, ChunkHead, ChunkKind, seal_chunk};
use crate::directory::Content;
use crate::error::{StoreError, from_backend};
use crate::listing;
use crate::pack::{Generation, PackHead, pack_number};
use crate::packfile::PackFile;

/// The object with the note: a chunk like one that completes a generation.
pub(crate) const NOTE: &str = "compacting";
const NOTE_BYTES_MAX: u64 = 16 << 20;

/// Notes that a generation will replace these packs.
pub(crate) fn begin(
    backend: &dyn ContentBackend,
    generation: u64,
    sources: &BTreeSet<u64>,
) -> Result<(), StoreError> {
    let replaces = sources.iter().copied().collect();
    let note = Generation { packs: vec![generation], replaces }.encode();
    let note = seal_chunk(ChunkKind::Generation, 0, 0, &note);
    backend.append(NOTE, 0, &note).and_then(|()| backend.sync(NOTE)).map_err(from_backend)
}

/// Nothing is under way any more.
pub(crate) fn end(backend: &dyn ContentBackend) -> Result<(), StoreError> {
    backend.delete(NOTE).map_err(from_backend)
}

/// Deletes what an interrupted compaction wrote: the pack that it had not ended, or `everything`.
/// Returns whether the index must be made again before [`end`].
pub(crate) fn delete_outputs(
    backend: &dyn ContentBackend,
    everything: bool,
) -> Result<bool, StoreError> {
    let objects = backend.list().map_err(from_backend)?;
    let Some((_, note_bytes)) = objects.iter().find(|(name, _)| name == NOTE) else {
        return Ok(false);
    };
    let Some((generation, mut missing)) = read(backend, *note_bytes)? else {
        end(backend)?;
        return Ok(false);
    };
    let mut outputs = Vec::new();
    for (name, length) in &objects {
        let Some(number) = pack_number(name) else { continue };
        if missing.remove(&number) {
            continue;
        }
        let pack = PackFile::new(backend, number, *length);
        let head =
            pack.chunk_or_mended(0)?.and_then(|head| PackHead::parse(&head.payload, name).ok());
        if head.is_none_or(|head| head.generation != generation) {
            continue;
        }
        let listed = listing::read(&pack)?;
        let has_ended = listed.is_some();
        let chunks = listed.unwrap_or_default();
        if chunks.iter().any(|chunk| matches!(chunk.content, Content::Generation(_))) {
            // It is complete: what it replaces is deleted when the packs are looked through.
            end(backend)?;
            return Ok(false);
        }
        if everything || !has_ended {
            outputs.push(name);
        }
    }
    if !missing.is_empty() {
        // What is left of it may be all that there is.
        end(backend)?;
        return Ok(false);
    }
    outputs.into_iter().try_for_each(|name| backend.delete(name)).map_err(from_backend)?;
    if !everything {
        // The index learns of a pack when it has ended, so it knows nothing of what was deleted.
        end(backend)?;
    }
    Ok(everything)
}

/// Which generation is being written, and which packs it replaces. None if the note is not whole.
fn read(
    backend: &dyn ContentBackend,
    bytes: u64,
) -> Result<Option<(u64, BTreeSet<u64>)>, StoreError> {
    if bytes > NOTE_BYTES_MAX {
        return Ok(None);
    }
    let note = backend.read(NOTE, 0, bytes as usize).map_err(from_backend)?;
    let parse = || {
        let (head, payload) = note.split_at_checked(CHUNK_HEAD_BYTES)?;
        let head = ChunkHead::parse(head).ok().filter(|head| head.fits(0, 0, payload))?;
        let is_note = head.kind == ChunkKind::Generation;
        let Generation { packs, replaces } = Generation::parse(payload).ok().filter(|_| is_note)?;
        Some((*packs.first()?, replaces.into_iter().collect()))
    };
    Ok(parse())
}
