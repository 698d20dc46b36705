//! One commit.

use std::sync::PoisonError;

use super::{
    engine::{Failure, Fate, PostgresState, Step, Tx, Unsure},
    joint, needs,
    work::Work,
};
use crate::{
    Change, Committed, Epoch, StateError,
    known::{Fresh, Known},
};

impl PostgresState {
    /// Commits, if the partition is still held under this epoch.
    pub(super) fn commit_if(
        &self,
        epoch: Option<Epoch>,
        changes: &[Change],
    ) -> Result<Committed, StateError> {
        if changes.is_empty() {
            return Ok(Committed::default());
        }
        if let Some(committed) = self.settle(changes)? {
            return Ok(committed);
        }
        let mut known = self.known();
        let made = self.write_until_sure(|t| {
            let current = t.head.epoch;
            if let Some(Epoch(held)) = epoch.filter(|held| *held != current) {
                return Err(StateError::Superseded { held, current: current.0 }.into());
            }
            make(t, changes, &known)
        });
        match made {
            Ok((committed, fresh)) => {
                for (key, depth, place) in fresh {
                    known.learn(key, depth, place);
                }
                Ok(committed)
            }
            Err(Failure::Unsure(transaction, (committed, _), error)) => {
                let mut unsure = self.unsure.lock().unwrap_or_else(PoisonError::into_inner);
                *unsure = Some(Unsure { transaction, digest: digest(changes), committed });
                Err(error)
            }
            Err(Failure::Final(error) | Failure::Again(error)) => Err(error),
        }
    }

    /// Whether the last commit came about whose end was not seen. If these are its changes and it
    /// did, they are not made again.
    fn settle(&self, changes: &[Change]) -> Result<Option<Committed>, StateError> {
        let mut unsure = self.unsure.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(last) = &*unsure else { return Ok(None) };
        let fate = self.fate(&last.transaction)?;
        let last = unsure.take();
        let came_about = matches!(fate, Fate::CameAbout);
        let is_meant = |last: &Unsure| came_about && last.digest == digest(changes);
        Ok(last.filter(is_meant).map(|last| last.committed))
    }
}

fn digest(changes: &[Change]) -> [u8; 32] {
    *blake3::hash(format!("{changes:?}").as_bytes()).as_bytes()
}

fn make(t: &mut Tx<'_>, changes: &[Change], known: &Known) -> Step<(Committed, Vec<Fresh>)> {
    let (mut committed, mut fresh) = (Committed::default(), Vec::new());
    let needs = needs::of(changes, known, t.settings);
    let mut work = Work::load(t, &needs)?;
    for change in changes {
        work.apply(change, known, &mut fresh, &mut committed)?;
    }
    work.finish(&mut committed)?;
    for change in changes {
        // A round may end in the same commit as its last visits: counts go first.
        if let Change::RoundEnd(end) = change {
            joint::end_round(&mut work, end)?;
        }
    }
    Ok((committed, fresh))
}
