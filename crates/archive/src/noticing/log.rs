//! The log of visits, followed as it grows. A shared archive has one for each partition.

use std::sync::Arc;

use nenrin_state::{State, StateError, VisitFilter, VisitRow};

/// Visits read at once, and how often in a row: the rest is not told.
const PORTION: usize = 250;
const MAX_PORTIONS: usize = 80;

/// How far the logs were read.
#[derive(Default)]
pub(crate) struct Log {
    /// The partitions; none where the archive has only one.
    partitions: Vec<Arc<dyn State>>,
    /// The last visit seen in each.
    last: Vec<Option<i64>>,
}

/// What is new in the logs.
#[derive(Default)]
pub(crate) struct Fresh {
    /// Oldest first in each partition.
    pub(crate) visits: Vec<VisitRow>,
    /// Nothing was read before.
    pub(crate) is_first: bool,
    /// There are more than were read.
    pub(crate) is_cut: bool,
}

impl Log {
    pub(crate) fn of(partitions: Vec<Arc<dyn State>>) -> Self {
        Self { partitions, last: Vec::new() }
    }

    /// What came since the last look.
    pub(crate) fn fresh(&mut self, state: &dyn State) -> Result<Fresh, StateError> {
        let mut fresh = Fresh { is_first: self.last.is_empty(), ..Fresh::default() };
        let logs: Vec<&dyn State> = match self.partitions.as_slice() {
            [] => vec![state],
            all => all.iter().map(|one| &**one).collect(),
        };
        self.last.resize(logs.len(), None);
        for (log, last) in logs.into_iter().zip(&mut self.last) {
            read(log, last, &mut fresh)?;
        }
        Ok(fresh)
    }
}

fn read(log: &dyn State, last: &mut Option<i64>, fresh: &mut Fresh) -> Result<(), StateError> {
    let Some(seen) = *last else {
        let newest = log.visits(VisitFilter { limit: 1, ..VisitFilter::default() })?;
        *last = Some(newest.first().map_or(0, |visit| visit.id));
        return Ok(());
    };
    let (mut new, mut before) = (Vec::new(), None);
    for portions in 1.. {
        let portion =
            log.visits(VisitFilter { before, limit: PORTION, ..VisitFilter::default() })?;
        let is_last = portion.len() < PORTION || portion.iter().any(|visit| visit.id <= seen);
        before = portion.last().map(|visit| visit.id);
        new.extend(portion.into_iter().filter(|visit| visit.id > seen));
        if is_last {
            break;
        }
        if portions == MAX_PORTIONS {
            fresh.is_cut = true;
            break;
        }
    }
    *last = new.first().map(|newest| newest.id).or(*last);
    fresh.visits.extend(new.into_iter().rev());
    Ok(())
}
