//! Bodies of a site into frames, portion by portion.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::arrange::{Page, arrange, in_frames_order};
use super::arrangement;
use super::limits::{Arrangement, Limits};
use super::options::CompactOptions;
use super::order::Order;
use super::output::Output;
use super::portion::{Item, Seen};
use super::slow::{self, Chosen};
use super::stretch::{Stretch, join_small};
use super::work::Work;
use crate::bodies::{BodiesHead, BodyEntry, Coding, Reference};
use crate::chunk::ChunkKind;
use crate::digest::BodyKey;
use crate::error::StoreError;
use crate::media::Class;
use crate::mend::read_chunk;
use crate::pack::Location;
use crate::rows::Row;
use crate::store::Store;
use crate::{Digest, prefix, squeeze};

/// Records in one chunk: it is decoded as a whole to read one of them.
const ROWS_IN_CHUNK: usize = 256;
/// The same in bytes of memory.
const MAX_ROWS_BYTES: usize = 1 << 20;
/// Frames that refer to one copy of a prefix: whatever damages it costs these and no more.
const FRAMES_PER_PREFIX: usize = 64;

pub(super) struct FrameWriter<'a, 's, 'p> {
    store: &'s Store,
    options: &'a CompactOptions,
    output: &'a mut Output<'s>,
    site: u32,
    class: Class,
    work: &'a mut Work<'p>,
    /// Pictures of which was chosen how much is recoded.
    chosen: &'a Chosen,
    /// Sources that were compacted before.
    frames_in: BTreeSet<u64>,
    /// The prefix of new frames, where it is (pack and offset), and how many frames refer to it.
    prefix: Arc<Vec<u8>>,
    prefix_at: Option<(u64, u64, usize)>,
    /// Where prefixes of copied frames are now, by where they were, and how many frames refer to them.
    copied_prefixes: BTreeMap<Location, (u64, usize)>,
    /// The first body of each page, or of each time: a frame rather ends in front of one than behind it.
    group_begins: BTreeSet<Digest>,
    arrangement: Arrangement,
    frame: Frame,
}

#[derive(Default)]
struct Frame {
    raw: Vec<u8>,
    entries: Vec<BodyEntry>,
}

impl<'a, 's, 'p> FrameWriter<'a, 's, 'p> {
    pub(super) fn new(
        store: &'s Store,
        options: &'a CompactOptions,
        output: &'a mut Output<'s>,
        (site, class): (u32, Class),
        work: &'a mut Work<'p>,
        chosen: &'a Chosen,
    ) -> Self {
        Self {
            store,
            options,
            output,
            site,
            class,
            work,
            chosen,
            frames_in: BTreeSet::new(),
            prefix: Arc::default(),
            prefix_at: None,
            copied_prefixes: BTreeMap::new(),
            group_begins: BTreeSet::new(),
            arrangement: Arrangement::ByPage,
            frame: Frame::default(),
        }
    }

    /// Writes all bodies of the site and class. Returns packs that hold unreadable ones.
    pub(super) fn write(
        &mut self,
        order: &mut Order,
        sources: &BTreeSet<u64>,
    ) -> Result<BTreeSet<u64>, StoreError> {
        let mut damaged = BTreeSet::new();
        let packs = self.store.index().packs()?;
        let compacted = packs.iter().filter(|pack| pack.generation > 0).map(|pack| pack.number);
        self.frames_in = compacted.filter(|pack| sources.contains(pack)).collect();
        let mut last = None;
        let max_versions = self.options.portion_versions;
        while let Some(portion) =
            order.portion(self.site, self.class, last.as_ref(), max_versions)?
        {
            // In front of the bodies: what is left of a pack that was cut short can be read.
            self.write_rows(order, last.as_ref(), &portion.last)?;
            last = Some(portion.last);
            self.write_portion(&portion.pages, order, sources, &mut damaged)?;
        }
        Ok(damaged)
    }

    /// Writes the records behind `behind` up to `last` in their new order.
    fn write_rows(
        &mut self,
        order: &Order,
        behind: Option<&Item>,
        last: &Item,
    ) -> Result<(), StoreError> {
        let mut batch: Vec<Row> = Vec::new();
        let mut weight_bytes = 0;
        order.rows(self.site, self.class, behind, last, &mut |row| {
            weight_bytes += row.weight_bytes();
            batch.push(row);
            if batch.len() >= ROWS_IN_CHUNK || weight_bytes > MAX_ROWS_BYTES {
                weight_bytes = 0;
                self.put_rows(&std::mem::take(&mut batch))?;
            }
            Ok(())
        })?;
        if batch.is_empty() { Ok(()) } else { self.put_rows(&batch) }
    }

    fn put_rows(&mut self, rows: &[Row]) -> Result<(), StoreError> {
        self.make_room()?;
        self.output.put_rows(rows, self.options.level)
    }

    fn write_portion(
        &mut self,
        pages: &[Vec<Seen>],
        order: &mut Order,
        sources: &BTreeSet<u64>,
        damaged: &mut BTreeSet<u64>,
    ) -> Result<(), StoreError> {
        self.group_begins.clear();
        let stretches = self.stretches(pages, order, sources)?;
        self.choose_prefix(&stretches)?;
        for stretch in stretches {
            match stretch {
                Stretch::Whole(place, _, digests) => {
                    self.flush()?;
                    match self.copy_frame(place) {
                        Err(StoreError::Damaged { .. }) => self.pack(&digests, damaged)?,
                        Err(other) => return Err(other),
                        Ok(()) => self.work.step(digests.len() as u64),
                    }
                }
                Stretch::Loose(_, digests) => self.pack(&digests, damaged)?,
            }
        }
        self.flush()
    }

    /// The bodies in order, those together that are together already.
    fn stretches(
        &mut self,
        pages: &[Vec<Seen>],
        order: &mut Order,
        sources: &BTreeSet<u64>,
    ) -> Result<Vec<Stretch>, StoreError> {
        let mut runs: Vec<(Location, Vec<Digest>)> = Vec::new();
        for page in self.arranged(pages, order)? {
            let mut begins_group = true;
            for digest in page.bodies {
                if !order.place(digest.key())? {
                    continue;
                }
                if std::mem::take(&mut begins_group) {
                    self.group_begins.insert(digest);
                }
                let Some(place) = self.store.find_body(digest.key())? else { continue };
                if !sources.contains(&place.pack) {
                    continue;
                }
                match runs.last_mut() {
                    Some((last, digests)) if *last == place => digests.push(digest),
                    _ => runs.push((place, vec![digest])),
                }
            }
        }
        let mut stretches = Vec::new();
        for (place, digests) in runs {
            let head = self.store.bodies_head(place)?;
            let bytes = head.raw_bytes();
            let same =
                head.entries.iter().map(|entry| entry.key).eq(digests.iter().map(Digest::key));
            let is_frame = !matches!(head.reference, Reference::Body(_))
                && self.frames_in.contains(&place.pack);
            stretches.push(match same && is_frame && !self.options.everything {
                true => Stretch::Whole(place, bytes, digests),
                false => Stretch::Loose(bytes.min(self.loose_bytes(&head, &digests)), digests),
            });
        }
        Ok(join_small(stretches, &|bytes, bodies| self.limits().is_small(bytes, bodies)))
    }

    /// The groups of bodies in the order in which frames take them: pages with their versions, or
    /// what was seen at the same time, whichever takes less.
    fn arranged(&mut self, pages: &[Vec<Seen>], order: &Order) -> Result<Vec<Page>, StoreError> {
        self.arrangement = Arrangement::ByPage;
        if self.class != Class::Html {
            return self.where_they_are(arrangement::by_page(pages), order);
        }
        let known = self.known_arrangement(pages, order)?;
        if known != Some(Arrangement::ByTime) {
            let by_page = self.where_they_are(arrangement::by_page(pages), order)?;
            let by_page = arrange(by_page, &|digest| self.readable(digest))?;
            if known.is_some() || !self.is_smaller_by_time(&by_page, pages)? {
                return Ok(by_page);
            }
        }
        self.arrangement = Arrangement::ByTime;
        let by_time = self.where_they_are(arrangement::by_time(pages), order)?;
        let nothing_to_follow = vec![None; by_time.len()];
        Ok(in_frames_order(by_time, &nothing_to_follow))
    }

    /// How the bodies that are in frames are arranged; none if that is not known, or if everything
    /// is written again.
    fn known_arrangement(
        &self,
        pages: &[Vec<Seen>],
        order: &Order,
    ) -> Result<Option<Arrangement>, StoreError> {
        let mut votes = arrangement::Votes::default();
        if self.options.everything || self.frames_in.is_empty() {
            return Ok(None);
        }
        for page in pages.iter().filter(|page| page.len() > 1) {
            let mut places = Vec::new();
            for seen in page {
                let key = seen.digest.key();
                let Some(place) = self.store.find_body(key)? else { continue };
                if !self.frames_in.contains(&place.pack) || order.is_placed(key)? {
                    continue;
                }
                let head = self.store.bodies_head(place)?;
                let at = head.entries.iter().position(|entry| entry.key == key);
                places.extend(at.map(|at| (place, at)));
            }
            votes.add(&places);
            if votes.are_enough() {
                break;
            }
        }
        Ok(votes.most())
    }

    /// Tries both arrangements on a part of the pages.
    fn is_smaller_by_time(
        &self,
        by_page: &[Page],
        pages: &[Vec<Seen>],
    ) -> Result<bool, StoreError> {
        let lengths = |digest: &Digest| {
            let Some(place) = self.store.find_body(digest.key())? else { return Ok(0) };
            Ok(self.loose_bytes(&self.store.bodies_head(place)?, std::slice::from_ref(digest)))
        };
        let sample = arrangement::sample(by_page, pages, &lengths)?;
        arrangement::is_smaller_by_time(&sample, self.options, &|digest| self.readable(digest))
    }

    fn limits(&self) -> Limits {
        Limits::new(self.options, self.class, self.arrangement)
    }

    /// A page is where the first body is that only this page has: one that others have too
    /// may be with them.
    fn where_they_are(
        &self,
        pages: Vec<Vec<Digest>>,
        order: &Order,
    ) -> Result<Vec<Page>, StoreError> {
        if self.options.everything || self.frames_in.is_empty() {
            return Ok(pages.into_iter().map(|bodies| Page { bodies, is_at: None }).collect());
        }
        let mut pages_with: BTreeMap<Digest, u32> = BTreeMap::new();
        for bodies in &pages {
            let own: BTreeSet<&Digest> = bodies.iter().collect();
            own.into_iter().for_each(|digest| *pages_with.entry(*digest).or_default() += 1);
        }
        let mut frame: Option<(Location, BTreeMap<BodyKey, u64>)> = None;
        let mut found = Vec::with_capacity(pages.len());
        for bodies in pages {
            let mut is_at = None;
            for digest in &bodies {
                let Some(place) = self.store.find_body(digest.key())? else { continue };
                // What another portion or site has taken is with that one.
                if !self.frames_in.contains(&place.pack) || order.is_placed(digest.key())? {
                    continue;
                }
                if frame.as_ref().is_none_or(|(of, _)| *of != place) {
                    frame = Some((place, starts(&self.store.bodies_head(place)?)));
                }
                let start =
                    frame.as_ref().and_then(|(_, starts)| starts.get(&digest.key()).copied());
                let alone = pages_with.get(digest) == Some(&1);
                if alone || is_at.is_none() {
                    is_at = Some((place.pack, place.offset, start.unwrap_or(0)));
                }
                if alone {
                    break;
                }
            }
            found.push(Page { bodies, is_at });
        }
        Ok(found)
    }

    /// A body as it is stored, unless it is damaged.
    fn readable(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        match self.store.stored(digest.key()) {
            Ok(stored) => Ok(Some(stored.bytes)),
            Err(StoreError::Damaged { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    fn loose_bytes(&self, head: &BodiesHead, digests: &[Digest]) -> u64 {
        let length =
            |digest: &Digest| head.find(digest.key()).map_or(0, |(_, entry)| entry.stored_bytes);
        digests.iter().map(length).sum()
    }

    /// New frames go on with the prefix that the site has; a site without one gets one.
    fn choose_prefix(&mut self, stretches: &[Stretch]) -> Result<(), StoreError> {
        if self.class == Class::Other || self.options.prefix_bytes == 0 {
            return Ok(());
        }
        (self.prefix, self.prefix_at) = (Arc::default(), None);
        let whole = stretches.iter().find_map(|stretch| match stretch {
            Stretch::Whole(place, ..) => Some(*place),
            Stretch::Loose(..) => None,
        });
        if let Some(place) = whole {
            if let Reference::Chunk(offset) = self.store.bodies_head(place)?.reference {
                let old = Location { pack: place.pack, offset };
                let prefix = self.store.prefix_at(old)?;
                let offset = self.copy_prefix(old)?;
                self.prefix = prefix;
                self.prefix_at = Some((self.output.pack()?, offset, 0));
            }
            return Ok(());
        }
        let (shown, raw_bytes) = self.shown_to_prefix(stretches);
        let frames = (raw_bytes / self.limits().frame_bytes()) as usize;
        let limit_bytes = self.limits().prefix_bytes(shown.len(), raw_bytes);
        let read = |digest: &Digest| self.readable(digest);
        let prefix = prefix::choose(&shown, frames, limit_bytes, &read)?;
        self.prefix = Arc::new(prefix);
        Ok(())
    }

    /// What the prefix is chosen from: the last body of each page, or all if they are arranged by time;
    /// and the bytes of all bodies.
    fn shown_to_prefix(&self, stretches: &[Stretch]) -> (Vec<Digest>, u64) {
        let mut shown: Vec<Digest> = Vec::new();
        let mut raw_bytes = 0;
        for stretch in stretches {
            let (Stretch::Loose(bytes, digests) | Stretch::Whole(_, bytes, digests)) = stretch;
            raw_bytes += bytes;
            for digest in digests {
                let by_page = self.arrangement == Arrangement::ByPage;
                if by_page && !self.group_begins.contains(digest) {
                    shown.pop();
                }
                shown.push(*digest);
            }
        }
        (shown, raw_bytes)
    }

    fn pack(&mut self, digests: &[Digest], damaged: &mut BTreeSet<u64>) -> Result<(), StoreError> {
        for digest in digests {
            self.work.step(1);
            match self.store.stored(digest.key()) {
                Ok(stored) => self.add(digest, stored)?,
                Err(StoreError::Damaged { .. }) => {
                    damaged.extend(self.store.find_body(digest.key())?.map(|place| place.pack));
                }
                Err(other) => return Err(other),
            }
        }
        Ok(())
    }

    fn add(&mut self, digest: &Digest, stored: crate::decoded::Stored) -> Result<(), StoreError> {
        let (mut entry, mut bytes) = (stored.entry, stored.bytes);
        if entry.recoding == 0
            && let Some(recoded) = slow::recode(self.chosen, self.options, digest, &bytes)
        {
            self.work.report.recoded += 1;
            self.work.report.slow += u64::from(recoded.is_slow());
            entry.recoding = recoded.recoding as u8;
            entry.stored_bytes = recoded.bytes.len() as u64;
            bytes = recoded.bytes;
        }
        let begins = self.group_begins.contains(digest);
        let filled = (self.frame.raw.len(), self.frame.entries.len());
        if self.limits().is_full(filled, bytes.len(), begins) {
            self.flush()?;
        }
        self.frame.raw.extend_from_slice(&bytes);
        self.frame.entries.push(entry);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        let frame = std::mem::take(&mut self.frame);
        if frame.entries.is_empty() {
            return Ok(());
        }
        self.make_room()?;
        let reference = self.place_prefix()?;
        // Sites by time are few, and what they share is far apart.
        let squeeze = match self.arrangement {
            Arrangement::ByPage => squeeze::compress,
            Arrangement::ByTime => squeeze::compress_longest,
        };
        let squeezed = squeeze(&frame.raw, self.options.level, &self.prefix);
        let (coding, data) = match squeezed.len() < frame.raw.len() {
            true => (Coding::Zstd, &squeezed),
            false => (Coding::Plain, &frame.raw),
        };
        self.work.report.frames_written += 1;
        self.work.report.compressed_bytes += frame.raw.len() as u64;
        let depth = u8::from(reference != Reference::Nothing);
        let head = BodiesHead {
            group: self.site,
            class: self.class,
            coding,
            reference,
            depth,
            entries: frame.entries,
        };
        self.output.put_bodies(&head, data)
    }

    /// Begins a new pack when the old one is full.
    fn make_room(&mut self) -> Result<(), StoreError> {
        if self.output.make_room()? {
            self.copied_prefixes.clear();
            self.prefix_at = None;
        }
        Ok(())
    }

    /// Writes the prefix in front of the first frame that needs it, and again for later ones.
    fn place_prefix(&mut self) -> Result<Reference, StoreError> {
        if self.prefix.is_empty() {
            return Ok(Reference::Nothing);
        }
        let pack = self.output.pack()?;
        let (offset, frames) = match self.prefix_at {
            Some((at, offset, frames)) if at == pack && frames < FRAMES_PER_PREFIX => {
                (offset, frames)
            }
            _ => {
                let payload = prefix::encode(&self.prefix, self.options.level);
                (self.output.put_prefix(self.site, &payload)?, 0)
            }
        };
        self.prefix_at = Some((pack, offset, frames + 1));
        Ok(Reference::Chunk(offset))
    }

    fn copy_frame(&mut self, place: Location) -> Result<(), StoreError> {
        self.make_room()?;
        let payload = read_chunk(&*self.store.backend, place, &[ChunkKind::Bodies])?;
        let (mut head, data) = BodiesHead::parse(&payload)
            .map_err(|why| crate::pack::damaged("bodies chunk", place, why))?;
        if let Reference::Chunk(offset) = head.reference {
            let old = Location { pack: place.pack, offset };
            head.reference = Reference::Chunk(self.copy_prefix(old)?);
        }
        self.work.report.frames_copied += 1;
        self.output.put_bodies(&head, data)
    }

    fn copy_prefix(&mut self, old: Location) -> Result<u64, StoreError> {
        if let Some((offset, frames)) = self.copied_prefixes.get_mut(&old)
            && *frames < FRAMES_PER_PREFIX
        {
            *frames += 1;
            return Ok(*offset);
        }
        let payload = read_chunk(&*self.store.backend, old, &[ChunkKind::Prefix])?;
        let offset = self.output.put_prefix(self.site, &payload)?;
        self.copied_prefixes.insert(old, (offset, 1));
        Ok(offset)
    }
}

/// Where each body begins in the frame.
fn starts(head: &BodiesHead) -> BTreeMap<BodyKey, u64> {
    let mut start = 0;
    let entry = |entry: &BodyEntry| {
        start += entry.stored_bytes;
        (entry.key, start - entry.stored_bytes)
    };
    head.entries.iter().map(entry).collect()
}
