use nenrin_state::{PageFilter, State, StateError};

use super::Findings;

/// How long a page may wait beyond its time: the longest rest of a server, and a day.
const PATIENCE_S: i64 = 2 * 86_400;

/// The law: where pages have times of their own, every page has one, and none waits for ever.
#[derive(Debug, Default)]
pub struct Starvation {
    /// What was broken.
    pub findings: Findings,
}

impl Starvation {
    /// Looks at every page at the end.
    pub fn check(&mut self, state: &dyn State, now_s: i64) -> Result<(), StateError> {
        let mut after = None;
        loop {
            let pages = state.pages(PageFilter { site: None, after, limit: 10_000 })?;
            let Some(last) = pages.last() else { return Ok(()) };
            after = Some(last.id);
            for page in &pages {
                match page.due_s {
                    None => self.findings.note(|| format!("{} is never due again", page.url)),
                    Some(due_s) if due_s + PATIENCE_S < now_s => self
                        .findings
                        .note(|| format!("{} has been due for {} s", page.url, now_s - due_s)),
                    Some(_) => {}
                }
            }
        }
    }
}
