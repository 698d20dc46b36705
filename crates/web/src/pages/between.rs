//! A site on two dates: which pages are new, changed or gone.

use std::sync::Arc;

use axum::response::{Html, IntoResponse, Response};
use maud::{Markup, html};
use nenrin_archive::changes::{
    Between, ChangeKind, FolderCounts, PageDifference, SiteDifference, Wanted, folder_of,
};
use nenrin_state::{DayCounts, Site, VersionId};

use crate::{
    WebError,
    app::{diff_link, replay_link},
    format,
    guard::{Fields, Shared},
    layout::{self, Menu, tile},
    pages::{changes, picture, site, years},
    scans::SoFar,
    visitor::Visitor,
};

const SHOWN: usize = 100;
const FOLDERS_SHOWN: usize = 40;
/// Pages compared at once.
const TOGETHER: usize = 500;

/// What is asked for.
struct Asked {
    from_s: i64,
    to_s: i64,
    kind: Option<ChangeKind>,
    folder: Option<String>,
    parts: bool,
    page: usize,
}

impl Asked {
    fn of(visitor: &Visitor, query: &Fields, days: &[DayCounts]) -> Self {
        let (first, last) = default_days(visitor, days);
        let end_of = |day: i64| (day + 1) * format::DAY_S - 1;
        let date = |name, day| query.some(name).and_then(format::parse_date).unwrap_or(end_of(day));
        let (a, b) = (date("from", first), date("to", last));
        Self {
            from_s: a.min(b),
            to_s: a.max(b),
            kind: ChangeKind::from_word(query.get("kind")),
            folder: query.some("folder").map(str::to_owned),
            parts: query.get("parts") == "1",
            page: query.number("page").unwrap_or(0),
        }
    }

    fn link(
        &self,
        site: &Site,
        kind: Option<ChangeKind>,
        folder: Option<&str>,
        page: usize,
    ) -> String {
        let mut link = format!(
            "/sites/{}/between?from={}&to={}",
            site.id.0,
            format::date(self.from_s),
            format::date(self.to_s)
        );
        if let Some(kind) = kind {
            link.push_str(&format!("&kind={}", kind.as_str()));
        }
        if let Some(folder) = folder {
            link.push_str(&format!("&folder={}", format::encoded(folder)));
        }
        if self.parts {
            link.push_str("&parts=1");
        }
        if page > 0 {
            link.push_str(&format!("&page={page}"));
        }
        link
    }
}

/// The newest day with versions, and the one before it: what came last.
fn default_days(visitor: &Visitor, days: &[DayCounts]) -> (i64, i64) {
    let mut with_versions = days.iter().rev().filter(|day| day.versions > 0).map(|day| day.day);
    let today = visitor.now_s.div_euclid(format::DAY_S);
    let last = with_versions.next().unwrap_or(today);
    (with_versions.next().unwrap_or(last - 1), last)
}

pub(crate) fn between(
    shared: &Arc<Shared>,
    visitor: &Visitor,
    site: &Site,
    query: &Fields,
) -> Result<Response, WebError> {
    let app = &shared.app;
    let days = years::days(app, visitor, Some(site.id))?;
    let asked = Asked::of(visitor, query, &days);
    let so_far = compared(shared, site, &asked)?;
    let result = result(shared, visitor, site, &asked, &so_far)?;
    if query.get("part") == "result" {
        return Ok(Html(result.into_string()).into_response());
    }
    let t = |en, ja| visitor.t(en, ja);
    let title = format!("{} – {}", t("Two dates", "2つの日付"), site.name);
    let live = (!so_far.is_whole).then(|| {
        format!("{}&part=result", asked.link(site, asked.kind, asked.folder.as_deref(), asked.page))
    });
    let content = html! {
        div.heading { h1 { bdi { (site.name) } } }
        (site::tabs(visitor, site, site::Tab::Between))
        (form(visitor, site, &asked, &days))
        div data-live=[live.as_deref()] data-every="2" data-while="[data-unfinished]" { (result) }
    };
    Ok(layout::page_refreshed(visitor, Menu::None, &title, content, live.is_some()))
}

fn compared(
    shared: &Arc<Shared>,
    site: &Site,
    asked: &Asked,
) -> Result<SoFar<SiteDifference>, WebError> {
    let (from_s, to_s, parts) = (asked.from_s, asked.to_s, asked.parts);
    let key = format!("{} {from_s} {to_s} {parts}", site.id.0);
    let (state, site) = (shared.app.state.clone(), site.clone());
    Ok(shared.differences.of(key, shared.app.now_s, move |found| {
        found.go_on(&*state, Between { site: &site, from_s, to_s, parts }, TOGETHER)
    })?)
}

fn form(visitor: &Visitor, site: &Site, asked: &Asked, days: &[DayCounts]) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let today = format::date(visitor.now_s);
    let first = years::with_versions(days).map(|(first, _)| format::date(first * format::DAY_S));
    html! {
        section.card.browse {
            h2 { (t("What changed between two dates?", "2つの日付の間に何が変わったか")) }
            form method="get" action=(format!("/sites/{}/between", site.id.0)) {
                span.dates {
                    label for="from" { (t("From", "開始日")) }
                    input #from type="date" name="from" required value=(format::date(asked.from_s)) max=(today) min=[first.as_deref()];
                    label for="to" { (t("to", "終了日")) }
                    input #to type="date" name="to" required value=(format::date(asked.to_s)) max=(today) min=[first.as_deref()];
                }
                label.tickbox title=(t("also styles, scripts, fonts and files of other servers", "スタイル、スクリプト、フォント、ほかのサーバーのファイルも")) {
                    input type="checkbox" name="parts" value="1" checked[asked.parts]; (t("all files", "すべてのファイル"))
                }
                button.primary { (t("Compare", "比較する")) }
            }
            p.hint { (t("Each date means the end of that day (UTC).", "それぞれの日の終わり（UTC）の時点を比べます。")) }
        }
    }
}

fn result(
    shared: &Arc<Shared>,
    visitor: &Visitor,
    site: &Site,
    asked: &Asked,
    so_far: &SoFar<SiteDifference>,
) -> Result<Markup, WebError> {
    let t = |en, ja| visitor.t(en, ja);
    let found = &so_far.result;
    let counts = &found.counts;
    let number = |n: u64| html! { (format::number(n)) };
    let of_kind = |kind: ChangeKind, count: u64| {
        html! {
            a href=(asked.link(site, Some(kind), None, 0)) { (format::number(count)) }
        }
    };
    Ok(html! {
        @if !so_far.is_whole {
            p.notice role="status" data-unfinished="1" {
                (t("Being compared: ", "比較中：")) (format::number(found.looked_at)) (t(" of about ", " / 約 "))
                (format::counted(visitor.lang, site.counts.pages, "page", "pages", " ページ")) (t(" so far.", ""))
            }
        }
        dl.tiles {
            (tile(t("New pages", "新しいページ"), of_kind(ChangeKind::New, counts.new), html! {}))
            (tile(t("Changed pages", "変わったページ"), of_kind(ChangeKind::Changed, counts.changed), html! {}))
            (tile(t("Gone pages", "なくなったページ"), of_kind(ChangeKind::Gone, counts.gone), html! {}))
            (tile(t("Compared", "比較したページ"), number(found.looked_at), html! {
                (format::number(found.looked_at.saturating_sub(counts.total()))) (t(" the same", " 件は同じ"))
            }))
        }
        @if counts.total() == 0 && so_far.is_whole {
            p.card.empty {
                @if found.looked_at == 0 { (t("The archive has no version of this site on these dates. Choose later ones.", "この日付にはまだ版がありません。もっと後の日付を選んでください。")) }
                @else { (t("No page differs between these dates.", "この2つの日付の間に違いはありません。")) }
            }
        }
        (folders(visitor, site, asked, found))
        (pages(shared, visitor, site, asked, found)?)
    })
}

/// Counts by folder, those with most changes first.
fn folders(visitor: &Visitor, site: &Site, asked: &Asked, found: &SiteDifference) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let mut folders: Vec<(&String, &FolderCounts)> = found.folders.iter().collect();
    folders.sort_by_key(|(name, counts)| (std::cmp::Reverse(counts.total()), *name));
    html! {
        @if folders.len() > 1 {
            section {
                h2 { (t("By folder", "フォルダーごと")) }
                div.scroll { table.cards {
                    thead { tr {
                        th scope="col" { (t("Folder", "フォルダー")) }
                        th.n scope="col" { (t("New", "新規")) }
                        th.n scope="col" { (t("Changed", "変更")) }
                        th.n scope="col" { (t("Gone", "消失")) }
                    } }
                    tbody { @for (name, counts) in folders.iter().take(FOLDERS_SHOWN) {
                        tr aria-current=[(asked.folder.as_deref() == Some(name)).then_some("true")] {
                            td.path { a href=(asked.link(site, asked.kind, Some(name), 0)) { bdi { (nenrin_urls::shown_text(name)) } } }
                            td.n data-label=(t("New", "新規")) { (format::number(counts.new)) }
                            td.n data-label=(t("Changed", "変更")) { (format::number(counts.changed)) }
                            td.n data-label=(t("Gone", "消失")) { (format::number(counts.gone)) }
                        }
                    } }
                } }
                @if folders.len() > FOLDERS_SHOWN {
                    p.hint { (t("The folders with most differences are shown.", "違いの多いフォルダーだけを表示しています。")) }
                }
            }
        }
    }
}

fn pages(
    shared: &Arc<Shared>,
    visitor: &Visitor,
    site: &Site,
    asked: &Asked,
    found: &SiteDifference,
) -> Result<Markup, WebError> {
    let t = |en, ja| visitor.t(en, ja);
    let is_meant = |page: &&PageDifference| {
        asked.kind.is_none_or(|kind| kind == page.kind)
            && asked.folder.as_ref().is_none_or(|folder| *folder == folder_of(site, &page.url))
    };
    let mut meant: Vec<&PageDifference> = found.pages.iter().filter(is_meant).collect();
    meant.sort_by_key(|page| (page.kind, !page.is_significant, page.url.as_str()));
    let from = asked.page.saturating_mul(SHOWN).min(meant.len());
    let shown = &meant[from..meant.len().min(from + SHOWN)];
    let titles = titles(shared, shown)?;
    let here = |page| asked.link(site, asked.kind, asked.folder.as_deref(), page);
    let is_filtered = asked.kind.is_some() || asked.folder.is_some();
    Ok(html! {
        @if !meant.is_empty() || is_filtered {
            section {
                h2 {
                    (t("Pages", "ページ"))
                    @if is_filtered {
                        small.muted {
                            @if let Some(kind) = asked.kind { (changes::kind_word(visitor, kind)) " " }
                            @if let Some(folder) = &asked.folder { bdi { (nenrin_urls::shown_text(folder)) } " " }
                            a href=(asked.link(site, None, None, 0)) { (t("show all", "すべて表示")) }
                        }
                    }
                }
                ul.changes { @for (page, title) in shown.iter().zip(&titles) { (entry(visitor, page, title.as_deref())) } }
                p.paging {
                    @if asked.page > 0 { a.button href=(here(asked.page - 1)) { "← " (t("Back", "前へ")) } }
                    @if from + SHOWN < meant.len() { a.button rel="next" href=(here(asked.page + 1)) { (t("Further", "次へ")) " →" } }
                }
                @if found.pages.len() >= SiteDifference::PAGES_MAX {
                    p.hint { (t("Only the first ", "最初の ")) (format::number(SiteDifference::PAGES_MAX as u64)) (t(" pages are listed; all of them: ", " ページだけを表示しています。すべて表示するには：")) code { "nenrin diff --site " (site.id.0) " " (format::date(asked.from_s)) " " (format::date(asked.to_s)) } }
                }
            }
        }
    })
}

fn titles(
    shared: &Arc<Shared>,
    pages: &[&PageDifference],
) -> Result<Vec<Option<String>>, WebError> {
    let wanted: Vec<Wanted> = pages
        .iter()
        .map(|page| Wanted {
            page: page.page,
            url: page.url.clone(),
            version: page
                .new
                .as_ref()
                .or(page.old.as_ref())
                .map_or(VersionId(0), |row| row.version),
            previous: None,
            title_only: true,
        })
        .collect();
    let read = shared.app.changes.summaries(&wanted, changes::PATIENCE)?;
    let title =
        |summary: nenrin_state::Summary| Some(summary.title).filter(|title| !title.is_empty());
    Ok(read.into_iter().map(|summary| summary.and_then(title)).collect())
}

fn entry(visitor: &Visitor, page: &PageDifference, title: Option<&str>) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let url = &page.url;
    let compare = match (&page.old, &page.new) {
        (Some(old), Some(new)) => Some(diff_link(&visitor.replay, old.at_s, new.at_s, url)),
        _ => None,
    };
    let row = page.new.as_ref().or(page.old.as_ref());
    let open = row.map(|row| replay_link(&visitor.replay, row.at_s, url));
    html! {
        li {
            @if let Some(row) = row.filter(|row| picture::is_shown(row)) {
                a.thumb href=[open.as_deref()] { (picture::thumbnail(row.at_s, url)) }
            }
            div.what {
                p.title {
                    (changes::kind_mark(visitor, page.kind)) " "
                    a href=[compare.as_deref().or(open.as_deref())] { bdi { (title.map_or_else(|| url.shown(), str::to_owned)) } }
                }
                @if title.is_some() { p.url.muted { bdi { (url.shown()) } } }
                p.links.hint {
                    @match (&page.old, &page.new) {
                        (Some(old), Some(new)) => { (format::bytes(old.bytes)) " → " (format::bytes(new.bytes)) },
                        (Some(row), None) | (None, Some(row)) => { (format::bytes(row.bytes)) },
                        (None, None) => {},
                    }
                    @if !page.is_significant { " · " (t("small differences only", "わずかな違いのみ")) }
                    @if let Some(compare) = &compare { " · " a href=(compare) { (t("compare", "比較")) } }
                    @if let Some(open) = &open { " · " a href=(open) { (t("open", "開く")) } }
                    " · " a href=(layout::page_link(url)) { (t("history", "履歴")) }
                }
            }
        }
    }
}
