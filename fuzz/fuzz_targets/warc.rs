//! Any bytes are read as a WARC or ARC file to their end, without a panic and without standing
//! still.
#![no_main]

use std::io::Cursor;

use nenrin_warc::{CdxLine, Pairing, ReadOptions, RecordReader, WarcError};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let options = ReadOptions { max_block_bytes: 1 << 16, packed_from_bytes: Some(64) };
    let Ok(mut reader) = RecordReader::open(Cursor::new(bytes), options) else { return };
    let mut pairing = Pairing::default();
    let mut steps = 0;
    loop {
        match reader.next_record() {
            Ok(Some(record)) => {
                let _ = CdxLine::of(&record, "f");
                pairing.next(record);
            }
            Ok(None) | Err(WarcError::Io(_)) => break,
            Err(_) => {}
        }
        steps += 1;
        assert!(steps <= 4 * bytes.len() + 1000, "the reader does not come forward");
    }
});
