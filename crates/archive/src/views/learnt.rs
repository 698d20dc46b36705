//! What was learnt of a site's servers, for a person and for programs.

use nenrin_crawl::{Look, ServerLearning};
use nenrin_state::{ServerId, SiteId, State, StateError};
use nenrin_urls::Server;
use serde_json::{Value, json};

use crate::spans::{counted, readable_date};

/// Servers of one site that are looked at; a site rarely has more than its own and a few that hold
/// its pictures.
const SERVERS_SHOWN: usize = 50;

/// What was learnt of one server.
pub struct Learnt {
    server: Server,
    learnt: ServerLearning,
}

/// What was learnt of a site's servers, where there is anything.
///
/// # Errors
/// [`StateError`] of the state.
pub fn learnt_of(state: &dyn State, site: SiteId) -> Result<Vec<Learnt>, StateError> {
    let servers = state.site_servers(site, SERVERS_SHOWN)?;
    let ids: Vec<ServerId> = servers.iter().map(|server| server.id).collect();
    let records = state.servers(&ids)?.into_iter().filter(|record| !record.notes.is_empty());
    let learnt = |record: nenrin_state::ServerRecord| Learnt {
        server: record.server,
        learnt: ServerLearning::of(&record.notes),
    };
    Ok(records.map(learnt).collect())
}

impl Learnt {
    /// For programs.
    pub fn as_json(&self) -> Value {
        let learnt = &self.learnt;
        let traps = learnt.traps.refused.iter().map(|(trap, count)| {
            json!({
                "reason": trap, "text": trap.text(), "links": count.links,
                "example": count.example, "last_s": count.last_s,
            })
        });
        let signals = learnt.signals.sources.iter().map(|(url, source)| {
            json!({
                "url": url, "kind": source.kind, "read_s": source.read_s,
                "entries": source.entries, "dated": source.dated, "trust": source.trust,
            })
        });
        let (blocks, noisy) = learnt.noise.counts();
        json!({
            "server": self.server,
            "not_found": {
                "look": look_name(&learnt.probe.look), "asked_s": learnt.probe.asked_s,
                "worthless": learnt.probe.is_worthless(), "called_gone": learnt.probe.called_gone,
            },
            "traps": traps.collect::<Vec<_>>(), "signals": signals.collect::<Vec<_>>(),
            "blocks": blocks, "noisy_blocks": noisy,
        })
    }

    /// For a person, line by line.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("  {}", self.server)];
        let probe = &self.learnt.probe;
        if let Some(asked_s) = probe.asked_s {
            let look = match (&probe.look, probe.is_worthless()) {
                (_, true) => "like other pages, so it is ignored".to_owned(),
                (Look::Unknown, _) => "with no usable answer".to_owned(),
                (Look::Honest, _) => "with an error, as it should be".to_owned(),
                (Look::Page(_), _) => {
                    format!(
                        "with a page; {} found it instead of theirs",
                        counted(probe.called_gone, "visit")
                    )
                }
                (Look::Redirect(to), _) => {
                    format!(
                        "by redirecting to {to}; visits redirected there: {}",
                        probe.called_gone
                    )
                }
            };
            let asked = readable_date(asked_s);
            lines.push(format!("    a page that does not exist is answered {look} ({asked})"));
        }
        for (trap, count) in &self.learnt.traps.refused {
            let (links, example) = (counted(count.links, "link"), &count.example);
            let why = trap.text();
            lines.push(format!("    {links} not followed: {why} (such as {example})"));
        }
        for (url, source) in &self.learnt.signals.sources {
            let trust = &source.trust;
            let share = |share: Option<f64>| {
                share.map_or("unknown".to_owned(), |share| format!("{:.0}%", share * 100.0))
            };
            lines.push(format!(
                "    {url}: {}, {} dated; precision {}, recall {}, odds {:.1}{}",
                counted(source.entries.into(), "page"),
                source.dated,
                share(trust.precision()),
                share(trust.recall()),
                trust.odds(),
                if trust.is_believed() { ", believed" } else { "" },
            ));
        }
        let (blocks, noisy) = self.learnt.noise.counts();
        if blocks > 0 {
            lines.push(format!("    {noisy} of {blocks} changing blocks are noise"));
        }
        lines
    }
}

fn look_name(look: &Look) -> &'static str {
    match look {
        Look::Unknown => "unknown",
        Look::Honest => "honest",
        Look::Page(_) => "page",
        Look::Redirect(_) => "redirect",
    }
}
