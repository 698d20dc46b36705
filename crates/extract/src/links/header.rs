//! The `Link:` header of an answer (RFC 8288).

use nenrin_urls::CanonicalUrl;

use super::Link;
use super::element::link_kind;

/// The most links of one header that are read.
const MAX_HEADER_LINKS: usize = 1000;

/// The links of a `Link:` header, with the same relations as `link` elements have. Several headers
/// may be joined by commas.
pub fn link_header(url: &CanonicalUrl, value: &str) -> Vec<Link> {
    let mut links: Vec<Link> = Vec::new();
    let mut rest = value;
    for _ in 0..MAX_HEADER_LINKS {
        let Some(start) = rest.find('<') else { break };
        let Some(length) = rest[start..].find('>') else { break };
        let target = &rest[start + 1..start + length];
        let (parameters, after) = split_parameters(&rest[start + length + 1..]);
        rest = after;
        let named = |name| parameter(parameters, name);
        // A link with an `anchor` belongs to another page.
        let kind = named("rel").and_then(|rel| link_kind(&rel.to_ascii_lowercase()));
        if let (Some(kind), None) = (kind, named("anchor"))
            && let Ok(target) = url.join(target)
            && target != *url
            && !links.iter().any(|link| link.url == target)
        {
            links.push(Link { url: target, kind });
        }
    }
    links
}

/// The parameters up to the comma that ends this link, and the rest after it.
fn split_parameters(text: &str) -> (&str, &str) {
    let end = outside_quotes(text, b',').unwrap_or(text.len());
    (&text[..end], text.get(end + 1..).unwrap_or_default())
}

/// The first position of a byte outside quoted strings.
fn outside_quotes(text: &str, wanted: u8) -> Option<usize> {
    let mut quoted = false;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if byte == wanted && !quoted => return Some(at),
            _ => {}
        }
    }
    None
}

fn parameter<'p>(parameters: &'p str, name: &str) -> Option<&'p str> {
    let mut rest = parameters;
    while !rest.is_empty() {
        let end = outside_quotes(rest, b';').unwrap_or(rest.len());
        let (key, value) = rest[..end].split_once('=').unwrap_or((&rest[..end], ""));
        if key.trim().eq_ignore_ascii_case(name) {
            return Some(value.trim().trim_matches('"'));
        }
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::LinkKind::{Embed, Page};
    use super::*;

    fn read(value: &str) -> Vec<(String, super::super::LinkKind)> {
        let url = CanonicalUrl::parse("http://example.com/dir/page").unwrap();
        link_header(&url, value)
            .into_iter()
            .map(|l| (l.url.path_and_query().into(), l.kind))
            .collect()
    }

    #[test]
    fn links_are_read_with_their_relations() {
        for (value, expected) in [
            ("<next>; rel=next", vec![("/dir/next", Page)]),
            ("</s.css>; rel=preload; as=style", vec![("/s.css", Embed)]),
            (
                "</a,b>; title=\"x, <y>; rel=\\\"z\"; REL=\"next prev\", </c>;rel=\"stylesheet\"",
                vec![("/a,b", Page), ("/c", Embed)],
            ),
            ("</a>; rel=dns-prefetch, </b>; rel=preconnect", vec![]),
            ("</a>; rel=next; anchor=\"/other\"", vec![]),
            ("</a>", vec![]),
            ("<", vec![]),
            ("</a>; rel=next, </a>; rel=prev", vec![("/a", Page)]),
        ] {
            let expected: Vec<_> = expected.into_iter().map(|(u, k)| (u.to_owned(), k)).collect();
            assert_eq!(read(value), expected, "{value}");
        }
    }

    proptest! {
        #[test]
        fn any_value_is_read(value in "(<|>|;|,|\"|\\\\|=|rel|next|x| |\\PC){0,30}") {
            read(&value);
        }
    }
}
