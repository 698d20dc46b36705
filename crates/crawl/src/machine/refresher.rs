//! Paper 004's refresher: takes buckets from the long-term queue into the short-term queue.
//!
//! Once per bucket all buckets up to the present one are looked through, at most
//! `server_queue_max` pages of each server. Servers with more are remembered and get more when
//! half of these are done. So memory holds what is due soon, and a large server hides no other.

use std::collections::BTreeSet;

use nenrin_state::{
    Change, DueCursor, DueLoad, DuePage, DueQuery, PageId, PullForward, ServerId, ServerRecord,
};

use super::{Crawl, Task, UnderWay};
use crate::Command;

/// Where the refresher stands.
#[derive(Debug, Default)]
pub(super) struct Refresher {
    /// The last bucket that was looked through.
    seen_bucket: Option<i64>,
    scan: Option<BucketScan>,
    /// What the scan waits for; an answer to an earlier question does not move it.
    asked: Option<DueQuery>,
    /// Servers with due pages that are not in the short-term queue.
    more: BTreeSet<ServerId>,
    /// Those of them whose queue has run low.
    hungry: BTreeSet<ServerId>,
}

/// A pass over the buckets.
#[derive(Debug)]
struct BucketScan {
    until_bucket: i64,
    after: Option<DueCursor>,
    loading: bool,
}

impl Refresher {
    /// Pages that were passed over may be visited now: all buckets are looked through again.
    pub(super) fn look_again(&mut self) {
        self.seen_bucket = None;
        self.scan = None;
        self.asked = None;
    }

    /// Whether pages of this server wait to be loaded.
    pub(super) fn awaits(&self, server: ServerId) -> bool {
        self.more.contains(&server) || self.hungry.contains(&server)
    }

    /// Whether a page of this server may be due without being queued.
    fn note_more(&mut self, server: ServerId, queue_is_low: bool) {
        self.more.insert(server);
        if queue_is_low {
            self.hungry.insert(server);
        }
    }
}

impl Crawl {
    /// Loads what is due, as far as there is room.
    pub(super) fn refresh(&mut self, now_ms: i64, out: &mut Vec<Command>) {
        if !self.options.due_pages || self.schedules.is_empty() {
            return;
        }
        let bucket = self.bucket(now_ms);
        self.begin_scan(bucket);
        let mut room = self.options.queue_max.saturating_sub(self.frontier.queued());
        let (limit, per_server) = (self.options.load_batch, self.options.server_queue_max);
        if let Some(scan) = self.refresher.scan.as_mut().filter(|scan| !scan.loading)
            && room >= limit
        {
            scan.loading = true;
            room -= limit;
            let (until_s, after) = (scan.until_bucket * self.options.bucket_s, scan.after);
            let without = self.closed_sites();
            let query =
                DueQuery { until_s, new: false, after, server: None, without, per_server, limit };
            self.refresher.asked = Some(query.clone());
            out.push(Command::LoadDue(query));
        }
        let until_s = bucket * self.options.bucket_s;
        while room >= per_server
            && let Some(server) = self.refresher.hungry.pop_first()
        {
            room -= per_server;
            // Pages that are queued or under way still stand in their buckets.
            let limit = per_server + self.frontier.queued_for(server.0) + self.under_way.len();
            out.push(Command::LoadDue(DueQuery {
                until_s,
                new: false,
                after: None,
                server: Some(server),
                without: self.closed_sites(),
                per_server: limit,
                limit,
            }));
        }
    }

    fn begin_scan(&mut self, bucket: i64) {
        let refresher = &mut self.refresher;
        if refresher.scan.is_none() && refresher.seen_bucket.is_none_or(|seen| seen < bucket) {
            let after = refresher.seen_bucket.map(|seen| (seen + 1, PageId(-1)));
            refresher.scan = Some(BucketScan { until_bucket: bucket, after, loading: false });
        }
    }

    pub(super) fn due_loaded(
        &mut self,
        now_ms: i64,
        query: &DueQuery,
        load: DueLoad,
        servers: Vec<ServerRecord>,
        out: &mut Vec<Command>,
    ) {
        self.meet_servers(now_ms, servers);
        match query.server {
            Some(server) if query.new => self.any_new_loaded(server, !load.pages.is_empty()),
            None => self.scan_goes_on(query, &load),
            Some(server) if load.next.is_none() && load.more.is_empty() => {
                self.refresher.more.remove(&server);
            }
            Some(_) => {}
        }
        for due in load.pages {
            self.enqueue_due(now_ms, due, out);
        }
        for server in load.more.into_iter().filter(|_| !query.new) {
            self.more_of(server);
        }
    }

    fn scan_goes_on(&mut self, query: &DueQuery, load: &DueLoad) {
        if self.refresher.asked.as_ref() != Some(query) {
            return;
        }
        self.refresher.asked = None;
        let Some(scan) = &mut self.refresher.scan else { return };
        scan.loading = false;
        scan.after = load.next;
        if load.next.is_none() {
            self.refresher.seen_bucket = Some(scan.until_bucket);
            self.refresher.scan = None;
        }
    }

    /// Queues a page whose time has come, unless it is taken up already.
    pub(super) fn enqueue_due(&mut self, now_ms: i64, due: DuePage, out: &mut Vec<Command>) {
        let server = due.page.id.server();
        let place = (due.site, due.page.id);
        if self.taken.contains_key(&place) || !self.is_open(due.site) {
            return;
        }
        let is_new = due.page.visited_s.is_none();
        let full = self.frontier.queued() >= self.options.queue_max
            || (!is_new && self.frontier.queued_for(server.0) >= 2 * self.options.server_queue_max);
        if full {
            self.not_visited(&due);
            self.more_of(server);
            return;
        }
        if !is_new && self.put_off(now_ms, &due, out) {
            return;
        }
        self.taken.insert(place, false);
        self.set_delay(&due);
        self.push_page(due);
    }

    /// Pages of this server are due and not queued: they are loaded when its queue runs low.
    pub(super) fn more_of(&mut self, server: ServerId) {
        let low = self.queue_is_low(server);
        self.refresher.note_more(server, low);
    }

    /// A page of this server was taken up.
    pub(super) fn queue_shrank(&mut self, server: ServerId) {
        if self.refresher.more.contains(&server) && self.queue_is_low(server) {
            self.refresher.hungry.insert(server);
        }
        self.new_pages_shrank(server);
    }

    fn queue_is_low(&self, server: ServerId) -> bool {
        self.frontier.queued_for(server.0) <= self.options.server_queue_max / 2
    }

    /// A hint brings a page's visit nearer: what feeds, sitemaps and neighbours call.
    pub(super) fn pull_forward(&mut self, pull: PullForward, out: &mut Vec<Command>) {
        let ticket = self.new_ticket();
        self.under_way.insert(ticket, UnderWay::Pulling { server: pull.page.server() });
        out.push(Command::Commit { ticket: Some(ticket), change: Change::PullForward(pull) });
    }

    pub(super) fn bucket(&self, now_ms: i64) -> i64 {
        now_ms.div_euclid(1000 * self.options.bucket_s.max(1))
    }

    /// When the next bucket begins, if anything may lie in it.
    pub(super) fn next_bucket_ms(&self, now_ms: i64) -> Option<i64> {
        let wanted = self.options.due_pages && !self.schedules.is_empty();
        wanted.then(|| (self.bucket(now_ms) + 1) * 1000 * self.options.bucket_s.max(1))
    }

    /// Puts a page into its server's queue. A page that was never visited stands among the new
    /// ones, by the crawl order; but a round begins with its top pages, sitemaps and feeds.
    pub(super) fn push_page(&mut self, due: DuePage) {
        let in_round = self.taken.get(&(due.site, due.page.id)).copied().unwrap_or(false);
        let begins_round = in_round && (due.depth <= 1 || self.is_source(&due));
        if due.page.visited_s.is_none() && !begins_round {
            return self.push_new(due);
        }
        let server = due.page.id.server().0;
        let priority = self.priority(&due, in_round);
        self.frontier.push(server, priority, Task::Page(Box::new(due)));
    }

    /// Who has waited longest goes first; within a round, pages nearer to a top page.
    fn priority(&self, due: &DuePage, in_round: bool) -> u64 {
        let since_s = match self.rounds.get(&due.site) {
            // Sitemaps and feeds go first: what they say decides what is made of the others.
            Some(round) if in_round && self.is_source(due) => round.round.started_s,
            Some(round) if in_round => round.round.started_s + i64::from(due.depth),
            _ => due.page.due_s.unwrap_or(0),
        };
        since_s.max(1).unsigned_abs()
    }
}
