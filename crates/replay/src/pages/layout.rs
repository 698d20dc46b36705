use maud::{DOCTYPE, Markup, html};
use nenrin_lang::Lang;
use nenrin_urls::CanonicalUrl;

use crate::ask::Ask;

/// The frame of all our pages.
pub(crate) fn layout(ask: &Ask, title: &str, content: &Markup) -> Markup {
    let lang = ask.lang();
    html! {
        (DOCTYPE)
        html lang=(lang.code()) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " \u{2013} Nenrin" }
                link rel="stylesheet" href="/_nenrin/replay.css";
            }
            body {
                header {
                    @let name = html! {
                        span.mark { "\u{5e74}\u{8f2a}" } " "
                        span { (lang.t("Nenrin archive", "Nenrin アーカイブ")) }
                    };
                    @match &ask.interface {
                        Some(interface) => a.home href={ (interface) "/" } { (name) },
                        None => (name),
                    }
                    (other_language(ask, lang))
                }
                main { (content) }
            }
        }
    }
}

/// A link to the interface's page about this URL (its visits, the next one and why), after a
/// separator. Empty if the interface is not known.
pub(super) fn in_interface(ask: &Ask, url: &CanonicalUrl, before: &str) -> Markup {
    let Some(record) = record_link(ask, url) else { return html! {} };
    html! {
        (before) a href=(record) {
            (ask.lang().t("visits and schedule", "訪問と予定"))
        }
    }
}

/// The interface's page about a URL.
pub(crate) fn record_link(ask: &Ask, url: &CanonicalUrl) -> Option<String> {
    let interface = ask.interface.as_ref()?;
    Some(format!("{interface}/page?url={}", as_value(url.as_str())))
}

/// The interface's form to watch the part of a page that has this text.
pub(crate) fn watch_link(ask: &Ask, url: &CanonicalUrl, text: &str) -> Option<String> {
    let interface = ask.interface.as_ref()?;
    let (url, text) = (as_value(url.as_str()), as_value(text));
    Some(format!("{interface}/watches/new?url={url}&text={text}"))
}

/// A link to the interface's form, filled with the address of a missing page.
pub(super) fn to_add(ask: &Ask, url: &CanonicalUrl) -> Markup {
    let Some(interface) = &ask.interface else { return html! {} };
    html! {
        p { a href={ (interface) "/sites/new?url=" (as_value(url.as_str())) } {
            (ask.lang().t("Add it as a site", "サイトとして登録する"))
        } }
    }
}

/// A text as a value in a query.
pub(super) fn as_value(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// The same page in the other language.
fn other_language(ask: &Ask, lang: Lang) -> Markup {
    let other = lang.t("ja", "en");
    let here = ask.uri.path_and_query().map_or("/", |path| path.as_str());
    html! {
        a.lang href={ "/_nenrin/lang/" (other) (here) } hreflang=(other) lang=(other) {
            (lang.t("日本語", "English"))
        }
    }
}
