//! Losses that were accepted: versions that cannot be read any more leave the archive, and the
//! locations of the damage are noted in a file, so that a check reports only what is new.

use std::{collections::BTreeSet, fs::OpenOptions, io::Write};

use nenrin_store::{Damage, VersionId};

use super::accepted::{AcceptedLoss, FILE};
use super::verify::Verified;
use crate::{Archive, ArchiveError, Result};

/// How the state's log of what went calls it.
const WHY: &str = "lost, and the loss was accepted";

impl Archive {
    /// Accepts what a check found lost: takes the versions that cannot be read off the lists, and
    /// notes the damaged locations. Returns how many versions that were. What can be mended is not
    /// accepted.
    pub fn accept_loss(&self, verified: &Verified, now_s: i64) -> Result<u64> {
        let mut lost: BTreeSet<VersionId> = verified.missing.iter().copied().collect();
        for damage in verified.store.damage.iter().filter(|damage| !damage.is_mendable) {
            lost.extend(&damage.versions);
        }
        let ids: Vec<VersionId> = lost.into_iter().collect();
        // In this order: what the store has forgotten and the state still lists is found again.
        self.store().forget(&ids)?;
        self.state().drop_lost(&ids, WHY, now_s)?;
        let damage = verified.store.damage.iter().filter(|damage| !damage.is_mendable);
        let lines: String = damage.map(|damage| line(damage, now_s)).collect();
        let path = self.folder().join(FILE);
        let append = || {
            let mut file = OpenOptions::new().append(true).create(true).open(&path)?;
            file.write_all(lines.as_bytes())?;
            file.sync_all()
        };
        append().map_err(ArchiveError::writing(&path))?;
        tracing::warn!(versions = ids.len(), "the loss of versions was accepted");
        Ok(ids.len() as u64)
    }
}

fn line(damage: &Damage, at_s: i64) -> String {
    let (what, place) = (damage.what.clone(), damage.place.clone());
    let loss = AcceptedLoss { what, place, at_s, versions: damage.versions_lost };
    serde_json::to_string(&loss).map_or(String::new(), |text| text + "\n")
}
