//! What changed: by day and site, with titles and the line that says most about each change.

use std::{collections::BTreeMap, time::Duration};

use axum::response::{Html, IntoResponse, Response};
use maud::{Markup, html};
use nenrin_archive::changes::{ChangeFilter, ChangeKind, ListedChange, ListedChanges};
use nenrin_state::{ChangeCursor, DayQuery, PageId, Site, SiteId, VersionId};

use crate::{
    WebApp, WebError,
    app::{diff_link, replay_link},
    format,
    guard::Fields,
    layout::{self, Menu},
    pages::{picture, years},
    visitor::Visitor,
};

const SHOWN: usize = 60;
/// Days shown unless others are asked for.
const DAYS: i64 = 7;
/// How long a page waits for titles and lines that were not read yet.
pub(crate) const PATIENCE: Duration = Duration::from_millis(60);

/// What is asked for: filters and dates.
pub(crate) struct Asked {
    pub(crate) filter: ChangeFilter,
    /// The first and the last day.
    days: (i64, i64),
    /// Whether someone chose the days.
    is_chosen: bool,
}

impl Asked {
    /// Reads the filters. Without dates it is this week, or the newest one with something in it.
    pub(crate) fn of(app: &WebApp, visitor: &Visitor, query: &Fields) -> Result<Self, WebError> {
        let site = query.number("site").map(SiteId);
        let day = |name| {
            query.some(name).and_then(format::parse_date).map(|at_s| at_s.div_euclid(format::DAY_S))
        };
        let today = visitor.now_s.div_euclid(format::DAY_S);
        let (from, to) = (day("from"), day("to"));
        let last = match (from, to) {
            (_, Some(to)) => to,
            (Some(from), None) => from.saturating_add(DAYS - 1).min(today.max(from)),
            (None, None) => {
                newest_day(app, visitor, site)?.filter(|day| *day <= today - DAYS).unwrap_or(today)
            }
        };
        let first = from.unwrap_or(last.saturating_sub(DAYS - 1)).min(last);
        let filter = ChangeFilter {
            site,
            from_s: first.saturating_mul(format::DAY_S),
            to_s: last.saturating_add(1).saturating_mul(format::DAY_S).saturating_sub(1),
            before: cursor(query.get("before")),
            kind: ChangeKind::from_word(query.get("kind")),
            significant: query.get("significant") == "1",
            text: query.get("q").trim().to_owned(),
            parts: query.get("parts") == "1",
            limit: SHOWN,
        };
        Ok(Self { filter, days: (first, last), is_chosen: from.is_some() || to.is_some() })
    }

    /// The address of a list with the same filters.
    fn link(&self, days: Option<(i64, i64)>, before: Option<ChangeCursor>) -> String {
        let filter = &self.filter;
        let mut parts = Vec::new();
        parts.extend(filter.site.map(|site| format!("site={}", site.0)));
        parts.extend(filter.kind.map(|kind| format!("kind={}", kind.as_str())));
        parts.extend(filter.significant.then(|| "significant=1".to_owned()));
        parts.extend(filter.parts.then(|| "parts=1".to_owned()));
        if !filter.text.is_empty() {
            parts.push(format!("q={}", format::encoded(&filter.text)));
        }
        if let Some((first, last)) = days {
            let date = |day: i64| format::date(day.saturating_mul(format::DAY_S));
            parts.push(format!("from={}&to={}", date(first), date(last)));
        }
        parts.extend(before.map(|before| format!("before={}", written(before))));
        format!("/changes?{}", parts.join("&"))
    }
}

/// `before=<time>.<page>.<version>`.
pub(crate) fn cursor(text: &str) -> Option<ChangeCursor> {
    let mut parts = text.splitn(3, '.');
    let at_s = parts.next()?.parse().ok()?;
    Some(ChangeCursor(
        at_s,
        PageId(parts.next()?.parse().ok()?),
        VersionId(parts.next()?.parse().ok()?),
    ))
}

/// A cursor as it is written in addresses.
pub(crate) fn written(ChangeCursor(at_s, page, version): ChangeCursor) -> String {
    format!("{at_s}.{}.{}", page.0, version.0)
}

fn newest_day(
    app: &WebApp,
    visitor: &Visitor,
    site: Option<SiteId>,
) -> Result<Option<i64>, WebError> {
    Ok(years::with_versions(&years::days(app, visitor, site)?).map(|(_, newest)| newest))
}

pub(crate) fn changes(
    app: &WebApp,
    visitor: &Visitor,
    query: &Fields,
) -> Result<Response, WebError> {
    let asked = Asked::of(app, visitor, query)?;
    let mut sites = app.state.sites()?;
    sites.retain(|site| site.removed.is_none());
    let listed = app.changes.list(&asked.filter, PATIENCE)?;
    let list = list(app, visitor, &sites, &asked, &listed)?;
    if query.get("part") == "list" {
        return Ok(Html(list.into_string()).into_response());
    }
    let t = |en, ja| visitor.t(en, ja);
    let title = t("Changes", "変更");
    // Titles that are still being read appear by themselves.
    let is_unread = listed.items.iter().any(|one| one.summary.is_none());
    let live = is_unread
        .then(|| format!("{}&part=list", asked.link(Some(asked.days), asked.filter.before)));
    let content = html! {
        div.heading {
            h1 { (title) }
            div.actions { a href=(feed_link(&asked)) { (t("as a feed", "フィード")) } }
        }
        (filters(visitor, &sites, &asked))
        (weeks(visitor, &asked))
        div data-live=[live.as_deref()] data-every="2" data-while="[data-unfinished]" { (list) }
        (paging(visitor, &asked, &listed))
    };
    Ok(layout::page(visitor, Menu::Changes, title, content))
}

fn feed_link(asked: &Asked) -> String {
    asked.link(None, None).replacen("/changes?", "/feed.atom?", 1)
}

fn filters(visitor: &Visitor, sites: &[Site], asked: &Asked) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let filter = &asked.filter;
    let date = |day: i64| format::date(day.saturating_mul(format::DAY_S));
    html! {
        form.filter method="get" action="/changes" role="search" {
            label.sr for="q" { (t("Search changes", "変更を検索")) }
            input #q name="q" type="search" value=(filter.text) placeholder=(t("Title, text or address", "タイトル・本文・アドレス"));
            label.sr for="site" { (t("Site", "サイト")) }
            select #site name="site" data-submit {
                option value="" { (t("all sites", "すべてのサイト")) }
                @for site in sites {
                    option value=(site.id.0) selected[filter.site == Some(site.id)] { (site.name) }
                }
            }
            label.sr for="kind" { (t("Kind", "種類")) }
            select #kind name="kind" data-submit {
                option value="" { (t("new, changed and gone", "新規・変更・消失")) }
                @for kind in ChangeKind::ALL {
                    option value=(kind.as_str()) selected[filter.kind == Some(kind)] { (kind_word(visitor, kind)) }
                }
            }
            span.dates {
                label for="from" { (t("from", "開始日")) }
                input #from type="date" name="from" value=(date(asked.days.0));
                label for="to" { (t("to", "終了日")) }
                input #to type="date" name="to" value=(date(asked.days.1));
            }
            label.tickbox { input type="checkbox" name="significant" value="1" checked[filter.significant]; (t("significant only", "意味のある変更だけ")) }
            label.tickbox title=(t("also styles, scripts, fonts and files of other servers", "スタイル、スクリプト、フォント、ほかのサーバーのファイルも")) {
                input type="checkbox" name="parts" value="1" checked[filter.parts]; (t("all files", "すべてのファイル"))
            }
            button { (t("Filter", "絞り込む")) }
        }
    }
}

/// Where in time this is, and the way to the week before and after.
fn weeks(visitor: &Visitor, asked: &Asked) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let (first, last) = asked.days;
    let today = visitor.now_s.div_euclid(format::DAY_S);
    let length = last - first + 1;
    html! {
        nav.weeks aria-label=(t("Time", "期間")) {
            a href=(asked.link(Some((first - length, first - 1)), None)) { "← " (t("earlier", "前へ")) }
            strong { (format::date(first * format::DAY_S)) " – " (format::date(last * format::DAY_S)) " UTC" }
            @if last < today {
                a href=(asked.link(Some((last + 1, (last + length).min(today))), None)) { (t("later", "次へ")) " →" }
                a href=(asked.link(Some((today - DAYS + 1, today)), None)) { (t("this week", "今週")) }
            }
            @if !asked.is_chosen && last < today {
                span.hint { (t("Nothing has changed since then.", "これ以降の変更はありません。")) }
            }
        }
    }
}

fn list(
    app: &WebApp,
    visitor: &Visitor,
    sites: &[Site],
    asked: &Asked,
    listed: &ListedChanges,
) -> Result<Markup, WebError> {
    let t = |en, ja| visitor.t(en, ja);
    let (from_day, to_day) = asked.days;
    let query = DayQuery { site: asked.filter.site, from_day, to_day };
    let versions: BTreeMap<i64, u64> =
        app.state.days(query)?.iter().map(|day| (day.day, day.versions)).collect();
    let day_of = |one: &ListedChange| one.change.at_s.div_euclid(format::DAY_S);
    let name = |id: SiteId| sites.iter().find(|site| site.id == id).map_or("?", |site| &site.name);
    Ok(html! {
        @if listed.items.is_empty() { (nothing(visitor, sites, listed)) }
        @for day in listed.items.chunk_by(|a, b| day_of(a) == day_of(b)) {
            @let number = day_of(&day[0]);
            section.day {
                h2 {
                    (format::weekday_date(visitor.lang, number))
                    @if let Some(count) = versions.get(&number).filter(|count| **count > 0) {
                        small.muted { (format::counted(visitor.lang, *count, "version", "versions", " 版")) }
                    }
                }
                @for (site, changes) in by_site(day) {
                    @if asked.filter.site.is_none() {
                        h3 { a href=(format!("/sites/{}", site.0)) { bdi { (name(site)) } } }
                    }
                    (entries(visitor, &changes))
                }
            }
        }
        @if listed.items.iter().any(|one| one.summary.is_none()) {
            p.hint data-unfinished="1" { (t("Some pages are still being read; their titles and lines appear in a moment.", "一部のページを読み込み中です。タイトルと変更箇所はまもなく表示されます。")) }
        }
    })
}

/// The changes of a day by site, the site with the newest first.
fn by_site(day: &[ListedChange]) -> Vec<(SiteId, Vec<&ListedChange>)> {
    let mut groups: Vec<(SiteId, Vec<&ListedChange>)> = Vec::new();
    for one in day {
        match groups.iter_mut().find(|(site, _)| *site == one.change.site) {
            Some((_, group)) => group.push(one),
            None => groups.push((one.change.site, vec![one])),
        }
    }
    groups
}

fn nothing(visitor: &Visitor, sites: &[Site], listed: &ListedChanges) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    html! {
        div.card.empty {
            @if sites.is_empty() {
                p { (t("Nothing is collected yet. Add a site, and what changes on it appears here.", "まだ何も収集していません。サイトを追加すると、変更がここに表示されます。")) }
                @if visitor.is_admin() { p.actions { a.button.primary href="/sites/new" { (t("Add a site", "サイトを追加")) } } }
            } @else if listed.next.is_some() {
                p { (t("Nothing among the newest of these changes. Go on to look at older ones.", "新しい方の変更には該当がありません。続きを見ると古い変更を調べます。")) }
            } @else {
                p { (t("No changes in these days. Choose other days, or remove a filter.", "この期間に変更はありません。期間を変えるか、条件を外してください。")) }
            }
        }
    }
}

fn paging(visitor: &Visitor, asked: &Asked, listed: &ListedChanges) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    html! {
        p.paging {
            @if asked.filter.before.is_some() {
                a.button href=(asked.link(Some(asked.days), None)) { "↑ " (t("Newest", "最新へ")) }
            }
            @if let Some(next) = listed.next {
                a.button rel="next" href=(asked.link(Some(asked.days), Some(next))) { (t("Older", "古いもの")) " →" }
            }
        }
    }
}

/// The kind of a change in words.
pub(crate) fn kind_word<'a>(visitor: &Visitor, kind: ChangeKind) -> &'a str {
    match kind {
        ChangeKind::New => visitor.lang.t("new", "新規"),
        ChangeKind::Changed => visitor.lang.t("changed", "変更あり"),
        ChangeKind::Gone => visitor.lang.t("gone", "消失"),
    }
}

/// The kind of a change with its mark.
pub(crate) fn kind_mark(visitor: &Visitor, kind: ChangeKind) -> Markup {
    html! { span class=(format!("badge k-{}", kind.as_str())) { (kind_word(visitor, kind)) } }
}

/// Pages with the same line, from this many on, are folded together: a template changed.
const ALIKE_MIN: usize = 4;

/// The changes of one site on one day.
fn entries(visitor: &Visitor, changes: &[&ListedChange]) -> Markup {
    let mut alike: BTreeMap<(String, bool), Vec<&ListedChange>> = BTreeMap::new();
    for one in changes.iter().filter(|one| one.kind == ChangeKind::Changed) {
        if let Some((line, removed)) = one.line() {
            alike.entry((line.to_owned(), removed)).or_default().push(one);
        }
    }
    alike.retain(|_, group| group.len() >= ALIKE_MIN);
    let group = |one: &ListedChange| {
        let (line, removed) = one.line().filter(|_| one.kind == ChangeKind::Changed)?;
        alike.get(&(line.to_owned(), removed))
    };
    html! {
        ul.changes {
            @for one in changes {
                @match group(one) {
                    None => { (entry(visitor, one, html! {})) },
                    Some(all) if all[0].change.cursor() == one.change.cursor() => {
                        (entry(visitor, one, html! {
                            details.alike {
                                summary { (format::number(all.len() as u64 - 1)) (visitor.t(" more pages with the same change", " ページにも同じ変更")) }
                                ul.changes { @for other in &all[1..] { (entry(visitor, other, html! {})) } }
                            }
                        }))
                    },
                    Some(_) => {},
                }
            }
        }
    }
}

fn entry(visitor: &Visitor, one: &ListedChange, more: Markup) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let change = &one.change;
    let url = &change.url;
    let shown = change.version.as_ref().or(change.previous.as_ref());
    let compare = match (&change.version, &change.previous) {
        (Some(new), Some(old)) => Some(diff_link(&visitor.replay, old.at_s, new.at_s, url)),
        _ => None,
    };
    let open = shown.map(|row| replay_link(&visitor.replay, row.at_s, url));
    let title = one.title();
    html! {
        li {
            @if let Some(row) = shown.filter(|row| picture::is_shown(row)) {
                a.thumb href=[open.as_deref()] { (picture::thumbnail(row.at_s, url)) }
            }
            div.what {
                p.title {
                    (kind_mark(visitor, one.kind)) " "
                    a href=[compare.as_deref().or(open.as_deref())] {
                        bdi { @if let Some(title) = title { (title) } @else { (url.shown()) } }
                    }
                }
                @if title.is_some() { p.url.muted { bdi { (url.shown()) } } }
                (line(visitor, one))
                p.links.hint {
                    (format::clock_time(change.at_s))
                    @if let Some(compare) = &compare { " · " a href=(compare) { (t("compare", "比較")) } }
                    @if let Some(open) = &open { " · " a href=(open) { @if one.kind == ChangeKind::Gone { (t("last version", "最後の版")) } @else { (t("open", "開く")) } } }
                    " · " a href=(layout::page_link(url)) { (t("history", "履歴")) }
                }
                (more)
            }
        }
    }
}

/// The line that says most about the change; if there is none, why.
fn line(visitor: &Visitor, one: &ListedChange) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let size = |row: &nenrin_state::VersionRow| format::bytes(row.bytes);
    html! {
        @match (one.line(), &one.change.version, &one.change.previous) {
            (Some((line, true)), ..) => p.line.removed { del { bdi { (line) } } },
            (Some((line, false)), _, Some(_)) => p.line.added { ins { bdi { (line) } } },
            (Some((line, false)), ..) => p.line { bdi { (line) } },
            (None, Some(_), _) if one.summary.is_none() => p.line.muted { "…" },
            (None, Some(_), Some(_)) if !one.is_significant() => p.line.muted { (t("Only dates, counters or other small parts differ.", "日付やカウンターなど、わずかな違いだけです。")) },
            (None, Some(new), Some(old)) if new.bytes != old.bytes => p.line.muted { (size(old)) " → " (size(new)) },
            (None, Some(_), Some(_)) => p.line.muted { (t("No text differs.", "文章に違いはありません。")) },
            (None, Some(new), None) => p.line.muted { bdi { (new.mime) } " · " (size(new)) },
            (None, None, _) => p.line.muted { (t("The server does not have this page any more.", "サーバーからなくなりました。")) },
        }
    }
}
