//! Removed sites with reasons, and restoring them.

use axum::{
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use maud::{Markup, html};
use nenrin_state::{Removal, RemovalRow, Site, SiteId};

use super::{overview, removal};
use crate::{
    WebApp, WebError, format,
    guard::Fields,
    layout::{self, Menu},
    visitor::Visitor,
};

/// Rows of the log that are shown.
const ROWS_SHOWN: usize = 500;

pub(crate) fn list(app: &WebApp, visitor: &Visitor) -> Result<Response, WebError> {
    let t = |en, ja| visitor.t(en, ja);
    let mut sites = app.state.sites()?;
    let rows = app.state.removals()?;
    let names: Vec<(SiteId, String)> = sites.iter().map(|s| (s.id, s.name.clone())).collect();
    sites.retain(|site| site.removed.is_some());
    let title = t("Removed sites", "削除したサイト");
    let content = html! {
        h1 { (title) }
        @if sites.is_empty() {
            p.muted { (t("No sites are removed.", "現在、削除されているサイトはありません。")) }
        } @else {
            ul.plain.removed { @for site in &sites { (removed(visitor, site)) } }
        }
        @if !rows.is_empty() { (log(visitor, &rows, &names)) }
    };
    Ok(layout::page(visitor, Menu::None, title, content))
}

fn removed(visitor: &Visitor, site: &Site) -> Markup {
    html! {
        li {
            a href=(format!("/sites/{}", site.id.0)) { bdi { (site.name) } } " "
            (overview::state_badge(visitor, site)) " "
            (restore_link(visitor, site))
        }
    }
}

/// A link for restoring, for those who may do it; a deleted site has none.
pub(crate) fn restore_link(visitor: &Visitor, site: &Site) -> Markup {
    let is_kept = matches!(site.removed, Some(Removal::Hide | Removal::Deny));
    html! {
        @if is_kept && visitor.is_admin() {
            a.button href=(format!("/sites/{}/restore", site.id.0)) { (visitor.t("Restore…", "元に戻す…")) }
        }
    }
}

fn log(visitor: &Visitor, rows: &[RemovalRow], names: &[(SiteId, String)]) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let name = |id| names.iter().find(|(site, _)| *site == id).map_or("", |(_, name)| name);
    let what = |removal| match removal {
        None => t("restored", "元に戻した"),
        Some(Removal::Hide) => t("hidden", "非表示"),
        Some(Removal::Deny) => t("access denied", "閲覧停止"),
        Some(Removal::Delete) => t("deleted", "削除済み"),
    };
    html! {
        section {
            h2 { (t("Log of removals", "記録")) }
            div.scroll { table.cards {
                thead { tr {
                    th scope="col" { (t("When", "日時")) }
                    th scope="col" { (t("Site", "サイト")) }
                    th scope="col" { (t("What", "操作")) }
                    th scope="col" { (t("Reason", "理由")) }
                } }
                tbody { @for row in rows.iter().take(ROWS_SHOWN) {
                    tr {
                        td { (format::time(row.at_s)) }
                        td { a href=(format!("/sites/{}", row.site.0)) { bdi { (name(row.site)) } } }
                        td.nw { (what(row.removal)) }
                        td { bdi { (row.reason) } }
                    }
                } }
            } }
        }
    }
}

/// Asks for the reason of restoring a site.
pub(crate) fn ask(visitor: &Visitor, site: &Site, typed: &str, problem: Option<&str>) -> Response {
    let t = |en, ja| visitor.t(en, ja);
    let title = format!("{} – {}", t("Restore", "元に戻す"), site.name);
    let content = html! {
        section.narrow {
            h1 { (t("Restore ", "元に戻す：")) bdi { (site.name) } }
            p.lead { (t(
                "It is listed again and its versions can be opened. It stays paused until you resume it.",
                "再び一覧に表示され、版を開けるようになります。再開するまで収集は停止したままです。",
            )) }
            form.sheet method="post" action=(format!("/sites/{}/restore", site.id.0)) {
                (layout::token(visitor))
                div.field.wrong[problem.is_some()] {
                    label for="reason" { (t("Reason", "理由")) }
                    input #reason name="reason" value=(typed) autocomplete="off" autofocus aria-describedby="reason-error";
                    @if let Some(text) = problem { p.error #reason-error role="alert" { (text) } }
                }
                div.actions {
                    button.primary { (t("Restore", "元に戻す")) }
                    a href="/removals" { (t("Cancel", "やめる")) }
                }
            }
        }
    };
    let mut response = layout::page(visitor, Menu::None, &title, content);
    if problem.is_some() {
        *response.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
    }
    response
}

pub(crate) fn restore(
    app: &WebApp,
    visitor: &Visitor,
    site: &Site,
    fields: &Fields,
) -> Result<Response, WebError> {
    let typed = fields.get("reason");
    let Some(reason) = removal::reason(typed) else {
        return Ok(ask(visitor, site, typed, Some(removal::say_why(visitor))));
    };
    restore_site(app, site, reason, visitor.now_s)?;
    Ok(Redirect::to(&format!("/sites/{}?note=restored", site.id.0)).into_response())
}

pub(crate) fn restore_site(
    app: &WebApp,
    site: &Site,
    reason: &str,
    now_s: i64,
) -> Result<(), WebError> {
    if site.removed.is_none() {
        return Err(WebError::not_found(format!("removal of site number {} to undo", site.id.0)));
    }
    app.state.remove_site(site.id, None, reason, now_s)?;
    app.control.sites_changed();
    Ok(())
}
