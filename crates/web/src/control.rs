use nenrin_state::{Removal, SiteId};
use nenrin_urls::CanonicalUrl;
use serde::Serialize;

use crate::Metric;

/// What the interface may ask the running program to do. Calls come from threads that may block;
/// only [`Control::preview`] may take longer than a moment.
pub trait Control: Send + Sync {
    /// Whether this process collects; if not, the buttons for it are not shown.
    fn collects(&self) -> bool;

    /// Begins a round of a site now, or goes on with the one under way.
    fn collect_now(&self, site: SiteId) -> Result<(), ControlError>;

    /// Tells that sites were added, changed, paused or resumed in the state.
    fn sites_changed(&self);

    /// What is being fetched at this moment.
    fn under_way(&self) -> Vec<UnderWay>;

    /// Starts the demo website and registers it.
    fn start_demo(&self) -> Result<SiteId, ControlError>;

    /// Figures of its own for `/metrics`.
    fn metrics(&self) -> Vec<Metric> {
        Vec::new()
    }

    /// The removals that this program can carry out; the others are shown as not possible.
    fn removals(&self) -> &[Removal] {
        &[]
    }

    /// Removes a site in one of three ways. Must be logged with its reason.
    fn remove(&self, site: SiteId, removal: Removal, reason: &str) -> Result<(), ControlError> {
        let _ = (site, removal, reason);
        Err(ControlError::NotRunningHere)
    }

    /// Writes a site's versions and visits from one time to another as one WARC file (gzip), while
    /// someone reads it. Takes as long as it takes.
    fn export_warc(
        &self,
        site: SiteId,
        (from_s, to_s): (i64, i64),
        out: Box<dyn std::io::Write + Send>,
    ) -> Result<(), ControlError> {
        let _ = (site, from_s, to_s, out);
        Err(ControlError::NotRunningHere)
    }

    /// Looks at a site before it is registered: a few polite requests, with an end.
    fn preview(&self, top: &CanonicalUrl, allow_private: bool) -> Result<Preview, ControlError>;
}

/// A request that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnderWay {
    /// The page asked for.
    pub url: String,
    /// Its server.
    pub server: String,
    /// Since when.
    pub since_s: i64,
    /// What is happening: `connecting`, `receiving`, `storing`.
    pub phase: &'static str,
}

/// What a first look at a site found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Preview {
    /// The top page, in a sentence: its status and type, or why it did not answer.
    pub top: String,
    /// What robots.txt says about it, in a sentence.
    pub robots: String,
    /// What the sitemap says, in a sentence.
    pub sitemap: String,
    /// The first links of the top page that lie in the site.
    pub links: Vec<String>,
    /// How many pages the site seems to have.
    pub estimated_pages: Option<u64>,
    /// How much room they would take.
    pub estimated_bytes: Option<u64>,
}

/// Why the running program does not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// This process only serves.
    #[error("nothing is collected in this process; start `nenrin run` instead of `nenrin serve`")]
    NotRunningHere,
    /// It was tried and failed.
    #[error("{reason}")]
    Failed {
        /// Why, for the person who asked.
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

    fn preview(&self, _: &CanonicalUrl, _: bool) -> Result<Preview, ControlError> {
        Err(ControlError::NotRunningHere)
    }
}
