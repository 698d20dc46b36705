//! Laws that are broken on purpose, to see their checkers fail.

/// A law broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// The machine waits a second less than it should.
    HurriedPolitely,
    /// Commits forget some of the pages that their visit discovered.
    ForgetfulCommit,
    /// Every content is called new.
    BlindToSameness,
    /// The machine never sees what a page looks like, nor who answered.
    BlindToLooks,
    /// Some pages are never loaded from the long-term queue.
    LeakyBuckets,
    /// The machine takes every robots.txt for one that allows everything.
    DeafToRobots,
    /// Times in the future stay when the clock is set back.
    BelievesTheClock,
    /// Mail to other partitions gets lost.
    LosesMail,
    /// Every partition takes the whole budget of the archive for its own.
    UndividedBudget,
}
