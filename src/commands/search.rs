//! `nenrin search`, `nenrin blame`, `nenrin reindex --search`.

use std::sync::Arc;

use nenrin_archive::{Archive, counted};
use nenrin_search::{Ask, Keeper, Keeping, Order, Query, Search, SearchError, Status};

use super::{Context, progress::Bar};
use crate::{
    cli::{BlameArgs, SearchArgs},
    exit::{Exit, usage},
    table::{marks, print_json, say, say_marked},
};

/// Keeps the index while the program runs, unless it is switched off.
pub(super) fn keep(context: &Context, archive: &Arc<Archive>) -> anyhow::Result<Option<Keeping>> {
    let is_on = context.config.search.index;
    Ok(is_on.then(|| Keeping::start(archive.clone())).transpose()?)
}

fn caught_up(context: &Context, archive: &Arc<Archive>, again: bool) -> anyhow::Result<Search> {
    if !context.config.search.index {
        return Err(usage(SearchError::Off));
    }
    let bar = Bar::counting(context, "pages");
    let mut keeper = Keeper::new(archive.clone());
    if again {
        keeper.begin_anew()?;
    }
    match keeper.catch_up(&mut bar.progress()).and_then(|_| keeper.finish()) {
        // What the index has already can be found.
        Err(error) if error.is_of_writing() && !again => {}
        done => done?,
    }
    bar.finish();
    Ok(Search::new(archive.clone()))
}

pub(super) fn search(context: &Context, args: &SearchArgs) -> anyhow::Result<Exit> {
    let mut text = args.words.join(" ");
    for (name, value) in [
        ("site", &args.site),
        ("at", &args.at),
        ("during", &args.during),
        ("appeared", &args.appeared),
        ("vanished", &args.vanished),
    ] {
        text.extend(value.iter().map(|value| format!(" {name}:\"{value}\"")));
    }
    let query = Query::parse(&text).map_err(|e| usage(anyhow::anyhow!(e.pointed(&text))))?;
    let archive = Arc::new(context.open_to_read()?);
    let ask = Ask { order: Order::Best, skip: 0, limit: args.limit };
    let found = match caught_up(context, &archive, false)?.answer(&query, ask) {
        Err(SearchError::Archive(error)) => return Err(error.into()),
        found => found?,
    };
    for page in &found.pages {
        if context.json { print_json(&page.json())? } else { say_marked(page.text(marks()))? }
    }
    match (context.json, found.pages.len()) {
        (false, 0) => say("nothing was found")?,
        (false, _) if found.has_more => say("there are more; see --limit")?,
        _ => {}
    }
    Ok(Exit::Done)
}

pub(super) fn blame(context: &Context, args: &BlameArgs) -> anyhow::Result<Exit> {
    let archive = context.open_to_read()?;
    let url = archive.typed_page(&args.url)?;
    let found = nenrin_search::blame(&archive, &url, args.at.unwrap_or(i64::MAX))?;
    let missing =
        || usage(anyhow::anyhow!("{url} has no version of that time; `nenrin versions` lists all"));
    let found = found.ok_or_else(missing)?;
    if context.json {
        print_json(&found)?
    } else {
        found.lines().try_for_each(say)?
    }
    Ok(Exit::Done)
}

pub(super) fn reindex(context: &Context) -> anyhow::Result<Exit> {
    let archive = Arc::new(context.open_to_read()?);
    let Status { pages, blocks, .. } = caught_up(context, &archive, true)?.status()?;
    match context.json {
        true => print_json(&serde_json::json!({"pages": pages, "blocks": blocks}))?,
        false => {
            say(format!("{} with {} of text", counted(pages, "page"), counted(blocks, "block")))?
        }
    }
    Ok(Exit::Done)
}
