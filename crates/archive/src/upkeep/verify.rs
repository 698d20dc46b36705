use std::collections::{BTreeMap, BTreeSet};

use nenrin_state::StateError;
use nenrin_store::{Damage, VerifyReport, VersionId};
use serde_json::{Value, json};

use super::{accepted::AcceptedLoss, listed::Listed};
use crate::{Archive, ArchiveError, Progress, Result, counted, readable_bytes};

/// Damaged locations for which an example page is looked up.
const EXAMPLES_MAX: usize = 20;
/// Damaged locations that are put into words.
const SHOWN_MAX: usize = 20;

/// What a check of the whole archive found.
#[derive(Debug)]
pub struct Verified {
    /// What is damaged in the packs, without what was accepted.
    pub store: VerifyReport,
    /// What is wrong with the state, in words.
    pub state: Vec<String>,
    /// What is wrong with the search index, in words, if somebody looked: the archive does not know it.
    pub search: Option<String>,
    /// Versions that the state lists and no pack holds.
    pub missing: Vec<VersionId>,
    /// Versions in the packs that the state does not list: the process was stopped before it could.
    pub unlisted: u64,
    /// Damaged locations whose loss was accepted.
    pub accepted: Vec<AcceptedLoss>,
    /// For the first damaged locations, a page and date that each of them costs.
    pub examples: BTreeMap<VersionId, String>,
}

impl Archive {
    /// Checks every byte of the packs, the state, and each against the other. With `deep`, every
    /// version is restored and compared with its digest. Progress is counted in bytes.
    pub fn verify(&self, deep: bool, progress: &mut Progress<'_>) -> Result<Verified> {
        let mut store = self.store().verify(deep, progress)?;
        let mut accepted = self.accepted_losses()?;
        let places = |loss: &AcceptedLoss| (loss.place.clone(), loss.what.clone());
        let known: BTreeSet<_> = accepted.iter().map(places).collect();
        let mut seen = BTreeSet::new();
        store.damage.retain(|damage| {
            let place = (damage.place.clone(), damage.what.clone());
            let is_known = damage.versions_lost == 0 && known.contains(&place);
            seen.extend(is_known.then_some(place));
            !is_known
        });
        accepted.retain(|loss| seen.remove(&places(loss)));
        let mut state = in_words(self.state().check().map_err(ArchiveError::from))?;
        let first = store.damage.iter().take(EXAMPLES_MAX);
        let wanted = first.filter_map(|damage| damage.versions.first().copied()).collect();
        let (mut missing, mut unlisted, mut examples) = (Vec::new(), 0, BTreeMap::new());
        // In a damaged database, what is listed says nothing.
        if state.is_empty() {
            let listed = match Listed::look_through(self, &wanted) {
                Ok(listed) => listed,
                Err(error) => {
                    state.extend(in_words(Err(error))?);
                    Listed::default()
                }
            };
            state.extend(listed.missing.text("are in no pack"));
            state.extend(listed.different.text("differ from their records in the packs"));
            let all = listed.right + listed.different.count;
            // What is lost cannot be compared: it counts as listed.
            let lost = store.damage.iter().map(|damage| damage.versions_lost).sum::<u64>();
            unlisted = store.versions.saturating_sub(all + lost);
            (missing, examples) = (listed.missing.versions, listed.pages);
        }
        Ok(Verified { store, state, search: None, missing, unlisted, accepted, examples })
    }
}

/// Damage of the state is a finding, not an error.
fn in_words(checked: Result<Vec<String>>) -> Result<Vec<String>> {
    match checked {
        Err(ArchiveError::State(StateError::Damaged { reason, .. })) => {
            Ok(vec![format!("the database is damaged: {reason}")])
        }
        other => other,
    }
}

impl Verified {
    /// Whether nothing is damaged, but for what was accepted.
    pub fn is_sound(&self) -> bool {
        self.store.is_sound() && self.state.is_empty() && self.search.is_none()
    }

    /// How many versions cannot be read.
    pub fn lost(&self) -> u64 {
        let in_packs = self.store.damage.iter().map(|damage| damage.versions_lost).sum::<u64>();
        in_packs + self.missing.len() as u64
    }

    /// For programs.
    pub fn as_json(&self, deep: bool) -> Value {
        let Self { store, state, search, unlisted, accepted, .. } = self;
        let damage = |damage: &Damage| {
            json!({
                "what": damage.what, "place": damage.place,
                "versions_lost": damage.versions_lost, "versions": damage.versions,
            })
        };
        json!({
            "sound": self.is_sound(), "packs": store.packs, "bytes": store.bytes,
            "versions": store.versions, "deep": deep,
            "damage": store.damage.iter().map(damage).collect::<Vec<_>>(),
            "state": state, "search": search, "unlisted": unlisted, "accepted": accepted,
        })
    }

    /// What was found, in words: the damage, what it costs, and what mends it.
    pub fn text(&self, deep: bool) -> Vec<String> {
        let store = &self.store;
        let mut lines = vec![format!(
            "{}, {}, {} checked{}",
            counted(store.packs, "pack"),
            readable_bytes(store.bytes),
            counted(store.versions, "version"),
            if deep { ", each restored and compared with its digest" } else { "" }
        )];
        for damage in store.damage.iter().take(SHOWN_MAX) {
            let example = damage.versions.first().and_then(|id| self.examples.get(id));
            lines.push(format!(
                "damaged: {}: {}; it costs {}{}",
                damage.place,
                damage.what,
                counted(damage.versions_lost, "version"),
                example.map(|page| format!(", such as {page}")).unwrap_or_default()
            ));
        }
        let further = store.damage.len().saturating_sub(SHOWN_MAX);
        if further > 0 {
            lines.push(format!(
                "and {further} further locations; `nenrin verify --json` names them all"
            ));
        }
        let lost = self.lost();
        if lost > 0 {
            lines.push(format!(
                "{lost} of {} versions cannot be read; all others can",
                store.versions + self.missing.len() as u64
            ));
        }
        lines.extend(self.state.iter().take(SHOWN_MAX).map(|wrong| format!("state: {wrong}")));
        lines.extend(self.search.clone());
        if !self.accepted.is_empty() {
            let locations = counted(self.accepted.len() as u64, "damaged location");
            lines.push(format!("{locations} whose loss was accepted"));
        }
        if self.unlisted > 0 {
            lines.push(format!(
                "{} in the packs of visits that were stopped before they were written down; \
                 `nenrin reindex` lists them",
                counted(self.unlisted, "version")
            ));
        }
        lines.push(self.advice());
        lines
    }

    fn advice(&self) -> String {
        if self.is_sound() {
            return "no damage found".to_owned();
        }
        let mut ways = Vec::new();
        if self.store.damage.iter().any(|damage| damage.is_of_index()) {
            ways.push("`nenrin reindex` makes the index again from the packs");
        }
        if self.store.damage.iter().any(|damage| damage.is_mendable && !damage.is_of_index()) {
            ways.push("`nenrin verify --repair` writes back what parity restores");
        }
        if self.store.damage.iter().any(|damage| !damage.is_mendable) {
            ways.push(
                "put back a copy of what is damaged if there is one, then run `nenrin reindex`",
            );
        }
        if !self.state.is_empty() {
            ways.push("`nenrin reindex` makes the state again from the packs");
        }
        if self.search.is_some() {
            ways.push("`nenrin reindex --search` makes the search index again");
        }
        if self.lost() > 0 {
            ways.push("`nenrin verify --accept-loss` drops what cannot be read from the lists");
        }
        format!("damaged: {}", ways.join("; "))
    }
}
