//! Removing a site: in which of three ways, and why.

use axum::{
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use maud::{Markup, html};
use nenrin_state::{Removal, Site};

use crate::{
    WebApp, WebError,
    form::MAX_REASON_CHARS,
    guard::Fields,
    layout::{self, Menu},
    visitor::Visitor,
};

/// The typed reason, if there is one.
pub(crate) fn reason(typed: &str) -> Option<&str> {
    let reason = typed.trim();
    (!reason.is_empty() && reason.chars().count() <= MAX_REASON_CHARS).then_some(reason)
}

pub(crate) fn say_why(visitor: &Visitor) -> &'static str {
    visitor.lang.t("Write the reason; it is stored.", "理由を書いてください（記録されます）。")
}

pub(crate) fn ask(
    app: &WebApp,
    visitor: &Visitor,
    site: &Site,
    typed: &Fields,
    problems: &[(&str, &str)],
) -> Response {
    let t = |en, ja| visitor.t(en, ja);
    let title = format!("{} – {}", t("Remove", "削除"), site.name);
    let wrong = |field| problems.iter().find(|(at, _)| *at == field).map(|(_, text)| text);
    let content = html! {
        section.narrow {
            h1 { (t("Remove ", "削除：")) bdi { (site.name) } }
            p.lead { (t("Removing can mean three things. Each is logged with its reason.", "「削除」には三つの意味があります。いずれも理由とともに記録されます。")) }
            form.sheet method="post" action=(format!("/sites/{}/remove", site.id.0)) {
                (layout::token(visitor))
                fieldset.choices {
                    legend.sr { (t("Which removal", "削除の種類")) }
                    @for removal in Removal::ALL { (choice(app, visitor, removal, typed.get("removal"))) }
                    @if let Some(text) = wrong("removal") { p.error role="alert" { (text) } }
                }
                div.field.wrong[wrong("reason").is_some()] {
                    label for="reason" { (t("Reason", "理由")) }
                    input #reason name="reason" value=(typed.get("reason")) autocomplete="off" aria-describedby="reason-error";
                    @if let Some(text) = wrong("reason") { p.error #reason-error role="alert" { (text) } }
                }
                div.field.wrong[wrong("confirm").is_some()] data-only-for="removal" data-only-value="delete" {
                    label for="confirm" { (t("To delete from storage, type the site's name", "保存領域から消すには、サイト名を入力してください")) }
                    input #confirm name="confirm" value=(typed.get("confirm")) autocomplete="off" aria-describedby="confirm-error";
                    @if let Some(text) = wrong("confirm") { p.error #confirm-error role="alert" { (text) } }
                }
                div.actions {
                    button.danger { (t("Remove", "削除する")) }
                    a href=(format!("/sites/{}", site.id.0)) { (t("Cancel", "やめる")) }
                }
            }
        }
    };
    let mut response = layout::page(visitor, Menu::None, &title, content);
    if !problems.is_empty() {
        *response.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
    }
    response
}

fn choice(app: &WebApp, visitor: &Visitor, removal: Removal, chosen: &str) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let (name, what) = match removal {
        Removal::Hide => (
            t("Hide from lists", "一覧から隠す"),
            t(
                "Collecting stops and the site is no longer listed. Its versions can still be opened.",
                "収集を止め、一覧に表示しません。保存済みの版は引き続き開けます。",
            ),
        ),
        Removal::Deny => (
            t("Deny access", "閲覧を止める"),
            t(
                "Nobody can open its versions any more. They stay stored and can be restored.",
                "版を誰も開けなくなります。保存はされており、元に戻せます。",
            ),
        ),
        Removal::Delete => (
            t("Delete from storage", "保存領域から消す"),
            t(
                "Its content is deleted for ever, except what other sites share.",
                "他のサイトと共有する部分を除き、内容を永久に消します。",
            ),
        ),
    };
    let possible = app.control.removals().contains(&removal);
    html! {
        label.check {
            input type="radio" name="removal" value=(removal.as_str()) checked[chosen == removal.as_str()] disabled[!possible];
            span {
                strong { (name) } br;
                span.muted { (what) @if !possible { " " (t("`nenrin serve` only shows; start `nenrin run` to remove a site.", "`nenrin serve` は表示だけです。削除するには `nenrin run` を起動してください。")) } }
            }
        }
    }
}

pub(crate) fn remove(
    app: &WebApp,
    visitor: &Visitor,
    site: &Site,
    fields: &Fields,
) -> Result<Response, WebError> {
    let t = |en, ja| visitor.t(en, ja);
    let chosen = Removal::ALL.into_iter().find(|removal| removal.as_str() == fields.get("removal"));
    let reason = reason(fields.get("reason"));
    let is_named = fields.get("confirm").trim() == site.name;
    let mut problems = Vec::new();
    if chosen.is_none() {
        problems.push(("removal", t("Choose one of these.", "いずれかを選んでください。")));
    }
    if reason.is_none() {
        problems.push(("reason", say_why(visitor)));
    }
    if chosen == Some(Removal::Delete) && !is_named {
        problems.push(("confirm", t("This is not the site's name.", "サイト名が一致しません。")));
    }
    match (chosen, reason) {
        (Some(removal), Some(reason)) if problems.is_empty() => {
            app.control.remove(site.id, removal, reason)?;
            app.control.sites_changed();
            Ok(Redirect::to("/?note=removed").into_response())
        }
        _ => Ok(ask(app, visitor, site, fields, &problems)),
    }
}
