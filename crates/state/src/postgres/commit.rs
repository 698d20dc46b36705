//! One commit.

use std::{collections::BTreeMap, sync::PoisonError};

use super::{
    engine::{Failure, Fate, PostgresState, Step, Unsure},
    held::{ChangedPage, Kept},
    joint,
    loads::Loads,
    needs,
    work::Work,
};
use crate::{
    Change, Committed, Epoch, ServerRecord, StateError,
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
        let needs = needs::of(changes, &known, self.settings);
        let loads = Loads::of(&needs, self.settings, &self.schema);
        self.begin_change();
        let made = self.write_until_sure(&loads.asks, |t, loaded| {
            let current = t.head.epoch;
            match epoch {
                Some(Epoch(held)) if held != current.0 => {
                    return Err(StateError::Superseded { held, current: current.0 }.into());
                }
                Some(_) => {}
                None => t.head.outside += 1,
            }
            let mut work = Work::loaded(t, &needs, &loads, &loaded)?;
            make(&mut work, changes, &known)
        });
        match made {
            Ok((committed, fresh, kept)) => {
                for (key, depth, place) in fresh {
                    known.learn(key, depth, place);
                }
                self.end_change(Some((changes, kept)));
                Ok(committed)
            }
            Err(failure) => {
                self.end_change(None);
                Err(match failure {
                    Failure::Unsure(transaction, (committed, ..), error) => {
                        let mut unsure = self.unsure.lock().unwrap_or_else(PoisonError::into_inner);
                        *unsure = Some(Unsure { transaction, digest: digest(changes), committed });
                        error
                    }
                    Failure::Final(error) | Failure::Again(error) => error,
                })
            }
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

/// What a commit leaves of rows that a holder keeps, before they are written.
fn kept(work: &Work<'_, '_>) -> Kept {
    let new_servers = work.new_servers.iter().filter_map(|(id, name)| {
        Some(ServerRecord {
            id: *id,
            server: name.clone().try_into().ok()?,
            robots: None,
            robots_tried_s: None,
            asked_ms: None,
            resting_until_ms: None,
            strikes: 0,
            notes: BTreeMap::new(),
            stretch_percent: 100,
        })
    });
    let pages = work.pages.values().filter_map(|row| {
        let page = &row.page;
        let member = work.members.get(&(page.site, page.id));
        if !row.is_changed && member.is_none_or(|member| !member.is_changed) {
            return None;
        }
        let is_new = page.visited_s.is_none() && page.due_s.is_some();
        Some(ChangedPage {
            nth: page.nth,
            page: is_new.then(|| (page.clone(), row.pulled.is_some())),
            member: member.map(|member| (member.depth, member.hops)),
            is_entered: work.entered.contains(&page.id),
        })
    });
    let (outside, pages) = (work.t.head.outside, pages.collect());
    Kept { outside, new_servers: new_servers.collect(), pages }
}

fn digest(changes: &[Change]) -> [u8; 32] {
    *blake3::hash(format!("{changes:?}").as_bytes()).as_bytes()
}

fn make(
    work: &mut Work<'_, '_>,
    changes: &[Change],
    known: &Known,
) -> Step<(Committed, Vec<Fresh>, Kept)> {
    let (mut committed, mut fresh) = (Committed::default(), Vec::new());
    for change in changes {
        work.apply(change, known, &mut fresh, &mut committed)?;
    }
    let kept = kept(work);
    work.finish(&mut committed);
    for change in changes {
        // A round may end in the same commit as its last visits: counts go first.
        if let Change::RoundEnd(end) = change {
            joint::end_round(work, end);
        }
    }
    Ok((committed, fresh, kept))
}
