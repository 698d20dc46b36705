//! What can be wrong with names, durations and stored histories.

use thiserror::Error;

/// An input of this crate that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RevisitError {
    /// A duration that is not a number with a unit.
    #[error("'{text}' is not a duration; write a number and a unit, such as 90s, 15m, 12h or 7d")]
    BadDuration {
        /// What was written.
        text: String,
    },
    /// A policy name that no policy has.
    #[error(
        "'{name}' is not a revisit policy; write one of mle.min, mle.avg, mle.mix, mle.exact, aimd, \
         every, nutch, stormcrawler, budget and auto"
    )]
    UnknownPolicy {
        /// What was written.
        name: String,
    },
    /// A policy whose parameters are missing, unknown or out of range.
    #[error("policy '{policy}': {problem}; write it as {example}")]
    BadPolicy {
        /// The policy's name.
        policy: &'static str,
        /// What is wrong.
        problem: String,
        /// A form that is accepted.
        example: &'static str,
    },
    /// Weights that cannot be read.
    #[error(
        "'{text}' is not a list of weights; write them as ext=0.25,name=2,no-lm=4, each above 0"
    )]
    BadWeights {
        /// What was written.
        text: String,
    },
    /// Stored bytes that are not a page history.
    #[error("stored page history is damaged at byte {at}: {problem}; the page starts over")]
    BadHistory {
        /// Offset of the first byte that cannot be read.
        at: usize,
        /// What is wrong there.
        problem: &'static str,
    },
    /// Stored bytes that are not change clocks.
    #[error("stored change clocks are damaged at byte {at}: {problem}; they start over")]
    BadClocks {
        /// Offset of the first byte that cannot be read.
        at: usize,
        /// What is wrong there.
        problem: &'static str,
    },
    /// Stored bytes that are not the shared state of a budget or a price.
    #[error("the stored {what} is damaged; it starts over")]
    BadShared {
        /// What was stored.
        what: &'static str,
    },
    /// A rule for paths that cannot be read.
    #[error("'{text}' is not a rule for paths: {problem}; write it as '/news/* min=1h max=7d'")]
    BadPathRule {
        /// What was written.
        text: String,
        /// What is wrong.
        problem: String,
    },
    /// A collecting window that cannot be read.
    #[error(
        "'{text}' is not a collecting window: {problem}; write it as 'mon-fri 22:00-06:00 Asia/Tokyo'"
    )]
    BadWindow {
        /// What was written.
        text: String,
        /// What is wrong.
        problem: String,
    },
}
