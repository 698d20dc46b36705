//! `/web/<date><mod>/<url>`: from a request to a version.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{HeaderValue, Response, StatusCode, header},
};
use nenrin_lang::Lang;
use nenrin_urls::CanonicalUrl;

use crate::{
    Capture, Content, ReplayError,
    answer::{self, FRONT_BYTES, Prepared, Preparing, STREAMED_FROM_BYTES, Streamed},
    ask::Ask,
    busters,
    date::{Period, Stamp},
    fences, memento,
    modifier::Modifier,
    origins::Shelf,
    pages::{self, calendar::Calendar, missing::Missing},
    served::{Replay, own_page, plain, redirect},
    stage::Stage,
    target::{self, Target, When, after_prefix},
};

type Answer = Response<Body>;

/// The most characters of a selected text that are passed on.
const MARKED_CHARS_MAX: usize = 300;
/// The most versions in a calendar.
const MAX_CALENDAR: usize = 20_000;
/// URLs of the same site listed on the page for what is missing.
const MAX_NEARBY: usize = 20;
/// URLs listed below a prefix.
const MAX_PREFIX: usize = 1000;

pub(crate) fn answer(replay: &Replay, ask: &Ask) -> Result<Answer, ReplayError> {
    // A worker of an archived page would replace ours and see its requests.
    if ask.header("service-worker").is_some() {
        return Ok(plain(StatusCode::FORBIDDEN, "archived service workers are not started"));
    }
    if replay.origins.is_some() && !fences::may_ask_home(ask) {
        return Ok(plain(StatusCode::FORBIDDEN, "archived pages cannot read other sites"));
    }
    let mut target = Target::parse(ask.rest("/web/"))?;
    target.url = ask.archived(target.url);
    match target.when {
        When::Calendar(_) if target.is_prefix => prefix(replay, ask, &target.url),
        When::Calendar(period) => calendar(replay, ask, &target.url, period),
        When::Latest => latest(replay, ask, &target),
        When::AsOf(period) => as_of(replay, ask, &target, period),
    }
}

/// Without a date: the newest version, or the one for the date in the header (TimeGate).
fn latest(replay: &Replay, ask: &Ask, target: &Target) -> Result<Answer, ReplayError> {
    let wanted = ask.header_str("accept-datetime").map(Stamp::parse_http);
    if wanted == Some(None) {
        return Err(ReplayError::BadParameter {
            name: "Accept-Datetime",
            value: ask.header_str("accept-datetime").unwrap_or_default().chars().take(60).collect(),
            expected: "a date as HTTP writes it, such as Tue, 05 Mar 2024 12:00:00 GMT",
        });
    }
    let wanted_s = wanted.flatten().map(|stamp| stamp.0);
    let at_s = wanted_s.unwrap_or(i64::MAX);
    let Some(found) = replay.choose(&target.url, at_s, target.modifier)? else {
        return missing(replay, ask, target, None);
    };
    // A page that did not change for years is shown as of when it was last seen, so that its parts
    // and the pages it links to are the newest, too.
    let shown_s = match wanted_s {
        Some(_) => found.at_s,
        None => replay.archive.last_seen_s(&found.url)?.unwrap_or(found.at_s).max(found.at_s),
    };
    let to = format!("/web/{}{}/{}", Stamp(shown_s), target.modifier.as_str(), found.url);
    let mut answer = redirect(StatusCode::FOUND, &to);
    memento::gate_headers(replay, ask, &found, answer.headers_mut())?;
    Ok(answer)
}

fn as_of(
    replay: &Replay,
    ask: &Ask,
    target: &Target,
    period: Period,
) -> Result<Answer, ReplayError> {
    let destination = ask.header("sec-fetch-dest");
    let modifier = target.modifier.with_destination(destination);
    let at_s = period.last_s;
    let Some(found) = replay.choose(&target.url, at_s, modifier)? else {
        // A frame gets a short text only: it is part of a page that someone reads.
        if modifier.is_part() || modifier == Modifier::Identity {
            let shown = Shown::new(ask, at_s, modifier, Stage::Shared);
            return missing_part(replay, ask, &target.url, shown);
        }
        if ask.posted.is_some() {
            return Ok(not_allowed(replay, ask));
        }
        return missing(replay, ask, target, Some(at_s));
    };
    if !period.is_full || found.url != target.url || !target.is_tidy {
        let is_in_period = !period.is_full && period.contains(found.at_s);
        let shown_s = if is_in_period { found.at_s } else { at_s };
        let to = format!("/web/{}{}/{}", Stamp(shown_s), target.modifier.as_str(), found.url);
        return Ok(redirect(StatusCode::FOUND, &to));
    }
    // People see it on the origin of its server.
    if let Some(origins) = &replay.origins
        && modifier != Modifier::Identity
        && origins.is_home(ask.host())
        && destination.is_some_and(is_shown_as_document)
    {
        let is_bare = modifier == Modifier::MainPage;
        let shelf = Shelf { at_s, is_bare, server: found.url.server() };
        let to = format!("{}{}", origins.of(&shelf), found.url.path_and_query());
        return Ok(redirect(StatusCode::FOUND, &to));
    }
    if destination == Some(b"document") && modifier.is_page() && may_run_scripts(&found) {
        let page = pages::framed::page(ask, &found, at_s, modifier == Modifier::Page);
        let status = StatusCode::from_u16(found.status).unwrap_or(StatusCode::OK);
        return Ok(own_page(replay, status, &page));
    }
    show(replay, ask, &found, Shown::new(ask, at_s, modifier, Stage::Shared))
}

/// Whether a browser would show it as a page with scripts in it.
fn may_run_scripts(found: &Capture) -> bool {
    let is_markup = ["html", "xml", "svg"].iter().any(|kind| found.mime.contains(kind));
    (is_markup || found.mime.is_empty()) && !(300..400).contains(&found.status)
}

fn is_shown_as_document(destination: &[u8]) -> bool {
    matches!(destination, b"document" | b"iframe" | b"frame" | b"object" | b"embed")
}

/// A page or a part on the origin of its server.
pub(crate) fn on_shelf(replay: &Replay, ask: &Ask, shelf: &Shelf) -> Result<Answer, ReplayError> {
    let path = ask.uri.path_and_query().map_or("/", |p| p.as_str());
    let bad = |source| ReplayError::BadUrl { source };
    let url = ask.archived(shelf.server.url(path).map_err(bad)?);
    let destination = ask.header("sec-fetch-dest");
    let plain_page = if shelf.is_bare { Modifier::MainPage } else { Modifier::Page };
    let modifier = plain_page.with_destination(destination);
    let Some(found) = replay.choose(&url, shelf.at_s, modifier)? else {
        if modifier.is_part() {
            let stage = Stage::Own { is_bare: shelf.is_bare };
            let shown = Shown::new(ask, shelf.at_s, modifier, stage);
            return missing_part(replay, ask, &url, shown);
        }
        if ask.posted.is_some() {
            return Ok(not_allowed(replay, ask));
        }
        let home = replay.origins.as_ref().map(|origins| origins.home()).unwrap_or_default();
        let to = format!("{home}/web/{}{}/{url}", Stamp(shelf.at_s), plain_page.as_str());
        return Ok(redirect(StatusCode::FOUND, &to));
    };
    // A part that was received under http or https, with or without `www.`, is the same part.
    if found.url != url
        && !modifier.is_part()
        && let Some(origins) = &replay.origins
    {
        let shelf = Shelf { server: found.url.server(), ..shelf.clone() };
        let to = format!("{}{}", origins.of(&shelf), found.url.path_and_query());
        return Ok(redirect(StatusCode::FOUND, &to));
    }
    let stage = Stage::Own { is_bare: shelf.is_bare };
    show(replay, ask, &found, Shown::new(ask, shelf.at_s, modifier, stage))
}

/// A part that is not archived under its exact address.
fn missing_part(
    replay: &Replay,
    ask: &Ask,
    url: &CanonicalUrl,
    shown: Shown,
) -> Result<Answer, ReplayError> {
    let missing = || match ask.posted {
        Some(_) => plain(StatusCode::METHOD_NOT_ALLOWED, "this request was not archived"),
        None => plain(StatusCode::NOT_FOUND, "not in the archive"),
    };
    if shown.modifier == Modifier::Identity {
        let file = url.index_file().filter(|_| ask.posted.is_none());
        let found =
            file.map(|file| replay.choose(&file, shown.at_s, shown.modifier)).transpose()?;
        return match found.flatten() {
            Some(found) => show(replay, ask, &found, shown),
            None => Ok(missing()),
        };
    }
    let Some((found, ignored)) = busters::without(replay, url, shown.at_s, shown.modifier)? else {
        return Ok(missing());
    };
    let mut answer = show(replay, ask, &found, shown)?;
    let names: String =
        url::form_urlencoded::byte_serialize(ignored.join(" ").as_bytes()).collect();
    if let Ok(names) = HeaderValue::from_str(&names) {
        answer.headers_mut().insert("x-nenrin-ignored-parameters", names);
    }
    Ok(answer)
}

/// How a version is to be shown.
#[derive(Clone, Copy)]
struct Shown {
    at_s: i64,
    modifier: Modifier,
    is_not_document: bool,
    /// Language of the banner; always the same where there is none.
    lang: Lang,
    stage: Stage,
}

impl Shown {
    fn new(ask: &Ask, at_s: i64, modifier: Modifier, stage: Stage) -> Self {
        let destination = ask.header("sec-fetch-dest");
        Self {
            at_s,
            modifier,
            is_not_document: destination.is_some_and(|to| !is_shown_as_document(to)),
            lang: if modifier == Modifier::Page { ask.lang() } else { Lang::default() },
            stage,
        }
    }
}

fn show(
    replay: &Replay,
    ask: &Ask,
    capture: &Capture,
    shown: Shown,
) -> Result<Answer, ReplayError> {
    let etag = match shown.modifier {
        Modifier::Identity => format!("\"{}\"", capture.version),
        m => format!(
            "\"{}-{}-{}{}-{}{}{}\"",
            capture.version,
            Stamp(shown.at_s),
            m.as_str(),
            u8::from(shown.is_not_document),
            shown.lang.code(),
            REWRITING,
            if shown.stage == Stage::Shared { "" } else { "o" }
        ),
    };
    if answer::is_unchanged(&ask.headers, &etag, capture.at_s) {
        let mut answer = Response::new(Body::empty());
        *answer.status_mut() = StatusCode::NOT_MODIFIED;
        finish(replay, ask, capture, shown, &etag, &mut answer)?;
        return Ok(answer);
    }
    let prepared = prepared(replay, ask, capture, shown)?;
    let mut headers = prepared.headers.clone();
    let mut status = prepared.status;
    let total = prepared.body.as_ref().map_or(capture.body_bytes, |body| body.len() as u64);
    let mut range = 0..total;
    if !prepared.is_rewritten {
        headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        if status == StatusCode::OK {
            (status, range) = answer::serve_range(&ask.headers, &etag, &mut headers, total);
        }
    }
    let body = match &prepared.body {
        // A range of a body in memory fits into its length.
        Some(body) => Body::from(body.slice(range.start as usize..range.end as usize)),
        None => Body::new(Streamed::new(replay.archive.clone(), capture.version, range)),
    };
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    *answer.headers_mut() = headers;
    finish(replay, ask, capture, shown, &etag, &mut answer)?;
    Ok(answer)
}

/// Increased whenever the same version would be rewritten differently, so that no browser keeps an
/// old form.
const REWRITING: u32 = 3;

fn prepared(
    replay: &Replay,
    ask: &Ask,
    capture: &Capture,
    shown: Shown,
) -> Result<Arc<Prepared>, ReplayError> {
    let key = answer::PageKey {
        version: capture.version,
        at_s: shown.at_s,
        modifier: shown.modifier,
        is_not_document: shown.is_not_document,
        lang: shown.lang,
        stage: shown.stage,
    };
    if let Some(page) = replay.cache.get(key) {
        return Ok(page);
    }
    if capture.body_bytes > STREAMED_FROM_BYTES {
        let head = replay.archive.head(capture.version)?;
        let body = replay.archive.read_part(capture.version, 0, FRONT_BYTES)?;
        let content = Content { head, body };
        if let Some(page) = preparing(replay, ask, capture, shown, &content).make_streamed() {
            return Ok(Arc::new(page));
        }
    }
    let content = replay.archive.read(capture.version)?;
    let page = Arc::new(preparing(replay, ask, capture, shown, &content).make());
    if page.is_rewritten {
        replay.cache.put(key, &page);
    }
    Ok(page)
}

fn preparing<'a>(
    replay: &'a Replay,
    ask: &'a Ask,
    capture: &'a Capture,
    shown: Shown,
    content: &'a Content,
) -> Preparing<'a> {
    Preparing {
        capture,
        content,
        at_s: shown.at_s,
        modifier: shown.modifier,
        is_not_document: shown.is_not_document,
        lang: shown.lang,
        accept_encoding: ask.header_str("accept-encoding").unwrap_or_default(),
        options: &replay.options,
        stage: shown.stage,
        origins: replay.origins.as_ref(),
    }
}

/// Headers of every answer with archived content.
fn finish(
    replay: &Replay,
    ask: &Ask,
    capture: &Capture,
    shown: Shown,
    etag: &str,
    answer: &mut Answer,
) -> Result<(), ReplayError> {
    let headers = answer.headers_mut();
    if let Ok(etag) = HeaderValue::from_str(etag) {
        headers.insert(header::ETAG, etag);
    }
    let is_of_date = shown.at_s == capture.at_s;
    let caching = if is_of_date { "max-age=3600" } else { "no-cache" };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    let vary = match shown.modifier {
        Modifier::Page => "accept-encoding, sec-fetch-dest, accept-language, cookie",
        _ => "accept-encoding, sec-fetch-dest",
    };
    headers.insert(header::VARY, HeaderValue::from_static(vary));
    memento::version_headers(replay, ask, capture, shown.modifier, headers)?;
    let is_exact = shown.modifier == Modifier::Identity;
    replay.guard.archived(headers, shown.stage, is_exact);
    match (shown.stage, &replay.origins) {
        (Stage::Own { .. }, Some(origins)) => fences::allow_as_archived(ask, origins, headers),
        _ => fences::allow_parts(ask, headers),
    }
    Ok(())
}

/// A request with a body, or of another kind, to which the archive has no answer.
pub(crate) fn not_allowed(replay: &Replay, ask: &Ask) -> Answer {
    let sentence = (
        "What this form or script sends was not archived: only requests that were recorded have an \
         answer here.",
        "このフォームやスクリプトの送信は保存されていません。記録された送信だけに応答できます。",
    );
    let title = ("This cannot be replayed", "再現できません");
    let page = pages::missing::refusal(ask, title, sentence);
    let mut answer = own_page(replay, StatusCode::METHOD_NOT_ALLOWED, &page);
    answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
    answer
}

fn missing(
    replay: &Replay,
    ask: &Ask,
    target: &Target,
    at_s: Option<i64>,
) -> Result<Answer, ReplayError> {
    let url = &target.url;
    if let Some(index) = index_file(replay, target, at_s)? {
        return Ok(redirect(StatusCode::FOUND, &index));
    }
    if replay.archive.is_closed(url)? {
        let title = ("Access to this page is closed", "このページは公開されていません");
        let sentence = (
            "This page was archived, but its site was removed from view.",
            "このページは保存されましたが、サイトは公開から外されました。",
        );
        let page = pages::missing::refusal(ask, title, sentence);
        return Ok(own_page(replay, StatusCode::FORBIDDEN, &page));
    }
    let is_loop = replay.archive.as_of(&url.key(), i64::MAX)?.is_some();
    let nearby = nearby(replay, url)?;
    let date = at_s.map(|at_s| Stamp(at_s).to_string());
    let page = Missing { ask, url, date, nearby: &nearby, is_loop };
    Ok(own_page(replay, StatusCode::NOT_FOUND, &page.page()))
}

/// Where the index file of a directory is replayed: mirrors imported from a folder have only the
/// file.
fn index_file(
    replay: &Replay,
    target: &Target,
    at_s: Option<i64>,
) -> Result<Option<String>, ReplayError> {
    let Some(file) = target.url.index_file() else { return Ok(None) };
    let found = replay.choose(&file, at_s.unwrap_or(i64::MAX), target.modifier)?;
    Ok(found.map(|found| {
        let stamp = Stamp(at_s.unwrap_or(found.at_s));
        format!("/web/{stamp}{}/{}", target.modifier.as_str(), found.url)
    }))
}

/// Archived URLs in the directory of a URL, then anywhere on its host.
fn nearby(replay: &Replay, url: &CanonicalUrl) -> Result<Vec<CanonicalUrl>, ReplayError> {
    let key = url.key();
    let key = key.as_str();
    let directory = key.rfind('/').map_or(key, |slash| &key[..=slash]);
    let host = key.find(')').map_or(key, |end| &key[..=end]);
    let mut found = replay.archive.urls(directory, &after_prefix(directory), MAX_NEARBY)?;
    if found.len() < MAX_NEARBY {
        for each in replay.archive.urls(host, &after_prefix(host), MAX_NEARBY)? {
            if !found.contains(&each) && found.len() < MAX_NEARBY {
                found.push(each);
            }
        }
    }
    Ok(found)
}

fn prefix(replay: &Replay, ask: &Ask, url: &CanonicalUrl) -> Result<Answer, ReplayError> {
    let key = url.key();
    // The key of a directory has no slash at its end, but the keys below it do.
    let is_directory = url.path().ends_with('/') && url.path() != "/";
    let from = if is_directory { format!("{key}/") } else { key.as_str().to_owned() };
    let urls = replay.archive.urls(&from, &after_prefix(&from), MAX_PREFIX)?;
    let page = pages::calendar::prefix_list(ask, url, &urls, urls.len() == MAX_PREFIX);
    Ok(own_page(replay, StatusCode::OK, &page))
}

fn calendar(
    replay: &Replay,
    ask: &Ask,
    url: &CanonicalUrl,
    period: Option<Period>,
) -> Result<Answer, ReplayError> {
    // A year shows itself among all versions; a longer period shows only its own.
    let years = period.map(|p| (Stamp(p.first_s).civil().year, Stamp(p.last_s).civil().year));
    let (from_s, to_s) = match period {
        Some(period) if years.is_some_and(|(first, last)| first != last) => {
            (period.first_s, period.last_s)
        }
        _ => (i64::MIN, i64::MAX),
    };
    let captures = replay.archive.versions(&url.key(), from_s, to_s, MAX_CALENDAR)?;
    if captures.is_empty() {
        let target = Target {
            when: When::Latest,
            modifier: Modifier::Page,
            url: url.clone(),
            is_tidy: true,
            is_prefix: false,
        };
        return missing(replay, ask, &target, None);
    }
    let calendar = Calendar {
        ask,
        url: &captures.last().map_or(url, |c| &c.url).clone(),
        captures: &captures,
        year: period.map(|p| Stamp(p.first_s).civil().year),
        is_cut: captures.len() == MAX_CALENDAR,
    };
    Ok(own_page(replay, StatusCode::OK, &calendar.page()))
}

/// The date and address of the banner's form.
pub(crate) fn go(_: &Replay, ask: &Ask) -> Result<Answer, ReplayError> {
    let digits: String = ask.value("date").chars().filter(char::is_ascii_digit).collect();
    let (url, _) = target::archived_url(&ask.value("url"))?;
    let date = if Period::parse(&digits).is_some() { digits } else { "*".to_owned() };
    Ok(redirect(StatusCode::SEE_OTHER, &format!("/web/{date}/{url}")))
}

/// What is recorded about a page: in the interface, where that is known.
pub(crate) fn record(_: &Replay, ask: &Ask) -> Result<Answer, ReplayError> {
    let (url, _) = target::archived_url(ask.rest("/_nenrin/record/"))?;
    let to = pages::record_link(ask, &url).unwrap_or_else(|| format!("/web/*/{url}"));
    Ok(redirect(StatusCode::SEE_OTHER, &to))
}

/// The interface's form to watch a part of a page, filled with the text that was selected.
pub(crate) fn watch(_: &Replay, ask: &Ask) -> Result<Answer, ReplayError> {
    let (url, _) = target::archived_url(&ask.value("url"))?;
    let text: String = ask.value("text").chars().take(MARKED_CHARS_MAX).collect();
    let to = pages::watch_link(ask, &url, &text).unwrap_or_else(|| format!("/web/*/{url}"));
    Ok(redirect(StatusCode::SEE_OTHER, &to))
}

/// The first page: an address to open, and the interface's search.
pub(crate) fn front(replay: &Replay, ask: &Ask) -> Result<Answer, ReplayError> {
    if let Some(url) = ask.uri.query().and_then(|query| query.strip_prefix("url=")) {
        let url = target::unescape(&url.replace('+', " "));
        let (url, _) = target::archived_url(url.trim())?;
        return Ok(redirect(StatusCode::SEE_OTHER, &format!("/web/*/{url}")));
    }
    let mut answer = own_page(replay, StatusCode::OK, &pages::front::page(ask));
    if let Some(interface) = &ask.interface {
        replay.guard.allow_form(answer.headers_mut(), interface);
    }
    Ok(answer)
}

/// A path outside the archive's paths. If a replayed page requested it, the page meant its own
/// server.
pub(crate) fn escaped(replay: &Replay, ask: &Ask) -> Result<Answer, ReplayError> {
    let referring = ask.header_str("referer").and_then(|r| {
        let (_, rest) = r.split_once("/web/")?;
        Target::parse(rest).ok()
    });
    let path = ask.uri.path_and_query().map_or("/", |p| p.as_str());
    if let Some(Target { when: When::AsOf(period), modifier, url, .. }) = referring
        && let Ok((url, _)) = target::archived_url(&format!("{}{path}", url.server()))
    {
        let modifier = if modifier.is_page() { modifier } else { Modifier::MainPage };
        let to = format!("/web/{}{}/{url}", Stamp(period.last_s), modifier.as_str());
        return Ok(redirect(StatusCode::TEMPORARY_REDIRECT, &to));
    }
    let page = pages::missing::refusal(
        ask,
        ("Nothing is here", "ここには何もありません"),
        (
            "Archived pages are at /web/<date>/<url>, all versions of one at /web/*/<url>.",
            "保存したページは /web/<日付>/<URL>、すべての版は /web/*/<URL> にあります。",
        ),
    );
    Ok(own_page(replay, StatusCode::NOT_FOUND, &page))
}
