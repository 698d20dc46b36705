//! The first page of replay.

use maud::{Markup, html};

use super::layout;
use crate::ask::Ask;

/// A field for an address, and one for the interface's search where the interface is known.
pub(crate) fn page(ask: &Ask) -> Markup {
    let t = |en, ja| ask.lang().t(en, ja);
    let content = html! {
        h1 { (t("Pages as they were", "保存されたページを見る")) }
        form.front action="/" method="get" {
            label for="url" { (t("Address of a page", "ページのアドレス")) }
            div.line {
                input #url name="url" type="text" inputmode="url" required placeholder="https://example.com/" autocomplete="off" spellcheck="false";
                button { (t("Show its versions", "版の一覧を見る")) }
            }
        }
        @if let Some(interface) = &ask.interface {
            form.front action={ (interface) "/search" } method="get" {
                label for="q" { (t("Text on archived pages", "保存されたページの文章")) }
                div.line {
                    input #q name="q" type="search" required;
                    button { (t("Search", "検索")) }
                }
            }
        }
        p.hint {
            (t("An archived page is at ", "保存したページは ")) code { "/web/<" (t("date", "日付")) ">/<URL>" }
            (t(", all versions of it at ", "、すべての版は ")) code { "/web/*/<URL>" } (t(".", " にあります。"))
        }
    };
    layout(ask, t("Archived pages", "保存されたページ"), &content)
}
