use std::collections::BTreeMap;

use nenrin_crawl::{Answer, Trouble};
use nenrin_urls::{CanonicalUrl, Server};

use super::Findings;

/// A robots.txt serves at most this long before it is asked for again (RFC 9309), and the page whose
/// turn it was may be under way meanwhile.
const FRESH_S: i64 = 86_400;
/// The last good one serves this long where it cannot be asked for again.
const STALE_S: i64 = 30 * 86_400;

/// The law: a page is asked for only after its server's robots.txt was asked for within a day, and
/// never what the last good answer forbids; where that is older than 30 days, or there is none,
/// nothing is asked for. It reads the answers itself, in the few forms that the simulated web has.
#[derive(Debug, Default)]
pub struct Robots {
    servers: BTreeMap<Server, Received>,
    /// What was broken.
    pub findings: Findings,
}

#[derive(Debug, Clone, Default)]
struct Received {
    now: Known,
    /// What is committed, and so what a crawler that died goes on with.
    kept: Known,
}

#[derive(Debug, Clone, Default)]
struct Known {
    asked_s: Option<i64>,
    good: Option<Rules>,
}

#[derive(Debug, Clone, Default)]
struct Rules {
    at_s: i64,
    shut: Vec<String>,
    delay_ms: i64,
}

impl Robots {
    /// A server answered when it was asked for its robots.txt.
    pub fn answered(&mut self, now_s: i64, server: &Server, result: &Result<Answer, Trouble>) {
        let received = self.servers.entry(server.clone()).or_default();
        received.now.asked_s = Some(now_s);
        let Ok(answer) = result else { return };
        match answer.status {
            200..=299 => received.now.good = Some(Rules::read(now_s, &answer.robots_body)),
            429 | 500.. => {}
            _ => received.now.good = Some(Rules { at_s: now_s, ..Rules::default() }),
        }
    }

    /// What was received of a server's robots.txt is committed.
    pub fn committed(&mut self, server: &Server) {
        if let Some(received) = self.servers.get_mut(server) {
            received.kept = received.now.clone();
        }
    }

    /// The crawler's clock was set back: what was received in the future counts as received now.
    pub fn set_back(&mut self, now_s: i64) {
        let known = self.servers.values_mut().flat_map(|heard| [&mut heard.now, &mut heard.kept]);
        for known in known {
            known.asked_s = known.asked_s.map(|at_s| at_s.min(now_s));
            known.good.iter_mut().for_each(|rules| rules.at_s = rules.at_s.min(now_s));
        }
    }

    /// The worker of some servers died: the next knows what was committed.
    pub fn crashed(&mut self, is_lost: impl Fn(&Server) -> bool) {
        for (_, received) in self.servers.iter_mut().filter(|(server, _)| is_lost(server)) {
            received.now = received.kept.clone();
        }
    }

    /// The pause that the rules in force ask for.
    pub fn pause_ms(&self, server: &Server) -> i64 {
        let rules = self.servers.get(server).and_then(|received| received.now.good.as_ref());
        rules.map_or(0, |rules| rules.delay_ms)
    }

    /// A page is asked for.
    pub fn asked(&mut self, now_s: i64, url: &CanonicalUrl) {
        let known = self.servers.get(&url.server()).map(|received| &received.now);
        let broken = match known {
            Some(Known { asked_s: Some(asked_s), .. }) if now_s - asked_s > FRESH_S => {
                Some("by rules older than a day")
            }
            Some(Known { good: Some(rules), .. }) if now_s - rules.at_s > STALE_S => {
                Some("by a robots.txt older than 30 days")
            }
            Some(Known { good: Some(rules), .. }) => {
                let path = url.path_and_query();
                let is_shut = rules.shut.iter().any(|shut| path.starts_with(shut.as_str()));
                is_shut.then_some("though the robots.txt in force forbids it")
            }
            _ => Some("before its robots.txt was read"),
        };
        if let Some(broken) = broken {
            self.findings.note(|| format!("{url} was asked for at {now_s} s {broken}"));
        }
    }
}

impl Rules {
    fn read(at_s: i64, body: &[u8]) -> Self {
        let mut rules = Self { at_s, ..Self::default() };
        for line in String::from_utf8_lossy(body).lines() {
            match line.split_once(": ") {
                Some(("Disallow", path)) => rules.shut.push(path.to_owned()),
                Some(("Crawl-delay", seconds)) => {
                    rules.delay_ms = seconds.parse::<i64>().unwrap_or(0) * 1000;
                }
                _ => {}
            }
        }
        rules
    }
}
