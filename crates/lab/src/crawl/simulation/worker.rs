//! The holder of one partition.

use std::collections::BTreeMap;

use nenrin_crawl::{Crawl, FetchOrder, Ticket};
use nenrin_state::{Epoch, Partitioning, SqliteState, State};

use crate::{
    LabError,
    crawl::{CrawlOptions, Sabotage, checkers::Judgement, oddities::Truth},
};

/// The machine that works on a partition, and the partition's state, which outlives it.
pub(super) struct Worker {
    pub(super) state: Box<dyn State>,
    pub(super) partitioning: Partitioning,
    pub(super) machine: Crawl,
    /// The epoch under which the machine holds the partition.
    pub(super) epoch: Epoch,
    pub(super) under_way: BTreeMap<Ticket, (FetchOrder, Truth)>,
    /// What is checked with the numbers of this partition.
    pub(super) judgement: Judgement,
    /// When the machine wants to be called.
    pub(super) wake_ms: Option<i64>,
    /// Grows with every crash and hand-over, so that what was pending before is not delivered after.
    pub(super) life: u64,
}

impl Worker {
    /// A worker for each partition.
    pub(super) fn all(options: &CrawlOptions) -> Result<Vec<Self>, LabError> {
        let partitioning = Partitioning { count: options.partitions.max(1) };
        let workers = partitioning.all().map(|own| {
            let state = SqliteState::partition_in_memory(3_600, partitioning, own)?;
            let state: Box<dyn State> = Box::new(state);
            let epoch = state.take_over()?;
            Ok(Self {
                state,
                partitioning,
                machine: machine(options, None),
                epoch,
                under_way: BTreeMap::new(),
                judgement: Judgement::default(),
                wake_ms: None,
                life: 0,
            })
        });
        workers.collect()
    }

    /// Another machine takes over. Every server counts as asked just now.
    pub(super) fn replace(&mut self, options: &CrawlOptions, now_ms: i64) -> Result<(), LabError> {
        self.epoch = self.state.take_over()?;
        self.machine = machine(options, Some(now_ms));
        self.under_way.clear();
        self.wake_ms = None;
        self.life += 1;
        Ok(())
    }
}

fn machine(options: &CrawlOptions, asked_before_ms: Option<i64>) -> Crawl {
    let mut machine =
        nenrin_crawl::CrawlOptions { asked_before_ms, order: options.order, ..Default::default() };
    machine.visits_per_day = options.visits_per_day;
    if let Some(servers) = options.servers_kept {
        machine.servers_kept = servers;
    }
    if options.sabotage == Some(Sabotage::HurriedPolitely) {
        machine.politeness.delay_ms -= 1_000;
    }
    Crawl::new(machine)
}
