//! `nenrin changes`, and `nenrin diff --site`: what changed.

use std::{collections::BTreeMap, time::Duration};

use nenrin_archive::{
    changes::{Between, ChangeFilter, ChangeReader, SiteDifference, between, lines},
    readable_date, sites,
};
use nenrin_lang::Colour;
use serde_json::json;

use super::Context;
use crate::{
    cli::{ChangesArgs, DiffArgs, last_second},
    clock,
    exit::{Exit, usage},
    table::{print_json, say, say_in},
};

/// Changes and pages that are read at once.
const PORTION: usize = 200;

pub(super) fn changes(context: &Context, args: &ChangesArgs) -> anyhow::Result<Exit> {
    let archive = context.open_to_read()?;
    let state = archive.state();
    let site = args.site.as_deref().map(|name| sites::find(&**state, name)).transpose()?;
    let names: BTreeMap<_, _> = state.sites()?.into_iter().map(|s| (s.id, s.name)).collect();
    let reader = ChangeReader::new(state.clone(), archive.store().clone());
    let mut filter = ChangeFilter {
        site: site.map(|site| site.id),
        from_s: args.since.begin_s(clock::now_s()),
        to_s: i64::MAX,
        kind: args.kind,
        significant: args.significant,
        text: args.text.clone().unwrap_or_default(),
        parts: args.all_files,
        ..ChangeFilter::default()
    };
    let mut left = args.limit;
    let mut listed = Vec::new();
    while left > 0 {
        filter.limit = left.min(PORTION);
        let portion = reader.list(&filter, Duration::MAX)?;
        left -= portion.items.len();
        filter.before = portion.next;
        for one in portion.items {
            match context.json {
                true => print_json(&one.as_json(names.get(&one.change.site).map(String::as_str)))?,
                false => listed.push(one),
            }
        }
        if portion.next.is_none() {
            break;
        }
    }
    if listed.is_empty() && !context.json {
        let newest = reader.newest(filter)?.map(|change| readable_date(change.at_s));
        say(newest.map_or("No changes yet.".to_owned(), |date| {
            let day = date.split(' ').next().unwrap_or(&date);
            format!("No changes in this time. The newest is of {date}: --since {day} shows it.")
        }))?;
    }
    lines(&listed, &names).iter().try_for_each(|line| say_in(Colour::of_changes(line), line))?;
    Ok(Exit::Done)
}

/// A site on two dates.
pub(super) fn diff_site(context: &Context, name: &str, args: &DiffArgs) -> anyhow::Result<Exit> {
    let [from, to] = args.what.as_slice() else {
        return Err(usage(anyhow::anyhow!(
            "--site needs two dates: nenrin diff --site {name} 2024-03-01 2024-04-01"
        )));
    };
    let date = |text: &str| last_second(text).map_err(|error| usage(anyhow::anyhow!(error)));
    let (a, b) = (date(from)?, date(to)?);
    let archive = context.open_to_read()?;
    let state = &**archive.state();
    let site = &sites::find(state, name)?;
    let dates = Between { site, from_s: a.min(b), to_s: a.max(b), parts: args.all_files };
    if !context.json {
        let mut found = SiteDifference::default();
        while found.go_on(state, dates, PORTION)? {}
        let lines = found.lines(dates, args.limit);
        lines.iter().try_for_each(|line| say_in(Colour::of_changes(line), line))?;
        return Ok(Exit::Done);
    }
    let mut after = None;
    loop {
        let (pages, _, next) = between(state, dates, after, PORTION)?;
        pages.iter().try_for_each(|page| print_json(&json!(page.as_json())))?;
        match next {
            Some(_) => after = next,
            None => return Ok(Exit::Done),
        }
    }
}
