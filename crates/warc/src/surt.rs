//! The keys of other indexers, which call them SURT. The archive looks up versions by a key of its own
//! that is coarser ([`nenrin_urls::UrlKey`]); these are for the indexes that others read.

use nenrin_urls::CanonicalUrl;

/// How often escapes inside escapes are undone.
const MAX_UNESCAPED: usize = 64;
/// Session ids that are left out of a query: what precedes the value, its length and its letters.
const SESSIONS: [&[u8]; 3] = [b"jsessionid=", b"phpsessid=", b"sid="];
const SESSION_BYTES: usize = 32;
const ASP_SESSION: &[u8] = b"aspsessionid";
const ASP_NAME_BYTES: usize = 8;
/// Session ids of ASP.NET in a path have this length.
const ASP_BYTES: usize = 24;

/// The key of a URL in an index.
pub fn cdx_key(url: &CanonicalUrl) -> String {
    let host = url.host().to_ascii_lowercase();
    let host = without_www(host.trim_matches(['.', '[', ']']));
    let mut key = match host.contains(':') {
        true => host.to_owned(),
        false => host.rsplit('.').collect::<Vec<_>>().join(","),
    };
    if let Some(port) = url.as_url().port() {
        key.push_str(&format!(":{port}"));
    }
    key.push(')');
    key.push_str(&path_key(url.path()));
    let query = url.query().map(query_key).filter(|query| !query.is_empty());
    if let Some(query) = query {
        key.push('?');
        key.push_str(&query);
    }
    key
}

/// The key of any URI. One of a server has the key of the same address with `http`, one without a
/// server is its own key, in small letters.
pub(crate) fn key_of_uri(uri: &str) -> String {
    let as_http = |(scheme, rest): (&str, &str)| match scheme.contains(':') {
        true => None,
        false => CanonicalUrl::parse(&format!("http://{rest}")).ok(),
    };
    let url = CanonicalUrl::parse(uri).ok().or_else(|| uri.split_once("://").and_then(as_http));
    url.map_or_else(|| uri.to_ascii_lowercase().replace(' ', "%20"), |url| cdx_key(&url))
}

fn without_www(host: &str) -> &str {
    let rest =
        host.strip_prefix("www").map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    rest.and_then(|rest| rest.strip_prefix('.')).unwrap_or(host)
}

fn path_key(path: &str) -> String {
    let path = unescaped(path.as_bytes());
    let mut kept: Vec<&[u8]> = Vec::new();
    for part in path.split(|byte| *byte == b'/').skip(1) {
        match part {
            b"." => {}
            b".." if kept.last().is_some_and(|last| *last != b"..") => drop(kept.pop()),
            part => kept.push(part),
        }
    }
    let last = kept.pop().unwrap_or_default();
    kept.retain(|part| !part.is_empty());
    kept.push(last);
    let path = escaped(&kept.join(&b'/')).to_ascii_lowercase();
    let path = without_asp_session(&path);
    format!("/{}", path.strip_suffix('/').unwrap_or(&path))
}

/// Leaves out a part of the path that is only session ids, in front of a page of ASP.NET.
fn without_asp_session(path: &str) -> String {
    let is_page =
        path.rsplit('/').next().is_some_and(|name| name.find(".aspx").is_some_and(|at| at > 0));
    let mut parts: Vec<&str> = path.split('/').collect();
    let place = parts.iter().rposition(|part| is_asp_session(part));
    if let Some(place) = place.filter(|place| is_page && place + 1 < parts.len()) {
        parts.remove(place);
    }
    parts.join("/")
}

/// `(24 letters)`, or `(s(24 letters))` with one or more such pairs.
fn is_asp_session(part: &str) -> bool {
    let is_id = |id: &[u8]| id.len() == ASP_BYTES && id.iter().all(u8::is_ascii_alphanumeric);
    let Some(inner) = part.strip_prefix('(').and_then(|part| part.strip_suffix(')')) else {
        return false;
    };
    let pairs = inner.as_bytes().chunks(ASP_BYTES + 3);
    let is_pair = |pair: &[u8]| match pair {
        [name, b'(', id @ .., b')'] => name.is_ascii_alphabetic() && is_id(id),
        _ => false,
    };
    is_id(inner.as_bytes()) || (!inner.is_empty() && pairs.into_iter().all(is_pair))
}

fn query_key(query: &str) -> String {
    let query = escaped(&unescaped(query.as_bytes())).to_ascii_lowercase();
    let query = without_sessions(query);
    if query.len() <= 1 {
        return query;
    }
    let mut arguments: Vec<(&str, Option<&str>)> = query
        .split('&')
        .map(|argument| match argument.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (argument, None),
        })
        .collect();
    arguments.sort_unstable();
    let written = arguments.into_iter().map(|(name, value)| match value {
        Some(value) => format!("{name}={value}"),
        None => name.to_owned(),
    });
    written.collect::<Vec<_>>().join("&")
}

/// Leaves session ids out, and the `&` behind each: the one in front of it stays.
fn without_sessions(mut query: String) -> String {
    for name in SESSIONS {
        query = without(last_session(query.as_bytes(), name, 0, SESSION_BYTES), query);
    }
    let asp = last_session(query.as_bytes(), ASP_SESSION, ASP_NAME_BYTES, ASP_BYTES);
    let query = without(asp, query);
    without(last_cold_fusion(query.as_bytes()), query)
}

/// Leaves a place out of a query, and the `&` behind it.
fn without(place: Option<(usize, usize)>, mut query: String) -> String {
    if let Some((from, to)) = place {
        let behind = if query.as_bytes().get(to) == Some(&b'&') { to + 1 } else { to };
        query.replace_range(from..behind, "");
    }
    query
}

/// The last place of a name, some letters and `=` if there are any, and a value of a length, up to the
/// next `&`.
fn last_session(query: &[u8], name: &[u8], more: usize, value: usize) -> Option<(usize, usize)> {
    memchr::memmem::rfind_iter(query, name).find_map(|from| {
        let rest = &query[from + name.len()..];
        let (letters, rest) = rest.split_at_checked(more)?;
        let rest = match more {
            0 => rest,
            _ => rest.strip_prefix(b"=")?,
        };
        let end = memchr::memchr(b'&', rest).unwrap_or(rest.len());
        let is_value = |byte: &u8| match more {
            0 => byte.is_ascii_alphanumeric(),
            _ => byte.is_ascii_alphabetic(),
        };
        let is_session = end == value
            && rest[..end].iter().all(is_value)
            && letters.iter().all(u8::is_ascii_alphabetic);
        is_session.then(|| (from, query.len() - rest.len() + end))
    })
}

/// `cfid=…&cftoken=…`.
fn last_cold_fusion(query: &[u8]) -> Option<(usize, usize)> {
    memchr::memmem::rfind_iter(query, b"cfid=").find_map(|from| {
        let rest = &query[from + b"cfid=".len()..];
        let end = memchr::memchr(b'&', rest).filter(|end| *end > 0)?;
        let token = rest[end + 1..].strip_prefix(b"cftoken=")?;
        let token_end = memchr::memchr(b'&', token).unwrap_or(token.len());
        (token_end > 0).then(|| (from, query.len() - token.len() + token_end))
    })
}

/// Escapes undone until there are none.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let hex = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    let mut current = text.to_vec();
    for _ in 0..MAX_UNESCAPED {
        let mut next = Vec::with_capacity(current.len());
        let mut rest = &current[..];
        while let Some((&first, tail)) = rest.split_first() {
            let byte = match (first, tail) {
                (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)).map(|(h, l)| h << 4 | l),
                _ => None,
            };
            next.push(byte.unwrap_or(first));
            rest = if byte.is_some() { &tail[2..] } else { tail };
        }
        if next == current {
            break;
        }
        current = next;
    }
    current
}

fn escaped(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len()), |mut text, byte| {
        match byte {
            b'%' | b'#' | 0..=0x20 | 0x7f.. => text.push_str(&format!("%{byte:02x}")),
            _ => text.push(char::from(*byte)),
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What the Python package `surt` 0.3.1 makes of these, by which `cdxj-indexer` sorts.
    #[test]
    fn keys_are_those_of_the_other_indexers() {
        for (url, key) in [
            ("http://127.0.0.1:45055/A?b=C", "1,0,0,127:45055)/a?b=c"),
            ("http://10.1.2.3/", "3,2,1,10)/"),
            ("https://www.example.org/x/", "org,example)/x"),
            ("http://e.com/a//b", "com,e)/a/b"),
            ("http://e.com//", "com,e)/"),
            ("http://e.com/a///b/", "com,e)/a/b"),
            ("http://e.com/a//", "com,e)/a"),
            ("http://e.com/a/?", "com,e)/a"),
            ("http://e.com/a?&", "com,e)/a?&"),
            ("http://e.com/a?b=1&", "com,e)/a?&b=1"),
            ("http://e.com/a?b&&c", "com,e)/a?&b&c"),
            ("http://e.com/?a=&b", "com,e)/?a=&b"),
            ("http://e.com/?=x", "com,e)/?=x"),
            (
                "http://e.com/a;jsessionid=1234567890ABCDEF1234567890ABCDEF?x=1",
                "com,e)/a;jsessionid=1234567890abcdef1234567890abcdef?x=1",
            ),
            ("http://e.com/?PHPSESSID=0123456789abcdef0123456789abcdef&x=1", "com,e)/?x=1"),
            ("http://e.com/?jsessionid=0123456789abcdef0123456789abcdef", "com,e)/"),
            ("http://e.com/?x=1&sid=9682993c8daa2c5497996114facdc805", "com,e)/?&x=1"),
            ("http://e.com/?a=1&&sid=9682993c8daa2c5497996114facdc805", "com,e)/?&&a=1"),
            (
                "http://e.com/?sid=9682993c8daa2c5497996114facdc8051",
                "com,e)/?sid=9682993c8daa2c5497996114facdc8051",
            ),
            ("http://e.com/?PHPSESSID=abc&x=1", "com,e)/?phpsessid=abc&x=1"),
            ("http://e.com/x?CFID=1169580&CFTOKEN=48630702&a", "com,e)/x?a"),
            ("http://e.com/?cfid=1&x=2", "com,e)/?cfid=1&x=2"),
            ("http://e.com/?ASPSESSIONIDAQBSDSRT=EOHBLBDDPFCLHKPGGKLILNAM", "com,e)/"),
            ("http://e.com/(S(4hqa0555fwsecu455xqckv45))/x.aspx", "com,e)/x.aspx"),
            ("http://e.com/(4hqa0555fwsecu455xqckv45)/x.aspx", "com,e)/x.aspx"),
            (
                "http://e.com/(a(4hqa0555fwsecu455xqckv45)S(4hqa0555fwsecu455xqckv45))/x.aspx?q",
                "com,e)/x.aspx?q",
            ),
            ("http://e.com/?a-b=1&a=2", "com,e)/?a=2&a-b=1"),
            ("http://e.com/?B=2&a", "com,e)/?a&b=2"),
            ("http://e.com/a%3Fb", "com,e)/a?b"),
            ("http://e.com/a?b%3Fc%26d", "com,e)/a?b?c&d"),
            ("http://e.com/a%23b", "com,e)/a%23b"),
            ("http://e.com/%25", "com,e)/%25"),
            ("http://e.com/a%2fb", "com,e)/a/b"),
            ("http://e.com/a/./b/", "com,e)/a/b"),
            ("http://e.com/a?x=%2F&y=+z", "com,e)/a?x=/&y=+z"),
            ("http://e.com/%7Eu", "com,e)/~u"),
            ("http://e.com/A%20b", "com,e)/a%20b"),
            ("http://e.com/\u{e9}", "com,e)/%c3%a9"),
            ("http://www.com/", "com)/"),
            ("http://www9.www.e.com/", "com,e,www)/"),
            ("http://wwwx.e.com/", "com,e,wwwx)/"),
            ("http://www.e.com:8080/A/?B=%C3%A9", "com,e:8080)/a?b=%c3%a9"),
            ("http://[::1]/x", "::1)/x"),
        ] {
            assert_eq!(cdx_key(&CanonicalUrl::parse(url).unwrap()), key, "{url}");
        }
    }

    /// As above: what collectors name that is not on the web.
    #[test]
    fn keys_of_other_addresses_are_those_of_the_other_indexers() {
        for (uri, key) in [
            ("dns:Example.com", "dns:example.com"),
            ("urn:X-wpull:log", "urn:x-wpull:log"),
            ("urn:text:http://Example.com/A", "urn:text:http://example.com/a"),
            ("ftp://example.com/X", "com,example)/x"),
            ("ftp://user@ftp.example.com:21/a/B?c=D", "com,example,ftp:21)/a/b?c=d"),
            (
                "metadata://gnu.org/software/wget/warc/MANIFEST.txt",
                "org,gnu)/software/wget/warc/manifest.txt",
            ),
            ("whois://whois.x.com/", "com,x,whois)/"),
            ("urn:a b", "urn:a%20b"),
        ] {
            assert_eq!(key_of_uri(uri), key, "{uri}");
        }
    }

    proptest! {
        #[test]
        fn any_url_has_a_key_without_spaces(rest in "[!-~]{0,60}") {
            if let Ok(url) = CanonicalUrl::parse(&format!("http://e.com/{rest}")) {
                let key = cdx_key(&url);
                prop_assert!(key.starts_with("com,e") && key.bytes().all(|b| (0x21..0x7f).contains(&b)));
            }
        }
    }
}
