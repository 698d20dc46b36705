//! Groups and tags of sites, in the overview and on a site's page.

use std::collections::BTreeMap;

use maud::{Markup, html};
use nenrin_state::Site;

use crate::{format, visitor::Visitor};

/// Labels offered above the table.
const OFFERED: usize = 40;

/// The group and the tags of a site.
pub(super) fn of(site: &Site) -> impl Iterator<Item = &str> {
    let labels = &site.conditions.labels;
    let group = Some(labels.group.as_str()).filter(|group| !group.is_empty());
    group.into_iter().chain(labels.tags.iter().map(String::as_str))
}

fn link(label: &str) -> String {
    format!("/?label={}", format::encoded(label))
}

/// The labels of one site, as links to all sites that have them.
pub(super) fn chips(site: &Site) -> Markup {
    html! {
        @if of(site).next().is_some() {
            div.chips { @for label in of(site) { a.chip href=(link(label)) { bdi { (label) } } " " } }
        }
    }
}

/// All labels with the number of their sites, to choose one.
pub(super) fn choices(visitor: &Visitor, sites: &[Site], chosen: &str) -> Markup {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for label in sites.iter().flat_map(of) {
        *counts.entry(label).or_default() += 1;
    }
    html! {
        @if !counts.is_empty() {
            nav.chips aria-label=(visitor.t("Groups and tags", "グループとタグ")) {
                a.chip href="/" aria-current=[chosen.is_empty().then_some("true")] { (visitor.t("all", "すべて")) } " "
                @for (label, count) in counts.iter().take(OFFERED) {
                    a.chip href=(link(label)) aria-current=[(*label == chosen).then_some("true")] { bdi { (label) } " " small { (count) } } " "
                }
            }
        }
    }
}
