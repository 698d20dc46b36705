use nenrin_archive::{
    Archive, Learnt, Outlook, QuotaGuard, Reached, Span, learnt_of, readable_bytes, readable_date,
    rfc3339,
    sites::{find, name_for},
};
use nenrin_revisit::{CollectingWindow, RevisitSettings};
use nenrin_state::{
    RobotsPolicy, Schedule, ScheduleBy, Site, SiteConditions, SiteLabels, SiteWorth, State,
};
use nenrin_structure::RoundsBy;
use nenrin_urls::CanonicalUrl;
use serde_json::json;

use super::{Context, removal, structure};
use crate::{
    cli::{ConditionArgs, SiteCommand},
    clock,
    config::Config,
    exit::{Exit, usage},
    table::{Table, print_json, print_table, say},
};

/// `nenrin site …`.
pub(super) fn site(context: &Context, command: SiteCommand) -> anyhow::Result<Exit> {
    match command {
        SiteCommand::Add(args) => {
            let archive = context.open_to_write()?;
            let tops = parse_urls(&args.urls)?;
            let mut conditions = default_conditions(tops, &context.config);
            apply(&mut conditions, &args.conditions)?;
            let name = name_for(&**archive.state(), args.name, &conditions)?;
            let site = archive.state().add_site(&name, &conditions, clock::now_s())?;
            let exit = show(context, &**archive.state(), &site)?;
            if !context.json {
                say(
                    "`nenrin run` collects it and shows it in the browser; `nenrin collect` collects one round now.",
                )?;
            }
            Ok(exit)
        }
        SiteCommand::List => list(context),
        SiteCommand::Show(args) => {
            let archive = context.open_to_read()?;
            let site = find(&**archive.state(), &args.site)?;
            show_schedule(context, &archive, &site)
        }
        SiteCommand::Structure(args) => {
            let archive = context.open_to_read()?;
            let site = find(&**archive.state(), &args.site)?;
            structure::show(context, &**archive.state(), &site)
        }
        SiteCommand::Set(args) => {
            let archive = context.open_to_change()?;
            let mut site = find(&**archive.state(), &args.site)?;
            apply(&mut site.conditions, &args.conditions)?;
            archive.state().set_site(site.id, &site.conditions, clock::now_s())?;
            show(context, &**archive.state(), &site)
        }
        SiteCommand::Rename { site, name } => {
            let archive = context.open_to_change()?;
            let site = find(&**archive.state(), &site)?;
            archive.state().rename_site(site.id, name.trim())?;
            show(context, &**archive.state(), &Site { name, ..site })
        }
        SiteCommand::Pause(args) => pause(context, &args.site, true),
        SiteCommand::Resume(args) => pause(context, &args.site, false),
        SiteCommand::Remove(args) => removal::remove(context, &args),
        SiteCommand::Restore(args) => removal::restore(context, &args),
        SiteCommand::Removals => removal::list(context),
    }
}

fn pause(context: &Context, name: &str, paused: bool) -> anyhow::Result<Exit> {
    let archive = context.open_to_change()?;
    let site = find(&**archive.state(), name)?;
    if !paused {
        removal::refuse_removed(&site)?;
    }
    archive.state().pause_site(site.id, paused)?;
    show(context, &**archive.state(), &Site { paused, ..site })
}

/// The URLs that were typed; the first that is none ends it.
pub(super) fn parse_urls(urls: &[String]) -> anyhow::Result<Vec<CanonicalUrl>> {
    urls.iter().map(|url| CanonicalUrl::parse_typed(url).map_err(usage)).collect()
}

/// The conditions of a site of which only the top pages were given.
pub(super) fn default_conditions(tops: Vec<CanonicalUrl>, config: &Config) -> SiteConditions {
    SiteConditions {
        depth: config.crawl.depth,
        schedule: match config.crawl.period.as_s() {
            0 => Schedule::Continuous(RevisitSettings::default()),
            period_s => Schedule::Rounds { period_s },
        },
        ..SiteConditions::new(tops)
    }
}

/// Changes what is given.
pub(super) fn apply(conditions: &mut SiteConditions, args: &ConditionArgs) -> anyhow::Result<()> {
    if let Some(depth) = args.depth {
        conditions.depth = depth;
    }
    if let Some(scope) = args.scope {
        conditions.scope = scope;
    }
    if let Some(max_pages) = args.max_pages {
        conditions.max_pages = Some(max_pages);
    }
    if let Some(period) = args.period {
        conditions.schedule = Schedule::Rounds { period_s: period.as_s().max(1) };
    }
    if args.manual {
        conditions.schedule = Schedule::Manual;
    }
    apply_revisit(conditions, args)?;
    if !args.windows.is_empty() {
        conditions.windows = match args.windows.as_slice() {
            [only] if only == "always" => Vec::new(),
            windows => {
                windows.iter().map(|w| w.parse().map_err(usage)).collect::<Result<_, _>>()?
            }
        };
    }
    apply_choice(conditions, args)?;
    if let Some(delay) = args.delay {
        conditions.delay_ms = Some(delay.as_ms() as u64);
    }
    if let Some(embeds) = args.embeds {
        conditions.embeds = embeds;
    }
    if let Some(allow_private) = args.allow_private {
        conditions.allow_private = allow_private;
    }
    if let Some(reason) = &args.ignore_robots {
        conditions.robots = RobotsPolicy::Ignore { reason: reason.clone() };
    }
    if let Some(signals) = args.signals {
        conditions.hints.signals = signals;
    }
    if let Some(schedule_by) = args.schedule_by {
        conditions.hints.schedule_by = schedule_by;
    }
    if let Some(quota) = args.quota {
        conditions.keeping.quota_bytes = Some(quota.0);
    }
    match args.prune.as_deref() {
        None => {}
        Some("none") => conditions.keeping.prune = None,
        Some(rule) => {
            let rule = rule.parse().map_err(|why: String| usage(anyhow::anyhow!(why)))?;
            conditions.keeping.prune = Some(rule);
        }
    }
    if let Some(rounds_by) = args.rounds_by {
        conditions.rounds_by = rounds_by;
    }
    Ok(())
}

/// Values that replace those before; the one word alone stands for none.
fn replaced<T: std::str::FromStr<Err = String>>(
    values: &mut Vec<T>,
    given: &[String],
    none: &str,
) -> anyhow::Result<()> {
    let wrong = |why: String| usage(anyhow::anyhow!(why));
    match given {
        [] => {}
        [only] if only == none => values.clear(),
        given => {
            *values = given.iter().map(|g| g.parse().map_err(wrong)).collect::<Result<_, _>>()?
        }
    }
    Ok(())
}

/// Patterns, headers, group and tags.
fn apply_choice(conditions: &mut SiteConditions, args: &ConditionArgs) -> anyhow::Result<()> {
    replaced(&mut conditions.pages.include, &args.includes, "all")?;
    replaced(&mut conditions.pages.exclude, &args.excludes, "none")?;
    replaced(&mut conditions.headers, &args.headers, "none")?;
    if args.group.is_some() || args.tags.is_some() {
        let labels = &conditions.labels;
        let group = args.group.as_ref().unwrap_or(&labels.group);
        let tags = args.tags.clone().unwrap_or_else(|| labels.tags.join(","));
        let typed = SiteLabels::typed(group, &tags);
        conditions.labels = typed.map_err(|why| usage(anyhow::anyhow!(why)))?;
    }
    Ok(())
}

/// What is given of the pages' own schedules; any of it makes the site continuous.
fn apply_revisit(conditions: &mut SiteConditions, args: &ConditionArgs) -> anyhow::Result<()> {
    let given = args.continuous
        || args.policy.is_some()
        || args.visits_per_day.is_some()
        || args.min.is_some()
        || args.max.is_some()
        || !args.paths.is_empty();
    if !given {
        return Ok(());
    }
    let mut settings = conditions.schedule.continuous().cloned().unwrap_or_default();
    if let Some(policy) = args.policy {
        settings.policy = policy;
    }
    if let Some(visits) = args.visits_per_day {
        settings.visits_per_day = Some(visits).filter(|&visits| visits > 0);
    }
    if let Some(min) = args.min {
        settings.min_s = Some(min.as_s());
    }
    if let Some(max) = args.max {
        settings.max_s = max.as_s().max(1);
    }
    if !args.paths.is_empty() {
        settings.paths = match args.paths.as_slice() {
            [only] if only == "none" => Vec::new(),
            rules => rules.iter().map(|r| r.parse().map_err(usage)).collect::<Result<_, _>>()?,
        };
    }
    conditions.schedule = Schedule::Continuous(settings);
    Ok(())
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

fn list(context: &Context) -> anyhow::Result<Exit> {
    let archive = context.open_to_read()?;
    let mut sites = archive.state().sites()?;
    sites.retain(|site| site.removed.is_none());
    let reached = quotas_reached(context, &archive, &sites)?;
    if context.json {
        for site in &sites {
            let mut shown = as_json(site);
            let of_site =
                |reached: &&Reached| reached.site.as_ref().is_some_and(|s| s.0 == site.id);
            shown["quota_reached"] = json!(reached.iter().find(of_site).map(ToString::to_string));
            print_json(&shown)?;
        }
        return Ok(Exit::Done);
    }
    if sites.is_empty() {
        say("No sites yet. `nenrin site add URL` registers one.")?;
        return Ok(Exit::Done);
    }
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
    for site in &sites {
        table.row(vec![
            site.id.0.to_string(),
            site.name.clone(),
            schedule_text(&site.conditions.schedule),
            site.counts.pages.to_string(),
            site.counts.visits.to_string(),
            site.counts.versions.to_string(),
            readable_bytes(site.counts.raw_bytes),
            site.collected_s.map_or("never".to_owned(), readable_date),
            why_paused(site, &reached),
        ]);
    }
    print_table(&table)?;
    Ok(Exit::Done)
}

/// The quotas that are reached now.
fn quotas_reached(
    context: &Context,
    archive: &Archive,
    sites: &[Site],
) -> anyhow::Result<Vec<Reached>> {
    let mut guard = QuotaGuard::new(context.config.quotas());
    guard.know(sites);
    if !guard.is_needed() {
        return Ok(Vec::new());
    }
    Ok(guard.turn(archive.file_bytes()?, &archive.store().site_bytes()?).0)
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

fn as_json(site: &Site) -> serde_json::Value {
    json!({
        "site": site.id, "name": site.name, "conditions": site.conditions,
        "created": rfc3339(site.created_s), "collected": site.collected_s.map(rfc3339),
        "paused": site.paused, "removed": site.removed, "counts": site.counts,
    })
}

/// The site, and what its schedule is expected to bring.
fn show_schedule(context: &Context, archive: &Archive, site: &Site) -> anyhow::Result<Exit> {
    let outlook = nenrin_archive::outlook(&**archive.state(), site)?;
    if context.json {
        let mut json = as_json(site);
        json["schedule"] = json!(outlook);
        json["worth"] = worth_json(&**archive.state(), site)?;
        json["learnt"] =
            learnt_of(&**archive.state(), site.id)?.iter().map(Learnt::as_json).collect();
        print_json(&json)?;
        return Ok(Exit::Done);
    }
    show(context, &**archive.state(), site)?;
    worth_lines(&**archive.state(), site)?.into_iter().try_for_each(say)?;
    outlook.iter().flat_map(Outlook::lines).try_for_each(say)?;
    Ok(Exit::Done)
}

/// What a site's pages are worth and how often they change, and the site's part of the importance.
fn worth(state: &dyn State, site: &Site) -> anyhow::Result<Option<(SiteWorth, Option<f64>)>> {
    let all = nenrin_archive::shown_worth(state)?;
    let own = all.iter().find(|worth| worth.site == site.id);
    Ok(own.map(|own| (*own, own.share_of(&all))))
}

fn worth_json(state: &dyn State, site: &Site) -> anyhow::Result<serde_json::Value> {
    Ok(worth(state, site)?.map_or(serde_json::Value::Null, |(worth, share)| {
        json!({
            "importance": worth.importance(), "importance_share": share,
            "weighed_pages": worth.weighed_pages, "estimated_pages": worth.estimated_pages,
            "rate_per_day": worth.mean_rate_per_day(), "confidence": worth.mean_confidence(),
            "significant_versions": worth.significant_versions,
        })
    }))
}

fn worth_lines(state: &dyn State, site: &Site) -> anyhow::Result<Vec<String>> {
    let worth = worth(state, site)?;
    Ok(worth.map_or_else(Vec::new, |(worth, share)| nenrin_archive::worth_lines(&worth, share)))
}

pub(super) fn show(context: &Context, state: &dyn State, site: &Site) -> anyhow::Result<Exit> {
    let learnt = learnt_of(state, site.id)?;
    if context.json {
        let mut shown = as_json(site);
        shown["learnt"] = learnt.iter().map(Learnt::as_json).collect();
        print_json(&shown)?;
        return Ok(Exit::Done);
    }
    let conditions = &site.conditions;
    let paused = match (site.removed, site.paused) {
        (Some(removal), _) => format!("  (removed: {})", removal.as_str()),
        (None, true) => "  (paused)".to_owned(),
        (None, false) => String::new(),
    };
    say(format!("site {}: {}{paused}", site.id.0, site.name))?;
    let tops: Vec<&str> = conditions.tops.iter().map(CanonicalUrl::as_str).collect();
    let robots = match &conditions.robots {
        RobotsPolicy::Obey => "obeyed".to_owned(),
        RobotsPolicy::Ignore { reason } => format!("not obeyed, because: {reason}"),
    };
    let paced = match conditions.schedule.continuous() {
        Some(settings) => ("intervals", intervals_text(settings, state.bucket_s())),
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
        say(format!("  {name:<11}{value}"))?;
    }
    learnt.iter().flat_map(Learnt::lines).try_for_each(say)?;
    Ok(Exit::Done)
}
