//! The interface over made-up data: `cargo run -p nenrin-web --example preview [empty] [PORT]`.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use nenrin_archive::{
    changes::{ChangeReader, Content, Contents},
    preview::SitePreview,
};
use nenrin_lang::{IncidentDetail, Reason};
use nenrin_state::{
    Change, ContentMark, Discovered, DuePage, Estimate, Incident, IncidentKind, Outcome,
    PageUpdate, Removal, RobotsPolicy, RoundEnd, RoundId, Schedule, SiteConditions, SiteId,
    SqliteState, State, VersionId, VersionRow, VisitCommit,
};
use nenrin_urls::{CanonicalUrl, Scope};
use nenrin_web::{
    Control, ControlError, ReplayBase, StoreSummary, UnderWay, WebApp, WebOptions, hash_password,
};

#[expect(clippy::disallowed_methods, reason = "a program's edge: the only clock of the example")]
fn now_s() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    since.as_secs() as i64
}

/// Versions without content: pages have no titles.
struct NoContents;

impl Contents for NoContents {
    fn content(&self, _: VersionId, _: u64) -> Option<Content> {
        None
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| arguments.iter().any(|a| a == word);
    let port = arguments.iter().find_map(|a| a.parse().ok()).unwrap_or(8080);
    let state: Arc<dyn State> = Arc::new(SqliteState::in_memory(3600)?);
    if !has("empty") {
        fill(&*state)?;
    }
    let mut options = WebOptions::new([42; 32]);
    if has("password") {
        options.admin_hash = Some(hash_password("demo", [1; 16])?);
    }
    let app = WebApp {
        changes: ChangeReader::new(state.clone(), Arc::new(NoContents)),
        store: None,
        control: Arc::new(Pretend { state: state.clone() }),
        state,
        store_stats: Arc::new(|| StoreSummary {
            raw_bytes: 13_932_000_000,
            unique_bytes: 1_451_000_000,
            html_bytes: 71_000_000,
            other_bytes: 799_000_000,
            index_bytes: 23_000_000,
        }),
        replay_base: ReplayBase::Port(port + 1),
        options,
        now_s,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let listener = tokio::net::TcpListener::bind(address).await?;
        #[expect(clippy::print_stderr, reason = "a program's edge")]
        {
            eprintln!("http://{address}/");
        }
        let service = nenrin_web::router(app).into_make_service_with_connect_info::<SocketAddr>();
        axum::serve(listener, service).await?;
        Ok(())
    })
}

/// A program that pretends to collect.
struct Pretend {
    state: Arc<dyn State>,
}

impl Control for Pretend {
    fn collects(&self) -> bool {
        true
    }

    fn collect_now(&self, _: SiteId) -> Result<(), ControlError> {
        Ok(())
    }

    fn sites_changed(&self) {}

    fn under_way(&self) -> Vec<UnderWay> {
        let now_s = now_s();
        let one = |url: &str, phase, ago| UnderWay {
            url: url.to_owned(),
            server: String::new(),
            since_s: now_s - ago,
            phase,
        };
        match now_s % 8 {
            0 => Vec::new(),
            _ => vec![
                one(
                    "https://news.example.org/world/2026/11/a-very-long-headline-that-goes-on-and-on.html",
                    "receiving",
                    now_s % 5,
                ),
                one("https://blog.example.com/%E6%97%A5%E8%A8%98/2026", "connecting", 0),
                one("https://docs.example.net/reference/index.html", "storing", 1),
            ],
        }
    }

    fn export_warc(
        &self,
        _: SiteId,
        _: (i64, i64),
        mut out: Box<dyn std::io::Write + Send>,
    ) -> Result<(), ControlError> {
        let written = out.write_all(b"nothing was collected").and_then(|()| out.flush());
        written.map_err(|error| ControlError::Failed { reason: error.to_string() })
    }

    fn removals(&self) -> &[Removal] {
        &Removal::ALL
    }

    fn remove(&self, site: SiteId, removal: Removal, reason: &str) -> Result<(), ControlError> {
        let removed = self.state.remove_site(site, Some(removal), reason, now_s());
        removed.map_err(|error| ControlError::Failed { reason: error.to_string() })
    }

    fn start_demo(&self) -> Result<SiteId, ControlError> {
        let failed = |e: String| ControlError::Failed { reason: e };
        let url =
            CanonicalUrl::parse("http://127.0.0.1:18080/").map_err(|e| failed(e.to_string()))?;
        let site = self.state.add_site("demo", &conditions(url, 3600), now_s());
        site.map(|s| s.id).map_err(|e| failed(e.to_string()))
    }

    fn preview(&self, top: &CanonicalUrl, _: bool) -> Result<SitePreview, ControlError> {
        Ok(SitePreview {
            top: format!("{top} answers with 200, text/html, 18 kB"),
            robots: "allows everything except /private/; asks for 2 s between requests".into(),
            sitemap: "lists 1,204 pages, changed last on 2026-11-14".into(),
            links: ["about", "news/", "contact", "%E6%97%A5%E6%9C%AC%E8%AA%9E/"]
                .iter()
                .map(|path| format!("{top}{path}"))
                .collect(),
            estimated_pages: Some(1_204),
            estimated_bytes: Some(48_000_000),
        })
    }
}

fn conditions(top: CanonicalUrl, period_s: i64) -> SiteConditions {
    SiteConditions {
        tops: vec![top],
        scope: Scope::Host,
        depth: 8,
        max_pages: None,
        embeds: true,
        schedule: Schedule::Rounds { period_s },
        windows: Vec::new(),
        delay_ms: Some(2000),
        allow_private: false,
        robots: RobotsPolicy::Obey,
        hints: nenrin_state::SiteHints::default(),
        ..SiteConditions::new(Vec::new())
    }
}

/// A small generator: the same data every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

fn fill(state: &dyn State) -> Result<(), Box<dyn std::error::Error>> {
    let mut dice = Dice(7);
    let start_s = now_s() - 400 * 86_400;
    let mut version = 0;
    for (name, top, period_s, chance) in [
        ("The Morning Paper", "https://news.example.org/", 86_400, 55),
        ("blog.example.com", "https://blog.example.com/", 3 * 86_400, 25),
        ("Reference manual", "https://docs.example.net/", 7 * 86_400, 6),
        ("<script>alert('name')</script>", "https://hostile.example/\"><script>", 7 * 86_400, 30),
        ("市役所 日本語サイト", "https://city.example.jp/%E5%BA%83%E5%A0%B1/", 7 * 86_400, 12),
    ] {
        let top = CanonicalUrl::parse(top)?;
        let site = state.add_site(name, &conditions(top.clone(), period_s), start_s)?;
        let mut at_s = start_s + 3600;
        while at_s < now_s() - 600 {
            let round = state.begin_round(site.id, at_s)?;
            let mut due = state.load_round(&round, None, 200)?;
            let mut visits = 0;
            while let Some(page) = due.pop() {
                at_s += 2;
                let first = page.page.visits == 0;
                let visit = made_up_visit(
                    &page,
                    &top,
                    round.id,
                    at_s,
                    chance,
                    first,
                    &mut version,
                    &mut dice,
                );
                due.extend(
                    state
                        .commit(&[Change::Visit(Box::new(visit))])?
                        .new_pages
                        .into_iter()
                        .map(|n| n.due),
                );
                visits += 1;
                if visits > 60 {
                    break;
                }
            }
            let end = RoundEnd { round: round.id, site: site.id, at_s, skips: None };
            state.commit(&[Change::RoundEnd(end)])?;
            at_s = round.started_s + period_s;
        }
    }
    state.pause_site(SiteId(3), true)?;
    state.keep_incidents(&incidents())?;
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "made-up data has many causes")]
fn made_up_visit(
    due: &DuePage,
    top: &CanonicalUrl,
    round: RoundId,
    at_s: i64,
    chance: u64,
    first: bool,
    version: &mut u64,
    dice: &mut Dice,
) -> VisitCommit {
    let roll = dice.below(100);
    let (outcome, status, reason) = match roll {
        0 => (Outcome::Failed, 0, Some(Reason::RobotsUnreachable)),
        1 => (Outcome::Failed, 503, Some(Reason::Status(503))),
        2 => {
            let line = Some((3, "Disallow: /private/ <script>alert(1)</script>".to_owned()));
            (Outcome::Refused, 0, Some(Reason::Robots { line }))
        }
        3 if !first => (Outcome::Gone, 404, None),
        _ if first || dice.below(100) < chance => (Outcome::Changed, 200, None),
        _ if roll.is_multiple_of(2) => (Outcome::NotModified, 304, None),
        _ => (Outcome::Same, 200, None),
    };
    let bytes = 8_000 + dice.below(60_000);
    let changed = outcome == Outcome::Changed;
    *version += u64::from(changed);
    let found = |path: String| {
        let url = top.join(&path).ok()?;
        Some(Discovered { url, depth: due.depth + 1, hops: 0, due_s: None })
    };
    let discovered = if first && due.depth < 4 {
        (0..4)
            .flat_map(|n| {
                let number = dice.below(30);
                [
                    found(format!("section-{n}/article-{number}.html")),
                    found(format!("section-{n}/")),
                    found(format!("img/{number}.png")),
                ]
            })
            .flatten()
            .collect()
    } else {
        Vec::new()
    };
    VisitCommit {
        round: Some(round),
        status,
        reason,
        elapsed_ms: 40 + dice.below(700) as u32,
        received_bytes: if status == 200 { bytes } else { 0 },
        stored_bytes: if changed { bytes / 12 } else { 0 },
        version: changed.then(|| VersionRow {
            at_s,
            version: VersionId(*version),
            status,
            mime: if due.page.url.path().ends_with(".png") { "image/png" } else { "text/html" }
                .into(),
            bytes,
            changed_permille: None,
        }),
        update: PageUpdate {
            mark: Some(ContentMark([dice.below(250) as u8; 16])),
            bytes,
            failures: u32::from(outcome == Outcome::Failed),
            ..PageUpdate::default()
        },
        discovered,
        importance_percent: Some((1_200 / due.depth.pow(2) + 10 + dice.below(60) as u32).max(1)),
        estimate: Some(Estimate::new(chance as f64 / 100.0, 0.6)),
        ..VisitCommit::new(due.page.id, due.site, at_s, outcome)
    }
}

/// Incidents for people to see.
fn incidents() -> Vec<Incident> {
    let one = |event, id: u32, name: &str, detail: IncidentDetail| Incident {
        id: id.to_string(),
        event,
        at_s: now_s() - 3600 * i64::from(id),
        over_s: None,
        site: Some(SiteId(id)),
        name: name.to_owned(),
        detail: Some(detail),
        cause: String::new(),
    };
    vec![
        one(
            IncidentKind::SignalLost,
            1,
            "The Morning Paper",
            IncidentDetail::SignalLost("https://news.example.org/sitemap.xml".to_owned()),
        ),
        one(
            IncidentKind::Overflow,
            2,
            "blog.example.com",
            IncidentDetail::Overflow {
                server: "https://blog.example.com".to_owned(),
                percent: 160,
            },
        ),
    ]
}
