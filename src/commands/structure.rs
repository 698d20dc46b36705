//! `nenrin site structure`: what rounds know of a site's structure.

use nenrin_archive::{ChosenRound, readable_date, site_structure};
use nenrin_state::{Site, State};
use nenrin_structure::StructureView;

use super::Context;
use crate::{
    exit::Exit,
    table::{Table, print_json, print_table, say},
};

/// Sites and families printed; `--json` has up to 200 of each.
const SHOWN: usize = 40;

/// Prints tops, members and families, and what the last round left out.
pub(super) fn show(context: &Context, state: &dyn State, site: &Site) -> anyhow::Result<Exit> {
    let structure = site_structure(state, site)?;
    if context.json {
        print_json(&structure)?;
        return Ok(Exit::Done);
    }
    say(format!("site {}: {}, rounds by {}", site.id.0, site.name, structure.rounds_by))?;
    match &structure.structure {
        Some(view) => show_view(view)?,
        None => say("  it has more pages than can be mapped")?,
    }
    match &structure.last_round {
        Some(round) => show_round(round)?,
        None => say("no round has chosen its pages yet: nenrin site set --rounds-by")?,
    }
    Ok(Exit::Done)
}

fn show_view(view: &StructureView) -> anyhow::Result<()> {
    say(format!(
        "  {} pages, {} links, {} sites by {}, {} families, {} rounds chosen",
        view.pages, view.links, view.site_count, view.method, view.family_count, view.rounds
    ))?;
    let mut table = Table::new(&[
        "depth",
        "top",
        "members",
        "top seen",
        "changed",
        "members changed with it",
        "without",
    ]);
    let of = |(seen, changed): (u32, u32)| format!("{changed} of {seen}");
    for site in view.sites.iter().take(SHOWN) {
        let more = site.tops.len().saturating_sub(1);
        let top = site.tops.first().map_or("", String::as_str);
        table.row(vec![
            site.depth.to_string(),
            if more > 0 { format!("{top} and {more} more") } else { top.to_owned() },
            site.member_count.to_string(),
            site.top_seen.to_string(),
            site.top_changed.to_string(),
            of(site.under_changed),
            of(site.under_same),
        ]);
    }
    print_table(&table)?;
    let mut table = Table::new(&["family", "pages", "rounds", "all changed", "some", "none"]);
    for family in view.families.iter().take(SHOWN) {
        let together = family.together;
        table.row(vec![
            family.family.clone(),
            family.pages.to_string(),
            together.rounds.to_string(),
            together.all.to_string(),
            together.some.to_string(),
            (together.rounds - together.all - together.some).to_string(),
        ]);
    }
    print_table(&table)?;
    Ok(())
}

fn show_round(round: &ChosenRound) -> anyhow::Result<()> {
    say(format!(
        "round {} of {}: {} visits, {} changed, {} pages left out",
        round.round,
        readable_date(round.started_s),
        round.visits,
        round.changed,
        round.skipped
    ))?;
    for reason in &round.reasons {
        say(format!("  {} pages: {}", reason.pages, reason.why))?;
        for url in &reason.examples {
            say(format!("    {url}"))?;
        }
    }
    Ok(())
}
