//! What all pages share: the frame, the logo, small parts.

use axum::response::{Html, IntoResponse, Response};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use nenrin_lang::Lang;
use nenrin_state::{IncidentKind, Outcome, PageRecord};
use nenrin_urls::CanonicalUrl;

use crate::{WebError, app::replay_link, format, pages::search::search_box, visitor::Visitor};

/// Rings of a tree: the mark of the program.
pub(crate) const LOGO: &str = include_str!("../assets/logo.svg");

/// The menu entry of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Menu {
    Sites,
    Changes,
    Add,
    Watches,
    Log,
    Lab,
    None,
}

pub(crate) fn page(visitor: &Visitor, menu: Menu, title: &str, content: Markup) -> Response {
    page_refreshed(visitor, menu, title, content, false)
}

/// A page that browsers without scripts load again every few seconds, if `refreshed`.
pub(crate) fn page_refreshed(
    visitor: &Visitor,
    menu: Menu,
    title: &str,
    content: Markup,
    refreshed: bool,
) -> Response {
    Html(frame(visitor, menu, title, content, refreshed).into_string()).into_response()
}

fn frame(visitor: &Visitor, menu: Menu, title: &str, content: Markup, refreshed: bool) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    html! {
        (DOCTYPE)
        html lang=(visitor.lang.code()) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Nenrin" }
                link rel="icon" href="/assets/logo.svg" type="image/svg+xml";
                link rel="stylesheet" href="/assets/style.css";
                @if visitor.role.is_some() {
                    link rel="alternate" type="application/atom+xml" href="/feed.atom" title="Nenrin";
                    link rel="search" type="application/opensearchdescription+xml" href="/opensearch.xml" title="Nenrin";
                }
                @if refreshed { noscript { meta http-equiv="refresh" content="5"; } }
                script src="/assets/app.js" defer {}
            }
            body {
                a.skip href="#main" { (t("Skip to the content", "本文へ移動")) }
                header.top {
                    a.brand href="/" { (PreEscaped(LOGO)) span { "Nenrin" } small { "年輪" } }
                    @if visitor.role.is_some() { (menu_links(visitor, menu)) (search_box(visitor)) }
                    (language_and_log_out(visitor))
                }
                main #main tabindex="-1" { (content) }
                footer {
                    p {
                        (t("Every version of every page, as of any date.", "すべてのページの、すべての版を、任意の日付で。"))
                        " " span #zone data-zone=(t("Times are in your time zone, ", "時刻の表示：")) { (t("Times are in UTC.", "時刻は UTC です。")) }
                        @if visitor.role.is_some() {
                            " · " a href="/downloads" { (t("Downloads", "ダウンロード")) }
                            " · " a href="/api" { (t("For programs", "プログラム向け")) }
                            " · " a href="/feed.atom" { (t("Changes as a feed", "変更フィード")) }
                        }
                    }
                }
            }
        }
    }
}

fn menu_links(visitor: &Visitor, menu: Menu) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let here = |entry| (menu == entry).then_some("page");
    html! {
        nav aria-label=(t("Main menu", "メインメニュー")) {
            a href="/" aria-current=[here(Menu::Sites)] { (t("Sites", "サイト")) }
            a href="/changes" aria-current=[here(Menu::Changes)] { (t("Changes", "変更")) }
            a href="/watches" aria-current=[here(Menu::Watches)] { (t("Watches", "監視")) }
            a href="/visits" aria-current=[here(Menu::Log)] { (t("Log", "ログ")) }
            a href="/lab" aria-current=[here(Menu::Lab)] { (t("Lab", "実験")) }
            @if visitor.is_admin() {
                a href="/sites/new" aria-current=[here(Menu::Add)] { (t("Add a site", "サイトを追加")) }
            }
        }
    }
}

fn language_and_log_out(visitor: &Visitor) -> Markup {
    let back = format::encoded(&visitor.here);
    let other = visitor.t("ja", "en");
    html! {
        div.aside {
            a href=(format!("/lang?to={other}&back={back}")) hreflang=(other) lang=(other) {
                (visitor.t("日本語", "English"))
            }
            @if visitor.is_logged_in {
                form method="post" action="/logout" {
                    (token(visitor))
                    button.link { (visitor.t("Log out", "ログアウト")) }
                }
            } @else if visitor.has_accounts && visitor.role.is_some() {
                a href="/login" { (visitor.t("Log in", "ログイン")) }
            }
        }
    }
}

/// The hidden field that every form carries.
pub(crate) fn token(visitor: &Visitor) -> Markup {
    html! { input type="hidden" name="token" value=(visitor.token); }
}

/// A form that is only a button.
pub(crate) fn button(visitor: &Visitor, action: &str, class: &str, label: &str) -> Markup {
    html! {
        form.inline method="post" action=(action) { (token(visitor)) button class=(class) { (label) } }
    }
}

pub(crate) fn error(visitor: &Visitor, error: &WebError) -> Response {
    let t = |en, ja| visitor.t(en, ja);
    let title = match error {
        WebError::NotFound { .. } => t("Not found", "見つかりません"),
        WebError::Forged | WebError::NotAllowed => t("Not allowed", "許可されていません"),
        _ => t("This did not work", "処理できませんでした"),
    };
    let content = html! {
        section.card.narrow {
            h1 { (title) }
            @if visitor.lang == Lang::Ja { p role="alert" { (error.in_japanese()) } }
            p class=[(visitor.lang == Lang::Ja).then_some("hint")] role=[(visitor.lang == Lang::En).then_some("alert")] {
                @let text = visitor.lang.translate(&error.to_string()).into_owned();
                @if visitor.lang == Lang::En { (capitalised(&text)) "." } @else { (text) "。" }
            }
            p.actions {
                @if matches!(error, WebError::NotAllowed) && visitor.has_accounts {
                    a.button.primary href=(format!("/login?back={}", format::encoded(&visitor.here))) { (t("Log in", "ログイン")) }
                }
                a.button href="/" { (t("Back to the overview", "一覧へ戻る")) }
            }
        }
    };
    let mut response = page(visitor, Menu::None, title, content);
    *response.status_mut() = error.status();
    response
}

pub(crate) fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// A number with its name.
pub(crate) fn tile(label: &str, value: Markup, note: Markup) -> Markup {
    html! { div.tile { dt { (label) } dd { (value) } dd.note { (note) } } }
}

/// The outcome of a visit, as a word with a mark. A page that is not there is missing or gone by
/// what its server says.
pub(crate) fn outcome(visitor: &Visitor, outcome: Outcome, status: u16) -> Markup {
    let word = match (outcome, status) {
        (Outcome::Gone, 404) => visitor.lang.t("missing (404)", "存在しない (404)"),
        (Outcome::Gone, 410) => visitor.lang.t("gone (410)", "消失 (410)"),
        _ => outcome_word(visitor, outcome),
    };
    html! { span class=(format!("outcome o-{outcome}")) { (word) } }
}

/// A visit that found the first version of a page.
pub(crate) fn first_version(visitor: &Visitor) -> Markup {
    html! { span.outcome.o-changed { (visitor.t("new", "新規")) } }
}

/// The outcome of a page's last visit. A first version is new, and a page that never had one is
/// missing rather than gone.
pub(crate) fn last_outcome(visitor: &Visitor, page: &PageRecord, outcome: Outcome) -> Markup {
    let word = match outcome {
        Outcome::Changed if page.visits == 1 => visitor.lang.t("new", "新規"),
        Outcome::Gone if page.changes == 0 => visitor.lang.t("missing", "存在しない"),
        Outcome::Gone => visitor.lang.t("gone", "消失"),
        _ => outcome_word(visitor, outcome),
    };
    html! { span class=(format!("outcome o-{outcome}")) { (word) } }
}

pub(crate) fn outcome_word(visitor: &Visitor, outcome: Outcome) -> &'static str {
    let (en, ja) = match outcome {
        Outcome::Changed => ("changed", "変更あり"),
        Outcome::Same => ("same", "同じ内容"),
        Outcome::NotModified => ("not modified", "更新なし (304)"),
        Outcome::Gone => ("missing or gone", "存在しない・消失"),
        Outcome::Refused => ("refused", "対象外"),
        Outcome::Failed => ("failed", "失敗"),
    };
    visitor.lang.t(en, ja)
}

/// An incident's word for programs, and its name for people.
pub(crate) fn incident_words(
    visitor: &Visitor,
    event: IncidentKind,
) -> (&'static str, &'static str) {
    let (word, en, ja) = match event {
        IncidentKind::Failing => ("failing", "visits keep failing", "訪問の失敗が続いています"),
        IncidentKind::Blocked => ("blocked", "visits are refused", "訪問が拒否されています"),
        IncidentKind::Quota => ("quota", "quota reached", "容量の上限に達しました"),
        IncidentKind::Overflow => {
            ("overflow", "a server cannot keep up", "サーバーが間に合いません")
        }
        IncidentKind::SignalLost => (
            "signal-lost",
            "a sitemap or feed no longer answers",
            "サイトマップかフィードが応答しなくなりました",
        ),
    };
    (word, visitor.lang.t(en, ja))
}

/// The page of a URL in this interface.
pub(crate) fn page_link(url: &CanonicalUrl) -> String {
    format!("/page?url={}", format::encoded(url.as_str()))
}

/// A URL that leads to its page in this interface.
pub(crate) fn url(url: &CanonicalUrl) -> Markup {
    html! { a.url href=(page_link(url)) { bdi { (url.shown()) } } }
}

/// A link that opens the page as it was.
pub(crate) fn replay(visitor: &Visitor, at_s: i64, url: &CanonicalUrl, label: Markup) -> Markup {
    html! { a href=(replay_link(&visitor.replay, at_s, url)) { (label) } }
}

/// Shown instead of a result that is still being computed.
pub(crate) fn being_computed(visitor: &Visitor) -> Markup {
    html! {
        section.card {
            p.muted { (visitor.t("This is a large site. The result is being computed and will appear here in a moment.", "大きなサイトのため計算中です。まもなくここに表示されます。")) }
        }
    }
}

/// When a result was computed, if that is a while ago.
pub(crate) fn computed_at(visitor: &Visitor, at_s: i64) -> Markup {
    html! {
        @if visitor.now_s - at_s > 60 {
            p.hint { (visitor.t("As of ", "計算時点 ")) (format::time(at_s)) }
        }
    }
}

/// The message after a form was sent.
pub(crate) fn note(text: Option<&str>) -> Markup {
    html! { @if let Some(text) = text { p.notice role="status" { (text) } } }
}
