use std::{collections::BTreeSet, sync::Arc};

use axum::{
    Json, Router,
    body::Body,
    extract::{RawPathParams, Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::{MethodFilter, on},
};
use nenrin_archive::{Edge, parse_date};
use nenrin_search::{Ask, Order, Query, SearchError, SearchResult};
use nenrin_state::{DayQuery, PathQuery, Removal, ServerId, Site, SiteId, VersionId, VisitFilter};
use nenrin_urls::CanonicalUrl;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use url::form_urlencoded;

use super::{
    answers::{
        LearntAnswer, OrderAnswer, PageAnswer, Portion, RemovalAnswer, SiteAnswer, StatsAnswer,
        Sums, VersionAnswer,
    },
    document::document,
    sites, watches,
};
use super::{changes as site_changes, export};
use crate::{
    WebApp, WebError, format,
    guard::{Fields, Shared, received},
    pages::{log, removal, removals, search::engine, site},
    visitor::Visitor,
};

const DEFAULT_LIMIT: usize = 100;
pub(super) const MAX_LIMIT: usize = 1_000;
const MAX_BODY_BYTES: usize = 256 * 1024;

/// One row of the table from which the routes and the document are made.
pub(super) struct Route {
    pub(super) id: &'static str,
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) summary: &'static str,
    /// Name, type, whether it is required.
    pub(super) query: &'static [(&'static str, &'static str, bool)],
    /// The schema of the body, if it has one.
    pub(super) body: Option<&'static str>,
    /// The status of success.
    pub(super) status: u16,
    /// The schema of the answer, if it has one.
    pub(super) answer: Option<&'static str>,
    run: fn(&Call<'_>) -> Result<Response, WebError>,
}

/// One request.
pub(super) struct Call<'a> {
    pub(super) app: &'a WebApp,
    pub(super) visitor: &'a Visitor,
    id: Option<String>,
    pub(super) query: Fields,
    body: Vec<u8>,
}

const LIST: &[(&str, &str, bool)] = &[("limit", "integer", false)];

const fn read(
    id: &'static str,
    path: &'static str,
    summary: &'static str,
    query: &'static [(&'static str, &'static str, bool)],
    answer: &'static str,
    run: fn(&Call<'_>) -> Result<Response, WebError>,
) -> Route {
    Route {
        id,
        method: "GET",
        path,
        summary,
        query,
        body: None,
        status: 200,
        answer: Some(answer),
        run,
    }
}

const fn act(
    id: &'static str,
    path: &'static str,
    summary: &'static str,
    run: fn(&Call<'_>) -> Result<Response, WebError>,
) -> Route {
    Route {
        id,
        method: "POST",
        path,
        summary,
        query: &[],
        body: None,
        status: 204,
        answer: None,
        run,
    }
}

pub(super) const ROUTES: &[Route] = &[
    read("stats", "/stats", "Totals of the archive", &[], "Stats", stats),
    read("underWay", "/now", "Requests under way at this moment", &[], "UnderWay", now),
    read("sites", "/sites", "Every site", &[], "Sites", sites),
    Route {
        id: "addSite",
        method: "POST",
        path: "/sites",
        summary: "Registers a site",
        query: &[],
        body: Some("NewSite"),
        status: 201,
        answer: Some("Site"),
        run: sites::add,
    },
    read("site", "/sites/{id}", "One site", &[], "Site", sites::one),
    Route {
        id: "setSite",
        method: "PUT",
        path: "/sites/{id}",
        summary: "Changes a site's conditions",
        query: &[],
        body: Some("Conditions"),
        status: 200,
        answer: Some("Site"),
        run: sites::set,
    },
    Route {
        id: "renameSite",
        method: "POST",
        path: "/sites/{id}/rename",
        summary: "Gives a site another name",
        query: &[],
        body: Some("Name"),
        status: 200,
        answer: Some("Site"),
        run: sites::rename,
    },
    Route {
        id: "copySite",
        method: "POST",
        path: "/sites/{id}/copy",
        summary: "Registers another site with this one's conditions; only name and top pages differ",
        query: &[],
        body: Some("Copy"),
        status: 201,
        answer: Some("Site"),
        run: sites::copy,
    },
    Route {
        id: "previewSite",
        method: "POST",
        path: "/preview",
        summary: "A first look at a site that is not registered: a few polite requests",
        query: &[],
        body: Some("Look"),
        status: 200,
        answer: Some("Preview"),
        run: preview,
    },
    Route {
        body: Some("RemovalWanted"),
        ..act("removeSite", "/sites/{id}/remove", "Removes a site in one of three ways", remove)
    },
    Route {
        body: Some("Reason"),
        ..act("restoreSite", "/sites/{id}/restore", "Restores a hidden or denied site", restore)
    },
    read(
        "order",
        "/order",
        "Share of the importance found by the pages collected first, and the most that was possible",
        &[],
        "Order",
        order,
    ),
    read(
        "siteOrder",
        "/sites/{id}/order",
        "As /order, for the pages of one site",
        &[],
        "Order",
        site_order,
    ),
    read("watches", "/watches", "Every watch", &[], "Watches", watches::all),
    Route {
        id: "addWatch",
        method: "POST",
        path: "/watches",
        summary: "Watches a part of a page",
        query: &[],
        body: Some("NewWatch"),
        status: 201,
        answer: Some("Watch"),
        run: watches::add,
    },
    read("watch", "/watches/{id}", "One watch", &[], "Watch", watches::one),
    Route {
        id: "setWatch",
        method: "PUT",
        path: "/watches/{id}",
        summary: "Changes a watch; it starts over with the newest version",
        query: &[],
        body: Some("NewWatch"),
        status: 200,
        answer: Some("Watch"),
        run: watches::set,
    },
    read(
        "watchHits",
        "/watch-hits",
        "What watches reported, newest first",
        &[],
        "WatchHits",
        watches::hits,
    ),
    act("removeWatch", "/watches/{id}/remove", "Removes a watch", watches::remove),
    read("incidents", "/incidents", "Incidents, newest first", &[], "Incidents", incidents),
    read(
        "removals",
        "/removals",
        "Removed and restored sites, with reasons",
        &[],
        "Removals",
        removals,
    ),
    act("collectSite", "/sites/{id}/collect", "Begins a round now", collect),
    act("pauseSite", "/sites/{id}/pause", "Pauses collecting", |call| pause(call, true)),
    act("resumeSite", "/sites/{id}/resume", "Resumes collecting", |call| pause(call, false)),
    read(
        "siteOutlook",
        "/sites/{id}/outlook",
        "Expected visits and versions at half, the same and twice the budget; null for a site collected in rounds",
        &[],
        "Outlook",
        outlook,
    ),
    read(
        "siteStructure",
        "/sites/{id}/structure",
        "Structure of the site: index pages, their members and families, how often they changed together, and which pages the last round left out and why",
        &[],
        "Structure",
        structure,
    ),
    Route {
        answer: None,
        ..read(
            "siteExport",
            "/sites/{id}/export.warc.gz",
            "The site as one WARC file, streamed; `from` and `to` are dates",
            &[("from", "string", false), ("to", "string", false)],
            "",
            export::export,
        )
    },
    read(
        "siteDays",
        "/sites/{id}/days",
        "Sums per day; `from` and `to` are dates, by default the last 90 days",
        &[("from", "string", false), ("to", "string", false)],
        "Days",
        days,
    ),
    read(
        "siteRounds",
        "/sites/{id}/rounds",
        "The collection log, newest first",
        LIST,
        "Rounds",
        rounds,
    ),
    read(
        "siteProblems",
        "/sites/{id}/problems",
        "Recent problems by cause",
        &[],
        "Problems",
        problems,
    ),
    read(
        "siteLearnt",
        "/sites/{id}/learnt",
        "What was learnt about the site's servers: missing pages, traps, sitemaps and feeds",
        LIST,
        "Learnt",
        learnt,
    ),
    read(
        "sitePages",
        "/sites/{id}/pages",
        "Pages of one server of the site by path; without `server`, the first server",
        &[
            ("server", "integer", false),
            ("prefix", "string", false),
            ("after", "string", false),
            ("limit", "integer", false),
        ],
        "Pages",
        pages,
    ),
    read(
        "visits",
        "/visits",
        "The log of visits, newest first",
        &[
            ("site", "integer", false),
            ("outcome", "string", false),
            ("before", "integer", false),
            ("limit", "integer", false),
        ],
        "Visits",
        visits,
    ),
    read(
        "changes",
        "/changes",
        "Pages that are new, have changed or are gone, newest first; `from` and `to` are dates, by default the last 7 days. Titles and lines are null until they were read",
        &[
            ("site", "integer", false),
            ("kind", "string", false),
            ("significant", "boolean", false),
            ("text", "string", false),
            ("parts", "boolean", false),
            ("from", "string", false),
            ("to", "string", false),
            ("before", "string", false),
            ("limit", "integer", false),
        ],
        "Changes",
        site_changes::changes,
    ),
    read(
        "siteBetween",
        "/sites/{id}/between",
        "Pages of a site that differ between two dates, in portions: about `limit` pages are compared at a time, and those that differ are listed",
        &[
            ("from", "string", true),
            ("to", "string", true),
            ("parts", "boolean", false),
            ("after", "integer", false),
            ("limit", "integer", false),
        ],
        "Differences",
        site_changes::site_between,
    ),
    read("page", "/page", "What is known about a URL", &[("url", "string", true)], "Page", page),
    read(
        "versions",
        "/versions",
        "Versions of a URL, newest first",
        &[("url", "string", true), ("before", "string", false), ("limit", "integer", false)],
        "Versions",
        versions,
    ),
    read(
        "search",
        "/search",
        "Pages by their text, title and address, with the times at which it was so; q as in the search box, order best or newest",
        &[
            ("q", "string", true),
            ("order", "string", false),
            ("skip", "integer", false),
            ("limit", "integer", false),
        ],
        "Matches",
        search,
    ),
    read(
        "blame",
        "/blame",
        "The blocks of a page as of a date, each with the time it was first seen",
        &[("url", "string", true), ("at", "string", false)],
        "Blame",
        blame,
    ),
];

/// The description of the API: an OpenAPI document.
pub fn api_document() -> serde_json::Value {
    document(ROUTES)
}

/// The routes, and the document at `/api/v1/openapi.json`.
pub(crate) fn router() -> Router<Arc<Shared>> {
    let describe = || async { Json(api_document()) };
    let mut router = Router::new()
        .route("/api/v1", on(MethodFilter::GET, describe))
        .route("/api/v1/openapi.json", on(MethodFilter::GET, describe));
    for route in ROUTES {
        let method = match route.method {
            "POST" => MethodFilter::POST,
            "PUT" => MethodFilter::PUT,
            _ => MethodFilter::GET,
        };
        let handler =
            move |state: State<Arc<Shared>>,
                  visitor: Visitor,
                  path: RawPathParams,
                  request: Request| { answer(route, state.0, visitor, path, request) };
        router = router.route(&format!("/api/v1{}", route.path), on(method, handler));
    }
    router
}

async fn answer(
    route: &'static Route,
    shared: Arc<Shared>,
    visitor: Visitor,
    path: RawPathParams,
    request: Request<Body>,
) -> Response {
    let (parts, body) = request.into_parts();
    // Another website can make a browser send a form or plain text, but JSON only with permission.
    let is_json = parts
        .headers
        .get(header::CONTENT_TYPE)
        .and_then(|v| v.to_str().ok())
        .is_some_and(|mime| mime.starts_with("application/json"));
    if route.method != "GET" && !is_json {
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send `content-type: application/json`");
    }
    let Some(body) = received(body, MAX_BODY_BYTES).await else {
        let reason = "the body is longer than 256 KiB, or did not come in time";
        return refuse(StatusCode::PAYLOAD_TOO_LARGE, reason);
    };
    if route.method != "GET" && route.body.is_none() && !is_nothing(&body) {
        return refuse(StatusCode::BAD_REQUEST, "the body must be empty or an object");
    }
    if let Some(name) = repeated(parts.uri.query().unwrap_or_default()) {
        return refuse(StatusCode::BAD_REQUEST, &format!("`{name}` is given more than once"));
    }
    let id = path.iter().next().map(|(_, id)| id.to_owned());
    let query = Fields::parse(parts.uri.query().unwrap_or_default().as_bytes());
    let at_work = shared.clone();
    let answer = shared.turns.run(move || {
        let call = Call { app: &at_work.app, visitor: &visitor, id, query, body: body.to_vec() };
        (route.run)(&call)
    });
    let answer = answer.await.flatten();
    answer.unwrap_or_else(|error| refuse(error.status(), &error.to_string()))
}

/// Whether a body is empty: this action needs none.
fn is_nothing(body: &[u8]) -> bool {
    body.is_empty() || matches!(serde_json::from_slice(body), Ok(Value::Object(_) | Value::Null))
}

/// Whether there is a list in the position of an object: serde would take its items for the fields
/// of a struct.
fn has_list_for_object(value: &Value) -> bool {
    const LISTS: [&str; 8] =
        ["tops", "windows", "paths", "include", "exclude", "headers", "ignored", "tags"];
    match value {
        Value::Array(_) => true,
        Value::Object(fields) => fields.iter().any(|(name, field)| match field {
            Value::Array(items) if LISTS.contains(&name.as_str()) => {
                items.iter().any(has_list_for_object)
            }
            field => has_list_for_object(field),
        }),
        _ => false,
    }
}

/// A parameter that is given twice: it is unclear which one is meant.
fn repeated(query: &str) -> Option<String> {
    let mut seen = BTreeSet::new();
    let names = form_urlencoded::parse(query.as_bytes()).map(|(name, _)| name.into_owned());
    names.take(256).find(|name| !seen.insert(name.clone()))
}

fn refuse(status: StatusCode, reason: &str) -> Response {
    (status, Json(json!({"error": reason}))).into_response()
}

pub(super) fn ok(answer: impl Serialize) -> Result<Response, WebError> {
    Ok(Json(answer).into_response())
}

impl Call<'_> {
    pub(super) fn site(&self) -> Result<Site, WebError> {
        site::find(self.app, self.id())
    }

    pub(super) fn limit(&self) -> Result<usize, WebError> {
        let limit = self.number("limit")?.unwrap_or(DEFAULT_LIMIT);
        let is_fitting = (1..=MAX_LIMIT).contains(&limit);
        if is_fitting { Ok(limit) } else { Err(bad("limit", "is not between 1 and 1000")) }
    }

    /// A number that may be missing but not wrong.
    pub(super) fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, WebError> {
        match self.query.given(name) {
            None => Ok(None),
            Some(text) => text
                .parse()
                .map(Some)
                .map_err(|_| bad(name, "is not a number in the allowed range")),
        }
    }

    /// The day of a date, counted since the epoch.
    pub(super) fn day(&self, name: &str) -> Result<Option<i64>, WebError> {
        match self.query.given(name) {
            None => Ok(None),
            Some(text) => format::parse_date(text)
                .map(|at_s| Some(at_s.div_euclid(format::DAY_S)))
                .ok_or_else(|| bad(name, "is not a date")),
        }
    }

    fn url(&self) -> Result<CanonicalUrl, WebError> {
        let text = self.query.get("url");
        // A text that is not a web address cannot be in the archive.
        CanonicalUrl::parse_typed(text).map_err(|e| WebError::not_found(format!("such page: {e}")))
    }

    pub(super) fn id(&self) -> &str {
        self.id.as_deref().unwrap_or_default()
    }

    pub(super) fn now_s(&self) -> i64 {
        self.visitor.now_s
    }

    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, WebError> {
        let value: Value =
            serde_json::from_slice(&self.body).map_err(|e| bad("the body", &e.to_string()))?;
        if has_list_for_object(&value) {
            return Err(bad("the body", "has a list instead of an object"));
        }
        serde_json::from_value(value).map_err(|e| bad("the body", &e.to_string()))
    }

    pub(super) fn shown(&self, site: SiteId) -> Result<SiteAnswer, WebError> {
        let site = site::find(self.app, &site.0.to_string())?;
        let logged_out = nenrin_archive::logged_out_of(&*self.app.state, &site)?;
        let mut answer = SiteAnswer::new(site, &self.sums()?);
        answer.logged_out = logged_out;
        Ok(answer)
    }

    fn sums(&self) -> Result<Sums, WebError> {
        let state = &self.app.state;
        Ok(Sums {
            cost: self.app.site_sums(i64::MAX)?,
            worth: nenrin_archive::shown_worth(&**state)?,
        })
    }
}

pub(super) fn bad(what: &str, reason: &str) -> WebError {
    WebError::BadParameter { what: what.to_owned(), reason: reason.to_owned() }
}

fn stats(call: &Call<'_>) -> Result<Response, WebError> {
    let sites = call.app.state.sites()?;
    let sum = |of: fn(&Site) -> u64| sites.iter().map(of).sum::<u64>();
    let store = (call.app.store_stats)();
    ok(StatsAnswer {
        sites: sites.len() as u64,
        pages: sum(|s| s.counts.pages),
        visits: sum(|s| s.counts.visits),
        versions: sum(|s| s.counts.versions),
        problems: sum(|s| s.counts.problems),
        raw_bytes: store.raw_bytes,
        unique_bytes: store.unique_bytes,
        stored_bytes: store.stored_bytes(),
        store,
    })
}

fn now(call: &Call<'_>) -> Result<Response, WebError> {
    ok(call.app.control.under_way())
}

fn order(call: &Call<'_>) -> Result<Response, WebError> {
    ok(OrderAnswer::from(call.app.state.order_curve(None)?))
}

fn incidents(call: &Call<'_>) -> Result<Response, WebError> {
    ok(call.app.state.incidents()?)
}

fn sites(call: &Call<'_>) -> Result<Response, WebError> {
    let sums = call.sums()?;
    let listed = call.app.state.sites()?.into_iter().filter(|site| site.removed.is_none());
    ok(listed.map(|site| SiteAnswer::new(site, &sums)).collect::<Vec<_>>())
}

fn outlook(call: &Call<'_>) -> Result<Response, WebError> {
    let outlook = nenrin_archive::outlook(&*call.app.state, &call.site()?)?;
    ok(serde_json::json!({ "outlook": outlook }))
}

fn site_order(call: &Call<'_>) -> Result<Response, WebError> {
    ok(OrderAnswer::from(call.app.state.order_curve(Some(call.site()?.id))?))
}

fn structure(call: &Call<'_>) -> Result<Response, WebError> {
    ok(nenrin_archive::site_structure(&*call.app.state, &call.site()?)?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Look {
    url: CanonicalUrl,
    #[serde(default)]
    allow_private: bool,
}

fn preview(call: &Call<'_>) -> Result<Response, WebError> {
    let look: Look = call.json()?;
    ok(call.app.control.preview(&look.url, look.allow_private)?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RemovalWanted {
    how: Removal,
    reason: String,
    /// To delete: the site's name.
    confirm: Option<String>,
}

fn remove(call: &Call<'_>) -> Result<Response, WebError> {
    let site = call.site()?;
    let wanted: RemovalWanted = call.json()?;
    let reason = removal::reason(&wanted.reason).ok_or_else(|| bad("reason", NO_REASON))?;
    if wanted.how == Removal::Delete && wanted.confirm.as_ref() != Some(&site.name) {
        return Err(bad("confirm", "must be the site's name: deleting cannot be undone"));
    }
    call.app.control.remove(site.id, wanted.how, reason)?;
    call.app.control.sites_changed();
    Ok(StatusCode::NO_CONTENT.into_response())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reason {
    reason: String,
}

fn restore(call: &Call<'_>) -> Result<Response, WebError> {
    let site = call.site()?;
    let wanted: Reason = call.json()?;
    let reason = removal::reason(&wanted.reason).ok_or_else(|| bad("reason", NO_REASON))?;
    removals::give_back(call.app, &site, reason, call.visitor.now_s)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

const NO_REASON: &str = "needs 1 to 1000 characters";

fn removals(call: &Call<'_>) -> Result<Response, WebError> {
    let sites = call.app.state.sites()?;
    let rows = call.app.state.removals()?;
    ok(rows.into_iter().map(|row| RemovalAnswer::new(row, &sites)).collect::<Vec<_>>())
}

fn collect(call: &Call<'_>) -> Result<Response, WebError> {
    call.app.control.collect_now(site::kept(call.site()?)?.id)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn pause(call: &Call<'_>, paused: bool) -> Result<Response, WebError> {
    let site = if paused { call.site()? } else { site::kept(call.site()?)? };
    call.app.state.pause_site(site.id, paused)?;
    call.app.control.sites_changed();
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn days(call: &Call<'_>) -> Result<Response, WebError> {
    let today = call.visitor.now_s.div_euclid(format::DAY_S);
    let from_day = call.day("from")?.unwrap_or(today - 89);
    let to_day = call.day("to")?.unwrap_or(today);
    ok(call.app.state.days(DayQuery { site: Some(call.site()?.id), from_day, to_day })?)
}

fn rounds(call: &Call<'_>) -> Result<Response, WebError> {
    ok(call.app.state.rounds(Some(call.site()?.id), call.limit()?)?)
}

fn problems(call: &Call<'_>) -> Result<Response, WebError> {
    ok(call.app.state.problems(call.site()?.id, site::PROBLEMS_LOOKED_AT)?)
}

fn learnt(call: &Call<'_>) -> Result<Response, WebError> {
    let servers = call.app.state.site_servers(call.site()?.id, call.limit()?)?;
    let ids: Vec<ServerId> = servers.iter().map(|server| server.id).collect();
    let records = call.app.state.servers(&ids)?;
    ok(records.into_iter().map(LearntAnswer::new).collect::<Vec<_>>())
}

fn pages(call: &Call<'_>) -> Result<Response, WebError> {
    let site = call.site()?;
    let limit = call.limit()?;
    let server = match call.number("server")? {
        Some(number) => Some(ServerId(number)),
        None => call.app.state.site_servers(site.id, 1)?.first().map(|s| s.id),
    };
    let Some(server) = server else {
        return ok(Portion::<PageAnswer> { items: Vec::new(), next: None });
    };
    let prefix = call.query.some("prefix").unwrap_or("/").to_owned();
    let after = call.query.some("after").map(str::to_owned);
    let found =
        call.app.state.pages_by_path(&PathQuery { site: site.id, server, prefix, after, limit })?;
    let next = (found.len() == limit)
        .then(|| found.last().map(|page| page.url.path_and_query().to_owned()))
        .flatten();
    ok(Portion { items: found.into_iter().map(PageAnswer::from).collect(), next })
}

fn visits(call: &Call<'_>) -> Result<Response, WebError> {
    let limit = call.limit()?;
    let outcome = match call.query.given("outcome") {
        None => None,
        Some(text) => Some(log::outcome(text).ok_or_else(|| bad("outcome", "is not an outcome"))?),
    };
    let before = call.number("before")?;
    if before.is_some_and(|before: i64| before < 0) {
        return Err(bad("before", "is not a position in this list"));
    }
    let query = VisitFilter { site: call.number("site")?.map(SiteId), outcome, before, limit };
    ok(Portion::of_visits(call.app.state.visits(query)?, limit))
}

fn page(call: &Call<'_>) -> Result<Response, WebError> {
    let url = call.url()?;
    let page = call.app.state.page(&url)?;
    let page = page.ok_or_else(|| WebError::not_found(format!("page {url}")))?;
    let rendering = nenrin_archive::renderings_of(&*call.app.state, &page)?;
    let mut answer = PageAnswer::from(page);
    answer.rendering = rendering;
    ok(answer)
}

fn versions(call: &Call<'_>) -> Result<Response, WebError> {
    let limit = call.limit()?;
    let before = match call.query.some("before") {
        None => (i64::MAX, VersionId(u64::MAX)),
        Some(text) => {
            cursor(text).ok_or_else(|| bad("before", "is not a position in this list"))?
        }
    };
    let found = call.app.state.newest_versions(&call.url()?.key(), before, limit)?;
    let next = (found.len() == limit)
        .then(|| found.last().map(|(_, v)| format!("{}-{}", v.at_s, v.version)))
        .flatten();
    let shown = |(url, version)| VersionAnswer::new(&call.visitor.replay, url, version);
    ok(Portion { items: found.into_iter().map(shown).collect(), next })
}

fn search(call: &Call<'_>) -> Result<Response, WebError> {
    let query = Query::parse(call.query.get("q")).map_err(SearchError::Query)?;
    let order = match call.query.some("order").unwrap_or("best") {
        "best" => Order::Best,
        "newest" => Order::Newest,
        _ => return Err(bad("order", "is neither best nor newest")),
    };
    let skip: usize = call.number("skip")?.unwrap_or(0);
    let ask = Ask { order, skip, limit: call.limit()? };
    let answer = engine(call.app)?.answer(&query, ask)?;
    let items: Vec<Value> = answer.pages.iter().map(SearchResult::json).collect();
    ok(json!({"items": items, "next": answer.has_more.then(|| skip + ask.limit)}))
}

fn blame(call: &Call<'_>) -> Result<Response, WebError> {
    let at_s = match call.query.some("at") {
        None => i64::MAX,
        Some(text) => parse_date(text, Edge::Last).map_err(|why| bad("at", &why))?,
    };
    let url = nenrin_archive::stored_url(&*call.app.state, call.url()?)?;
    match engine(call.app)?.blame(&url, at_s)? {
        Some(blame) => ok(blame),
        None => Err(WebError::not_found(format!("version of {url} in this archive"))),
    }
}

/// `<time>-<version>`.
fn cursor(text: &str) -> Option<(i64, VersionId)> {
    let (at_s, version) = text.rsplit_once('-')?;
    Some((at_s.parse().ok()?, VersionId(version.parse().ok()?)))
}
