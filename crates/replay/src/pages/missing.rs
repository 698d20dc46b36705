use maud::{Markup, html};
use nenrin_urls::CanonicalUrl;

use super::{layout, to_add};
use crate::ask::Ask;

/// Shown instead of a page that is missing.
pub(crate) struct Missing<'a> {
    pub(crate) ask: &'a Ask,
    pub(crate) url: &'a CanonicalUrl,
    /// The requested date as fourteen digits; `None` for the newest.
    pub(crate) date: Option<String>,
    /// Archived URLs of the same site, the nearest to the URL first.
    pub(crate) nearby: &'a [CanonicalUrl],
    /// Whether the only versions are redirects to themselves.
    pub(crate) is_loop: bool,
}

impl Missing<'_> {
    pub(crate) fn page(&self) -> Markup {
        let lang = self.ask.lang();
        let t = |en, ja| lang.t(en, ja);
        let date = self.date.as_deref().unwrap_or_default();
        let to = |url: &CanonicalUrl| match date {
            "" => format!("/web/{url}"),
            date => format!("/web/{date}/{url}"),
        };
        let host = html! { b { (self.url.host()) } };
        let content = html! {
            h1 { (t("This page is not in the archive", "このページはアーカイブにありません")) }
            p.url { bdi { (self.url.shown()) } }
            @if self.is_loop {
                p {
                    (t("Only redirects to itself were received. ", "受信したのは、自分自身への転送だけです。"))
                    a href={ "/web/*/" (self.url) } { (t("See what was received", "受信したものを見る")) }
                }
            } @else {
                p { (t("No visit has stored a version of it.", "どの訪問でも、このページの版は保存されていません。")) }
            }
            @if self.nearby.is_empty() {
                p { (t("Nothing else of ", "")) (host) (t(" is archived either.", " のほかのページも保存されていません。")) }
                (to_add(self.ask, self.url))
            } @else {
                h2 { (t("Archived pages of ", "保存されているページ：")) (self.url.host()) }
                ul.urls {
                    @for url in self.nearby { li { a href=(to(url)) { bdi { (url.shown()) } } } }
                }
            }
        };
        layout(self.ask, t("Not archived", "未保存"), &content)
    }
}

/// A request that cannot be answered: a title and a sentence, in English and in Japanese.
pub(crate) fn refusal(ask: &Ask, title: (&str, &str), sentence: (&str, &str)) -> Markup {
    let t = |(en, ja)| ask.lang().t(en, ja);
    layout(ask, t(title), &html! { h1 { (t(title)) } p { (t(sentence)) } })
}
