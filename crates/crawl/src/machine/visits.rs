//! Visits: all that one makes true, and what follows once it is committed.

use std::collections::BTreeMap;

use nenrin_state::{
    Change, Committed, Discovered, DuePage, NewPage, Origin, Outcome, PageUpdate, ServerRecord,
    VersionRow, VisitCommit,
};
use nenrin_urls::CanonicalUrl;

use super::{Crawl, UnderWay};
use crate::{
    Answer, Command, FoundLink, LinkRole, SignalKind, Ticket, planned, planning::Heard,
    signals::assumed_depth, verdict::Verdict,
};

/// Links of one page that a crawl order is told of; some pages are nothing but links.
const LINKS_MAX: usize = 2_000;

impl Crawl {
    pub(super) fn visit(
        &mut self,
        at_ms: i64,
        due: &DuePage,
        verdict: Verdict,
        answer: Option<&Answer>,
        elapsed_ms: i64,
        out: &mut Vec<Command>,
    ) -> VisitCommit {
        let page = &due.page;
        let outcome = verdict.outcome;
        let fresh = answer.filter(|_| matches!(outcome, Outcome::Changed | Outcome::Same));
        let (mut discovered, new_tops) = match answer {
            Some(answer) if outcome.is_seen() => self.discovered(due, answer, at_ms / 1000),
            _ => (Vec::new(), Vec::new()),
        };
        let trapped = self.leave_traps(at_ms / 1000, due, &new_tops, &mut discovered, out);
        let kept = || PageUpdate {
            etag: page.etag.clone(),
            last_modified: page.last_modified.clone(),
            mark: page.mark,
            bytes: page.bytes,
            history: page.history.clone(),
            due_s: page.due_s,
            failures: match outcome {
                Outcome::Failed | Outcome::Gone => page.failures + 1,
                _ => 0,
            },
        };
        let update = match fresh {
            Some(answer) => PageUpdate {
                etag: answer.etag.clone(),
                last_modified: answer.last_modified.clone(),
                mark: answer.mark,
                bytes: answer.body_bytes,
                ..kept()
            },
            None => kept(),
        };
        let in_round = self.taken.get(&(due.site, page.id)).copied().unwrap_or(false);
        let mut visit = VisitCommit {
            page: page.id.into(),
            origin: Origin::Crawled,
            site: due.site,
            round: (self.rounds.get(&due.site).filter(|_| in_round)).map(|state| state.round.id),
            at_s: at_ms / 1000,
            outcome,
            status: answer.map_or(0, |answer| answer.status),
            detail: verdict.detail,
            elapsed_ms: u32::try_from(elapsed_ms).unwrap_or(u32::MAX),
            received_bytes: answer.map_or(0, |answer| answer.body_bytes),
            stored_bytes: 0,
            version: None,
            update,
            discovered,
            new_tops,
            trapped,
            importance_percent: self.weigh(page.nth),
            estimate: None,
            links: answer.filter(|_| outcome == Outcome::Changed).map(links_of),
        };
        if let (Some(answer), Outcome::Changed) = (answer, outcome) {
            let comparison = answer.comparison.as_deref();
            visit.version = Some(VersionRow {
                at_s: visit.at_s,
                version: 0,
                status: answer.status,
                mime: answer.mime.clone(),
                bytes: answer.body_bytes,
                changed_permille: self.changed_permille(due, comparison, out),
            });
        }
        let changed = visit.version.as_ref().is_some_and(|version| self.counts(due.site, version));
        self.plan_next(due, &mut visit, changed, answer, out);
        visit
    }

    /// Pages that an answer makes known, inside the site's conditions.
    pub(super) fn discovered(
        &self,
        due: &DuePage,
        answer: &Answer,
        found_s: i64,
    ) -> (Vec<Discovered>, Vec<CanonicalUrl>) {
        let Some(site) = self.sites.get(&due.site) else { return Default::default() };
        let conditions = &site.conditions;
        // Without rounds, the limit on pages is one on known pages.
        let full = conditions.max_pages.is_some_and(|most| site.counts.pages >= most);
        if full && conditions.schedule.continuous().is_some() {
            return Default::default();
        }
        // A new page of a site without rounds is due at once.
        let due_s = conditions.schedule.continuous().map(|_| found_s);
        if let (300..=399, Some(to)) = (answer.status, &answer.location) {
            let is_top = conditions.tops.contains(&due.page.url);
            let new_tops = if is_top { vec![to.clone()] } else { Vec::new() };
            let inside = is_top
                || conditions.scope.contains(&conditions.tops, to)
                || !conditions.scope.contains(&conditions.tops, &due.page.url);
            let target =
                Discovered { url: to.clone(), depth: due.depth, hops: due.hops + 1, due_s };
            return (if inside { vec![target] } else { Vec::new() }, new_tops);
        }
        let wanted = |link: &&FoundLink| {
            let inside = || conditions.scope.contains(&conditions.tops, &link.url);
            match link.role {
                LinkRole::Page => due.depth < conditions.depth && inside(),
                LinkRole::Frame => inside(),
                LinkRole::Embed => conditions.embeds || inside(),
                LinkRole::Listed => {
                    let signals = conditions.hints.signals;
                    signals && assumed_depth(&link.url) <= conditions.depth && inside()
                }
                LinkRole::Sitemap => {
                    let near = link.url.server() == due.page.url.server();
                    conditions.hints.signals && (near || inside())
                }
            }
        };
        let depth = |link: &FoundLink| match link.role {
            LinkRole::Page => due.depth + 1,
            LinkRole::Frame | LinkRole::Embed | LinkRole::Sitemap => due.depth,
            LinkRole::Listed => assumed_depth(&link.url),
        };
        let found = answer.links.iter().filter(wanted).map(|link| Discovered {
            url: link.url.clone(),
            depth: depth(link),
            hops: 0,
            due_s,
        });
        let mut found: Vec<Discovered> = found.collect();
        // Pages of other hosts become known first: their hosts are hardly known yet (paper 003).
        let host = due.page.url.host();
        found.sort_by_key(|page| page.url.host() == host);
        (found, Vec::new())
    }

    pub(super) fn stored(
        &mut self,
        ticket: Ticket,
        version: u64,
        stored_bytes: u64,
        out: &mut Vec<Command>,
    ) {
        match self.under_way.remove(&ticket) {
            Some(UnderWay::Storing { url, mut visit, blocks }) => {
                visit.stored_bytes = stored_bytes;
                if let Some(row) = &mut visit.version {
                    row.version = version;
                }
                let lost = blocks.as_ref().and_then(|blocks| blocks.lost.clone());
                if let (Some(blocks), Some(page)) = (blocks, visit.page.number()) {
                    let change = Change::Blocks { page, blocks };
                    out.push(Command::Commit { ticket: None, change });
                }
                self.commit_visit(ticket, url, visit, lost, out);
            }
            Some(other) => {
                self.under_way.insert(ticket, other);
            }
            None => {}
        }
    }

    pub(super) fn commit_visit(
        &mut self,
        ticket: Ticket,
        url: CanonicalUrl,
        visit: Box<VisitCommit>,
        lost: Option<Vec<u32>>,
        out: &mut Vec<Command>,
    ) {
        if let Some(round) = self.rounds.get_mut(&visit.site).filter(|_| visit.round.is_some()) {
            round.counts.count(visit.outcome);
            round.counts.received_bytes += visit.received_bytes;
            round.counts.stored_bytes += visit.stored_bytes;
            round.counts.trapped += visit.trapped;
        }
        if let Some(site) = self.sites.get_mut(&visit.site) {
            for top in &visit.new_tops {
                if !site.conditions.tops.contains(top) {
                    site.conditions.tops.push(top.clone());
                }
            }
        }
        let counts = visit.version.as_ref().is_none_or(|row| self.counts(visit.site, row));
        let seen = planned::seen(visit.outcome, visit.update.failures, counts);
        // A visit of the crawl names its page by number.
        let Some(page) = visit.page.number() else { return };
        let heard = Heard { page, seen, lost };
        let under_way = UnderWay::Committing { url, site: visit.site, heard };
        self.under_way.insert(ticket, under_way);
        out.push(Command::Commit { ticket: Some(ticket), change: Change::Visit(visit) });
    }

    pub(super) fn committed(
        &mut self,
        now_ms: i64,
        tickets: &[Ticket],
        rounds_ended: &[i64],
        committed: Committed,
        servers: Vec<ServerRecord>,
        out: &mut Vec<Command>,
    ) {
        self.meet_servers(now_ms, servers);
        let mut fresh = BTreeMap::new();
        for NewPage { due } in committed.new_pages {
            self.order_page(&due, out);
            if let Some(site) = self.sites.get_mut(&due.site) {
                site.counts.pages += 1;
            }
            self.count_new(now_ms / 1000, &due, out);
            if let Some(round) = self.rounds.get_mut(&due.site) {
                round.counts.new_pages += 1;
                self.enqueue(now_ms, due);
            } else if self.options.due_pages
                && due.page.due_s.is_some_and(|due_s| due_s <= now_ms / 1000)
            {
                if due.depth > 1 && due.page.visited_s.is_none() {
                    fresh.insert(due.page.nth, due);
                } else {
                    self.enqueue_due(now_ms, due, out);
                }
            }
        }
        committed.linked.iter().for_each(|linked| self.order_links(linked));
        self.feed_new(now_ms, fresh, out);
        for ticket in tickets {
            match self.under_way.remove(ticket) {
                Some(UnderWay::Committing { site, heard, .. }) => {
                    let in_round = self.taken.remove(&(site, heard.page)).unwrap_or(false);
                    if let Some(round) = self.rounds.get_mut(&site).filter(|_| in_round) {
                        round.open -= 1;
                        round.told(heard);
                    }
                }
                Some(UnderWay::Pulling { server }) => self.more_of(server),
                _ => {}
            }
        }
        for &round in rounds_ended {
            self.round_ended(round, out);
        }
    }
}

/// Where a page's links lead, for the crawl order. A sitemap names pages without choosing.
fn links_of(answer: &Answer) -> Vec<CanonicalUrl> {
    match (&answer.location, answer.signal) {
        (Some(to), _) if (300..400).contains(&answer.status) => vec![to.clone()],
        (_, Some(SignalKind::Sitemap)) => Vec::new(),
        _ => answer.links.iter().take(LINKS_MAX).map(|link| link.url.clone()).collect(),
    }
}
