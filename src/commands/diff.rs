//! `nenrin diff`: what changed between two versions of a page.

use nenrin_archive::{readable_bytes, readable_date, rfc3339};
use nenrin_lang::Colour;
use nenrin_replay::{PageChanges, hunks, page_changes};

use super::Context;
use crate::{
    cli::DiffArgs,
    exit::{Exit, usage},
    table::{print_json, say, say_in},
};

pub(super) fn diff(context: &Context, args: &DiffArgs) -> anyhow::Result<Exit> {
    if let Some(site) = &args.site {
        return super::changes::diff_site(context, site, args);
    }
    let [url] = args.what.as_slice() else {
        return Err(usage(anyhow::anyhow!("one page is compared; two dates need --site SITE")));
    };
    let archive = context.open_to_read()?;
    let url = archive.typed_page(url)?;
    let to_s = args.to.unwrap_or(i64::MAX);
    let from_s = args.from.map_or_else(|| archive.before(&url, to_s), Ok)?;
    let shelf = (archive.state().clone(), archive.store().clone());
    let Some(changes) = page_changes(&shelf, &url, from_s, to_s)? else {
        return Err(usage(anyhow::anyhow!("{url} has no version; `nenrin collect` fetches it")));
    };
    match context.json {
        true => print_json(&changes.as_json(rfc3339))?,
        false => print(&changes, args.context)?,
    }
    Ok(Exit::Done)
}

fn print(changes: &PageChanges, context: usize) -> anyhow::Result<()> {
    let PageChanges { old, new, .. } = changes;
    if old.version == new.version {
        return Ok(say(format!(
            "there is nothing to compare: {} has one version for both dates, of {}; `nenrin versions` lists all",
            old.url,
            readable_date(old.at_s)
        ))?);
    }
    for (mark, capture) in [("---", old), ("+++", new)] {
        let size = readable_bytes(capture.body_bytes);
        let line = format!("{mark} {}  {}  {size}", readable_date(capture.at_s), capture.url);
        say_in(Colour::Bold, line)?;
    }
    let Some(lines) = &changes.lines else {
        return Ok(say("not text: only the sizes can be compared")?);
    };
    let shown = hunks(lines, context);
    if shown.is_empty() {
        say("no line of text differs; what changed is markup or white space")?;
    }
    shown.iter().try_for_each(|line| say_in(Colour::of_comparison(line), line))?;
    Ok(())
}
