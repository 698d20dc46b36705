//! Writes records into a file: one gzip member or zstd frame each.

use std::io::{self, Write};

use flate2::{Compress, Compression, FlushCompress, Status};
use zstd::stream::raw::{CParameter, Encoder, InBuffer, Operation, OutBuffer};

use crate::Fields;

const OUTPUT_BYTES: usize = 64 << 10;
/// gzip's own default level.
const GZIP_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 9;

/// How a file is compressed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Compressed {
    /// Not at all: `.warc`.
    Not,
    /// A gzip member for each record: `.warc.gz`.
    #[default]
    Gzip,
    /// A zstd frame for each record: `.warc.zst`.
    Zstd,
}

/// Gives bytes part by part to the function that it is called with.
pub type Give<'a> = &'a mut dyn FnMut(&mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>;

/// Where a record was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Where it begins in the file.
    pub offset: u64,
    /// How many bytes it takes; in a plain file without the empty lines behind it, as other indexers
    /// count.
    pub length: u64,
}

/// Writes records to a stream.
pub struct RecordWriter<W> {
    out: Counted<W>,
    coder: Coder,
    buffer: Vec<u8>,
}

enum Coder {
    Plain,
    Gzip(Box<Compress>),
    Zstd(Box<Encoder<'static>>),
}

struct Counted<W> {
    inner: W,
    count: u64,
}

impl<W: Write> Counted<W> {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.inner.write_all(bytes)?;
        self.count += bytes.len() as u64;
        Ok(())
    }
}

impl<W: Write> RecordWriter<W> {
    /// Writes to `out` from its beginning.
    pub fn new(out: W, compressed: Compressed) -> io::Result<Self> {
        let coder = match compressed {
            Compressed::Not => Coder::Plain,
            Compressed::Gzip => {
                Coder::Gzip(Box::new(Compress::new_gzip(Compression::new(GZIP_LEVEL), 15)))
            }
            Compressed::Zstd => {
                let mut encoder = Encoder::new(ZSTD_LEVEL)?;
                encoder.set_parameter(CParameter::ChecksumFlag(true))?;
                Coder::Zstd(Box::new(encoder))
            }
        };
        Ok(Self { out: Counted { inner: out, count: 0 }, coder, buffer: vec![0; OUTPUT_BYTES] })
    }

    /// The stream that is written to. Write to it only between records.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out.inner
    }

    /// Number of bytes written so far.
    pub fn position(&self) -> u64 {
        self.out.count
    }

    /// Writes one record; Content-Length is added.
    pub fn write(&mut self, fields: &Fields, block: &[&[u8]]) -> io::Result<Written> {
        let bytes = block.iter().map(|part| part.len() as u64).sum();
        self.write_read(
            fields,
            b"",
            (bytes, &mut |take| block.iter().try_for_each(|part| take(part))),
        )
    }

    /// As [`write`](Self::write), with so many bytes behind the block that come part by part. The file
    /// is of no use if there are more or fewer: that is an error.
    pub fn write_read(
        &mut self,
        fields: &Fields,
        block: &[u8],
        (rest_bytes, rest): (u64, Give<'_>),
    ) -> io::Result<Written> {
        let offset = self.out.count;
        let length = block.len() as u64 + rest_bytes;
        let mut head = Vec::with_capacity(1024);
        head.extend_from_slice(b"WARC/1.1\r\n");
        for (name, value) in fields.iter() {
            head.extend_from_slice(name.as_bytes());
            head.extend_from_slice(b": ");
            // A line end inside a value would make two fields of it.
            head.extend(
                value.bytes().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }),
            );
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(format!("Content-Length: {length}\r\n\r\n").as_bytes());
        self.code(&head)?;
        self.code(block)?;
        let mut given = 0;
        rest(&mut |part| {
            given += part.len() as u64;
            self.code(part)
        })?;
        if given != rest_bytes {
            return Err(io::Error::other(format!("{given} bytes came, not {rest_bytes}")));
        }
        let block_end = self.out.count;
        self.code(b"\r\n\r\n")?;
        self.end_member()?;
        let end = if matches!(self.coder, Coder::Plain) { block_end } else { self.out.count };
        Ok(Written { offset, length: end - offset })
    }

    fn code(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        match &mut self.coder {
            Coder::Plain => self.out.write_all(bytes)?,
            Coder::Gzip(compress) => {
                while !bytes.is_empty() {
                    let (before_in, before_out) = (compress.total_in(), compress.total_out());
                    compress
                        .compress(bytes, &mut self.buffer, FlushCompress::None)
                        .map_err(io::Error::other)?;
                    bytes = &bytes[(compress.total_in() - before_in) as usize..];
                    let produced = (compress.total_out() - before_out) as usize;
                    self.out.write_all(&self.buffer[..produced])?;
                }
            }
            Coder::Zstd(encoder) => {
                let mut input = InBuffer::around(bytes);
                while input.pos() < bytes.len() {
                    let mut output = OutBuffer::around(&mut self.buffer[..]);
                    encoder.run(&mut input, &mut output)?;
                    let produced = output.pos();
                    self.out.write_all(&self.buffer[..produced])?;
                }
            }
        }
        Ok(())
    }

    fn end_member(&mut self) -> io::Result<()> {
        match &mut self.coder {
            Coder::Plain => {}
            Coder::Gzip(compress) => {
                loop {
                    let before = compress.total_out();
                    let status = compress
                        .compress(b"", &mut self.buffer, FlushCompress::Finish)
                        .map_err(io::Error::other)?;
                    let produced = (compress.total_out() - before) as usize;
                    self.out.write_all(&self.buffer[..produced])?;
                    if status == Status::StreamEnd {
                        break;
                    }
                }
                compress.reset();
            }
            Coder::Zstd(encoder) => {
                loop {
                    let mut output = OutBuffer::around(&mut self.buffer[..]);
                    let left = encoder.finish(&mut output, true)?;
                    let produced = output.pos();
                    self.out.write_all(&self.buffer[..produced])?;
                    if left == 0 {
                        break;
                    }
                }
                encoder.reinit()?;
            }
        }
        Ok(())
    }

    /// Returns the stream, with everything written to it.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.inner.flush()?;
        Ok(self.out.inner)
    }
}
