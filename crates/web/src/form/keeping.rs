//! The fields that tell how much of a site is kept.

use nenrin_state::{Keeping, PruneRule};

use super::{SiteForm, check::Check};

/// Units in which a size may be written, the largest first.
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

impl SiteForm {
    pub(super) fn set_keeping(&mut self, keeping: &Keeping) {
        self.quota = keeping.quota_bytes.map(size).unwrap_or_default();
        self.prune = keeping.prune.as_ref().map(ToString::to_string).unwrap_or_default();
    }

    pub(super) fn keeping(&self, check: &mut Check) -> Keeping {
        let quota_bytes = match self.quota.trim() {
            "" => None,
            text => {
                let bytes = parse_size(text);
                if bytes.is_none() {
                    check.say(
                        "quota",
                        "write a size, such as 500MB, 10GB or 2GiB, or 0 for no quota",
                        "容量(例:500MB、10GB、2GiB)、または上限なしの 0 を入力してください",
                    );
                }
                bytes
            }
        };
        let prune = match self.prune.trim() {
            "" => None,
            text => match text.parse::<PruneRule>() {
                Ok(rule) => Some(rule),
                Err(error) => {
                    check.wrong.entry("prune").or_insert(error);
                    None
                }
            },
        };
        Keeping { quota_bytes, prune }
    }
}

/// A size exactly, in the largest unit that divides it.
fn size(bytes: u64) -> String {
    let fits = |unit_bytes: u64| bytes > 0 && bytes.is_multiple_of(unit_bytes);
    let (unit, unit_bytes) =
        SIZES.into_iter().find(|&(_, unit_bytes)| fits(unit_bytes)).unwrap_or(("", 1));
    format!("{}{unit}", bytes / unit_bytes)
}

fn parse_size(text: &str) -> Option<u64> {
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let (_, unit_bytes) = SIZES.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    number.trim().parse::<u64>().ok()?.checked_mul(unit_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written_back() {
        for text in ["0", "1", "500MB", "10GB", "2GiB", "3TB", "64MiB", "1001"] {
            assert_eq!(size(parse_size(text).unwrap()), text);
        }
        assert_eq!(parse_size("5 gb"), Some(5_000_000_000));
        for text in ["", "GB", "-1GB", "1.5GB", "10XB", "99999999999TB"] {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }
}
