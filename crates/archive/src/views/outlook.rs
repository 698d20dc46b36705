//! What the schedules of a site's pages are expected to bring, and why a page is due.

use std::collections::BTreeMap;

use nenrin_lang::{Hint, Lang};
use nenrin_revisit::{Forecast, Missed, PageRevisitScheduler};
use nenrin_state::{PageFilter, PageRecord, Site, SiteId, State, StateError};
use serde::Serialize;

use super::due_by::DueBy;

/// Pages that a forecast is made from at most; the rest is taken to be alike.
const FORECAST_PAGES: usize = 20_000;
const PORTION: usize = 10_000;
/// Servers named that cannot keep up.
const STRETCHED_SHOWN: usize = 1_000;

/// What a site's schedule is expected to bring, where every page has its own.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outlook {
    /// The revisit policy.
    pub policy: String,
    /// The site's budget.
    pub visits_per_day: Option<u64>,
    /// Bounds for some paths.
    pub paths: Vec<String>,
    /// Visits per day and coverage at half, the same and double the budget, or the present spending
    /// where there is no budget.
    pub forecast: Forecast,
    /// Versions that came and went between visits so far.
    pub missed: Missed,
    /// Servers that cannot keep up, and how far their pages' intervals are stretched, in percent.
    pub stretched: Vec<(String, u32)>,
}

/// The scheduler of a site as the collecting process last kept it, to look at.
fn scheduler(state: &dyn State, site: &Site) -> Result<Option<PageRevisitScheduler>, StateError> {
    let Some(settings) = site.conditions.schedule.continuous() else { return Ok(None) };
    let mut scheduler = PageRevisitScheduler::new(settings.clone(), state.bucket_s());
    // What is damaged, or another policy's, is learnt again.
    let _ = scheduler.restore(&state.shared(site.id)?);
    Ok(Some(scheduler))
}

/// What to expect of a site's schedule, if its pages have their own.
pub fn outlook(state: &dyn State, site: &Site) -> Result<Option<Outlook>, StateError> {
    let Some(scheduler) = scheduler(state, site)? else { return Ok(None) };
    let settings = scheduler.settings();
    let mut histories = Vec::new();
    let mut after = None;
    while histories.len() < FORECAST_PAGES {
        let pages = state.pages(PageFilter { site: Some(site.id), after, limit: PORTION })?;
        let Some(last) = pages.last() else { break };
        after = Some(last.id);
        histories.extend(pages.into_iter().map(|page| page.history));
    }
    let servers = state.site_servers(site.id, STRETCHED_SHOWN)?;
    let stretched = state
        .stretched(STRETCHED_SHOWN)?
        .into_iter()
        .filter(|(record, _)| servers.iter().any(|server| server.id == record.id))
        .map(|(record, percent)| (record.server.to_string(), percent))
        .collect();
    let mut forecast = scheduler.forecast(&histories, site.counts.pages);
    let alike = site.counts.pages as f64 / histories.len().max(1) as f64;
    for point in &mut forecast.points {
        point.visits_per_day *= alike.max(1.0);
    }
    Ok(Some(Outlook {
        policy: settings.policy.to_string(),
        visits_per_day: settings.visits_per_day,
        paths: settings.paths.iter().map(ToString::to_string).collect(),
        forecast,
        missed: scheduler.missed(&histories, site.counts.pages),
        stretched,
    }))
}

/// Explains why pages are due, with the schedulers of their sites.
pub struct Reasons<'a> {
    state: &'a dyn State,
    schedulers: BTreeMap<SiteId, PageRevisitScheduler>,
}

/// Why a page is due, and what is believed of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DueReason {
    /// What brought its visit nearer, if anything did.
    pub hint: Option<Hint>,
    /// Why it would be due without that.
    pub why: DueBy,
    /// Estimated changes per day.
    pub rate_per_day: Option<f64>,
    /// How sure that is, from 0 to 1.
    pub confidence: Option<f64>,
    /// Versions that came and went between visits.
    pub missed: Option<Missed>,
}

impl DueReason {
    /// The changes that were seen, and those that were missed if that is at least one.
    pub fn changes(&self, seen: u32) -> String {
        match self.missed.map(|missed| missed.versions.round()).filter(|missed| *missed >= 1.0) {
            Some(missed) => format!("{seen} (+{missed} missed)"),
            None => seen.to_string(),
        }
    }

    /// All of it in words.
    pub fn text(&self, lang: Lang) -> String {
        let why = self.why.text(lang);
        match &self.hint {
            Some(hint) => hint.text(lang, &why),
            None => why,
        }
    }
}

impl<'a> Reasons<'a> {
    /// With the schedulers of all sites as they were last kept.
    pub fn new(state: &'a dyn State) -> Result<Self, StateError> {
        let mut schedulers = BTreeMap::new();
        for site in state.sites()? {
            if let Some(scheduler) = scheduler(state, &site)? {
                schedulers.insert(site.id, scheduler);
            }
        }
        Ok(Self { state, schedulers })
    }

    /// With the scheduler of one site.
    pub fn of_site(state: &'a dyn State, site: SiteId) -> Result<Self, StateError> {
        let mut schedulers = BTreeMap::new();
        if let Some(site) = state.sites()?.into_iter().find(|one| one.id == site)
            && let Some(scheduler) = scheduler(state, &site)?
        {
            schedulers.insert(site.id, scheduler);
        }
        Ok(Self { state, schedulers })
    }

    /// Why a page is due when it is.
    pub fn of(&self, page: &PageRecord) -> Result<DueReason, StateError> {
        let own = self.schedulers.get(&page.site).filter(|_| page.due_s.is_some());
        let Some(scheduler) = own else {
            let (rate_per_day, confidence, missed) = (None, None, None);
            let why = DueBy::Round;
            return Ok(DueReason { hint: None, why, rate_per_day, confidence, missed });
        };
        let why = scheduler.why(&page.known());
        let rate = why.rate();
        Ok(DueReason {
            hint: self.state.pulled(page.id)?,
            rate_per_day: rate.map(|(rate, _)| rate),
            confidence: rate.map(|(_, confidence)| confidence),
            missed: why.missed(),
            why: DueBy::Schedule(why),
        })
    }
}

impl Outlook {
    /// What the schedule is expected to bring, for a terminal.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut row = |name: &str, value: String| lines.push(format!("  {name:<11}{value}"));
        row(
            "budget",
            self.visits_per_day.map_or("none of its own".into(), |n| format!("{n} visits a day")),
        );
        self.paths.iter().for_each(|rule| row("paths", rule.clone()));
        row("missed", self.missed.to_string());
        if self.forecast.pages == 0 {
            row("forecast", "none yet: it is made from the pages' visits".to_owned());
        }
        for point in self.forecast.points.iter().filter(|_| self.forecast.pages > 0) {
            let has_budget = self.visits_per_day.is_some();
            let what = match point.factor {
                factor if factor < 1.0 && has_budget => "half the budget",
                factor if factor < 1.0 => "half as many visits",
                factor if factor > 1.0 && has_budget => "twice the budget",
                factor if factor > 1.0 => "twice as many visits",
                _ if has_budget => "this budget",
                _ => "as now",
            };
            let (visits, coverage) = (point.visits_per_day, point.coverage * 100.0);
            // Otherwise visits that are allowed and not needed would look like a mistake.
            let allowed = self.visits_per_day.map(|budget| budget as f64 * point.factor);
            let rest = match allowed {
                Some(allowed) if visits < 0.9 * allowed => "; the pages ask for no more",
                _ => "",
            };
            let digits = if visits < 10.0 { 1 } else { 0 };
            row(
                "forecast",
                format!(
                    "{what}: {visits:.digits$} visits a day get {coverage:.0}% of the versions{rest}"
                ),
            );
        }
        for (server, percent) in &self.stretched {
            let factor = f64::from(*percent) / 100.0;
            row("overflow", format!("{server} cannot keep up: intervals × {factor:.2}"));
        }
        lines
    }
}
