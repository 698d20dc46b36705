//! The embedded state: one SQLite file in WAL mode, synced at every commit.

mod bags;
mod batch;
mod commit;
mod contracts;
mod due;
mod engine;
mod incidents;
mod known;
mod learnt;
mod links;
mod log;
mod migrate;
mod open;
mod overview;
mod portion;
mod prune;
mod read;
mod removal;
mod rows;
mod schedule;
mod structure;
mod taken;
#[cfg(test)]
mod tests;
mod validators;
mod worth;

pub use engine::SqliteState;
