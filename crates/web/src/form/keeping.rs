//! The fields that limit how much of a site is stored.

use nenrin_state::{Bytes, Keeping, PruneRule};

use super::{SiteForm, check::Check};

impl SiteForm {
    pub(super) fn set_keeping(&mut self, keeping: &Keeping) {
        self.quota = keeping.quota_bytes.map(|n| Bytes(n).to_string()).unwrap_or_default();
        self.prune = keeping.prune.as_ref().map(ToString::to_string).unwrap_or_default();
    }

    pub(super) fn keeping(&self, check: &mut Check) -> Keeping {
        let quota_bytes = match self.quota.trim() {
            "" => None,
            text => {
                let bytes = text.parse::<Bytes>().ok().map(|bytes| bytes.0);
                if bytes.is_none() {
                    check.say(
                        "quota",
                        "write a size, such as 500MB, 10GB or 2GiB, or 0 for no quota",
                        "容量（例：500MB、10GB、2GiB）、または上限なしの 0 を入力してください",
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
                    check.error("prune", &error);
                    None
                }
            },
        };
        Keeping { quota_bytes, prune }
    }
}
