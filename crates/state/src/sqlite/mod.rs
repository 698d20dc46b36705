//! The embedded state: one SQLite file in WAL mode, synced at every commit.

mod bags;
mod batch;
mod changes;
mod check;
mod clock;
mod commit;
mod contracts;
mod discover;
mod due;
mod engine;
mod far;
mod inbox;
mod incidents;
mod joint;
mod links;
mod log;
mod lost;
mod mail;
mod notes;
mod open;
mod overview;
mod packed;
mod portion;
mod prune;
mod read;
mod received;
mod removal;
mod rows;
mod schedule;
mod servers;
mod settings;
mod sites;
mod structure;
mod sums;
mod taken;
#[cfg(test)]
mod tests;
mod times;
mod validators;
mod versions;
mod visits;
mod watches;
mod worth;

pub use engine::SqliteState;
