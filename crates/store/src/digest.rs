use std::fmt;

/// BLAKE3 of a body: its identity in the archive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// The digest of all that is read, and how many bytes that were.
    pub fn of_read(reader: &mut dyn std::io::Read) -> std::io::Result<(Self, u64)> {
        let mut hasher = blake3::Hasher::new();
        let mut buffer = vec![0; READ_BYTES];
        let mut bytes = 0;
        loop {
            match reader.read(&mut buffer)? {
                0 => return Ok((Self(*hasher.finalize().as_bytes()), bytes)),
                count => {
                    hasher.update(&buffer[..count]);
                    bytes += count as u64;
                }
            }
        }
    }

    /// What the body is looked up by.
    pub(crate) fn key(&self) -> BodyKey {
        let mut front = [0; BODY_KEY_BYTES];
        front.copy_from_slice(&self.0[..BODY_KEY_BYTES]);
        BodyKey(front)
    }
}

/// Read at a time.
const READ_BYTES: usize = 64 << 10;

/// How much of a digest directories hold.
pub(crate) const BODY_KEY_BYTES: usize = 16;

/// The first half of a body's digest: the body is found by it. The record of a version has
/// the whole digest, and what is read is compared with that; so two bodies with the same key,
/// should somebody ever find such, cannot pass for one another.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BodyKey(pub(crate) [u8; BODY_KEY_BYTES]);

impl BodyKey {
    /// The first six bytes as a number: where the index looks. Neighbours resolve collisions.
    pub(crate) fn slot(&self) -> i64 {
        let mut head = [0; 8];
        head[2..].copy_from_slice(&self.0[..6]);
        i64::from_be_bytes(head)
    }
}

impl fmt::Display for BodyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Debug for BodyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

fn write_hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
