use nenrin_archive::{
    Archive, GivenLogin, Learnt, Outlook, Reached, WorthOfSite, learnt_of, log_in_window,
    site_json, site_lines,
    sites::{find, name_for},
    sites_table, worth_of,
};
use nenrin_fetch::Fetcher;
use nenrin_revisit::RevisitSettings;
use nenrin_state::{RobotsPolicy, Schedule, Site, SiteConditions, SiteLabels, State};
use nenrin_urls::CanonicalUrl;
use serde_json::json;

use super::{Context, removal, structure};
use crate::{
    cli::{ConditionArgs, SiteCommand},
    clock,
    config::{Config, login_key},
    exit::{Exit, usage},
    table::{print_json, print_table, say},
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
            let mut site = archive.state().add_site(&name, &conditions, clock::now_s())?;
            archive.set_login(&login_key(), &mut site, &args.login.given(), clock::now_s())?;
            let exit = show(context, &**archive.state(), &site)?;
            if !context.json {
                say(nenrin_archive::sites::next_step(&site))?;
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
            archive.set_login(&login_key(), &mut site, &args.login.given(), clock::now_s())?;
            archive.state().set_site(site.id, &site.conditions, clock::now_s())?;
            show(context, &**archive.state(), &site)
        }
        SiteCommand::Login(args) => login(context, &args.site),
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

fn login(context: &Context, name: &str) -> anyhow::Result<Exit> {
    let archive = context.open_to_change()?;
    let mut site = find(&**archive.state(), name)?;
    if !context.json {
        say("A window opens. Log in there, then close it.")?;
    }
    let fetcher = Fetcher::new(context.config.fetch_options()?)?;
    let options = context.config.render_options();
    let runtime = tokio::runtime::Runtime::new()?;
    let lines = runtime.block_on(log_in_window(&site, fetcher, &options))?;
    let given = GivenLogin { cookie_lines: Some(&lines), ..GivenLogin::default() };
    archive.set_login(&login_key(), &mut site, &given, clock::now_s())?;
    show(context, &**archive.state(), &site)
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

/// Values that replace the earlier ones; that word alone means none.
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
    let wrong = |why: String| usage(anyhow::anyhow!(why));
    conditions.scripts.set(&args.render, args.likely_urls).map_err(wrong)?;
    let (source, reason) = (args.source.as_deref(), args.any_certificate.as_deref());
    conditions.road.set(args.proxy.as_deref(), source, reason).map_err(wrong)?;
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

fn list(context: &Context) -> anyhow::Result<Exit> {
    let archive = context.open_to_read()?;
    let mut sites = archive.state().sites()?;
    sites.retain(|site| site.removed.is_none());
    let reached = archive.quotas_reached(context.config.quotas(), &sites)?;
    if context.json {
        for site in &sites {
            let mut shown = site_json(site);
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
    print_table(&sites_table(&sites, &reached))?;
    Ok(Exit::Done)
}

/// The site, and what its schedule is expected to bring.
fn show_schedule(context: &Context, archive: &Archive, site: &Site) -> anyhow::Result<Exit> {
    let outlook = nenrin_archive::outlook(&**archive.state(), site)?;
    if context.json {
        let mut json = site_json(site);
        json["schedule"] = json!(outlook);
        json["login"] = archive.login_json(site)?;
        json["worth"] =
            worth_of(&**archive.state(), site.id)?.as_ref().map(WorthOfSite::as_json).into();
        json["learnt"] =
            learnt_of(&**archive.state(), site.id)?.iter().map(Learnt::as_json).collect();
        print_json(&json)?;
        return Ok(Exit::Done);
    }
    show(context, &**archive.state(), site)?;
    archive.login_lines(site)?.into_iter().try_for_each(say)?;
    let worth = worth_of(&**archive.state(), site.id)?;
    worth.iter().flat_map(WorthOfSite::lines).try_for_each(say)?;
    outlook.iter().flat_map(Outlook::lines).try_for_each(say)?;
    Ok(Exit::Done)
}

pub(super) fn show(context: &Context, state: &dyn State, site: &Site) -> anyhow::Result<Exit> {
    let learnt = learnt_of(state, site.id)?;
    if context.json {
        let mut shown = site_json(site);
        shown["learnt"] = learnt.iter().map(Learnt::as_json).collect();
        print_json(&shown)?;
        return Ok(Exit::Done);
    }
    site_lines(site, state.bucket_s()).into_iter().try_for_each(say)?;
    learnt.iter().flat_map(Learnt::lines).try_for_each(say)?;
    Ok(Exit::Done)
}
