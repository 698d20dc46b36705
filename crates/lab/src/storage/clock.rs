//! Times of a piece of work.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Wall-clock time, and processor time of this process (including threads that ran at the same
/// time).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Took {
    /// Wall-clock time.
    pub seconds: f64,
    /// Processor time, without other programs.
    pub cpu_seconds: f64,
}

impl std::ops::AddAssign for Took {
    fn add_assign(&mut self, other: Self) {
        self.seconds += other.seconds;
        self.cpu_seconds += other.cpu_seconds;
    }
}

/// Does something and returns its times.
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

/// Processor time of this thread, in milliseconds.
pub(crate) fn thread_cpu_ms() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e3 + now.tv_nsec as f64 / 1e6
}

/// Seconds on a clock that only goes forward, since some beginning.
pub(crate) fn monotonic_s() -> f64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}
