//! Watches: the parts of pages that people want messages about, what was reported, and how letters are sent.

use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use nenrin_archive::noticing::watch_link;
use nenrin_state::{Watch, WatchEvent, WatchHit, WatchId, WatchedPart};

use crate::{
    WebApp, WebError, format,
    guard::Fields,
    layout::{self, Menu},
    visitor::Visitor,
};

/// Reports shown in the list.
const HITS_SHOWN: usize = 50;
/// Characters shown of a part's text in a list.
const EXCERPT_CHARS: usize = 200;

/// A watch by the number in an address.
pub(crate) fn find(app: &WebApp, id: &str) -> Result<Watch, WebError> {
    let watches = app.state.watches()?;
    let found = watches.into_iter().find(|watch| watch.id.0.to_string() == id);
    found.ok_or_else(|| WebError::not_found(format!("watch {id}")))
}

pub(crate) fn list(app: &WebApp, visitor: &Visitor, query: &Fields) -> Result<Response, WebError> {
    let t = |en, ja| visitor.t(en, ja);
    let (watches, hits) = (app.state.watches()?, app.state.watch_hits()?);
    let title = t("Watches", "監視");
    let note = match query.get("note") {
        "added" => Some(t(
            "The watch was added. It is checked on every new version of its page.",
            "監視を追加しました。ページの新しい版ができるたびに確認します。",
        )),
        "removed" => Some(t("The watch was removed.", "監視を削除しました。")),
        "mailed" => Some(t(
            "The test letter was sent. Look at your inbox.",
            "テストメールを送信しました。受信箱を確認してください。",
        )),
        _ => None,
    };
    let content = html! {
        div.heading {
            div {
                h1 { (title) }
                p.lead { (t(
                    "Mark a sentence, a block or a number on an archived page, and get a message when it changes.",
                    "保存したページの文・ブロック・数値に印を付けると、変わったときにお知らせします。",
                )) }
            }
            @if visitor.is_admin() && !watches.is_empty() {
                div.actions { a.button.primary href="/watches/new" { (t("Add a watch", "監視を追加")) } }
            }
        }
        (layout::note(note))
        @if watches.is_empty() { (empty(visitor)) } @else { (table(visitor, &watches)) }
        @if !hits.is_empty() { (reports(visitor, &hits[..hits.len().min(HITS_SHOWN)])) }
        (receivers(visitor))
    };
    Ok(layout::page(visitor, Menu::Watches, title, content))
}

fn empty(visitor: &Visitor) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    html! {
        section.card {
            h2 { (t("No watches yet", "まだ監視がありません")) }
            p { (t(
                "Enter the address of an archived page and choose what to watch on it. In a comparison of two versions, every changed line has a link to watch or ignore it.",
                "保存済みページのアドレスを入力し、監視する箇所を選んでください。版の比較画面では、変更された行ごとに「監視」「無視」を選べます。",
            )) }
            @if visitor.is_admin() {
                form.filter method="get" action="/watches/new" {
                    label.sr for="watch-url" { (t("Address of the page", "ページのアドレス")) }
                    input #watch-url name="url" placeholder="https://example.org/news" autocomplete="off" spellcheck="false";
                    button.primary { (t("Choose what to watch", "監視する箇所を選ぶ")) }
                }
            }
        }
    }
}

fn table(visitor: &Visitor, watches: &[Watch]) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    html! {
        div.scroll { table.cards {
            thead { tr {
                th scope="col" { (t("Watch", "監視")) }
                th scope="col" { (t("Reports when", "報告の条件")) }
                th scope="col" { (t("Found last", "最新の内容")) }
                th scope="col" { (t("State", "状態")) }
            } }
            tbody { @for watch in watches {
                tr {
                    td {
                        a.name href=(format!("/watches/{}", watch.id.0)) { bdi { (watch.title()) } }
                        div { (layout::url(&watch.url)) }
                        div.hint { (part_words(visitor, &watch.part)) }
                    }
                    td data-label=(t("Reports when", "報告の条件")) { (event_words(visitor, watch.on)) }
                    td.cause data-label=(t("Found last", "最新の内容")) {
                        @match &watch.last {
                            None => span.muted { (t("not checked yet", "未確認")) },
                            Some(last) => {
                                (format::short_time(last.at_s))
                                div { (excerpt(visitor, last.text.as_deref())) }
                            }
                        }
                    }
                    td { (state_badge(visitor, watch)) }
                }
            } }
        } }
    }
}

/// Whether a watch works, in a word.
pub(super) fn state_badge(visitor: &Visitor, watch: &Watch) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    html! {
        @if watch.paused { span.badge.paused { (t("paused", "一時停止中")) } }
        @else if let Some(trouble) = watch.trouble {
            span.bad { (t("Cannot be checked: ", "確認できません：")) (trouble.text(visitor.lang)) }
        }
        @else { span.badge.running { (t("watching", "監視中")) } }
    }
}

/// The text of a part, shortened.
pub(super) fn excerpt(visitor: &Visitor, text: Option<&str>) -> Markup {
    let Some(text) = text else {
        return html! { span.muted { (visitor.t("not on the page", "ページにありません")) } };
    };
    let short: String = text.chars().take(EXCERPT_CHARS).collect();
    html! { bdi { (short) } @if short.len() < text.len() { "…" } }
}

pub(super) fn part_words(visitor: &Visitor, part: &WatchedPart) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    html! {
        @match part {
            WatchedPart::Page => (t("the whole text of the page", "ページの全文")),
            WatchedPart::Words(words) => { (t("the line with “", "「")) bdi { (words) } (t("”", "」を含む行")) }
            WatchedPart::Selector { selector, nth } => {
                code { (selector) }
                @if *nth > 0 { (t(", number ", "、")) (nth) (t("", " 番目")) }
            }
        }
    }
}

fn event_words(visitor: &Visitor, on: WatchEvent) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    html! {
        @match on {
            WatchEvent::Changes => (t("it changes", "変わったとき")),
            WatchEvent::Appears => (t("it appears", "現れたとき")),
            WatchEvent::Vanishes => (t("it vanishes", "消えたとき")),
            WatchEvent::Above(bound) => { (t("its number is above ", "数値が ")) (bound) (t("", " を超えたとき")) }
            WatchEvent::Below(bound) => { (t("its number is below ", "数値が ")) (bound) (t("", " を下回ったとき")) }
        }
    }
}

/// What watches reported, newest first.
pub(super) fn reports(visitor: &Visitor, hits: &[WatchHit]) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    html! {
        section #reports {
            h2 { (t("Reported", "報告")) }
            ul.plain.reports { @for hit in hits {
                li.card {
                    p.reported {
                        strong { bdi { (hit.title) } } " " span.badge { (hit.what(visitor.lang)) } " "
                        span.muted { (format::time(hit.at_s)) }
                    }
                    @if let Some(trouble) = hit.trouble { p.bad { (layout::capitalised(trouble.text(visitor.lang))) } }
                    @else {
                        dl.before-after {
                            dt { (t("Before", "変更前")) } dd.was { (excerpt(visitor, hit.before.as_deref())) }
                            dt { (t("Now", "変更後")) } dd.is { (excerpt(visitor, hit.after.as_deref())) }
                        }
                    }
                    p.hint {
                        a href=(watch_link(hit, &visitor.replay)) {
                            @if hit.before_s.is_some() { (t("what changed", "差分")) } @else { (t("open the page", "ページを開く")) }
                        }
                        " · " a href=(format!("/watches/{}", hit.watch.0)) { (t("the watch", "この監視")) }
                    }
                }
            } }
        }
    }
}

/// How reports reach people, and a test.
fn receivers(visitor: &Visitor) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    html! {
        section.card {
            h2 { (t("How messages reach you", "お知らせの方法")) }
            ul {
                li { (t("Feed: ", "フィード：")) a href="/feed.atom?watches=1" { "/feed.atom?watches=1" } }
                li { (t("E-mail: ", "メール：")) (t("set a server under [mail] in the configuration, with quiet hours and a summary if you like.", "設定の [mail] でサーバーを指定します。通知しない時間帯やまとめも設定できます。")) }
                li { (t("Programs: ", "プログラム：")) (t("webhooks get the events “watch” and “watch-lost”.", "Webhook には watch と watch-lost のイベントが届きます。")) }
            }
            @if visitor.is_admin() {
                (layout::button(visitor, "/watches/test-mail", "", t("Send a test e-mail", "テストメールを送る")))
            }
        }
    }
}

pub(crate) fn set_paused(app: &WebApp, watch: Watch, paused: bool) -> Result<Response, WebError> {
    // A watch that goes on begins with what is there then.
    let last = if paused { watch.last.clone() } else { None };
    app.state.keep_watch(&Watch { paused, last, trouble: None, ..watch.clone() })?;
    Ok(Redirect::to(&format!("/watches/{}", watch.id.0)).into_response())
}

pub(crate) fn remove(app: &WebApp, watch: WatchId) -> Result<Response, WebError> {
    app.state.drop_watch(watch)?;
    Ok(Redirect::to("/watches?note=removed").into_response())
}

pub(crate) fn test_mail(app: &WebApp) -> Result<Response, WebError> {
    app.control.test_mail()?;
    Ok(Redirect::to("/watches?note=mailed").into_response())
}
