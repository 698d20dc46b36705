//! Opens captures and takes them in.

use nenrin_state::{PageRecord, SiteId, VisitCommit};
use nenrin_urls::CanonicalUrl;

use super::{
    capture::{FoundCapture, RawCapture},
    found::Found,
    memory::MemoryBudget,
};
use crate::{
    Archive, Result,
    ingest::{Intake, Keep, Lessons, Taken},
};

/// What the committing thread receives.
pub(crate) enum Stored {
    Visit(Box<VisitCommit>),
    /// The archive had it already.
    Known,
    Found(Found),
    /// What visits teach that were stored.
    Lessons(Box<Lessons>),
}

impl From<Taken> for Stored {
    fn from(taken: Taken) -> Self {
        match taken {
            Taken::Visit(visit) => Self::Visit(visit),
            Taken::Known => Self::Known,
        }
    }
}

/// Stores captures. All of one URL go to the same one, so that each finds the one before it.
pub(crate) struct Storer<'a> {
    archive: &'a Archive,
    /// None until the site is known.
    intake: Option<Intake<'a>>,
}

impl<'a> Storer<'a> {
    pub(crate) fn new(archive: &'a Archive) -> Self {
        Self { archive, intake: None }
    }

    /// The way into a site; all captures of an import go to the same.
    pub(crate) fn intake(&mut self, site: SiteId) -> Result<&mut Intake<'a>> {
        let intake = match self.intake.take() {
            Some(intake) => intake,
            None => Intake::new(self.archive, site, Keep::Everything)?,
        };
        Ok(self.intake.insert(intake))
    }

    /// What the visits teach that were taken in.
    pub(crate) fn lessons(&mut self) -> Lessons {
        let intake = self.intake.as_mut();
        intake.map(|intake| std::mem::take(&mut intake.lessons)).unwrap_or_default()
    }

    /// Opens and stores captures that came together.
    pub(crate) fn captures(
        &mut self,
        site: SiteId,
        captures: Vec<RawCapture>,
        memory: &MemoryBudget,
        open: impl Fn(RawCapture) -> Result<FoundCapture, String>,
    ) -> Vec<Result<Stored>> {
        let urls: Vec<&CanonicalUrl> = captures.iter().map(|capture| &capture.url).collect();
        let pages = match self.archive.state().pages_of(&urls) {
            Ok(pages) => pages,
            Err(error) => return vec![Err(error.into())],
        };
        let mut buffers = Vec::with_capacity(2 * captures.len());
        let mut outcomes = Vec::with_capacity(captures.len());
        let bytes = captures.iter().map(RawCapture::bytes).sum();
        for (capture, page) in captures.into_iter().zip(pages) {
            outcomes.push(match open(capture) {
                Ok(capture) => {
                    let outcome = self.capture(site, &capture, page);
                    buffers.extend(capture.into_buffers());
                    outcome
                }
                Err(damage) => Ok(Stored::Found(Found::Damaged(damage))),
            });
        }
        memory.give_back(bytes);
        memory.give_buffers(buffers);
        outcomes
    }

    fn capture(
        &mut self,
        site: SiteId,
        capture: &FoundCapture,
        page: Option<PageRecord>,
    ) -> Result<Stored> {
        Ok(self.intake(site)?.take(&capture.as_capture(), page)?.into())
    }
}
