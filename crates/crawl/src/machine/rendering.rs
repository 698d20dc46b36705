//! A page is rendered: what it asked for becomes known as its parts, and it is rendered again once
//! they are there.

use std::collections::BTreeSet;

use nenrin_revisit::Circle;
use nenrin_state::{Change, FoundPages, PageId, Schedule, SiteId};
use nenrin_urls::CanonicalUrl;

use crate::{
    answer::{Answer, FoundLink, LinkRole, Ticket},
    discovery::discover,
    events::{Command, Load, RenderOrder},
    learning::Links,
    near::NearQuery,
    plans::VisitResult,
    renderings::{Next, RenderCase, Rendered},
    under_way::{Committing, Release},
};

use super::Crawl;

impl Crawl {
    /// A visit is committed: pages that waited for it are rendered, and so is the page itself. The
    /// page is released when nothing more is done for it, so that its round does not end before.
    pub(super) fn visit_committed(
        &mut self,
        url: &CanonicalUrl,
        release: (SiteId, VisitResult),
        own: Option<Box<RenderCase>>,
        out: &mut Vec<Command>,
    ) {
        self.visit_data(url, release.0, release.1.page, out);
        let mut cases = self.renderings.visited(url, self.under_way.is_rendering());
        cases.extend(own.map(|case| *case));
        if self.is_stopping {
            cases.clear();
        }
        let mut release = Some(release);
        for case in cases {
            self.start_rendering(case, release.take(), out);
        }
        self.release_after(release, out);
    }

    /// A page was visited on its own schedule: what its scripts ask for is visited, too, so that both
    /// are of one time. In a round everything is visited anyway.
    fn visit_data(
        &mut self,
        url: &CanonicalUrl,
        site: SiteId,
        page: PageId,
        out: &mut Vec<Command>,
    ) {
        let conditions = self.sites.conditions(site);
        let is_continuous = conditions
            .is_some_and(|conditions| matches!(conditions.schedule, Schedule::Continuous(_)));
        let data = self.learning.data_of(page.server(), url);
        if is_continuous && !self.is_stopping && !data.is_empty() {
            let query = NearQuery {
                site,
                page,
                url: url.clone(),
                circles: vec![Circle::Below],
                links: data.to_vec(),
                limit: data.len(),
                is_data: true,
            };
            out.push(Command::Load(Load::Near(Box::new(query))));
        }
    }

    /// Puts a page in the line of those that are rendered.
    fn start_rendering(&mut self, case: RenderCase, release: Release, out: &mut Vec<Command>) {
        let ticket = self.under_way.new_ticket();
        self.under_way.render(ticket, case, release);
        self.renderings.line_up(ticket);
        self.next_rendering(out);
    }

    /// Has the next page rendered, if none is. Whether it is worth it is judged again: the trials before
    /// it may have shown that its family needs no browser.
    pub(super) fn next_rendering(&mut self, out: &mut Vec<Command>) {
        while let Some(ticket) = self.renderings.next_in_line(self.is_stopping) {
            let Some(case) = self.under_way.to_render(ticket) else { continue };
            let is_wanted = case.pass > 1 || self.is_rendered(&case.due, Some(case.scripts), 200);
            if self.is_stopping || !is_wanted {
                let release = self.under_way.rendered(ticket).and_then(|(_, release)| release);
                self.release_after(release, out);
                continue;
            }
            let order = RenderOrder {
                ticket,
                url: case.due.page.url.clone(),
                version: case.version,
                at_s: case.at_s,
                site: case.due.site,
                keeps: None,
            };
            // It takes about as long as some visits, and the budget is one of visits.
            self.schedules.count_visit(order.at_s, order.site, &self.options);
            self.renderings.begin(ticket);
            out.push(Command::Render(Box::new(order)));
        }
    }

    /// What the last pass brought is stored before the page is released.
    fn keep_rendering(
        &mut self,
        keeps: Ticket,
        case: RenderCase,
        release: Release,
        out: &mut Vec<Command>,
    ) {
        let ticket = self.under_way.new_ticket();
        out.push(Command::Render(Box::new(RenderOrder {
            ticket,
            url: case.due.page.url.clone(),
            version: case.version,
            at_s: case.at_s,
            site: case.due.site,
            keeps: Some(keeps),
        })));
        self.under_way.render(ticket, case, release);
    }

    /// What a rendering brought is stored: what it found becomes known, then the page is released.
    fn rendering_kept(
        &mut self,
        now_s: i64,
        ticket: Ticket,
        case: RenderCase,
        release: Release,
        out: &mut Vec<Command>,
    ) {
        if case.found.is_empty() {
            return self.release_after(release, out);
        }
        // The parts are queued by the commit that makes them known, before the page is released.
        self.under_way.commit(ticket, Committing::Parts { release });
        let found = FoundPages { site: case.due.site, at_s: now_s, pages: case.found };
        out.push(Command::Commit { ticket: Some(ticket), change: Change::Found(found) });
    }

    /// A page was rendered, and the next one can be.
    pub(super) fn rendered(
        &mut self,
        now_ms: i64,
        ticket: Ticket,
        rendered: Rendered,
        out: &mut Vec<Command>,
    ) {
        self.renderings.ended(ticket);
        self.take_rendered(now_ms, ticket, rendered, out);
        self.next_rendering(out);
    }

    fn take_rendered(
        &mut self,
        now_ms: i64,
        ticket: Ticket,
        rendered: Rendered,
        out: &mut Vec<Command>,
    ) {
        let Some((mut case, release)) = self.under_way.rendered(ticket) else { return };
        if rendered.is_kept {
            return self.rendering_kept(now_ms / 1000, ticket, case, release, out);
        }
        let missing: BTreeSet<CanonicalUrl> = rendered.missing.iter().cloned().collect();
        let answer = Answer { status: 200, links: found_links(&rendered), ..Answer::default() };
        let now_s = now_ms / 1000;
        let site = self.sites.get(case.due.site);
        let discovery = site.map(|site| discover(site, &case.due, &answer, now_s));
        let mut discovery = discovery.unwrap_or_default();
        self.learning.refuse(now_s, &case.due, discovery.refused, out);
        let links = Links { found: &mut discovery.pages, tops: &[], is_sitemap: false };
        self.learning.leave_traps(now_s, &case.due, links, out);
        let pages = discovery.pages;
        let parts: BTreeSet<CanonicalUrl> = pages
            .iter()
            .map(|page| &page.url)
            .filter(|url| missing.contains(url))
            .cloned()
            .collect();
        let renderings = &mut self.renderings;
        let learn = |families: &mut _| {
            renderings.learn(families, &case, &rendered, !parts.is_empty());
        };
        self.learning.learn_families(case.due.page.id.server(), learn, out);
        if rendered.has_no_browser {
            return self.release_after(release, out);
        }
        let page = &case.due.page;
        self.learning.learn_data(page.id.server(), &page.url, &rendered.data, out);
        case.found = pages;
        match self.renderings.wait(case, parts) {
            Next::Pass(again) => {
                out.push(Command::ForgetRendering(ticket));
                self.start_rendering(again, release, out);
            }
            Next::Waits(waiting) => {
                out.push(Command::ForgetRendering(ticket));
                self.rendering_kept(now_s, ticket, waiting, release, out);
            }
            Next::Done(last) => self.keep_rendering(ticket, last, release, out),
        }
    }

    /// A page's visit, with all that follows from it, is over.
    pub(super) fn release_after(&mut self, release: Release, out: &mut Vec<Command>) {
        let Some((site, result)) = release else { return };
        let is_of_round = self.release(site, result.page, out);
        is_of_round.then(|| self.rounds.visited(site, result));
    }
}

fn found_links(rendered: &Rendered) -> Vec<FoundLink> {
    let part = |url: &CanonicalUrl| FoundLink { url: url.clone(), role: LinkRole::Embed };
    let link = |(url, is_frame): &(CanonicalUrl, bool)| FoundLink {
        url: url.clone(),
        role: if *is_frame { LinkRole::Frame } else { LinkRole::Page },
    };
    rendered.missing.iter().map(part).chain(rendered.links.iter().map(link)).collect()
}
