//! A long file is read by several threads, each a stretch of it at a time; its records still come
//! in order.
//!
//! Where a stretch begins is a guess: a body may contain what looks like a gzip member with a
//! record. The guess is used only if the stretch before ends there. Otherwise what was read of it
//! is thrown away, and read again from the right offset.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError, mpsc},
};

use nenrin_warc::{Record, RecordReader, WarcError};

use super::{
    capture::Examined,
    memory::{LaneIn, LaneOut, MemoryBudget, lane},
    source::{Part, Source},
    spawn,
};

/// How much of a file one thread reads at a time.
pub(crate) const STRETCH_BYTES: u64 = 2 << 20;
/// Records that go to another thread together, and their size in bytes.
const TOGETHER: usize = 32;
const TOGETHER_BYTES: u64 = 512 << 10;

/// Where a record was found, or damage.
pub(crate) type Read = Result<Examined, WarcError>;

/// A part of a file: the records that begin in it.
#[derive(Clone, Copy)]
struct Stretch {
    from: u64,
    to: u64,
    /// A record is known to begin at `from`.
    is_exact: bool,
}

/// Messages about a stretch, in this order.
enum Piece {
    /// Where its first record seems to begin, if there is one.
    Begins(Option<u64>),
    Records(Vec<Read>),
    /// Where the first record behind it begins.
    Ends(u64),
}

/// How a file is read.
pub(crate) struct Reading<'a> {
    pub(crate) source: &'a Source,
    /// Buffers come from here.
    pub(crate) memory: &'a MemoryBudget,
    /// How many may read at a time.
    pub(crate) threads: usize,
    /// How much one of them reads at a time.
    pub(crate) stretch_bytes: u64,
    pub(crate) is_trusting: bool,
}

impl Reading<'_> {
    /// Hands on every record of a file that was opened, in order. None once no more is wanted.
    pub(crate) fn all(
        &self,
        mut reader: RecordReader<Part>,
        take: &mut dyn FnMut(Read) -> Option<()>,
    ) -> Option<()> {
        let from = match reader.next_offset() {
            Ok(offset) => offset,
            Err(error) => return take(Err(error)),
        };
        let is_long = self.source.bytes > 2 * self.stretch_bytes;
        if is_long && self.threads > 1 && reader.has_gzip_members() {
            return self.by_several(reader, from, take);
        }
        let all = Stretch { from, to: u64::MAX, is_exact: true };
        // The storing threads check the captures: there are several of them.
        self.stretch(&mut reader, all, &Examined::later, &mut |piece| match piece {
            Piece::Records(records) => records.into_iter().try_for_each(&mut *take),
            Piece::Begins(_) | Piece::Ends(_) => Some(()),
        })
    }

    fn by_several(
        &self,
        mut own: RecordReader<Part>,
        first: u64,
        take: &mut dyn FnMut(Read) -> Option<()>,
    ) -> Option<()> {
        std::thread::scope(|scope| {
            let (jobs, waiting) = mpsc::channel();
            let waiting = std::sync::Arc::new(Mutex::new(waiting));
            for _ in 0..self.threads {
                let waiting = waiting.clone();
                spawn(scope, "warc read", move || self.work(&waiting));
            }
            drop(waiting);
            let mut stretches = self.stretches(first);
            let stretches_ahead = 2 * self.threads;
            let mut ahead: VecDeque<(Stretch, LaneOut<Piece>)> = VecDeque::new();
            let mut next = first;
            loop {
                while ahead.len() < stretches_ahead
                    && let Some(stretch) = stretches.next()
                {
                    let (into, out) = lane(self.memory.ahead_bytes / stretches_ahead as u64);
                    // If nobody works any more, the lane ends at once and is read here.
                    let _unheard = jobs.send((stretch, into));
                    ahead.push_back((stretch, out));
                }
                let Some((stretch, lane)) = ahead.pop_front() else { return Some(()) };
                if next < stretch.to {
                    next = self.in_turn(&mut own, Stretch { from: next, ..stretch }, lane, take)?;
                }
            }
        })
    }

    /// The parts of the file, in order.
    fn stretches(&self, first: u64) -> impl Iterator<Item = Stretch> {
        let (bytes, stretch_bytes, mut from) = (self.source.bytes, self.stretch_bytes, Some(first));
        std::iter::from_fn(move || {
            let begin = from?;
            let to = begin.saturating_add(stretch_bytes);
            from = (to < bytes).then_some(to);
            let to = if from.is_some() { to } else { u64::MAX };
            Some(Stretch { from: begin, to, is_exact: begin == first })
        })
    }

    /// Passes on the records of a stretch, beginning at a known record, and returns where the first
    /// record after it begins. `None` once no more is wanted.
    fn in_turn(
        &self,
        own: &mut RecordReader<Part>,
        stretch: Stretch,
        lane: LaneOut<Piece>,
        take: &mut dyn FnMut(Read) -> Option<()>,
    ) -> Option<u64> {
        let mut end = u64::MAX;
        let mut hear = |piece: Piece| {
            match piece {
                Piece::Records(records) => records.into_iter().try_for_each(&mut *take)?,
                Piece::Ends(at) => end = at,
                Piece::Begins(_) => {}
            }
            Some(())
        };
        match lane.pop() {
            Some(Piece::Begins(Some(at))) if at == stretch.from => {
                while let Some(piece) = lane.pop() {
                    hear(piece)?;
                }
            }
            _ => {
                drop(lane);
                let exact = Stretch { is_exact: true, ..stretch };
                let examine = |record| Examined::now(record, self.is_trusting);
                self.stretch(own, exact, &examine, &mut hear)?;
            }
        }
        Some(end)
    }

    /// Reads one stretch after the other.
    fn work(&self, waiting: &Mutex<mpsc::Receiver<(Stretch, LaneIn<Piece>)>>) {
        let mut reader = self.source.reader().ok();
        let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).recv().ok();
        while let Some((stretch, lane)) = next() {
            let Some(reader) = &mut reader else { continue };
            let examine = |record| Examined::now(record, self.is_trusting);
            let _unwanted = self.stretch(reader, stretch, &examine, &mut |piece| {
                let bytes = piece.bytes();
                lane.push(piece, bytes)
            });
        }
    }

    /// Reads the records that begin in a stretch. None once no more is wanted.
    fn stretch(
        &self,
        reader: &mut RecordReader<Part>,
        stretch: Stretch,
        examine: &dyn Fn(Record) -> Examined,
        give: &mut dyn FnMut(Piece) -> Option<()>,
    ) -> Option<()> {
        reader.read_up_to(stretch.to);
        let begin = match stretch.is_exact {
            true => reader.seek(stretch.from).map(|()| Some(stretch.from)),
            false => reader.seek_first(stretch.from, stretch.to),
        };
        match begin {
            Ok(None) => return give(Piece::Begins(None)),
            Ok(begin) => give(Piece::Begins(begin))?,
            Err(error) => return give(Piece::Records(vec![Err(error)])),
        }
        let (mut records, mut bytes) = (Vec::new(), 0);
        let end = loop {
            let read = match reader.next_offset() {
                Ok(at) if at >= stretch.to => break Some(at),
                Ok(_) => reader.next_record(),
                Err(error) => Err(error),
            };
            let read = match read {
                Ok(None) => break Some(u64::MAX),
                Ok(Some(record)) => Ok(examine(record)),
                Err(error) => Err(error),
            };
            let is_over = matches!(&read, Err(error) if !error.is_damage());
            bytes += read.as_ref().map_or(0, Examined::bytes);
            records.push(read);
            if is_over {
                break None;
            }
            if records.len() >= TOGETHER || bytes >= TOGETHER_BYTES {
                give(Piece::Records(std::mem::take(&mut records)))?;
                bytes = 0;
                reader.reuse(self.memory.take_buffers());
            }
        };
        give(Piece::Records(records))?;
        // What cannot be read any further has no end, and nothing behind it.
        give(Piece::Ends(end.unwrap_or(u64::MAX)))
    }
}

impl Piece {
    fn bytes(&self) -> u64 {
        match self {
            Self::Records(records) => records.iter().flatten().map(Examined::bytes).sum(),
            Self::Begins(_) | Self::Ends(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use nenrin_urls::CanonicalUrl;
    use nenrin_warc::{Compressed, Fields, RecordWriter};

    use super::*;
    use crate::{ingest::Capture, warc::capture::RawCapture};

    /// Bytes that no compressor makes shorter.
    fn noise(seed: u64, length: usize) -> Vec<u8> {
        let mut state = seed * 2 + 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        };
        (0..length).map(|_| next()).collect()
    }

    fn warc(bodies: &[Vec<u8>]) -> Vec<u8> {
        let mut writer = RecordWriter::new(Vec::new(), Compressed::Gzip).unwrap();
        for (number, body) in bodies.iter().enumerate() {
            let mut fields = Fields::default();
            fields.push("WARC-Type", "response");
            fields.push("WARC-Target-URI", format!("http://e.com/{number}"));
            fields.push("WARC-Date", "2024-03-01T12:00:00Z");
            writer.write(&fields, &[b"HTTP/1.1 200 OK\r\n\r\n", body]).unwrap();
        }
        writer.finish().unwrap()
    }

    /// Every record of a file: its offset and content, or what is wrong with it.
    fn read(bytes: &[u8], threads: usize, stretch_bytes: u64) -> Vec<String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let sources = Source::of(file.path()).unwrap();
        let (source, memory) = (&sources[0], &MemoryBudget::new(true));
        let mut found = Vec::new();
        let reading = Reading { source, memory, threads, stretch_bytes, is_trusting: false };
        let read = reading.all(source.reader().unwrap(), &mut |read| {
            found.push(match read {
                Ok(examined) => {
                    let (offset, length) = (examined.record.offset, examined.record.length);
                    let url = CanonicalUrl::parse(examined.record.target_uri().unwrap()).unwrap();
                    let raw = RawCapture { url, at_s: 0, source: 0, examined, request: None };
                    let capture = raw.open(&sources, false).unwrap();
                    let Capture { url, digest, .. } = capture.as_capture();
                    format!("{url} at {offset}: {length} bytes, {digest:?}")
                }
                Err(error) => error.to_string(),
            });
            Some(())
        });
        assert_eq!(read, Some(()));
        found
    }

    fn is_the_same_however_it_is_read(bytes: &[u8]) -> usize {
        let in_one_go = read(bytes, 1, 1 << 20);
        for stretch_bytes in [100, 1000, 7777, 50_000] {
            assert_eq!(read(bytes, 3, stretch_bytes), in_one_go, "stretches of {stretch_bytes}");
        }
        in_one_go.len()
    }

    #[test]
    fn records_come_in_their_order_however_long_the_stretches_are() {
        let bodies: Vec<Vec<u8>> = (0..60).map(|n| noise(n, (n as usize * 977) % 5000)).collect();
        assert_eq!(is_the_same_however_it_is_read(&warc(&bodies)), 60);
    }

    #[test]
    fn what_lies_inside_of_a_body_is_never_taken_for_a_record() {
        let inner: Vec<Vec<u8>> = (0..40).map(|n| noise(n, 600)).collect();
        let served = warc(&inner);
        let bodies = [noise(1, 500), [served.clone(), noise(2, 100)].concat(), served, noise(3, 9)];
        assert_eq!(is_the_same_however_it_is_read(&warc(&bodies)), 4);
    }

    #[test]
    fn damage_is_reported_once_and_in_its_place() {
        let bodies: Vec<Vec<u8>> = (0..30).map(|n| noise(n, 2000)).collect();
        let whole = warc(&bodies);
        for at in [20, whole.len() / 3, whole.len() / 2, whole.len() - 30] {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x55;
            assert_eq!(is_the_same_however_it_is_read(&bytes), 30, "damage at {at}");
        }
        let junk = [&whole[..], &noise(7, 20_000), &whole].concat();
        assert_eq!(is_the_same_however_it_is_read(&junk), 61);
        is_the_same_however_it_is_read(&whole[..whole.len() - 1000]);
        is_the_same_however_it_is_read(&[&whole[..], &[0; 30_000]].concat());
    }

    #[test]
    fn whoever_wants_no_more_is_given_no_more() {
        let bodies: Vec<Vec<u8>> = (0..60).map(|n| noise(n, 3000)).collect();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&warc(&bodies)).unwrap();
        let sources = Source::of(file.path()).unwrap();
        let (source, memory) = (&sources[0], &MemoryBudget::new(true));
        let reading =
            Reading { source, memory, threads: 3, stretch_bytes: 10_000, is_trusting: false };
        let mut count = 0;
        let read = reading.all(source.reader().unwrap(), &mut |_| {
            count += 1;
            (count < 5).then_some(())
        });
        assert_eq!((read, count), (None, 5));
    }
}
