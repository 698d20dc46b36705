use std::{
    collections::{BTreeMap, BTreeSet},
    io::IsTerminal,
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};
use nenrin_archive::{Archive, Collected, DiskGuard, sites::free_name};
use nenrin_crawl::Event;
use nenrin_fetch::Fetcher;
use nenrin_state::{Outcome, Schedule, Site, SiteId, State};
use nenrin_urls::CanonicalUrl;

use super::{Context, removal, sites};
use crate::{
    cli::CollectArgs,
    clock,
    driver::{Driver, Ended, Notice, Until},
    exit::Exit,
    table::{print_json, print_table, say},
};

/// A server that must rest longer is left for the next round: someone is waiting.
const PATIENCE_MS: i64 = 90_000;

/// `nenrin collect`.
pub(super) fn collect(context: &Context, args: &CollectArgs) -> anyhow::Result<Exit> {
    let urls = sites::parse_urls(&args.urls)?;
    let archive = context.open_to_write()?;
    let mut wanted = Vec::new();
    let mut asks_strangers = false;
    for url in &urls {
        let site = register(context, &**archive.state(), url, args)?;
        asks_strangers |= !site.conditions.allow_private;
        if !wanted.contains(&site.id) {
            wanted.push(site.id);
        }
    }
    if context.config.contact.is_empty() && asks_strangers {
        tracing::warn!(
            "no contact is configured; set `contact` so that server owners can reach you"
        );
    }
    let began_ms = clock::now_ms();
    let runtime = super::serve::runtime()?;
    let rounds = runtime.block_on(collect_rounds(context, &archive, &wanted))?;
    runtime.shutdown_timeout(Duration::from_secs(1));
    summarise(context, &archive, &rounds, clock::now_ms() - began_ms)
}

/// The site that has this URL as a top page, changed by what was typed; a new one otherwise.
fn register(
    context: &Context,
    state: &dyn State,
    url: &CanonicalUrl,
    args: &CollectArgs,
) -> anyhow::Result<Site> {
    let known = state.sites()?.into_iter().find(|site| site.conditions.tops.contains(url));
    known.as_ref().map_or(Ok(()), removal::refuse_removed)?;
    let mut conditions = match &known {
        Some(site) => site.conditions.clone(),
        None => {
            let mut conditions = sites::default_conditions(vec![url.clone()], &context.config);
            conditions.schedule = Schedule::Manual;
            conditions
        }
    };
    sites::apply(&mut conditions, &args.conditions)?;
    match known {
        Some(site) if site.conditions == conditions => Ok(site),
        Some(site) => {
            state.set_site(site.id, &conditions, clock::now_s())?;
            Ok(Site { conditions, ..site })
        }
        None => {
            let name = free_name(state, &conditions)?;
            Ok(state.add_site(&name, &conditions, clock::now_s())?)
        }
    }
}

/// A round that would pause at once does not begin; the error says why.
fn room_to_begin(archive: &Archive, min_free_bytes: u64) -> std::io::Result<()> {
    let mut guard = DiskGuard::new(archive.folder(), min_free_bytes);
    match guard.turn(guard.free_bytes()) {
        Some(false) => {
            let folder = archive.folder().display();
            let message = format!(
                "fewer than {min_free_bytes} bytes are free on the disk of {folder}: free some space, \
                 or lower disk.min_free"
            );
            Err(std::io::Error::new(std::io::ErrorKind::StorageFull, message))
        }
        _ => Ok(()),
    }
}

/// Collects one round of each site.
pub(super) async fn collect_rounds(
    context: &Context,
    archive: &Archive,
    wanted: &[SiteId],
) -> anyhow::Result<Collected> {
    let mut options = context.config.crawl_options();
    options.round_patience_ms = Some(PATIENCE_MS);
    options.due_pages = false;
    let fetcher = Fetcher::new(context.config.fetch_options()?)?;
    let min_free_bytes = context.config.disk.min_free.0;
    room_to_begin(archive, min_free_bytes)?;
    let mut driver = Driver::new(archive, fetcher, options, context.config.fetch.memory.0)?;
    driver.limit_space(min_free_bytes, context.config.quotas());
    driver.render_with(context.config.render_options());
    let handle = driver.handle();
    handle.sites_changed();
    for &site in wanted {
        handle.tell(Event::CollectNow(site));
    }
    let bar = progress_bar(context.json);
    let mut collected = Collected::default();
    let mut seen: BTreeMap<Outcome, u64> = BTreeMap::new();
    let until = Until::RoundsFinished(wanted.iter().copied().collect::<BTreeSet<_>>());
    let ended = driver
        .run(until, super::serve::interrupted(), |notice, machine| match notice {
            Notice::Visited { url, outcome, reason } => {
                *seen.entry(outcome).or_default() += 1;
                collected.visited(url, outcome, reason);
                if bar.is_hidden() {
                    return;
                }
                let waiting: u64 =
                    wanted.iter().filter_map(|&s| machine.round_progress(s)).map(|(_, w)| w).sum();
                let done: u64 = seen.values().sum();
                bar.set_length(done + waiting.saturating_sub(1));
                bar.set_position(done);
                bar.set_message(format!(
                    "{} new or changed, {} same, {} without content  {url}",
                    seen.get(&Outcome::Changed).unwrap_or(&0),
                    seen.get(&Outcome::Same).unwrap_or(&0)
                        + seen.get(&Outcome::NotModified).unwrap_or(&0),
                    seen.get(&Outcome::Failed).unwrap_or(&0)
                        + seen.get(&Outcome::Refused).unwrap_or(&0)
                        + seen.get(&Outcome::Gone).unwrap_or(&0),
                ));
            }
            Notice::RoundFinished(report) => collected.reports.push(report.clone()),
            // A longer pause is not waited for: the round ends without that server.
            Notice::Resting { pause } if pause <= Duration::from_millis(PATIENCE_MS as u64) => {
                bar.suspend(|| {
                    let pause_s = pause.as_secs() + 1;
                    tracing::warn!("waiting {pause_s} s for a server that failed or asked for a pause; Ctrl-C leaves it for later");
                });
            }
            Notice::Resting { .. } => {}
        })
        .await;
    bar.finish_and_clear();
    collected.interrupted = ended? == Ended::Stopped;
    Ok(collected)
}

fn progress_bar(json: bool) -> ProgressBar {
    if json || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template(
        "{elapsed_precise} {bar:30.green/dim} {pos}/{len} pages  {wide_msg}",
    ) {
        bar.set_style(style.progress_chars("━╸─"));
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn summarise(
    context: &Context,
    archive: &Archive,
    collected: &Collected,
    elapsed_ms: i64,
) -> anyhow::Result<Exit> {
    let exit = match (collected.interrupted, collected.is_whole()) {
        (true, _) => Exit::Interrupted,
        (false, true) => Exit::Done,
        (false, false) => Exit::Partly,
    };
    let sites = archive.state().sites()?;
    if context.json {
        print_json(&collected.as_json(&sites, elapsed_ms))?;
        return Ok(exit);
    }
    print_table(&collected.table(&sites))?;
    say(format!(
        "collected in {:.1} s into {}",
        elapsed_ms as f64 / 1000.0,
        archive.folder().display()
    ))?;
    collected.lines(&sites).into_iter().try_for_each(say)?;
    Ok(exit)
}
