//! The contract between the code that visits pages and the plan that chooses them.

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
    /// The content differs from the last visit, or is gone.
    Changed,
    /// The same content, or "not modified".
    Same,
    /// No answer to learn from: an error, a refusal.
    Failed,
}

/// What the caller should do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Visit this page, and report the result to the plan.
    Visit(PageRef),
    /// Nothing to visit until the result of a visit under way is reported.
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
    /// No site above its own changed, so that its top was not visited.
    UpperSame,
    /// Its server's sample changed too little.
    ServerSame,
    /// It is too deep, not reached by links, or gone.
    NotReached,
    /// Its chance of a change is below the price of a visit.
    Unlikely(f32),
    /// The budget was used up before its turn.
    NoBudget,
}

/// Chooses what to visit next, given what this round has shown so far.
///
/// A caller may have several visits under way: `next` never returns the same page twice, and
/// returns [`Step::Wait`] when it needs the result of one first. A caller may stop at any time (its
/// budget is used up) and may report pages that the plan did not name.
pub trait RoundPlan {
    /// The next step.
    fn next(&mut self) -> Step;

    /// Records the result of a visit.
    fn seen(&mut self, page: PageRef, seen: Seen);

    /// Why a page was not visited so far.
    fn skipped(&self, page: PageRef) -> Skipped;
}

/// Runs a plan to its end, or for `budget` visits, with `look` making the visits. Returns the pages
/// visited, in order.
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
