//! Compressing a new body: what it is compared with, and how it goes into its chunk.

use std::borrow::Cow;
use std::sync::PoisonError;

use crate::bodies::{BodiesHead, BodyEntry, Coding, Reference};
use crate::digest::BodyKey;
use crate::effort::Effort;
use crate::error::StoreError;
use crate::media::Class;
use crate::read::MAX_CHAIN;
use crate::recode::{self, Extent, Recoding};
use crate::store::Store;
use crate::{NewVersion, Packing, similar, squeeze};

/// Below this a reference saves nothing, above it costs too much memory.
const MIN_DELTA_BYTES: usize = 64;
pub(crate) const MAX_DELTA_BYTES: usize = 16 << 20;

impl Store {
    /// Compresses a body that is new.
    pub(crate) fn squeeze(
        &self,
        version: &NewVersion<'_>,
        key: BodyKey,
        packing: Packing<'_>,
    ) -> Result<Squeezed, StoreError> {
        let class = Class::judge(version.response_head, version.body);
        let effort = self.effort();
        let body = self.prepare(version, class, effort);
        let base = self.choose_base(version, class, &body.bytes, key, effort)?;
        if self.options.keeps_packed
            && base.is_none()
            && body.recoding.is_none()
            && let Some(packed) = self.as_it_comes(version, class, key, packing)
        {
            return Ok(packed);
        }
        Ok(self.squeeze_against(version, key, body, base, effort))
    }

    /// Compresses a body that is new against no other.
    pub(crate) fn squeeze_alone(&self, version: &NewVersion<'_>, key: BodyKey) -> Squeezed {
        self.squeeze_against(version, key, version.body.into(), None, self.effort())
    }

    fn squeeze_against(
        &self,
        version: &NewVersion<'_>,
        key: BodyKey,
        Prepared { bytes: body, recoding }: Prepared<'_>,
        base: Option<Base>,
        effort: Effort,
    ) -> Squeezed {
        let class = Class::judge(version.response_head, version.body);
        let (reference, depth, base) = match base {
            Some(base) => (Reference::Body(base.key), base.depth + 1, base.bytes),
            None => (Reference::Nothing, 0, Vec::new()),
        };
        let level = effort.level(&self.options, version.previous.is_none());
        let squeezed = squeeze::compress(&body, level, &base);
        let (coding, data, reference, depth) = match squeezed.len() < body.len() {
            true => (Coding::Zstd, &squeezed[..], reference, depth),
            false => (Coding::Plain, &body[..], Reference::Nothing, 0),
        };
        let entries = vec![BodyEntry {
            key,
            body_bytes: version.body.len() as u64,
            recoding: recoding.map_or(0, |recoding| recoding as u8),
            stored_bytes: body.len() as u64,
        }];
        let head = BodiesHead { group: version.group, class, coding, reference, depth, entries };
        Squeezed::new(head, &[data])
    }

    /// A body in the form in which it came, if that is worth keeping.
    fn as_it_comes(
        &self,
        version: &NewVersion<'_>,
        class: Class,
        key: BodyKey,
        packing: Packing<'_>,
    ) -> Option<Squeezed> {
        let body_bytes = version.body.len();
        let (coding, around) = match &packing {
            Packing::Unknown => return None,
            Packing::Dense => (Coding::Plain, Vec::new()),
            Packing::Deflated(deflated) if deflated.is_worth_keeping(body_bytes) => {
                (Coding::Deflate, deflated.around())
            }
            Packing::Deflated(_) => return None,
        };
        let data = match packing {
            Packing::Deflated(deflated) => deflated.data,
            _ => version.body,
        };
        let stored_bytes = body_bytes as u64;
        let entries = vec![BodyEntry { key, body_bytes: stored_bytes, recoding: 0, stored_bytes }];
        let (reference, depth) = (Reference::Nothing, 0);
        let head = BodiesHead { group: version.group, class, coding, reference, depth, entries };
        Some(Squeezed::new(head, &[&around, data]))
    }

    /// A gzipped page is taken apart, so that it can be compared with other pages, and a GIF is
    /// coded again, which is quick; other pictures wait for `compact`, and gzipped pages too where
    /// what comes compressed is kept so. In a hurry a gzipped page is taken apart only if there is a
    /// version to compare it with.
    fn prepare<'b>(&self, version: &NewVersion<'b>, class: Class, effort: Effort) -> Prepared<'b> {
        let body = version.body;
        let recoded = Recoding::for_body(body).and_then(|recoding| {
            let wanted = match recoding {
                Recoding::Gzip => {
                    let is_worth_it = effort > Effort::Quick || version.previous.is_some();
                    class != Class::Other && !self.options.keeps_packed && is_worth_it
                }
                Recoding::Gif => {
                    let wanted = self.options.recode_gifs && effort > Effort::Quick;
                    wanted && recode::is_gif_to_put(body.len())
                }
                _ => false,
            };
            let cap = self.options.recode_cap;
            let recoded = wanted.then(|| recode::recode(body, recoding, Extent::Whole, cap))??;
            let smaller = recoding == Recoding::Gzip || recoded.is_worth_it(body);
            smaller.then_some(Prepared { bytes: recoded.bytes.into(), recoding: Some(recoding) })
        });
        recoded.unwrap_or_else(|| body.into())
    }

    /// What the new body is compressed against: the page's last version, or else the page of the
    /// site that resembles it most.
    fn choose_base(
        &self,
        version: &NewVersion<'_>,
        class: Class,
        body: &[u8],
        key: BodyKey,
        effort: Effort,
    ) -> Result<Option<Base>, StoreError> {
        let steps = self.options.steps;
        if class == Class::Other || !(MIN_DELTA_BYTES..=MAX_DELTA_BYTES).contains(&body.len()) {
            return Ok(None);
        }
        let mut base = None;
        if steps.block_in_time
            && let Some(previous) = version.previous
            && let Some(digest) = readable(self.digest(previous))?
        {
            base = self.base(digest.key(), self.options.max_chain)?;
        }
        if steps.block_in_space && effort > Effort::Quick {
            let sketch = similar::sketch(body);
            let found = {
                let mut similar = self.similar.lock().unwrap_or_else(PoisonError::into_inner);
                let wanted = base.is_none();
                let found = wanted.then(|| similar.find(version.group, &sketch)).flatten();
                similar.remember(version.group, &sketch, key);
                found
            };
            if let Some(found) = found {
                base = self.base(found, self.options.max_chain_in_space)?;
            }
        }
        Ok(base)
    }

    /// A stored body as a reference. If that would make the chain too long, the body that its chain
    /// began with: that is less alike, but far more than nothing.
    fn base(&self, key: BodyKey, max_depth: u8) -> Result<Option<Base>, StoreError> {
        // The head of its chunk says so at once; decoding a long chain for nothing costs more than this check.
        let depth_of = |key| -> Result<Option<u8>, StoreError> {
            let Some(place) = self.find_body(key)? else { return Ok(None) };
            Ok(readable(self.bodies_head(place))?.map(|head| head.depth))
        };
        let is_free = |depth: Option<u8>| depth.is_some_and(|depth| depth < max_depth);
        let key = if is_free(depth_of(key)?) { key } else { self.chain_begin(key)? };
        let Some(stored) = readable(self.stored(key))? else { return Ok(None) };
        let usable = stored.depth < max_depth
            && stored.class != Class::Other
            && stored.bytes.len() <= MAX_DELTA_BYTES;
        let (depth, bytes) = (stored.depth, stored.bytes);
        Ok(usable.then_some(Base { key, depth, bytes }))
    }

    /// The body that was compressed against no other, at the beginning of those that lead to this one.
    fn chain_begin(&self, key: BodyKey) -> Result<BodyKey, StoreError> {
        let mut first = key;
        for _ in 0..MAX_CHAIN {
            let Some(place) = self.find_body(first)? else { break };
            match readable(self.bodies_head(place))?.map(|head| head.reference) {
                Some(Reference::Body(base)) => first = base,
                _ => break,
            }
        }
        Ok(first)
    }
}

/// A body that was compressed and is not written yet.
pub(crate) struct Squeezed {
    pub(crate) head: BodiesHead,
    pub(crate) payload: Vec<u8>,
}

impl Squeezed {
    pub(crate) fn new(head: BodiesHead, data: &[&[u8]]) -> Self {
        let data_bytes = data.iter().map(|part| part.len()).sum::<usize>();
        let mut payload = Vec::with_capacity(head.max_bytes() + data_bytes);
        head.put(&mut payload);
        data.iter().for_each(|part| payload.extend_from_slice(part));
        Self { head, payload }
    }

    /// A single body in its stored form, not compressed.
    pub(crate) fn plain(group: u32, entry: BodyEntry, data: &[u8]) -> Self {
        let (class, coding, reference) = (Class::Other, Coding::Plain, Reference::Nothing);
        let entries = vec![entry];
        Self::new(BodiesHead { group, class, coding, reference, depth: 0, entries }, &[data])
    }
}

/// A body as it goes into its chunk.
struct Prepared<'b> {
    bytes: Cow<'b, [u8]>,
    recoding: Option<Recoding>,
}

impl<'b> From<&'b [u8]> for Prepared<'b> {
    fn from(body: &'b [u8]) -> Self {
        Self { bytes: body.into(), recoding: None }
    }
}

/// A body to compress against.
struct Base {
    key: BodyKey,
    depth: u8,
    bytes: Vec<u8>,
}

/// Damage in an old version must not stop a new one.
fn readable<T>(outcome: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(StoreError::Damaged { .. } | StoreError::NotFound { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}
