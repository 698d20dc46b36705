//! An index over WARC files, without an archive.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use nenrin_warc::{
    CdxLine, CdxWriter, Paired, Pairing, ReadOptions, RecordReader, SortedLines, WarcError,
    cdx_key, request_method,
};

use super::reading::posted;
use crate::{ArchiveError, Result};

const COMPRESSED_TOGETHER: &str = "its records are compressed together, so that an index cannot lead to \
    one of them; import it and export it again, or compress each record by itself";

/// The captures of WARC files, to be written as a CDXJ index.
pub struct CdxjIndex {
    lines: SortedLines,
    /// Records that could not be read.
    pub damaged: u64,
}

/// Reads WARC and ARC files and collects the lines of their index.
pub fn index_warc(paths: &[PathBuf]) -> Result<CdxjIndex> {
    let mut index = CdxjIndex { lines: SortedLines::default(), damaged: 0 };
    for path in paths {
        index.add(path).map_err(ArchiveError::warc(path.display().to_string()))?;
    }
    Ok(index)
}

impl CdxjIndex {
    fn add(&mut self, path: &Path) -> Result<(), WarcError> {
        let mut reader = RecordReader::open(File::open(path)?, ReadOptions::default())?;
        let name = file_name(path);
        let mut last_offset = None;
        let mut pairing = Pairing::default();
        loop {
            match reader.next_record() {
                Ok(Some(record)) => {
                    if last_offset.replace(record.offset) == Some(record.offset) {
                        return Err(WarcError::NotReadable {
                            reason: COMPRESSED_TOGETHER.to_owned(),
                        });
                    }
                    for paired in pairing.next(record) {
                        self.line(&paired, &name)?;
                    }
                }
                Ok(None) => {
                    return pairing.finish().map_or(Ok(()), |last| self.line(&last, &name));
                }
                Err(error @ WarcError::Damaged { .. }) => {
                    self.damaged += 1;
                    tracing::warn!("not indexed: {}: {error}", path.display());
                }
                Err(other) => return Err(other),
            }
        }
    }

    /// The line of a capture. One that was not asked for by GET has its request in its key.
    fn line(&mut self, paired: &Paired, name: &str) -> Result<(), WarcError> {
        let Some(mut line) = CdxLine::of(&paired.record, name) else { return Ok(()) };
        if let Some(request) = &paired.request
            && let Some(url) = posted(&line.fields.url, &request.block)
        {
            line.key = cdx_key(&url);
            line.fields.method = Some(request_method(&request.block).to_owned());
        }
        self.lines.push(line.to_string())?;
        Ok(())
    }

    /// Writes the lines in their order to a stream; returns how many there are.
    pub fn write(self, stream: impl Write) -> Result<u64> {
        self.lines_to(CdxWriter::plain(stream)).map_err(ArchiveError::warc("the index"))
    }

    /// Writes them to a file: compressed, with a list of its members beside it, where the name
    /// ends in `.gz`.
    pub fn write_file(self, path: &Path) -> Result<u64> {
        let name = file_name(path);
        let create = |path: &Path| -> Result<BufWriter<File>> {
            Ok(BufWriter::new(File::create(path).map_err(ArchiveError::writing(path))?))
        };
        let stream = create(path)?;
        let written = if name.ends_with(".gz") {
            let stem =
                name.trim_end_matches(".gz").trim_end_matches(".cdxj").trim_end_matches(".cdx");
            let members = create(&path.with_file_name(format!("{stem}.idx")))?;
            CdxWriter::compressed(stream, members, &name)
                .map_err(WarcError::from)
                .and_then(|writer| self.lines_to(writer))
        } else {
            self.lines_to(CdxWriter::plain(stream))
        };
        written.map_err(ArchiveError::warc(name))
    }

    fn lines_to<W: Write, I: Write>(self, mut writer: CdxWriter<W, I>) -> Result<u64, WarcError> {
        self.lines.finish(&mut |line| writer.write(line))?;
        let count = writer.count();
        writer.finish()?;
        Ok(count)
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
