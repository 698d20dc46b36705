//! Checkers: each knows one law and watches the simulation from outside.

mod budget;
mod durability;
mod judgement;
mod once;
mod politeness;
mod robots;
mod rounds;
mod shares;
mod starvation;

pub use budget::Budget;
pub use durability::Durability;
pub use judgement::Judgement;
pub use once::Once;
pub use politeness::Politeness;
pub use robots::Robots;
pub use rounds::RoundsTogether;
pub use shares::Shares;
pub use starvation::{Shared, Starvation, Turns};

/// Violations kept in words; beyond, they only repeat.
const KEPT: usize = 20;

/// What a checker found.
#[derive(Debug, Default)]
pub struct Findings(Vec<String>);

impl Findings {
    fn note(&mut self, what: impl FnOnce() -> String) {
        if self.0.len() < KEPT {
            self.0.push(what());
        }
    }

    /// In words.
    pub fn into_vec(self) -> Vec<String> {
        self.0
    }
}
