//! Sites as lines and rows for people, and as JSON for programs.

use nenrin_lang::{Table, readable_bytes};
use nenrin_revisit::{CollectingWindow, RevisitSettings};
use nenrin_state::{RobotsPolicy, Schedule, ScheduleBy, Site};
use nenrin_structure::RoundsBy;
use nenrin_urls::CanonicalUrl;
use serde_json::{Value, json};

use crate::{Reached, Span, readable_date, rfc3339};

/// A site, for programs.
pub fn site_json(site: &Site) -> Value {
    json!({
        "site": site.id, "name": site.name, "conditions": site.conditions,
        "created": rfc3339(site.created_s), "collected": site.collected_s.map(rfc3339),
        "paused": site.paused, "removed": site.removed, "counts": site.counts,
    })
}

/// Sites, one a row; `reached` are the quotas that are reached.
pub fn sites_table(sites: &[Site], reached: &[Reached]) -> Table {
    let mut table = Table::new(&[
        "no",
        "site",
        "schedule",
        "pages",
        "visits",
        "versions",
        "raw",
        "last round",
        "",
    ]);
    for site in sites {
        table.row(vec![
            site.id.0.to_string(),
            site.name.clone(),
            schedule_text(&site.conditions.schedule),
            site.counts.pages.to_string(),
            site.counts.visits.to_string(),
            site.counts.versions.to_string(),
            readable_bytes(site.counts.raw_bytes),
            site.collected_s.map_or("never".to_owned(), readable_date),
            why_paused(site, reached),
        ]);
    }
    table
}

/// Why a site is not collected now, if it is not.
fn why_paused(site: &Site, reached: &[Reached]) -> String {
    let size = |reached: &Reached| {
        format!("{} of {}", readable_bytes(reached.bytes), readable_bytes(reached.quota_bytes))
    };
    let of_site = reached.iter().find(|r| r.site.as_ref().is_some_and(|(id, _)| *id == site.id));
    let of_archive = reached.iter().find(|reached| reached.site.is_none());
    match (site.paused, of_site, of_archive) {
        (true, _, _) => "paused".to_owned(),
        (false, Some(reached), _) => format!("paused: quota reached, {}", size(reached)),
        (false, None, Some(reached)) => {
            format!("paused: the archive's quota is reached, {}", size(reached))
        }
        (false, None, None) => String::new(),
    }
}

/// A site and its conditions, a line each. No schedule is finer than `bucket_s`, the archive's buckets.
pub fn site_lines(site: &Site, bucket_s: i64) -> Vec<String> {
    let conditions = &site.conditions;
    let paused = match (site.removed, site.paused) {
        (Some(removal), _) => format!("  (removed: {})", removal.as_str()),
        (None, true) => "  (paused)".to_owned(),
        (None, false) => String::new(),
    };
    let mut lines = vec![format!("site {}: {}{paused}", site.id.0, site.name)];
    let tops: Vec<&str> = conditions.tops.iter().map(CanonicalUrl::as_str).collect();
    let robots = match &conditions.robots {
        RobotsPolicy::Obey => "obeyed".to_owned(),
        RobotsPolicy::Ignore { reason } => format!("not obeyed, because: {reason}"),
    };
    let paced = match conditions.schedule.continuous() {
        Some(settings) => ("intervals", intervals_text(settings, bucket_s)),
        None => ("rounds", rounds_text(conditions.rounds_by)),
    };
    for (name, value) in [
        ("top pages", tops.join("\n             ")),
        ("scope", conditions.scope.to_string()),
        ("depth", conditions.depth.to_string()),
        ("collected", schedule_text(&conditions.schedule)),
        paced,
        ("hours", hours_text(&conditions.windows)),
        ("page limit", conditions.max_pages.map_or("none".to_owned(), |n| n.to_string())),
        (
            "delay",
            conditions.delay_ms.map_or("the archive's".to_owned(), |ms| {
                Span(std::time::Duration::from_millis(ms)).to_string()
            }),
        ),
        ("embeds", if conditions.embeds { "from anywhere" } else { "in scope only" }.to_owned()),
        ("robots.txt", robots),
        (
            "addresses",
            if conditions.allow_private { "public, its own hosts also private" } else { "public" }
                .to_owned(),
        ),
        (
            "quota",
            match conditions.keeping.quota_bytes {
                Some(0) => "none".to_owned(),
                Some(bytes) => readable_bytes(bytes),
                None => "the archive's".to_owned(),
            },
        ),
        (
            "pruning",
            match &conditions.keeping.prune {
                None => "every version is kept".to_owned(),
                Some(rule) => rule.to_string(),
            },
        ),
        (
            "signals",
            if conditions.hints.signals { "sitemaps and feeds" } else { "none" }.to_owned(),
        ),
        (
            "changes",
            match conditions.hints.schedule_by {
                ScheduleBy::Any => "every byte counts for the schedule",
                ScheduleBy::Significant => "only significant ones count for the schedule",
            }
            .to_owned(),
        ),
    ] {
        lines.push(format!("  {name:<11}{value}"));
    }
    lines
}

fn schedule_text(schedule: &Schedule) -> String {
    match schedule {
        Schedule::Manual => "on request".to_owned(),
        Schedule::Rounds { period_s } => format!("every {}", Span::secs(*period_s as u64)),
        Schedule::Continuous(settings) => {
            format!("each page on its own schedule, {}", settings.policy)
        }
    }
}

/// The bounds that hold, whatever was asked for: no schedule is finer than the archive's buckets.
fn intervals_text(settings: &RevisitSettings, bucket_s: i64) -> String {
    let min_s = settings.min_s.unwrap_or(0).max(bucket_s).max(1);
    let span = |seconds: i64| Span::secs(seconds.unsigned_abs());
    format!("from {} to {}", span(min_s), span(settings.max_s.max(min_s)))
}

fn rounds_text(by: RoundsBy) -> String {
    match by {
        RoundsBy::All => "visit every page".to_owned(),
        by => format!("choose pages by {by}"),
    }
}

fn hours_text(windows: &[CollectingWindow]) -> String {
    match windows {
        [] => "always".to_owned(),
        windows => windows.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
    }
}
