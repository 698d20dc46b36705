//! The CDX server API, with the parameters of pywb.

use std::collections::BTreeSet;

use axum::{
    body::Body,
    http::{Response, StatusCode},
};
use nenrin_lang::escaped;
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
/// The most fields by which lines are collapsed.
const MAX_COLLAPSES: usize = 8;
/// Versions per page of an answer, unless the query sets it.
const PAGE_VERSIONS: usize = 3000;
/// Memory in bytes for one regular expression.
const MAX_EXPRESSION_BYTES: usize = 1 << 20;

/// Parameters of other archives that would change the answer.
const NOT_OFFERED: [&str; 5] =
    ["showDupeCount", "showSkipCount", "lastSkipTimestamp", "showPagedIndex", "fastLatest"];

const FIELDS: [&str; 9] =
    ["urlkey", "timestamp", "url", "mime", "status", "digest", "length", "offset", "filename"];

/// What pywb adds for the original of a revisit. Lines are versions, never revisits, so there is none.
const ORIGINAL_FIELDS: [&str; 3] = ["orig.length", "orig.offset", "orig.filename"];

/// The answer to a query. Errors are for programs: JSON or plain text, as the query asks for.
pub(crate) fn answer(replay: &Replay, ask: &Ask) -> Result<Response<Body>, ReplayError> {
    let text = ask.uri.query().unwrap_or_default();
    try_answer(replay, ask, text).or_else(|error| match &error {
        ReplayError::Archive(_) => Err(error),
        ReplayError::BadUrl { .. } | ReplayError::BadParameter { .. } => {
            Ok(refusal(replay, text, &error))
        }
    })
}

fn refusal(replay: &Replay, query: &str, error: &ReplayError) -> Response<Body> {
    let wants_json = url::form_urlencoded::parse(query.as_bytes())
        .any(|(name, value)| name == "output" && value == "json");
    let mut answer = match wants_json {
        true => {
            let said = json!({"error": escaped(&error.to_string())});
            text_answer(replay, "application/json", format!("{said}\n"))
        }
        false => {
            let said = escaped(&error.to_string());
            text_answer(replay, "text/plain; charset=utf-8", format!("{said}\n"))
        }
    };
    *answer.status_mut() = StatusCode::BAD_REQUEST;
    answer
}

fn try_answer(replay: &Replay, ask: &Ask, text: &str) -> Result<Response<Body>, ReplayError> {
    let query = Query::parse(text)?;
    let mut lines = query.collect(replay)?;
    query.sort(&mut lines);
    query.collapse(&mut lines);
    if query.counts_pages {
        let pages = lines.len().div_ceil(query.page_versions);
        let counted =
            json!({"pages": pages, "pageSize": query.page_versions, "blocks": lines.len()});
        return Ok(text_answer(replay, "application/json", format!("{counted}\n")));
    }
    let (lines, resume) = query.cut(lines);
    let (mime, mut text) = match query.output {
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
    if let Some(key) = resume {
        text.push_str(&match query.output {
            Output::Json => format!("{}\n", json!({"resumeKey": key.to_string()})),
            _ => format!("\n{key}\n"),
        });
    }
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
            name if ORIGINAL_FIELDS.contains(&name) => "-".to_owned(),
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

/// Lines next to each other whose field begins alike count as one, the first.
#[derive(Debug)]
struct Collapse {
    field: String,
    chars: usize,
}

impl Collapse {
    /// `field` or `field:N`, N being how many characters are compared.
    fn parse(text: &str) -> Result<Self, ReplayError> {
        let bad = || bad("collapse", text, "field or field:N, such as digest or timestamp:8");
        let (field, chars) = match text.split_once(':') {
            None => (text, usize::MAX),
            Some((field, chars)) => (field, chars.parse().map_err(|_| bad())?),
        };
        let is_field =
            FIELDS.contains(&field) || matches!(field, "original" | "mimetype" | "statuscode");
        match is_field && chars > 0 {
            true => Ok(Self { field: field.to_owned(), chars }),
            false => Err(bad()),
        }
    }

    fn part(&self, line: &Line) -> String {
        line.field(&self.field).unwrap_or_default().chars().take(self.chars).collect()
    }
}

/// The line after which an answer goes on: key, date and version of the last one that was sent.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ResumeKey {
    key: String,
    stamp: String,
    version: u64,
}

impl ResumeKey {
    fn parse(text: &str) -> Result<Self, ReplayError> {
        let bad = || bad("resumeKey", text, "the key at the end of the answer before");
        let [key, stamp, version] = text.split(' ').collect::<Vec<_>>()[..] else {
            return Err(bad());
        };
        let version = version.parse().map_err(|_| bad())?;
        Ok(Self { key: key.to_owned(), stamp: stamp.to_owned(), version })
    }

    fn of(line: &Line) -> Self {
        let (key, version) = (line.key.to_string(), line.capture.version.0);
        Self { key, stamp: Stamp(line.capture.at_s).to_string(), version }
    }
}

impl std::fmt::Display for ResumeKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = format!("{} {} {}", self.key, self.stamp, self.version);
        f.write_str(&url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>())
    }
}

/// How many lines are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    First(usize),
    Last(usize),
}

impl Limit {
    fn parse(text: &str) -> Result<Self, ReplayError> {
        let last = text.strip_prefix('-');
        match (last.unwrap_or(text).parse(), last) {
            (Ok(count), Some(_)) => Ok(Self::Last(count)),
            (Ok(count), None) => Ok(Self::First(count)),
            (Err(_), _) => Err(bad("limit", text, "a number; -N for the last N")),
        }
    }
}

#[derive(Debug)]
struct Query {
    url: CanonicalUrl,
    match_type: MatchType,
    from_s: i64,
    to_s: i64,
    limit: Limit,
    offset: usize,
    collapses: Vec<Collapse>,
    /// Whether the answer ends with a key by which it can be continued.
    shows_resume_key: bool,
    resume: Option<ResumeKey>,
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
        for name in NOT_OFFERED {
            if let Some(value) = get(name).filter(|value| *value != "false") {
                return Err(bad(name, value, "this archive does not offer it"));
            }
        }
        let filters = pairs.iter().filter(|(name, _)| name == "filter" || name == "filter[]");
        let collapses = pairs.iter().filter_map(|(name, value)| match name.as_str() {
            "collapse" if !value.is_empty() => Some(value.clone()),
            "collapseTime" if !value.is_empty() => Some(format!("timestamp:{value}")),
            _ => None,
        });
        let fields = get("fields").or(get("fl")).map(|list| {
            list.split(',').map(|name| name.trim().to_owned()).filter(|n| !n.is_empty()).collect()
        });
        let mut fields: Vec<String> = fields.unwrap_or_else(|| FIELDS.map(str::to_owned).to_vec());
        if get("resolveRevisits") == Some("true") {
            fields.extend(ORIGINAL_FIELDS.map(str::to_owned));
        }
        let closest_s = date("closest")?.map(|period| period.last_s);
        let query = Self {
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
            limit: get("limit").map_or(Ok(Limit::First(MAX_SCANNED)), Limit::parse)?,
            offset: number("offset")?.unwrap_or(0),
            collapses: collapses
                .take(MAX_COLLAPSES)
                .map(|text| Collapse::parse(&text))
                .collect::<Result<_, _>>()?,
            shows_resume_key: get("showResumeKey") == Some("true"),
            resume: get("resumeKey").map(ResumeKey::parse).transpose()?,
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
            fields,
            page: number("page")?,
            page_versions: number("pageSize")?.unwrap_or(PAGE_VERSIONS).clamp(1, MAX_SCANNED),
            counts_pages: get("showNumPages") == Some("true"),
        };
        query.check()
    }

    /// Refuses what cannot be meant together.
    fn check(self) -> Result<Self, ReplayError> {
        let is_resumable = self.sort == Sort::Time
            && matches!(self.limit, Limit::First(_))
            && self.output != Output::Link
            && self.page.is_none();
        if self.shows_resume_key && !is_resumable {
            let expected = "not together with sort, page, limit=-N or output=link";
            return Err(bad("showResumeKey", "true", expected));
        }
        if self.resume.is_some() && !is_resumable {
            let expected = "not together with sort, page, limit=-N or output=link";
            return Err(bad("resumeKey", "…", expected));
        }
        Ok(self)
    }

    fn needs_digest(&self) -> bool {
        self.fields.iter().any(|f| f == "digest")
            || self.filters.iter().any(|f| f.field == "digest")
            || self.collapses.iter().any(|c| c.field == "digest")
    }

    /// The lines that pass the filters, by key and time, with digests only if requested.
    fn collect(&self, replay: &Replay) -> Result<Vec<Line>, ReplayError> {
        let archive = &*replay.archive;
        let mut lines = Vec::new();
        let with_digest = self.needs_digest();
        let mut room = MAX_SCANNED;
        let is_sent =
            |line: &Line| self.resume.as_ref().is_some_and(|last| ResumeKey::of(line) <= *last);
        for key in self.keys(archive)? {
            if self.resume.as_ref().is_some_and(|last| key.as_str() < last.key.as_str()) {
                continue;
            }
            for capture in archive.versions(&key, self.from_s, self.to_s, room)? {
                room = room.saturating_sub(1);
                let line = Line::new(archive, capture, with_digest)?;
                if !is_sent(&line) && self.filters.iter().all(|filter| filter.lets_pass(&line)) {
                    lines.push(line);
                }
            }
            let enough = match self.limit {
                // One more, to know whether the answer can be continued.
                Limit::First(count) if self.collapses.is_empty() => {
                    count.saturating_add(self.offset).saturating_add(1)
                }
                _ => usize::MAX,
            };
            let has_all = self.sort == Sort::Time && self.page.is_none() && !self.counts_pages;
            if room == 0 || (has_all && lines.len() >= enough) {
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

    fn collapse(&self, lines: &mut Vec<Line>) {
        for collapse in &self.collapses {
            let mut last = None;
            lines.retain(|line| {
                let part = Some(collapse.part(line));
                let is_new = part != last;
                last = part;
                is_new
            });
        }
    }

    /// The lines that were asked for, and the key by which the rest can be asked for.
    fn cut(&self, lines: Vec<Line>) -> (Vec<Line>, Option<ResumeKey>) {
        let skipped = self.page.map_or(0, |page| page.saturating_mul(self.page_versions));
        let size = self.page.map_or(usize::MAX, |_| self.page_versions);
        let mut lines: Vec<Line> =
            lines.into_iter().skip(skipped).take(size).skip(self.offset).collect();
        let mut resume = None;
        match self.limit {
            Limit::Last(count) => drop(lines.drain(..lines.len().saturating_sub(count))),
            Limit::First(count) if count < lines.len() => {
                lines.truncate(count);
                resume = lines.last().filter(|_| self.shows_resume_key).map(ResumeKey::of);
            }
            Limit::First(_) => {}
        }
        (lines, resume)
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
