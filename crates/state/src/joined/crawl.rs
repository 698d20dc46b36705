//! What a reader may ask of the crawl, and imports. What belongs to the holder of a partition alone is
//! refused.

use super::{JoinedState, partition_of};
use crate::{
    Change, Committed, CrawlState, Division, DueLoad, DuePage, DueQuery, Epoch, FoundPage, Nth,
    NumberedMail, PageId, PageLinks, PartitionId, PartitionState, Partitioning, Received, Round,
    ServerId, ServerRecord, SiteId, SitePages, StateError, VisitedPage,
};

impl JoinedState {
    /// The partition that a change belongs to; `None` if only its holder may make it.
    fn partition_of_change(&self, change: &Change) -> Option<usize> {
        match change {
            Change::Visit(visit) => Some(match &visit.page {
                VisitedPage::Known(page) => partition_of(*page) % self.parts.len(),
                VisitedPage::Url(found) => self.partitioning.of(&found.url.server()).0 as usize,
            }),
            Change::Lessons(lessons) => Some(partition_of(lessons.page) % self.parts.len()),
            Change::Due { page, .. } | Change::Links { page, .. } | Change::Blocks { page, .. } => {
                Some(partition_of(*page) % self.parts.len())
            }
            Change::PullForward(pull) => Some(partition_of(pull.page) % self.parts.len()),
            Change::Robots { server, .. } => Some(server.0 as usize % self.parts.len()),
            Change::Found(_) | Change::Announced(_) | Change::Shared { .. } => Some(0),
            _ => None,
        }
    }
}

impl CrawlState for JoinedState {
    /// Commits to each partition what belongs to it, one after the other.
    fn commit(&self, changes: &[Change]) -> Result<Committed, StateError> {
        let places: Option<Vec<usize>> =
            changes.iter().map(|change| self.partition_of_change(change)).collect();
        let places = places.ok_or(StateError::NotHeld)?;
        let mut all = Committed::default();
        for (number, part) in self.parts.iter().enumerate() {
            let own = changes.iter().zip(&places).filter(|(_, at)| **at == number);
            let own: Vec<Change> = own.map(|(change, _)| change.clone()).collect();
            if own.is_empty() {
                continue;
            }
            let committed = part.commit(&own)?;
            all.new_pages.extend(committed.new_pages);
            all.linked.extend(committed.linked);
            all.adopted += committed.adopted;
        }
        Ok(all)
    }

    fn begin_round(&self, _: SiteId, _: i64) -> Result<Round, StateError> {
        Err(StateError::NotHeld)
    }

    fn load_round(
        &self,
        _: &Round,
        _: Option<PageId>,
        _: usize,
    ) -> Result<Vec<DuePage>, StateError> {
        Err(StateError::NotHeld)
    }

    fn load_pages(&self, _: &Round, _: &[PageId]) -> Result<Vec<DuePage>, StateError> {
        Err(StateError::NotHeld)
    }

    /// The first of every partition; no cursor leads on.
    fn load_due(&self, query: &DueQuery) -> Result<DueLoad, StateError> {
        let mut all = DueLoad::default();
        for part in &self.parts {
            let load = part.load_due(query)?;
            all.pages.extend(load.pages);
            all.more.extend(load.more);
        }
        all.pages.sort_by_key(|due| due.page.due_s);
        all.pages.truncate(query.limit);
        Ok(all)
    }

    fn load_found(&self, _: &[Nth]) -> Result<Vec<DuePage>, StateError> {
        Err(StateError::NotHeld)
    }

    fn found(&self, _: Nth, _: usize) -> Result<Vec<FoundPage>, StateError> {
        Err(StateError::NotHeld)
    }

    fn links(&self, _: &[Nth]) -> Result<Vec<PageLinks>, StateError> {
        Err(StateError::NotHeld)
    }

    fn order(&self) -> Result<Vec<u8>, StateError> {
        Err(StateError::NotHeld)
    }

    fn shared(&self, site: SiteId) -> Result<Vec<u8>, StateError> {
        self.first().shared(site)
    }

    fn visits_on(&self, site: SiteId, day: i64) -> Result<u64, StateError> {
        Ok(self.gather(|part| Ok(vec![part.visits_on(site, day)?]))?.into_iter().sum())
    }

    fn site_pages(&self, site: SiteId) -> Result<SitePages, StateError> {
        let mut all = SitePages::default();
        for part in &self.parts {
            let one = part.site_pages(site)?;
            let offset = all.pages.len() as u32;
            let moved = |(from, to): (u32, Vec<u32>)| {
                (from + offset, to.into_iter().map(|to| to + offset).collect())
            };
            all.links.extend(one.links.into_iter().map(moved));
            all.tops.extend(one.tops.into_iter().map(|top| top + offset));
            all.pages.extend(one.pages);
            all.servers.extend(one.servers);
            if all.rounds_s.len() < one.rounds_s.len() {
                all.rounds_s = one.rounds_s;
            }
            if all.kept.is_empty() {
                (all.kept, all.kept_of_all) = (one.kept, one.kept_of_all);
            }
        }
        Ok(all)
    }

    fn servers(&self, ids: &[ServerId]) -> Result<Vec<ServerRecord>, StateError> {
        let found = self.gather(|part| part.servers(ids))?;
        let find = |id: &ServerId| found.iter().find(|record| record.id == *id).cloned();
        Ok(ids.iter().filter_map(find).collect())
    }

    fn bucket_s(&self) -> i64 {
        self.first().bucket_s()
    }
}

impl PartitionState for JoinedState {
    fn partition(&self) -> (Partitioning, PartitionId) {
        (self.partitioning, PartitionId(0))
    }

    fn take_over(&self) -> Result<Epoch, StateError> {
        Err(StateError::NotHeld)
    }

    fn commit_under(&self, _: Epoch, _: &[Change]) -> Result<Committed, StateError> {
        Err(StateError::NotHeld)
    }

    fn outbox(&self, _: PartitionId, _: u64, _: usize) -> Result<Vec<NumberedMail>, StateError> {
        Err(StateError::NotHeld)
    }

    fn mail_read(&self, _: PartitionId) -> Result<u64, StateError> {
        Err(StateError::NotHeld)
    }

    fn received(&self) -> Result<Vec<Received>, StateError> {
        Err(StateError::NotHeld)
    }

    fn may_begin_round(&self, _: SiteId) -> Result<bool, StateError> {
        Err(StateError::NotHeld)
    }

    fn division(&self, site: Option<SiteId>, day: i64) -> Result<Option<Division>, StateError> {
        self.first().division(site, day)
    }
}
