//! The log of visits, with filters, page by page.

use std::collections::BTreeSet;

use axum::response::{Html, IntoResponse, Response};
use maud::{Markup, html};
use nenrin_archive::first_versions;
use nenrin_lang::Reason;
use nenrin_state::{Outcome, Site, SiteId, VisitFilter, VisitRow};

use crate::{
    WebApp, WebError, format,
    guard::Fields,
    layout::{self, Menu},
    pages::site,
    visitor::Visitor,
};

const SHOWN: usize = 100;

/// An outcome by its written name.
pub(crate) fn outcome(text: &str) -> Option<Outcome> {
    Outcome::ALL.into_iter().find(|outcome| outcome.to_string() == text)
}

pub(crate) fn log(app: &WebApp, visitor: &Visitor, query: &Fields) -> Result<Response, WebError> {
    let sites = app.state.sites()?;
    let asked = VisitFilter {
        site: query.number("site").map(SiteId),
        outcome: outcome(query.get("outcome")),
        before: query.number("before"),
        limit: SHOWN + 1,
    };
    let mut visits = app.state.visits(asked)?;
    let is_more = visits.len() > SHOWN;
    visits.truncate(SHOWN);
    let first = first_versions(&*app.state, &visits)?;
    let t = |en, ja| visitor.t(en, ja);
    let title = t("Log of visits", "訪問ログ");
    let link = |before: Option<i64>| link(asked, before);
    if query.get("part") == "rows" {
        return Ok(Html(table(visitor, &sites, &visits, &first).into_string()).into_response());
    }
    let is_live = asked.before.is_none() && app.control.collects();
    let live = is_live.then(|| format!("{}&part=rows", link(None)));
    let content = html! {
        h1 { (title) }
        (filters(visitor, &sites, asked))
        // The newest part is refreshed while someone looks.
        div data-live=[live.as_deref()] data-every="5" { (table(visitor, &sites, &visits, &first)) }
        p.paging {
            @if asked.before.is_some() { a.button href=(link(None)) { "↑ " (t("Newest", "最新へ")) } }
            @if is_more && let Some(last) = visits.last() {
                a.button rel="next" href=(link(Some(last.id))) { (t("Older", "古いもの")) " →" }
            }
        }
    };
    Ok(layout::page(visitor, Menu::Log, title, content))
}

fn link(asked: VisitFilter, before: Option<i64>) -> String {
    let mut parts = Vec::new();
    parts.extend(asked.site.map(|site| format!("site={}", site.0)));
    parts.extend(asked.outcome.map(|outcome| format!("outcome={outcome}")));
    parts.extend(before.map(|before| format!("before={before}")));
    format!("/visits?{}", parts.join("&"))
}

fn filters(visitor: &Visitor, sites: &[Site], asked: VisitFilter) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    html! {
        form.filter method="get" action="/visits" {
            label.sr for="site" { (t("Site", "サイト")) }
            select #site name="site" data-submit {
                option value="" { (t("all sites", "すべてのサイト")) }
                @for site in sites {
                    option value=(site.id.0) selected[asked.site == Some(site.id)] { (site.name) }
                }
            }
            label.sr for="outcome" { (t("Outcome", "結果")) }
            select #outcome name="outcome" data-submit {
                option value="" { (t("all outcomes", "すべての結果")) }
                @for outcome in Outcome::ALL {
                    option value=(outcome) selected[asked.outcome == Some(outcome)] { (layout::outcome_word(visitor, outcome)) }
                }
            }
            button { (t("Filter", "絞り込む")) }
        }
    }
}

fn table(visitor: &Visitor, sites: &[Site], visits: &[VisitRow], first: &BTreeSet<i64>) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let name = |id: SiteId| sites.iter().find(|s| s.id == id).map(|s| s.name.as_str());
    html! {
        @if visits.is_empty() {
            p.muted { (t("No matching visits.", "該当する訪問はありません。")) }
        } @else {
            div.scroll { table.log.cards {
                thead { tr {
                    th scope="col" { (t("When", "日時")) }
                    th scope="col" { (t("Found", "結果")) }
                    th scope="col" { (t("Page", "ページ")) }
                    th scope="col" { (t("Site", "サイト")) }
                    th.n scope="col" { (t("Took", "時間")) }
                    th.n scope="col" { (t("Received", "受信")) }
                } }
                tbody { @for visit in visits {
                    tr {
                        td { (format::time(visit.at_s)) }
                        td { @if first.contains(&visit.id) { (layout::first_version(visitor)) } @else { (layout::outcome(visitor, visit.outcome, visit.status)) } }
                        td {
                            (layout::url(&visit.url))
                            // The badge of a missing page says its status already.
                            @if visit.outcome != Outcome::Gone && !visit.outcome.is_seen() || visit.reason.as_ref().is_some_and(|reason| !matches!(reason, Reason::Status(_))) {
                                div.muted.cause { (site::cause(visitor, visit.status, visit.reason.as_ref())) }
                            }
                        }
                        td.site data-label=(t("Site", "サイト")) { a href=(format!("/sites/{}", visit.site.0)) { bdi { (name(visit.site).unwrap_or("?")) } } }
                        td.n data-label=(t("Took", "時間")) { (format::number(u64::from(visit.elapsed_ms))) " ms" }
                        td.n data-label=(t("Received", "受信")) { (format::bytes(visit.received_bytes)) }
                    }
                } }
            } }
        }
    }
}
