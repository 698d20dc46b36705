//! The CDX server API, with the parameters of pywb.

use std::collections::BTreeSet;

use axum::{body::Body, http::Response};
use nenrin_urls::{CanonicalUrl, UrlKey};
use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value, json};

use crate::{
    Archive, Capture, ReplayError,
    ask::Ask,
    date::{Period, Stamp},
    memento::{TimeMap, origin},
    served::{Replay, text_answer},
    target::{self, after_prefix},
};

/// The most versions read for one answer; narrower queries see the rest.
const MAX_SCANNED: usize = 50_000;
/// The most URLs read for one answer.
const MAX_URLS: usize = 20_000;
/// The most filters of one query.
const MAX_FILTERS: usize = 16;
/// Versions per page of an answer, unless the query sets it.
const PAGE_VERSIONS: usize = 3000;
/// Memory in bytes for one regular expression.
const MAX_EXPRESSION_BYTES: usize = 1 << 20;

const FIELDS: [&str; 9] =
    ["urlkey", "timestamp", "url", "mime", "status", "digest", "length", "offset", "filename"];

pub(crate) fn answer(replay: &Replay, ask: &Ask) -> Result<Response<Body>, ReplayError> {
    let query = Query::parse(ask.uri.query().unwrap_or_default())?;
    let mut lines = query.collect(replay)?;
    query.sort(&mut lines);
    if query.counts_pages {
        let pages = lines.len().div_ceil(query.page_versions);
        let counted =
            json!({"pages": pages, "pageSize": query.page_versions, "blocks": lines.len()});
        return Ok(text_answer(replay, "application/json", format!("{counted}\n")));
    }
    let lines = query.cut(lines);
    let (mime, text) = match query.output {
        Output::Cdxj => ("text/x-cdxj", query.written(&lines, Line::cdxj)),
        Output::Json => ("text/x-ndjson", query.written(&lines, Line::json)),
        Output::Text => ("text/plain; charset=utf-8", query.written(&lines, Line::text)),
        Output::Link => {
            let mut captures: Vec<Capture> = lines.into_iter().map(|line| line.capture).collect();
            // A TimeMap names its first and last version, whatever order the query has.
            captures.sort_by_key(|capture| capture.at_s);
            let map = TimeMap { origin: &origin(ask), url: &query.url, captures: &captures };
            ("application/link-format", map.link())
        }
    };
    Ok(text_answer(replay, mime, text))
}

/// The lines of some versions, as in an index.
pub(crate) fn lines(replay: &Replay, captures: &[Capture]) -> Result<String, ReplayError> {
    let mut text = String::new();
    for capture in captures {
        let line = Line::new(&*replay.archive, capture.clone(), true)?;
        text.push_str(&line.cdxj(&FIELDS.map(str::to_owned)));
        text.push('\n');
    }
    Ok(text)
}

/// A version with the fields of an index.
struct Line {
    capture: Capture,
    key: UrlKey,
    digest: String,
}

impl Line {
    fn new(
        archive: &dyn Archive,
        capture: Capture,
        with_digest: bool,
    ) -> Result<Self, ReplayError> {
        let digest =
            if with_digest { archive.head(capture.version)?.digest } else { String::new() };
        Ok(Self { key: capture.url.key(), digest, capture })
    }

    fn field(&self, name: &str) -> Option<String> {
        let c = &self.capture;
        Some(match name {
            "urlkey" => self.key.to_string(),
            "timestamp" => Stamp(c.at_s).to_string(),
            "url" | "original" => c.url.to_string(),
            "mime" | "mimetype" if c.mime.is_empty() => "unk".to_owned(),
            "mime" | "mimetype" => c.mime.clone(),
            "status" | "statuscode" => c.status.to_string(),
            "digest" => self.digest.clone(),
            "length" => c.body_bytes.to_string(),
            // Where a version is stored is internal to the store; its number identifies it.
            "offset" => c.version.to_string(),
            "filename" => "nenrin".to_owned(),
            _ => return None,
        })
    }

    fn object(&self, fields: &[String]) -> Value {
        let member = |name: &String| Some((name.clone(), Value::String(self.field(name)?)));
        Value::Object(fields.iter().filter_map(member).collect::<Map<_, _>>())
    }

    fn cdxj(&self, fields: &[String]) -> String {
        let inner: Vec<String> = fields
            .iter()
            .filter(|f| !matches!(f.as_str(), "urlkey" | "timestamp"))
            .cloned()
            .collect();
        format!("{} {} {}", self.key, Stamp(self.capture.at_s), self.object(&inner))
    }

    fn json(&self, fields: &[String]) -> String {
        self.object(fields).to_string()
    }

    fn text(&self, fields: &[String]) -> String {
        let values: Vec<String> =
            fields.iter().map(|name| self.field(name).unwrap_or("-".to_owned())).collect();
        values.join(" ")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MatchType {
    Exact,
    Prefix,
    Host,
    Domain,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    Cdxj,
    Json,
    Link,
    Text,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Time,
    Reverse,
    Closest,
}

#[derive(Debug)]
struct Filter {
    field: String,
    is_negated: bool,
    test: Test,
}

#[derive(Debug)]
enum Test {
    Contains(String),
    Equals(String),
    Matches(Regex),
}

impl Filter {
    /// `[!][=|~]field:expression`.
    fn parse(text: &str) -> Result<Self, ReplayError> {
        let bad = || ReplayError::BadParameter {
            name: "filter",
            value: text.chars().take(60).collect(),
            expected: "[!][=|~]field:expression, such as =status:200 or ~url:.*\\.html",
        };
        let (is_negated, rest) = match text.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let kind = rest.chars().next().filter(|c| matches!(c, '=' | '~'));
        let rest = &rest[kind.map_or(0, char::len_utf8)..];
        let (field, expression) = rest.split_once(':').ok_or_else(bad)?;
        let test = match kind {
            Some('=') => Test::Equals(expression.to_owned()),
            Some(_) => Test::Matches(
                RegexBuilder::new(&format!("^(?:{expression})"))
                    .size_limit(MAX_EXPRESSION_BYTES)
                    .build()
                    .map_err(|_| bad())?,
            ),
            None => Test::Contains(expression.to_owned()),
        };
        Ok(Self { field: field.to_owned(), is_negated, test })
    }

    fn lets_pass(&self, line: &Line) -> bool {
        let value = line.field(&self.field).unwrap_or_default();
        let holds = match &self.test {
            Test::Contains(text) => value.contains(text.as_str()),
            Test::Equals(text) => value == *text,
            Test::Matches(expression) => expression.is_match(&value),
        };
        holds != self.is_negated
    }
}

#[derive(Debug)]
struct Query {
    url: CanonicalUrl,
    match_type: MatchType,
    from_s: i64,
    to_s: i64,
    limit: usize,
    sort: Sort,
    closest_s: Option<i64>,
    output: Output,
    filters: Vec<Filter>,
    fields: Vec<String>,
    page: Option<usize>,
    page_versions: usize,
    counts_pages: bool,
}

impl Query {
    fn parse(text: &str) -> Result<Self, ReplayError> {
        let pairs: Vec<(String, String)> =
            url::form_urlencoded::parse(text.as_bytes()).into_owned().collect();
        let get = |name: &str| {
            pairs.iter().find(|(n, v)| n == name && !v.is_empty()).map(|(_, v)| v.as_str())
        };
        let (url, shortcut) = wanted_url(get("url").unwrap_or_default())?;
        let date = |name: &'static str| match get(name) {
            None => Ok(None),
            Some(text) => match Period::parse(text) {
                Some(period) => Ok(Some(period)),
                None => Err(bad(name, text, "1 to 14 digits, such as 20240305")),
            },
        };
        let number = |name: &'static str| match get(name).map(str::parse::<usize>) {
            None => Ok(None),
            Some(Ok(number)) => Ok(Some(number)),
            Some(Err(_)) => Err(bad(name, get(name).unwrap_or_default(), "a number")),
        };
        let filters = pairs.iter().filter(|(name, _)| name == "filter" || name == "filter[]");
        let fields = get("fields").or(get("fl")).map(|list| {
            list.split(',').map(|name| name.trim().to_owned()).filter(|n| !n.is_empty()).collect()
        });
        let closest_s = date("closest")?.map(|period| period.last_s);
        Ok(Self {
            url,
            match_type: match (get("matchType"), shortcut) {
                (None, shortcut) => shortcut.unwrap_or(MatchType::Exact),
                (Some("exact"), _) => MatchType::Exact,
                (Some("prefix"), _) => MatchType::Prefix,
                (Some("host"), _) => MatchType::Host,
                (Some("domain"), _) => MatchType::Domain,
                (Some(other), _) => {
                    return Err(bad("matchType", other, "exact, prefix, host or domain"));
                }
            },
            from_s: date("from")?.map_or(i64::MIN, |period| period.first_s),
            to_s: date("to")?.map_or(i64::MAX, |period| period.last_s),
            limit: number("limit")?.unwrap_or(MAX_SCANNED),
            sort: match get("sort") {
                None if closest_s.is_some() => Sort::Closest,
                None | Some("default") => Sort::Time,
                Some("reverse") => Sort::Reverse,
                Some("closest") if closest_s.is_some() => Sort::Closest,
                Some(other) => {
                    return Err(bad("sort", other, "reverse, or closest with a date in `closest`"));
                }
            },
            closest_s,
            output: match get("output") {
                None | Some("cdxj") => Output::Cdxj,
                Some("json") => Output::Json,
                Some("link") => Output::Link,
                Some("text") => Output::Text,
                Some(other) => return Err(bad("output", other, "cdxj, json, link or text")),
            },
            filters: filters
                .take(MAX_FILTERS)
                .map(|(_, text)| Filter::parse(text))
                .collect::<Result<_, _>>()?,
            fields: fields.unwrap_or_else(|| FIELDS.map(str::to_owned).to_vec()),
            page: number("page")?,
            page_versions: number("pageSize")?.unwrap_or(PAGE_VERSIONS).clamp(1, MAX_SCANNED),
            counts_pages: get("showNumPages") == Some("true"),
        })
    }

    fn needs_digest(&self) -> bool {
        self.fields.iter().any(|f| f == "digest")
            || self.filters.iter().any(|f| f.field == "digest")
    }

    /// The lines that pass the filters, by key and time, with digests only if requested.
    fn collect(&self, replay: &Replay) -> Result<Vec<Line>, ReplayError> {
        let archive = &*replay.archive;
        let mut lines = Vec::new();
        let with_digest = self.needs_digest();
        let mut room = MAX_SCANNED;
        for key in self.keys(archive)? {
            for capture in archive.versions(&key, self.from_s, self.to_s, room)? {
                room = room.saturating_sub(1);
                let line = Line::new(archive, capture, with_digest)?;
                if self.filters.iter().all(|filter| filter.lets_pass(&line)) {
                    lines.push(line);
                }
            }
            let has_all = self.sort == Sort::Time && self.page.is_none() && !self.counts_pages;
            if room == 0 || (has_all && lines.len() >= self.limit) {
                break;
            }
        }
        Ok(lines)
    }

    fn keys(&self, archive: &dyn Archive) -> Result<BTreeSet<UrlKey>, ReplayError> {
        let mut keys = BTreeSet::new();
        if self.match_type == MatchType::Exact {
            keys.insert(self.url.key());
            return Ok(keys);
        }
        for (from, to) in self.ranges() {
            for url in archive.urls(&from, &to, MAX_URLS)? {
                keys.insert(url.key());
            }
        }
        Ok(keys)
    }

    /// Ranges of keys. After the reversed host comes `)`, a port's `:`, or a subdomain's `,`.
    fn ranges(&self) -> Vec<(String, String)> {
        let key = self.url.key();
        let key = key.as_str();
        let host = &key[..key.find([')', ':']).unwrap_or(key.len())];
        let behind = |mark: char| {
            let from = format!("{host}{mark}");
            (from.clone(), after_prefix(&from))
        };
        match self.match_type {
            MatchType::Exact => Vec::new(),
            MatchType::Prefix => {
                let is_directory = self.url.path().ends_with('/') && self.url.path() != "/";
                let from = if is_directory { format!("{key}/") } else { key.to_owned() };
                vec![(from.clone(), after_prefix(&from))]
            }
            MatchType::Host => vec![behind(')'), behind(':')],
            MatchType::Domain => vec![behind(')'), behind(','), behind(':')],
        }
    }

    fn sort(&self, lines: &mut [Line]) {
        match self.sort {
            Sort::Time => {}
            Sort::Reverse => lines.reverse(),
            Sort::Closest => {
                let closest_s = self.closest_s.unwrap_or(i64::MAX);
                lines.sort_by_key(|line| line.capture.at_s.abs_diff(closest_s));
            }
        }
    }

    fn cut(&self, lines: Vec<Line>) -> Vec<Line> {
        let skipped = self.page.map_or(0, |page| page.saturating_mul(self.page_versions));
        let size = self.page.map_or(usize::MAX, |_| self.page_versions);
        lines.into_iter().skip(skipped).take(size.min(self.limit)).collect()
    }

    fn written(&self, lines: &[Line], write: impl Fn(&Line, &[String]) -> String) -> String {
        lines.iter().map(|line| write(line, &self.fields) + "\n").collect()
    }
}

fn bad(name: &'static str, value: &str, expected: &'static str) -> ReplayError {
    ReplayError::BadParameter { name, value: value.chars().take(60).collect(), expected }
}

/// The URL of the query, and the match type that a star in it means.
fn wanted_url(text: &str) -> Result<(CanonicalUrl, Option<MatchType>), ReplayError> {
    if text.is_empty() {
        return Err(bad("url", text, "the URL whose versions you want"));
    }
    if let Some(domain) = text.strip_prefix("*.") {
        return Ok((target::archived_url(domain)?.0, Some(MatchType::Domain)));
    }
    if let Some(prefix) = text.strip_suffix('*') {
        return Ok((target::archived_url(prefix)?.0, Some(MatchType::Prefix)));
    }
    Ok((target::archived_url(text)?.0, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_with_a_runaway_expression_is_refused() {
        assert!(Filter::parse("~url:((((a{1000}){1000}){1000}))").is_err());
        assert!(Filter::parse("~url:(").is_err());
        assert!(Filter::parse("nofield").is_err());
    }

    #[test]
    fn stars_select_match_types() {
        for (text, expected) in [
            ("e.com", None),
            ("*.e.com", Some(MatchType::Domain)),
            ("http://e.com/a*", Some(MatchType::Prefix)),
        ] {
            assert_eq!(wanted_url(text).unwrap().1, expected);
        }
        assert!(wanted_url("").is_err());
    }
}
