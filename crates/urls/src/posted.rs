//! Requests with a body, and their address in the archive.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use url::form_urlencoded;

use crate::{CanonicalUrl, MAX_URL_BYTES};

const METHOD: &str = "__wb_method=";
const DATA: &str = "__wb_post_data=";
/// Tells bodies apart whose beginnings are the same, where the rest did not fit.
const REST: &str = "&__nenrin_rest=";

/// No more of a body becomes part of an address.
const MAX_QUERY_CHARS: usize = 4096;
/// Parts of a body that is made of parts.
const MAX_PARTS: usize = 1000;

/// Methods whose requests mean nothing without what they send, or change something.
const METHODS: [&str; 4] = ["POST", "PUT", "PATCH", "DELETE"];

/// A request other than GET. It is stored like any page, under an address that has its method and
/// its body in the query, as pywb writes it.
///
/// ```
/// use nenrin_urls::{CanonicalUrl, PostedUrl};
///
/// let sent = CanonicalUrl::parse("https://example.com/api?v=1")?;
/// let url = PostedUrl::of(&sent, "POST", "application/json", b"{\"q\": \"trees\"}");
/// let url = url.expect("it can be written");
/// assert_eq!(url.as_str(), "https://example.com/api?v=1&__wb_method=POST&q=trees");
/// assert_eq!(PostedUrl::parse(&url), Some(("POST", sent)));
/// # Ok::<(), nenrin_urls::UrlError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct PostedUrl;

impl PostedUrl {
    /// Whether requests with this method have addresses of their own.
    pub fn has_address(method: &str) -> bool {
        METHODS.contains(&method)
    }

    /// The address of a request. `None` for other methods, and where none can be written.
    pub fn of(
        sent: &CanonicalUrl,
        method: &str,
        content_type: &str,
        body: &[u8],
    ) -> Option<CanonicalUrl> {
        if !Self::has_address(method) || Self::is_one(sent) {
            return None;
        }
        let mut start = sent.as_str().to_owned();
        start.push(if sent.query().is_some() { '&' } else { '?' });
        start.push_str(METHOD);
        start.push_str(method);
        let query = query_of(content_type, body);
        if query.is_empty() {
            return CanonicalUrl::parse(&start).ok();
        }
        let all = format!("{start}&{}", escaped(&query));
        if query.chars().count() <= MAX_QUERY_CHARS
            && let Ok(url) = CanonicalUrl::parse(&all)
        {
            return Some(url);
        }
        let rest = format!("{REST}{:016x}", hash(body));
        let mut room = MAX_URL_BYTES.checked_sub(start.len() + 1 + rest.len())?;
        let fits = |c: &char| {
            // Escaped, a byte takes three.
            let bytes = if c.is_ascii_alphanumeric() { 1 } else { 3 * c.len_utf8() };
            room.checked_sub(bytes).inspect(|left| room = *left).is_some()
        };
        let kept: String = query.chars().take(MAX_QUERY_CHARS).take_while(fits).collect();
        CanonicalUrl::parse(&format!("{start}&{}{rest}", escaped(&kept))).ok()
    }

    /// The method of such an address, and where the request was sent.
    pub fn parse(url: &CanonicalUrl) -> Option<(&'static str, CanonicalUrl)> {
        let query = url.query()?;
        let at = place(query)?;
        let rest = &query[at + METHOD.len()..];
        let name = rest.split('&').next().unwrap_or_default();
        let method = METHODS.into_iter().find(|method| *method == name)?;
        let before = url.as_str().len() - query.len() + at;
        let sent = CanonicalUrl::parse(&url.as_str()[..before.saturating_sub(1)]).ok()?;
        Some((method, sent))
    }

    /// Whether an address is one of a request other than GET.
    pub fn is_one(url: &CanonicalUrl) -> bool {
        url.query().and_then(place).is_some()
    }
}

/// Where the method begins.
fn place(query: &str) -> Option<usize> {
    match query.starts_with(METHOD) {
        true => Some(0),
        false => query.find(&format!("&{METHOD}")).map(|at| at + 1),
    }
}

/// A body as the arguments of a query.
fn query_of(content_type: &str, body: &[u8]) -> String {
    let is = |kind: &str| content_type.trim_start().to_ascii_lowercase().starts_with(kind);
    let encoded = || format!("{DATA}{}", STANDARD.encode(body));
    if body.is_empty() {
        String::new()
    } else if is("application/x-www-form-urlencoded") {
        match std::str::from_utf8(body) {
            Ok(text) => unquoted(text).unwrap_or_else(encoded),
            Err(_) => encoded(),
        }
    } else if is("multipart/") {
        parts_of(content_type, body).unwrap_or_else(encoded)
    } else if is("application/json") {
        json_arguments(body).unwrap_or_default()
    } else if is("text/plain") {
        json_arguments(body).unwrap_or_else(encoded)
    } else {
        encoded()
    }
}

fn unquoted(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let hex = |at: usize| tail.get(at).and_then(|byte| (*byte as char).to_digit(16));
        match (first, hex(0), hex(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                rest = &tail[2..];
                continue;
            }
            (b'+', ..) => bytes.push(b' '),
            _ => bytes.push(first),
        }
        rest = tail;
    }
    String::from_utf8(bytes).ok()
}

/// Text within a query: what would end it or be dropped is escaped.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '#' | '\0'..='\u{1f}' | '\u{7f}' => {
                let _ = write!(out, "%{:02X}", c as u32);
            }
            c => out.push(c),
        }
    }
    out
}

/// Names and values of a form in parts.
fn parts_of(content_type: &str, body: &[u8]) -> Option<String> {
    let (_, boundary) = content_type.split_once("boundary=")?;
    let boundary = boundary.split(';').next()?.trim().trim_matches('"');
    if boundary.is_empty() {
        return None;
    }
    let mark = format!("--{boundary}").into_bytes();
    let mut query = form_urlencoded::Serializer::new(String::new());
    let mut rest = &body[find(body, &mark)? + mark.len()..];
    for _ in 0..MAX_PARTS {
        let Some(end) = find(rest, &mark) else { break };
        let (part, after) = (&rest[..end], &rest[end + mark.len()..]);
        rest = after;
        let Some(split) = find(part, b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&part[..split]);
        let value = part.get(split + 4..).unwrap_or_default();
        let value = value.strip_suffix(b"\r\n").unwrap_or(value);
        let name = head.split_once(" name=").map(|(_, rest)| rest);
        let name =
            name.and_then(|rest| rest.trim_start_matches('"').split(['"', '\r', ';']).next());
        query.append_pair(name.unwrap_or_default(), &String::from_utf8_lossy(value));
    }
    Some(query.finish())
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// The values of a JSON text by their names, in their order; a name that comes again gets a number.
fn json_arguments(body: &[u8]) -> Option<String> {
    let mut arguments = Arguments::default();
    let mut reader = serde_json::Deserializer::from_slice(body);
    Named { arguments: &mut arguments, name: "" }.deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(arguments.found);
    Some(query.finish())
}

#[derive(Default)]
struct Arguments {
    found: Vec<(String, String)>,
    names: BTreeSet<String>,
    again: BTreeMap<String, u32>,
}

impl Arguments {
    fn add(&mut self, name: &str, value: String) {
        if name.is_empty() {
            return;
        }
        let mut own = name.to_owned();
        if self.names.contains(name) {
            let count = self.again.entry(name.to_owned()).or_insert(1);
            *count += 1;
            own = format!("{name}.{count}_");
        }
        self.names.insert(own.clone());
        self.found.push((own, value));
    }
}

/// Reads a value under the name that it has.
struct Named<'a> {
    arguments: &'a mut Arguments,
    name: &'a str,
}

impl<'de> DeserializeSeed<'de> for Named<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Named<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.arguments.add(self.name, value.to_string());
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.arguments.add(self.name, value.to_string());
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.arguments.add(self.name, value.to_string());
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.arguments.add(self.name, value.to_string());
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.arguments.add(self.name, value.to_owned());
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.arguments.add(self.name, "null".to_owned());
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        let Self { arguments, name } = self;
        while values.next_element_seed(Named { arguments: &mut *arguments, name })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        while let Some(name) = values.next_key_seed(Name)? {
            values.next_value_seed(Named { arguments: &mut *self.arguments, name: &name })?;
        }
        Ok(())
    }
}

struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<String, D::Error> {
        String::deserialize(reader)
    }
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";
    const JSON: &str = "application/json";

    fn of(method: &str, content_type: &str, body: &str) -> String {
        let sent = CanonicalUrl::parse("https://e.com/p").unwrap();
        let url = PostedUrl::of(&sent, method, content_type, body.as_bytes()).unwrap();
        assert_eq!(PostedUrl::parse(&url), Some((method_named(method), sent)), "{url}");
        url.as_str().strip_prefix("https://e.com/p?").unwrap().to_owned()
    }

    fn method_named(name: &str) -> &'static str {
        METHODS.into_iter().find(|method| *method == name).unwrap()
    }

    #[test]
    fn addresses_are_as_other_archives_write_them() {
        let parts = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nsome data\r\n--b\r\n\
            Content-Disposition: form-data; name=\"f\"; filename=\"x\"\r\n\r\n1&2\r\n--b--\r\n";
        for (method, kind, body, expected) in [
            ("POST", FORM, "a=b&c=%26+d", "__wb_method=POST&a=b&c=&%20d"),
            ("PUT", FORM, "a=b", "__wb_method=PUT&a=b"),
            ("POST", "", "", "__wb_method=POST"),
            (
                "POST",
                "application/octet-stream",
                "\u{1}\u{2}",
                "__wb_method=POST&__wb_post_data=AQI=",
            ),
            ("POST", "text/plain;charset=UTF-8", "x", "__wb_method=POST&__wb_post_data=eA=="),
            ("POST", "text/plain;charset=UTF-8", "{\"a\":1}", "__wb_method=POST&a=1"),
            (
                "POST",
                JSON,
                r#"{"type":"event","id":44.0,"f":35.7,"values":[true,false,null],"source":{"type":"c","id":"a+b&c= d","values":[3]}}"#,
                "__wb_method=POST&type=event&id=44&f=35.7&values=true&values.2_=false&values.3_=null&type.2_=c&id.2_=a%2Bb%26c%3D+d&values.4_=3",
            ),
            ("POST", JSON, "no json", "__wb_method=POST"),
            (
                "POST",
                "multipart/form-data; boundary=b",
                parts,
                "__wb_method=POST&a=some+data&f=1%262",
            ),
            ("POST", "multipart/form-data", "x", "__wb_method=POST&__wb_post_data=eA=="),
        ] {
            assert_eq!(of(method, kind, body), expected, "{body}");
        }
    }

    #[test]
    fn long_bodies_with_one_beginning_have_two_addresses() {
        let sent = CanonicalUrl::parse("https://e.com/p?x=1").unwrap();
        for letter in ["a", "日", "#", "\u{1}"] {
            let body = |end: &str| format!("{{\"q\":{:?}}}", letter.repeat(9000) + end);
            let url = |end: &str| PostedUrl::of(&sent, "POST", FORM, body(end).as_bytes()).unwrap();
            assert_ne!(url("1"), url("2"), "{letter}");
            assert_eq!(PostedUrl::parse(&url("1")), Some(("POST", sent.clone())));
        }
    }

    #[test]
    fn other_requests_have_none() {
        let sent = CanonicalUrl::parse("https://e.com/p?a=1").unwrap();
        for method in ["GET", "HEAD", "OPTIONS", "?", "post"] {
            assert_eq!(PostedUrl::of(&sent, method, "", b"x"), None, "{method}");
        }
        for other in ["https://e.com/?a__wb_method=POST", "https://e.com/?__wb_method=GET"] {
            assert_eq!(PostedUrl::parse(&CanonicalUrl::parse(other).unwrap()), None);
        }
        // A link that looks like one leads back to itself alone.
        let link = CanonicalUrl::parse("https://e.com/?__wb_method=POST&a=1").unwrap();
        assert_eq!(PostedUrl::of(&link, "POST", "", b"x"), None);
    }

    proptest! {
        #[test]
        fn what_was_sent_is_found_again(
            path in "[a-z/]{0,9}(\\?[a-z=&]{1,9})?", kind in 0..5_usize, body in any::<Vec<u8>>(),
        ) {
            let kinds = [FORM, JSON, "text/plain", "multipart/form-data; boundary=x", ""];
            let sent = CanonicalUrl::parse(&format!("http://e.com/{path}")).unwrap();
            if let Some(url) = PostedUrl::of(&sent, "POST", kinds[kind], &body) {
                prop_assert_eq!(PostedUrl::parse(&url), Some(("POST", sent)));
            }
        }
    }
}
