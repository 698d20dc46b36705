use std::fmt::Write as _;

/// Opens a row of plots.
pub(super) const PLOT_ROW_START: &str = "<div class=\"plots\">\n";
/// Closes a row of plots; tables end in a division too, so this one is marked.
pub(super) const PLOT_ROW_END: &str = "</div><!-- plots -->\n";

const STYLE: &str = include_str!("style.css");

/// Text made safe for HTML and SVG, inside and outside of attributes. Characters that XML does
/// not allow are replaced.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(character),
            control if control.is_control() => escaped.push(char::REPLACEMENT_CHARACTER),
            other => escaped.push(other),
        }
    }
    escaped
}

/// The page around a body that is already HTML.
pub(super) fn page(title: &str, subtitle: &str, headings: &[String], body: &str) -> String {
    let mut contents = String::new();
    if headings.len() > 2 {
        contents.push_str("<nav><ol>");
        for (index, heading) in headings.iter().enumerate() {
            let number = index + 1;
            let _ =
                write!(contents, "<li><a href=\"#section-{number}\">{}</a></li>", escape(heading));
        }
        contents.push_str("</ol></nav>\n");
    }
    let title = escape(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <header><h1>{title}</h1><p class=\"subtitle\">{}</p></header>\n{contents}{body}\
         </main>\n</body>\n</html>\n",
        escape(subtitle)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_quotes_and_control_characters_cannot_escape() {
        assert_eq!(escape("<a href='x\">&\u{0}"), "&lt;a href=&#39;x&quot;&gt;&amp;\u{fffd}");
    }

    #[test]
    fn short_pages_have_no_contents_list() {
        assert!(!page("t", "s", &["one".into()], "").contains("<nav>"));
        let three = ["one", "two", "three"].map(String::from);
        assert!(page("t", "s", &three, "").contains("href=\"#section-3\">three"));
    }
}
