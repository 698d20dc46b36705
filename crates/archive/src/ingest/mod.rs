//! Taking in: mirrors, WARC files and programs hand over captures, which are judged, stored and
//! committed in one way.

mod capture;
mod exchange;
mod intake;
mod lessons;
mod recent;
mod settle;

use nenrin_state::{Change, Outcome, PageRecord, RoundCounts, RoundId, SiteId, VisitCommit};

pub use capture::Capture;
pub(crate) use intake::{Intake, Keep, Taken};
pub(crate) use lessons::{Contents, Lesson, Lessons};
pub(crate) use recent::{REMEMBERED, move_on};

use crate::{Archive, Result};

/// Captures that are made durable and committed together.
const BATCH: usize = 500;

/// Captures of one site on their way into the archive.
///
/// ```
/// use nenrin_archive::{Archive, Capture, OpenOptions};
/// use nenrin_state::{Outcome, SiteConditions};
/// use nenrin_urls::CanonicalUrl;
///
/// # let folder = tempfile::tempdir()?;
/// let archive = Archive::open(folder.path(), &OpenOptions::writing())?;
/// let url = CanonicalUrl::parse("https://example.com/")?;
/// let site = archive.state().add_site("example", &SiteConditions::new(vec![url.clone()]), 0)?;
///
/// let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
/// let mut ingest = archive.ingest(site.id)?;
/// assert_eq!(ingest.take(&Capture::new(&url, 100, 200, head, b"<p>one"))?, Outcome::Changed);
/// assert_eq!(ingest.take(&Capture::new(&url, 200, 200, head, b"<p>one"))?, Outcome::Same);
/// assert_eq!(ingest.take(&Capture::new(&url, 300, 200, head, b"<p>two"))?, Outcome::Changed);
/// assert_eq!(ingest.finish()?.changed, 2);
///
/// let page = archive.as_of("https://example.com/", 250)?.expect("it was there");
/// assert_eq!(page.body(), b"<p>one");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Ingest<'a> {
    archive: &'a Archive,
    site: SiteId,
    intake: Intake<'a>,
    changes: Vec<Change>,
    counts: RoundCounts,
}

impl Archive {
    /// Takes captures of a site in. Those with new content become versions.
    pub fn ingest(&self, site: SiteId) -> Result<Ingest<'_>> {
        let intake = Intake::new(self, site, Keep::Changes)?;
        let counts = RoundCounts::default();
        Ok(Ingest { archive: self, site, intake, changes: Vec::new(), counts })
    }
}

impl Ingest<'_> {
    /// The visits belong to this round.
    pub(crate) fn in_round(mut self, round: RoundId) -> Self {
        self.intake.round = Some(round);
        self
    }

    /// No page is given a time for its next visit.
    pub(crate) fn without_times(mut self) -> Self {
        self.intake.is_continuous = false;
        self
    }

    /// Takes one capture in and returns what it means for its page.
    pub fn take(&mut self, capture: &Capture<'_>) -> Result<Outcome> {
        let page = self.archive.state().page(capture.url)?;
        self.take_of(capture, page)
    }

    /// The same, where it was looked up what the state knows of the page.
    pub(crate) fn take_of(
        &mut self,
        capture: &Capture<'_>,
        page: Option<PageRecord>,
    ) -> Result<Outcome> {
        match self.intake.take(capture, page)? {
            Taken::Visit(visit) => self.add(*visit),
            Taken::Known => Ok(Outcome::Same),
        }
    }

    /// The page was looked for and is not there any more.
    pub(crate) fn missing(&mut self, page: &PageRecord, at_s: i64) -> Result<Outcome> {
        let visit = self.intake.missing(page, at_s);
        self.add(visit)
    }

    /// A version that was stored for a visit that the log has already.
    pub(crate) fn add_found(&mut self, visit: VisitCommit) -> Result<()> {
        self.changes.push(Change::Visit(Box::new(visit)));
        match self.changes.len() >= BATCH {
            true => self.commit(),
            false => Ok(()),
        }
    }

    fn add(&mut self, visit: VisitCommit) -> Result<Outcome> {
        let outcome = visit.outcome;
        self.counts.count(&visit);
        self.changes.push(Change::Visit(Box::new(visit)));
        if self.changes.len() >= BATCH {
            self.commit()?;
        }
        Ok(outcome)
    }

    /// Makes durable what was stored, then commits its visits.
    pub(crate) fn commit(&mut self) -> Result<()> {
        let changes = std::mem::take(&mut self.changes);
        if changes.is_empty() {
            return Ok(());
        }
        self.archive.store().sync()?;
        self.archive.commit(&changes)?;
        Ok(())
    }

    /// Commits what is left, learns from all of it as from visits of our own, and returns what was
    /// found.
    pub fn finish(mut self) -> Result<RoundCounts> {
        self.commit()?;
        let lessons = std::mem::take(&mut self.intake.lessons);
        self.archive.learn(self.site, lessons, Contents::Read)?;
        self.archive.settle_order()?;
        Ok(self.counts)
    }
}

#[cfg(test)]
mod tests;
