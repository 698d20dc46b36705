//! What something took.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Time on the wall, and of the processor in this process (threads that ran beside count too).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Took {
    /// On the wall.
    pub seconds: f64,
    /// Of the processor; what other programs used is not in it.
    pub cpu_seconds: f64,
}

impl std::ops::AddAssign for Took {
    fn add_assign(&mut self, other: Self) {
        self.seconds += other.seconds;
        self.cpu_seconds += other.cpu_seconds;
    }
}

/// Does something and says what it took.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Took) {
    #[expect(clippy::disallowed_methods, reason = "the time that work takes is what is measured")]
    let began = Instant::now();
    let cpu_began_s = cpu_s();
    let result = work();
    let took = Took { seconds: began.elapsed().as_secs_f64(), cpu_seconds: cpu_s() - cpu_began_s };
    (result, took)
}

fn cpu_s() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}
