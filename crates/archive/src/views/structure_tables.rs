//! A site's structure as tables of text.

use nenrin_lang::Table;
use nenrin_structure::StructureView;

use crate::counted;

/// Sites and families in a table; programs get up to 200 of each.
const SHOWN: usize = 40;

/// Index pages with their members, and how often they changed together.
pub fn tops_table(view: &StructureView) -> Table {
    let mut table = Table::new(&[
        "depth",
        "index page",
        "pages below",
        "seen",
        "changed",
        "below changed with it",
        "without it",
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
    table
}

/// Families, and in how many rounds all, some or none of their pages changed.
pub fn families_table(view: &StructureView) -> Table {
    let mut table =
        Table::new(&["pages of one kind", "pages", "rounds", "all changed", "some", "none"]);
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
    table
}

/// How many pages, links and parts a structure has.
pub fn structure_line(view: &StructureView) -> String {
    format!(
        "  {}, {}; by {}: {} with pages below, {} of pages of one kind, {} that chose pages",
        counted(view.pages as u64, "page"),
        counted(view.links as u64, "link"),
        view.method,
        counted(view.site_count as u64, "index page"),
        counted(view.family_count as u64, "group"),
        counted(u64::from(view.rounds), "round")
    )
}
