//! A site while it is collected: how far the round is, and the page that fills itself.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    http::StatusCode,
    response::{
        IntoResponse, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use futures_util::stream;
use maud::{Markup, html};
use nenrin_state::{Round, Schedule, Site, SiteWorth, VisitFilter};
use nenrin_urls::CanonicalUrl;

use crate::{WebApp, WebError, format, guard::Shared, pages::site, visitor::Visitor};

/// People who may watch at once; each takes a connection.
pub(crate) const WATCHERS_MAX: usize = 32;
/// How often a watched site is looked at.
const EVERY: Duration = Duration::from_secs(1);
/// A connection ends after this many looks; the browser opens another.
const LOOKS_MAX: usize = 300;
/// Visits from which the pace is taken.
const PACE_VISITS: usize = 40;
/// Addresses shown of those being fetched.
const CURRENT_SHOWN: usize = 2;
/// A site without a round is being collected if it was visited within this time.
const RECENT_S: i64 = 60;

/// A pass over a site that is under way.
pub(crate) struct Pass {
    started_s: i64,
    done: u64,
    known: u64,
}

/// The pass that is under way, if this process collects the site: a round, or where every page has its own
/// schedule, the first visits of its pages. `rounds` and `worth` are the site's.
pub(crate) fn pass(
    app: &WebApp,
    site: &Site,
    rounds: &[Round],
    worth: Option<&SiteWorth>,
) -> Option<Pass> {
    if !app.control.collects() || site.paused || site.removed.is_some() {
        return None;
    }
    let known = site.counts.pages.min(site.conditions.max_pages.unwrap_or(u64::MAX));
    let running = rounds.iter().find(|round| round.ended_s.is_none());
    let (started_s, done) = match (running, &site.conditions.schedule) {
        (Some(round), _) => (round.started_s, round.counts.visits()),
        (None, Schedule::Continuous(_)) => {
            let done = worth.map_or(0, |worth| worth.weighed_pages);
            // Some pages are never visited, such as those that robots.txt forbids.
            (done < known && is_active(app, site)).then_some((site.created_s, done))?
        }
        _ => return None,
    };
    Some(Pass { started_s, done, known: known.max(done) })
}

/// Whether a page of the site is being fetched, or was a moment ago.
fn is_active(app: &WebApp, site: &Site) -> bool {
    let last = VisitFilter { site: Some(site.id), limit: 1, ..VisitFilter::default() };
    let is_recent = |at_s: i64| at_s >= (app.now_s)() - RECENT_S;
    current(app, site).next().is_some()
        || app
            .state
            .visits(last)
            .is_ok_and(|last| last.first().is_some_and(|one| is_recent(one.at_s)))
}

/// The addresses of the site that are being fetched.
fn current(app: &WebApp, site: &Site) -> impl Iterator<Item = String> {
    let is_own =
        |url: &String| CanonicalUrl::parse(url).is_ok_and(|url| site.conditions.is_own(&url));
    app.control.under_way().into_iter().map(|request| request.url).filter(is_own)
}

/// Says that a site is being collected.
pub(crate) fn badge(visitor: &Visitor) -> Markup {
    html! { span.badge.running { (visitor.t("collecting", "収集中")) } }
}

/// How far a pass is.
struct Progress {
    done: u64,
    known: u64,
    per_minute: Option<f64>,
    current: Vec<String>,
}

impl Progress {
    fn of(app: &WebApp, visitor: &Visitor, site: &Site, pass: &Pass) -> Result<Self, WebError> {
        let last =
            VisitFilter { site: Some(site.id), limit: PACE_VISITS, ..VisitFilter::default() };
        let mut times: Vec<i64> = app.state.visits(last)?.iter().map(|visit| visit.at_s).collect();
        times.retain(|at_s| *at_s >= pass.started_s);
        let per_minute = match times.as_slice() {
            [_, .., oldest] => {
                let took_s = (visitor.now_s - oldest).max(1);
                Some(60.0 * (times.len() - 1) as f64 / took_s as f64)
            }
            _ => None,
        };
        let current = current(app, site).take(CURRENT_SHOWN).collect();
        Ok(Self { done: pass.done, known: pass.known, per_minute, current })
    }

    /// Seconds until the pages known now are visited.
    fn left_s(&self) -> Option<i64> {
        let per_minute = self.per_minute.filter(|pace| *pace > 0.0)?;
        Some((60.0 * (self.known - self.done) as f64 / per_minute).ceil().min(1e12) as i64)
    }
}

/// The pass of one site that is under way.
pub(crate) fn pass_of(
    app: &WebApp,
    site: &Site,
    rounds: &[Round],
) -> Result<Option<Pass>, WebError> {
    let worth = app.state.site_worth()?;
    Ok(pass(app, site, rounds, worth.iter().find(|worth| worth.site == site.id)))
}

/// How far the running pass is; nothing where none runs.
pub(crate) fn shown(
    app: &WebApp,
    visitor: &Visitor,
    site: &Site,
    rounds: &[Round],
) -> Result<Markup, WebError> {
    let Some(pass) = pass_of(app, site, rounds)? else { return Ok(html! {}) };
    let t = |en, ja| visitor.t(en, ja);
    let progress = Progress::of(app, visitor, site, &pass)?;
    let is_first = site.collected_s.is_none() || rounds.len() <= 1;
    Ok(html! {
        section.card.collecting aria-label=(t("Collecting", "収集中")) {
            h2 { (badge(visitor)) " " @if is_first { (t("The first round", "最初の収集")) } @else { (t("A round is running", "収集が進行中")) } }
            progress value=(progress.done) max=(progress.known.max(1)) aria-label=(t("pages visited", "訪問したページ")) {}
            p {
                strong { (format::number(progress.done)) } (t(" of ", " / ")) (format::number(progress.known)) (t(" known pages visited", " ページを訪問"))
                @if let Some(pace) = progress.per_minute {
                    " · " (format!("{pace:.0}")) (t(" a minute", " ページ/分"))
                }
                @if let Some(left_s) = progress.left_s().filter(|_| progress.known > progress.done) {
                    " · " (t("about ", "残り約")) (format::spoken_duration(visitor.lang, left_s.max(1))) (t(" left", ""))
                }
            }
            @if progress.current.is_empty() {
                p.hint { (t("In the pause between two requests.", "要求の間隔をおいています。")) }
            }
            @for url in &progress.current {
                p.hint.url { (t("now: ", "取得中：")) bdi { (nenrin_urls::shown_text(url)) } }
            }
            p.hint { (t("More pages are found on the way, so this is the least that is left.", "途中で新しいページが見つかるため、実際にはもっとかかることがあります。")) }
        }
    })
}

/// Sends the parts of a site's page whenever they change, while the site is collected.
pub(crate) fn watch(shared: Arc<Shared>, visitor: Visitor, id: String) -> Response {
    let Ok(permit) = shared.watchers.clone().try_acquire_owned() else {
        return (StatusCode::TOO_MANY_REQUESTS, "too many watch already").into_response();
    };
    let watch = Watch {
        shared,
        visitor,
        id,
        sent: Vec::new(),
        looks: 0,
        waiting: Vec::new(),
        is_over: false,
    };
    let events = stream::unfold((watch, permit), |(mut watch, permit)| async move {
        let event = watch.next().await?;
        Some((Ok::<_, Infallible>(event), (watch, permit)))
    });
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

struct Watch {
    shared: Arc<Shared>,
    visitor: Visitor,
    id: String,
    /// What was sent last of each part.
    sent: Vec<(&'static str, String)>,
    /// What is still to be sent.
    waiting: Vec<(&'static str, String)>,
    looks: usize,
    is_over: bool,
}

impl Watch {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((part, text)) = self.waiting.pop() {
                return Event::default().event(part).json_data(text).ok();
            }
            if self.is_over || self.looks >= LOOKS_MAX {
                return None;
            }
            if self.looks > 0 {
                tokio::time::sleep(EVERY).await;
            }
            self.looks += 1;
            self.look().await?;
        }
    }

    async fn look(&mut self) -> Option<()> {
        let (shared, mut visitor, id) =
            (self.shared.clone(), self.visitor.clone(), self.id.clone());
        visitor.now_s = (shared.app.now_s)();
        let at_work = shared.clone();
        let made = shared.turns.run(visitor.from, move || {
            let site = site::find(&at_work.app, &id)?;
            site::parts(&at_work.app, &visitor, &site)
        });
        let Ok((parts, is_live)) = made.await.flatten() else { return None };
        let parts: Vec<_> =
            parts.into_iter().map(|(part, shown)| (part, shown.into_string())).collect();
        self.waiting = parts.iter().filter(|part| !self.sent.contains(part)).cloned().collect();
        self.sent = parts;
        if !is_live {
            self.is_over = true;
            // Sent last: what waits is taken from the end.
            self.waiting.insert(0, ("over", String::new()));
        }
        Some(())
    }
}
