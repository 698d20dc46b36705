//! The first page: all sites, what is going on, and a start for newcomers.

use std::collections::{BTreeMap, BTreeSet};

use axum::response::{Html, IntoResponse, Redirect, Response};
use maud::{Markup, PreEscaped, html};
use nenrin_state::{Incident, Removal, Round, Schedule, Site, SiteId, SiteSums, SiteWorth};

use crate::{
    StoreSummary, WebApp, WebError, format,
    guard::Fields,
    layout::{self, Menu, tile},
    pages::{
        charts, labels, progress, site,
        years::{self, Years},
    },
    visitor::Visitor,
};

/// Sites on one page.
const SITES_SHOWN: usize = 200;
/// Days that "recent" covers in the table.
const RECENT_DAYS: i64 = 30;
/// Incidents shown.
const INCIDENTS_SHOWN: usize = 5;
/// Requests shown of those under way.
const UNDER_WAY_SHOWN: usize = 12;

pub(crate) fn overview(
    app: &WebApp,
    visitor: &Visitor,
    query: &Fields,
) -> Result<Response, WebError> {
    let mut sites = app.state.sites()?;
    let known = sites.len();
    sites.retain(|site| site.removed.is_none());
    let removed = known - sites.len();
    if sites.is_empty() {
        return Ok(greeting(app, visitor, query, removed));
    }
    let since_day = visitor.now_s.div_euclid(format::DAY_S) - RECENT_DAYS + 1;
    let cost: BTreeMap<SiteId, SiteSums> =
        app.site_sums(since_day)?.into_iter().map(|s| (s.site, s)).collect();
    let store = (app.store_stats)();
    let days = years::days(app, visitor, None)?;
    let today = visitor.now_s.div_euclid(format::DAY_S);
    let years = Years::of(days.iter().map(|day| day.day), query, today);
    let worth = nenrin_archive::shown_worth(&*app.state)?;
    let collecting = collecting(app, &sites, &worth)?;
    let table =
        site_table(visitor, &sites, &Sums { cost, worth, collecting: collecting.clone() }, query);
    if query.get("part") == "sites" {
        return Ok(Html(table.into_string()).into_response());
    }
    let title = visitor.t("Sites", "サイト");
    let content = html! {
        div.heading {
            h1 { (title) }
            @if visitor.is_admin() {
                a.button.primary href="/sites/new" { (visitor.t("Add a site", "サイトを追加")) }
            }
        }
        (layout::note(site::note(visitor, query.get("note"))))
        (incidents(visitor, &app.state.incidents()?, None))
        (totals(visitor, &sites, &store))
        (live(visitor, app, "/now"))
        (workers(visitor, app))
        (site_search(visitor, query))
        div data-live=[(!collecting.is_empty()).then(|| table_link(query))] data-every="3" { (table) }
        (removed_link(visitor, removed))
        section.card.charts #days {
            (years.links(visitor, "/"))
            (charts::over_time(visitor, &days, &years))
            (charts::saving(visitor, &store))
            (charts::saving_by_kind(app, visitor, None)?)
            (charts::order(app, visitor, None)?)
        }
    };
    Ok(layout::page(visitor, Menu::Sites, title, content))
}

/// Rounds looked at for those that are running.
const ROUNDS_LOOKED_AT: usize = 500;

/// The sites that are being collected.
fn collecting(
    app: &WebApp,
    sites: &[Site],
    worth: &[SiteWorth],
) -> Result<BTreeSet<SiteId>, WebError> {
    if !app.control.collects() {
        return Ok(BTreeSet::new());
    }
    let mut running: BTreeMap<SiteId, Vec<Round>> = BTreeMap::new();
    for round in app.state.rounds(None, ROUNDS_LOOKED_AT)? {
        running.entry(round.site).or_default().push(round);
    }
    let worth: BTreeMap<SiteId, &SiteWorth> = worth.iter().map(|one| (one.site, one)).collect();
    let is_collected = |site: &&Site| {
        let rounds = running.get(&site.id).map_or(&[][..], Vec::as_slice);
        progress::pass(app, site, rounds, worth.get(&site.id).copied()).is_some()
    };
    // Sites without a round are looked up one by one: of a great many only the first.
    let may_be =
        |site: &&Site| running.contains_key(&site.id) || site.counts.versions < site.counts.pages;
    let looked_at = sites.iter().filter(may_be).take(SITES_SHOWN);
    Ok(looked_at.filter(is_collected).map(|site| site.id).collect())
}

/// The table of sites alone, as it is refreshed.
fn table_link(query: &Fields) -> String {
    let value = |name| format::encoded(query.get(name));
    format!("/?part=sites&sort={}&down={}&q={}", value("sort"), value("down"), value("q"))
}

/// What a newcomer sees in an empty archive.
fn greeting(app: &WebApp, visitor: &Visitor, query: &Fields, removed: usize) -> Response {
    let t = |en, ja| visitor.t(en, ja);
    let content = html! {
        (layout::note(site::note(visitor, query.get("note"))))
        section.hero {
            div.rings { (PreEscaped(layout::LOGO)) }
            h1 { (t("Welcome to Nenrin", "年輪へようこそ")) }
            p.lead {
                (t(
                    "A tree keeps a ring for every year. Nenrin keeps every version of a website: it visits the pages again and again, stores only what is new, and shows the site as it was on any date.",
                    "木は一年ごとに年輪を刻みます。Nenrin はウェブサイトのすべての版を残します。ページを繰り返し訪れ、新しい部分だけを保存し、任意の日付のサイトを表示します。",
                ))
            }
            @if visitor.is_admin() {
                form.start method="get" action="/sites/new" {
                    label.sr for="url" { (t("Address of a site", "サイトのアドレス")) }
                    input #url name="url" placeholder="https://example.org/" autocomplete="off" spellcheck="false" autofocus;
                    button.primary { (t("Add a site", "サイトを追加")) }
                }
                @if app.options.offers_demo && app.control.collects() {
                    p.or { (t("or, without internet:", "インターネットなしでも試せます：")) }
                    (layout::button(visitor, "/demo", "", t("Try the demo site", "デモサイトを試す")))
                    p.muted { (t("A small website on this computer that changes in fast motion: versions appear within a minute.", "このコンピューター上の小さなサイトが早回しで変化します。1分ほどで複数の版が見られます。")) }
                }
            }
        }
        ol.steps {
            li { strong { (t("Name a site", "サイトを指定")) } (t("Its address is enough.", "アドレスだけで十分です。")) }
            li { strong { (t("Nenrin collects", "自動で収集")) } (t("Politely, one request at a time, for ever.", "礼儀正しく、一度に一つずつ、ずっと。")) }
            li { strong { (t("Look back", "過去を見る")) } (t("Any page as of any date, and what changed.", "任意の日付のページと、その変化を。")) }
        }
        (removed_link(visitor, removed))
    };
    layout::page(visitor, Menu::Sites, t("Welcome", "ようこそ"), content)
}

/// Incidents that are not over.
pub(crate) fn incidents(visitor: &Visitor, all: &[Incident], site: Option<SiteId>) -> Markup {
    let is_meant = |one: &&Incident| {
        one.over_s.is_none() && (site.is_none() || one.site.is_none() || one.site == site)
    };
    let shown: Vec<&Incident> = all.iter().filter(is_meant).take(INCIDENTS_SHOWN).collect();
    html! {
        @if !shown.is_empty() {
            section.notice.bad aria-label=(visitor.t("Needs attention", "確認が必要です")) {
                ul.plain.incidents { @for one in shown {
                    li {
                        @if let Some(own) = one.site.filter(|own| site != Some(*own)) {
                            a href=(format!("/sites/{}", own.0)) { bdi { (one.name) } } ": "
                        }
                        strong { (layout::incident_words(visitor, one.event).1) }
                        @if let Some(detail) = &one.detail { " – " bdi { (detail.text(visitor.lang)) } }
                        div.hint { (format::time(one.at_s)) }
                    }
                } }
            }
        }
    }
}

/// A link to the removed sites.
fn removed_link(visitor: &Visitor, removed: usize) -> Markup {
    html! {
        @if removed > 0 {
            p.hint { a href="/removals" { (visitor.t("Removed sites", "削除したサイト")) " (" (removed) ")" } }
        }
    }
}

fn totals(visitor: &Visitor, sites: &[Site], store: &StoreSummary) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let sum = |of: fn(&Site) -> u64| sites.iter().map(of).sum::<u64>();
    let saved = format::saving(store.raw_bytes, store.stored_bytes());
    html! {
        dl.tiles {
            (tile(t("Sites", "サイト"), html! { (format::number(sites.len() as u64)) }, html! {
                @let paused = sites.iter().filter(|s| s.paused).count();
                @if paused > 0 { (paused) " " (t("paused", "件停止中")) }
            }))
            (tile(t("Pages", "ページ"), html! { (format::number(sum(|s| s.counts.pages))) }, html! {}))
            (tile(t("Versions", "版"), html! { (format::number(sum(|s| s.counts.versions))) }, html! {
                (t("from ", "訪問数 ")) (format::counted(visitor.lang, sum(|s| s.counts.visits), "visit", "visits", ""))
            }))
            (tile(t("On disk", "使用容量"), html! { (format::bytes(store.stored_bytes())) }, html! {
                @if store.stored_bytes() > store.raw_bytes { (t("for ", "元の容量 ")) } @else { (t("instead of ", "元の容量 ")) }
                (format::bytes(store.raw_bytes))
                // A young archive is mostly index, which grows more slowly.
                @if store.index_bytes > store.html_bytes + store.other_bytes { (t(", mostly indexes", "、大部分は索引")) }
            }))
            @if let Some(saved) = saved {
                (tile(t("Saved", "節約"), html! { (saved) }, html! { (t("compared with full copies of every visit", "全訪問をそのまま保存した場合との比較")) }))
            }
        }
    }
}

/// Who is at work, where several workers share the archive.
fn workers(visitor: &Visitor, app: &WebApp) -> Markup {
    let lines = app.control.workers();
    html! {
        @if !lines.is_empty() {
            section.workers {
                h2 { (visitor.t("Workers and partitions", "ワーカーとパーティション")) }
                ul.plain lang="en" {
                    @for line in &lines { li { (line) } }
                }
            }
        }
    }
}

/// The requests under way, refreshed by a script while someone looks.
pub(crate) fn live(visitor: &Visitor, app: &WebApp, path: &str) -> Markup {
    html! {
        @if app.control.collects() {
            section.live aria-live="off" {
                h2 { (visitor.t("Fetching now", "現在取得中")) }
                div data-live=(path) data-every="2" { (under_way(visitor, app)) }
            }
        }
    }
}

fn under_way(visitor: &Visitor, app: &WebApp) -> Markup {
    let requests = app.control.under_way();
    let queued = app.control.queued() as u64;
    html! {
        @if requests.is_empty() && queued > 0 {
            p.muted {
                (visitor.t("In the pause between two requests; ", "要求の間隔をおいています。待っているページ："))
                (format::number(queued))
                (visitor.t(if queued == 1 { " page waits for its turn." } else { " pages wait for their turn." }, ""))
            }
        } @else if requests.is_empty() {
            p.muted { (visitor.t("No requests at the moment.", "現在、取得中のページはありません。")) }
        } @else {
            ul.plain.now {
                @for request in requests.iter().take(UNDER_WAY_SHOWN) {
                    li {
                        span.phase { (phase(visitor, request.phase)) }
                        span.url { bdi { (nenrin_urls::shown_text(&request.url)) } }
                        span.muted { (format::spoken_duration(visitor.lang, (visitor.now_s - request.since_s).max(0))) }
                    }
                }
            }
            @if requests.len() > UNDER_WAY_SHOWN {
                p.muted { (visitor.t("and ", "ほか ")) (requests.len() - UNDER_WAY_SHOWN) (visitor.t(" more", " 件")) }
            }
        }
    }
}

fn phase<'a>(visitor: &Visitor, phase: &'a str) -> &'a str {
    match phase {
        "receiving" => visitor.lang.t("receiving", "受信中"),
        "reading" => visitor.lang.t("reading", "解析中"),
        other => other,
    }
}

/// The part of the page that is refreshed.
pub(crate) fn now(app: &WebApp, visitor: &Visitor) -> Response {
    Html(under_way(visitor, app).into_string()).into_response()
}

pub(crate) fn start_demo(app: &WebApp) -> Result<Response, WebError> {
    let site = app.control.start_demo()?;
    Ok(Redirect::to(&format!("/sites/{}?note=demo", site.0)).into_response())
}

/// Sums over sites.
struct Sums {
    cost: BTreeMap<SiteId, SiteSums>,
    worth: Vec<SiteWorth>,
    collecting: BTreeSet<SiteId>,
}

impl Sums {
    fn cost(&self, site: &Site) -> Option<&SiteSums> {
        self.cost.get(&site.id)
    }

    fn worth(&self, site: &Site) -> Option<&SiteWorth> {
        self.worth.iter().find(|worth| worth.site == site.id)
    }
}

/// The columns a table can be sorted by.
const COLUMNS: [(&str, &str, &str); 7] = [
    ("name", "Site", "サイト"),
    ("pages", "Pages", "ページ"),
    ("versions", "Versions", "版"),
    ("importance", "Importance", "重要度"),
    ("visited", "Last round", "前回の収集"),
    ("problems", "Problems, 30 days", "問題（30日）"),
    ("stored", "Stored", "保存量"),
];

fn site_search(visitor: &Visitor, query: &Fields) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let sort = query.some("sort").unwrap_or("name");
    html! {
        form.filter method="get" action="/" role="search" {
            label.sr for="q" { (t("Search sites", "サイトを検索")) }
            input #q name="q" value=(query.get("q")) placeholder=(t("Search sites", "サイトを検索"));
            input type="hidden" name="sort" value=(sort);
            @if let Some(label) = query.some("label") { input type="hidden" name="label" value=(label); }
            button { (t("Search", "検索")) }
        }
    }
}

fn site_table(visitor: &Visitor, sites: &[Site], sums: &Sums, query: &Fields) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let search = query.get("q").trim().to_lowercase();
    let sort = query.some("sort").unwrap_or("name");
    let down = query.get("down") == "1";
    let label = query.get("label").trim();
    let has_label = |site: &&Site| label.is_empty() || labels::of(site).any(|own| own == label);
    let found = sites.iter().filter(|site| matches(site, &search));
    let mut rows: Vec<&Site> = found.filter(has_label).collect();
    sort_sites(&mut rows, sums, sort, down);
    html! {
        (labels::choices(visitor, sites, label))
        div.scroll {
            table.sites.cards {
                thead { tr {
                    @for (column, en, ja) in COLUMNS {
                        th scope="col" class=(if matches!(column, "name" | "visited") { "" } else { "n" })
                            aria-sort=[(column == sort).then_some(if down { "descending" } else { "ascending" })] {
                            a href=(format!("/?sort={column}&down={}&q={}&label={}", u8::from(column == sort && !down), format::encoded(query.get("q")), format::encoded(label))) { (t(en, ja)) }
                        }
                    }
                    th scope="col" { (t("Next", "次回")) }
                } }
                tbody {
                    @for site in rows.iter().take(SITES_SHOWN) { (site_row(visitor, site, sums)) }
                }
            }
        }
        @if rows.is_empty() { p.muted { (t("No site matches the search.", "該当するサイトはありません。")) } }
        @if rows.len() > SITES_SHOWN {
            p.muted { (t("Only the first ", "最初の ")) (SITES_SHOWN) (t(" are shown; search for the others.", " 件のみ表示しています。検索をお使いください。")) }
        }
    }
}

fn matches(site: &Site, search: &str) -> bool {
    search.is_empty()
        || site.name.to_lowercase().contains(search)
        || site.conditions.tops.iter().any(|top| top.as_str().contains(search))
        || labels::of(site).any(|label| label.to_lowercase().contains(search))
}

fn sort_sites(rows: &mut [&Site], sums: &Sums, sort: &str, down: bool) {
    let of = |site: &Site| sums.cost(site);
    match sort {
        "pages" => rows.sort_by_key(|s| s.counts.pages),
        "versions" => rows.sort_by_key(|s| s.counts.versions),
        "importance" => {
            rows.sort_by_key(|s| sums.worth(s).map(|worth| worth.importance_percent));
        }
        "visited" => rows.sort_by_key(|s| s.collected_s),
        "problems" => rows.sort_by_key(|s| of(s).map(|sums| sums.recent_problems)),
        "stored" => rows.sort_by_key(|s| of(s).map(|sums| sums.stored_bytes)),
        // Sites of a group are together.
        _ => rows.sort_by_key(|s| (s.conditions.labels.group.clone(), s.name.to_lowercase())),
    }
    if down {
        rows.reverse();
    }
}

fn site_row(visitor: &Visitor, site: &Site, sums: &Sums) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let stored = sums.cost(site).map_or(0, |s| s.stored_bytes);
    let problems = sums.cost(site).map_or(0, |s| s.recent_problems);
    let importance = sums.worth(site).and_then(|worth| worth.share_of(&sums.worth));
    html! {
        tr {
            th scope="row" {
                a.name href=(format!("/sites/{}", site.id.0)) { bdi { (site.name) } } " "
                @if sums.collecting.contains(&site.id) { (progress::badge(visitor)) } @else { (state_badge(visitor, site)) }
                @if let Some(top) = site.conditions.tops.first() { div.url.muted { bdi { (top.shown()) } } }
                (labels::chips(site))
            }
            td.n data-label=(t("Pages", "ページ")) { (format::number(site.counts.pages)) }
            td.n data-label=(t("Versions", "版")) { (format::number(site.counts.versions)) }
            td.n data-label=(t("Importance", "重要度")) { (importance.map_or("–".to_owned(), format::share)) }
            td data-label=(t("Last round", "前回の収集")) { (format::maybe_time(site.collected_s)) }
            td.n data-label=(t("Problems, 30 days", "問題（30日）")) { @if problems > 0 { a.bad href=(format!("/sites/{}#problems", site.id.0)) { (format::number(problems)) } } @else { "0" } }
            td.n data-label=(t("Stored", "保存量")) {
                (format::bytes(stored)) " "
                @if let Some(saved) = format::saving(site.counts.raw_bytes, stored) {
                    div.muted { (saved) (visitor.t(" saved", " 節約")) }
                }
            }
            td data-label=(t("Next", "次回")) { (next_round(visitor, site)) }
        }
    }
}

pub(crate) fn state_badge(visitor: &Visitor, site: &Site) -> Markup {
    html! {
        @if let Some(removal) = site.removed {
            span.badge.paused {
                (match removal {
                    Removal::Hide => visitor.t("hidden", "非表示"),
                    Removal::Deny => visitor.t("access denied", "閲覧停止"),
                    Removal::Delete => visitor.t("deleted", "削除済み"),
                })
            }
        } @else if site.paused {
            span.badge.paused { (visitor.t("paused", "停止中")) }
        } @else if site.collected_s.is_none() {
            span.badge { (visitor.t("new", "新規")) }
        }
    }
}

/// When the next round begins, as far as known.
pub(crate) fn next_round(visitor: &Visitor, site: &Site) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    html! {
        @match (&site.conditions.schedule, site.collected_s) {
            _ if site.paused => span.muted { "–" },
            (Schedule::Manual, _) => span.muted { (t("when you start it", "手動")) },
            (Schedule::Continuous(_), _) => { (t("each page on its own schedule", "ページごとの予定")) },
            (Schedule::Rounds { .. }, None) => { (t("now", "まもなく")) },
            (Schedule::Rounds { period_s }, Some(last_s)) => {
                @let next_s = last_s.saturating_add(*period_s);
                @if next_s <= visitor.now_s { (t("now", "まもなく")) } @else { (format::short_time(next_s)) }
            },
        }
    }
}
