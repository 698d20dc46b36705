//! Runs the check that `NENRIN_CHECK` names on what the fuzzer makes up: `scripts/fuzz`.
#![no_main]

use std::sync::LazyLock;

static CHECK: LazyLock<nenrin_checks::Check> = LazyLock::new(|| {
    let name = std::env::var("NENRIN_CHECK").unwrap_or_default();
    nenrin_checks::named(&name).expect("NENRIN_CHECK names a check")
});

libfuzzer_sys::fuzz_target!(init: let_decoders_panic(), |bytes: &[u8]| CHECK(bytes));

/// The fuzzer ends at every panic, caught or not. Those of the foreign decoders of pictures, which
/// the store catches, are no finding.
fn let_decoders_panic() {
    let end = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let file = info.location().map_or("", |location| location.file());
        if !["preflate", "lepton", "lzma-rust2"].iter().any(|name| file.contains(name)) {
            end(info);
        }
    }));
}
