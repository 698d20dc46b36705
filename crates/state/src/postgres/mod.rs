//! The state that workers share, in PostgreSQL: a schema for each partition, in plain rows.
//!
//! A commit is two round trips: it begins and loads every row that it needs (`needs`, `loads`), asks the
//! rules in memory (`work`, `apply`), writes each table with one statement and ends (`finish`). The
//! holder of a partition keeps some of its rows in memory (`held`).

mod apply;
mod changes;
mod commit;
mod crawl;
mod engine;
mod finish;
mod held;
mod joint;
mod leases;
mod loads;
mod needs;
mod open;
mod pages;
mod pool;
mod registry;
mod reports;
mod rows;
#[cfg(test)]
mod tests;
mod tls;
mod upkeep;
mod values;
mod versions;
mod wait;
mod work;

pub use self::{
    engine::PostgresState,
    leases::{IDLE_LOAD, Lease, MailRow, News, PartitionRow, Renewed, WorkerId, WorkerRow},
    open::{Found, PostgresArchive},
    pool::{PostgresPlace, RoundTrips},
};
