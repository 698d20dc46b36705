use std::path::Path;

use nenrin_archive::{Download, Metric, preview::SitePreview};
use nenrin_state::{Removal, SiteId};
use nenrin_urls::CanonicalUrl;
use serde::Serialize;

/// What the interface may request from the running program. Calls come from threads that may block;
/// only [`Control::preview`], [`Control::test_mail`], [`Control::download`] and
/// [`Control::export_warc`] may take long.
pub trait Control: Send + Sync {
    /// Whether this process collects; if not, the buttons for it are hidden.
    fn collects(&self) -> bool;

    /// Begins a round of a site now, or continues the current one.
    fn collect_now(&self, site: SiteId) -> Result<(), ControlError>;

    /// Reports that sites were added, changed, paused or resumed in the state.
    fn sites_changed(&self);

    /// The requests under way.
    fn under_way(&self) -> Vec<UnderWay>;

    /// Who is at work on an archive that several workers share, and what waits in its partitions.
    fn workers(&self) -> Vec<String> {
        Vec::new()
    }

    /// Pages that wait for their turn: a server gets one request at a time, with pauses between.
    fn queued(&self) -> usize {
        0
    }

    /// Starts the demo website and registers it.
    fn start_demo(&self) -> Result<SiteId, ControlError>;

    /// The program's own metrics for `/metrics`.
    fn metrics(&self) -> Vec<Metric> {
        Vec::new()
    }

    /// The removals that this program supports; the others are shown as not possible.
    fn removals(&self) -> &[Removal] {
        &[]
    }

    /// Removes a site in one of three ways. Must be logged with its reason.
    fn remove(&self, site: SiteId, removal: Removal, reason: &str) -> Result<(), ControlError> {
        let _ = (site, removal, reason);
        Err(ControlError::NotRunningHere)
    }

    /// Sends a test letter by the settings for e-mail. This may take long.
    fn test_mail(&self) -> Result<(), ControlError> {
        Err(ControlError::NotRunningHere)
    }

    /// Writes a site's versions and visits from one time to another as one WARC file (gzip) while
    /// it is downloaded. This may take long.
    fn export_warc(
        &self,
        site: SiteId,
        (from_s, to_s): (i64, i64),
        out: Box<dyn std::io::Write + Send>,
    ) -> Result<(), ControlError> {
        let _ = (site, from_s, to_s, out);
        Err(ControlError::NotRunningHere)
    }

    /// Writes a download to a file; progress is counted in pages. This may take long.
    fn download(
        &self,
        what: &Download,
        to: &Path,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), ControlError> {
        let _ = (what, to, progress);
        Err(ControlError::NotRunningHere)
    }

    /// Looks at a site before it is registered: a few polite requests, limited in time.
    fn preview(&self, top: &CanonicalUrl, allow_private: bool)
    -> Result<SitePreview, ControlError>;
}

/// A request under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnderWay {
    /// The page.
    pub url: String,
    /// Its server.
    pub server: String,
    /// When it began, in seconds since the epoch.
    pub since_s: i64,
    /// Its phase: `receiving`, then `reading` what came.
    pub phase: &'static str,
}

/// Why the running program did not do what was requested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// This process only serves.
    #[error("nothing is collected in this process; start `nenrin run` instead of `nenrin serve`")]
    NotRunningHere,
    /// It was tried and failed.
    #[error("{reason}")]
    Failed {
        /// The reason, for the person who asked.
        reason: String,
    },
}

/// The control of a process that only serves.
#[derive(Debug, Clone, Copy, Default)]
pub struct NotRunningHere;

impl Control for NotRunningHere {
    fn collects(&self) -> bool {
        false
    }

    fn collect_now(&self, _: SiteId) -> Result<(), ControlError> {
        Err(ControlError::NotRunningHere)
    }

    fn sites_changed(&self) {}

    fn under_way(&self) -> Vec<UnderWay> {
        Vec::new()
    }

    fn start_demo(&self) -> Result<SiteId, ControlError> {
        Err(ControlError::NotRunningHere)
    }

    fn preview(&self, _: &CanonicalUrl, _: bool) -> Result<SitePreview, ControlError> {
        Err(ControlError::NotRunningHere)
    }
}
