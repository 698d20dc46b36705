//! Digests as archives label them: `sha1:` in base 32, `sha256:` in base 16, and mixtures of both.

use sha1::Sha1;
use sha2::Sha256;

/// Algorithm and form of digests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DigestAlgorithm {
    /// `sha256:` and 64 hexadecimal digits.
    #[default]
    Sha256,
    /// `sha1:` and 32 digits of base 32, as older tools expect.
    Sha1,
}

impl DigestAlgorithm {
    /// The labelled digest of the parts, joined.
    pub fn of(self, parts: &[&[u8]]) -> String {
        match self {
            Self::Sha256 => format!("sha256:{}", base16(&hash::<Sha256>(parts))),
            Self::Sha1 => format!("sha1:{}", base32(&hash::<Sha1>(parts))),
        }
    }
}

/// A digest of what comes part by part.
#[derive(Clone)]
pub struct Digesting(Hasher);

#[derive(Clone)]
enum Hasher {
    Sha256(Sha256),
    Sha1(Sha1),
}

impl Digesting {
    /// Of nothing yet.
    pub fn new(algorithm: DigestAlgorithm) -> Self {
        Self(match algorithm {
            DigestAlgorithm::Sha256 => Hasher::Sha256(Sha256::default()),
            DigestAlgorithm::Sha1 => Hasher::Sha1(Sha1::default()),
        })
    }

    /// Adds a part.
    pub fn update(&mut self, part: &[u8]) {
        use sha1::Digest;
        match &mut self.0 {
            Hasher::Sha256(hasher) => hasher.update(part),
            Hasher::Sha1(hasher) => hasher.update(part),
        }
    }

    /// The labelled digest.
    pub fn finish(self) -> String {
        use sha1::Digest;
        match self.0 {
            Hasher::Sha256(hasher) => format!("sha256:{}", base16(&hasher.finalize())),
            Hasher::Sha1(hasher) => format!("sha1:{}", base32(&hasher.finalize())),
        }
    }
}

/// Compares what comes part by part with a labelled digest.
pub struct DigestCheck {
    value: String,
    hasher: Digesting,
}

impl DigestCheck {
    /// `None` if the algorithm is unknown.
    pub fn new(labelled: &str) -> Option<Self> {
        let (algorithm, value) = labelled.trim().split_once(':')?;
        let algorithm = match algorithm.to_ascii_lowercase().replace('-', "").as_str() {
            "sha1" => DigestAlgorithm::Sha1,
            "sha256" => DigestAlgorithm::Sha256,
            _ => return None,
        };
        let value = value.trim_end_matches('=').to_owned();
        Some(Self { value, hasher: Digesting::new(algorithm) })
    }

    /// Adds a part.
    pub fn update(&mut self, part: &[u8]) {
        self.hasher.update(part);
    }

    /// Whether it was what the digest says.
    pub fn holds(self) -> bool {
        use sha1::Digest;
        let (in_16, in_32) = match self.hasher.0 {
            Hasher::Sha256(hasher) => written(&hasher.finalize()),
            Hasher::Sha1(hasher) => written(&hasher.finalize()),
        };
        self.value.eq_ignore_ascii_case(&in_16) || self.value.eq_ignore_ascii_case(&in_32)
    }
}

/// Whether a labelled digest is that of these bytes; `None` if its algorithm is unknown.
pub fn digest_matches(labelled: &str, bytes: &[u8]) -> Option<bool> {
    let mut check = DigestCheck::new(labelled)?;
    check.update(bytes);
    Some(check.holds())
}

fn hash<D: sha1::Digest>(parts: &[&[u8]]) -> Vec<u8> {
    let mut hasher = D::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize().to_vec()
}

fn written(hash: &[u8]) -> (String, String) {
    (base16(hash), base32(hash))
}

pub(crate) fn base16(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from(b"0123456789abcdef"[usize::from(digit)]));
        }
        text
    })
}

fn base32(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(5) * 8);
    let (mut bits, mut count) = (0_u32, 0);
    for byte in bytes {
        bits = (bits << 8) | u32::from(*byte);
        count += 8;
        while count >= 5 {
            count -= 5;
            text.push(char::from(ALPHABET_32[(bits >> count & 31) as usize]));
        }
    }
    if count > 0 {
        text.push(char::from(ALPHABET_32[(bits << (5 - count) & 31) as usize]));
    }
    text
}

const ALPHABET_32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// A record id derived from the record's content, so that the same export has the same ids.
pub(crate) fn record_id(parts: &[&[u8]]) -> String {
    let mut bytes = hash::<Sha256>(parts);
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let text = base16(&bytes[..16]);
    format!(
        "<urn:uuid:{}-{}-{}-{}-{}>",
        &text[..8],
        &text[8..12],
        &text[12..16],
        &text[16..20],
        &text[20..]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_other_tools() {
        assert_eq!(
            DigestAlgorithm::Sha1.of(&[b"ab", b"c"]),
            "sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5"
        );
        assert_eq!(
            DigestAlgorithm::Sha256.of(&[b"abc"]),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn digests_are_recognised_however_they_are_written() {
        for labelled in [
            "sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5",
            "SHA-1:a9993e364706816aba3e25717850c26c9cd0d89d",
            "sha256:BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD",
            "sha256:XJ4BNP4PAHH6UQKBIDPF3LRCEOYAGYNDSYLXVHFUCD7WD4QACWWQ====",
        ] {
            assert_eq!(digest_matches(labelled, b"abc"), Some(true), "{labelled}");
            assert_eq!(digest_matches(labelled, b"abd"), Some(false), "{labelled}");
        }
        assert_eq!(digest_matches("blake3:00", b"abc"), None);
        assert_eq!(digest_matches("junk", b"abc"), None);
    }

    #[test]
    fn record_numbers_are_uuids() {
        let id = record_id(&[b"a"]);
        assert_eq!(id.len(), "<urn:uuid:00000000-0000-0000-0000-000000000000>".len());
        assert_eq!(&id[24..25], "8");
        assert_ne!(id, record_id(&[b"b"]));
    }
}
