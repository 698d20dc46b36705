use std::collections::BTreeMap;

use nenrin_urls::Server;

use super::Findings;

/// The law: a server has one request at a time, none sooner than it allows after the last, and none
/// outside the site's hours.
#[derive(Debug, Default)]
pub struct Politeness {
    servers: BTreeMap<Server, Seen>,
    /// What was broken.
    pub findings: Findings,
}

#[derive(Debug, Default)]
struct Seen {
    under_way: u32,
    ended_ms: Option<i64>,
    leave_alone_until_ms: i64,
}

impl Politeness {
    /// A request goes out. `pause_ms` is what the server asks for between two.
    pub fn asked(&mut self, now_ms: i64, server: &Server, pause_ms: i64, in_hours: bool) {
        let seen = self.servers.entry(server.clone()).or_default();
        seen.under_way += 1;
        if seen.under_way > 1 {
            self.findings.note(|| format!("{server}: two requests at once at {now_ms} ms"));
        }
        if let Some(ended_ms) = seen.ended_ms
            && now_ms - ended_ms < pause_ms
        {
            let gap_ms = now_ms - ended_ms;
            self.findings.note(|| {
                format!("{server}: asked {gap_ms} ms after the last answer, {pause_ms} ms are due")
            });
        }
        if now_ms < seen.leave_alone_until_ms {
            let early_ms = seen.leave_alone_until_ms - now_ms;
            self.findings.note(|| format!("{server}: asked {early_ms} ms before its Retry-After"));
        }
        if !in_hours {
            self.findings.note(|| {
                format!("{server}: asked for a page out of the site's hours, at {now_ms} ms")
            });
        }
    }

    /// A request has ended; the server may have asked for a pause.
    pub fn answered(&mut self, now_ms: i64, server: &Server, retry_after_s: Option<i64>) {
        let seen = self.servers.entry(server.clone()).or_default();
        seen.under_way = seen.under_way.saturating_sub(1);
        seen.ended_ms = Some(now_ms);
        if let Some(wait_s) = retry_after_s {
            seen.leave_alone_until_ms = now_ms + wait_s * 1000;
        }
    }

    /// The crawler's clock was turned: how long ago a server was asked is not known any more.
    pub fn clock_turned(&mut self) {
        for seen in self.servers.values_mut() {
            (seen.ended_ms, seen.leave_alone_until_ms) = (None, i64::MIN);
        }
    }

    /// The worker of some servers died: its connections are gone.
    pub fn crashed(&mut self, now_ms: i64, is_lost: impl Fn(&Server) -> bool) {
        for (server, seen) in &mut self.servers {
            if seen.under_way > 0 && is_lost(server) {
                seen.under_way = 0;
                seen.ended_ms = Some(now_ms);
            }
        }
    }
}
