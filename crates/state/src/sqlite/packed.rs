//! Long values, compressed. What begins like a zstd frame is one: values that are stored as they are do not.

use std::{borrow::Cow, io::Read as _};

use rusqlite::types::{FromSqlError, FromSqlResult};

/// Shorter values are stored as they are.
const SHORT_BYTES: usize = 512;
/// No value is longer; more is damage.
const MAX_BYTES: usize = 64 << 20;
const LEVEL: i32 = 3;
/// Of values of at most this many bytes, which an archive of few pages has, more is saved in little time.
const SMALL_BYTES: usize = 64 << 10;
const SMALL_LEVEL: i32 = 15;
const FRAME: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// A value as it is stored.
pub(super) fn pack(value: &[u8]) -> Cow<'_, [u8]> {
    let is_long = (SHORT_BYTES..=MAX_BYTES).contains(&value.len());
    let level = if value.len() <= SMALL_BYTES { SMALL_LEVEL } else { LEVEL };
    let packed = (is_long || value.starts_with(&FRAME)).then(|| zstd::bulk::compress(value, level));
    match packed {
        Some(Ok(packed)) if packed.len() < value.len() || value.starts_with(&FRAME) => {
            Cow::Owned(packed)
        }
        _ => Cow::Borrowed(value),
    }
}

/// A value as it was before it was stored.
pub(super) fn unpack(stored: &[u8]) -> FromSqlResult<Cow<'_, [u8]>> {
    if !stored.starts_with(&FRAME) {
        return Ok(Cow::Borrowed(stored));
    }
    let mut value = Vec::new();
    let reader = zstd::Decoder::new(stored).map_err(FromSqlError::other)?;
    reader.take(MAX_BYTES as u64).read_to_end(&mut value).map_err(FromSqlError::other)?;
    Ok(Cow::Owned(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_and_long_ones_take_little_space() {
        let long = b"seen changed ".repeat(1000);
        let like_a_frame = [&FRAME[..], b"but not one"].concat();
        for value in [&b""[..], b"short", &long, &like_a_frame] {
            assert_eq!(*unpack(&pack(value)).unwrap(), *value);
        }
        assert!(pack(&long).len() < 200);
        assert!(unpack(&like_a_frame).is_err());
    }
}
