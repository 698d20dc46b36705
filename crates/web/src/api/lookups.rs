//! What is known of the archive, its sites and pages, and the actions on them.

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use nenrin_archive::{Edge, parse_date};
use nenrin_search::{Ask, Order, Query, SearchError, SearchResult};
use nenrin_state::{DayQuery, PathQuery, Removal, ServerId, Site, SiteId, VersionId, VisitFilter};
use nenrin_urls::CanonicalUrl;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    answers::{
        LearntAnswer, OrderAnswer, PageAnswer, Portion, RemovalAnswer, SiteAnswer, StatsAnswer,
        VersionAnswer,
    },
    call::{Call, bad, ok},
};
use crate::{
    WebError, format,
    pages::{log, removal, removals, search::engine, site},
};

pub(super) fn stats(call: &Call<'_>) -> Result<Response, WebError> {
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

pub(super) fn now(call: &Call<'_>) -> Result<Response, WebError> {
    ok(call.app.control.under_way())
}

pub(super) fn order(call: &Call<'_>) -> Result<Response, WebError> {
    ok(OrderAnswer::from(call.app.state.order_curve(None)?))
}

pub(super) fn incidents(call: &Call<'_>) -> Result<Response, WebError> {
    ok(call.app.state.incidents()?)
}

pub(super) fn sites(call: &Call<'_>) -> Result<Response, WebError> {
    let sums = call.sums()?;
    let listed = call.app.state.sites()?.into_iter().filter(|site| site.removed.is_none());
    ok(listed.map(|site| SiteAnswer::new(site, &sums)).collect::<Vec<_>>())
}

pub(super) fn outlook(call: &Call<'_>) -> Result<Response, WebError> {
    let outlook = nenrin_archive::outlook(&*call.app.state, &call.site()?)?;
    ok(json!({ "outlook": outlook }))
}

pub(super) fn site_order(call: &Call<'_>) -> Result<Response, WebError> {
    ok(OrderAnswer::from(call.app.state.order_curve(Some(call.site()?.id))?))
}

pub(super) fn structure(call: &Call<'_>) -> Result<Response, WebError> {
    ok(nenrin_archive::site_structure(&*call.app.state, &call.site()?)?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Look {
    url: CanonicalUrl,
    #[serde(default)]
    allow_private: bool,
}

pub(super) fn preview(call: &Call<'_>) -> Result<Response, WebError> {
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

pub(super) fn remove(call: &Call<'_>) -> Result<Response, WebError> {
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

pub(super) fn restore(call: &Call<'_>) -> Result<Response, WebError> {
    let site = call.site()?;
    let wanted: Reason = call.json()?;
    let reason = removal::reason(&wanted.reason).ok_or_else(|| bad("reason", NO_REASON))?;
    removals::restore_site(call.app, &site, reason, call.visitor.now_s)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

const NO_REASON: &str = "needs 1 to 1000 characters";

pub(super) fn removals(call: &Call<'_>) -> Result<Response, WebError> {
    let sites = call.app.state.sites()?;
    let rows = call.app.state.removals()?;
    ok(rows.into_iter().map(|row| RemovalAnswer::new(row, &sites)).collect::<Vec<_>>())
}

pub(super) fn collect(call: &Call<'_>) -> Result<Response, WebError> {
    call.app.control.collect_now(site::kept(call.site()?)?.id)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(super) fn pause(call: &Call<'_>, paused: bool) -> Result<Response, WebError> {
    let site = if paused { call.site()? } else { site::kept(call.site()?)? };
    call.app.state.pause_site(site.id, paused)?;
    call.app.control.sites_changed();
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(super) fn days(call: &Call<'_>) -> Result<Response, WebError> {
    let today = call.visitor.now_s.div_euclid(format::DAY_S);
    let from_day = call.day("from")?.unwrap_or(today - 89);
    let to_day = call.day("to")?.unwrap_or(today);
    ok(call.app.state.days(DayQuery { site: Some(call.site()?.id), from_day, to_day })?)
}

pub(super) fn rounds(call: &Call<'_>) -> Result<Response, WebError> {
    ok(call.app.state.rounds(Some(call.site()?.id), call.limit()?)?)
}

pub(super) fn problems(call: &Call<'_>) -> Result<Response, WebError> {
    ok(call.app.state.problems(call.site()?.id, site::PROBLEMS_LOOKED_AT)?)
}

pub(super) fn learnt(call: &Call<'_>) -> Result<Response, WebError> {
    let servers = call.app.state.site_servers(call.site()?.id, call.limit()?)?;
    let ids: Vec<ServerId> = servers.iter().map(|server| server.id).collect();
    let records = call.app.state.servers(&ids)?;
    ok(records.into_iter().map(LearntAnswer::new).collect::<Vec<_>>())
}

pub(super) fn pages(call: &Call<'_>) -> Result<Response, WebError> {
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

pub(super) fn visits(call: &Call<'_>) -> Result<Response, WebError> {
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

pub(super) fn page(call: &Call<'_>) -> Result<Response, WebError> {
    let url = call.url()?;
    let page = call.app.state.page(&url)?;
    let page = page.ok_or_else(|| WebError::not_found(format!("page {url}")))?;
    let rendering = nenrin_archive::renderings_of(&*call.app.state, &page)?;
    let mut answer = PageAnswer::from(page);
    answer.rendering = rendering;
    ok(answer)
}

pub(super) fn versions(call: &Call<'_>) -> Result<Response, WebError> {
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

pub(super) fn search(call: &Call<'_>) -> Result<Response, WebError> {
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

pub(super) fn blame(call: &Call<'_>) -> Result<Response, WebError> {
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
