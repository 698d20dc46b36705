//! Ignoring a part of a site's pages: its changes become noise. Versions stay as they are.

use axum::response::{IntoResponse, Redirect, Response};
use maud::html;
use nenrin_archive::watching::{page_blocks, part_with_text};
use nenrin_extract::PartSelector;
use nenrin_state::{IgnoredPart, Site, WatchedPart};
use nenrin_urls::{CanonicalUrl, UrlPattern};

use super::site;
use crate::{
    WebApp, WebError,
    guard::Fields,
    layout::{self, Menu},
    visitor::Visitor,
};

/// The page, its site, and the part of it that has a text.
struct Chosen {
    url: CanonicalUrl,
    site: Site,
    part: Option<(String, u32)>,
}

fn chosen(app: &WebApp, query: &Fields) -> Result<Chosen, WebError> {
    let missing = |why: String| WebError::not_found(format!("such page: {why}"));
    let url = CanonicalUrl::parse_typed(query.get("url")).map_err(|e| missing(e.to_string()))?;
    let url = nenrin_archive::stored_url(&*app.state, url)?;
    let page = app.state.page(&url)?.ok_or_else(|| missing(url.to_string()))?;
    let site = site::find(app, &page.site.0.to_string())?;
    let blocks = match &app.store {
        Some(store) => page_blocks(&*app.state, store, &url)?.unwrap_or_default(),
        None => Vec::new(),
    };
    let part = match part_with_text(&blocks, query.get("text")) {
        WatchedPart::Selector { selector, nth } => Some((selector, nth)),
        WatchedPart::Page | WatchedPart::Words(_) => None,
    };
    Ok(Chosen { url, site, part })
}

/// Asks which pages a part is ignored on.
pub(crate) fn ask(app: &WebApp, visitor: &Visitor, query: &Fields) -> Result<Response, WebError> {
    let t = |en, ja| visitor.t(en, ja);
    let Chosen { url, site, part } = chosen(app, query)?;
    let title = t("Ignore this part", "この箇所を無視する");
    let text: String = query.get("text").chars().take(300).collect();
    let selector = part.as_ref().map_or("", |(selector, _)| selector);
    let nth = part.as_ref().map_or(0, |(_, nth)| *nth);
    let content = html! {
        section.narrow {
            p.eyebrow { a href=(format!("/sites/{}", site.id.0)) { bdi { (site.name) } } }
            h1 { (title) }
            p.lead { (t(
                "Changes of this part no longer count as significant: they do not shorten intervals and are marked as noise. Every version is still stored exactly.",
                "この箇所の変更は「意味のある変更」に数えません。間隔に影響せず、ノイズとして扱います。版はこれまで通り完全に保存します。",
            )) }
            blockquote.found { bdi { (text) } }
            @if part.is_none() {
                p.notice { (t("This text is not one block of the newest version. Write the CSS selector of the part.", "この文章は最新の版の1つのブロックではありません。CSSセレクターを入力してください。")) }
            }
            form.sheet method="post" action="/ignore" {
                (layout::token(visitor))
                input type="hidden" name="url" value=(url.as_str());
                div.field {
                    label for="selector" { (t("Part", "箇所")) }
                    input #selector name="selector" value=(selector) autocomplete="off" spellcheck="false" aria-describedby="selector-hint";
                    p.hint #selector-hint { (t("A CSS selector.", "CSSセレクター")) }
                }
                div.field {
                    label for="nth" { (t("Which one", "何番目")) }
                    input #nth name="nth" value=(nth) inputmode="numeric" aria-describedby="nth-hint";
                    p.hint #nth-hint { (t("0: all elements that the selector names.", "0：該当するすべて")) }
                }
                div.field {
                    label for="pages" { (t("On these pages", "対象のページ")) }
                    input #pages name="pages" value=(url.path_and_query()) autocomplete="off" spellcheck="false" aria-describedby="pages-hint";
                    p.hint #pages-hint { (t("A pattern; * is anything: /* is every page of the site.", "パターン。* は任意の文字列：/* はサイトの全ページ")) }
                }
                div.actions {
                    button.primary { (t("Ignore it", "無視する")) }
                    a href=(layout::page_link(&url)) { (t("Cancel", "やめる")) }
                }
            }
        }
    };
    Ok(layout::page(visitor, Menu::None, title, content))
}

pub(crate) fn save(app: &WebApp, visitor: &Visitor, fields: &Fields) -> Result<Response, WebError> {
    let bad = |what: &str, reason: String| WebError::BadParameter { what: what.into(), reason };
    let Chosen { site, .. } = chosen(app, fields)?;
    let selector = fields.get("selector").trim().to_owned();
    PartSelector::parse(&selector).map_err(|e| bad("selector:", e.to_string()))?;
    let pages = fields.get("pages").parse::<UrlPattern>().map_err(|e| bad("pages:", e))?;
    let nth = fields.number("nth").unwrap_or(0);
    let mut conditions = site.conditions.clone();
    let ignored = IgnoredPart { pages, selector, nth };
    if conditions.ignored.len() >= IgnoredPart::MAX {
        return Err(bad("the site", "has 100 ignored parts already".to_owned()));
    }
    if !conditions.ignored.contains(&ignored) {
        conditions.ignored.push(ignored);
        app.state.set_site(site.id, &conditions, visitor.now_s)?;
        app.control.sites_changed();
    }
    Ok(Redirect::to(&format!("/sites/{}?note=ignored", site.id.0)).into_response())
}
