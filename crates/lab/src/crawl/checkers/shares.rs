use std::collections::BTreeMap;

use nenrin_state::{Mail, NumberedMail, PartitionId, Received, State, StateError};

use super::Findings;

/// The law: what pages give to pages of other partitions arrives there once. All that was sent is
/// received, and an order that is current was given exactly what its partition received.
#[derive(Debug, Default)]
pub struct Shares {
    /// The number of the last mail seen, by sender and receiver.
    seen: BTreeMap<(PartitionId, PartitionId), u64>,
    /// What was sent to each partition, in millionths.
    sent: BTreeMap<PartitionId, u64>,
    /// The part of it that was handed on after the visits of the pages that gave it.
    pub later_micros: u64,
    /// What was broken.
    pub findings: Findings,
}

impl Shares {
    /// A partition committed: looks at the mail that it sent.
    pub fn committed(&mut self, state: &dyn State) -> Result<(), StateError> {
        let (partitioning, from) = state.partition();
        for to in partitioning.all().filter(|to| *to != from) {
            let seen = self.seen.entry((from, to)).or_default();
            for NumberedMail { number, mail } in state.outbox(to, *seen, usize::MAX)? {
                *seen = number;
                let micros = match mail {
                    Mail::Share { micros, .. } => micros,
                    Mail::MoreShare { micros, .. } => {
                        self.later_micros += micros;
                        micros
                    }
                    _ => 0,
                };
                *self.sent.entry(to).or_default() += micros;
            }
        }
        Ok(())
    }

    /// All mail was delivered: compares with what a partition received.
    pub fn check(&mut self, state: &dyn State) -> Result<(), StateError> {
        let (_, own) = state.partition();
        let sent = self.sent.get(&own).copied().unwrap_or(0);
        let received = sum(&state.received()?);
        if sent != received {
            self.findings.note(|| format!("{own:?} was sent {sent} and received {received}"));
        }
        Ok(())
    }

    /// An order that is current: compares what it was given with what its partition received.
    pub fn check_order(&mut self, state: &dyn State, given: u64) -> Result<(), StateError> {
        let received = sum(&state.received()?);
        if given != received {
            let own = state.partition().1;
            self.findings.note(|| format!("{own:?} received {received}, its order has {given}"));
        }
        Ok(())
    }

    /// All that was sent so far.
    pub fn sent_micros(&self) -> u64 {
        self.sent.values().sum()
    }
}

fn sum(received: &[Received]) -> u64 {
    received.iter().map(|page| page.micros).sum()
}
