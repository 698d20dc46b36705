//! The contract between whoever visits pages and whatever decides which.

use crate::graph::PageIndex;

/// A page of one of the servers that share a round.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct PageRef {
    /// The server, as the caller numbers them.
    pub server: u32,
    /// The page in that server's graph.
    pub page: PageIndex,
}

impl PageRef {
    /// Page `page` of server `server`.
    #[must_use]
    pub fn new(server: u32, page: u32) -> Self {
        Self { server, page: PageIndex(page) }
    }
}

/// What a visit showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Seen {
    /// Other content than at the last visit, or gone.
    Changed,
    /// The same content, or "not modified".
    Same,
    /// No answer to learn from: an error, a refusal.
    Failed,
}

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Visit this page, and tell the plan what was seen.
    Visit(PageRef),
    /// Nothing to visit until a visit under way has been told.
    Wait,
    /// The round is over.
    Done,
}

/// Why a page was not visited in this round.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skipped {
    /// It was visited, or will be.
    No,
    /// No top of its sites changed.
    TopSame,
    /// No site above its own changed, so that its top was not looked at.
    UpperSame,
    /// Its server's sample changed too little.
    ServerSame,
    /// It is too deep, not reached by links, or gone.
    NotReached,
    /// Its chance of having changed is below what a visit costs.
    Unlikely(f32),
    /// The budget was spent before its turn came.
    NoBudget,
}

/// What to visit next, given what this round has shown so far.
///
/// A caller may have several visits under way: `next` never gives the same page twice, and
/// answers [`Step::Wait`] when it must hear of one first. A caller may stop at any time (its budget
/// is spent) and may tell of pages that the plan did not ask for.
pub trait RoundPlan {
    /// The next step.
    fn next(&mut self) -> Step;

    /// What a visit showed.
    fn seen(&mut self, page: PageRef, seen: Seen);

    /// Why a page has not been visited, as things stand.
    fn skipped(&self, page: PageRef) -> Skipped;
}

/// Runs a plan to its end, or until `budget` visits, with `look` as the eyes: the pages visited,
/// in order.
pub fn run_round(
    plan: &mut dyn RoundPlan,
    budget: usize,
    mut look: impl FnMut(PageRef) -> Seen,
) -> Vec<PageRef> {
    let mut visited = Vec::new();
    while visited.len() < budget {
        let Step::Visit(page) = plan.next() else { break };
        visited.push(page);
        plan.seen(page, look(page));
    }
    visited
}
