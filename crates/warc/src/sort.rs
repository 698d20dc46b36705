//! Sorting more lines than memory holds.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Seek, SeekFrom, Write};

/// Bytes of lines that are sorted in memory at a time.
const RUN_BYTES: usize = 32 << 20;

/// Collects lines and returns them in the order of their bytes. What does not fit into memory waits
/// in temporary files.
#[derive(Debug)]
pub struct SortedLines {
    lines: Vec<String>,
    bytes: usize,
    run_bytes: usize,
    runs: Vec<File>,
}

impl Default for SortedLines {
    fn default() -> Self {
        Self::with_run_bytes(RUN_BYTES)
    }
}

impl SortedLines {
    fn with_run_bytes(run_bytes: usize) -> Self {
        Self { lines: Vec::new(), bytes: 0, run_bytes, runs: Vec::new() }
    }

    /// Adds a line without its end.
    pub fn push(&mut self, line: String) -> io::Result<()> {
        self.bytes += line.len() + size_of::<String>();
        self.lines.push(line);
        if self.bytes < self.run_bytes {
            return Ok(());
        }
        self.lines.sort_unstable();
        let mut run = BufWriter::new(tempfile::tempfile()?);
        for line in self.lines.drain(..) {
            writeln!(run, "{line}")?;
        }
        self.runs.push(run.into_inner().map_err(io::IntoInnerError::into_error)?);
        self.bytes = 0;
        Ok(())
    }

    /// Calls `look` with every line, in order.
    pub fn finish(mut self, look: &mut dyn FnMut(&str) -> io::Result<()>) -> io::Result<()> {
        self.lines.sort_unstable();
        if self.runs.is_empty() {
            return self.lines.iter().try_for_each(|line| look(line));
        }
        let mut sources: Vec<Box<dyn Iterator<Item = io::Result<String>>>> = Vec::new();
        for mut run in self.runs {
            run.seek(SeekFrom::Start(0))?;
            sources.push(Box::new(BufReader::new(run).lines()));
        }
        sources.push(Box::new(self.lines.into_iter().map(Ok)));
        let mut heads = BinaryHeap::new();
        for (source, lines) in sources.iter_mut().enumerate() {
            if let Some(line) = lines.next() {
                heads.push(Reverse((line?, source)));
            }
        }
        while let Some(Reverse((line, source))) = heads.pop() {
            look(&line)?;
            if let Some(next) = sources[source].next() {
                heads.push(Reverse((next?, source)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_sorted_from_memory_and_from_files() {
        for run_bytes in [200, 1 << 20] {
            let mut lines = SortedLines::with_run_bytes(run_bytes);
            let mut expected: Vec<String> =
                (0..500_u32).map(|n| format!("{:x}", n.wrapping_mul(2_654_435_761))).collect();
            expected.iter().for_each(|line| lines.push(line.clone()).unwrap());
            expected.sort();
            let mut found = Vec::new();
            let mut look = |line: &str| {
                found.push(line.to_owned());
                Ok(())
            };
            lines.finish(&mut look).unwrap();
            assert_eq!(found, expected);
        }
    }
}
