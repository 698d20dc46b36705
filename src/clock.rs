//! The only module that reads the clock.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds since the epoch.
#[expect(clippy::disallowed_methods, reason = "the program's one clock")]
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// For measuring how long something takes: it never goes back.
#[expect(clippy::disallowed_methods, reason = "the program's one clock")]
pub(crate) fn instant() -> Instant {
    Instant::now()
}

/// Seconds since the epoch.
pub(crate) fn now_s() -> i64 {
    now_ms() / 1000
}
