//! One site: its figures, calendar, rounds and problems, and links into the past.

use std::collections::BTreeMap;

use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use nenrin_lang::Reason;
use nenrin_state::{
    DayCounts, Outcome, ProblemGroup, RobotsPolicy, Round, Schedule, ScheduleBy, Site, SiteId,
};

use crate::{
    ControlError, WebApp, WebError,
    app::replay_link,
    chart, format,
    guard::Fields,
    layout::{self, Menu, tile},
    pages::{
        charts, labels, overview, progress, removals, sheet_fields,
        years::{self, Years},
    },
    visitor::Visitor,
};

const ROUNDS_SHOWN: usize = 10;
/// Problems of each kind that are read for grouping, the newest first. Reading them means walking
/// back through the log, which takes most of the time of a large site's page.
pub(crate) const PROBLEMS_LOOKED_AT: usize = 1_000;
const PROBLEMS_SHOWN: usize = 8;

/// The site that a path names.
pub(crate) fn find(app: &WebApp, id: &str) -> Result<Site, WebError> {
    let number: Option<u32> = id.parse().ok();
    let found = app.state.sites()?.into_iter().find(|site| Some(site.id.0) == number);
    found.ok_or_else(|| WebError::not_found(format!("site number {id}")))
}

/// The site, unless it was removed: a removed site is not collected by accident.
pub(crate) fn kept(site: Site) -> Result<Site, WebError> {
    match site.removed {
        None => Ok(site),
        Some(_) => Err(ControlError::Failed {
            reason: "the site was removed; restore it under “Removed sites”, unless it was deleted"
                .to_owned(),
        }
        .into()),
    }
}

pub(crate) fn site(
    app: &WebApp,
    visitor: &Visitor,
    site: &Site,
    query: &Fields,
) -> Result<Response, WebError> {
    let rounds = app.state.rounds(Some(site.id), ROUNDS_SHOWN)?;
    let is_live = is_live(app, site, &rounds)?;
    let days = years::days(app, visitor, Some(site.id))?;
    let today = visitor.now_s.div_euclid(format::DAY_S);
    let years = Years::of(days.iter().map(|day| day.day), query, today);
    let events = is_live.then(|| format!("/sites/{}/events", site.id.0));
    let content = html! {
        (heading(app, visitor, site, is_live))
        (layout::note(note(visitor, query.get("note"))))
        (overview::incidents(visitor, &app.state.incidents()?, Some(site.id)))
        (logged_out(app, visitor, site)?)
        div data-events=[events.as_deref()] {
            div data-part="progress" { (progress::shown(app, visitor, site, &rounds)?) }
            div data-part="figures" { (figures(app, visitor, site)?) }
            div data-part="browse" { (browse(visitor, site, &days, query.some("at"))) }
            div data-part="calendar" { (calendar(visitor, site, &days, &years)) }
        }
        section.card.charts {
            (charts::over_time(visitor, &days, &years))
            (charts::saving_by_kind(app, visitor, Some(site.id))?)
            (charts::intervals(app, visitor, site.id)?)
            (charts::order(app, visitor, Some(site.id))?)
        }
        div data-part="rounds" { (self::rounds(visitor, &rounds)) }
        (problems(visitor, site, &app.state.problems(site.id, PROBLEMS_LOOKED_AT)?))
        (conditions(visitor, site))
    };
    Ok(layout::page_refreshed(visitor, Menu::None, &site.name, content, is_live))
}

/// Why the site is paused, if its log-in has ended.
fn logged_out(app: &WebApp, visitor: &Visitor, site: &Site) -> Result<Markup, WebError> {
    let out = nenrin_archive::logged_out_of(&*app.state, site)?;
    Ok(html! {
        @if let Some(out) = out {
            p.note.bad {
                (visitor.t("Paused. ", "停止中です。")) bdi { (out.url.shown()) } ": " (out.reason.text(visitor.lang)) " "
                (visitor.t("Set a new log-in with", "新しいログイン情報の設定："))
                " " code { "nenrin site set " (site.name) " --cookies FILE" }
            }
        }
    })
}

/// Whether the page fills itself: the site is new or being collected.
fn is_live(app: &WebApp, site: &Site, rounds: &[Round]) -> Result<bool, WebError> {
    let is_new = site.counts.versions == 0 && app.control.collects() && !site.paused;
    Ok(site.removed.is_none() && (is_new || progress::pass_of(app, site, rounds)?.is_some()))
}

/// Parts of the page that are shown again while a site is collected, by name.
type LiveParts = Vec<(&'static str, Markup)>;

/// The parts of the page that change while the site is collected, and whether it still is.
pub(crate) fn parts(
    app: &WebApp,
    visitor: &Visitor,
    site: &Site,
) -> Result<(LiveParts, bool), WebError> {
    let rounds = app.state.rounds(Some(site.id), ROUNDS_SHOWN)?;
    let days = years::days(app, visitor, Some(site.id))?;
    let today = visitor.now_s.div_euclid(format::DAY_S);
    let years = Years::of(days.iter().map(|day| day.day), &Fields::default(), today);
    let parts = vec![
        ("progress", progress::shown(app, visitor, site, &rounds)?),
        ("figures", figures(app, visitor, site)?),
        ("browse", browse(visitor, site, &days, None)),
        ("calendar", calendar(visitor, site, &days, &years)),
        ("rounds", self::rounds(visitor, &rounds)),
    ];
    Ok((parts, is_live(app, site, &rounds)?))
}

fn heading(app: &WebApp, visitor: &Visitor, site: &Site, is_live: bool) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let base = format!("/sites/{}", site.id.0);
    html! {
        div.heading {
            div {
                h1 { bdi { (site.name) } " " @if is_live { (progress::badge(visitor)) } @else { (overview::state_badge(visitor, site)) } }
                (labels::chips(site))
                @for top in site.conditions.tops.iter().take(3) {
                    p.url.muted { a href=(top.as_str()) rel="noreferrer noopener" { bdi { (top.shown()) } } }
                }
            }
            @if site.removed.is_some() { div.actions { (removals::restore_link(visitor, site)) } }
            @if visitor.is_admin() && site.removed.is_none() {
                div.actions {
                    @if app.control.collects() {
                        (layout::button(visitor, &format!("{base}/collect"), "primary", t("Collect now", "今すぐ収集")))
                    }
                    @if site.paused {
                        (layout::button(visitor, &format!("{base}/resume"), "", t("Resume", "再開")))
                    } @else {
                        (layout::button(visitor, &format!("{base}/pause"), "", t("Pause", "停止")))
                    }
                    a.button href=(format!("{base}/edit")) { (t("Conditions", "収集条件")) }
                }
            }
        }
        (tabs(visitor, site, Tab::Summary))
    }
}

/// The views of one site.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tab {
    Summary,
    Pages,
    Between,
    Schedule,
    Structure,
}

pub(crate) fn tabs(visitor: &Visitor, site: &Site, open: Tab) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let base = format!("/sites/{}", site.id.0);
    let here = |tab| (tab == open).then_some("page");
    html! {
        nav.tabs aria-label=(t("This site", "このサイト")) {
            a href=(base) aria-current=[here(Tab::Summary)] { (t("Summary", "概要")) }
            a href=(format!("{base}/pages")) aria-current=[here(Tab::Pages)] { (t("Pages", "ページ")) }
            a href=(format!("/changes?site={}", site.id.0)) { (t("Changes", "変更")) }
            a href=(format!("{base}/between")) aria-current=[here(Tab::Between)] { (t("Two dates", "2つの日付")) }
            a href=(format!("{base}/schedule")) aria-current=[here(Tab::Schedule)] { (t("Schedule", "予定")) }
            a href=(format!("{base}/structure")) aria-current=[here(Tab::Structure)] { (t("Structure", "構造")) }
            a href=(format!("/visits?site={}", site.id.0)) { (t("Log", "ログ")) }
        }
    }
}

pub(crate) fn note<'a>(visitor: &Visitor, code: &str) -> Option<&'a str> {
    if code == "ignored" {
        return Some(visitor.lang.t(
            "Changes of that part are ignored from the next visit on.",
            "次回の訪問から、その箇所の変更を無視します。",
        ));
    }
    let (en, ja) = match code {
        "added" => {
            ("The site was added, and collecting has begun.", "サイトを追加し、収集を始めました。")
        }
        "added-only" => (
            "The site was added. This process does not collect; start `nenrin run`.",
            "サイトを追加しました。このプロセスでは収集しません（`nenrin run` が収集します）。",
        ),
        "saved" => ("The conditions were saved.", "収集条件を保存しました。"),
        "collect" => ("Collecting has begun.", "収集を始めました。"),
        "paused" => ("Collecting is paused.", "収集を停止しました。"),
        "resumed" => ("Collecting has resumed.", "収集を再開しました。"),
        "removed" => ("Done. The removal was logged.", "削除を実行し、記録しました。"),
        "restored" => (
            "The site was restored. It is paused until you resume it.",
            "サイトを元に戻しました。再開するまで停止しています。",
        ),
        "demo" => (
            "The demo site is running and changes every few seconds. Its versions will appear below.",
            "デモサイトが動き始めました。数秒ごとに変化し、版は下に順次現れます。",
        ),
        _ => return None,
    };
    Some(visitor.lang.t(en, ja))
}

fn figures(app: &WebApp, visitor: &Visitor, site: &Site) -> Result<Markup, WebError> {
    let t = |en, ja| visitor.t(en, ja);
    let sums = app.site_sums(i64::MAX)?.into_iter().find(|s| s.site == site.id);
    let stored = sums.map_or(0, |s| s.stored_bytes);
    let counts = &site.counts;
    let worth = nenrin_archive::shown_worth(&*app.state)?;
    let own = worth.iter().find(|own| own.site == site.id);
    Ok(html! {
        dl.tiles {
            (tile(t("Pages", "ページ"), html! { (format::number(counts.pages)) }, html! {}))
            (tile(t("Versions", "版"), html! { (format::number(counts.versions)) }, html! {
                (t("from ", "訪問数 ")) (format::counted(visitor.lang, counts.visits, "visit", "visits", ""))
            }))
            (tile(t("Stored", "保存量"), html! { (format::bytes(stored)) }, html! {
                @if stored < counts.raw_bytes { (t("instead of ", "元の容量 ")) (format::bytes(counts.raw_bytes)) }
                @if let Some(saved) = format::saving(counts.raw_bytes, stored) { (t(" (", "（")) (saved) (t(" saved)", " 節約）")) }
            }))
            @if let Some((own, share)) = own.filter(|_| worth.len() > 1).and_then(|own| Some((own, own.share_of(&worth)?))) {
                (tile(t("Importance", "重要度"), html! { (format::share(share)) }, html! {
                    (t("of the archive, as much as ", "アーカイブ全体比。平均的なページ ")) (format::number(own.importance().round() as u64)) (t(" average pages", " 件分"))
                }))
            }
            (tile(t("Last round", "前回の収集"), html! { span.small { (format::maybe_time(site.collected_s)) } }, html! {
                span.nw { (t("next: ", "次回：")) } (overview::next_round(visitor, site))
            }))
        }
    })
}

/// `typed` is a date that could not be read.
fn browse(visitor: &Visitor, site: &Site, days: &[DayCounts], typed: Option<&str>) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let today = format::date(visitor.now_s);
    let day = |day: i64| format::date(day * format::DAY_S);
    let (first, newest) = years::with_versions(days)
        .map_or((today.clone(), today.clone()), |(first, newest)| (day(first), day(newest)));
    html! {
        section.card.browse {
            h2 { (t("Browse the site as of a date", "日付を選んでサイトを見る")) }
            @if site.counts.versions == 0 {
                p.muted { (t("There are no versions yet. They can be opened here as soon as the first round has fetched something.", "まだ版がありません。最初の収集が進むと、ここから見られます。")) }
            } @else {
                form method="get" action=(format!("/sites/{}/browse", site.id.0)) {
                    label.sr for="at" { (t("Date", "日付")) }
                    @if let Some(typed) = typed {
                        // A date field would not show a text that is not a date.
                        div.field.wrong {
                            input #at name="at" value=(typed) aria-describedby="at-error" aria-invalid="true";
                            p.error #at-error role="alert" { (t("write a date like ", "日付は次のように入力してください：")) (today) }
                        }
                    } @else {
                        input #at type="date" name="at" required value=(newest) max=(today) min=(first);
                    }
                    button.primary { (t("Open as of this date", "この日付で開く")) }
                    a href=(format!("/sites/{}/between", site.id.0)) { (t("Compare two dates", "2つの日付を比較")) }
                    @if let Some(top) = site.conditions.tops.first() {
                        a href=(layout::page_link(top)) { (t("Versions of the top page", "トップページの版")) }
                    }
                }
            }
        }
    }
}

/// Redirects to the top page as of a date.
pub(crate) fn open_as_of(
    visitor: &Visitor,
    site: &Site,
    query: &Fields,
) -> Result<Response, WebError> {
    let typed = query.get("at");
    let Some(at_s) = format::parse_date(typed) else {
        let back = format!("/sites/{}?at={}#at", site.id.0, format::encoded(typed));
        return Ok(Redirect::to(&back).into_response());
    };
    let top = site.conditions.tops.first().ok_or_else(|| WebError::not_found("top page"))?;
    // Nothing is known of the future: today means up to now.
    let at_s = at_s.min(visitor.now_s);
    Ok(Redirect::to(&replay_link(&visitor.replay, at_s, top)).into_response())
}

fn calendar(visitor: &Visitor, site: &Site, days: &[DayCounts], years: &Years) -> Markup {
    let counts: BTreeMap<i64, u64> = days.iter().map(|d| (d.day, d.versions)).collect();
    let title = visitor.t("Versions, day by day", "日ごとの版");
    let link = |day: i64| {
        let end_s = ((day + 1) * format::DAY_S - 1).min(visitor.now_s);
        site.conditions
            .tops
            .first()
            .map(|top| replay_link(&visitor.replay, end_s, top))
            .unwrap_or_default()
    };
    html! {
        section.card #days {
            h2 { (title) }
            (years.links(visitor, &format!("/sites/{}", site.id.0)))
            (chart::calendar(visitor, years.last_day(), &counts, title, link))
            p.hint { (visitor.t("Choose a day to open the site as it was at the end of that day (UTC).", "日を選ぶと、その日の終わり（UTC）のサイトが開きます。")) }
        }
    }
}

fn rounds(visitor: &Visitor, rounds: &[Round]) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    html! {
        section {
            h2 { (t("Rounds", "収集の記録")) }
            @if rounds.is_empty() {
                p.muted { (t("No rounds yet. `nenrin run` starts collecting.", "まだ収集していません。`nenrin run` で収集を始めます。")) }
            } @else {
                div.scroll { table.cards {
                    thead { tr {
                        th scope="col" { (t("Began", "開始")) }
                        th scope="col" { (t("Took", "所要時間")) }
                        th.n scope="col" { (t("Visits", "訪問")) }
                        th.n scope="col" title=(t("first versions of pages", "ページの最初の版")) { (t("New", "新規")) }
                        th.n scope="col" { (t("Changed", "変更")) }
                        th.n scope="col" { (t("Unchanged", "変更なし")) }
                        th.n scope="col" title=(t("pages that became known by a link or a sitemap", "リンクやサイトマップで知ったページ")) { (t("Found", "発見")) }
                        th.n scope="col" title=(t("pages that the server does not have", "サーバーにないページ")) { (t("Missing", "存在しない")) }
                        th.n scope="col" title=(t("visits that brought no answer or an error", "応答がないかエラーの訪問")) { (t("Failed", "失敗")) }
                        th.n scope="col" title=(t("pages that may not be fetched, mostly by robots.txt", "取得が許されないページ（多くは robots.txt による）")) { (t("Refused", "取得不可")) }
                        th.n scope="col" { (t("Received", "受信")) }
                        th.n scope="col" { (t("Stored", "保存")) }
                    } }
                    tbody { @for round in rounds { (round_row(visitor, round)) } }
                } }
            }
        }
    }
}

fn round_row(visitor: &Visitor, round: &Round) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let counts = &round.counts;
    html! {
        tr {
            td { (format::time(round.started_s)) }
            td.nw { @match round.ended_s {
                Some(ended_s) => { (format::spoken_duration(visitor.lang, ended_s - round.started_s)) },
                None => span.badge.running { (visitor.t("running", "進行中")) },
            } }
            td.n data-label=(t("Visits", "訪問")) { (format::number(counts.visits())) }
            td.n data-label=(t("New", "新規")) { (format::number(counts.first)) }
            td.n data-label=(t("Changed", "変更")) { (format::number(counts.changed_again())) }
            td.n data-label=(t("Unchanged", "変更なし")) { (format::number(counts.same + counts.not_modified)) }
            td.n data-label=(t("Found", "発見")) { (format::number(counts.new_pages)) }
            td.n data-label=(t("Missing", "存在しない")) { (format::number(counts.gone)) }
            td.n data-label=(t("Failed", "失敗")) { (format::number(counts.failed)) }
            td.n data-label=(t("Refused", "取得不可")) { (format::number(counts.refused)) }
            td.n data-label=(t("Received", "受信")) { (format::bytes(counts.received_bytes)) }
            td.n data-label=(t("Stored", "保存")) { (format::bytes(counts.stored_bytes)) }
        }
    }
}

/// The site's own problems, and apart from them what is none: pages that are not there, what rules leave out, and
/// parts that others serve.
fn problems(visitor: &Visitor, site: &Site, groups: &[ProblemGroup]) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let (own, others): (Vec<_>, Vec<_>) = groups.iter().partition(|group| group.own);
    let (wrong, right): (Vec<_>, Vec<_>) = own.into_iter().partition(|group| group.is_problem());
    let (missing, left_out): (Vec<_>, Vec<_>) =
        right.into_iter().partition(|group| group.outcome == Outcome::Gone);
    html! {
        @if !wrong.is_empty() {
            section #problems {
                h2 { (t("Problems by cause", "原因別の問題")) }
                (trouble_table(visitor, site, &wrong))
            }
        }
        @for (title, groups) in [
            (t("Pages that the server does not have", "サーバーにないページ"), missing),
            (t("Left out by robots.txt or by this site's conditions", "robots.txt または収集条件による対象外"), left_out),
            (t("Images, scripts and the like from other servers that did not come", "取得できなかったほかのサーバーの画像やスクリプトなど"), others),
        ] {
            @if !groups.is_empty() {
                details.fold {
                    summary {
                        (title) " "
                        span.muted { (format::counted(visitor.lang, groups.iter().map(|group| group.count).sum(), "visit", "visits", " 件")) }
                    }
                    (trouble_table(visitor, site, &groups))
                }
            }
        }
    }
}

fn trouble_table(visitor: &Visitor, site: &Site, groups: &[&ProblemGroup]) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    html! {
        div.scroll { table.cards {
            thead { tr {
                th scope="col" { (t("What", "種類")) }
                th scope="col" { (t("Cause", "原因")) }
                th.n scope="col" { (t("Times", "回数")) }
                th scope="col" { (t("Last", "最終")) }
                th scope="col" { (t("For example", "例")) }
            } }
            tbody { @for group in groups.iter().take(PROBLEMS_SHOWN) {
                tr {
                    td { a href=(format!("/visits?site={}&outcome={}", site.id.0, group.outcome)) { (layout::outcome(visitor, group.outcome, group.status)) } }
                    td.cause { (cause(visitor, group.status, group.reason.as_ref())) }
                    td.n data-label=(t("Times", "回数")) { (format::number(group.count)) }
                    td data-label=(t("Last", "最終")) { (format::time(group.last_s)) }
                    td { (layout::url(&group.last_url)) }
                }
            } }
        } }
    }
}

/// Why a visit found no page, as text.
pub(crate) fn cause(visitor: &Visitor, status: u16, reason: Option<&Reason>) -> Markup {
    html! {
        @if status > 0 { "HTTP " (status) }
        // The status alone is not shown twice.
        @let reason = reason.filter(|reason| **reason != Reason::Status(status));
        @if status > 0 && reason.is_some() { " · " }
        @if let Some(reason) = reason { bdi { (reason.text(visitor.lang)) } }
    }
}

fn conditions(visitor: &Visitor, site: &Site) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let conditions = &site.conditions;
    html! {
        section {
            h2 { (t("Conditions", "収集条件")) }
            dl.facts {
                dt { (t("How often", "頻度")) } dd { (schedule(visitor, &conditions.schedule)) }
                dt { (t("Scope", "範囲")) } dd { (sheet_fields::scope_words(visitor, conditions.scope)) (t(", ", "、")) (t("depth ", "深さ ")) (conditions.depth) }
                @if let Some(most) = conditions.max_pages { dt { (t("Most pages", "最大ページ数")) } dd { (format::number(most)) } }
                @for window in &conditions.windows { dt { (t("Only during", "収集時間帯")) } dd { bdi { (window) } } }
                @if !conditions.embeds { dt { (t("Images and styles", "画像・スタイル")) } dd { (t("only within the scope", "範囲内のみ")) } }
                @if !conditions.hints.signals { dt { (t("Sitemaps and feeds", "サイトマップとフィード")) } dd { (t("not used", "使わない")) } }
                @if conditions.hints.schedule_by == ScheduleBy::Significant {
                    dt { (t("What counts as a change", "変更とみなすもの")) } dd { (t("only significant changes", "意味のある変更だけ")) }
                }
                @if let Some(ms) = conditions.delay_ms { dt { (t("Pause between requests", "要求の間隔")) } dd { (ms) " ms" } }
                dt { "robots.txt" } dd { @match &conditions.robots {
                    RobotsPolicy::Obey => { (t("obeyed", "従う")) },
                    RobotsPolicy::Ignore { reason } => { (t("not asked: ", "確認しない：")) bdi { (reason) } },
                } }
                @if conditions.allow_private { dt { (t("Private addresses", "プライベートアドレス")) } dd { (t("allowed", "許可")) } }
                @if let Some(bytes) = conditions.keeping.quota_bytes.filter(|bytes| *bytes > 0) {
                    dt { (t("Most space on disk", "使用容量の上限")) } dd { (format::bytes(bytes)) }
                }
                @if let Some(rule) = &conditions.keeping.prune {
                    dt { (t("Old versions", "古い版")) } dd { (t("thinned out: ", "間引き：")) (rule) }
                }
                @if !conditions.pages.include.is_empty() {
                    dt { (t("Only pages like", "対象のページ")) } dd { @for one in &conditions.pages.include { code { (one) } " " } }
                }
                @if !conditions.pages.exclude.is_empty() {
                    dt { (t("No pages like", "除外するページ")) } dd { @for one in &conditions.pages.exclude { code { (one) } " " } }
                }
                @if !conditions.headers.is_empty() {
                    // Their values may be secrets.
                    dt { (t("Request headers", "リクエストヘッダー")) } dd { @for one in &conditions.headers { code { (one.name) } " " } }
                }
                @for part in &conditions.ignored { dt { (t("Changes ignored", "無視する変更")) } dd { code { (part) } } }
                dt { (t("Registered", "登録")) } dd { (format::time(site.created_s)) }
            }
            @if visitor.is_admin() && site.removed.is_none() {
                p.hint { a href=(format!("/downloads?site={}", site.id.0)) { (t("Download this site", "このサイトをダウンロード")) } " · " a href=(format!("/sites/{}/remove", site.id.0)) { (t("Remove this site…", "このサイトを削除…")) } }
            }
        }
    }
}

pub(crate) fn schedule(visitor: &Visitor, schedule: &Schedule) -> Markup {
    html! {
        @match schedule {
            Schedule::Manual => { (visitor.t("only when you start it", "手動のみ")) },
            Schedule::Rounds { period_s } => {
                (visitor.t("every ", "")) (format::spoken_duration(visitor.lang, *period_s)) (visitor.t("", "ごと"))
            },
            Schedule::Continuous(settings) => {
                (visitor.t("each page on its own schedule", "ページごとの予定")) " (" (settings.policy) ")"
            },
        }
    }
}

pub(crate) fn set_paused(app: &WebApp, site: SiteId, paused: bool) -> Result<Response, WebError> {
    app.state.pause_site(site, paused)?;
    app.control.sites_changed();
    let note = if paused { "paused" } else { "resumed" };
    Ok(Redirect::to(&format!("/sites/{}?note={note}", site.0)).into_response())
}

pub(crate) fn collect(app: &WebApp, site: SiteId) -> Result<Response, WebError> {
    app.control.collect_now(site)?;
    Ok(Redirect::to(&format!("/sites/{}?note=collect", site.0)).into_response())
}
