//! Foreign decoders on hostile input: their panics mean "as it was".

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static IS_AT_WORK: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is inside a decoder whose panics are caught: a panic hook need not report
/// them.
pub fn panic_is_expected() -> bool {
    IS_AT_WORK.get()
}

/// What `work` comes to, nothing if it panics.
pub(super) fn guarded<T>(work: impl FnOnce() -> Option<T>) -> Option<T> {
    let before = IS_AT_WORK.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    IS_AT_WORK.set(before);
    outcome.ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_inside_means_nothing_and_is_expected_only_there() {
        assert_eq!(guarded(|| Some(panic_is_expected())), Some(true));
        assert_eq!(guarded::<()>(|| panic!("hostile input")), None);
        assert!(!panic_is_expected());
    }
}
