use maud::{DOCTYPE, Markup, html};

/// The frame of all our pages.
pub(crate) fn layout(title: &str, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " \u{2013} Nenrin" }
                link rel="stylesheet" href="/_nenrin/replay.css";
            }
            body {
                header { span.mark { "\u{5e74}\u{8f2a}" } " " span { "Nenrin archive" } }
                main { (content) }
            }
        }
    }
}
