//! The simulated web: servers whose pages change, fail and link to each other by the seed alone.
//! Every answer is a function of seed, URL and time, so nothing has to be kept.

use std::time::Duration;

use nenrin_crawl::{Answer, FetchOrder, Fetched, FoundLink, LinkRole, Purpose, Trouble};
use nenrin_fetch::{FetchFailure, Waiting};
use nenrin_state::{ContentMark, Validators};
use nenrin_urls::{CanonicalUrl, Server};

use super::oddities::{DEAD, TRAP, Truth};

/// The simulated web.
#[derive(Debug, Clone)]
pub struct Web {
    seed: u64,
    servers: u32,
    pages: u32,
    faults: f64,
    /// Whether some servers are not as they should be.
    pub(super) odd: bool,
    /// Whether links go to some pages much more often than to others.
    favourites: bool,
    /// Whether some servers' robots.txt is another now and then, or none.
    moody: bool,
}

/// What a server has instead of its robots.txt for some days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RobotsMood {
    /// Its usual rules.
    Usual,
    /// More rules.
    Strict,
    /// It has no robots.txt.
    Absent,
    /// An error of the server.
    Broken,
    /// Nobody answers for it.
    Silent,
}

/// What came of a request, and what only the simulation knows of it.
pub struct Reply {
    /// What the crawler gets.
    pub fetched: Fetched,
    /// The truth behind it.
    pub truth: Truth,
}

/// A robots.txt shuts this path on every server.
const SHUT: &str = "/shut";
/// Links to popular pages on each page.
const FAVOURITES: u64 = 6;
/// A prime, so that ranks spread over a server's pages.
const SCATTER: u64 = 7_919;

impl Web {
    /// A web of that many servers and pages.
    pub fn new(seed: u64, servers: u32, pages: u32, faults: f64) -> Self {
        Self { seed, servers, pages, faults, odd: true, moody: true, favourites: false }
    }

    /// The same web, with odd servers or without.
    pub fn with_oddities(self, odd: bool) -> Self {
        Self { odd, ..self }
    }

    /// The same web, with robots.txt files that change or without.
    pub fn with_moods(self, moody: bool) -> Self {
        Self { moody, ..self }
    }

    /// What a server has for a robots.txt at a time: half of them change their minds every five
    /// days.
    pub fn robots_mood(&self, server: u32, at_s: i64) -> RobotsMood {
        let server = u64::from(server);
        if !self.moody || self.draw(&[40, server]) < 0.5 {
            return RobotsMood::Usual;
        }
        let turn = at_s.max(0).unsigned_abs() / (5 * 86_400);
        match (self.draw(&[41, server, turn]) * 100.0) as u32 {
            0..40 => RobotsMood::Usual,
            40..60 => RobotsMood::Strict,
            60..75 => RobotsMood::Absent,
            75..88 => RobotsMood::Broken,
            _ => RobotsMood::Silent,
        }
    }

    /// The same web, with pages that many link to or without.
    pub fn with_favourites(self, favourites: bool) -> Self {
        Self { favourites, ..self }
    }

    /// The top page of every server.
    pub fn tops(&self) -> Vec<CanonicalUrl> {
        (0..self.servers).filter_map(|server| self.url(server, 0)).collect()
    }

    fn url(&self, server: u32, page: u32) -> Option<CanonicalUrl> {
        let path = match page {
            0 => "/".to_owned(),
            _ if page.is_multiple_of(17) => format!("{SHUT}/{page}"),
            _ => format!("/d{}/p{page}", page % 5),
        };
        CanonicalUrl::parse(&format!("http://s{server}.example{path}")).ok()
    }

    fn place(url: &CanonicalUrl) -> Option<(u32, u32)> {
        let server = Self::server_of(url)?;
        let page = match url.path() {
            "/" => 0,
            path if path.starts_with(DEAD) || path.starts_with(TRAP) => return None,
            path => path.rsplit('/').next()?.trim_start_matches('p').parse().ok()?,
        };
        Some((server, page))
    }

    /// The number of a URL's server.
    pub fn server_of(url: &CanonicalUrl) -> Option<u32> {
        url.host().strip_prefix('s')?.strip_suffix(".example")?.parse().ok()
    }

    /// Whether there is such a page.
    pub fn exists(&self, url: &CanonicalUrl) -> bool {
        let inside = |(server, page)| server < self.servers && page < self.pages;
        url.query().is_none() && Self::place(url).is_some_and(inside)
    }

    /// The pages of a server that may be asked for.
    pub(super) fn pages_of(&self, server: u32) -> impl Iterator<Item = CanonicalUrl> {
        let urls = (0..self.pages).filter_map(move |page| self.url(server, page));
        urls.filter(|url| self.allows(url))
    }

    /// Whether robots.txt lets a page be asked for.
    pub fn allows(&self, url: &CanonicalUrl) -> bool {
        !url.path().starts_with(SHUT)
    }

    /// The pause that a server asks for by its Crawl-delay, once its robots.txt is known.
    pub fn crawl_delay_ms(&self, server: &Server) -> i64 {
        let number = server.host().strip_prefix('s').and_then(|h| h.strip_suffix(".example"));
        let number: u64 = number.and_then(|n| n.parse().ok()).unwrap_or(0);
        if self.draw(&[1, number]) < 0.2 { 5_000 } else { 0 }
    }

    /// The revision of a page at a time: pages change at rates from twice a day to never.
    pub fn revision(&self, url: &CanonicalUrl, at_s: i64) -> u64 {
        // A page that comes back has other content than before.
        let absences = self.absences(url, at_s).0 << 32;
        match self.rhythm(url) {
            Some((interval_s, phase_s)) => absences + 1 + ((at_s + phase_s) / interval_s) as u64,
            None => absences + u64::from(Self::place(url).is_some()),
        }
    }

    /// When a page last changed before a time.
    pub(super) fn changed_s(&self, url: &CanonicalUrl, at_s: i64) -> i64 {
        match self.rhythm(url) {
            Some((interval_s, phase_s)) => (at_s + phase_s) / interval_s * interval_s - phase_s,
            None => 0,
        }
    }

    /// Seconds between two changes of a page, and before the first; none if it never changes.
    fn rhythm(&self, url: &CanonicalUrl) -> Option<(i64, i64)> {
        let (server, page) = Self::place(url)?;
        let (server, page) = (u64::from(server), u64::from(page));
        let rate = self.draw(&[2, server, page]);
        if rate < 0.3 {
            return None;
        }
        let interval_s = (43_200.0 * 1000_f64.powf(rate)) as i64;
        let phase_s = (self.draw(&[3, server, page]) * interval_s as f64) as i64;
        Some((interval_s, phase_s))
    }

    /// How often a page went away so far, and whether it is away: one page in twenty is there for
    /// 40 days and away for 10, again and again. Top pages stay.
    fn absences(&self, url: &CanonicalUrl, at_s: i64) -> (u64, bool) {
        let Some((server, page)) = Self::place(url) else { return (0, false) };
        let (server, page) = (u64::from(server), u64::from(page));
        if page == 0 || self.draw(&[9, server, page]) >= 0.05 {
            return (0, false);
        }
        let phase_days = u64::from(self.pick(&[10, server, page], 50));
        let days = at_s.max(0).unsigned_abs() / 86_400 + phase_days;
        (days / 50, days % 50 >= 40)
    }

    /// Answers a request made at `now_ms`; `attempt` makes each try its own draw.
    pub fn answer(&self, order: &FetchOrder, now_ms: i64, attempt: u64) -> Reply {
        let draw = self.draw(&[4, attempt, now_ms as u64]);
        let elapsed_ms = 20 + (draw * 400.0) as i64;
        if draw < self.faults {
            let fetched = self.fault(attempt, elapsed_ms);
            return Reply { fetched, truth: Truth::default() };
        }
        if order.purpose == Purpose::Robots
            && let Some(server) = Self::server_of(&order.url)
        {
            let result = self.robots(&order.url.server(), server, now_ms / 1000);
            return Reply { fetched: Fetched { elapsed_ms, result }, truth: Truth::default() };
        }
        let (answer, truth) = self.good(order, now_ms);
        Reply { fetched: Fetched { elapsed_ms, result: Ok(answer) }, truth }
    }

    fn good(&self, order: &FetchOrder, now_ms: i64) -> (Answer, Truth) {
        let not_found = || {
            let truth = Truth { missing: true, ..Truth::default() };
            (Answer { status: 404, ..Answer::default() }, truth)
        };
        let Some(server) = Self::server_of(&order.url).filter(|&s| s < self.servers) else {
            return not_found();
        };
        let exists = self.exists(&order.url) && !self.absences(&order.url, now_ms / 1000).1;
        if let Some(odd) = self.odd(order, server, exists, now_ms) {
            return odd;
        }
        let Some(place) = Self::place(&order.url).filter(|_| exists) else { return not_found() };
        let revision = self.revision(&order.url, now_ms / 1000);
        let mut answer = self.page(order, place, revision);
        let noise = answer.status == 200 && self.difference(order, server, &mut answer, revision);
        (answer, Truth { revision, noise, ..Truth::default() })
    }

    fn fault(&self, attempt: u64, elapsed_ms: i64) -> Fetched {
        let status =
            |status, retry_after_s| Ok(Answer { status, retry_after_s, ..Answer::default() });
        let result = match self.pick(&[5, attempt], 6) {
            0 => Err(silence()),
            1 => {
                let (host, reason) = (host(), "refused".to_owned());
                Err(Trouble::of(&FetchFailure::Connect { host, port: 80, reason }))
            }
            2 => {
                let (host, reason) = (host(), "cut".to_owned());
                Err(Trouble::of(&FetchFailure::BodyCut { host, received: 7, reason }))
            }
            3 => status(500, None),
            4 => status(429, Some(120)),
            _ => status(503, None),
        };
        Fetched { elapsed_ms, result }
    }

    fn robots(&self, server: &Server, number: u32, at_s: i64) -> Result<Answer, Trouble> {
        let more = match self.robots_mood(number, at_s) {
            RobotsMood::Usual => "",
            RobotsMood::Strict => "Disallow: /d1/\nDisallow: /d3/\n",
            RobotsMood::Absent => return Ok(Answer { status: 404, ..Answer::default() }),
            RobotsMood::Broken => return Ok(Answer { status: 500, ..Answer::default() }),
            RobotsMood::Silent => return Err(silence()),
        };
        let delay_s = self.crawl_delay_ms(server) / 1000;
        let delay = if delay_s > 0 { format!("Crawl-delay: {delay_s}\n") } else { String::new() };
        let sitemap = self.sitemap_line(number);
        let text = format!("User-agent: *\n{delay}Disallow: {SHUT}\n{more}{sitemap}");
        Ok(Answer {
            status: 200,
            mime: "text/plain".to_owned(),
            body_bytes: text.len() as u64,
            robots_body: text.into_bytes(),
            ..Answer::default()
        })
    }

    fn page(&self, order: &FetchOrder, (server, page): (u32, u32), revision: u64) -> Answer {
        let etag = format!("\"{revision}\"");
        if order.validators.etag.as_deref() == Some(etag.as_str()) {
            return Answer { status: 304, ..Answer::default() };
        }
        Answer {
            status: 200,
            validators: Validators { etag: Some(etag), last_modified: None },
            mime: "text/html".to_owned(),
            mark: Some(mark(&order.url, revision)),
            body_bytes: 10_000,
            links: self.links(server, page, revision),
            fingerprint: order.fingerprint.then(|| self.look_of(server, page, revision)),
            ..Answer::default()
        }
    }

    /// A tree, so that every page can be reached, and some links that move with the revision.
    fn links(&self, server: u32, page: u32, revision: u64) -> Vec<FoundLink> {
        let (s, p) = (u64::from(server), u64::from(page));
        let below = [2 * page + 1, 2 * page + 2].into_iter().filter(|&child| child < self.pages);
        let link = |url| FoundLink { url, role: LinkRole::Page };
        if self.favourites {
            let around = (0..FAVOURITES).map(|n| (server, self.favourite(server, &[11, s, p, n])));
            let elsewhere = self.skewed(&[12, s, p], self.servers);
            let there = (elsewhere, self.favourite(elsewhere, &[13, s, p]));
            let below = below.map(|page| (server, page));
            let all = below.chain(around).chain([there]);
            return all.filter_map(|(server, page)| self.url(server, page)).map(link).collect();
        }
        let around = (0..3).map(|n| self.pick(&[6, s, p, revision, n], self.pages));
        let elsewhere = self.pick(&[7, s, p], self.servers);
        below
            .chain(around)
            .filter_map(|page| self.url(server, page))
            .chain(self.url(elsewhere, 0))
            .chain(self.odd_links(server, page))
            .map(link)
            .collect()
    }

    /// A number below a bound, small ones much more often than large ones.
    fn skewed(&self, parts: &[u64], below: u32) -> u32 {
        ((self.draw(parts).powi(3) * f64::from(below)) as u32).min(below.saturating_sub(1))
    }

    /// A page of a server by how popular it is; its directory says nothing about that.
    fn favourite(&self, server: u32, parts: &[u64]) -> u32 {
        let rank = u64::from(self.skewed(parts, self.pages));
        let begin = self.hash(&[14, u64::from(server)]) % u64::from(self.pages);
        ((rank * SCATTER + begin) % u64::from(self.pages)) as u32
    }

    /// Number of a URL's page among all, server by server; `None` for what may not be asked for.
    pub(super) fn number(&self, url: &CanonicalUrl) -> Option<u32> {
        let (server, page) = Self::place(url).filter(|_| self.exists(url) && self.allows(url))?;
        Some(server * self.pages + page)
    }

    /// Where the links of a page lead at a time.
    pub fn links_of(&self, url: &CanonicalUrl, at_s: i64) -> Vec<CanonicalUrl> {
        let Some((server, page)) = Self::place(url) else { return Vec::new() };
        let links = self.links(server, page, self.revision(url, at_s));
        links.into_iter().map(|link| link.url).collect()
    }

    pub(super) fn hash(&self, parts: &[u64]) -> u64 {
        let mut state = self.seed ^ 0x6e65_6e72_696e;
        for &part in parts {
            state = (state ^ part).wrapping_add(0x9e37_79b9_7f4a_7c15);
            state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            state ^= state >> 31;
        }
        state
    }

    /// A number from 0 up to 1, the same for the same parts.
    pub fn draw(&self, parts: &[u64]) -> f64 {
        (self.hash(parts) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number below `below`, the same for the same parts.
    pub(super) fn pick(&self, parts: &[u64], below: u32) -> u32 {
        (self.hash(parts) % u64::from(below.max(1))) as u32
    }
}

/// The server does not answer in time.
fn silence() -> Trouble {
    let after = Duration::from_secs(20);
    Trouble::of(&FetchFailure::Timeout { host: host(), waiting: Waiting::Head, after })
}

fn host() -> String {
    "simulated".to_owned()
}

/// The mark of a page's content at a revision.
pub fn mark(url: &CanonicalUrl, revision: u64) -> ContentMark {
    let digest = blake3::hash(format!("{url} {revision}").as_bytes());
    let mut mark = [0; 16];
    mark.copy_from_slice(&digest.as_bytes()[..16]);
    ContentMark(mark)
}
