//! The paper's plans for a round, and those they are compared with.

mod cho;
mod gated;
mod ordered;
mod sequence;

pub use cho::{ChoOptions, ChoSampling};
pub use gated::GatedPlan;
pub use ordered::OrderedPlan;
pub use sequence::ThenPlan;
