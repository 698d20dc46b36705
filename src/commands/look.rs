use std::io::Write;

use nenrin_archive::{
    Archive, PAGE_HEADER, Reasons, VISIT_HEADER, readable_date, round_json, rounds_table, sites,
    version_json, versions_table, visit_json, visit_rows,
};
use nenrin_state::{Outcome, PageFilter, SiteId, State, VersionQuery, VisitFilter};
use nenrin_urls::CanonicalUrl;

use super::Context;
use crate::{
    cli::{CatArgs, LogArgs, PagesArgs, VersionsArgs},
    exit::{Exit, usage},
    table::{Table, print_json, print_table, say},
};

/// Rows read from the state at once.
const PORTION: usize = 10_000;

fn site_id(archive: &Archive, name: Option<&str>) -> anyhow::Result<Option<SiteId>> {
    Ok(name.map(|name| sites::find(&**archive.state(), name).map(|site| site.id)).transpose()?)
}

/// `nenrin log`.
pub(super) fn log(context: &Context, args: &LogArgs) -> anyhow::Result<Exit> {
    let archive = context.open_to_read()?;
    let site = site_id(&archive, args.site.as_deref())?;
    if args.visits {
        visits(context, &archive, site, args.limit)
    } else {
        rounds(context, &archive, site, args.limit)
    }
}

fn rounds(
    context: &Context,
    archive: &Archive,
    site: Option<SiteId>,
    limit: usize,
) -> anyhow::Result<Exit> {
    let sites = archive.state().sites()?;
    let rounds = archive.state().rounds(site, limit)?;
    if context.json {
        for round in &rounds {
            print_json(&round_json(round, &sites))?;
        }
        return Ok(Exit::Done);
    }
    if rounds.is_empty() {
        say("No rounds yet. `nenrin run` starts collecting.")?;
        return Ok(Exit::Done);
    }
    print_table(&rounds_table(&rounds, &sites))?;
    Ok(Exit::Done)
}

fn visits(
    context: &Context,
    archive: &Archive,
    site: Option<SiteId>,
    limit: usize,
) -> anyhow::Result<Exit> {
    let mut table = Table::new(&VISIT_HEADER);
    let (mut before, mut left) = (None, limit);
    while left > 0 {
        let filter = VisitFilter { site, outcome: None, before, limit: left.min(PORTION) };
        let portion = archive.state().visits(filter)?;
        let Some(last) = portion.last() else { break };
        before = Some(last.id);
        left -= portion.len();
        if context.json {
            portion.iter().try_for_each(|visit| print_json(&visit_json(visit)))?;
        } else {
            visit_rows(&**archive.state(), &portion)?.into_iter().for_each(|row| table.row(row));
        }
    }
    if !context.json {
        print_table(&table)?;
    }
    Ok(Exit::Done)
}

/// `nenrin pages`.
pub(super) fn pages(context: &Context, args: &PagesArgs) -> anyhow::Result<Exit> {
    let archive = context.open_to_read()?;
    let site = site_id(&archive, args.site.as_deref())?;
    let reasons = Reasons::new(&**archive.state())?;
    let mut table = Table::new(&PAGE_HEADER);
    let (mut after, mut left) = (None, args.limit.unwrap_or(usize::MAX));
    while left > 0 {
        let filter = PageFilter { site, after, limit: left.min(PORTION) };
        let portion = archive.state().pages(filter)?;
        let Some(last) = portion.last() else { break };
        after = Some(last.id);
        left -= portion.len();
        for page in portion {
            let due = reasons.of(&page)?;
            match context.json {
                true => print_json(&due.page_json(&page))?,
                false => table.row(due.page_cells(&page)),
            }
        }
    }
    if !context.json {
        print_table(&table)?;
    }
    Ok(Exit::Done)
}

/// `nenrin versions`.
pub(super) fn versions(context: &Context, args: &VersionsArgs) -> anyhow::Result<Exit> {
    let archive = context.open_to_read()?;
    let url = archive.typed_page(&args.url)?;
    let query = VersionQuery {
        from_s: args.from.unwrap_or(i64::MIN),
        to_s: args.to.unwrap_or(i64::MAX),
        limit: usize::MAX,
    };
    let versions = archive.state().versions(&url.key(), query)?;
    if versions.is_empty() && args.from.is_none() && args.to.is_none() {
        return Err(not_archived(&**archive.state(), &url)?);
    }
    if context.json {
        for (url, row) in &versions {
            print_json(&version_json(url, row))?;
        }
        return Ok(Exit::Done);
    }
    print_table(&versions_table(&versions))?;
    Ok(Exit::Done)
}

fn not_archived(state: &dyn State, url: &CanonicalUrl) -> anyhow::Result<anyhow::Error> {
    Ok(usage(match state.page(url)? {
        Some(_) if nenrin_state::is_closed(state, url)? => {
            anyhow::anyhow!("{url} is of a removed site; `nenrin site removals` says why")
        }
        Some(page) => match page.outcome {
            Some(outcome) => {
                let last = match outcome {
                    Outcome::Gone => "the server does not have it",
                    Outcome::Refused => "its last visit was refused",
                    _ => "its last visit failed",
                };
                anyhow::anyhow!("{url} has no version: {last}; `nenrin log --visits` says why")
            }
            None => anyhow::anyhow!("{url} is known but was never visited"),
        },
        None => anyhow::anyhow!("{url} is not in the archive; `nenrin collect` fetches it"),
    }))
}

/// `nenrin cat`.
pub(super) fn cat(context: &Context, args: &CatArgs) -> anyhow::Result<Exit> {
    let archive = context.open_to_read()?;
    let url = archive.typed_page(&args.url)?;
    let at_s = args.at.unwrap_or(i64::MAX);
    let Some((_, row)) = archive.state().version_as_of(&url.key(), at_s)? else {
        return Err(not_archived(&**archive.state(), &url)?);
    };
    if row.at_s > at_s {
        return Err(usage(anyhow::anyhow!(
            "{url} has no version as of {}; its first is of {}",
            readable_date(at_s),
            readable_date(row.at_s)
        )));
    }
    if context.json {
        print_json(&archive.version(&row)?.as_json())?;
        return Ok(Exit::Done);
    }
    let head = &archive.store().head(row.version)?;
    let mut out = std::io::stdout().lock();
    if args.headers {
        out.write_all(&head.response_head)?;
    }
    if args.decode {
        out.write_all(&archive.version(&row)?.decoded_body()?)?;
    } else {
        archive.store().read_to(head.id, &mut out)?;
    }
    out.flush()?;
    Ok(Exit::Done)
}
