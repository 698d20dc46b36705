//! The parts of a `Content-Type` value, read as browsers read them.

/// Type and subtype in lower case, without parameters; empty when there is none.
pub(crate) fn essence(content_type: Option<&str>) -> String {
    let value = content_type.unwrap_or_default();
    // A comma joins two headers; the first is as good a guess as any.
    let end = value.find([';', ',']).unwrap_or(value.len());
    value[..end].trim().to_ascii_lowercase()
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
}
