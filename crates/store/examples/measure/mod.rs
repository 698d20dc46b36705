//! What the experiments of this crate measure with.

/// CPU time of this thread: on a busy machine the time on the wall says little.
pub(crate) fn cpu_s() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// What reading took, of each of many versions.
#[allow(dead_code, reason = "each experiment is a program of its own and takes what it needs")]
pub(crate) fn distribution(times_ms: &mut [f64]) -> String {
    times_ms.sort_by(f64::total_cmp);
    let at = |part: f64| times_ms[((times_ms.len() - 1) as f64 * part) as usize];
    format!(
        "{} reads, CPU ms mean {:.3}, p50 {:.3}, p99 {:.3}, max {:.3}, {} above 5",
        times_ms.len(),
        times_ms.iter().sum::<f64>() / times_ms.len() as f64,
        at(0.5),
        at(0.99),
        at(1.0),
        times_ms.iter().filter(|ms| **ms > 5.0).count()
    )
}

/// The most memory that this process ever had.
pub(crate) fn peak_memory_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}
