//! Odd servers: missing pages that are shown with a good status, shells that look alike, guards
//! that challenge, traps, sitemaps with wrong dates. Each is a function of the seed, like the rest
//! of the web.

use nenrin_crawl::{Announcement, Answer, FetchOrder, FoundLink, LinkRole, SignalKind};
use nenrin_extract::{ContentKind, Fingerprint, compare};
use nenrin_state::Validators;
use nenrin_urls::CanonicalUrl;

use super::web::{Web, mark};

/// Where links lead that should not have been made.
pub(super) const DEAD: &str = "/dead/";
/// Where a crawler goes round for ever.
pub(super) const TRAP: &str = "/trap/";
/// Where sitemaps are by custom.
const SITEMAP: &str = "/sitemap.xml";
/// Every so many pages link to one that does not exist.
const DEAD_EVERY: u32 = 8;

/// What is odd about a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Oddity {
    /// It answers as it should.
    None,
    /// Pages that do not exist are shown, with a good status.
    SoftPage,
    /// Pages that do not exist lead to the top page.
    SoftRedirect,
    /// Every page is the same shell, also one that does not exist.
    Shell,
    /// A guard challenges now and then.
    Guarded,
    /// Some links never end.
    Trapped,
    /// Every other change is a counter alone.
    Noisy,
}

/// What a server's sitemap is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Honesty {
    /// There is none.
    None,
    /// It dates every change truly.
    Honest,
    /// It says "now" of every page.
    Lying,
}

/// What only the simulation knows of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Truth {
    /// Which revision of the page it was.
    pub revision: u64,
    /// The page does not exist, whatever the status says.
    pub missing: bool,
    /// A guard answered.
    pub challenged: bool,
    /// Against what the crawler had, only a counter changed.
    pub noise: bool,
}

impl Web {
    /// What is odd about a server.
    pub fn oddity(&self, server: u32) -> Oddity {
        if !self.odd {
            return Oddity::None;
        }
        match (self.draw(&[20, u64::from(server)]) * 100.0) as u32 {
            0..10 => Oddity::SoftPage,
            10..18 => Oddity::SoftRedirect,
            18..24 => Oddity::Shell,
            24..32 => Oddity::Guarded,
            32..42 => Oddity::Trapped,
            42..52 => Oddity::Noisy,
            _ => Oddity::None,
        }
    }

    /// What a server's sitemap is worth.
    pub fn honesty(&self, server: u32) -> Honesty {
        if !self.odd {
            return Honesty::None;
        }
        match (self.draw(&[21, u64::from(server)]) * 100.0) as u32 {
            0..25 => Honesty::Honest,
            25..40 => Honesty::Lying,
            _ => Honesty::None,
        }
    }

    /// The line of a robots.txt that names the sitemap, for half of the servers that have one.
    pub(super) fn sitemap_line(&self, server: u32) -> String {
        let names = self.draw(&[22, u64::from(server)]) < 0.5;
        match self.honesty(server) {
            Honesty::None => String::new(),
            _ if names => format!("Sitemap: http://s{server}.example{SITEMAP}\n"),
            _ => String::new(),
        }
    }

    /// An odd answer, if this URL gets one.
    pub(super) fn odd(
        &self,
        order: &FetchOrder,
        server: u32,
        exists: bool,
        now_ms: i64,
    ) -> Option<(Answer, Truth)> {
        let path = order.url.path();
        if path == SITEMAP && self.honesty(server) != Honesty::None {
            return Some(self.sitemap(order, server, now_ms / 1000));
        }
        if path.starts_with(TRAP) && self.oddity(server) == Oddity::Trapped {
            return Some((self.trap(&order.url), Truth { revision: 1, ..Truth::default() }));
        }
        if self.oddity(server) == Oddity::Guarded && self.is_challenged(&order.url, now_ms) {
            let challenge = Some("cloudflare".to_owned());
            let answer = Answer { status: 403, challenge, ..Answer::default() };
            return Some((answer, Truth { challenged: true, ..Truth::default() }));
        }
        if exists {
            return None;
        }
        let truth = Truth { missing: true, ..Truth::default() };
        match self.oddity(server) {
            Oddity::SoftPage => Some((self.soft_page(&order.url), truth)),
            Oddity::Shell => {
                let fingerprint = Some(self.print(&[30, u64::from(server)]));
                Some((Answer { fingerprint, ..self.soft_page(&order.url) }, truth))
            }
            Oddity::SoftRedirect => {
                let location = order.url.join("/").ok();
                let mark = Some(mark(&order.url, 0));
                Some((Answer { status: 302, location, mark, ..Answer::default() }, truth))
            }
            _ => None,
        }
    }

    fn is_challenged(&self, url: &CanonicalUrl, now_ms: i64) -> bool {
        let day = (now_ms / 86_400_000) as u64;
        let page = u64::from(url.path().len() as u32);
        self.draw(&[23, page, day]) < 0.1
    }

    /// "Not found" with status 200, which breeds further links to pages that do not exist.
    fn soft_page(&self, url: &CanonicalUrl) -> Answer {
        let further = url.join(&format!("{DEAD}{}x", url.path().len())).ok();
        let link = |url| FoundLink { url, role: LinkRole::Page };
        Answer {
            status: 200,
            mime: "text/html".to_owned(),
            mark: Some(mark(url, 0)),
            fingerprint: Some(self.print(&[31])),
            body_bytes: 2_000,
            links: further.into_iter().map(link).collect(),
            ..Answer::default()
        }
    }

    /// A page of a calendar, of a shop with switches, and of a loop of directories.
    fn trap(&self, url: &CanonicalUrl) -> Answer {
        let step = url.query().map_or(0, str::len) as u64 + url.path().len() as u64;
        let month = self.draw(&[24, step]);
        let links = [
            format!("{TRAP}cal/{}/{:02}/", 2030 + (month * 900.0) as u32, step % 12 + 1),
            format!("{TRAP}shop?{}=1&n={step}", ["a", "b", "c", "d"][(step % 4) as usize]),
            format!("{TRAP}shop?p{step}=1"),
            format!("{}loop/", url.directory()),
            format!("{}?PHPSESSID={step}", url.path()),
        ];
        let link = |link: String| url.join(&link).ok();
        Answer {
            status: 200,
            validators: Validators { etag: Some("\"1\"".to_owned()), last_modified: None },
            mime: "text/html".to_owned(),
            mark: Some(mark(url, 1)),
            fingerprint: Some(self.print(&[32, step])),
            body_bytes: 1_000,
            links: links
                .into_iter()
                .filter_map(link)
                .map(|url| FoundLink { url, role: LinkRole::Page })
                .collect(),
            ..Answer::default()
        }
    }

    fn sitemap(&self, order: &FetchOrder, server: u32, now_s: i64) -> (Answer, Truth) {
        let lies = self.honesty(server) == Honesty::Lying;
        let pages: Vec<(CanonicalUrl, i64)> =
            self.pages_of(server).map(|url| (url.clone(), self.changed_s(&url, now_s))).collect();
        let revision = match lies {
            true => now_s as u64,
            false => pages.iter().map(|(url, _)| self.revision(url, now_s)).sum(),
        };
        let etag = format!("\"{revision}\"");
        let truth = Truth { revision, ..Truth::default() };
        if order.validators.etag.as_deref() == Some(etag.as_str()) {
            return (Answer { status: 304, ..Answer::default() }, truth);
        }
        let answer = Answer {
            status: 200,
            validators: Validators { etag: Some(etag), last_modified: None },
            mime: "application/xml".to_owned(),
            mark: Some(mark(&order.url, revision)),
            body_bytes: 5_000,
            links: pages
                .iter()
                .map(|(url, _)| FoundLink { url: url.clone(), role: LinkRole::Listed })
                .collect(),
            signal: Some(SignalKind::Sitemap),
            announced: pages
                .into_iter()
                .map(|(url, changed_s)| Announcement {
                    url,
                    modified_s: Some(if lies { now_s } else { changed_s }),
                })
                .collect(),
            ..Answer::default()
        };
        (answer, truth)
    }

    /// Links to pages that do not exist and into traps.
    pub(super) fn odd_links(&self, server: u32, page: u32) -> Vec<CanonicalUrl> {
        let mut links = Vec::new();
        if self.odd && page % DEAD_EVERY == 3 {
            links.push(format!("http://s{server}.example{DEAD}{page}x"));
        }
        if page == 1 && self.oddity(server) == Oddity::Trapped {
            links.push(format!("http://s{server}.example{TRAP}"));
        }
        links.iter().filter_map(|link| CanonicalUrl::parse(link).ok()).collect()
    }

    /// What a real page looks like: its own look, or the shell's.
    pub(super) fn look_of(&self, server: u32, page: u32, revision: u64) -> Fingerprint {
        match self.oddity(server) {
            Oddity::Shell => self.print(&[30, u64::from(server)]),
            _ => self.print(&[33, u64::from(server), u64::from(page), revision]),
        }
    }

    fn print(&self, parts: &[u64]) -> Fingerprint {
        let simhash = self.hash(parts);
        Fingerprint { simhash, title: simhash >> 7, features: 100 }
    }

    /// How a noisy server's page differs from the revision that the crawler has.
    pub(super) fn difference(
        &self,
        order: &FetchOrder,
        server: u32,
        answer: &mut Answer,
        new: u64,
    ) -> bool {
        let known =
            order.validators.etag.as_deref().and_then(|etag| etag.trim_matches('"').parse().ok());
        let Some(old): Option<u64> = known.filter(|_| self.oddity(server) == Oddity::Noisy) else {
            return false;
        };
        let body = |revision: u64| {
            let story = self.hash(&[34, revision / 2]);
            let words: String =
                (0..8).map(|n| char::from(b'a' + (story >> (n * 8)) as u8 % 26)).collect();
            format!(
                "<title>Rings</title><p>Today the forest says {words}.</p><p>Visitors: {revision}</p>"
            )
        };
        let comparison =
            compare(ContentKind::Html, None, body(old).as_bytes(), body(new).as_bytes());
        answer.comparison = Some(Box::new(comparison));
        old / 2 == new / 2
    }
}
