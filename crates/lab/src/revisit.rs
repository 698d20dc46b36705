//! Which schedule sees the most versions: the experiments of papers 004 and 002 on update logs.
//!
//! Read in this order: [`RevisitOptions`] and [`run`], [`Walk`] (one page's year), [`Measures`].

mod measure;
mod walk;

use nenrin_revisit::{Limits, PolicySpec};

pub use self::measure::{Bin, Measures, Month};
pub use self::walk::{Tally, Walk};

use crate::updates::UpdateLog;

/// Runs a policy over every page of the log and returns each page's tally.
///
/// Each page is followed alone: for policies whose pages share nothing.
pub fn walk_alone(log: &UpdateLog, spec: &PolicySpec) -> Vec<Tally> {
    let resolution_s = log.window.resolution_s;
    let mut policy = spec.build(Limits::experiment(resolution_s));
    log.pages.iter().map(|page| walk::alone(page, policy.as_mut(), resolution_s)).collect()
}
