//! How many known pages the patterns of a form would collect, while they are typed.

use axum::response::{Html, IntoResponse, Response};
use maud::html;
use nenrin_lang::Lang;
use nenrin_state::{PageFilter, PagePatterns};
use nenrin_urls::UrlPattern;

use super::site;
use crate::{WebApp, WebError, format, guard::Fields, layout, visitor::Visitor};

/// Pages looked at; of a larger site these are a fair sample, because pages are numbered by hashes.
const LOOKED_AT: usize = 20_000;
/// Pages named of those that are left out.
const EXAMPLES: usize = 5;

pub(crate) fn count(app: &WebApp, visitor: &Visitor, query: &Fields) -> Result<Response, WebError> {
    let read = |name: &str| -> Result<Vec<UrlPattern>, String> {
        let lines = query.get(name).lines().filter(|line| !line.trim().is_empty());
        lines.take(PagePatterns::MAX).map(str::parse).collect()
    };
    let patterns = match (read("include"), read("exclude")) {
        (Ok(include), Ok(exclude)) => PagePatterns { include, exclude },
        (Err(error), _) | (_, Err(error)) => {
            return Ok(Html(html! { span.bad { (error) } }.into_string()).into_response());
        }
    };
    if patterns.is_empty() || query.get("site").is_empty() {
        return Ok(Html(String::new()).into_response());
    }
    let site = site::find(app, query.get("site"))?;
    let filter = PageFilter { site: Some(site.id), after: None, limit: LOOKED_AT };
    let pages = app.state.pages(filter)?;
    let conditions = &site.conditions;
    let own = pages.iter().filter(|page| conditions.scope.contains(&conditions.tops, &page.url));
    let (wanted, left): (Vec<_>, Vec<_>) =
        own.partition(|page| conditions.tops.contains(&page.url) || patterns.admit(&page.url));
    let known = wanted.len() + left.len();
    let (hits, known_text) = (format::number(wanted.len() as u64), format::number(known as u64));
    let sentence = match visitor.lang {
        Lang::En => format!("{hits} of {known_text} known pages of this site are collected."),
        Lang::Ja => {
            format!("このサイトの既知の {known_text} ページのうち {hits} ページを収集します。")
        }
    };
    let answer = html! {
        strong { (sentence) }
        @if pages.len() == LOOKED_AT { " " (visitor.t("(the first 20,000 were looked at)", "（最初の20,000ページを確認）")) }
        @if !left.is_empty() {
            " " (visitor.t("Left out, for example:", "除外される例："))
            ul { @for page in left.iter().take(EXAMPLES) { li { (layout::url(&page.url)) } } }
        }
    };
    Ok(Html(answer.into_string()).into_response())
}
