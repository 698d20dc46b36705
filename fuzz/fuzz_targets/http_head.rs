//! Any block is taken apart, and a head that was written for the archive comes back.
#![no_main]

use nenrin_warc::{HttpResponse, archived_head, split_message};

libfuzzer_sys::fuzz_target!(|block: &[u8]| {
    let (head, body) = split_message(block);
    assert_eq!([head, body].concat(), block);
    if let Some(response) = HttpResponse::parse(block) {
        let written = archived_head(&response.head, response.body.len());
        assert!(written.len() >= response.head.len());
    }
});
