//! One page of the archive: its versions, links to each of them, and what changed between two.

use std::{collections::BTreeMap, sync::Arc};

use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use nenrin_archive::{PageRenderings, Reasons};
use nenrin_lang::RenderReason;
use nenrin_state::{Outcome, PageRecord, VersionId, VersionRow};
use nenrin_urls::CanonicalUrl;

use crate::{
    WebApp, WebError,
    app::{diff_link, replay_link},
    chart, format,
    guard::{Fields, Shared},
    layout::{self, Menu, tile},
    pages::{
        charts::mean_interval_s,
        page_history::{self, PageVersions},
        picture,
        search::blame_link,
        years::Years,
    },
    visitor::Visitor,
};

const SHOWN: usize = 100;
/// The year 1: no version is older.
const FIRST_DAY: i64 = -719_162;

fn asked_url(query: &Fields) -> Result<CanonicalUrl, WebError> {
    CanonicalUrl::parse_typed(query.get("url"))
        .map_err(|e| WebError::not_found(format!("such page: {e}")))
}

pub(crate) fn timeline(
    shared: &Arc<Shared>,
    visitor: &Visitor,
    query: &Fields,
) -> Result<Response, WebError> {
    let app = &shared.app;
    let url = nenrin_archive::stored_url(&*app.state, asked_url(query)?)?;
    let key = url.key();
    let before = cursor(query);
    let versions = app.state.newest_versions(
        &key,
        before.unwrap_or((i64::MAX, VersionId(u64::MAX))),
        SHOWN + 1,
    )?;
    let page = app.state.page(&url)?;
    if versions.is_empty() && page.is_none() {
        return Err(WebError::not_found(format!("page {url} in this archive")));
    }
    let renderings = match &page {
        Some(page) => nenrin_archive::renderings_of(&*app.state, page)?,
        None => None,
    };
    let t = |en, ja| visitor.t(en, ja);
    let older = (versions.len() > SHOWN).then(|| versions[SHOWN].1.clone());
    let title = format!("{} – {}", t("Versions", "版"), url.shown());
    let content = html! {
        div.heading {
            div {
                p.eyebrow { (t("Page", "ページ")) }
                h1.long { bdi { (url.shown()) } }
                p.muted {
                    @if let Some(page) = &page { a href=(format!("/sites/{}", page.site.0)) { (t("its site", "所属サイト")) } " · " }
                    a href=(url.as_str()) rel="noreferrer noopener" { (t("on the live web", "現在のウェブで開く")) } " ↗"
                }
            }
            @if let Some((_, newest)) = versions.first().filter(|_| before.is_none()) {
                div.actions {
                    a.button href=(blame_link(&url, newest.at_s)) { (t("Since when each part is there", "各部分がいつからあるか")) }
                    a.button.primary href=(replay_link(&visitor.replay, newest.at_s, &url)) { (t("Open the newest version", "最新の版を開く")) }
                    @if visitor.is_admin() { a.button href=(format!("/watches/new?url={}", format::encoded(url.as_str()))) { (t("Watch", "監視する")) }
                        a.button href=(format!("/downloads?url={}", format::encoded(url.as_str()))) { (t("Save as one file", "1つのファイルに保存")) } }
                }
            }
        }
        (figures(visitor, page.as_ref()))
        @if let Some(page) = &page { (schedule(app, visitor, page)?) (rendering(visitor, renderings.as_ref())) }
        (page_history::strip(shared, visitor, &PageVersions { url: &url, page: page.as_ref(), versions: &versions, renderings: renderings.as_ref() })?)
        (year(app, visitor, &url, query)?)
        (page_history::sizes(visitor, &versions))
        (table(visitor, &url, &versions))
        p.paging {
            @if before.is_some() { a.button href=(layout::page_link(&url)) { "↑ " (t("Newest", "最新へ")) } }
            @if older.is_some() && let Some((_, last)) = versions.get(SHOWN - 1) {
                a.button rel="next" href=(format!("{}&before={}-{}", layout::page_link(&url), last.at_s, last.version)) { (t("Older", "古いもの")) " →" }
            }
        }
        @if before.is_none() && let Some(page) = &page { (page_history::visits(shared, visitor, page)?) }
    };
    Ok(layout::page(visitor, Menu::None, &title, content))
}

/// `before=<time>-<version>`.
fn cursor(query: &Fields) -> Option<(i64, VersionId)> {
    let (at_s, version) = query.some("before")?.rsplit_once('-')?;
    Some((at_s.parse().ok()?, VersionId(version.parse().ok()?)))
}

/// Whether the page is rendered in a browser, and why.
fn rendering(visitor: &Visitor, of: Option<&PageRenderings>) -> Markup {
    html! {
        @if let Some(of) = of.filter(|of| of.why != RenderReason::Never || !of.views_s.is_empty()) {
            p.hint {
                (visitor.t("In a browser: ", "ブラウザーでの描画："))
                (of.why.text(visitor.lang))
                @if let Some(last_s) = of.views_s.last() {
                    " " (visitor.t("Last rendered: ", "最後の描画：")) (format::short_time(*last_s))
                    @if let Some(whole) = &of.whole {
                        " · " a href=(picture::address(*last_s, whole)) { (visitor.t("picture of the whole page", "ページ全体の画像")) }
                    }
                }
            }
        }
    }
}

fn figures(visitor: &Visitor, page: Option<&PageRecord>) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    html! {
        @if let Some(page) = page {
            dl.tiles {
                (tile(t("Visits", "訪問"), html! { (format::number(u64::from(page.visits))) }, html! {
                    span.nw { (t("last: ", "最終：")) } (format::maybe_time(page.visited_s))
                }))
                (tile(t("Versions", "版"), html! { (format::number(u64::from(page.changes))) }, html! {
                    @if let Some(interval_s) = mean_interval_s(page) {
                        (t("a new one about every ", "平均 ")) (format::spoken_duration(visitor.lang, interval_s)) (t("", "ごと"))
                    }
                }))
                (tile(t("Last result", "最新の結果"), html! {
                    @if let Some(outcome) = page.outcome { span.small { (layout::last_outcome(visitor, page, outcome)) } } @else { "–" }
                }, html! {
                    @if page.failures > 0 && page.outcome == Some(Outcome::Gone) {
                        (t("not found ", "")) (format::counted(visitor.lang, u64::from(page.failures), "time", "times", " 回連続で見つからず")) (t(" in a row", ""))
                    } @else if page.failures > 0 { (page.failures) (t(" failed in a row", " 回連続で失敗")) }
                }))
                @if let Some(importance) = page.importance() {
                    (tile(t("Importance", "重要度"), html! { (format::importance(importance)) }, html! {
                        (t("times the average page", "倍（平均的なページ比）"))
                    }))
                }
                (tile(t("Size", "サイズ"), html! { (format::bytes(page.bytes)) }, html! {}))
            }
        }
    }
}

/// When the page is visited again, and why.
fn schedule(app: &WebApp, visitor: &Visitor, page: &PageRecord) -> Result<Markup, WebError> {
    let Some(due_s) = page.due_s else { return Ok(html! {}) };
    let t = |en, ja| visitor.t(en, ja);
    let reason = Reasons::of_site(&*app.state, page.site)?.of(page)?;
    Ok(html! {
        section.card {
            h2 { (t("Schedule", "予定")) }
            dl.facts {
                dt { (t("Next visit", "次回の訪問")) } dd { (format::time(due_s)) }
                @if let Some(rate) = reason.rate_per_day {
                    dt { (t("Estimated changes", "変更の推定")) } dd {
                        (format::rate(rate)) (t(" a day", " 回/日"))
                        @if let Some(sure) = reason.confidence { (t(", ", "、確信度 ")) (chart::percent(sure)) (t(" sure", "")) }
                    }
                }
                @if let Some(missed) = reason.missed {
                    dt { (t("Missed versions", "見逃した版")) } dd {
                        @if missed.range.1 < 0.5 { (t("none", "なし")) } @else {
                            (format!("{:.0}", missed.versions))
                            (t(" between visits, probably ", " 版（訪問の合間、おそらく "))
                            (format!("{:.0}", missed.range.0)) (t(" to ", "〜")) (format!("{:.0}", missed.range.1))
                            (t("", "）"))
                        }
                    }
                }
                dt { (t("Why", "その理由")) } dd { bdi { (reason.text(visitor.lang)) } }
            }
        }
    })
}

fn year(
    app: &WebApp,
    visitor: &Visitor,
    url: &CanonicalUrl,
    query: &Fields,
) -> Result<Markup, WebError> {
    let today = visitor.now_s.div_euclid(format::DAY_S);
    let days = app.state.version_days(&url.key(), FIRST_DAY, today)?;
    let counts: BTreeMap<i64, u64> = days.into_iter().collect();
    let years = Years::of(counts.keys().copied(), query, today);
    let title = visitor.t("Versions, day by day", "日ごとの版");
    Ok(html! {
        @if counts.len() > 1 {
            section.card #days {
                h2 { (title) }
                (years.links(visitor, &layout::page_link(url)))
                (chart::calendar(visitor, years.last_day(), &counts, title, |day| {
                    replay_link(&visitor.replay, (day + 1) * format::DAY_S - 1, url)
                }))
            }
        }
    })
}

fn table(visitor: &Visitor, url: &CanonicalUrl, versions: &[(CanonicalUrl, VersionRow)]) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let shown = &versions[..versions.len().min(SHOWN)];
    html! {
        section {
            h2 { (t("Versions", "版")) }
            @if versions.is_empty() {
                p.muted { (t("No versions yet.", "まだ版がありません。")) }
            } @else {
                form method="get" action="/diff" {
                    input type="hidden" name="url" value=(url.as_str());
                    div.scroll { table.cards {
                        thead { tr {
                            @if versions.len() > 1 {
                                th scope="col" { (t("From", "比較元")) }
                                th scope="col" { (t("To", "比較先")) }
                            }
                            th scope="col" { (t("Received", "受信日時")) }
                            th scope="col" { (t("Look", "表示")) }
                            th scope="col" { (t("Status", "状態")) }
                            th scope="col" { (t("Type", "種類")) }
                            th.n scope="col" { (t("Size", "サイズ")) }
                        } }
                        tbody {
                            @for (i, (exact, version)) in shown.iter().enumerate() {
                                tr {
                                    @if versions.len() > 1 { (chooser(visitor, i, version)) }
                                    (version_cells(visitor, url, exact, version, versions.get(i + 1).map(|(_, v)| v)))
                                }
                            }
                        }
                    } }
                    @if versions.len() > 1 {
                        p.actions { button { (t("Compare the two chosen", "選んだ2つの版を比較")) } }
                    }
                }
            }
        }
    }
}

/// The two versions to compare: at first the two newest.
fn chooser(visitor: &Visitor, i: usize, version: &VersionRow) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    html! {
        td data-label=(t("From", "比較元")) { input type="radio" name="from" value=(version.at_s) checked[i == 1] aria-label=(t("compare from this version", "この版から比較")); }
        td data-label=(t("To", "比較先")) { input type="radio" name="to" value=(version.at_s) checked[i == 0] aria-label=(t("compare to this version", "この版と比較")); }
    }
}

fn version_cells(
    visitor: &Visitor,
    url: &CanonicalUrl,
    exact: &CanonicalUrl,
    version: &VersionRow,
    previous: Option<&VersionRow>,
) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    html! {
        td { (format::time(version.at_s)) @if exact != url { div.url.muted { bdi { (exact.shown()) } } } }
        td.nw {
            (layout::replay(visitor, version.at_s, exact, html! { (t("open", "開く")) }))
            @if let Some(previous) = previous {
                " · " a href=(diff_link(&visitor.replay, previous.at_s, version.at_s, url)) { (t("what changed", "差分")) }
            }
        }
        td data-label=(t("Status", "状態")) { (version.status) }
        td data-label=(t("Type", "種類")) { bdi { (version.mime) } }
        td.n data-label=(t("Size", "サイズ")) { (format::bytes(version.bytes)) }
    }
}

/// Redirects from two chosen versions to their difference, older first.
pub(crate) fn diff(visitor: &Visitor, query: &Fields) -> Result<Response, WebError> {
    let url = asked_url(query)?;
    let time = |name| query.number::<i64>(name).ok_or_else(|| WebError::not_found("such version"));
    let (from_s, to_s) = (time("from")?, time("to")?);
    let link = diff_link(&visitor.replay, from_s.min(to_s), from_s.max(to_s), &url);
    Ok(Redirect::to(&link).into_response())
}
