//! What is added to a replayed page. All ASCII, so that it reads the same in any encoding.

use maud::html;
use nenrin_lang::Lang;

use super::as_value;
use crate::{Capture, date::Stamp, stage::Stage};

const STYLE: &str = include_str!("../assets/banner.css");

/// What is added to one page.
pub(crate) struct Added<'a> {
    pub(crate) capture: &'a Capture,
    /// The date as of which it is shown.
    pub(crate) at_s: i64,
    /// What comes before the paths of our own pages: the origin of replay, if this is another.
    pub(crate) home: String,
}

impl Added<'_> {
    /// Loads our script before any other of the page, and says what the page is.
    pub(crate) fn script(&self, stage: Stage) -> String {
        let bare = matches!(stage, Stage::Own { is_bare: true });
        let server = self.capture.url.server();
        let seed = self.capture.version.0;
        let markup = html! {
            script src="/_nenrin/client.js" data-at=(Stamp(self.at_s)) data-from=(self.capture.at_s)
                data-seed=(seed) data-server=[(stage != Stage::Shared).then_some(server.as_str())]
                data-home=[(!self.home.is_empty()).then_some(&self.home)]
                data-bare=[bare.then_some("1")] {}
        };
        markup.0
    }

    /// The banner of a page, in a shadow tree, so that the page's styles and scripts do not affect
    /// it.
    pub(crate) fn banner(&self, lang: Lang) -> String {
        let t = |en, ja| lang.t(en, ja);
        let home = &self.home;
        let url = &self.capture.url;
        let received = Stamp(self.capture.at_s);
        let asked = Stamp(self.at_s);
        let markup = html! {
            nenrin-banner data-received=(received) data-asked=(asked) data-url=(url) {
                template shadowrootmode="open" {
                    style { (maud::PreEscaped(STYLE)) }
                    div.bar {
                        a.mark href={ (home) "/web/*/" (url) } title=(t("All versions", "すべての版")) { "年輪" }
                        span.address title=(url) { bdi { (url.shown()) } }
                        form.when action={ (home) "/_nenrin/go" } {
                            input type="hidden" name="url" value=(url);
                            label { (t("as of ", "指定日 ")) input type="date" name="date" required value=(asked.plain().get(..10).unwrap_or_default()); }
                            button { (t("go", "表示")) }
                        }
                        span.received {
                            (t("archived ", "保存日時 ")) b { (received.plain()) } " UTC" span.local data-s=(self.capture.at_s) {}
                            @if self.at_s != self.capture.at_s {
                                span.asked { (t(", shown as of ", "（指定日時 ")) (asked.plain()) (t("", "）")) }
                            }
                        }
                        @if self.capture.at_s > self.at_s {
                            b.warning { (t("first seen ", "初めて確認したのは ")) (received.plain().get(..10).unwrap_or_default()) }
                        } @else { b.warning hidden {} }
                        a.watch hidden href={ (home) "/_nenrin/watch?url=" (as_value(url.as_str())) } title=(t("Get a message when the selected text changes", "選択した箇所が変わったら知らせる")) { (t("watch the selected text", "選択した箇所を監視")) }
                        a.span href={ (home) "/_nenrin/parts/" (asked) "/" (url) } {}
                        span.go {
                            a.prev href={ (home) "/_nenrin/previous/" (received) "/" (url) } title=(t("Previous version", "前の版")) { "◀ " (t("previous", "前の版")) }
                            a.next href={ (home) "/_nenrin/next/" (received) "/" (url) } title=(t("Next version", "次の版")) { (t("next", "次の版")) " ▶" }
                            a.changed href={ (home) "/_nenrin/changed/" (received) "/" (url) } { (t("what changed", "変更点")) }
                            a href={ (home) "/web/*/" (url) } { (t("calendar", "カレンダー")) }
                            a href={ (home) "/_nenrin/record/" (url) } { (t("record", "記録")) }
                            a.close href={ (home) "/web/" (asked) "mp_/" (url) } title=(t("Hide this banner", "このバナーを隠す")) aria-label=(t("Hide this banner", "このバナーを隠す")) { "✕" }
                        }
                    }
                }
            }
        };
        ascii(&markup.0)
    }
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
        let added = Added { capture: &capture, at_s: 5, home: String::new() };
        for lang in [Lang::En, Lang::Ja] {
            let banner = added.banner(lang);
            assert!(banner.is_ascii());
            assert!(!banner.contains("<script"));
            assert!(banner.contains("1970-01-01 00:00:05"));
        }
        assert!(added.banner(Lang::Ja).contains("&#21069;&#12398;&#29256;"), "前の版");
    }
}
