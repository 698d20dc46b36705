use maud::{DOCTYPE, Markup, html};
use nenrin_lang::Lang;

use crate::router::Ask;

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
                    span.mark { "\u{5e74}\u{8f2a}" } " "
                    span { (lang.t("Nenrin archive", "Nenrin アーカイブ")) }
                    (other_language(ask, lang))
                }
                main { (content) }
            }
        }
    }
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
