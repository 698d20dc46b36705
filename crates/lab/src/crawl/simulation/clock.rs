//! The crawler's clock, which is wrong on some days.

use super::{Happening, Simulation};
use crate::{LabError, crawl::Sabotage};

/// A clock that is set back by more makes the program start again, as in the binary's driver.
const CLOCK_BACK_MS: i64 = 3_600_000;

impl Simulation {
    /// What the crawler's clock shows.
    pub(super) fn clock_ms(&self) -> i64 {
        self.now_ms + self.ahead_ms
    }

    /// The clock shows another time from now on.
    pub(super) fn turn_clock(&mut self) -> Result<(), LabError> {
        let ahead_ms = self.bad_days.ahead_ms(self.now_ms);
        let turned_ms = ahead_ms - std::mem::replace(&mut self.ahead_ms, ahead_ms);
        let clock_ms = self.clock_ms();
        self.note("clock", &turned_ms.to_string());
        // Nobody can say how long ago something was while the clock was turned.
        self.politeness.clock_turned();
        if turned_ms >= -CLOCK_BACK_MS {
            for worker in 0..self.workers.len() {
                if let Some(at_ms) = self.workers[worker].wake_ms {
                    self.later(worker, at_ms - clock_ms, Happening::Wake(at_ms));
                }
            }
            return Ok(());
        }
        self.robots.set_back(clock_ms / 1000);
        for worker in 0..self.workers.len() {
            let believes = self.options.sabotage == Some(Sabotage::BelievesTheClock);
            if !believes {
                let set_back = self.workers[worker].state.set_clock_back(clock_ms / 1000)?;
                self.report.set_back += set_back.unwrap_or(0);
            }
            self.crash(worker)?;
        }
        Ok(())
    }
}
