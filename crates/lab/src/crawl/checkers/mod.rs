//! Checkers: each knows one law and watches the simulation from outside.

mod durability;
mod judgement;
mod once;
mod politeness;
mod robots;
mod starvation;

pub use durability::Durability;
pub use judgement::Judgement;
pub use once::Once;
pub use politeness::Politeness;
pub use robots::Robots;
pub use starvation::Starvation;

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
