//! How far a compaction has come, and its result.

use super::options::CompactReport;

/// Steps are counted, not time: a record that is read, a picture that is tried, a body that is
/// written.
pub(super) struct Work<'p> {
    pub(super) report: CompactReport,
    done: u64,
    all: u64,
    progress: &'p mut dyn FnMut(u64, u64),
}

impl<'p> Work<'p> {
    pub(super) fn new(progress: &'p mut dyn FnMut(u64, u64)) -> Self {
        Self { report: CompactReport::default(), done: 0, all: 0, progress }
    }

    /// So many steps in all, as far as is known.
    pub(super) fn expect(&mut self, all: u64) {
        self.all = all;
        self.step(0);
    }

    /// So many steps more than were done until now.
    pub(super) fn expect_more(&mut self, steps: u64) {
        self.expect(self.done + steps);
    }

    /// So many steps that nobody expected.
    pub(super) fn add(&mut self, steps: u64) {
        self.expect(self.all + steps);
    }

    pub(super) fn step(&mut self, steps: u64) {
        self.done = (self.done + steps).min(self.all);
        (self.progress)(self.done, self.all);
    }

    pub(super) fn finish(&mut self) {
        self.done = self.all;
        self.step(0);
    }
}
