//! Pages that tend to change together: when one changed, those for which that makes a visit worth its
//! price are pulled forward.

use nenrin_revisit::{Circle, Companions, Found};
use nenrin_state::{DuePage, PageId, PageRecord, PullForward, SiteId, VisitCommit};
use nenrin_urls::CanonicalUrl;

use super::Crawl;
use crate::{Answer, Command, LinkRole, NearQuery, near::NEAR_MAX};

impl Crawl {
    /// Learns what a visit tells of the pages around it, and asks for those that are to be looked at.
    pub(super) fn tell_companions(
        &mut self,
        due: &DuePage,
        visit: &VisitCommit,
        found: Found,
        answer: Option<&Answer>,
        out: &mut Vec<Command>,
    ) {
        let Some(schedule) = self.schedules.get_mut(&due.site) else { return };
        let server = due.page.url.server();
        let is_below = |url: &CanonicalUrl| *url != due.page.url && url.server() == server;
        let links = answer.filter(|_| found == Found::Changed).map(|answer| &answer.links);
        let links: Vec<&CanonicalUrl> = (links.into_iter().flatten())
            .filter(|link| matches!(link.role, LinkRole::Page | LinkRole::Frame))
            .map(|link| &link.url)
            .filter(|url| is_below(url))
            .collect();
        let number = u64::from(due.page.id.server().0);
        let keys: Vec<u32> =
            links.iter().map(|url| Companions::key(number, url.path_and_query())).collect();
        let known = due.page.known();
        let circles = schedule.scheduler.tell(visit.at_s, &known, found, !due.pulled, &keys);
        if circles.is_empty() {
            return;
        }
        let links = match circles.contains(&Circle::Below) {
            true => links.into_iter().take(NEAR_MAX).cloned().collect(),
            false => Vec::new(),
        };
        out.push(Command::LoadNear(Box::new(NearQuery {
            site: due.site,
            page: due.page.id,
            url: due.page.url.clone(),
            circles,
            links,
            limit: NEAR_MAX,
        })));
    }

    /// Pages near one that changed came from the state.
    pub(super) fn near_loaded(
        &mut self,
        now_ms: i64,
        query: &NearQuery,
        pages: Vec<PageRecord>,
        out: &mut Vec<Command>,
    ) {
        let now_s = now_ms / 1000;
        let worth: Vec<PageId> = (pages.into_iter())
            .filter(|page| self.is_worth(now_s, query.site, page))
            .map(|page| page.id)
            .collect();
        for page in worth {
            let why = format!("tends to change with {}", query.url);
            self.pull_forward(PullForward { page, to_s: now_s, odds_percent: 100, why }, out);
        }
    }

    fn is_worth(&self, now_s: i64, site: SiteId, page: &PageRecord) -> bool {
        let Some(schedule) = self.schedules.get(&site).filter(|_| !self.stopping) else {
            return false;
        };
        page.due_s.is_some_and(|due_s| due_s > now_s)
            && !self.taken.contains_key(&(site, page.id))
            && schedule.scheduler.is_told(now_s, &page.known()).is_some()
    }
}
