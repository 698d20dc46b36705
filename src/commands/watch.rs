use nenrin_archive::{readable_date, watching::check_watch};
use nenrin_lang::Lang;
use nenrin_state::{Watch, WatchEvent, WatchId, WatchedPart};
use nenrin_urls::CanonicalUrl;

use super::Context;
use crate::{
    cli::{WatchAddArgs, WatchCommand},
    clock,
    exit::{Exit, usage},
    table::{Table, print_json, print_table, say},
};

/// `nenrin watch …`.
pub(super) fn watch(context: &Context, command: &WatchCommand) -> anyhow::Result<Exit> {
    match command {
        WatchCommand::Add(args) => add(context, args),
        WatchCommand::List => list(context),
        WatchCommand::Remove { watch } => {
            let archive = context.open_to_change()?;
            if !archive.state().drop_watch(WatchId(*watch))? {
                return Err(usage(anyhow::anyhow!(
                    "there is no watch {watch}; `nenrin watch list` shows them"
                )));
            }
            Ok(Exit::Done)
        }
    }
}

fn add(context: &Context, args: &WatchAddArgs) -> anyhow::Result<Exit> {
    let part = match (&args.words, &args.selector) {
        (Some(words), _) => WatchedPart::Words(words.clone()),
        (None, Some(selector)) => {
            WatchedPart::Selector { selector: selector.clone(), nth: args.nth }
        }
        (None, None) => WatchedPart::Page,
    };
    let on = match (args.above, args.below) {
        (Some(bound), _) => WatchEvent::Above(bound),
        (None, Some(bound)) => WatchEvent::Below(bound),
        _ if args.appears => WatchEvent::Appears,
        _ if args.vanishes => WatchEvent::Vanishes,
        _ => WatchEvent::Changes,
    };
    let watch = Watch {
        id: WatchId(0),
        name: args.name.clone(),
        url: CanonicalUrl::parse_typed(&args.url).map_err(usage)?,
        part,
        on,
        paused: false,
        created_s: clock::now_s(),
        last: None,
        trouble: None,
    };
    check_watch(&watch).map_err(usage)?;
    let archive = context.open_to_change()?;
    anyhow::ensure!(
        archive.state().watches()?.len() < Watch::MAX,
        "there are 1,000 watches already"
    );
    let kept = archive.state().keep_watch(&watch)?;
    if context.json {
        print_json(&kept)?;
    } else {
        say(format!("watch {}: {}", kept.id.0, kept.title()))?;
        say("`nenrin run` checks it on every new version of the page.")?;
    }
    Ok(Exit::Done)
}

fn list(context: &Context) -> anyhow::Result<Exit> {
    let watches = context.open_to_read()?.state().watches()?;
    if context.json {
        watches.iter().try_for_each(print_json)?;
        return Ok(Exit::Done);
    }
    if watches.is_empty() {
        say("No watches yet. `nenrin watch add URL` adds one.")?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["watch", "title", "state", "checked", "found"]);
    for watch in &watches {
        let unchecked = if watch.last.is_none() { "not checked yet" } else { "ok" };
        let trouble = watch.trouble.map_or(unchecked, |trouble| trouble.text(Lang::En));
        let state = if watch.paused { "paused" } else { trouble };
        let last = watch.last.as_ref();
        table.row(vec![
            watch.id.0.to_string(),
            watch.title(),
            state.to_owned(),
            last.map_or("–".to_owned(), |last| readable_date(last.at_s)),
            watch.found(60),
        ]);
    }
    print_table(&table)?;
    Ok(Exit::Done)
}
