//! The pages of a site: looked for by any part of address or title, filtered, in any order, with counts by folder.

use std::sync::Arc;

use axum::response::{Html, IntoResponse, Response};
use maud::{Markup, html};
use nenrin_archive::{
    FoundPage, PageDue, PageQuery, PageResult, PageSearch, PageSort, changes::Wanted,
};
use nenrin_state::{BodyKind, Outcome, Site};

use crate::{
    WebError, format,
    guard::{Fields, Shared},
    layout::{self, Menu},
    pages::{changes, log, site, site_pages},
    scans::SoFar,
    visitor::Visitor,
};

const SHOWN: usize = 100;
const FOLDERS_SHOWN: usize = 24;
/// Pages looked at at once.
const TOGETHER: usize = 1_000;

/// Columns: the word in addresses, the order, the heads, an explanation, and whether it is a number.
type Column =
    (&'static str, PageSort, &'static str, &'static str, &'static str, &'static str, bool);
const COLUMNS: [Column; 11] = [
    ("address", PageSort::Address, "Address", "アドレス", "", "", false),
    ("title", PageSort::Title, "Title", "タイトル", "", "", false),
    ("type", PageSort::Type, "Type", "種類", "", "", false),
    ("result", PageSort::Result, "Last result", "最新の結果", "", "", false),
    ("visits", PageSort::Visits, "Visits", "訪問", "", "", true),
    ("versions", PageSort::Versions, "Versions", "版", "", "", true),
    (
        "importance",
        PageSort::Importance,
        "Importance",
        "重要度",
        "how many times that of the average page",
        "平均的なページの何倍か",
        true,
    ),
    (
        "rate",
        PageSort::Rate,
        "Changes a day",
        "変更/日",
        "estimated changes per day",
        "1日あたりの変更回数の推定",
        true,
    ),
    ("size", PageSort::Size, "Size", "サイズ", "", "", true),
    ("visited", PageSort::Visited, "Last visit", "最終訪問", "", "", false),
    ("due", PageSort::Due, "Next visit", "次回の訪問", "", "", false),
];

const KINDS: [(&str, BodyKind, &str, &str); 6] = [
    ("html", BodyKind::Html, "pages (HTML)", "ページ（HTML）"),
    ("text", BodyKind::Text, "text, styles, scripts", "テキスト・スタイル・スクリプト"),
    ("image", BodyKind::Image, "images", "画像"),
    ("document", BodyKind::Document, "documents (PDF …)", "文書（PDFなど）"),
    ("media", BodyKind::Media, "sound and film", "音声・動画"),
    ("other", BodyKind::Other, "other", "その他"),
];

const DUES: [(&str, PageDue, &str, &str); 4] = [
    ("now", PageDue::Now, "due now", "今すぐ"),
    ("day", PageDue::Day, "due within a day", "1日以内"),
    ("later", PageDue::Later, "due later", "それ以降"),
    ("none", PageDue::None, "without a time of their own", "個別の予定なし"),
];

/// What is asked for.
struct Asked {
    query: PageQuery,
    page: usize,
}

impl Asked {
    /// `None` where nothing is looked for: then the pages are shown as a tree.
    fn of(query: &Fields) -> Option<Self> {
        const NAMES: [&str; 7] = ["q", "type", "result", "due", "folder", "sort", "find"];
        NAMES.iter().any(|name| query.given(name).is_some()).then_some(())?;
        let by = |name, words: &[&str]| words.iter().position(|word| *word == query.get(name));
        let result = match query.get("result") {
            "never" => Some(PageResult::Never),
            word => log::outcome(word).map(PageResult::Found),
        };
        Some(Self {
            query: PageQuery {
                text: query.get("q").trim().to_owned(),
                kind: by("type", &KINDS.map(|kind| kind.0)).map(|at| KINDS[at].1),
                result,
                due: by("due", &DUES.map(|due| due.0)).map(|at| DUES[at].1),
                folder: query.some("folder").map(str::to_owned),
                sort: by("sort", &COLUMNS.map(|column| column.0))
                    .map_or(PageSort::Address, |at| COLUMNS[at].1),
                down: query.get("down") == "1",
            },
            page: query.number("page").unwrap_or(0),
        })
    }

    fn result_word(&self) -> Option<String> {
        self.query.result.map(|result| match result {
            PageResult::Never => "never".to_owned(),
            PageResult::Found(outcome) => outcome.to_string(),
        })
    }

    fn sort_word(&self) -> &'static str {
        COLUMNS
            .iter()
            .find(|column| column.1 == self.query.sort)
            .map_or("address", |column| column.0)
    }

    /// The address of this list, with some of it changed.
    fn link(&self, site: &Site, sort: (&str, bool), folder: Option<&str>, page: usize) -> String {
        let query = &self.query;
        let mut link = format!("/sites/{}/pages?sort={}", site.id.0, sort.0);
        let mut add = |name: &str, value: &str| {
            link.push_str(&format!("&{name}={}", format::encoded(value)));
        };
        if sort.1 {
            add("down", "1");
        }
        if !query.text.is_empty() {
            add("q", &query.text);
        }
        if let Some(kind) = KINDS.iter().find(|kind| Some(kind.1) == query.kind) {
            add("type", kind.0);
        }
        if let Some(result) = self.result_word() {
            add("result", &result);
        }
        if let Some(due) = DUES.iter().find(|due| Some(due.1) == query.due) {
            add("due", due.0);
        }
        if let Some(folder) = folder {
            add("folder", folder);
        }
        if page > 0 {
            add("page", &page.to_string());
        }
        link
    }

    /// How a column is sorted, if it is by one of these.
    fn sorted(&self, by: &[PageSort]) -> Option<&'static str> {
        let way = if self.query.down { "descending" } else { "ascending" };
        by.contains(&self.query.sort).then_some(way)
    }

    /// The head of a column, which sorts by it.
    fn head(&self, visitor: &Visitor, site: &Site, column: &Column) -> Markup {
        let (word, sort, en, ja, .., is_number) = *column;
        // Numbers and times are most wanted from the largest on.
        let down = match sort == self.query.sort {
            true => !self.query.down,
            false => is_number || sort == PageSort::Visited,
        };
        let is_here = self.sorted(&[sort]).is_some();
        html! {
            a class=[is_here.then_some("sorted")] href=(self.link(site, (word, down), self.query.folder.as_deref(), 0)) { (visitor.t(en, ja)) }
        }
    }

    fn here(&self, site: &Site, page: usize) -> String {
        self.link(site, (self.sort_word(), self.query.down), self.query.folder.as_deref(), page)
    }
}

pub(crate) fn pages(
    shared: &Arc<Shared>,
    visitor: &Visitor,
    site: &Site,
    query: &Fields,
) -> Result<Response, WebError> {
    let Some(asked) = Asked::of(query) else {
        return site_pages::pages(&shared.app, visitor, site, query, form(visitor, site, None));
    };
    let so_far = found(shared, visitor, site, &asked)?;
    let list = list(shared, visitor, site, &asked, &so_far)?;
    if query.get("part") == "list" {
        return Ok(Html(list.into_string()).into_response());
    }
    let title = format!("{} – {}", visitor.t("Pages", "ページ"), site.name);
    let live = (!so_far.is_whole).then(|| format!("{}&part=list", asked.here(site, asked.page)));
    let content = html! {
        div.heading { h1 { bdi { (site.name) } } }
        (site::tabs(visitor, site, site::Tab::Pages))
        (form(visitor, site, Some(&asked)))
        div data-live=[live.as_deref()] data-every="1" data-while="[data-unfinished]" { (list) }
    };
    Ok(layout::page_refreshed(visitor, Menu::None, &title, content, live.is_some()))
}

fn found(
    shared: &Arc<Shared>,
    visitor: &Visitor,
    site: &Site,
    asked: &Asked,
) -> Result<SoFar<PageSearch>, WebError> {
    let query = asked.query.clone();
    let key = format!("{} {query:?}", site.id.0);
    let (state, site, now_s) = (shared.app.state.clone(), site.clone(), visitor.now_s);
    Ok(shared.searches.of(key, shared.app.now_s, move |found| {
        found.go_on(&*state, &site, &query, now_s, TOGETHER)
    })?)
}

fn form(visitor: &Visitor, site: &Site, asked: Option<&Asked>) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let query = asked.map(|asked| &asked.query);
    let result = asked.and_then(Asked::result_word);
    html! {
        form.filter method="get" action=(format!("/sites/{}/pages", site.id.0)) role="search" {
            label.sr for="q" { (t("Part of the address or title", "アドレスやタイトルの一部")) }
            input #q name="q" type="search" value=(query.map_or("", |query| &query.text)) placeholder=(t("Part of the address or title", "アドレスやタイトルの一部")) spellcheck="false" autocomplete="off";
            label.sr for="type" { (t("Type", "種類")) }
            select #type name="type" data-submit {
                option value="" { (t("all types", "すべての種類")) }
                @for (word, kind, en, ja) in KINDS { option value=(word) selected[query.is_some_and(|query| query.kind == Some(kind))] { (t(en, ja)) } }
            }
            label.sr for="result" { (t("Last result", "最新の結果")) }
            select #result name="result" data-submit {
                option value="" { (t("all results", "すべての結果")) }
                @for outcome in Outcome::ALL {
                    option value=(outcome) selected[result.as_deref() == Some(&outcome.to_string())] { (layout::outcome_word(visitor, outcome)) }
                }
                option value="never" selected[result.as_deref() == Some("never")] { (t("not visited yet", "未訪問")) }
            }
            label.sr for="due" { (t("Next visit", "次回の訪問")) }
            select #due name="due" data-submit {
                option value="" { (t("due at any time", "次回はいつでも")) }
                @for (word, due, en, ja) in DUES { option value=(word) selected[query.is_some_and(|query| query.due == Some(due))] { (t(en, ja)) } }
            }
            @if let Some(asked) = asked {
                input type="hidden" name="sort" value=(asked.sort_word());
                @if asked.query.down { input type="hidden" name="down" value="1"; }
                @if let Some(folder) = &asked.query.folder { input type="hidden" name="folder" value=(folder); }
            }
            button { (t("Search", "検索")) }
            @if asked.is_some() {
                a href=(format!("/sites/{}/pages", site.id.0)) { (t("as a tree", "ツリー表示")) }
            } @else {
                a href=(format!("/sites/{}/pages?find=1", site.id.0)) { (t("all pages in a table", "すべてのページを表で")) }
            }
        }
    }
}

fn list(
    shared: &Arc<Shared>,
    visitor: &Visitor,
    site: &Site,
    asked: &Asked,
    so_far: &SoFar<PageSearch>,
) -> Result<Markup, WebError> {
    let t = |en, ja| visitor.t(en, ja);
    let found = &so_far.result;
    let from = asked.page.saturating_mul(SHOWN).min(found.pages.len());
    let shown = &found.pages[from..found.pages.len().min(from + SHOWN)];
    let rows = with_details(shared, shown)?;
    Ok(html! {
        p.counted role="status" data-unfinished=[(!so_far.is_whole).then_some("1")] {
            strong { (format::counted(visitor.lang, found.matches, "page", "pages", " ページ")) }
            @if !so_far.is_whole {
                " · " (t("searched ", "検索中：")) (format::number(found.looked_at)) (t(" of ", " / ")) (format::number(site.counts.pages)) (t(" so far", ""))
            }
            @if found.untitled > 0 {
                " · " (t("searched by address alone, as their titles are not read yet: ", "タイトル未読のため、アドレスだけで検索したページ：")) (format::number(found.untitled))
            }
        }
        (folders(visitor, site, asked, found))
        @if rows.is_empty() && so_far.is_whole {
            p.card.empty { (t("No page matches. Try fewer letters, or remove a filter.", "該当するページはありません。文字を減らすか、条件を外してください。")) }
        }
        @if !rows.is_empty() {
            div.scroll { table.cards {
                thead { tr {
                    // Address and title are in one cell.
                    th scope="col" aria-sort=[asked.sorted(&[PageSort::Address, PageSort::Title])] {
                        (asked.head(visitor, site, &COLUMNS[0])) " · " (asked.head(visitor, site, &COLUMNS[1]))
                    }
                    @for column in &COLUMNS[2..] {
                        th scope="col" class=[column.6.then_some("n")] title=[(!column.4.is_empty()).then(|| t(column.4, column.5))]
                            aria-sort=[asked.sorted(&[column.1])] { (asked.head(visitor, site, column)) }
                    }
                } }
                tbody { @for row in &rows { (self::row(visitor, site, row)) } }
            } }
        }
        p.paging {
            @if asked.page > 0 { a.button href=(asked.here(site, asked.page - 1)) { "← " (t("Back", "前へ")) } }
            @if from + SHOWN < found.pages.len() { a.button rel="next" href=(asked.here(site, asked.page + 1)) { (t("Further", "次へ")) " →" } }
        }
        @if found.matches > found.pages.len() as u64 && from + SHOWN >= found.pages.len() {
            p.hint { (t("The first ", "最初の ")) (format::number(found.pages.len() as u64)) (t(" in this order are listed; search or filter for the others.", " ページだけを表示しています。検索や絞り込みをお使いください。")) }
        }
    })
}

/// Adds the types and titles of the pages that are shown.
fn with_details(shared: &Arc<Shared>, shown: &[FoundPage]) -> Result<Vec<FoundPage>, WebError> {
    let mut rows = shown.to_vec();
    let wanted = |row: &FoundPage| {
        let page = &row.page;
        let version = page.version?;
        Some(Wanted {
            page: page.id,
            url: page.url.clone(),
            version,
            previous: None,
            title_only: true,
        })
    };
    let missing: Vec<Wanted> =
        rows.iter().filter(|row| row.title.is_none()).filter_map(wanted).collect();
    let mut read = shared.app.changes.summaries(&missing, changes::PATIENCE / 2)?.into_iter();
    for row in &mut rows {
        if row.title.is_none() && row.page.version.is_some() {
            row.title = read
                .next()
                .flatten()
                .map(|summary| summary.title)
                .filter(|title| !title.is_empty());
        }
        if row.mime.is_none() && row.page.version.is_some() {
            row.mime = shared
                .app
                .state
                .version_as_of(&row.page.url.key(), i64::MAX)?
                .map(|(_, version)| version.mime);
        }
    }
    Ok(rows)
}

/// Counts by folder, the largest first; each is a filter.
fn folders(visitor: &Visitor, site: &Site, asked: &Asked, found: &PageSearch) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let mut folders: Vec<(&String, u64)> =
        found.folders.iter().map(|(name, count)| (name, *count)).collect();
    folders.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    let sort = (asked.sort_word(), asked.query.down);
    html! {
        @if folders.len() > 1 || asked.query.folder.is_some() {
            nav.folders aria-label=(t("Folders", "フォルダー")) {
                @if asked.query.folder.is_some() { a href=(asked.link(site, sort, None, 0)) { (t("all folders", "すべてのフォルダー")) } }
                @for (name, count) in folders.iter().take(FOLDERS_SHOWN) {
                    a href=(asked.link(site, sort, Some(name), 0)) aria-current=[(asked.query.folder.as_ref() == Some(name)).then_some("true")] {
                        bdi { (nenrin_urls::shown_text(name)) } " " small { (format::number(*count)) }
                    }
                }
                @if folders.len() > FOLDERS_SHOWN { span.muted { "+ " (folders.len() - FOLDERS_SHOWN) } }
            }
        }
    }
}

fn row(visitor: &Visitor, site: &Site, found: &FoundPage) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let page = &found.page;
    let is_main = site.conditions.tops.first().is_some_and(|top| top.server() == page.url.server());
    let address = match is_main {
        true => nenrin_urls::shown_text(page.url.path_and_query()),
        false => page.url.shown(),
    };
    html! {
        tr {
            td.path { a href=(layout::page_link(&page.url)) {
                @if let Some(title) = &found.title { strong { bdi { (title) } } br; }
                span.url { bdi { (address) } }
            } }
            td data-label=(t("Type", "種類")) { @if let Some(mime) = &found.mime { bdi { (mime.split(';').next().unwrap_or_default()) } } }
            td data-label=(t("Last result", "最新の結果")) { @if let Some(outcome) = page.outcome { (layout::last_outcome(visitor, page, outcome)) } @else { span.muted { (t("not visited yet", "未訪問")) } } }
            td.n data-label=(t("Visits", "訪問")) { (format::number(u64::from(page.visits))) }
            td.n data-label=(t("Versions", "版")) { (format::number(u64::from(page.changes))) }
            td.n data-label=(t("Importance", "重要度")) { @if let Some(importance) = page.importance() { (format::importance(importance)) } }
            td.n data-label=(t("Changes a day", "変更/日")) { @if let Some(estimate) = page.estimate.filter(|_| page.due_s.is_some()) { (format::rate(estimate.rate_per_day())) } }
            td.n data-label=(t("Size", "サイズ")) { @if page.visits > 0 { (format::bytes(page.bytes)) } }
            td data-label=(t("Last visit", "最終訪問")) { (format::maybe_time(page.visited_s)) }
            td data-label=(t("Next visit", "次回の訪問")) { (format::maybe_time(page.due_s)) }
        }
    }
}
