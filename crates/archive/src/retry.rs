//! Errors of the state that may pass by themselves are waited out.

use std::{thread, time::Duration};

use nenrin_state::StateError;

/// Pauses before the call is made again: long enough for another process that holds the database
/// to finish, short enough for a person who waits.
const PAUSES: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_millis(800),
    Duration::from_millis(3_200),
];

/// Makes a call of the state, and makes it again a few times if the error may pass by itself.
///
/// # Errors
/// [`StateError`] that stays, or that cannot pass.
pub fn retried<T>(call: impl FnMut() -> Result<T, StateError>) -> Result<T, StateError> {
    retried_after(&PAUSES, call)
}

fn retried_after<T>(
    pauses: &[Duration],
    mut call: impl FnMut() -> Result<T, StateError>,
) -> Result<T, StateError> {
    for &pause in pauses {
        match call() {
            Err(error) if error.is_transient() => {
                tracing::warn!(%error, ?pause, "the state failed, trying again");
                thread::sleep(pause);
            }
            answer => return answer,
        }
    }
    call()
}

#[cfg(test)]
mod tests {
    use nenrin_crawl::{Event, Load, answer_load};
    use nenrin_state::SqliteState;

    use super::*;

    fn busy() -> StateError {
        let (path, action) = ("state.db".into(), "read");
        StateError::Engine { path, action, source: "the database is locked".into() }
    }

    /// Asks a state that fails some times first; returns the answer and how often it was asked.
    fn asked(
        failures: usize,
        error: impl Fn() -> StateError,
    ) -> (Result<Event, StateError>, usize) {
        let state = SqliteState::in_memory(3_600).unwrap();
        let mut calls = 0;
        let answer = retried_after(&[Duration::ZERO; 4], || {
            calls += 1;
            if calls <= failures { Err(error()) } else { answer_load(&state, 0, &Load::Sites) }
        });
        (answer, calls)
    }

    #[test]
    fn an_error_that_passes_is_waited_out() {
        let (answer, calls) = asked(4, busy);
        assert!(matches!(answer, Ok(Event::Sites(_))));
        assert_eq!(calls, 5);
    }

    #[test]
    fn an_error_that_stays_is_reported_after_a_bounded_number_of_calls() {
        let (answer, calls) = asked(usize::MAX, busy);
        assert!(answer.is_err());
        assert_eq!(calls, 5);
    }

    #[test]
    fn an_error_that_cannot_pass_is_reported_at_once() {
        let (answer, calls) = asked(usize::MAX, || StateError::NoSuchSite { name: "e".to_owned() });
        assert!(matches!(answer, Err(StateError::NoSuchSite { .. })));
        assert_eq!(calls, 1);
    }
}
