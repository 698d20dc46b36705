//! What the holder of a partition keeps of it in memory: servers, and pages that its commits found
//! and that were not visited yet. Nobody else changes these rows while it holds the partition, but
//! for people who register, change or remove sites: when they did, all is forgotten.

use std::collections::BTreeMap;

use crate::{Change, DuePage, Nth, PageRecord, ServerId, ServerRecord};

/// Pages kept; of others only the database knows.
const PAGES_MAX: usize = 20_000;
/// Servers kept, and bytes of their robots.txt; beyond, all are forgotten and looked up again.
const SERVERS_MAX: usize = 20_000;
const ROBOTS_BYTES_MAX: usize = 16 << 20;

#[derive(Default)]
pub(super) struct Held {
    /// How often others had changed the partition.
    outside: i64,
    /// Transactions under way, and how many have begun or ended so far: what was read meanwhile may be
    /// old.
    pub(super) under_way: u32,
    pub(super) turn: u64,
    pub(super) servers: BTreeMap<ServerId, ServerRecord>,
    robots_bytes: usize,
    pub(super) found: BTreeMap<Nth, DuePage>,
}

/// What a commit leaves of rows that are kept.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) outside: i64,
    pub(super) new_servers: Vec<ServerRecord>,
    pub(super) pages: Vec<ChangedPage>,
}

/// A page that changed.
pub(super) struct ChangedPage {
    pub(super) nth: Nth,
    /// The page, if it was not visited yet and has a time of its own; and whether it was pulled
    /// forward.
    pub(super) page: Option<(PageRecord, bool)>,
    /// Depth and hops, if they are known.
    pub(super) member: Option<(u32, u32)>,
    /// Whether no site knew it before.
    pub(super) is_entered: bool,
}

impl Held {
    pub(super) fn forget(&mut self) {
        self.servers.clear();
        self.robots_bytes = 0;
        self.found.clear();
    }

    pub(super) fn keep_server(&mut self, record: ServerRecord) {
        let bytes = |record: &ServerRecord| record.robots.as_ref().map_or(0, |r| r.body.len());
        if self.servers.len() >= SERVERS_MAX || self.robots_bytes > ROBOTS_BYTES_MAX {
            self.servers.clear();
            self.robots_bytes = 0;
        }
        self.robots_bytes += bytes(&record);
        let before = self.servers.insert(record.id, record);
        self.robots_bytes -= before.as_ref().map_or(0, bytes);
    }

    /// A commit has ended well.
    pub(super) fn committed(&mut self, changes: &[Change], kept: Kept) {
        if self.outside != kept.outside {
            self.forget();
            self.outside = kept.outside;
        }
        kept.new_servers.into_iter().for_each(|record| self.keep_server(record));
        for change in changes {
            let server = match change {
                Change::Robots { server, .. } => *server,
                Change::Pace(pace) => pace.server,
                Change::Note(note) => note.server,
                _ => continue,
            };
            if let Some(mut record) = self.servers.get(&server).cloned() {
                take(&mut record, change);
                self.keep_server(record);
            }
        }
        for changed in kept.pages {
            let before = self.found.remove(&changed.nth);
            let same_site = |page: &PageRecord| {
                before.as_ref().filter(|due| due.site == page.site).map(|due| (due.depth, due.hops))
            };
            let Some((page, pulled)) = changed.page else { continue };
            let is_kept = before.is_some() || changed.is_entered && self.found.len() < PAGES_MAX;
            if let Some((depth, hops)) = changed.member.or(same_site(&page)).filter(|_| is_kept) {
                let due = DuePage { site: page.site, page, depth, hops, pulled };
                self.found.insert(changed.nth, due);
            }
        }
    }
}

/// What a change that is committed makes of a server's record.
fn take(record: &mut ServerRecord, change: &Change) {
    match change {
        Change::Robots { tried_s, copy, .. } => {
            record.robots_tried_s = Some(*tried_s);
            record.robots = copy.clone().or(record.robots.take());
        }
        Change::Pace(pace) => {
            record.asked_ms = Some(pace.asked_ms);
            record.resting_until_ms = pace.resting_until_ms;
            record.strikes = pace.strikes;
            record.stretch_percent = pace.stretch_percent;
        }
        Change::Note(note) => {
            record.notes.remove(&note.name);
            if !note.value.is_empty() {
                record.notes.insert(note.name.clone(), note.value.clone());
            }
        }
        _ => {}
    }
}
