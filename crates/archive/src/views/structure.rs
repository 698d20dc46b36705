//! A site's structure for people, as rounds that choose their pages last knew it.

use nenrin_structure::{AutoOptions, MappedSite, RoundsBy, StructureView, Why};
use nenrin_urls::CanonicalUrl;
use serde::Serialize;

use nenrin_state::{Outcome, PageId, Round, RoundId, Site, SiteId, State, StateError};

use crate::{counted, readable_date};

/// Rounds looked through for the last that chose its pages.
const ROUNDS_LOOKED_AT: usize = 20;

/// What a site's rounds know of its structure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SiteStructure {
    /// Which pages a round visits.
    pub rounds_by: RoundsBy,
    /// Tops, members and families; none where the site has more pages than a graph takes.
    pub structure: Option<StructureView>,
    /// The last round that chose its pages.
    pub last_round: Option<ChosenRound>,
}

/// A finished round that chose its pages.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChosenRound {
    /// Its number.
    pub round: RoundId,
    /// When it began.
    pub started_s: i64,
    /// Visits made.
    pub visits: u64,
    /// Visits that found new content.
    pub changed: u64,
    /// Pages left out.
    pub skipped: u64,
    /// The same by reason.
    pub reasons: Vec<SkippedPages>,
}

/// Pages left out for one reason.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SkippedPages {
    /// The reason.
    pub why: Why,
    /// How many.
    pub pages: u64,
    /// Some of them.
    pub examples: Vec<CanonicalUrl>,
}

/// A site's structure, and what its last round left out.
pub fn site_structure(state: &dyn State, site: &Site) -> Result<SiteStructure, StateError> {
    let pages = state.site_pages(site.id)?;
    let map = pages.map(|page| page.outcome != Some(Outcome::Gone));
    let rounds_by = site.conditions.rounds_by;
    let mapped = MappedSite::new(map, &pages.kept, &AutoOptions::default()).ok();
    Ok(SiteStructure {
        rounds_by,
        structure: mapped.map(|mapped| mapped.view(rounds_by)),
        last_round: last_chosen(state, site.id)?,
    })
}

fn last_chosen(state: &dyn State, site: SiteId) -> Result<Option<ChosenRound>, StateError> {
    for round in state.rounds(Some(site), ROUNDS_LOOKED_AT)? {
        if let Some(skips) = state.skips(round.id)? {
            let mut reasons = Vec::new();
            for left in skips.reasons {
                let urls = left.examples.iter().map(|&key| state.url_of(PageId(key)));
                let examples = urls.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
                reasons.push(SkippedPages { why: left.why, pages: left.pages, examples });
            }
            return Ok(Some(chosen(&round, reasons)));
        }
    }
    Ok(None)
}

fn chosen(round: &Round, reasons: Vec<SkippedPages>) -> ChosenRound {
    ChosenRound {
        round: round.id,
        started_s: round.started_s,
        visits: round.counts.visits(),
        changed: round.counts.changed,
        skipped: round.counts.skipped,
        reasons,
    }
}

impl ChosenRound {
    /// What it visited, and what it left out and why, a line each.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "round {} of {}: {}, {} changed, {} left out",
            self.round,
            readable_date(self.started_s),
            counted(self.visits, "visit"),
            self.changed,
            counted(self.skipped, "page")
        )];
        for reason in &self.reasons {
            lines.push(format!("  {}: {}", counted(reason.pages, "page"), reason.why));
            lines.extend(reason.examples.iter().map(|url| format!("    {url}")));
        }
        lines
    }
}
