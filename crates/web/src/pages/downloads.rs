//! Downloads: choosing one, its progress, and the file.

use std::io::Read;

use axum::{
    body::{Body, Bytes},
    http::{StatusCode, header},
    response::{Html, IntoResponse, Redirect, Response},
};
use futures_util::stream;
use maud::{Markup, html};
use nenrin_archive::Download;
use nenrin_lang::Lang;
use nenrin_state::Site;
use nenrin_urls::CanonicalUrl;
use tokio::sync::mpsc;

use super::site;
use crate::{
    WebApp, WebError,
    downloads::{Downloads, Job, Progress},
    format,
    guard::{Fields, Shared},
    layout::{self, Menu},
    visitor::Visitor,
};

/// Parts of a file that may wait for a slow reader.
const WAITING: usize = 4;
const PART_BYTES: usize = 256 << 10;

pub(crate) fn list(
    shared: &Shared,
    visitor: &Visitor,
    query: &Fields,
) -> Result<Response, WebError> {
    let t = |en, ja| visitor.t(en, ja);
    if query.get("part") == "list" {
        return Ok(Html(jobs(visitor, &shared.downloads).into_string()).into_response());
    }
    let title = t("Downloads", "ダウンロード");
    let sites: Vec<Site> =
        shared.app.state.sites()?.into_iter().filter(|site| site.removed.is_none()).collect();
    let content = html! {
        h1 { (title) }
        p.lead { (t(
            "A site or a page as one file. It is written in the background; come back when it is ready. Files are deleted after a day.",
            "サイトやページを1つのファイルにします。作成は裏で進みます。ファイルは1日後に削除されます。",
        )) }
        div data-live="/downloads?part=list" data-every="2" { (jobs(visitor, &shared.downloads)) }
        @if visitor.is_admin() {
            @if sites.is_empty() {
                p.muted { (t("There are no sites yet.", "まだサイトがありません。")) " " a href="/sites/new" { (t("Add a site", "サイトを追加")) } }
            } @else { (site_form(visitor, &sites, query)) }
            (page_form(visitor, query))
        }
    };
    Ok(layout::page(visitor, Menu::None, title, content))
}

fn jobs(visitor: &Visitor, downloads: &Downloads) -> Markup {
    let all = downloads.all();
    html! {
        @if !all.is_empty() {
            ul.plain.jobs { @for job in &all { (job_line(visitor, job)) } }
        }
    }
}

fn job_line(visitor: &Visitor, job: &Job) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    html! {
        li.card {
            strong { bdi { (job.name) } } " "
            span.muted { (format::short_time(job.began_s)) } " "
            @match job.progress() {
                Progress::Ready { bytes } => {
                    a.button.primary href=(format!("/downloads/{}/file", job.id)) download=(job.name) { (t("Download", "ダウンロード")) " (" (format::bytes(bytes)) ")" }
                }
                Progress::Failed { reason } => { p.bad role="alert" { (t("Failed: ", "失敗：")) (reason) } }
                Progress::Writing { all: 0, .. } => { span { (t("being written …", "作成中…")) } }
                Progress::Writing { done, all } => {
                    progress max=(all) value=(done.min(all)) aria-label=(t("progress", "進み具合")) {}
                    span { @match visitor.lang {
                        Lang::En => { (format::number(done)) " of " (format::number(all)) " pages" }
                        Lang::Ja => { (format::number(all)) " ページ中 " (format::number(done)) " ページ" }
                    } }
                }
            }
        }
    }
}

fn site_form(visitor: &Visitor, sites: &[Site], query: &Fields) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let today = format::date(visitor.now_s);
    html! {
        section.card {
            h2 { (t("A site", "サイト")) }
            form.sheet method="post" action="/downloads" {
                (layout::token(visitor))
                div.row {
                    div.field { label for="site" { (t("Site", "サイト")) }
                        select #site name="site" { @for site in sites.iter().take(1_000) { option value=(site.id.0) selected[query.number("site") == Some(site.id.0)] { (site.name) } } } }
                    div.field { label for="kind" { (t("As", "形式")) }
                        select #kind name="kind" {
                            option value="wacz" { (t("WACZ: for web archive viewers", "WACZ：ウェブアーカイブ閲覧用")) }
                            option value="warc" { (t("WARC: every version and visit", "WARC：すべての版と訪問")) }
                            option value="mirror" { (t("ZIP of files, as of one date", "ZIP：ある日付のファイル一式")) }
                        } }
                }
                div.row {
                    div.field { label for="from" { (t("From (WACZ, WARC)", "開始日（WACZ・WARC）")) } input #from type="date" name="from" value=(query.get("from")); }
                    div.field { label for="to" { (t("Until, or as of", "終了日・指定日")) } input #to type="date" name="to" value=(query.some("to").unwrap_or(&today)); }
                }
                div.actions { button.primary { (t("Make the file", "ファイルを作る")) } }
            }
        }
    }
}

fn page_form(visitor: &Visitor, query: &Fields) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let today = format::date(visitor.now_s);
    html! {
        section.card {
            h2 { (t("A single page", "1ページ")) }
            p.hint { (t("One HTML file with its images, styles and fonts in it, without scripts. It opens in any browser, without internet.", "画像・スタイル・フォントを含み、スクリプトを除いた1つのHTMLファイルです。どのブラウザーでもオフラインで開けます。")) }
            form.sheet method="post" action="/downloads" {
                (layout::token(visitor))
                input type="hidden" name="kind" value="page";
                div.row {
                    div.field { label for="url" { (t("Page", "ページ")) } input #url name="url" value=(query.get("url")) placeholder="https://example.org/" autocomplete="off" spellcheck="false"; }
                    div.field { label for="at" { (t("As of", "日付")) } input #at type="date" name="at" value=(query.some("at").unwrap_or(&today)); }
                }
                div.actions { button.primary { (t("Make the file", "ファイルを作る")) } }
            }
        }
    }
}

/// Begins a download.
pub(crate) fn begin(
    shared: &Shared,
    visitor: &Visitor,
    fields: &Fields,
) -> Result<Response, WebError> {
    let (what, name) = wanted(&shared.app, fields)?;
    shared.downloads.begin(&shared.app.control, what, name, visitor.now_s)?;
    Ok(Redirect::to("/downloads").into_response())
}

fn wanted(app: &WebApp, fields: &Fields) -> Result<(Download, String), WebError> {
    let bad = |what: &str, reason: &str| WebError::BadParameter {
        what: what.into(),
        reason: reason.into(),
    };
    // The last second of a day, so that the day is included.
    let time = |name: &str| match fields.some(name) {
        None => Ok(None),
        Some(text) => format::parse_date(text).map(Some).ok_or_else(|| bad(name, "is not a date")),
    };
    if fields.get("kind") == "page" {
        let url = CanonicalUrl::parse_typed(fields.get("url"))
            .map_err(|error| bad("url:", &error.to_string()))?;
        let url = nenrin_archive::stored_url(&*app.state, url)?;
        if app.state.version_as_of(&url.key(), i64::MAX)?.is_none() {
            return Err(WebError::not_found(format!("version of {url}")));
        }
        let at_s = time("at")?.unwrap_or(i64::MAX);
        let name = file_name(&format!("{}{}", url.host(), url.path()));
        let what = Download::Page { url, at_s };
        let name = format!("{name}.{}", what.extension());
        return Ok((what, name));
    }
    let site = site::find(app, fields.get("site"))?;
    let from_s = time("from")?.map_or(i64::MIN, |at_s| at_s - format::DAY_S + 1);
    let to_s = time("to")?.unwrap_or(i64::MAX);
    let what = match fields.get("kind") {
        "wacz" => Download::Wacz { site: site.id, range: (from_s, to_s) },
        "warc" => Download::Warc { site: site.id, range: (from_s, to_s) },
        "mirror" => Download::Mirror { site: site.id, at_s: to_s },
        _ => return Err(bad("kind", "is none of wacz, warc, mirror and page")),
    };
    let name = format!("{}.{}", file_name(&site.name), what.extension());
    Ok((what, name))
}

/// A name that every system takes.
fn file_name(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || ".-_".contains(c) { c } else { '_' };
    let name: String = text.chars().take(80).map(plain).collect();
    name.trim_matches(['.', '_']).to_owned()
}

/// The file, read while it is sent.
pub(crate) fn file(job: &Job) -> Result<Response, WebError> {
    let Progress::Ready { bytes } = job.progress() else {
        return Err(WebError::not_found("file yet: it is still being written"));
    };
    let mut file = std::fs::File::open(job.path())
        .map_err(|_| WebError::not_found("file any more: make it again"))?;
    let (sender, mut parts) = mpsc::channel::<std::io::Result<Bytes>>(WAITING);
    std::thread::spawn(move || {
        loop {
            let mut part = vec![0; PART_BYTES];
            match file.read(&mut part) {
                Ok(0) => return,
                Ok(length) => {
                    part.truncate(length);
                    if sender.blocking_send(Ok(part.into())).is_err() {
                        return;
                    }
                }
                Err(error) => {
                    let _ = sender.blocking_send(Err(error));
                    return;
                }
            }
        }
    });
    let headers = [
        (header::CONTENT_TYPE, job.what.mime().to_owned()),
        (header::CONTENT_LENGTH, bytes.to_string()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{}\"", job.name)),
        // Archived content never runs on this origin, even where a browser opens the file.
        (header::CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'".to_owned()),
    ];
    let body = Body::from_stream(stream::poll_fn(move |context| parts.poll_recv(context)));
    Ok((StatusCode::OK, headers, body).into_response())
}
