//! The parts of a `Content-Type` value, read as browsers read them.

/// The one type that counts of a `Content-Type`, with its parameters. A comma joins several, and
/// the last that is one counts, as in browsers. None if none is a type.
pub fn media_type(content_type: &str) -> Option<&str> {
    content_type.split(',').map(str::trim).rfind(|part| is_essence(bare(part)))
}

/// Type and subtype in lower case, without parameters; empty when there is none. What is no type at
/// all is given as it is written.
pub(crate) fn essence(content_type: Option<&str>) -> String {
    let value = content_type.unwrap_or_default();
    bare(media_type(value).unwrap_or(value)).to_ascii_lowercase()
}

fn bare(value: &str) -> &str {
    value[..value.find([';', ',']).unwrap_or(value.len())].trim()
}

fn is_essence(text: &str) -> bool {
    let is_token = |part: &str| {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        !part.is_empty() && part.bytes().all(allowed)
    };
    let parts = text.split_once('/');
    parts.is_some_and(|(kind, name)| is_token(kind) && is_token(name)) && text != "*/*"
}

/// The value of a parameter, unquoted.
pub(crate) fn parameter<'a>(content_type: &'a str, name: &str) -> Option<&'a str> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (key, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches(['"', '\'']);
        (key.trim().eq_ignore_ascii_case(name) && !value.is_empty()).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_in_odd_spellings() {
        assert_eq!(essence(Some(" Text/HTML ; charset=x")), "text/html");
        assert_eq!(essence(Some("text/html, text/html")), "text/html");
        assert_eq!(essence(None), "");
        assert_eq!(parameter("text/html; a=b; Charset = \"x-sjis\"", "charset"), Some("x-sjis"));
        assert_eq!(parameter("text/html; charset=", "charset"), None);
    }

    #[test]
    fn of_a_list_the_last_type_counts() {
        for (list, expected) in [
            ("application/pdf, text/html", Some("text/html")),
            ("text/html; charset=utf-8, application/pdf", Some("application/pdf")),
            ("text/html, */*", Some("text/html")),
            ("text/html,", Some("text/html")),
            ("application/pdf; x=\",text/html\"", Some("application/pdf; x=\"")),
            ("html", None),
            ("", None),
        ] {
            assert_eq!(media_type(list), expected, "{list}");
        }
        assert_eq!(essence(Some("application/pdf, Text/HTML; a=b")), "text/html");
    }
}
