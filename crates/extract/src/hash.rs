//! The hash of values that are stored between runs.

/// FNV-1a, then mixed so that every bit depends on all bytes. Fingerprints and learnt parts are
/// stored, so this must never change.
pub(crate) fn stable_hash(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in bytes {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    mixed(hash)
}

/// Spreads a value over all bits.
pub(crate) fn mixed(mut hash: u64) -> u64 {
    hash ^= hash >> 30;
    hash = hash.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash ^= hash >> 27;
    hash = hash.wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ hash >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_hashes_stay_valid() {
        assert_eq!(stable_hash(*b""), 17_665_956_581_633_026_203);
        assert_eq!(stable_hash(*b"nenrin"), 17_413_285_146_041_194_563);
    }
}
