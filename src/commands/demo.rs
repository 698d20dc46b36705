//! The demo: a small changing website of our own, collected several times, then served.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use nenrin_archive::{Archive, counted, digits14};
use nenrin_lab::demo::{DAY, DemoSite};
use nenrin_state::{Schedule, SiteId};
use nenrin_urls::CanonicalUrl;

use super::{
    Context, collect, run,
    serve::{interrupted, runtime},
    sites,
};
use crate::{
    cli::DemoArgs,
    clock,
    config::Config,
    exit::Exit,
    table::{print_json, say},
};

/// Time between two issues of the demo site while they are collected.
const BETWEEN_ISSUES: Duration = Duration::from_secs(2);

/// `nenrin demo`.
pub(super) fn demo(context: &Context, args: &DemoArgs) -> anyhow::Result<Exit> {
    let archive = Arc::new(context.open_to_write()?);
    let runtime = runtime()?;
    let exit = runtime.block_on(collect_and_serve(context, args, &archive))?;
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(exit)
}

async fn collect_and_serve(
    context: &Context,
    args: &DemoArgs,
    archive: &Arc<Archive>,
) -> anyhow::Result<Exit> {
    let (site, id) = register(&**archive.state(), &context.config).await?;
    let tell = |line: String| if context.json { Ok(()) } else { say(line) };
    tell(format!("The Ring, a newspaper that exists only here: {}", site.top()))?;
    if !args.once {
        let (rounds, pause_s) = (u64::from(args.rounds), BETWEEN_ISSUES.as_secs());
        let issues = counted(rounds, "issue");
        tell(format!("The interface opens after {issues}, in about {} s.", rounds * pause_s))?;
    }
    for issue in 1..=args.rounds {
        if issue > 1 {
            tokio::select! {
                () = tokio::time::sleep(BETWEEN_ISSUES) => {}
                () = interrupted() => return Ok(Exit::Interrupted),
            }
            site.next_issue();
        }
        let collected = collect::collect_rounds(context, archive, &[id]).await?;
        let counts = collected.counts();
        tell(format!(
            "issue {issue}: {:>3} visits, {:>3} new, {:>3} changed, {:>3} unchanged",
            counts.visits(),
            counts.first,
            counts.changed_again(),
            counts.same + counts.not_modified,
        ))?;
    }
    let top = CanonicalUrl::parse(&site.top()).context("the demo site has a URL")?;
    let versions = archive.state().versions(&top.key(), nenrin_state::VersionQuery::default())?;
    if context.json {
        print_json(&serde_json::json!({
            "top": top, "versions": versions.len(), "rounds": args.rounds,
        }))?;
    } else {
        say(format!("\nIts front page now has {} versions:", versions.len()))?;
        for (url, row) in &versions {
            say(format!(
                "  http://{}/web/{}/{url}",
                context.config.serve.replay,
                digits14(row.at_s)
            ))?;
        }
        say("")?;
    }
    if args.once {
        return Ok(Exit::Done);
    }
    tokio::spawn(site.live());
    run::run_until(context, &args.serve, archive, interrupted()).await?;
    Ok(Exit::Done)
}

/// The name under which the demo site is registered.
pub(super) const NAME: &str = "The Ring (demo)";

/// Serves the demo site and finds its registration in an archive, or registers it. One that was
/// collected before is served where it was, and goes on with the issue after its last round.
pub(super) async fn register(
    state: &dyn nenrin_state::State,
    config: &Config,
) -> anyhow::Result<(DemoSite, SiteId)> {
    let start = async |port, issue| {
        let started = DemoSite::start(port, issue).await;
        started.with_context(|| format!("cannot serve the demo site on loopback port {port}"))
    };
    if let Some(site) = state.sites()?.into_iter().find(|site| site.name == NAME) {
        let port = site.conditions.tops.first().map_or(0, |top| top.port());
        let rounds = state.rounds(Some(site.id), 100_000)?.len() as u32;
        return Ok((start(port, rounds + 1).await?, site.id));
    }
    let demo = start(0, 1).await?;
    let top = CanonicalUrl::parse(&demo.top())?;
    let mut conditions = sites::default_conditions(vec![top], config);
    conditions.allow_private = true;
    conditions.delay_ms = Some(0);
    conditions.schedule = Schedule::Rounds { period_s: DAY.as_secs() as i64 };
    let site = state.add_site(NAME, &conditions, clock::now_s())?;
    Ok((demo, site.id))
}
