//! A page in a frame of ours, where archived servers have no origins of their own: the policy of the
//! page around it keeps the frame from leaving the archive.

use maud::{DOCTYPE, Markup, html};

use super::as_value;
use crate::{Capture, ask::Ask, date::Stamp};

/// The page as of a date, with or without a bar above it.
pub(crate) fn page(ask: &Ask, shown: &Capture, at_s: i64, has_bar: bool) -> Markup {
    let lang = ask.lang();
    let t = |en, ja| lang.t(en, ja);
    let (url, received, asked) = (&shown.url, Stamp(shown.at_s), Stamp(at_s));
    html! {
        (DOCTYPE)
        html lang=(lang.code()) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (url.shown()) " \u{2013} Nenrin" }
                link rel="stylesheet" href="/_nenrin/replay.css";
            }
            body.framed {
                @if has_bar {
                    header {
                        span.mark { "\u{5e74}\u{8f2a}" }
                        span {
                            (t("archived ", "保存日時 ")) b { (received.plain()) } " UTC"
                            @if at_s != shown.at_s { (t(", shown as of ", "（指定日時 ")) (asked.plain()) (t("", "）")) }
                            @if shown.at_s > at_s { " " b.warning { (t("first seen later", "この日より後に初めて確認")) } }
                        }
                        a.watch hidden href={ "/_nenrin/watch?url=" (as_value(url.as_str())) } title=(t("Get a message when the selected text changes", "選択した箇所が変わったら知らせる")) { (t("watch the selected text", "選択した箇所を監視")) }
                        a href={ "/_nenrin/previous/" (received) "/" (url) } { "◀ " (t("previous", "前の版")) }
                        a href={ "/_nenrin/next/" (received) "/" (url) } { (t("next", "次の版")) " ▶" }
                        a href={ "/_nenrin/changed/" (received) "/" (url) } { (t("what changed", "変更点")) }
                        a href={ "/_nenrin/parts/" (asked) "/" (url) } { (t("parts", "画像など")) }
                        a href={ "/web/*/" (url) } { (t("calendar", "カレンダー")) }
                        a href={ "/_nenrin/record/" (url) } { (t("record", "記録")) }
                    }
                }
                iframe title=(t("archived page", "保存されたページ")) src={ "/web/" (asked) "if_/" (url) } {}
                @if has_bar { script src="/_nenrin/framed.js" {} }
            }
        }
    }
}
