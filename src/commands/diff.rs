//! `nenrin diff`: what changed between two versions of a page.

use nenrin_archive::{Archive, readable_bytes, readable_date, rfc3339};
use nenrin_replay::{Line, PageChanges, hunks, page_changes};
use nenrin_urls::CanonicalUrl;
use serde_json::json;

use super::Context;
use crate::{
    cli::DiffArgs,
    exit::{Exit, usage},
    table::{Colour, print_json, say, say_in},
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
    let from_s = match args.from {
        Some(from_s) => from_s,
        None => version_before(&archive, &url, to_s)?,
    };
    let shelf = (archive.state().clone(), archive.store().clone());
    let Some(changes) = page_changes(&shelf, &url, from_s, to_s)? else {
        return Err(usage(anyhow::anyhow!("{url} has no version; `nenrin collect` fetches it")));
    };
    if context.json {
        print_json(&as_json(&changes))?;
    } else {
        print(&changes, args.context)?;
    }
    Ok(Exit::Done)
}

/// When the version before that for a date was received.
fn version_before(archive: &Archive, url: &CanonicalUrl, to_s: i64) -> anyhow::Result<i64> {
    let Some((_, newest)) = archive.state().version_as_of(&url.key(), to_s)? else {
        return Ok(to_s);
    };
    let before = archive.state().newest_versions(&url.key(), (newest.at_s, newest.version), 1)?;
    Ok(before.first().map_or(newest.at_s, |(_, row)| row.at_s))
}

fn as_json(changes: &PageChanges) -> serde_json::Value {
    let side = |capture: &nenrin_replay::Capture| {
        json!({
            "url": capture.url, "at": rfc3339(capture.at_s), "version": capture.version,
            "status": capture.status, "mime": capture.mime, "bytes": capture.body_bytes,
        })
    };
    let of = |wanted: fn(&Line) -> Option<&String>| {
        changes.lines.as_ref().map(|lines| lines.iter().filter_map(wanted).collect::<Vec<_>>())
    };
    json!({
        "from": side(&changes.old), "to": side(&changes.new),
        "same": changes.old.version == changes.new.version,
        "removed": of(|line| if let Line::Removed(text) = line { Some(text) } else { None }),
        "added": of(|line| if let Line::Added(text) = line { Some(text) } else { None }),
        "blocks": {
            "same": changes.blocks_same, "removed": changes.blocks_removed,
            "added": changes.blocks_added,
        },
    })
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
    shown.into_iter().try_for_each(|line| say_in(colour(&line), line))?;
    Ok(())
}

fn colour(line: &str) -> Colour {
    match line.as_bytes() {
        [b'-', ..] => Colour::Red,
        [b'+', ..] => Colour::Green,
        b"@@" => Colour::Cyan,
        _ => Colour::None,
    }
}
