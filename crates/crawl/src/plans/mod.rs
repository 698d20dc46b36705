//! Rounds that choose their pages (paper 000, and `structure`'s own plan): what such a round waits
//! for ([`Planned`]), and the work on its plan, which is handed out because on a large site it takes
//! longer than a step may ([`PlanWork`]).

mod planned;
mod work;

pub(crate) use planned::Planned;
pub(crate) use work::{
    Beginning, Ended, PlanJob, PlanResult, Survey, VisitResult, learn_round, seen,
};
pub use work::{PlanDone, PlanWork};
