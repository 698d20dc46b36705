//! What is added to a replayed page. All ASCII, so that it reads the same in any encoding.

use maud::html;
use nenrin_lang::Lang;

use crate::{Capture, date::Stamp};

/// Loads our script before any other of the page.
pub(crate) const CLIENT_SCRIPT: &str = "<script src=\"/_nenrin/client.js\"></script>";

const STYLE: &str = include_str!("../assets/banner.css");

/// The banner of a page, in a shadow tree, so that the page's styles and scripts do not affect it.
pub(crate) fn html(lang: Lang, capture: &Capture, at_s: i64) -> String {
    let t = |en, ja| lang.t(en, ja);
    let url = &capture.url;
    let received = Stamp(capture.at_s);
    let asked = Stamp(at_s);
    let markup = html! {
        nenrin-banner data-received=(received) data-asked=(asked) {
            template shadowrootmode="open" {
                style { (maud::PreEscaped(STYLE)) }
                div.bar {
                    a.mark href={ "/web/*/" (url) } title=(t("All versions", "すべての版")) { "年輪" }
                    span.when {
                        (t("archived ", "保存日時 ")) b { (received.plain()) } " UTC"
                        @if at_s != capture.at_s {
                            span.asked { (t(", shown as of ", "（指定日時 ")) (asked.plain()) (t("", "）")) }
                        }
                    }
                    span.span {}
                    span.go {
                        a.prev href={ "/_nenrin/previous/" (received) "/" (url) } title=(t("Previous version", "前の版")) { "◀ " (t("previous", "前の版")) }
                        a.next href={ "/_nenrin/next/" (received) "/" (url) } title=(t("Next version", "次の版")) { (t("next", "次の版")) " ▶" }
                        a href={ "/web/*/" (url) } { (t("calendar", "カレンダー")) }
                        a.close href={ "/web/" (asked) "mp_/" (url) } title=(t("Hide this banner", "このバナーを隠す")) aria-label=(t("Hide this banner", "このバナーを隠す")) { "✕" }
                    }
                }
            }
        }
    };
    ascii(&markup.0)
}

/// Markup with every letter outside ASCII as a character reference, which means the same.
fn ascii(markup: &str) -> String {
    let mut out = String::with_capacity(markup.len());
    for c in markup.chars() {
        match c {
            c if c.is_ascii() => out.push(c),
            c => out.push_str(&format!("&#{};", u32::from(c))),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use nenrin_urls::{CanonicalUrl, VersionId};

    #[test]
    fn the_banner_is_ascii_and_escapes_the_url() {
        let url = CanonicalUrl::parse("http://e.com/\"><script>?a=1&b='日").unwrap();
        let capture = Capture {
            url,
            at_s: 0,
            version: VersionId(1),
            status: 200,
            mime: "text/html".into(),
            body_bytes: 1,
        };
        for lang in [Lang::En, Lang::Ja] {
            let banner = html(lang, &capture, 5);
            assert!(banner.is_ascii());
            assert!(!banner.contains("<script"));
            assert!(banner.contains("1970-01-01 00:00:05"));
        }
        assert!(html(Lang::Ja, &capture, 5).contains("&#21069;&#12398;&#29256;"), "前の版");
    }
}
