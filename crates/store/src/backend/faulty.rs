use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::ContentBackend;
use crate::error::BackendError;

/// Which faults to inject, and when.
#[derive(Clone, Copy, Debug, Default)]
pub struct FaultPlan {
    /// The machine dies in the middle of this write (append, sync, truncate, delete), from 0.
    pub crash_at_write: Option<u64>,
    /// The disk takes this many bytes, then it is full.
    pub room_bytes: Option<u64>,
}

/// Wraps a backend and holds back what is not synced, so that a crash can lose, tear and reorder
/// it as a real disk may.
///
/// Fair faults only: what a sync confirmed is never touched; what was appended since then may
/// vanish, be cut, or stay while earlier bytes vanish (read as zeros); a delete may be undone.
pub struct FaultyBackend {
    inner: Arc<dyn ContentBackend>,
    plan: FaultPlan,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    writes: u64,
    used_bytes: u64,
    has_more_room: bool,
    crashed: bool,
    objects: BTreeMap<String, HeldObject>,
    deleted: Vec<String>,
}

#[derive(Clone, Default)]
struct HeldObject {
    durable_bytes: u64,
    /// What was appended since the last sync, in order; each with its offset.
    appends: Vec<(u64, Vec<u8>)>,
}

impl HeldObject {
    fn length(&self) -> u64 {
        self.appends.last().map_or(self.durable_bytes, |(at, bytes)| at + bytes.len() as u64)
    }

    fn cut(&mut self, length: u64) {
        self.appends.retain(|(at, _)| *at < length);
        if let Some((at, bytes)) = self.appends.last_mut() {
            bytes.truncate((length - *at).min(bytes.len() as u64) as usize);
        }
    }
}

impl FaultyBackend {
    /// Injects `plan` in front of `inner`.
    pub fn new(inner: Arc<dyn ContentBackend>, plan: FaultPlan) -> Self {
        Self { inner, plan, held: Mutex::default() }
    }

    /// How many writes were asked for so far.
    pub fn writes(&self) -> u64 {
        self.held().writes
    }

    /// Somebody freed space: the disk is not full any more.
    pub fn free_space(&self) {
        self.held().has_more_room = true;
    }

    /// Whether the planned crash has happened.
    pub fn has_crashed(&self) -> bool {
        self.held().crashed
    }

    /// The power is gone: of what was not synced, `seed` decides what reached the inner backend.
    /// Afterwards only the inner backend counts.
    pub fn crash(&self, seed: u64) -> Result<(), BackendError> {
        let mut held = self.held();
        held.crashed = true;
        let mut dice = Dice(seed);
        for name in std::mem::take(&mut held.deleted) {
            if dice.roll(2) == 0 {
                self.inner.delete(&name)?;
            }
        }
        for (name, object) in std::mem::take(&mut held.objects) {
            let survivor = survivor(&object, &mut dice);
            if !survivor.is_empty() {
                self.inner.append(&name, object.durable_bytes, &survivor)?;
                self.inner.sync(&name)?;
            }
        }
        Ok(())
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a write; at the planned one the machine dies.
    fn count_write(&self, held: &mut Held, name: &str) -> Result<bool, BackendError> {
        if held.crashed {
            return Err(dead(name));
        }
        let dies = self.plan.crash_at_write == Some(held.writes);
        held.writes += 1;
        held.crashed = dies;
        Ok(dies)
    }

    fn object<'h>(
        &self,
        held: &'h mut Held,
        name: &str,
    ) -> Result<&'h mut HeldObject, BackendError> {
        if !held.objects.contains_key(name) {
            let listed = self.inner.list()?;
            let durable_bytes =
                listed.iter().find(|(n, _)| n == name).map_or(0, |(_, length)| *length);
            held.objects.insert(name.to_owned(), HeldObject { durable_bytes, appends: Vec::new() });
        }
        Ok(held.objects.entry(name.to_owned()).or_default())
    }
}

fn dead(name: &str) -> BackendError {
    BackendError::Io { name: name.to_owned(), source: io::Error::other("the machine crashed") }
}

/// The bytes behind the durable part that the disk happened to keep.
fn survivor(object: &HeldObject, dice: &mut Dice) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (at, append) in &object.appends {
        let kept = match dice.roll(4) {
            0 => 0,
            1 => dice.roll(append.len() as u64 + 1) as usize,
            _ => append.len(),
        };
        if kept == 0 {
            continue;
        }
        let start = (at - object.durable_bytes) as usize;
        bytes.resize(start.max(bytes.len()), 0);
        bytes.truncate(start);
        bytes.extend_from_slice(&append[..kept]);
    }
    bytes
}

/// SplitMix64: enough for dice, and the same everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides.max(1)
    }
}

impl ContentBackend for FaultyBackend {
    fn can_grow(&self) -> bool {
        self.inner.can_grow()
    }

    fn list(&self) -> Result<Vec<(String, u64)>, BackendError> {
        let held = self.held();
        let mut listed: BTreeMap<String, u64> = self.inner.list()?.into_iter().collect();
        listed.retain(|name, _| !held.deleted.contains(name));
        for (name, object) in &held.objects {
            if object.length() > 0 {
                listed.insert(name.clone(), object.length());
            }
        }
        Ok(listed.into_iter().collect())
    }

    fn read(&self, name: &str, offset: u64, length: usize) -> Result<Vec<u8>, BackendError> {
        let mut held = self.held();
        if held.crashed {
            return Err(dead(name));
        }
        if held.deleted.iter().any(|deleted| deleted == name) {
            return Err(BackendError::NotFound { name: name.to_owned() });
        }
        let object = self.object(&mut held, name)?.clone();
        let end = offset.saturating_add(length as u64);
        if object.length() == 0 {
            held.objects.remove(name);
            return Err(BackendError::NotFound { name: name.to_owned() });
        }
        if end > object.length() {
            return Err(BackendError::TooShort { name: name.to_owned(), end });
        }
        let from_inner = object.durable_bytes.saturating_sub(offset).min(length as u64) as usize;
        let mut bytes = match from_inner {
            0 => Vec::new(),
            count => self.inner.read(name, offset, count)?,
        };
        for (at, append) in &object.appends {
            let wanted = offset + bytes.len() as u64;
            if bytes.len() < length && wanted < at + append.len() as u64 {
                let start = (wanted - at) as usize;
                let stop = append.len().min(start + length - bytes.len());
                bytes.extend_from_slice(&append[start..stop]);
            }
        }
        Ok(bytes)
    }

    fn append(&self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), BackendError> {
        let mut held = self.held();
        let dies = self.count_write(&mut held, name)?;
        let room = match self.plan.room_bytes {
            Some(room) if !held.has_more_room => room - held.used_bytes,
            _ => u64::MAX,
        };
        let written = (bytes.len() as u64).min(room);
        held.used_bytes += written;
        if held.deleted.iter().any(|deleted| deleted == name) {
            held.deleted.retain(|deleted| deleted != name);
            self.inner.delete(name)?;
        }
        let object = self.object(&mut held, name)?;
        if offset > object.length() || offset < object.durable_bytes {
            let source = io::Error::other("an append must begin where the object ends");
            return Err(BackendError::Io { name: name.to_owned(), source });
        }
        object.cut(offset);
        object.appends.push((offset, bytes[..written as usize].to_vec()));
        match (dies, written < bytes.len() as u64) {
            (true, _) => Err(dead(name)),
            (false, true) => Err(BackendError::NoRoom { name: name.to_owned() }),
            (false, false) => Ok(()),
        }
    }

    fn overwrite(&self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), BackendError> {
        // What is held back becomes durable as well: an overwritten object was not written for long.
        self.sync(name)?;
        self.inner.overwrite(name, offset, bytes)
    }

    fn sync(&self, name: &str) -> Result<(), BackendError> {
        let mut held = self.held();
        if self.count_write(&mut held, name)? {
            return Err(dead(name));
        }
        let object = self.object(&mut held, name)?;
        for (at, bytes) in std::mem::take(&mut object.appends) {
            object.durable_bytes = at + bytes.len() as u64;
            self.inner.append(name, at, &bytes)?;
        }
        self.inner.sync(name)
    }

    fn truncate(&self, name: &str, length: u64) -> Result<(), BackendError> {
        let mut held = self.held();
        if self.count_write(&mut held, name)? {
            return Err(dead(name));
        }
        let object = self.object(&mut held, name)?;
        object.cut(length);
        if length < object.durable_bytes {
            object.durable_bytes = length;
            self.inner.truncate(name, length)?;
        }
        Ok(())
    }

    fn delete(&self, name: &str) -> Result<(), BackendError> {
        let mut held = self.held();
        if self.count_write(&mut held, name)? {
            return Err(dead(name));
        }
        held.objects.remove(name);
        held.deleted.push(name.to_owned());
        Ok(())
    }
}
