//! Paper 004's refresher: takes buckets from the long-term queue into the short-term queue.
//!
//! Once per bucket all buckets up to the present one are looked through, at most
//! `server_queue_max` pages of each server. Servers with more are remembered and get more when
//! half of these are done. So memory holds what is due soon, and a large server hides no other.

use std::collections::BTreeSet;

use nenrin_state::{DueCursor, DueLoad, DueQuery, PageId, ServerId, SiteId};

use crate::{
    events::{Command, Load},
    options::CrawlOptions,
    servers::Servers,
};

/// How far the long-term queue was looked through.
#[derive(Debug, Default)]
pub(crate) struct DuePages {
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
    is_loading: bool,
}

impl DuePages {
    /// Pages that were passed over may be visited now: all buckets are looked through again.
    pub(crate) fn look_again(&mut self) {
        self.seen_bucket = None;
        self.scan = None;
        self.asked = None;
    }

    /// Whether pages of this server wait to be loaded.
    pub(crate) fn awaits(&self, server: ServerId) -> bool {
        self.more.contains(&server) || self.hungry.contains(&server)
    }

    /// Loads what is due, as far as the queue has capacity. `under_way` pages are still in their
    /// buckets.
    pub(crate) fn refresh(
        &mut self,
        now_ms: i64,
        servers: &Servers,
        under_way: usize,
        closed_sites: impl Fn() -> Vec<SiteId>,
        options: &CrawlOptions,
        out: &mut Vec<Command>,
    ) {
        let bucket = options.bucket(now_ms);
        self.begin_scan(bucket);
        let mut room = options.queue_max.saturating_sub(servers.queued());
        let (limit, per_server) = (options.load_batch, options.server_queue_max);
        let query = DueQuery {
            until_s: bucket * options.bucket_s,
            new: false,
            after: None,
            server: None,
            without: Vec::new(),
            per_server,
            limit,
        };
        if let Some(scan) = self.scan.as_mut().filter(|scan| !scan.is_loading)
            && room >= limit
        {
            scan.is_loading = true;
            room -= limit;
            let query = DueQuery {
                until_s: scan.until_bucket * options.bucket_s,
                after: scan.after,
                without: closed_sites(),
                ..query.clone()
            };
            self.asked = Some(query.clone());
            out.push(Command::Load(Load::Due(query)));
        }
        while room >= per_server
            && let Some(server) = self.hungry.pop_first()
        {
            room -= per_server;
            // Pages that are queued or under way are still in their buckets.
            let limit = per_server + servers.queued_for(server) + under_way;
            out.push(Command::Load(Load::Due(DueQuery {
                server: Some(server),
                without: closed_sites(),
                per_server: limit,
                limit,
                ..query.clone()
            })));
        }
    }

    fn begin_scan(&mut self, bucket: i64) {
        if self.scan.is_none() && self.seen_bucket.is_none_or(|seen| seen < bucket) {
            let after = self.seen_bucket.map(|seen| (seen + 1, PageId(-1)));
            self.scan = Some(BucketScan { until_bucket: bucket, after, is_loading: false });
        }
    }

    /// Due pages came from the state.
    pub(crate) fn loaded(&mut self, query: &DueQuery, load: &DueLoad) {
        match query.server {
            None => self.scan_goes_on(query, load),
            Some(server) if load.next.is_none() && load.more.is_empty() => {
                self.more.remove(&server);
            }
            Some(_) => {}
        }
    }

    fn scan_goes_on(&mut self, query: &DueQuery, load: &DueLoad) {
        if self.asked.as_ref() != Some(query) {
            return;
        }
        self.asked = None;
        let Some(scan) = &mut self.scan else { return };
        scan.is_loading = false;
        scan.after = load.next;
        if load.next.is_none() {
            self.seen_bucket = Some(scan.until_bucket);
            self.scan = None;
        }
    }

    /// Pages of this server are due and not queued: they are loaded when its queue runs low.
    pub(crate) fn more_of(&mut self, server: ServerId, queue_is_low: bool) {
        self.more.insert(server);
        if queue_is_low {
            self.hungry.insert(server);
        }
    }

    /// A page of this server was taken up.
    pub(crate) fn queue_shrank(
        &mut self,
        server: ServerId,
        servers: &Servers,
        options: &CrawlOptions,
    ) {
        if self.more.contains(&server) && servers.is_low(server, options) {
            self.hungry.insert(server);
        }
    }
}
