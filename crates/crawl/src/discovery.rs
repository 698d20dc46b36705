//! Which pages an answer makes known, inside the site's conditions.

use nenrin_state::{Discovered, DuePage, Site};
use nenrin_urls::CanonicalUrl;

use crate::{
    answer::{Answer, FoundLink, LinkRole, SignalKind},
    signals::assumed_depth,
};

/// Links of one page that a crawl order learns of; some pages are nothing but links.
const LINKS_MAX: usize = 2_000;

/// What an answer makes known.
#[derive(Debug, Default)]
pub(crate) struct Discovery {
    pub(crate) pages: Vec<Discovered>,
    /// Targets of a redirected top page: they are top pages as well.
    pub(crate) new_tops: Vec<CanonicalUrl>,
}

/// The pages that an answer makes known to a site.
pub(crate) fn discover(site: &Site, due: &DuePage, answer: &Answer, found_s: i64) -> Discovery {
    let conditions = &site.conditions;
    // Without rounds, the limit on pages is one on known pages.
    let full = conditions.max_pages.is_some_and(|most| site.counts.pages >= most);
    if full && conditions.schedule.continuous().is_some() {
        return Discovery::default();
    }
    // A new page of a site without rounds is due at once.
    let due_s = conditions.schedule.continuous().map(|_| found_s);
    if let (300..=399, Some(to)) = (answer.status, &answer.location) {
        let is_top = conditions.tops.contains(&due.page.url);
        let new_tops = if is_top { vec![to.clone()] } else { Vec::new() };
        let inside = is_top
            || conditions.scope.contains(&conditions.tops, to)
            || !conditions.scope.contains(&conditions.tops, &due.page.url);
        let target = Discovered { url: to.clone(), depth: due.depth, hops: due.hops + 1, due_s };
        return Discovery { pages: if inside { vec![target] } else { Vec::new() }, new_tops };
    }
    let found = answer.links.iter().filter(|link| is_wanted(site, due, link));
    let mut pages: Vec<Discovered> = found
        .map(|link| Discovered { url: link.url.clone(), depth: depth(due, link), hops: 0, due_s })
        .collect();
    // Pages of other hosts become known first: their hosts are hardly known yet (paper 003).
    let host = due.page.url.host();
    pages.sort_by_key(|page| page.url.host() == host);
    Discovery { pages, new_tops: Vec::new() }
}

fn is_wanted(site: &Site, due: &DuePage, link: &FoundLink) -> bool {
    let conditions = &site.conditions;
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
}

fn depth(due: &DuePage, link: &FoundLink) -> u32 {
    match link.role {
        LinkRole::Page => due.depth + 1,
        LinkRole::Frame | LinkRole::Embed | LinkRole::Sitemap => due.depth,
        LinkRole::Listed => assumed_depth(&link.url),
    }
}

/// Where a page's links lead, for the crawl order. A sitemap names pages without choosing.
pub(crate) fn links_of(answer: &Answer) -> Vec<CanonicalUrl> {
    match (&answer.location, answer.signal) {
        (Some(to), _) if (300..400).contains(&answer.status) => vec![to.clone()],
        (_, Some(SignalKind::Sitemap)) => Vec::new(),
        _ => answer.links.iter().take(LINKS_MAX).map(|link| link.url.clone()).collect(),
    }
}
