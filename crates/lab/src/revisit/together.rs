//! All pages of a log under one policy that lets them share what they learn.

use nenrin_revisit::{PageGroups, PageHistory, RevisitPolicy};

use super::walk::{Tally, Walk, end_s};
use crate::updates::UpdateLog;

/// A page on its way through the window.
struct Traveller<'a> {
    walk: Walk<'a>,
    history: PageHistory,
    groups: PageGroups,
}

/// Follows all pages slot by slot; within a slot, in the log's order. Returns the tallies, and the
/// bytes per page that a crawler would have to keep at the end.
pub fn walk_together(log: &UpdateLog, policy: &mut dyn RevisitPolicy) -> (Vec<Tally>, f64) {
    let resolution_s = log.window.resolution_s;
    let mut travellers: Vec<Traveller<'_>> = log
        .pages
        .iter()
        .map(|page| Traveller {
            walk: Walk::new(page),
            history: PageHistory::default(),
            groups: PageGroups::NONE,
        })
        .collect();
    for slot in 0..log.slots() {
        let now_s = end_s(slot, resolution_s);
        policy.roll(now_s);
        for (page, traveller) in log.pages.iter().zip(&mut travellers) {
            if slot == page.end_slot {
                policy.leave(&traveller.history);
            }
            if slot < page.first_slot || slot >= page.end_slot {
                continue;
            }
            if policy.is_due(now_s, &traveller.history, traveller.groups) {
                let server = u64::from(page.source);
                traveller.groups = match slot == page.first_slot {
                    true => policy.meet(now_s, server, &page.path),
                    false => policy.groups_of(server, &page.path),
                };
                let seen = traveller.walk.visit(slot, resolution_s).at(traveller.groups);
                policy.learn(now_s, &mut traveller.history, &seen);
            }
        }
    }
    let own: usize = travellers.iter().map(|traveller| traveller.history.to_bytes().len()).sum();
    let bytes = own + policy.shared_state().len();
    let tallies = travellers.into_iter().map(|traveller| traveller.walk.finish()).collect();
    (tallies, bytes as f64 / log.pages.len().max(1) as f64)
}
