use maud::{DOCTYPE, Markup, html};

use super::lang::Lang;

/// The frame of our pages in English.
pub(crate) fn layout(title: &str, content: &Markup) -> Markup {
    layout_in(Lang::En, title, content)
}

/// The frame of all our pages.
pub(crate) fn layout_in(lang: Lang, title: &str, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang=(lang.code()) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " \u{2013} Nenrin" }
                link rel="stylesheet" href="/_nenrin/replay.css";
            }
            body {
                header { span.mark { "\u{5e74}\u{8f2a}" } " " span { (lang.t("Nenrin archive", "Nenrin アーカイブ")) } }
                main { (content) }
            }
        }
    }
}
