//! Blocks, joined, are the input.
#![no_main]

libfuzzer_sys::fuzz_target!(|body: &[u8]| {
    let blocks: Vec<&[u8]> = nenrin_store::cut(body).collect();
    assert!(blocks.iter().all(|block| !block.is_empty()));
    assert_eq!(blocks.concat(), body);
});
