//! Searching: the box, the pages found, the same as a feed, and since when each block of a page is
//! there.

use axum::{
    http::header,
    response::{IntoResponse, Redirect, Response},
};
use maud::{Markup, PreEscaped, html};
use nenrin_search::{
    Answer, Ask, BlamedBlock, Order, Piece, Query, Search, SearchError, SearchResult,
};
use nenrin_state::{Site, Watch};
use nenrin_urls::{CanonicalUrl, RenderedRecord};

use super::{narrow::Narrowed, picture};
use crate::{
    WebApp, WebError,
    app::{diff_link, replay_link},
    format,
    guard::Fields,
    layout::{self, Menu},
    visitor::Visitor,
};

/// Pages found on one page.
const SHOWN: usize = 10;
/// Pages of results that can be turned to.
const MAX_PAGE: usize = 100;
/// Entries of a feed.
const ENTRIES: usize = 30;

impl From<SearchError> for WebError {
    fn from(error: SearchError) -> Self {
        match error {
            SearchError::Query(error) => {
                Self::BadParameter { what: "q".into(), reason: format!("cannot be read: {error}") }
            }
            other => Self::Search(other.to_string()),
        }
    }
}

/// What searches this archive.
pub(crate) fn engine(app: &WebApp) -> Result<&Search, WebError> {
    app.options.search.as_deref().ok_or_else(|| SearchError::Off.into())
}

/// The box in the head of every page.
pub(crate) fn search_box(visitor: &Visitor) -> Markup {
    let words =
        Fields::parse(visitor.here.split_once('?').map_or("", |(_, query)| query).as_bytes());
    let asked = if visitor.here.starts_with("/search") { words.get("q") } else { "" };
    let hint = visitor.t("Words or an address", "言葉またはアドレス");
    html! {
        form.search action="/search" role="search" {
            label.sr for="words" { (visitor.t("Search the archive", "アーカイブを検索")) }
            input #words type="search" name="q" value=(asked) placeholder=(hint) autocomplete="off" data-hotkey="/" maxlength="2000";
            button { (visitor.t("Search", "検索")) }
        }
    }
}

pub(crate) fn results(
    app: &WebApp,
    visitor: &Visitor,
    fields: &Fields,
) -> Result<Response, WebError> {
    let t = |en, ja| visitor.t(en, ja);
    if fields.some("narrow").is_some() {
        let order = fields
            .some("order")
            .map_or(String::new(), |order| format!("&order={}", format::encoded(order)));
        let query = Narrowed::submitted(fields).query();
        let target = format!("/search?q={}{order}", format::encoded(&query));
        return Ok(Redirect::to(&target).into_response());
    }
    let asked = fields.get("q").trim();
    let page = fields.number::<usize>("page").unwrap_or(1).clamp(1, MAX_PAGE);
    let order = if fields.get("order") == "newest" { Order::Newest } else { Order::Best };
    let known = known_page(app, asked)?;
    let found = match Query::parse(asked) {
        _ if asked.is_empty() => Ok(None),
        Ok(query) => {
            let ask = Ask { order, skip: (page - 1) * SHOWN, limit: SHOWN };
            engine(app)?.answer(&query, ask).map(Some)
        }
        Err(mistake) => Err(SearchError::Query(mistake)),
    };
    let title = match asked {
        "" => t("Search", "検索").to_owned(),
        asked => format!("{asked} – {}", t("Search", "検索")),
    };
    let link = |page: usize, order: Order| {
        let order = if order == Order::Newest { "&order=newest" } else { "" };
        format!("/search?q={}&page={page}{order}", format::encoded(asked))
    };
    let content = html! {
        h1.sr { (title) }
        @if let Some(url) = &known {
            p.card { (t("This address is in the archive: ", "このアドレスは保存されています: ")) (layout::url(url)) }
        }
        @match found {
            Err(SearchError::Query(mistake)) if known.is_none() => {
                (marked_query(asked, mistake.at, mistake.length))
                p.bad role="alert" { (layout::capitalised(&mistake.message(visitor.lang))) }
                (help(visitor))
            }
            Err(SearchError::Query(_)) => {}
            Err(other) => p.notice role="status" { (unavailable(visitor, &other)) },
            Ok(None) => (help(visitor)),
            Ok(Some(Answer { pages, has_more })) => {
                (Narrowed::of(asked).form(visitor, &shown_sites(app)?, fields.get("order")))
                (sorting(visitor, asked, order, &link))
                @if pages.is_empty() { p.muted { (t("Nothing was found.", "見つかりませんでした。")) } (help(visitor)) }
                ol.results start=((page - 1) * SHOWN + 1) { @for found in &pages { (result(app, visitor, found)?) } }
                p.paging {
                    @if page > 1 { a.button rel="prev" href=(link(page - 1, order)) { "← " (t("Back", "前へ")) } }
                    @if has_more && page < MAX_PAGE { a.button rel="next" href=(link(page + 1, order)) { (t("More", "次へ")) " →" } }
                }
            }
        }
        @if let Some(search) = app.options.search.as_deref() { (progress(visitor, search)) }
    };
    Ok(layout::page(visitor, Menu::None, &title, content))
}

fn shown_sites(app: &WebApp) -> Result<Vec<Site>, WebError> {
    Ok(app.state.sites()?.into_iter().filter(|site| site.removed.is_none()).collect())
}

/// The page whose address was typed, if the archive has it.
fn known_page(app: &WebApp, asked: &str) -> Result<Option<CanonicalUrl>, WebError> {
    if asked.contains(char::is_whitespace) || !asked.contains('.') {
        return Ok(None);
    }
    let Ok(url) = CanonicalUrl::parse_typed(asked) else { return Ok(None) };
    let url = nenrin_archive::stored_url(&*app.state, url)?;
    Ok(app.state.version_as_of(&url.key(), i64::MAX)?.map(|(url, _)| url))
}

/// The query with its mistake marked.
fn marked_query(asked: &str, at: usize, length: usize) -> Markup {
    let part = |from: usize, count: usize| asked.chars().skip(from).take(count).collect::<String>();
    html! { p.query { (part(0, at)) mark.bad { (part(at, length)) } (part(at + length, usize::MAX)) } }
}

fn unavailable(visitor: &Visitor, error: &SearchError) -> String {
    let ja = match error {
        SearchError::NoIndex => "検索用の索引を作成しています。しばらくお待ちください。",
        SearchError::Off => "検索は設定で無効になっています。",
        _ => "検索できませんでした。",
    };
    let en = match error {
        SearchError::NoIndex => {
            "The search index is not built yet. This page will find something in a moment."
                .to_owned()
        }
        other => format!("{}.", layout::capitalised(&other.to_string())),
    };
    visitor.t(&en, ja).to_owned()
}

/// Shown while the index is behind the archive.
fn progress(visitor: &Visitor, search: &Search) -> Markup {
    let building = search.status().ok().and_then(|status| status.building);
    html! {
        @if let Some(pages) = building {
            p.hint { (visitor.t("The search index is being built; pages looked at so far: ", "検索用の索引を作成中です。これまでに調べたページ: ")) (format::number(pages)) }
        }
    }
}

fn sorting(
    visitor: &Visitor,
    asked: &str,
    order: Order,
    link: &dyn Fn(usize, Order) -> String,
) -> Markup {
    let current = |of: Order| (of == order).then_some("true");
    html! {
        p.sorting {
            a href=(link(1, Order::Best)) aria-current=[current(Order::Best)] { (visitor.t("Best first", "関連度順")) }
            a href=(link(1, Order::Newest)) aria-current=[current(Order::Newest)] { (visitor.t("Newest first", "新しい順")) }
            a href=(format!("/search.atom?q={}", format::encoded(asked))) { (visitor.t("New matches as a feed", "新着フィード")) }
        }
    }
}

fn help(visitor: &Visitor) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let rows = [
        (
            "tree rings",
            t("both words, on the page at the same time", "両方の言葉が同じ時期にあるページ"),
        ),
        ("\"tree rings\"", t("these words, exactly and in this order", "この語順のまま含むページ")),
        ("den* -oak", t("words that begin like this, without another", "前方一致と除外")),
        ("oak OR ash", t("either word", "どちらかの言葉")),
        (
            "title:ring url:blog",
            t("in titles and headings, in the address", "題名・見出し、アドレスの中"),
        ),
        (
            "ring site:NAME type:text lang:ja",
            t(
                "of a site, a kind (html, text, feed, data, pdf), a language",
                "サイト、種類、言語で絞り込む",
            ),
        ),
        ("ring at:2024-03-01", t("as of a date", "その日付の時点")),
        ("ring during:2023..2024", t("at some time in between", "その期間中")),
        ("ring appeared:2024-03", t("first seen then", "その時に現れた")),
        ("ring vanished:2024", t("gone since then", "その時に消えた")),
    ];
    html! {
        section.card.help {
            h2 { (t("How to search", "検索のしかた")) }
            dl { @for (example, meaning) in rows {
                dt { code { (example) } } dd { (meaning) }
            } }
        }
    }
}

fn result(app: &WebApp, visitor: &Visitor, found: &SearchResult) -> Result<Markup, WebError> {
    let t = |en, ja| visitor.t(en, ja);
    let shown = found.url.shown();
    let open = replay_link(&visitor.replay, found.from_s, &found.url);
    let view = view_as_of(app, &found.url, found.from_s)?;
    let title = found.title.as_deref().filter(|title| !title.is_empty()).unwrap_or(&shown);
    let diff = |before: i64, after: i64| diff_link(&visitor.replay, before, after, &found.url);
    Ok(html! {
        li.result {
            @if let Some((at_s, view)) = &view { a.thumb href=(open) tabindex="-1" aria-hidden="true" { (picture::thumbnail(*at_s, view)) } }
            div {
            h2 { a href=(open) { bdi { (title) } } }
            p.where { (layout::url(&found.url)) " · " a href=(format!("/sites/{}", found.site.0)) { bdi { (found.site_name) } }
                @if found.kind != "html" { " · " (found.kind) } }
            p.snippet { (pieces(&found.snippet)) }
            p.when {
                (span(visitor, found.from_s, found.until_s))
                @if found.spans.len() > 1 { " · " (found.spans.len()) (t(" separate times", " 回の期間")) }
                @if let Some(before) = found.before_s { " · " a href=(diff(before, found.from_s)) { (t("when it appeared", "現れた時の変更")) } }
                @if let Some(until) = found.until_s { " · " a href=(diff(until - 1, until)) { (t("when it vanished", "消えた時の変更")) } }
                " · " a href=(blame_link(&found.url, found.from_s)) { (t("since when each part is there", "各部分がいつからあるか")) }
            }
            }
        }
    })
}

/// The picture of a page as of a time, if it was rendered by then: when it was taken, and its record.
fn view_as_of(
    app: &WebApp,
    url: &CanonicalUrl,
    at_s: i64,
) -> Result<Option<(i64, CanonicalUrl)>, WebError> {
    let Some(view) = RenderedRecord::View.of(url) else { return Ok(None) };
    let found = app.state.version_as_of(&view.key(), at_s)?;
    let row = found.map(|(_, row)| row).filter(picture::is_shown);
    Ok(row.map(|row| (row.at_s, view)))
}

fn span(visitor: &Visitor, from_s: i64, until_s: Option<i64>) -> Markup {
    html! {
        (format::short_time(from_s)) " – "
        @match until_s {
            Some(until_s) => (format::short_time(until_s)),
            None => (visitor.t("still there", "現在もある")),
        }
    }
}

fn pieces(pieces: &[Piece]) -> Markup {
    html! { @for piece in pieces { @if piece.is_match { mark { (piece.text) } } @else { (piece.text) } } }
}

/// The newest matches of a query, as an Atom feed.
pub(crate) fn feed(
    app: &WebApp,
    visitor: &Visitor,
    origin: &str,
    fields: &Fields,
) -> Result<Response, WebError> {
    let asked = fields.get("q");
    let query = Query::parse(asked).map_err(SearchError::Query)?;
    let found =
        engine(app)?.answer(&query, Ask { order: Order::Newest, skip: 0, limit: ENTRIES })?;
    let updated = found.pages.first().map_or(0, |page| page.from_s);
    let here = format!("{origin}{}", visitor.here);
    let entry = |page: &SearchResult| {
        html! {
            entry {
                title { (page.title.clone().unwrap_or_else(|| page.url.shown())) }
                // The same match keeps its name, whatever else is found.
                id { "urn:nenrin:match:" (page.from_s) ":" (page.url) }
                updated { (format::rfc3339(page.from_s)) }
                link rel="alternate" href=(replay_link(&visitor.replay, page.from_s, &page.url)) {}
                link rel="related" href=(format!("{origin}{}", layout::page_link(&page.url))) {}
                summary { (page.snippet.iter().map(|piece| piece.text.as_str()).collect::<String>()) }
            }
        }
    };
    let feed = html! {
        (PreEscaped("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"))
        feed xmlns="http://www.w3.org/2005/Atom" {
            title { (asked) " · Nenrin" }
            id { (here) }
            updated { (format::rfc3339(updated)) }
            link rel="self" href=(here) {}
            author { name { "Nenrin" } }
            @for page in &found.pages { (entry(page)) }
        }
    };
    Ok(xml("application/atom+xml; charset=utf-8", &feed))
}

/// Describes the search to browsers, so that they can offer it.
pub(crate) fn description(visitor: &Visitor, origin: &str) -> Response {
    let description = html! {
        (PreEscaped("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"))
        OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/" {
            ShortName { "Nenrin" }
            Description { (visitor.t("Search this web archive through time", "このウェブアーカイブを時間をさかのぼって検索")) }
            InputEncoding { "UTF-8" }
            Image height="16" width="16" type="image/svg+xml" { (origin) "/assets/logo.svg" }
            Url type="text/html" template=(format!("{origin}/search?q={{searchTerms}}")) {}
            Url type="application/atom+xml" template=(format!("{origin}/search.atom?q={{searchTerms}}")) {}
        }
    };
    xml("application/opensearchdescription+xml", &description)
}

fn xml(mime: &'static str, document: &Markup) -> Response {
    // Characters that XML 1.0 forbids are replaced.
    let is_fine = |c: char| !c.is_control() || matches!(c, '\t' | '\n' | '\r');
    let clean =
        |c: char| if is_fine(c) && !matches!(c, '\u{fffe}' | '\u{ffff}') { c } else { '\u{fffd}' };
    let text: String = document.0.chars().map(clean).collect();
    ([(header::CONTENT_TYPE, mime)], text).into_response()
}

/// Where the blocks of a page are shown with their times.
pub(crate) fn blame_link(url: &CanonicalUrl, at_s: i64) -> String {
    format!("/blame?url={}&at={}", format::encoded(url.as_str()), format::digits(at_s))
}

pub(crate) fn blame(
    app: &WebApp,
    visitor: &Visitor,
    fields: &Fields,
) -> Result<Response, WebError> {
    let t = |en, ja| visitor.t(en, ja);
    let wrong = |error| WebError::not_found(format!("such page: {error}"));
    let url = CanonicalUrl::parse_typed(fields.get("url")).map_err(wrong)?;
    let url = nenrin_archive::stored_url(&*app.state, url)?;
    let at_s = match fields.some("at") {
        None => i64::MAX,
        Some(text) => nenrin_archive::parse_date(text, nenrin_archive::Edge::Last)
            .map_err(|reason| WebError::BadParameter { what: "at".into(), reason })?,
    };
    let Some(page) = engine(app)?.blame(&url, at_s)? else {
        return Err(WebError::not_found(format!("version of {url} in this archive")));
    };
    let title = format!(
        "{} – {}",
        t("Since when", "いつから"),
        page.title.as_deref().unwrap_or(&url.shown())
    );
    let content = html! {
        div.heading { div {
            p.eyebrow { (t("Since when each part of the page is there", "ページの各部分がいつからあるか")) }
            h1.long { bdi { (page.title.clone().unwrap_or_else(|| url.shown())) } }
            p.muted {
                (layout::url(&url)) " · " (t("as of ", "時点 ")) (format::time(page.at_s))
                " · " (format::counted(visitor.lang, page.versions as u64, "version", "versions", " 版を比較")) (t(" compared", ""))
            }
        }
        div.actions { a.button href=(replay_link(&visitor.replay, page.at_s, &url)) { (t("Open this version", "この版を開く")) } } }
        @if visitor.is_admin() {
            p.hint { (t("To get a message when something here changes, select its text, or use the link behind its paragraph.", "変更の知らせを受けたい箇所は、文字を選択するか、段落の後のリンクで監視できます。")) }
        }
        ol.blame data-marks="watch-marked" { @for of_time in page.blocks.chunk_by(|a, b| a.first_s == b.first_s) {
            li {
                (margin(visitor, &url, &of_time[0], page.oldest_s))
                div { @for block in of_time { (block_text(visitor, &url, block)) } }
            }
        } }
        @if visitor.is_admin() {
            a.button.primary.floating #watch-marked hidden href=(watch_link(&url, "")) { (t("Watch the selected text", "選択した箇所を監視")) }
        }
    };
    Ok(layout::page(visitor, Menu::None, &title, content))
}

/// Where a part of a page can be watched.
fn watch_link(url: &CanonicalUrl, text: &str) -> String {
    let text: String = text.chars().take(Watch::TEXT_CHARS_MAX).collect();
    format!("/watches/new?url={}&text={}", format::encoded(url.as_str()), format::encoded(&text))
}

fn block_text(visitor: &Visitor, url: &CanonicalUrl, block: &BlamedBlock) -> Markup {
    html! {
        p.head[block.is_heading] {
            @if block.is_heading { strong { (block.text) } } @else { (block.text) }
            @if visitor.is_admin() { " " a.mark href=(watch_link(url, &block.text)) title=(visitor.t("Get a message when this changes", "変わったときに知らせる")) { (visitor.t("watch", "監視")) } }
        }
    }
}

/// When a block was first seen, with a link to the change that brought it.
fn margin(visitor: &Visitor, url: &CanonicalUrl, block: &BlamedBlock, oldest_s: i64) -> Markup {
    html! {
        div.first {
            @match block.before_s.filter(|_| block.first_s > oldest_s && block.first_s == block.since_s) {
                Some(before) => a href=(diff_link(&visitor.replay, before, block.first_s, url)) { (format::short_time(block.first_s)) },
                None => (format::short_time(block.first_s)),
            }
            @if block.first_s == oldest_s { small { (visitor.t(" or earlier", " 以前")) } }
        }
    }
}
