use maud::{Markup, html};
use nenrin_urls::CanonicalUrl;

use super::layout;

/// What is there instead of a page that is not.
pub(crate) struct Missing<'a> {
    pub(crate) url: &'a CanonicalUrl,
    /// The date that was asked for, as fourteen digits; none for the newest.
    pub(crate) date: Option<String>,
    /// Archived URLs of the same site, those nearest to the URL first.
    pub(crate) nearby: &'a [CanonicalUrl],
    /// Whether there are versions that only redirect to themselves.
    pub(crate) is_loop: bool,
}

impl Missing<'_> {
    pub(crate) fn page(&self) -> Markup {
        let date = self.date.as_deref().unwrap_or_default();
        let to = |url: &CanonicalUrl| match date {
            "" => format!("/web/{url}"),
            date => format!("/web/{date}/{url}"),
        };
        let content = html! {
            h1 { "This page is not in the archive" }
            p.url { (self.url) }
            @if self.is_loop {
                p { "All that was received for it are redirects to itself. "
                    a href={ "/web/*/" (self.url) } { "See what was received" } "." }
            } @else {
                p { "No visit has stored a version of it." }
            }
            @if self.nearby.is_empty() {
                p { "Nothing else of " b { (self.url.host()) } " is archived either." }
            } @else {
                h2 { "Archived pages of " (self.url.host()) }
                ul.urls {
                    @for url in self.nearby { li { a href=(to(url)) { (url) } } }
                }
            }
        };
        layout("Not archived", &content)
    }
}

/// A request that cannot be answered, in a sentence.
pub(crate) fn refusal(title: &str, sentence: &str) -> Markup {
    layout(title, &html! { h1 { (title) } p { (sentence) } })
}
