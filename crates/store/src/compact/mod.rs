//! Compacting: what was collected quickly is written again, small.
//!
//! All versions of a URL next to each other, URLs in directory order but beside the page that they
//! resemble; or, where that is smaller, all pages of one time next to each other; in frames of a few megabytes that share a prefix made of what most frames of the site
//! contain. A site that brought nothing new is not touched, a frame into which nothing new falls
//! is copied as it is, so the work follows what changed.
//!
//! Whatever grows with the archive is in temporary files; in memory are the bodies of a portion
//! of a site, a frame, and some bytes for each pack.
//!
//! Read in this order: `mod` (which packs, in which order, what is deleted when), `order` (the
//! versions of a site by their addresses), `portion` (as many of them as are looked at together),
//! `arrange` (pages beside their like), `arrangement` (by page or by time, whichever is smaller),
//! `limits` (where a frame ends), `stretch` (which frames stay as they are), `frames` (bodies into frames), `prefix` (what frames
//! share), `slow` (which pictures may take their time), `output` (the packs of the new
//! generation), `work` (how far it has come), `built_upon` (what must not go because it is written
//! meanwhile), `underway` (what is kept and what is deleted if it is interrupted).

mod arrange;
mod arrangement;
mod frames;
mod limits;
mod options;
mod order;
mod output;
mod portion;
mod slow;
mod stretch;
mod work;

use std::collections::{BTreeMap, BTreeSet};

use self::frames::FrameWriter;
pub use self::options::{CompactOptions, CompactReport};
use self::order::Order;
use self::output::Output;
use self::work::Work;
use crate::bodies::{BodiesHead, LIST};
use crate::built_upon::BuiltUpon;
use crate::chunk::ChunkKind;
use crate::digest::BodyKey;
use crate::error::{StoreError, from_backend};
use crate::index::PackRecord;
use crate::media::Class;
use crate::mend::Found;
use crate::pack::{Generation, Location, pack_name};
use crate::packfile::PackFile;
use crate::rows::{self, Row};
use crate::store::Store;
use crate::underway;

/// What a version takes in temporary files.
const ORDER_BYTES: u64 = 600;

/// What one compaction reads and what it must not lose.
struct Sources {
    packs: BTreeSet<u64>,
    generation: u64,
}

impl Store {
    /// Writes what was collected since the last time again, small, and frees space. Reading
    /// and writing go on meanwhile. Sites that an interrupted run finished are not written again.
    /// `progress` is called with steps done and steps in all.
    pub fn compact(
        &self,
        options: &CompactOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<CompactReport, StoreError> {
        let _one_at_a_time =
            self.compacting.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut work = Work::new(progress);
        work.report.bytes_before = self.stats()?.stored_bytes;
        let mut order = Order::new()?;
        let sources = self.choose_sources(options, &order)?;
        if !sources.packs.is_empty() {
            let outcome = self.rewrite(&sources, &mut order, options, &mut work);
            self.writer().built_upon = None;
            outcome?;
            underway::end(&*self.backend)?;
        }
        drop(order);
        self.index().shrink()?;
        work.finish();
        work.report.bytes_after = self.stats()?.stored_bytes;
        Ok(work.report)
    }

    /// Bytes on the disk that compacting may need beside what is there, until it is done. Nothing if
    /// there is nothing to do.
    pub fn space_to_compact(&self, options: &CompactOptions) -> Result<u64, StoreError> {
        let (packs, _) = self.packs_to_compact(options, &mut |_, _| Ok(()))?;
        if packs.is_empty() { Ok(0) } else { self.needed_bytes(&packs) }
    }

    /// Ends the open pack and decides which packs are read: all that were written while
    /// collecting, and the compacted ones of the sites in them. What is forgotten by then is noted
    /// in `order`.
    fn choose_sources(
        &self,
        options: &CompactOptions,
        order: &Order,
    ) -> Result<Sources, StoreError> {
        let mut writer = self.writer();
        writer.check()?;
        self.sync_writer(&mut writer)?;
        if writer.open.is_some() {
            self.end_pack(&mut writer)?;
        }
        let note = &mut |site, id| order.add_forgotten(site, id);
        let (packs, generation) = self.packs_to_compact(options, note)?;
        // From here on the writer notes which stored bodies it builds upon.
        let built_upon = BuiltUpon::new()?;
        writer.held.keys().try_for_each(|key| built_upon.note(*key))?;
        writer.built_upon = Some(built_upon);
        Ok(Sources { packs, generation })
    }

    /// The packs that are to be written again, and the generation that replaces them.
    fn packs_to_compact(
        &self,
        options: &CompactOptions,
        forgotten: &mut dyn FnMut(u32, u64) -> Result<(), StoreError>,
    ) -> Result<(BTreeSet<u64>, u64), StoreError> {
        let index = self.index();
        let packs = index.packs()?;
        let is_new = |pack: &&PackRecord| pack.generation == 0 || options.everything;
        let mut sites = BTreeSet::new();
        let mut chosen = BTreeSet::new();
        for pack in packs.iter().filter(is_new) {
            chosen.insert(pack.number);
            sites.extend(index.sites_in(pack.number)?);
        }
        index.forgotten(&mut |site, id| {
            sites.insert(site);
            forgotten(site, id)
        })?;
        // A pack that is shared with another site draws that site in as well.
        let mut before = usize::MAX;
        while before != chosen.len() {
            before = chosen.len();
            for pack in packs.iter().filter(|pack| pack.generation > 0) {
                let in_pack = index.sites_in(pack.number)?;
                if in_pack.iter().any(|site| sites.contains(site)) {
                    chosen.insert(pack.number);
                    sites.extend(in_pack);
                }
            }
        }
        if !chosen.is_empty() {
            let lengths = self.pack_lengths()?;
            for pack in packs.iter().filter(|pack| pack.generation > 0) {
                let is_empty = index.sites_in(pack.number)?.is_empty();
                if is_empty && self.is_spent(pack.number, &lengths)? {
                    chosen.insert(pack.number);
                }
            }
        }
        let generation = packs.iter().map(|pack| pack.generation).max().unwrap_or(0) + 1;
        Ok((chosen, generation))
    }

    /// Whether a pack only completed an earlier generation, and what that replaced is gone.
    fn is_spent(&self, pack: u64, lengths: &BTreeMap<u64, u64>) -> Result<bool, StoreError> {
        let Some(length) = lengths.get(&pack) else { return Ok(false) };
        let mut is_spent = true;
        PackFile::new(&*self.backend, pack, *length).walk(0, &mut |found| {
            let Found::Chunk(chunk) = found else {
                is_spent &= matches!(found, Found::Mended { .. });
                return Ok(());
            };
            is_spent &= match chunk.kind {
                ChunkKind::PackHead | ChunkKind::Parity | ChunkKind::PackEnd => true,
                ChunkKind::Generation => Generation::parse(&chunk.payload)
                    .is_ok_and(|all| all.replaces.iter().all(|old| !lengths.contains_key(old))),
                _ => false,
            };
            Ok(())
        })?;
        Ok(is_spent)
    }

    fn rewrite(
        &self,
        sources: &Sources,
        order: &mut Order,
        options: &CompactOptions,
        work: &mut Work<'_>,
    ) -> Result<(), StoreError> {
        self.check_room(sources, options)?;
        underway::begin(&*self.backend, sources.generation, &sources.packs)?;
        let mut output = Output::new(self, sources.generation);
        let outcome = self.rewrite_into(&mut output, sources, order, options, work);
        if let Err(error) = &outcome {
            // The error that stopped the work says more than one about tidying up would.
            let _ = self.give_back(matches!(error, StoreError::NoRoom { .. }));
        }
        outcome
    }

    /// The new packs are at most about as large as those that they replace, which stay until all
    /// are written; then the index is written again.
    fn check_room(&self, sources: &Sources, options: &CompactOptions) -> Result<(), StoreError> {
        let Some(free_bytes) = options.room_bytes else { return Ok(()) };
        let needed_bytes = self.needed_bytes(&sources.packs)?;
        match needed_bytes > free_bytes {
            true => Err(StoreError::NoRoomToCompact { needed_bytes, free_bytes }),
            false => Ok(()),
        }
    }

    fn needed_bytes(&self, packs: &BTreeSet<u64>) -> Result<u64, StoreError> {
        let lengths = self.pack_lengths()?;
        let packs_bytes: u64 = packs.iter().filter_map(|pack| lengths.get(pack)).sum();
        let order_bytes = ORDER_BYTES * self.index().count_versions()?;
        Ok(packs_bytes + order_bytes + 2 * self.index_file_bytes())
    }

    /// Deletes what a compaction wrote that cannot be completed: the pack that it had not ended, or
    /// everything if the disk is full. Everything is still where it was taken from, so the index is made
    /// again.
    fn give_back(&self, everything: bool) -> Result<(), StoreError> {
        let mut writer = self.writer();
        if underway::delete_outputs(&*self.backend, everything)? {
            let remade =
                self.sync_writer(&mut writer).and_then(|()| self.remake_index(&mut writer));
            // Without it, only opening the archive again is safe.
            writer.failed |= remade.is_err();
            remade?;
        }
        underway::end(&*self.backend)
    }

    fn rewrite_into<'s>(
        &'s self,
        output: &mut Output<'s>,
        sources: &Sources,
        order: &mut Order,
        options: &CompactOptions,
        work: &mut Work<'_>,
    ) -> Result<(), StoreError> {
        // Each record is read, and each body is written.
        let versions = self.index().count_versions()?;
        work.expect(2 * versions);
        let mut damaged = self.gather(sources, order, work)?;
        work.expect_more(order.count_bodies()?);
        let chosen = slow::choose(self, order, options, work)?;
        for site in order.sites()? {
            for class in [Class::Html, Class::Text, Class::Other] {
                let mut frames =
                    FrameWriter::new(self, options, output, (site, class), work, &chosen);
                damaged.extend(frames.write(order, &sources.packs)?);
            }
            output.end_pack()?;
            work.report.sites += 1;
        }
        let lists = self.find_orphans(sources, order)?;
        damaged.extend(self.carry_orphans(sources, &lists, order, output)?);
        work.report.packs_kept_damaged = damaged.iter().map(|pack| pack_name(*pack)).collect();
        self.replace(sources, &damaged, order, output)
    }

    /// Reads all records of the sources into their new order. Returns packs with damage.
    fn gather(
        &self,
        sources: &Sources,
        order: &mut Order,
        work: &mut Work<'_>,
    ) -> Result<BTreeSet<u64>, StoreError> {
        let mut damaged = BTreeSet::new();
        let lengths = self.pack_lengths()?;
        let collected: BTreeSet<u64> = {
            let packs = self.index().packs()?;
            packs.iter().filter(|pack| pack.generation == 0).map(|pack| pack.number).collect()
        };
        for pack in &sources.packs {
            let Some(length) = lengths.get(pack) else {
                damaged.insert(*pack);
                continue;
            };
            PackFile::new(&*self.backend, *pack, *length).walk(0, &mut |found| {
                let chunk = match found {
                    Found::Chunk(chunk) => chunk,
                    // So that it is whole when it is read from here on.
                    Found::Mended { start, bytes } if self.backend.can_grow() => {
                        return self.write_mended(*pack, start, &bytes);
                    }
                    Found::Mended { .. } | Found::Gap { .. } => {
                        damaged.insert(*pack);
                        return Ok(());
                    }
                };
                if chunk.kind != ChunkKind::Versions {
                    return Ok(());
                }
                let place = Location { pack: *pack, offset: chunk.offset };
                let rows = rows::decode(&chunk.payload)
                    .map_err(|why| crate::pack::damaged("versions chunk", place, why))?;
                for row in rows {
                    if self.index().version(row.id)? == Some(place) {
                        let class = self.class_of(&row)?;
                        order.add(&row, class, collected.contains(pack))?;
                        work.step(1);
                    }
                }
                Ok(())
            })?;
        }
        order.sort()?;
        Ok(damaged)
    }

    fn class_of(&self, row: &Row) -> Result<Class, StoreError> {
        match self.find_body(row.digest.key())? {
            Some(place) => Ok(self.bodies_head(place)?.class),
            None => Ok(Class::Other),
        }
    }

    pub(crate) fn pack_lengths(&self) -> Result<BTreeMap<u64, u64>, StoreError> {
        let listed = self.backend.list().map_err(from_backend)?;
        let number = |(name, length): (String, u64)| {
            crate::pack::pack_number(&name).map(|number| (number, length))
        };
        Ok(listed.into_iter().filter_map(number).collect())
    }

    /// Notes bodies in the sources that no record of the rewritten sites names. Returns bodies that
    /// are lists of pieces; no record names the pieces.
    fn find_orphans(&self, sources: &Sources, order: &Order) -> Result<Vec<BodyKey>, StoreError> {
        let mut lists = Vec::new();
        let lengths = self.pack_lengths()?;
        for pack in &sources.packs {
            let Some(length) = lengths.get(pack) else { continue };
            PackFile::new(&*self.backend, *pack, *length).walk(0, &mut |found| {
                let Found::Chunk(chunk) = found else { return Ok(()) };
                if chunk.kind != ChunkKind::Bodies {
                    return Ok(());
                }
                let place = Location { pack: *pack, offset: chunk.offset };
                let (head, _) = BodiesHead::parse(&chunk.payload)
                    .map_err(|why| crate::pack::damaged("bodies chunk", place, why))?;
                for entry in head.entries {
                    if entry.recoding == LIST {
                        lists.push(entry.key);
                    }
                    if !order.is_placed(entry.key)? {
                        order.add_orphan(entry.key, place)?;
                    }
                }
                Ok(())
            })?;
        }
        Ok(lists)
    }

    /// Orphans that a record elsewhere names, and pieces of what is kept, go along; the space of
    /// the others is freed.
    fn carry_orphans(
        &self,
        sources: &Sources,
        lists: &[BodyKey],
        order: &Order,
        output: &mut Output<'_>,
    ) -> Result<BTreeSet<u64>, StoreError> {
        let mut damaged = BTreeSet::new();
        if !order.has_orphans()? {
            return Ok(damaged);
        }
        self.want_named_elsewhere(sources, order)?;
        self.want_pieces(lists, order)?;
        order.orphans(true, &mut |key, place| {
            output.make_room()?;
            match output.copy_body(key) {
                Ok(()) => order.place(key).map(|_| ()),
                Err(StoreError::Damaged { .. }) => {
                    damaged.insert(place.pack);
                    Ok(())
                }
                Err(other) => Err(other),
            }
        })?;
        output.end_pack()?;
        Ok(damaged)
    }

    /// Notes the pieces of lists that are kept. A list that cannot be read keeps none: its body is
    /// lost, and `verify` names it.
    fn want_pieces(&self, lists: &[BodyKey], order: &Order) -> Result<(), StoreError> {
        for list in lists {
            if !order.is_placed(*list)? && !order.is_wanted(*list)? {
                continue;
            }
            match self.keys_under(*list) {
                Ok(keys) => keys[1..].iter().try_for_each(|piece| order.want_orphan(*piece))?,
                Err(StoreError::Damaged { .. }) => {}
                Err(other) => return Err(other),
            }
        }
        Ok(())
    }

    /// Notes which orphans a record outside the sources names.
    fn want_named_elsewhere(&self, sources: &Sources, order: &Order) -> Result<(), StoreError> {
        let mut next = 0;
        loop {
            let batch = self.index().versions_from(next, 4096)?;
            let Some((last, _)) = batch.last() else { return Ok(()) };
            next = last + 1;
            for (id, place) in batch {
                if sources.packs.contains(&place.pack) {
                    continue;
                }
                match self.digest(crate::VersionId(id)) {
                    Ok(digest) => order.want_orphan(digest.key())?,
                    Err(StoreError::Damaged { .. } | StoreError::NotFound { .. }) => {}
                    Err(other) => return Err(other),
                }
            }
        }
    }

    /// The commit point: the generation is completed, then the index forgets the sources, then
    /// they are deleted. What the writer built upon in the meantime is carried over first.
    fn replace(
        &self,
        sources: &Sources,
        damaged: &BTreeSet<u64>,
        order: &Order,
        output: &mut Output<'_>,
    ) -> Result<(), StoreError> {
        let replaced: Vec<u64> = sources.packs.difference(damaged).copied().collect();
        let mut writer = self.writer();
        writer.check()?;
        if let Some(built_upon) = writer.built_upon.take() {
            built_upon.visit(&mut |key| {
                let is_in_source = |place: Location| sources.packs.contains(&place.pack);
                for key in self.keys_under(key)? {
                    if self.find_body(key)?.is_some_and(is_in_source) && order.place(key)? {
                        output.make_room()?;
                        output.copy_body(key)?;
                    }
                }
                Ok(())
            })?;
        }
        if !damaged.is_empty() {
            // A pack that is kept may still hold records of what was forgotten.
            order.forgotten(|batch| output.put_forgotten(batch))?;
        }
        output.complete(&replaced)?;
        self.index().change(|change| {
            replaced.iter().try_for_each(|pack| change.drop_pack(*pack))?;
            order.orphans(false, &mut |key, place| match damaged.contains(&place.pack) {
                true => Ok(()),
                false => change.drop_body(key, place),
            })?;
            if damaged.is_empty() {
                order.forgotten(|batch| {
                    batch.iter().try_for_each(|(_, id)| change.settle_forgotten(*id))
                })?;
            }
            Ok(())
        })?;
        drop(writer);
        for pack in replaced {
            self.backend.delete(&pack_name(pack)).map_err(from_backend)?;
        }
        Ok(())
    }
}
