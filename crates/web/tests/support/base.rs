//! The interface over an in-memory state, requested without sockets.
#![allow(dead_code, reason = "each test file uses its part")]
#![expect(clippy::unwrap_used, reason = "what cannot be set up must fail the test")]

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Body,
    http::{Request, StatusCode, header},
};
use http_body_util::BodyExt;
use nenrin_archive::{
    changes::{ChangeReader, Content, Contents},
    preview::SitePreview,
};
use nenrin_lang::{IncidentDetail, Reason};
use nenrin_state::{
    Change, ContentMark, Discovered, DuePage, Incident, IncidentKind, Outcome, PageUpdate, Removal,
    RobotsPolicy, RoundEnd, Schedule, Site, SiteConditions, SiteId, SqliteState, State, VersionId,
    VersionRow, VisitCommit,
};
use nenrin_urls::{CanonicalUrl, Scope};
use nenrin_web::{Control, ControlError, ReplayBase, StoreSummary, UnderWay, WebApp, WebOptions};
use tower::ServiceExt;

pub(crate) const NOW_S: i64 = 1_700_000_000;

pub(crate) fn url(text: &str) -> CanonicalUrl {
    CanonicalUrl::parse(text).unwrap()
}

pub(crate) fn conditions(top: &str) -> SiteConditions {
    SiteConditions {
        tops: vec![url(top)],
        scope: Scope::Host,
        depth: 3,
        max_pages: None,
        embeds: true,
        schedule: Schedule::Rounds { period_s: 86_400 },
        windows: Vec::new(),
        delay_ms: None,
        allow_private: false,
        robots: RobotsPolicy::Obey,
        hints: nenrin_state::SiteHints::default(),
        ..SiteConditions::new(Vec::new())
    }
}

/// Remembers the calls it received.
#[derive(Default)]
pub(crate) struct FakeControl {
    pub(crate) asked: Mutex<Vec<String>>,
    pub(crate) under_way: Mutex<Vec<UnderWay>>,
    pub(crate) removals: Vec<Removal>,
    pub(crate) queued: std::sync::atomic::AtomicUsize,
    pub(crate) idle: bool,
}

impl FakeControl {
    fn note(&self, what: String) -> Result<(), ControlError> {
        self.asked.lock().unwrap().push(what);
        if self.idle { Err(ControlError::NotRunningHere) } else { Ok(()) }
    }
}

impl Control for FakeControl {
    fn collects(&self) -> bool {
        !self.idle
    }
    fn collect_now(&self, site: SiteId) -> Result<(), ControlError> {
        self.note(format!("collect {}", site.0))
    }
    fn export_warc(
        &self,
        _: SiteId,
        _: (i64, i64),
        mut out: Box<dyn std::io::Write + Send>,
    ) -> Result<(), ControlError> {
        let written = out.write_all(b"WARC").and_then(|()| out.flush());
        written.map_err(|error| ControlError::Failed { reason: error.to_string() })
    }
    fn test_mail(&self) -> Result<(), ControlError> {
        self.note("mail".into())
    }
    fn download(
        &self,
        what: &nenrin_archive::Download,
        to: &std::path::Path,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), ControlError> {
        progress(1, 2);
        self.note(format!("download {}", what.extension()))?;
        std::fs::write(to, "FILE").map_err(|e| ControlError::Failed { reason: e.to_string() })
    }
    fn sites_changed(&self) {
        let _ = self.note("changed".into());
    }
    fn under_way(&self) -> Vec<UnderWay> {
        self.under_way.lock().unwrap().clone()
    }
    fn queued(&self) -> usize {
        self.queued.load(std::sync::atomic::Ordering::Relaxed)
    }
    fn start_demo(&self) -> Result<SiteId, ControlError> {
        self.note("demo".into())?;
        Ok(SiteId(1))
    }
    fn removals(&self) -> &[Removal] {
        &self.removals
    }
    fn remove(&self, site: SiteId, removal: Removal, reason: &str) -> Result<(), ControlError> {
        self.note(format!("remove {} {removal:?} {reason}", site.0))
    }
    fn preview(&self, top: &CanonicalUrl, _: bool) -> Result<SitePreview, ControlError> {
        self.note(format!("preview {top}"))?;
        Ok(SitePreview {
            top: "200 <b>text/html</b>".into(),
            robots: "<script>alert('robots')</script>".into(),
            sitemap: "<img src=x onerror=alert(1)>".into(),
            links: vec!["https://e.com/<script>".into()],
            estimated_pages: Some(12),
            estimated_bytes: Some(3_000),
        })
    }
}

/// Bodies by the number of their version; others are pages without a title.
#[derive(Default)]
pub(crate) struct Bodies(pub(crate) BTreeMap<u64, (&'static str, Vec<u8>)>);

impl Contents for Bodies {
    fn content(&self, version: VersionId, _: u64) -> Option<Content> {
        let (mime, body) = self.0.get(&version.0)?;
        let response_head = format!("HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\n\r\n").into_bytes();
        Some(Content { response_head, body: body.clone() })
    }
}

pub(crate) struct World {
    pub(crate) state: Arc<dyn State>,
    pub(crate) control: Arc<FakeControl>,
    pub(crate) router: Router,
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: axum::http::HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|v| v.to_str().unwrap()).unwrap_or_default()
    }

    pub(crate) fn location(&self) -> &str {
        assert_eq!(self.status, StatusCode::SEE_OTHER, "{}", self.body);
        self.header("location")
    }

    /// The session cookie and the token of the page's forms.
    pub(crate) fn session(&self) -> (String, String) {
        let cookie = self.header("set-cookie").split(';').next().unwrap().to_owned();
        let token = self.body.split("name=\"token\" value=\"").nth(1).unwrap_or_default();
        (cookie, token.split('"').next().unwrap().to_owned())
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(WebOptions::new([7; 32]), false)
    }

    pub(crate) fn with(options: WebOptions, idle: bool) -> Self {
        Self::beside(ReplayBase::Port(8081), options, idle)
    }

    /// With replay elsewhere.
    pub(crate) fn beside(replay_base: ReplayBase, options: WebOptions, idle: bool) -> Self {
        Self::reading(replay_base, options, idle, Arc::new(Bodies::default()))
    }

    /// With content of versions.
    pub(crate) fn reading(
        replay_base: ReplayBase,
        options: WebOptions,
        idle: bool,
        contents: Arc<Bodies>,
    ) -> Self {
        let state: Arc<dyn State> = Arc::new(SqliteState::in_memory(3600).unwrap());
        let control = Arc::new(FakeControl {
            idle,
            removals: vec![Removal::Hide, Removal::Delete],
            ..FakeControl::default()
        });
        let app = WebApp {
            changes: ChangeReader::new(state.clone(), contents),
            state: state.clone(),
            store: None,
            control: control.clone(),
            store_stats: Arc::new(|| StoreSummary {
                raw_bytes: 10_000,
                unique_bytes: 3_500,
                html_bytes: 400,
                other_bytes: 500,
                index_bytes: 100,
            }),
            replay_base,
            options,
            now_s: || NOW_S,
        };
        Self { state, control, router: nenrin_web::router(app) }
    }

    /// A world with a site, a round, three pages, versions, and one of each outcome.
    pub(crate) fn lived_in() -> Self {
        let world = Self::new();
        world.live("paper", "https://e.com/");
        world
    }

    pub(crate) fn live(&self, name: &str, top: &str) -> Site {
        let state = &self.state;
        let start_s = NOW_S - 10 * 86_400;
        let site = state.add_site(name, &conditions(top), start_s).unwrap();
        let round = state.begin_round(site.id, start_s).unwrap();
        let due = state.load_round(&round, None, 9).unwrap().remove(0);
        let mut first = visit(&due, start_s, Outcome::Changed);
        first.round = Some(round.id);
        first.version = Some(version(1, start_s));
        first.discovered = ["a/x", "a/y", "img.png"]
            .iter()
            .map(|path| Discovered {
                url: due.page.url.join(path).unwrap(),
                depth: 2,
                hops: 0,
                due_s: None,
            })
            .collect();
        state.commit(&[Change::Visit(Box::new(first))]).unwrap();
        for (n, outcome) in Outcome::ALL.into_iter().enumerate() {
            let at_s = start_s + 86_400 * (n as i64 + 1);
            let mut one = visit(&due, at_s, outcome);
            if outcome == Outcome::Changed {
                one.version = Some(version(2, at_s));
            }
            if !outcome.is_seen() {
                one.status = 500 + n as u16;
                let guard = format!("<script>alert('{outcome}')</script>");
                one.reason = Some(Reason::Challenge(guard));
            }
            state.commit(&[Change::Visit(Box::new(one))]).unwrap();
        }
        let end = RoundEnd { round: round.id, site: site.id, at_s: start_s + 60, skips: None };
        state.commit(&[Change::RoundEnd(end)]).unwrap();
        site
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Answer {
            status: parts.status,
            headers: parts.headers,
            body: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.get_as(path, "").await
    }

    pub(crate) async fn get_as(&self, path: &str, cookie: &str) -> Answer {
        let request = Request::get(path)
            .header(header::HOST, "localhost:8080")
            .header(header::COOKIE, cookie)
            .body(Body::empty())
            .unwrap();
        self.send(request).await
    }

    /// Opens a page with a form, then sends the form as a browser would.
    pub(crate) async fn submit(
        &self,
        form_page: &str,
        path: &str,
        fields: &[(&str, &str)],
    ) -> Answer {
        let (cookie, token) = self.get(form_page).await.session();
        self.post_as(path, &cookie, &token, fields).await
    }

    pub(crate) async fn post_as(
        &self,
        path: &str,
        cookie: &str,
        token: &str,
        fields: &[(&str, &str)],
    ) -> Answer {
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        body.append_pair("token", token);
        body.extend_pairs(fields);
        let request = Request::post(path)
            .header(header::HOST, "localhost:8080")
            .header(header::ORIGIN, "http://localhost:8080")
            .header(header::COOKIE, cookie)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Body::from(body.finish()))
            .unwrap();
        self.send(request).await
    }
}

/// A lost sitemap of the first site, with a hostile detail.
pub(crate) fn incident() -> Incident {
    Incident {
        id: "7-1".into(),
        event: IncidentKind::SignalLost,
        at_s: NOW_S - 60,
        over_s: None,
        site: Some(SiteId(1)),
        name: "paper".into(),
        detail: Some(IncidentDetail::SignalLost(
            "https://e.com/sitemap.xml <script>alert(5)</script>".into(),
        )),
        cause: String::new(),
    }
}

pub(crate) fn version(number: u64, at_s: i64) -> VersionRow {
    VersionRow {
        at_s,
        version: VersionId(number),
        status: 200,
        mime: "text/html".into(),
        bytes: 1_000,
        changed_permille: None,
    }
}

pub(crate) fn visit(due: &DuePage, at_s: i64, outcome: Outcome) -> VisitCommit {
    VisitCommit {
        status: 200,
        elapsed_ms: 12,
        received_bytes: 1_000,
        stored_bytes: 40,
        update: PageUpdate {
            mark: Some(ContentMark([7; 16])),
            bytes: 1_000,
            ..PageUpdate::default()
        },
        ..VisitCommit::new(due.page.id, due.site, at_s, outcome)
    }
}

/// The fields of the form for a new site, as a browser sends them untouched.
pub(crate) fn site_fields<'a>(address: &'a str, name: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        ("url", address),
        ("period", "1d"),
        ("other_period", ""),
        ("name", name),
        ("scope", "host"),
        ("depth", "8"),
        ("max_pages", ""),
        ("delay", ""),
        ("more_tops", ""),
        ("robots", "obey"),
        ("robots_reason", ""),
        ("embeds", "1"),
        ("signals", "1"),
        ("policy", "auto"),
        ("policy_text", ""),
        ("visits_per_day", ""),
        ("min", ""),
        ("max", "365d"),
        ("paths", ""),
        ("windows", ""),
        ("schedule_by", "any"),
        ("rounds_by", "all"),
        ("quota", ""),
        ("prune", ""),
    ]
}
