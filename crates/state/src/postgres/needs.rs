//! Which rows a commit's changes need.

use nenrin_urls::CanonicalUrl;

use super::{
    apply::LINKS_MAX,
    engine::Settings,
    loads::{NO_SITE, Needs},
    work::elsewhere,
};
use crate::{
    Change, Discovered, Mail, Origin, SiteId, VisitCommit, VisitedPage, known::Known, url_hash,
};

pub(super) fn of(changes: &[Change], known: &Known, settings: Settings) -> Needs {
    let mut needs = Needs { mailboxes: true, ..Needs::default() };
    for change in changes {
        match change {
            Change::Visit(visit) => visited(&mut needs, visit, known, settings),
            Change::Lessons(lessons) => {
                needs.pages.insert(lessons.page);
                let compared = lessons.compared.iter().map(|(version, _)| (lessons.page, *version));
                needs.compared.extend(compared);
            }
            Change::Found(found) => {
                needs.sites.insert(found.site);
                for page in &found.pages {
                    discovered(&mut needs, found.site, page);
                }
            }
            Change::Announced(announced) => {
                let urls = announced.pages.iter().map(|(url, _)| (NO_SITE, url.clone()));
                needs.urls.extend(urls);
            }
            Change::Due { page, .. } => drop(needs.pages.insert(*page)),
            Change::PullForward(pull) => drop(needs.pages.insert(pull.page)),
            Change::Links { page, links } => {
                needs.pages.insert(*page);
                needs.linking.insert(*page);
                needs.urls.extend(links.iter().take(LINKS_MAX).map(|url| (NO_SITE, url.clone())));
            }
            Change::Weighed(pages) => needs.places.extend(pages.iter().map(|(nth, _)| *nth)),
            Change::MailTaken { mail, .. } => {
                mail.iter().for_each(|one| mailed(&mut needs, &one.mail));
            }
            Change::Need { site, .. } => {
                needs.asking.insert(site.unwrap_or(NO_SITE).0);
            }
            Change::Robots { .. }
            | Change::Pace(_)
            | Change::Note(_)
            | Change::RoundEnd(_)
            | Change::Order { .. }
            | Change::Blocks { .. }
            | Change::Structure(_)
            | Change::MailDelivered { .. }
            | Change::Shared { .. } => {}
        }
    }
    needs
}

fn discovered(needs: &mut Needs, site: SiteId, page: &Discovered) {
    needs.urls.insert((site, page.url.clone()));
}

fn visited(needs: &mut Needs, visit: &VisitCommit, known: &Known, settings: Settings) {
    let site = visit.site;
    needs.sites.insert(site);
    match &visit.page {
        VisitedPage::Known(page) => drop(needs.pages.insert(*page)),
        VisitedPage::Url(found) => discovered(needs, site, found),
    }
    if visit.origin == Origin::Packs {
        needs.packs.extend(visit.version.as_ref().map(|row| row.version));
        return;
    }
    let is_far = |url: &CanonicalUrl| elsewhere(settings, url).is_some();
    for found in &visit.discovered {
        let is_new = |(depth, _)| depth > found.depth;
        if !is_far(&found.url) && known.get(&Known::key(site, &found.url)).is_none_or(is_new) {
            discovered(needs, site, found);
        }
    }
    for url in visit.links.iter().flatten().take(LINKS_MAX) {
        if !is_far(url) && known.get(&Known::key(site, url)).is_none() {
            needs.urls.insert((NO_SITE, url.clone()));
        }
    }
    if !visit.new_tops.is_empty() {
        needs.tops.insert(site);
        needs.urls.extend(visit.new_tops.iter().map(|top| (site, top.clone())));
    }
    if visit.links.is_some() {
        match &visit.page {
            VisitedPage::Known(page) => drop(needs.linking.insert(*page)),
            VisitedPage::Url(found) => drop(needs.linking_urls.insert(found.url.clone())),
        }
    }
    needs.turns |= visit.version.is_some() && visit.origin == Origin::Crawled;
}

fn mailed(needs: &mut Needs, mail: &Mail) {
    match mail {
        Mail::Found { site, page, .. } => {
            needs.sites.insert(*site);
            discovered(needs, *site, page);
        }
        Mail::Top { site, url, .. } => {
            needs.sites.insert(*site);
            needs.tops.insert(*site);
            needs.urls.insert((*site, url.clone()));
        }
        Mail::Hint { url, .. } => drop(needs.urls.insert((NO_SITE, url.clone()))),
        Mail::Share { url, .. } => {
            needs.urls.insert((NO_SITE, url.clone()));
            needs.shares.insert(url_hash(url));
        }
        Mail::MoreShare { hash, .. } => drop(needs.shares.insert(*hash)),
        Mail::Need { site, .. } => drop(needs.asking.insert(site.unwrap_or(NO_SITE).0)),
        Mail::RoundEnd { .. } => {}
    }
}
