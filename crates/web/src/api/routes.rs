//! The table of routes, and how a request is answered by it.

use std::{collections::BTreeSet, sync::Arc};

use axum::{
    Json, Router,
    body::Body,
    extract::{RawPathParams, Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::{MethodFilter, on},
};
use serde_json::{Value, json};
use url::form_urlencoded;

use super::{
    call::Call, changes as site_changes, document::document, export, lookups, sites, watches,
};
use crate::{
    WebError,
    guard::{Fields, Shared, received},
    visitor::Visitor,
};

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
    read("stats", "/stats", "Totals of the archive", &[], "Stats", lookups::stats),
    read("underWay", "/now", "Requests under way at this moment", &[], "UnderWay", lookups::now),
    read("sites", "/sites", "Every site", &[], "Sites", lookups::sites),
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
        run: lookups::preview,
    },
    Route {
        body: Some("RemovalWanted"),
        ..act(
            "removeSite",
            "/sites/{id}/remove",
            "Removes a site in one of three ways",
            lookups::remove,
        )
    },
    Route {
        body: Some("Reason"),
        ..act(
            "restoreSite",
            "/sites/{id}/restore",
            "Restores a hidden or denied site",
            lookups::restore,
        )
    },
    read(
        "order",
        "/order",
        "Share of the importance found by the pages collected first, and the most that was possible",
        &[],
        "Order",
        lookups::order,
    ),
    read(
        "siteOrder",
        "/sites/{id}/order",
        "As /order, for the pages of one site",
        &[],
        "Order",
        lookups::site_order,
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
    read(
        "incidents",
        "/incidents",
        "Incidents, newest first",
        &[],
        "Incidents",
        lookups::incidents,
    ),
    read(
        "removals",
        "/removals",
        "Removed and restored sites, with reasons",
        &[],
        "Removals",
        lookups::removals,
    ),
    act("collectSite", "/sites/{id}/collect", "Begins a round now", lookups::collect),
    act("pauseSite", "/sites/{id}/pause", "Pauses collecting", |call| lookups::pause(call, true)),
    act("resumeSite", "/sites/{id}/resume", "Resumes collecting", |call| {
        lookups::pause(call, false)
    }),
    read(
        "siteOutlook",
        "/sites/{id}/outlook",
        "Expected visits and versions at half, the same and twice the budget; null for a site collected in rounds",
        &[],
        "Outlook",
        lookups::outlook,
    ),
    read(
        "siteStructure",
        "/sites/{id}/structure",
        "Structure of the site: index pages, their members and families, how often they changed together, and which pages the last round left out and why",
        &[],
        "Structure",
        lookups::structure,
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
        lookups::days,
    ),
    read(
        "siteRounds",
        "/sites/{id}/rounds",
        "The collection log, newest first",
        LIST,
        "Rounds",
        lookups::rounds,
    ),
    read(
        "siteProblems",
        "/sites/{id}/problems",
        "Recent problems by cause",
        &[],
        "Problems",
        lookups::problems,
    ),
    read(
        "siteLearnt",
        "/sites/{id}/learnt",
        "What was learnt about the site's servers: missing pages, traps, sitemaps and feeds",
        LIST,
        "Learnt",
        lookups::learnt,
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
        lookups::pages,
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
        lookups::visits,
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
    read(
        "page",
        "/page",
        "What is known about a URL",
        &[("url", "string", true)],
        "Page",
        lookups::page,
    ),
    read(
        "versions",
        "/versions",
        "Versions of a URL, newest first",
        &[("url", "string", true), ("before", "string", false), ("limit", "integer", false)],
        "Versions",
        lookups::versions,
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
        lookups::search,
    ),
    read(
        "blame",
        "/blame",
        "The blocks of a page as of a date, each with the time it was first seen",
        &[("url", "string", true), ("at", "string", false)],
        "Blame",
        lookups::blame,
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
    let answer = shared.turns_for(parts.uri.path()).run(visitor.from, move || {
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

/// A parameter that is given twice: it is unclear which one is meant.
fn repeated(query: &str) -> Option<String> {
    let mut seen = BTreeSet::new();
    let names = form_urlencoded::parse(query.as_bytes()).map(|(name, _)| name.into_owned());
    names.take(256).find(|name| !seen.insert(name.clone()))
}

fn refuse(status: StatusCode, reason: &str) -> Response {
    (status, Json(json!({"error": reason}))).into_response()
}
