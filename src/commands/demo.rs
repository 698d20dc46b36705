//! The demo: a small changing website of our own, collected several times, then served.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use nenrin_archive::{Archive, digits14};
use nenrin_urls::CanonicalUrl;

use super::{
    Context, collect,
    demo_site::DemoSite,
    run,
    serve::{interrupted, runtime},
};
use crate::{
    cli::DemoArgs,
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
    let (site, id) = DemoSite::register(&**archive.state(), &context.config).await?;
    let tell = |line: String| if context.json { Ok(()) } else { say(line) };
    tell(format!("The Ring, a newspaper that exists only here: {}", site.top()))?;
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
            "issue {issue}: {:>3} visits, {:>3} changed, {:>3} unchanged, {:>3} new page{}",
            counts.visits(),
            counts.changed,
            counts.same + counts.not_modified,
            counts.new_pages,
            if counts.new_pages == 1 { "" } else { "s" },
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
            say(format!("  replay /web/{}/{url}", digits14(row.at_s)))?;
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
