//! The state that workers share, in PostgreSQL: a schema for each partition, in plain rows.
//!
//! A commit loads every row that it needs with a few statements (`work`, `needs`), asks the rules
//! in memory (`apply`), and writes each table with one statement (`finish`).

mod apply;
mod changes;
mod commit;
mod crawl;
mod engine;
mod finish;
mod joint;
mod leases;
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
mod versions;
mod wait;
mod work;

pub use self::{
    engine::PostgresState,
    leases::{Lease, MailRow, PartitionRow, WorkerId, WorkerRow},
    open::{Found, PostgresArchive},
    pool::PostgresPlace,
};
