//! Sizes, as people write them in quotas and limits.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A number of bytes written `500KiB`, `64MiB`, `2GiB`, `10GB`, or plain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Bytes(pub u64);

const SIZES: [(&str, u64); 8] = [
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1_000),
    ("", 1),
];

impl FromStr for Bytes {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
        let (number, unit) = text.split_at(unit_at);
        let wrong =
            || format!("`{text}` is not a size; write one like 500KiB, 64MiB, 2GiB or 10GB");
        let number: u64 = number.trim().parse().map_err(|_| wrong())?;
        let (_, size) = SIZES
            .into_iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(unit))
            .ok_or_else(wrong)?;
        number.checked_mul(size).map(Self).ok_or_else(wrong)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |size: u64| self.0 > 0 && self.0.is_multiple_of(size);
        let (unit, size) = SIZES.into_iter().find(|&(_, size)| fits(size)).unwrap_or(("", 1));
        write!(f, "{}{unit}", self.0 / size)
    }
}

impl TryFrom<String> for Bytes {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Bytes> for String {
    fn from(bytes: Bytes) -> String {
        bytes.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written() {
        for text in ["0", "500KiB", "64MiB", "2GiB", "10GB", "3TB", "1kB", "1001"] {
            assert_eq!(text.parse::<Bytes>().unwrap().to_string(), text);
        }
        assert_eq!("5 gb".parse(), Ok(Bytes(5_000_000_000)));
        for text in ["", "MB", "1XB", "-1MB", "1.5GB", "99999999999TB"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }
}
