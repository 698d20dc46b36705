//! The parts of a page: which are missing, and which are of another time.

use maud::{Markup, html};
use nenrin_urls::CanonicalUrl;

use super::layout;
use crate::{Capture, ask::Ask, date::Stamp};

/// A part of a page.
pub(crate) struct Part {
    pub(crate) url: CanonicalUrl,
    /// The version that is shown, and how far it is from the date, in seconds.
    pub(crate) shown: Option<(Capture, i64)>,
}

pub(crate) fn page(
    ask: &Ask,
    page: &Capture,
    at_s: i64,
    parts: &[Part],
    duration: &dyn Fn(i64) -> String,
) -> Markup {
    let t = |en, ja| ask.lang().t(en, ja);
    let date = Stamp(at_s);
    let mut listed: Vec<&Part> = parts.iter().collect();
    // What is missing first, then what is furthest from the date.
    listed.sort_by_key(|part| {
        std::cmp::Reverse(part.shown.as_ref().map_or(i64::MAX, |(_, off_s)| *off_s))
    });
    let content = html! {
        h1 { (t("Parts of a page", "ページの画像・スタイルなど")) }
        p.url { bdi { (page.url.shown()) } }
        p { (t("shown as of ", "指定日時 ")) a href={ "/web/" (date) "/" (page.url) } { (date.plain()) } " UTC" }
        div.scroll { table.list {
            tr { th { (t("received (UTC)", "受信（UTC）")) } th { (t("from this date", "ずれ")) } th { (t("address", "アドレス")) } }
            @for part in listed {
                @match &part.shown {
                    Some((found, off_s)) => tr {
                        td { a href={ "/web/" (date) "oe_/" (found.url) } { (Stamp(found.at_s).plain()) } }
                        td { @if *off_s > 0 { (duration(*off_s)) } }
                        td { bdi { (part.url.shown()) } }
                    },
                    None => tr {
                        td { b { (t("missing", "未保存")) } }
                        td {}
                        td { a href={ "/web/*/" (part.url) } { bdi { (part.url.shown()) } } }
                    },
                }
            }
        } }
        @if parts.is_empty() { p { (t("It has none.", "ありません。")) } }
    };
    layout(ask, t("Parts of a page", "ページの画像・スタイルなど"), &content)
}
