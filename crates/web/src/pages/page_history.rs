//! A page's own history: its versions as a strip of cards, its size and titles over time, and its visits.

use std::sync::Arc;

use maud::{Markup, html};
use nenrin_archive::{PageRenderings, changes::Wanted, first_versions};
use nenrin_state::{PageRecord, Summary, VersionRow, VisitRow};
use nenrin_urls::CanonicalUrl;

use crate::{
    WebError,
    app::{diff_link, replay_link},
    chart::{Marks, PerDay, Series},
    format,
    guard::Shared,
    layout,
    pages::{changes, picture, site},
    visitor::Visitor,
};

/// Cards in the strip.
const CARDS: usize = 24;
/// Visits listed.
const VISITS_SHOWN: usize = 60;
/// Visits of other pages that are read at once while looking for those of one.
const LOOKED_AT: usize = 100_000;
/// Points of the chart of sizes.
const POINTS_MAX: i64 = 180;

/// The newest visits of a page, as far as they were found.
#[derive(Clone, Default)]
pub(crate) struct PageVisits {
    visits: Vec<VisitRow>,
    before: Option<i64>,
}

/// Versions of a page, newest first, with the page they belong to.
pub(crate) struct PageVersions<'a> {
    pub(crate) url: &'a CanonicalUrl,
    pub(crate) page: Option<&'a PageRecord>,
    pub(crate) versions: &'a [(CanonicalUrl, VersionRow)],
    /// What its renderings left behind.
    pub(crate) renderings: Option<&'a PageRenderings>,
}

impl PageVersions<'_> {
    /// The picture of a version, if it was rendered.
    fn view(&self, row: &VersionRow) -> Option<&CanonicalUrl> {
        let of = self.renderings.filter(|of| of.views_s.contains(&row.at_s))?;
        of.view.as_ref()
    }
}

/// The versions in time, newest first: title, size, how much changed, and the line that says most.
pub(crate) fn strip(
    shared: &Arc<Shared>,
    visitor: &Visitor,
    of: &PageVersions<'_>,
) -> Result<Markup, WebError> {
    let t = |en, ja| visitor.t(en, ja);
    let shown = &of.versions[..of.versions.len().min(CARDS)];
    let read = summaries(shared, of, shown.len())?;
    let is_unread = read.iter().any(Option::is_none);
    Ok(html! {
        @if of.versions.len() > 1 {
            section {
                h2 { (t("The page over time", "ページの移り変わり")) }
                ol.strip tabindex="0" aria-label=(t("Versions, newest first", "版（新しい順）")) {
                    @for (i, ((exact, row), summary)) in shown.iter().zip(&read).enumerate() {
                        (card(visitor, of, exact, row, of.versions.get(i + 1).map(|(_, row)| row), summary.as_ref()))
                    }
                }
                @if is_unread && of.page.is_some() {
                    p.hint { (t("Some versions are still being read; reload to see their titles.", "一部の版を読み込み中です。再読み込みするとタイトルが表示されます。")) }
                }
                (titles(visitor, shown, &read))
            }
        }
    })
}

fn summaries(
    shared: &Arc<Shared>,
    of: &PageVersions<'_>,
    count: usize,
) -> Result<Vec<Option<Summary>>, WebError> {
    let Some(page) = of.page else { return Ok(vec![None; count]) };
    let wanted: Vec<Wanted> = of
        .versions
        .iter()
        .take(count)
        .enumerate()
        .map(|(i, (url, row))| Wanted {
            page: page.id,
            url: url.clone(),
            version: row.version,
            previous: of.versions.get(i + 1).map(|(_, before)| before.version),
            title_only: false,
        })
        .collect();
    Ok(shared.app.changes.summaries(&wanted, changes::PATIENCE)?)
}

fn card(
    visitor: &Visitor,
    of: &PageVersions<'_>,
    exact: &CanonicalUrl,
    row: &VersionRow,
    before: Option<&VersionRow>,
    summary: Option<&Summary>,
) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let open = replay_link(&visitor.replay, row.at_s, exact);
    let title = summary.map(|summary| summary.title.as_str()).filter(|title| !title.is_empty());
    let line = summary.filter(|summary| before.is_some() && !summary.line.is_empty());
    html! {
        li {
            p.date { (format::short_time(row.at_s)) }
            @if picture::is_shown(row) { a.thumb href=(open) { (picture::thumbnail(row.at_s, exact)) } }
            @if let Some(view) = of.view(row) { a.thumb href=(open) { (picture::thumbnail(row.at_s, view)) } }
            p.title { a href=(open) { bdi { (title.unwrap_or(t("open", "開く"))) } } }
            @if let Some(line) = line {
                p.line class=(if line.removed { "removed" } else { "added" }) { bdi { (line.line) } }
            }
            (amount(visitor, row, before))
            p.links.hint {
                (format::bytes(row.bytes))
                @if let Some(before) = before { " · " a href=(diff_link(&visitor.replay, before.at_s, row.at_s, of.url)) { (t("what changed", "差分")) } }
            }
        }
    }
}

/// How much changed, as a bar.
fn amount(visitor: &Visitor, row: &VersionRow, before: Option<&VersionRow>) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    html! {
        @match (before, row.changed_permille) {
            (None, _) => p.amount { span.badge.k-new { (t("first version", "最初の版")) } },
            (Some(_), Some(0)) => p.amount.muted { (t("small differences only", "わずかな違いのみ")) },
            (Some(_), Some(permille)) => p.amount {
                meter value=(permille) max="1000" aria-label=(t("share that changed", "変わった割合")) {}
                " " (format!("{}.{}%", permille / 10, permille % 10)) (t(" changed", " 変更"))
            },
            (Some(_), None) => {},
        }
    }
}

/// When the title changed.
fn titles(
    visitor: &Visitor,
    shown: &[(CanonicalUrl, VersionRow)],
    read: &[Option<Summary>],
) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let mut titles: Vec<(i64, &str)> = Vec::new();
    for ((_, row), summary) in shown.iter().zip(read).rev() {
        let Some(title) = summary.as_ref().map(|summary| summary.title.as_str()) else { continue };
        if !title.is_empty() && titles.last().is_none_or(|(_, last)| *last != title) {
            titles.push((row.at_s, title));
        }
    }
    html! {
        @if titles.len() > 1 {
            h3 { (t("Titles", "タイトルの変化")) }
            dl.facts { @for (at_s, title) in titles.iter().rev() {
                dt { (t("since ", "")) (format::short_time(*at_s)) (t("", "から")) } dd { bdi { (title) } }
            } }
        }
    }
}

/// The size of the versions that are listed, over time.
pub(crate) fn sizes(visitor: &Visitor, versions: &[(CanonicalUrl, VersionRow)]) -> Markup {
    let day = |row: &VersionRow| row.at_s.div_euclid(format::DAY_S);
    let (Some((_, newest)), Some((_, oldest))) = (versions.first(), versions.last()) else {
        return html! {};
    };
    let (first_day, last_day) = (day(oldest), day(newest));
    if versions.len() < 3 || last_day == first_day {
        return html! {};
    }
    let step_days = (last_day - first_day) / POINTS_MAX + 1;
    let count = ((last_day - first_day) / step_days + 1) as usize;
    let mut values = vec![0; count];
    let mut oldest_first = versions.iter().rev().map(|(_, row)| row).peekable();
    let mut size = oldest.bytes;
    for (i, value) in values.iter_mut().enumerate() {
        let end = first_day + step_days * (i as i64 + 1);
        while let Some(row) = oldest_first.next_if(|row| day(row) < end) {
            size = row.bytes;
        }
        *value = size;
    }
    let chart = PerDay {
        visitor,
        title: visitor.t("Size over time", "サイズの推移"),
        first_day,
        step_days,
        marks: Marks::Lines,
        series: vec![Series { name: visitor.t("size", "サイズ"), class: "c-ours", values }],
        show: format::bytes,
    };
    html! { section.card.charts { (chart.draw()) } }
}

/// The newest visits of a page, found by reading back through the log.
pub(crate) fn visits(
    shared: &Arc<Shared>,
    visitor: &Visitor,
    page: &PageRecord,
) -> Result<Markup, WebError> {
    let (state, id, all) = (shared.app.state.clone(), page.id, page.visits as usize);
    let key = format!("{} {}", page.id.0, page.visits);
    let so_far = shared.page_visits.of(key, shared.app.now_s, move |found: &mut PageVisits| {
        let (visits, next) = state.recent_visits(id, found.before, LOOKED_AT)?;
        found.visits.extend(visits);
        found.before = next;
        Ok(next.is_some() && found.visits.len() < VISITS_SHOWN.min(all))
    })?;
    let found = &so_far.result.visits[..so_far.result.visits.len().min(VISITS_SHOWN)];
    let first = first_versions(&*shared.app.state, found)?;
    let t = |en, ja| visitor.t(en, ja);
    Ok(html! {
        section #visits {
            h2 { (t("Visits", "訪問")) }
            @if !so_far.is_whole {
                p.notice role="status" { (t("The log is being searched; reload to see older visits.", "ログを検索中です。再読み込みすると古い訪問が表示されます。")) }
            }
            @if found.is_empty() && so_far.is_whole {
                p.muted { (t("The log has no visit of this page. Imported versions come without visits.", "このページの訪問はログにありません。取り込んだ版には訪問の記録がありません。")) }
            }
            @if !found.is_empty() {
                div.scroll { table.cards {
                    thead { tr {
                        th scope="col" { (t("When", "日時")) }
                        th scope="col" { (t("Found", "結果")) }
                        th scope="col" { (t("Why", "理由")) }
                        th.n scope="col" { (t("Took", "時間")) }
                        th.n scope="col" { (t("Received", "受信")) }
                    } }
                    tbody { @for visit in found {
                        tr {
                            td { (format::time(visit.at_s)) }
                            td { @if first.contains(&visit.id) { (layout::first_version(visitor)) } @else { (layout::outcome(visitor, visit.outcome, visit.status)) } }
                            td.cause data-label=(t("Why", "理由")) { @if !visit.outcome.is_seen() || visit.reason.is_some() { (site::cause(visitor, visit.status, visit.reason.as_ref())) } }
                            td.n data-label=(t("Took", "時間")) { (format::number(u64::from(visit.elapsed_ms))) " ms" }
                            td.n data-label=(t("Received", "受信")) { (format::bytes(visit.received_bytes)) }
                        }
                    } }
                } }
                @if so_far.is_whole && all > found.len() {
                    p.hint { (t("The newest ", "新しい順に ")) (format::number(found.len() as u64)) (t(" of ", " / ")) (format::number(all as u64)) (t(" visits.", " 件の訪問")) }
                }
            }
        }
    })
}
