//! A line that is read is written the same when it is read again.
#![no_main]

use nenrin_warc::CdxLine;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(line) = CdxLine::parse(text) {
        let written = line.to_string();
        assert_eq!(CdxLine::parse(&written).expect("what was written is read").to_string(), written);
    }
});
