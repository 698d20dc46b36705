//! A million pages and ten million visits: every page of the interface answers within 200 ms.
//!
//! `cargo test --release -p nenrin-web --test web -- scale:: --ignored --nocapture`; `NENRIN_SCALE_PAGES`
//! makes it smaller, and `NENRIN_SCALE_FOLDER` keeps the state in a folder for the next run.
#![expect(clippy::unwrap_used, reason = "what cannot be set up must fail the test")]

use crate::support;

use std::{path::Path, sync::Arc, time::Instant};

use nenrin_archive::changes::ChangeReader;
use nenrin_lang::Reason;
use nenrin_revisit::{KnownPage, PageRevisitScheduler, RevisitSettings};
use nenrin_state::{
    Change, Discovered, Estimate, FoundPages, Outcome, PageId, PageUpdate, Schedule,
    SiteConditions, SiteId, SqliteState, State, VersionId, VersionRow, VisitCommit,
};
use nenrin_web::{ReplayBase, StoreSummary, WebApp, WebOptions};
use support::{Bodies, FakeControl, NOW_S, World, conditions, url};

const LIMIT_MS: f64 = 200.0;
const SITES: i64 = 1_000;
const DAYS: i64 = 730;
/// Pages and visits in a commit.
const TOGETHER: usize = 20_000;

/// A small generator: the same data every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: i64) -> i64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as i64) % n
    }
}

#[tokio::test]
#[ignore = "writes gigabytes and takes minutes"]
async fn a_million_pages_and_ten_million_visits_answer_within_200_ms() {
    let pages: i64 = std::env::var("NENRIN_SCALE_PAGES").map_or(1_000_000, |n| n.parse().unwrap());
    let temporary = tempfile::tempdir().unwrap();
    let kept = std::env::var_os("NENRIN_SCALE_FOLDER").map(std::path::PathBuf::from);
    let folder = kept.unwrap_or(temporary.path().to_owned());
    let path = folder.join("state.sqlite");
    if !path.exists() {
        let begun = clock();
        make(&folder, pages);
        let took_s = begun.elapsed().as_secs_f64();
        eprintln!("{pages} pages, {} visits written in {took_s:.0} s", 10 * pages);
    }
    let state: Arc<dyn State> = Arc::new(SqliteState::open(&path, 3600).unwrap());
    let begun = clock();
    // The program makes it when it begins to serve.
    state.index_changes().unwrap();
    eprintln!("index of changes made in {:.1} s", begun.elapsed().as_secs_f64());
    let world = over(state);
    let mut slow = Vec::new();
    let paths = ask_for(&world).await;
    for path in paths {
        let mut times_ms = Vec::new();
        for _ in 0..5 {
            let begun = clock();
            let answer = world.get(&path).await;
            times_ms.push(begun.elapsed().as_secs_f64() * 1000.0);
            assert!(answer.status.is_success(), "{path}: {}", answer.status);
        }
        let (first, worst) = (times_ms[0], times_ms.iter().copied().fold(0.0, f64::max));
        eprintln!("{first:8.1} ms first {worst:8.1} ms worst  {path}");
        if worst > LIMIT_MS {
            slow.push(path);
        }
    }
    assert_eq!(slow, Vec::<String>::new(), "slower than {LIMIT_MS} ms");
}

/// Makes the state under another name, so that one that was cut short is not taken for whole.
fn make(folder: &Path, pages: i64) {
    std::fs::create_dir_all(folder).unwrap();
    let unfinished = folder.join("unfinished.sqlite");
    let state: Box<dyn State> = Box::new(SqliteState::open(&unfinished, 3600).unwrap());
    for n in 1..=SITES {
        state.add_site(&format!("site {n}"), &own_schedules(n), NOW_S - DAYS * 86_400).unwrap();
    }
    fill(&*state, pages);
    drop(state);
    for ending in ["", "-wal", "-shm"] {
        let from = folder.join(format!("unfinished.sqlite{ending}"));
        if from.exists() {
            std::fs::rename(from, folder.join(format!("state.sqlite{ending}"))).unwrap();
        }
    }
}

/// Every page on its own schedule, which is what most sites have.
fn own_schedules(n: i64) -> SiteConditions {
    let schedule = Schedule::Continuous(RevisitSettings::default());
    SiteConditions { schedule, ..conditions(&format!("https://s{n}.example/")) }
}

/// What the policy remembers about a page that was visited ten times.
fn history() -> Vec<u8> {
    let mut scheduler = PageRevisitScheduler::new(RevisitSettings::default(), 3600);
    let mut history = Vec::new();
    for visit in 0..10 {
        let at_s = NOW_S - (100 - 10 * visit) * 86_400;
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

#[expect(clippy::disallowed_methods, reason = "this test measures time")]
fn clock() -> Instant {
    Instant::now()
}

/// The pages to request: the first of each list, one deep inside, and the big site's.
async fn ask_for(world: &World) -> Vec<String> {
    let mut paths: Vec<String> = [
        "/",
        "/?sort=stored&down=1&q=site",
        "/now",
        "/sites/new",
        "/sites/bulk",
        "/sites/patterns?site=1&include=%2Fd7%2F*&exclude=p99",
        "/sites/1",
        "/sites/1?year=2022",
        "/sites/1/edit",
        "/sites/1/pages",
        "/sites/1/schedule",
        "/sites/150/schedule",
        "/sites/1/structure",
        "/sites/150/structure",
        "/sites/1?part=figures",
        "/sites/1/remove",
        "/removals",
        "/lab",
        "/sites/1/pages?list=1",
        "/sites/1/pages?prefix=%2Fd7%2F",
        "/sites/1/pages?list=1&prefix=%2Fd7%2Fp99",
        "/sites/150",
        "/changes",
        "/changes?site=1",
        "/changes?site=150&kind=gone&from=2022-01-01&to=2023-11-14",
        "/changes?q=p99&significant=1",
        "/changes?q=nothing-has-this&from=2022-01-01&to=2023-11-14",
        "/changes?from=2022-06-01&to=2022-06-30&kind=new",
        "/sites/1/between",
        "/sites/1/between?from=2022-06-01&to=2023-06-01&kind=gone",
        "/sites/150/between?from=2022-06-01&to=2023-06-01",
        "/sites/1/pages?q=99.html",
        "/sites/1/pages?q=nothing-has-this&sort=title",
        "/sites/1/pages?sort=size&down=1",
        "/sites/1/pages?type=html&result=failed&due=now&sort=rate",
        "/sites/150/pages?find=1",
        "/api/v1/changes?limit=1000",
        "/api/v1/changes?site=150&from=2022-01-01&to=2023-11-14&limit=1000",
        "/api/v1/sites/1/between?from=2022-06-01&to=2023-06-01&limit=1000",
        "/feed.atom?kind=new",
        "/watches",
        "/watches/new?url=https%3A%2F%2Fs1.example%2F",
        "/ignore?url=https%3A%2F%2Fs1.example%2F&text=tea",
        "/downloads",
        "/api",
        "/visits",
        "/visits?site=1",
        "/visits?site=1&outcome=changed",
        "/visits?site=1&outcome=failed",
        "/visits?site=150&outcome=failed",
        "/visits?outcome=failed",
        "/visits?outcome=changed",
        "/visits?before=3000000",
        "/visits?site=1&before=3000000",
        "/visits?site=150&before=3000000",
        "/page?url=https%3A%2F%2Fs1.example%2F",
        "/feed.atom",
        "/feed.atom?site=1",
        "/metrics",
        "/api/v1/stats",
        "/api/v1/sites",
        "/api/v1/visits?limit=1000",
        "/api/v1/sites/1/pages?limit=1000",
        "/api/v1/sites/1/problems",
        "/api/v1/sites/1/order",
        "/api/v1/order",
        "/api/v1/incidents",
        "/api/v1/versions?url=https://s1.example/",
    ]
    .map(str::to_owned)
    .to_vec();
    let list = world.get("/sites/1/pages?list=1&prefix=%2Fd7%2F").await.body;
    let next = list.split("rel=\"next\" href=\"").nth(1).unwrap().split('"').next().unwrap();
    paths.push(next.replace("&amp;", "&"));
    paths
}

fn over(state: Arc<dyn State>) -> World {
    let control = Arc::new(FakeControl::default());
    let changes = ChangeReader::new(state.clone(), Arc::new(Bodies::default()));
    changes.start();
    let router = nenrin_web::router(WebApp {
        state: state.clone(),
        changes,
        store: None,
        control: control.clone(),
        store_stats: Arc::new(StoreSummary::default),
        replay_base: ReplayBase::Port(8081),
        options: WebOptions::new([7; 32]),
        now_s: || NOW_S,
    });
    World { state, control, router }
}

/// Half of everything belongs to the first site, the rest is spread over the others.
fn fill(state: &dyn State, pages: i64) {
    let mut dice = Dice(1);
    let mut known: Vec<(PageId, SiteId)> = Vec::with_capacity(pages as usize);
    for site in 1..=SITES {
        let own = |n: &i64| if n % 2 == 0 { site == 1 } else { site == 2 + n % (SITES - 1) };
        let found: Vec<Discovered> = (0..pages)
            .filter(own)
            .map(|n| url(&format!("https://s{site}.example/d{}/p{n}.html", n % 97)))
            .map(|url| Discovered { url, depth: 3, hops: 0, due_s: None })
            .collect();
        let site = SiteId(site as u32);
        for together in found.chunks(TOGETHER) {
            let pages = together.to_vec();
            let found = FoundPages { site, at_s: NOW_S - DAYS * 86_400, pages };
            let new = state.commit(&[Change::Found(found)]).unwrap().new_pages;
            known.extend(new.iter().map(|new| (new.due.page.id, site)));
        }
    }
    let visits = 10 * pages;
    let history = history();
    let mut changes = Vec::new();
    for n in 0..visits {
        let (page, site) = known[dice.below(known.len() as i64) as usize];
        let outcome = [0, 1, 1, 2, 2, 2, 2, 2, 2, 2][dice.below(10) as usize];
        let outcome = if dice.below(50) == 0 { 3 + dice.below(3) } else { outcome };
        let at_s = NOW_S - DAYS * 86_400 + n * DAYS * 86_400 / visits;
        let reason = (outcome >= 3).then(|| Reason::Challenge(format!("guard {}", dice.below(12))));
        changes.push(visit(
            page,
            site,
            at_s,
            Outcome::ALL[outcome as usize],
            reason,
            n as u64,
            &history,
        ));
        if changes.len() == TOGETHER || n + 1 == visits {
            state.commit(&changes).unwrap();
            changes.clear();
        }
    }
    // Ten thousand versions of one page.
    let top = state.page(&url("https://s1.example/")).unwrap().unwrap();
    let begin_s = NOW_S - DAYS * 86_400;
    let versions =
        (0..10_000).map(|n| (begin_s + n * 6_000, 900_000_000 + n as u64)).map(|(at_s, number)| {
            visit(top.id, SiteId(1), at_s, Outcome::Changed, None, number, &history)
        });
    state.commit(&versions.collect::<Vec<_>>()).unwrap();
}

fn visit(
    page: PageId,
    site: SiteId,
    at_s: i64,
    outcome: Outcome,
    reason: Option<Reason>,
    number: u64,
    history: &[u8],
) -> Change {
    let version = (outcome == Outcome::Changed).then(|| VersionRow {
        at_s,
        version: VersionId(number),
        status: 200,
        mime: "text/html".into(),
        bytes: 20_000,
        changed_permille: None,
    });
    Change::Visit(Box::new(VisitCommit {
        status: 200,
        reason,
        elapsed_ms: 120,
        received_bytes: 20_000,
        stored_bytes: 900,
        version,
        update: PageUpdate {
            bytes: 20_000,
            history: history.to_vec(),
            due_s: Some(NOW_S + (number % 1000) as i64 * 3600),
            ..PageUpdate::default()
        },
        importance_percent: Some(1 + (number % 97) as u32 * 7),
        estimate: Some(Estimate::new(0.01, 0.4)),
        ..VisitCommit::new(page, site, at_s, outcome)
    }))
}
