//! The API for people: every operation with its parameters, to read and to try out.

use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use super::{
    routes::{ROUTES, Route},
    schemas::schemas,
};
use crate::{
    layout::{self, Menu},
    visitor::Visitor,
};

pub(crate) fn page(visitor: &Visitor) -> Response {
    let t = |en, ja| visitor.t(en, ja);
    let title = t("For programs", "プログラム向け");
    let schemas = schemas();
    let content = html! {
        h1 { (title) }
        p.lead { (t(
            "Everything that this interface shows and does is also an API. Try each operation below.",
            "この画面でできることは、すべてAPIでもできます。以下で試せます。",
        )) }
        section.card {
            dl.facts {
                dt { "OpenAPI" } dd { a href="/api/v1/openapi.json" { "/api/v1/openapi.json" } " – " (t("the description for tools", "ツール用の記述")) }
                dt { (t("Password", "パスワード")) } dd { (t("HTTP Basic with any user name, if the archive has a password", "アーカイブにパスワードがある場合はHTTP Basic（ユーザー名は任意）")) }
                dt { (t("Changes", "変更")) } dd { (t("are sent as application/json", "application/json で送信します")) }
                dt { (t("Times", "時刻")) } dd { (t("are seconds since 1970, UTC", "1970年からの秒数（UTC）")) }
            }
        }
        (feeds(visitor))
        @for (tag, routes) in groups() {
            section {
                h2 { (tag) }
                @for route in routes { (operation(visitor, route, &schemas)) }
            }
        }
    };
    layout::page(visitor, Menu::None, title, content)
}

/// The feed and the metrics in words.
fn feeds(visitor: &Visitor) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    html! {
        section.card {
            h2 { (t("Feed and metrics", "フィードとメトリクス")) }
            dl.facts {
                dt { a href="/feed.atom" { "/feed.atom" } } dd { (t("Atom: the newest changes, incidents and reports of watches. Put its address into your feed reader. ?site=1 is one site, ?watches=1 only watches.", "Atom形式：最新の変更・お知らせ・監視の報告。フィードリーダーに登録してください。?site=1 で1サイト、?watches=1 で監視だけ。")) }
                dt { a href="/metrics" { "/metrics" } } dd { (t("Numbers for Prometheus: visits, versions, bytes, queues, rates of change. Every name has an explanation beside it.", "Prometheus用の数値：訪問、版、バイト数、待ち行列、変更頻度。各項目に説明があります。")) }
            }
        }
    }
}

/// The operations by the first word of their path, in the order of the table.
fn groups() -> Vec<(&'static str, Vec<&'static Route>)> {
    let mut groups: Vec<(&str, Vec<&Route>)> = Vec::new();
    for route in ROUTES {
        let tag = route.path.trim_start_matches('/').split('/').next().unwrap_or_default();
        match groups.iter_mut().find(|(known, _)| *known == tag) {
            Some((_, routes)) => routes.push(route),
            None => groups.push((tag, vec![route])),
        }
    }
    groups
}

fn operation(visitor: &Visitor, route: &Route, schemas: &Value) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let has_id = route.path.contains("{id}");
    let id = |name: &str| format!("{}-{name}", route.id);
    let pretty = |name: &str| serde_json::to_string_pretty(&schemas[name]).unwrap_or_default();
    html! {
        details.fold.operation {
            summary { code class=(format!("method m-{}", route.method)) { (route.method) } " " code { "/api/v1" (route.path) } " " span.muted { (route.summary) } }
            form data-try=(route.path) data-method=(route.method) method="get" action=(format!("/api/v1{}", route.path)) {
                @if has_id {
                    div.field { label for=(id("id")) { "id " span.muted { (t("required", "必須")) } } input id=(id("id")) name="{id}" inputmode="numeric" value="1"; }
                }
                @for (name, kind, is_required) in route.query {
                    div.field {
                        label for=(id(name)) { (name) " " span.muted { (kind) @if *is_required { ", " (t("required", "必須")) } } }
                        input id=(id(name)) name=(name) autocomplete="off";
                    }
                }
                @if let Some(body) = route.body {
                    div.field {
                        label for=(id("body")) { (t("Body (JSON)", "本文（JSON）")) }
                        textarea id=(id("body")) name="body" rows="5" spellcheck="false" { "\n{}" }
                    }
                    details.numbers { summary { (t("What it may contain", "書ける内容")) } pre tabindex="0" { (pretty(body)) } }
                }
                @if let Some(answer) = route.answer { details.numbers { summary { (t("What the answer contains", "応答の内容")) } pre tabindex="0" { (pretty(answer)) } } }
                p.actions { button { (t("Try it", "試す")) } }
                pre.answer tabindex="0" aria-live="polite" hidden {}
            }
        }
    }
}
