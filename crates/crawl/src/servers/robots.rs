//! What a server's robots.txt allows, and for how long that is known (RFC 9309).

use nenrin_fetch::RobotsRules;
use nenrin_state::{RobotsCopy, ServerRecord};

use crate::{
    answer::{Answer, Trouble},
    options::CrawlOptions,
};

/// Redirects followed to a robots.txt (RFC 9309 asks for at least five).
pub(crate) const HOPS_MAX: u32 = 5;

/// A server's rules at the moment.
#[derive(Debug)]
pub(crate) enum Rules {
    /// They must be asked for first.
    Unknown,
    /// They are known.
    Known(RobotsRules),
    /// The server could not be asked for them and no copy is young enough: nothing may be fetched.
    Unreachable,
}

/// The rules that hold now, from the record.
pub(crate) fn rules(record: &ServerRecord, now_s: i64, options: &CrawlOptions) -> Rules {
    let fresh = |at_s: i64| now_s - at_s < options.robots_fresh_s;
    if !record.robots_tried_s.is_some_and(fresh) {
        return Rules::Unknown;
    }
    match &record.robots {
        Some(copy) if now_s - copy.good_at_s < options.robots_stale_s => {
            Rules::Known(parsed(copy, options))
        }
        _ => Rules::Unreachable,
    }
}

/// Until when [`rules`] answers the same.
pub(crate) fn rules_until_s(record: &ServerRecord, now_s: i64, options: &CrawlOptions) -> i64 {
    let fresh_s = record.robots_tried_s.unwrap_or(now_s).saturating_add(options.robots_fresh_s);
    match &record.robots {
        Some(copy) if now_s - copy.good_at_s < options.robots_stale_s => {
            fresh_s.min(copy.good_at_s.saturating_add(options.robots_stale_s))
        }
        _ => fresh_s,
    }
}

fn parsed(copy: &RobotsCopy, options: &CrawlOptions) -> RobotsRules {
    match copy.status {
        200..=299 => RobotsRules::parse(&copy.body, &options.agent_token),
        _ => RobotsRules::allow_all(),
    }
}

/// The copy to keep of an answer, if the answer counts: a good one, or one that says that there is
/// no robots.txt. Anything else leaves the last good copy in force.
pub(crate) fn copy(now_s: i64, result: &Result<Answer, Trouble>) -> Option<RobotsCopy> {
    let answer = result.as_ref().ok()?;
    let counts = matches!(answer.status, 200..=299 | 300..=428 | 430..=499);
    counts.then(|| RobotsCopy {
        good_at_s: now_s,
        status: answer.status,
        body: answer.robots_body.clone(),
    })
}
