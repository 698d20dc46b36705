//! What a visit changes in its page's record.

use nenrin_state::{Outcome, PageRecord, PageUpdate};

use crate::answer::Answer;

/// What a visit changes in its page's record, as far as the answer says. Its history and the time of
/// its next visit are the schedule's to set.
pub fn page_update(page: &PageRecord, outcome: Outcome, answer: Option<&Answer>) -> PageUpdate {
    let fresh = answer.filter(|_| matches!(outcome, Outcome::Changed | Outcome::Same));
    let failures = match outcome {
        Outcome::Failed | Outcome::Gone => page.failures + 1,
        _ => 0,
    };
    let kept = PageUpdate {
        validators: page.validators.clone(),
        mark: page.mark,
        bytes: page.bytes,
        history: page.history.clone(),
        due_s: page.due_s,
        failures,
    };
    match fresh {
        Some(answer) => PageUpdate {
            validators: answer.validators.clone(),
            mark: answer.mark,
            bytes: answer.body_bytes,
            ..kept
        },
        None => kept,
    }
}
