//! Messages are signed with a secret that sender and receiver share.

use sha2::{Digest, Sha256};

/// What proves to a receiver who sent a message: its HMAC with SHA-256 (RFC 2104), in hexadecimal.
pub fn signature(key: &[u8], message: &[u8]) -> String {
    const BLOCK: usize = 64;
    let mut padded = [0_u8; BLOCK];
    if key.len() > BLOCK {
        padded[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        padded[..key.len()].copy_from_slice(key);
    }
    let keyed = |pad: u8| padded.map(|byte| byte ^ pad);
    let inner = Sha256::new().chain_update(keyed(0x36)).chain_update(message).finalize();
    let outer = Sha256::new().chain_update(keyed(0x5c)).chain_update(inner).finalize();
    outer.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_that_of_the_standard() {
        // RFC 4231, cases 2 and 6.
        assert_eq!(
            signature(b"Jefe", b"what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        assert_eq!(
            signature(&[0xaa; 131], b"Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
    }
}
