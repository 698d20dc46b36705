//! A large archive to try the interface on: `large FOLDER [PAGES] [SITES]`, by default 1,000,000 pages of 1,000 sites.
//!
//! Ten visits for each page over two years up to now, of which about one in ten finds the page as it was asked for
//! again, two bring a new version with text of its own, and one in fifty fails. Half of everything belongs to the first
//! site, and its top page has 10,000 versions more. `scripts/bench-interface` asks for every page of the interface
//! over it.
#![expect(clippy::print_stdout, reason = "this is a report for a person")]
#![expect(clippy::disallowed_methods, reason = "it takes the time, and its visits end now")]

use std::{
    collections::BTreeMap,
    error::Error,
    path::Path,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use nenrin_archive::{Archive, OpenOptions};
use nenrin_lang::Reason;
use nenrin_revisit::{KnownPage, PageRevisitScheduler, RevisitSettings};
use nenrin_state::{
    Change, Discovered, Estimate, FoundPages, Outcome, PageId, PageUpdate, Schedule,
    SiteConditions, SiteId, VersionId, VersionRow, VisitCommit,
};
use nenrin_store::NewVersion;
use nenrin_urls::CanonicalUrl;

const DAY_S: i64 = 86_400;
const DAYS: i64 = 730;
/// Pages and visits in a commit.
const TOGETHER: usize = 20_000;
const VISITS_OF_A_PAGE: i64 = 10;
const VERSIONS_OF_THE_TOP: i64 = 10_000;
const BUCKET_S: i64 = 3600;
const WORDS: [&str; 24] = [
    "harbour",
    "council",
    "library",
    "weather",
    "concert",
    "railway",
    "museum",
    "garden",
    "budget",
    "school",
    "bridge",
    "market",
    "record",
    "season",
    "visitor",
    "opening",
    "repair",
    "meeting",
    "exhibition",
    "river",
    "ticket",
    "summer",
    "report",
    "street",
];

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, counts @ ..] = &arguments[..] else {
        return Err("usage: large FOLDER [PAGES] [SITES]".into());
    };
    let number = |at: usize, otherwise: i64| counts.get(at).map_or(Ok(otherwise), |n| n.parse());
    let (pages, sites) = (number(0, 1_000_000)?, number(1, 1_000)?.max(2));
    let begun = Instant::now();
    let now_s = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())?;
    let archive = Archive::open(Path::new(folder), &OpenOptions::writing_much())?;
    let mut maker =
        Maker { archive, now_s, dice: Dice(1), last: BTreeMap::new(), changes: Vec::new() };
    let known = maker.make_known(pages, sites)?;
    maker.visit(&known)?;
    maker.visit_the_top()?;
    let stats = maker.archive.state().stats()?;
    println!(
        "{} sites, {} pages, {} visits, {} versions, {} bytes, made in {:.0} s",
        stats.sites,
        stats.pages,
        stats.visits,
        stats.versions,
        maker.archive.file_bytes()?,
        begun.elapsed().as_secs_f64()
    );
    Ok(())
}

/// A small generator: the same data every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: i64) -> i64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as i64) % n
    }

    fn words(&mut self, count: i64) -> String {
        let word = |_| WORDS[self.below(WORDS.len() as i64) as usize];
        (0..count).map(word).collect::<Vec<_>>().join(" ")
    }
}

struct Known {
    page: PageId,
    site: SiteId,
    url: CanonicalUrl,
}

struct Maker {
    archive: Archive,
    now_s: i64,
    dice: Dice,
    last: BTreeMap<PageId, VersionId>,
    changes: Vec<Change>,
}

impl Maker {
    fn begin_s(&self) -> i64 {
        self.now_s - DAYS * DAY_S
    }

    /// Half of the pages belong to the first site, the rest is spread over the others.
    fn make_known(&self, pages: i64, sites: i64) -> Result<Vec<Known>> {
        let state = self.archive.state();
        let mut known = Vec::new();
        for n in 1..=sites {
            let top = CanonicalUrl::parse(&format!("https://s{n}.example/"))?;
            let schedule = Schedule::Continuous(RevisitSettings::default());
            let conditions = SiteConditions { schedule, ..SiteConditions::new(vec![top.clone()]) };
            let site = state.add_site(&format!("site {n}"), &conditions, self.begin_s())?.id;
            let own = |page: &i64| if page % 2 == 0 { n == 1 } else { n == 2 + page % (sites - 1) };
            let paths = (0..pages).filter(own);
            let urls: Vec<CanonicalUrl> = paths
                .map(|page| CanonicalUrl::parse(&format!("{top}d{}/p{page}.html", page % 97)))
                .collect::<std::result::Result<_, _>>()?;
            let found = |url: &CanonicalUrl| Discovered {
                url: url.clone(),
                depth: 3,
                hops: 0,
                due_s: None,
            };
            for together in urls.chunks(TOGETHER) {
                let pages = together.iter().map(found).collect();
                let found = Change::Found(FoundPages { site, at_s: self.begin_s(), pages });
                for new in state.commit(&[found])?.new_pages {
                    known.push(Known { page: new.due.page.id, site, url: new.due.page.url });
                }
            }
        }
        Ok(known)
    }

    fn visit(&mut self, known: &[Known]) -> Result<()> {
        let visits = VISITS_OF_A_PAGE * known.len() as i64;
        let history = history(self.now_s);
        for n in 0..visits {
            let one = &known[self.dice.below(known.len() as i64) as usize];
            let at_s = self.begin_s() + (n as f64 / visits as f64 * (DAYS * DAY_S) as f64) as i64;
            let outcome = match (self.dice.below(50), self.dice.below(10)) {
                (0, _) => Outcome::ALL[3 + self.dice.below(3) as usize],
                // A first visit brings a version.
                (_, dice) if dice < 2 || !self.last.contains_key(&one.page) => Outcome::Changed,
                (_, 2) => Outcome::Same,
                _ => Outcome::NotModified,
            };
            self.add(one, at_s, outcome, n as u64, &history)?;
        }
        self.commit()
    }

    fn visit_the_top(&mut self) -> Result<()> {
        let url = CanonicalUrl::parse("https://s1.example/")?;
        let top = self.archive.state().page(&url)?.ok_or("the first site has no top page")?;
        let top = Known { page: top.id, site: SiteId(1), url };
        let history = history(self.now_s);
        for n in 0..VERSIONS_OF_THE_TOP {
            let at_s = self.begin_s() + n * (DAYS * DAY_S / VERSIONS_OF_THE_TOP);
            self.add(&top, at_s, Outcome::Changed, n as u64, &history)?;
        }
        self.commit()
    }

    fn add(
        &mut self,
        one: &Known,
        at_s: i64,
        outcome: Outcome,
        n: u64,
        history: &[u8],
    ) -> Result<()> {
        let version = match outcome {
            Outcome::Changed => Some(self.put(one, at_s)?),
            _ => None,
        };
        let (status, reason) = match outcome {
            Outcome::NotModified => (304, None),
            Outcome::Gone => (404, None),
            Outcome::Refused => {
                (403, Some(Reason::Challenge(format!("guard {}", self.dice.below(12)))))
            }
            Outcome::Failed => (500, None),
            _ => (200, None),
        };
        let is_first = version.is_some() && !self.last.contains_key(&one.page);
        if let Some(row) = &version {
            self.last.insert(one.page, row.version);
        }
        let bytes = version.as_ref().map_or(0, |row| row.bytes);
        self.changes.push(Change::Visit(Box::new(VisitCommit {
            is_first,
            status,
            reason,
            elapsed_ms: 120,
            received_bytes: bytes,
            stored_bytes: bytes / 4,
            version,
            update: PageUpdate {
                bytes,
                history: history.to_vec(),
                due_s: Some(self.now_s + (n % 1000) as i64 * BUCKET_S),
                ..PageUpdate::default()
            },
            importance_percent: Some(1 + (n % 97) as u32 * 7),
            estimate: Some(Estimate::new(0.01, 0.4)),
            ..VisitCommit::new(one.page, one.site, at_s, outcome)
        })));
        if self.changes.len() == TOGETHER {
            self.commit()?;
        }
        Ok(())
    }

    /// A small page: what all pages of a site have, and a few sentences of its own.
    fn put(&mut self, one: &Known, at_s: i64) -> Result<VersionRow> {
        let number = self.dice.below(1_000_000);
        let body = format!(
            "<!DOCTYPE html><html><head><title>{}</title></head><body><nav>home news contact</nav><h1>{}</h1>\
             <p>{}. Notice {number} of the {}.</p><p>{}.</p><footer>site {}</footer></body></html>",
            self.dice.words(4),
            one.url.path(),
            self.dice.words(12),
            self.dice.words(2),
            self.dice.words(9),
            one.site.0
        );
        let put = self.archive.store().put(&NewVersion {
            url: &one.url,
            group: one.site.0,
            visited_at_s: at_s,
            status: 200,
            protocol: "h2",
            tls: Some("tls/1.3"),
            server_address: None,
            request_head: b"",
            response_head: b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n",
            body: body.as_bytes(),
            truncated: None,
            previous: self.last.get(&one.page).copied(),
        })?;
        Ok(VersionRow {
            at_s,
            version: put.id,
            status: 200,
            mime: "text/html".into(),
            bytes: body.len() as u64,
            changed_permille: None,
        })
    }

    fn commit(&mut self) -> Result<()> {
        self.archive.store().sync()?;
        self.archive.state().commit(&self.changes)?;
        self.changes.clear();
        Ok(())
    }
}

/// What the policy remembers about a page that was visited ten times.
fn history(now_s: i64) -> Vec<u8> {
    let mut scheduler = PageRevisitScheduler::new(RevisitSettings::default(), BUCKET_S);
    let mut history = Vec::new();
    for visit in 0..10 {
        let at_s = now_s - (100 - 10 * visit) * DAY_S;
        let found = if visit % 3 == 0 { Outcome::Changed } else { Outcome::Same };
        let page = KnownPage {
            server: 1,
            path: "/a",
            history: &history,
            found: (visit > 0).then_some(Outcome::Same),
            failures: 0,
            importance_percent: 100,
        };
        history = scheduler.visited(at_s, &page, found, None, 1.0).history;
    }
    history
}
