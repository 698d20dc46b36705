//! Lab reports: a list, and each as it was written, without scripts.

use std::{
    fs,
    path::{Path, PathBuf},
};

use axum::{
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use maud::html;

use crate::{
    WebApp, WebError, format,
    layout::{self, Menu},
    visitor::Visitor,
};

const REPORT_FILE: &str = "report.html";
const RESULTS_FILE: &str = "results.json";
/// The most reports listed.
const MAX_LISTED: usize = 500;
/// Reports are some hundred kilobytes; a larger file is not a report.
const MAX_BYTES: u64 = 32 << 20;
/// A report may use its own inline style and nothing else.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

struct Listed {
    name: String,
    bytes: u64,
    modified_s: i64,
}

/// Names that stay inside the folder.
fn is_plain(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && name.len() <= 100 && !name.starts_with('.') && name.chars().all(is_plain)
}

fn listed(folder: &Path) -> Vec<Listed> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_LISTED);
    let mut found: Vec<Listed> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok().filter(|name| is_plain(name))?;
            let file = fs::metadata(entry.path().join(REPORT_FILE)).ok()?;
            let modified = file.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
            let modified_s = i64::try_from(modified.as_secs()).ok()?;
            Some(Listed { name, bytes: file.len(), modified_s })
        })
        .collect();
    found.sort_by(|a, b| (b.modified_s, &a.name).cmp(&(a.modified_s, &b.name)));
    found
}

pub(crate) fn list(app: &WebApp, visitor: &Visitor) -> Response {
    let t = |en, ja| visitor.t(en, ja);
    let reports = app.options.reports.as_deref().map(listed).unwrap_or_default();
    let title = t("Lab reports", "実験レポート");
    let content = html! {
        div.heading { h1 { (title) } }
        p.muted {
            (t(
                "Experiments with the program's own code: which page first, when to visit again, which parts changed.",
                "実際のコードによる実験：どのページを先に、いつ再び、どの部分が変わるか。",
            ))
        }
        @if reports.is_empty() {
            section.card {
                p { (t("There is none yet. This command writes one here:", "まだありません。次のコマンドで作成できます。")) }
                pre { code { "nenrin lab order --synthetic 10000 --out " (reports_folder(app)) "/order" } }
            }
        } @else {
            section.card.wide {
                div.scroll { table.cards {
                    thead { tr { th { (t("Report", "レポート")) } th { (t("Written", "作成")) } th.number { (t("Size", "大きさ")) } th { (t("Numbers", "数値")) } } }
                    tbody {
                        @for report in &reports {
                            tr {
                                td { a href=(format!("/lab/{}", report.name)) { (report.name) } }
                                td { (format::time(report.modified_s)) }
                                td.number data-label=(t("Size", "大きさ")) { (format::bytes(report.bytes)) }
                                td { a href=(format!("/lab/{}/results", report.name)) { "JSON" } }
                            }
                        }
                    }
                } }
            }
        }
    };
    layout::page(visitor, Menu::Lab, title, content)
}

fn reports_folder(app: &WebApp) -> String {
    app.options.reports.as_ref().map_or("DIR".to_owned(), |folder| folder.display().to_string())
}

fn read(app: &WebApp, name: &str, file: &str) -> Result<Vec<u8>, WebError> {
    let missing = || WebError::not_found("such report");
    let folder = app.options.reports.as_ref().filter(|_| is_plain(name)).ok_or_else(missing)?;
    let path: PathBuf = folder.join(name).join(file);
    let is_small =
        fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() <= MAX_BYTES);
    if !is_small {
        return Err(missing());
    }
    fs::read(&path).map_err(|_| missing())
}

pub(crate) fn report(app: &WebApp, visitor: &Visitor, name: &str) -> Result<Response, WebError> {
    let report = with_way_back(read(app, name, REPORT_FILE)?, visitor);
    let mut answer = report.into_response();
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    Ok(answer)
}

/// A report is a page of its own without links; this adds a link to the list.
fn with_way_back(mut report: Vec<u8>, visitor: &Visitor) -> Vec<u8> {
    const CONTENT: &[u8] = b"<main>";
    let begins = report.windows(CONTENT.len()).position(|bytes| bytes == CONTENT);
    if let Some(at) = begins.map(|at| at + CONTENT.len()) {
        let link =
            html! { p { a href="/lab" { "← " (visitor.t("Lab reports", "実験レポート")) } } };
        report.splice(at..at, link.0.into_bytes());
    }
    report
}

pub(crate) fn results(app: &WebApp, name: &str) -> Result<Response, WebError> {
    let mut answer = read(app, name, RESULTS_FILE)?.into_response();
    let json = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(header::CONTENT_TYPE, json);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_none() {
        for name in ["", ".", "..", "a/b", "a\\b", ".hidden", "a b", "日本"] {
            assert!(!is_plain(name), "{name}");
        }
        assert!(is_plain("order-2026.1"));
    }
}
