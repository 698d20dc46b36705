//! What a failed request means, from the fetcher's error.

use nenrin_fetch::FetchFailure;
use nenrin_lang::Reason;

use crate::answer::Trouble;

impl Trouble {
    /// Why a request brought no answer.
    pub fn of(failure: &FetchFailure) -> Self {
        Self {
            reason: Reason::Unfetched(failure.into()),
            of_server: failure.is_server_trouble(),
            refused: matches!(failure, FetchFailure::AddressRefused { .. }),
        }
    }

    /// The program failed while it read an answer.
    pub fn internal(why: String) -> Self {
        Self { reason: Reason::Internal(why), of_server: false, refused: false }
    }
}
