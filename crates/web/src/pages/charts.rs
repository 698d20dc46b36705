//! Charts: activity, space, saving, how often pages change.

use maud::{Markup, html};
use nenrin_lang::Lang;
use nenrin_revisit::ForecastPoint;
use nenrin_state::{BodyKind, DayCounts, KindSums, OrderCurve, PageFilter, PageRecord, SiteId};

use crate::{
    StoreSummary, WebApp, WebError,
    chart::{self, Column, Curve, Curves, Key, Marks, PerDay, Series, columns},
    format,
    pages::years::Years,
    visitor::Visitor,
};

/// Days of activity shown.
const ACTIVITY_DAYS: i64 = 90;
/// The most points of a line; more would not be visible.
const MAX_POINTS: i64 = 366;
/// Pages read for the distribution of change intervals. Pages are numbered by a hash of their path,
/// so the first ones of a server are a fair sample.
const SAMPLE: usize = 2_000;
/// With fewer pages than this an order means nothing.
const ORDER_PAGES_MIN: u64 = 10;

/// Activity in the days shown, and space from the first day on; of one site or of all.
pub(crate) fn over_time(visitor: &Visitor, days: &[DayCounts], years: &Years) -> Markup {
    let today = visitor.now_s.div_euclid(format::DAY_S);
    html! {
        @if !days.is_empty() { (activity(visitor, days, years)) (space(visitor, days, today)) }
    }
}

/// Day by day for the newest days, week by week for a year.
fn activity(visitor: &Visitor, days: &[DayCounts], years: &Years) -> Markup {
    let last_day = years.last_day();
    let (first_day, step_days, title) = match years.chosen() {
        Some((first_day, _)) => {
            (first_day, 7, visitor.t("Visits and versions per week", "1週間あたりの訪問と版"))
        }
        None => {
            let title = visitor.t("Visits and versions per day", "1日あたりの訪問と版");
            (last_day - ACTIVITY_DAYS + 1, 1, title)
        }
    };
    let values = |of: fn(&DayCounts) -> u64| {
        let mut values = vec![0; ((last_day - first_day) / step_days + 1) as usize];
        for day in days.iter().filter(|d| (first_day..=last_day).contains(&d.day)) {
            values[((day.day - first_day) / step_days) as usize] += of(day);
        }
        values
    };
    PerDay {
        visitor,
        title,
        first_day,
        step_days,
        marks: Marks::Bars,
        series: vec![
            Series {
                name: visitor.t("visits", "訪問"),
                class: "c-visits",
                values: values(|d| d.visits),
            },
            Series {
                name: visitor.t("versions", "版"),
                class: "c-versions",
                values: values(|d| d.versions),
            },
            Series {
                name: visitor.t("problems", "問題"),
                class: "c-problems",
                values: values(|d| d.problems),
            },
        ],
        show: format::number,
    }
    .draw()
}

fn space(visitor: &Visitor, days: &[DayCounts], today: i64) -> Markup {
    let Some(first_day) = days.first().map(|d| d.day) else { return html! {} };
    let step_days = (today - first_day) / MAX_POINTS + 1;
    let grown = |of: fn(&DayCounts) -> u64| {
        let mut sum = 0;
        let mut known = days.iter().peekable();
        let points = (first_day..=today).step_by(step_days as usize);
        points
            .map(|day| {
                while let Some(counts) = known.next_if(|d| d.day < day + step_days) {
                    sum += of(counts);
                }
                sum
            })
            .collect()
    };
    PerDay {
        visitor,
        title: visitor.t("Space over time", "容量の推移"),
        first_day,
        step_days,
        marks: Marks::Lines,
        series: vec![
            Series {
                name: visitor.t("a full mirror", "全体ミラー"),
                class: "c-raw",
                values: grown(|d| d.raw_bytes),
            },
            Series {
                name: visitor.t("received", "受信"),
                class: "c-received",
                values: grown(|d| d.received_bytes),
            },
            Series {
                name: visitor.t("stored", "保存"),
                class: "c-stored",
                values: grown(|d| d.stored_bytes),
            },
        ],
        show: format::bytes,
    }
    .draw()
}

/// The bytes received, the distinct bytes and the bytes on disk; empty as long as the indexes of a
/// new archive take more than its pages.
pub(crate) fn saving(visitor: &Visitor, store: &StoreSummary) -> Markup {
    if store.index_bytes > store.raw_bytes {
        return Markup::default();
    }
    let t = |en, ja| visitor.t(en, ja);
    let bars = [
        (t("every visit", "全訪問"), store.raw_bytes, "c-raw"),
        (t("distinct", "重複除去"), store.unique_bytes, "c-received"),
        (t("stored: HTML", "保存：HTML"), store.html_bytes, "c-stored"),
        (t("stored: other files", "保存：その他"), store.other_bytes, "c-stored"),
        (t("stored: indexes", "保存：索引"), store.index_bytes, "c-stored"),
    ]
    .map(|(name, value, class)| Column {
        name,
        value,
        shown: format::bytes(value),
        class,
        part: None,
    });
    columns(t("Space saved", "節約"), &[], &bars)
}

/// Size of versions by kind as received, and on disk.
pub(crate) fn saving_by_kind(
    app: &WebApp,
    visitor: &Visitor,
    site: Option<SiteId>,
) -> Result<Markup, WebError> {
    let t = |en, ja| visitor.t(en, ja);
    let sums = app.state.kind_sums(site)?;
    let name = |kind| match kind {
        BodyKind::Html => "HTML",
        BodyKind::Text => t("styles, scripts, text", "スタイル・スクリプト・テキスト"),
        BodyKind::Image => t("images", "画像"),
        BodyKind::Document => t("documents", "文書"),
        BodyKind::Media => t("sound and video", "音声・動画"),
        BodyKind::Other => t("other files", "その他"),
    };
    let bar = |sum: &KindSums| {
        let saved = format::saving(sum.received_bytes, sum.stored_bytes);
        Column {
            name: name(sum.kind),
            value: sum.received_bytes,
            shown: stored_instead(
                visitor,
                &format::bytes(sum.stored_bytes),
                &format::bytes(sum.received_bytes),
                saved,
            ),
            class: "c-received",
            part: Some((sum.stored_bytes, "c-stored")),
        }
    };
    let bars: Vec<Column<'_>> = sums.iter().map(bar).collect();
    let keys = [
        Key { name: t("received", "受信"), class: "c-received" },
        Key { name: t("stored", "保存"), class: "c-stored" },
    ];
    Ok(
        html! { @if !bars.is_empty() { (columns(t("Saving by type", "種類別の節約"), &keys, &bars)) } },
    )
}

/// How early the order of collecting found the important pages, for one site or all.
pub(crate) fn order(
    app: &WebApp,
    visitor: &Visitor,
    site: Option<SiteId>,
) -> Result<Markup, WebError> {
    let t = |en, ja| visitor.t(en, ja);
    let curve = app.state.order_curve(site)?;
    let pages: u64 = curve.collected.iter().map(|group| group.pages).sum();
    if pages < ORDER_PAGES_MIN {
        return Ok(html! {});
    }
    let collected = OrderCurve::points(&curve.collected);
    let best = OrderCurve::points(&curve.best);
    let rows = [0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75].map(|share| {
        let at = |points| OrderCurve::share_at(points, share);
        (share, vec![at(&collected), at(&best), share])
    });
    let tenth = (OrderCurve::share_at(&collected, 0.1), OrderCurve::share_at(&best, 0.1));
    let curves = Curves {
        visitor,
        title: t("Important pages first", "重要なページから"),
        axes: (t("pages collected", "収集したページ"), t("their importance", "その重要度")),
        most: 1.0,
        show: chart::percent,
        curves: vec![
            Curve { name: t("as collected", "実際の順"), class: "c-ours", points: collected },
            Curve { name: t("best possible", "最良の順"), class: "c-best", points: best },
            Curve {
                name: t("by chance", "無作為"),
                class: "c-chance",
                points: vec![(0.0, 0.0), (1.0, 1.0)],
            },
        ],
        rows: rows.to_vec(),
    };
    Ok(html! {
        (curves.draw())
        p.hint {
            (t("The first tenth of the pages collected has  ", "最初に収集した1割のページが、重要度の "))
            (chart::percent(tenth.0))
            (t(" of the importance of all ", " を占めます（全 "))
            (format::number(pages))
            (t(" pages; the best order would have had ", " ページ。最良の順なら "))
            (chart::percent(tenth.1))
            (t(". Importance is estimated from the links found so far.", "）。重要度は、これまでに見つかったリンクから推定しています。"))
        }
    })
}

/// The expected share of versions by number of visits.
pub(crate) fn forecast(visitor: &Visitor, points: &[ForecastPoint]) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let at: Vec<(f64, f64)> = std::iter::once((0.0, 0.0))
        .chain(points.iter().map(|point| (point.visits_per_day, point.coverage)))
        .collect();
    let most = at.iter().map(|point| point.0).fold(0.0, f64::max);
    if most <= 0.0 {
        return html! {};
    }
    Curves {
        visitor,
        title: t("Versions found, by number of visits", "訪問数と得られる版"),
        axes: (t("visits a day", "訪問/日"), t("versions seen", "得られる版")),
        most,
        show: |visits| format!("{visits:.1}"),
        rows: at.iter().map(|(visits, coverage)| (*visits, vec![*coverage])).collect(),
        curves: vec![Curve {
            name: t("versions seen", "得られる版"), class: "c-ours", points: at
        }],
    }
    .draw()
}

/// How often the pages of a site change.
pub(crate) fn intervals(app: &WebApp, visitor: &Visitor, site: SiteId) -> Result<Markup, WebError> {
    let filter = PageFilter { site: Some(site), after: None, limit: SAMPLE };
    let pages = app.state.pages(filter)?;
    let t = |en, ja| visitor.t(en, ja);
    let names = [
        t("within an hour", "1時間以内"),
        t("within a day", "1日以内"),
        t("within a week", "1週間以内"),
        t("within a month", "1か月以内"),
        t("within a year", "1年以内"),
        t("less often", "それ以上"),
        t("no change seen", "変更なし"),
    ];
    let mut counts = [0_u64; 7];
    let mut judged = 0;
    for page in pages.iter().filter(|page| page.visits > 1) {
        judged += 1;
        counts[class_of(page)] += 1;
    }
    let bars: Vec<Column<'_>> = names
        .iter()
        .zip(counts)
        .map(|(name, value)| Column {
            name,
            value,
            shown: format::number(value),
            class: "c-versions",
            part: None,
        })
        .collect();
    Ok(html! {
        @if judged > 0 {
            (columns(t("How often pages change", "ページの変更頻度"), &[], &bars))
            p.hint {
                @if pages.len() == SAMPLE { (t("A sample of 2,000 pages. ", "2,000ページの標本。")) }
                (t("Only pages visited more than once are counted.", "2回以上訪問したページのみを数えています。"))
            }
        }
    })
}

fn class_of(page: &PageRecord) -> usize {
    match mean_interval_s(page) {
        None => 6,
        Some(s) => [3_600, 86_400, 7 * 86_400, 30 * 86_400, 365 * 86_400]
            .iter()
            .position(|most| s <= *most)
            .unwrap_or(5),
    }
}

/// The observed time divided by the changes after the first version, in seconds.
pub(crate) fn mean_interval_s(page: &PageRecord) -> Option<i64> {
    let known_s = page.visited_s? - page.discovered_s;
    let changes = i64::from(page.changes) - 1;
    (changes > 0 && known_s > 0).then(|| known_s / changes)
}

/// What is stored instead of what was received, and how much that saves.
fn stored_instead(
    visitor: &Visitor,
    stored: &str,
    received: &str,
    saved: Option<String>,
) -> String {
    match (visitor.lang, saved) {
        (Lang::En, Some(saved)) => format!("{stored} instead of {received} ({saved} saved)"),
        (Lang::En, None) => format!("{stored} stored, {received} received"),
        (Lang::Ja, Some(saved)) => format!("{received} を {stored} で保存（{saved} 節約）"),
        (Lang::Ja, None) => format!("{received} を {stored} で保存"),
    }
}
