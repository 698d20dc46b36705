//! Which pages an answer makes known, inside the site's conditions.

use nenrin_state::{Discovered, DuePage, Site};
use nenrin_urls::CanonicalUrl;

use crate::{
    answer::{Answer, FoundLink, LinkRole, SignalKind},
    hops,
    signals::assumed_depth,
    traps::Trap,
};

/// Sitemaps of one index that are visited.
const SITEMAPS_MAX: usize = 1_000;
/// Pages that a site of rounds may know beyond its limit on pages.
const KNOWN_BEYOND_MAX: u64 = 10_000;

/// Links of one page that a crawl order learns of; some pages are nothing but links.
const LINKS_MAX: usize = 2_000;

/// What an answer makes known.
#[derive(Debug, Default)]
pub(crate) struct Discovery {
    pub(crate) pages: Vec<Discovered>,
    /// Targets of a redirected top page: they are top pages as well.
    pub(crate) new_tops: Vec<CanonicalUrl>,
    /// Links that would lead on for ever.
    pub(crate) refused: Vec<(Trap, CanonicalUrl)>,
}

/// The pages that an answer makes known to a site.
pub(crate) fn discover(site: &Site, due: &DuePage, answer: &Answer, found_s: i64) -> Discovery {
    let conditions = &site.conditions;
    let room = room(site);
    if room == 0 {
        return Discovery::default();
    }
    // A new page of a site without rounds is due at once.
    let due_s = conditions.schedule.continuous().map(|_| found_s);
    if let (300..=399, Some(to)) = (answer.status, &answer.location) {
        let is_top = conditions.tops.contains(&due.page.url);
        // A redirect must not make another host of a private network one of the site's own.
        let is_own = !conditions.allow_private || conditions.allows_private(to);
        let new_tops = if is_top && is_own { vec![to.clone()] } else { Vec::new() };
        let inside = is_top
            || conditions.collects(to)
            || !conditions.scope.contains(&conditions.tops, &due.page.url);
        let hops = hops::redirected(due.hops);
        let target = Discovered { url: to.clone(), depth: due.depth, hops, due_s };
        let pages = if inside { vec![target] } else { Vec::new() };
        return Discovery { pages, new_tops, refused: Vec::new() };
    }
    let mut found = Discovery::default();
    let mut sitemaps = 0;
    for link in answer.links.iter().filter(|link| is_wanted(site, due, link)) {
        sitemaps += usize::from(link.role == LinkRole::Sitemap);
        let hops = hops(due, link);
        let trap = match link.role {
            LinkRole::Sitemap if hops::levels(hops) > 1 => Some(Trap::NestedIndex),
            LinkRole::Sitemap if sitemaps > SITEMAPS_MAX => Some(Trap::ManySitemaps),
            LinkRole::Frame | LinkRole::Embed if hops::levels(hops) > hops::LEVELS_MAX => {
                Some(Trap::DeepParts)
            }
            _ => None,
        };
        match trap {
            Some(trap) => found.refused.push((trap, link.url.clone())),
            None => found.pages.push(Discovered {
                url: link.url.clone(),
                depth: depth(due, link),
                hops,
                due_s,
            }),
        }
    }
    // Pages of other hosts become known first: their hosts are hardly known yet (paper 003).
    let host = due.page.url.host();
    found.pages.sort_by_key(|page| page.url.host() == host);
    found.pages.truncate(room);
    found
}

/// How many more pages a site with a limit on pages may know. Without rounds the limit is one on
/// known pages; a round visits no more than the limit, and some more may be known for the next.
fn room(site: &Site) -> usize {
    let conditions = &site.conditions;
    let Some(most) = conditions.max_pages else { return usize::MAX };
    let beyond = if conditions.schedule.continuous().is_some() { 0 } else { KNOWN_BEYOND_MAX };
    let room = most.saturating_add(beyond).saturating_sub(site.counts.pages);
    usize::try_from(room).unwrap_or(usize::MAX)
}

fn is_wanted(site: &Site, due: &DuePage, link: &FoundLink) -> bool {
    let conditions = &site.conditions;
    let inside = || conditions.collects(&link.url);
    match link.role {
        LinkRole::Page => due.depth < conditions.depth && inside(),
        LinkRole::Frame => inside(),
        LinkRole::Embed => (conditions.embeds || inside()) && !conditions.leaves_out(&link.url),
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

fn hops(due: &DuePage, link: &FoundLink) -> u32 {
    match link.role {
        LinkRole::Page | LinkRole::Listed => 0,
        LinkRole::Frame | LinkRole::Embed | LinkRole::Sitemap => hops::part_of(due.hops),
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
