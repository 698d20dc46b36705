//! `meta http-equiv=refresh`, by the standard's rules for declarative refreshes.

/// The URL that a refresh leads to; `None` if it only reloads the page.
pub(super) fn refresh_url(content: &str) -> Option<&str> {
    let rest = content.trim_ascii_start();
    let digits = rest.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
    if digits == 0 {
        return None;
    }
    let rest = rest[digits..].trim_ascii_start();
    let rest = rest.strip_prefix([';', ',']).unwrap_or(rest).trim_ascii_start();
    let url = without_key(rest);
    let url = match url.chars().next()? {
        quote @ ('"' | '\'') => url[1..].split(quote).next()?,
        _ => url.trim_ascii_end(),
    };
    (!url.is_empty()).then_some(url)
}

/// The text after `url =`, which may be missing.
fn without_key(text: &str) -> &str {
    match text.get(..3) {
        Some(key) if key.eq_ignore_ascii_case("url") => {
            text[3..].trim_ascii_start().strip_prefix('=').map_or(text, str::trim_ascii_start)
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_is_found_in_every_spelling() {
        for (content, expected) in [
            ("5; url=a.html", Some("a.html")),
            ("0;URL='a.html'", Some("a.html")),
            ("0; Url = \"a b.html\" x", Some("a b.html")),
            (" 3.5 , a.html ", Some("a.html")),
            ("0 url=a.html", Some("a.html")),
            ("0;urlencode.html", Some("urlencode.html")),
            ("5", None),
            ("5;", None),
            ("5; url=", None),
            ("url=a.html", None),
            ("", None),
        ] {
            assert_eq!(refresh_url(content), expected, "{content}");
        }
    }
}
