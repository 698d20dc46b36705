//! `nenrin site structure`: what rounds know of a site's structure.

use nenrin_archive::{families_table, site_structure, structure_line, tops_table};
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
        Some(round) => round.lines().into_iter().try_for_each(say)?,
        None => say(
            "no round has chosen its pages yet; `nenrin site set SITE --rounds-by METHOD` lets rounds choose",
        )?,
    }
    Ok(Exit::Done)
}

fn show_view(view: &StructureView) -> anyhow::Result<()> {
    say(structure_line(view))?;
    print_table(&tops_table(view))?;
    if !view.families.is_empty() {
        print_table(&families_table(view))?;
    }
    Ok(())
}
