//! What is added to a replayed page. All ASCII, so that it reads the same in any encoding.

use maud::html;

use crate::{Capture, date::Stamp};

/// Loads our script, before any other of the page.
pub(crate) const CLIENT_SCRIPT: &str = "<script src=\"/_nenrin/client.js\"></script>";

const STYLE: &str = include_str!("../assets/banner.css");

/// The banner of a page, in a shadow tree, where the page's styles and scripts do not meet it.
pub(crate) fn html(capture: &Capture, at_s: i64) -> String {
    let url = &capture.url;
    let received = Stamp(capture.at_s);
    let asked = Stamp(at_s);
    let markup = html! {
        nenrin-banner data-received=(received) data-asked=(asked) {
            template shadowrootmode="open" {
                style { (maud::PreEscaped(STYLE)) }
                div.bar {
                    a.mark href={ "/web/*/" (url) } title="All versions" { (maud::PreEscaped("&#24180;&#36650;")) }
                    span.when {
                        "archived " b { (received.plain()) } " UTC"
                        @if at_s != capture.at_s {
                            span.asked { ", shown as of " (asked.plain()) }
                        }
                    }
                    span.span {}
                    span.go {
                        a.prev href={ "/_nenrin/previous/" (received) "/" (url) } title="Previous version" { (maud::PreEscaped("&#9664;")) " previous" }
                        a.next href={ "/_nenrin/next/" (received) "/" (url) } title="Next version" { "next " (maud::PreEscaped("&#9654;")) }
                        a href={ "/web/*/" (url) } { "calendar" }
                        a.close href={ "/web/" (asked) "mp_/" (url) } title="Hide this banner" { (maud::PreEscaped("&#10005;")) }
                    }
                }
            }
        }
    };
    debug_assert!(markup.0.is_ascii());
    markup.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nenrin_urls::CanonicalUrl;

    #[test]
    fn the_banner_is_ascii_and_escapes_the_url() {
        let url = CanonicalUrl::parse("http://e.com/\"><script>?a=1&b='日").unwrap();
        let capture = Capture {
            url,
            at_s: 0,
            version: 1,
            status: 200,
            mime: "text/html".into(),
            body_bytes: 1,
        };
        let banner = html(&capture, 5);
        assert!(banner.is_ascii());
        assert!(!banner.contains("<script"));
        assert!(banner.contains("1970-01-01 00:00:05"));
    }
}
