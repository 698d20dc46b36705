//! Any bytes are opened as a package; entries stay inside it and names lead nowhere else.
#![no_main]

use std::io::Cursor;

use nenrin_warc::ZipReader;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(mut reader) = ZipReader::open(Cursor::new(bytes)) else { return };
    let entries = reader.entries().to_vec();
    for entry in entries {
        assert!(!entry.name.starts_with('/') && !entry.name.split('/').any(|part| part == ".."));
        assert!(entry.offset + entry.length <= bytes.len() as u64);
        let _ = reader.read(&entry, 1 << 20);
    }
});
