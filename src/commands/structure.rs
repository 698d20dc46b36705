//! `nenrin site structure`: what rounds know of a site's structure.

use nenrin_archive::{ChosenRound, families_table, readable_date, site_structure, tops_table};
use nenrin_state::{Site, State};
use nenrin_structure::StructureView;

use super::Context;
use crate::{
    exit::Exit,
    table::{print_json, print_table, say},
};

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
    print_table(&tops_table(view))?;
    print_table(&families_table(view))?;
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
