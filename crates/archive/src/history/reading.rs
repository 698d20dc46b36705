//! The three forms in which dates come.

use std::{fs::File, io::Read, path::Path};

use nenrin_extract::{decode_content, sitemap};
use nenrin_state::{ContentMark, Outcome, Site};
use nenrin_store::Digest;
use nenrin_urls::CanonicalUrl;
use serde::Deserialize;

use super::Dates;
use crate::{ArchiveError, Edge, Result, ingest::Lesson, parse_date};

/// The largest file that is read, also once it is decompressed.
const FILE_MAX_BYTES: usize = 512 << 20;
/// Pages that are taken from one file.
const PAGES_MAX: usize = 100_000;
/// Dates of a page that are taken, the last ones.
const DATES_MAX: usize = 1_000;
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Reads a file of dates about the pages of a site.
pub(super) fn read(file: &Path, site: &Site, base: &CanonicalUrl, now_s: i64) -> Result<Dates> {
    let name = file.display();
    let wrong = |what: String| ArchiveError::Input(format!("{name}: {what}"));
    let mut bytes = Vec::new();
    let opened = File::open(file).map_err(ArchiveError::reading(file))?;
    let limited = opened.take(FILE_MAX_BYTES as u64 + 1).read_to_end(&mut bytes);
    limited.map_err(ArchiveError::reading(file))?;
    let coding = match () {
        () if bytes.starts_with(&GZIP) => Some("gzip"),
        () if bytes.starts_with(&ZSTD) => Some("zstd"),
        () => None,
    };
    let plain = decode_content(coding, &bytes, FILE_MAX_BYTES).map_err(|e| wrong(e.to_string()))?;
    let mut reader = Reader { site, base, now_s, dates: Dates::default() };
    if plain.trim_ascii_start().starts_with(b"<") {
        reader.sitemap(&plain);
    } else {
        let text = std::str::from_utf8(&plain).map_err(|_| wrong("it is not text".to_owned()))?;
        let first = text.lines().find(|line| !is_header(line)).unwrap_or_default();
        let is_log = first.split('\t').count() >= 6;
        reader.dates.format = if is_log { "updates" } else { "cdxj" };
        reader.dates.only_changes = is_log;
        for (line, number) in text.lines().zip(1_u64..).filter(|(line, _)| !is_header(line)) {
            let read = if is_log { reader.update(line) } else { reader.capture(line) };
            if read.is_none() {
                let expected =
                    if is_log { "a line of an update log" } else { "a CDX or CDXJ line" };
                reader.dates.trouble(|| format!("line {number} is not {expected}"));
            }
        }
    }
    let mut dates = reader.dates;
    if dates.pages.is_empty() && dates.outside == 0 {
        let expected = "expected a CDX or CDXJ index, an update log or a sitemap with dates";
        return Err(wrong(format!("no dates found; {expected}")));
    }
    for visits in dates.pages.values_mut() {
        visits.sort_by_key(|visit| visit.at_s);
        visits.drain(..visits.len().saturating_sub(DATES_MAX));
    }
    Ok(dates)
}

fn is_header(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with(" CDX") || line.starts_with('#')
}

struct Reader<'a> {
    site: &'a Site,
    base: &'a CanonicalUrl,
    now_s: i64,
    dates: Dates,
}

/// The JSON of a CDXJ line, as far as it says when a page changed.
#[derive(Deserialize)]
struct CdxFields {
    url: String,
    timestamp: Option<String>,
    status: Option<String>,
    digest: Option<String>,
    mime: Option<String>,
}

impl Reader<'_> {
    fn add(&mut self, url: CanonicalUrl, visits: impl IntoIterator<Item = Lesson>) {
        let conditions = &self.site.conditions;
        let is_known = self.dates.pages.contains_key(&url);
        let is_inside = conditions.scope.contains(&conditions.tops, &url);
        if !is_inside || (!is_known && self.dates.pages.len() >= PAGES_MAX) {
            self.dates.outside += 1;
            return;
        }
        // What is dated in the future did not happen.
        let visits = visits.into_iter().filter(|visit| (0..=self.now_s).contains(&visit.at_s));
        self.dates.pages.entry(url).or_default().extend(visits);
    }

    /// `key timestamp {json}`, JSON alone, or `key timestamp url mime status digest …`.
    fn capture(&mut self, line: &str) -> Option<()> {
        let fields = match line.find('{') {
            Some(json) => {
                let fields: CdxFields = serde_json::from_str(&line[json..]).ok()?;
                let timestamp = line[..json].split_whitespace().nth(1).map(str::to_owned);
                CdxFields { timestamp: timestamp.or(fields.timestamp), ..fields }
            }
            None => {
                let mut words = line.split_whitespace().skip(1).map(str::to_owned);
                let timestamp = words.next();
                let url = words.next()?;
                let (mime, status, digest) = (words.next(), words.next(), words.next());
                CdxFields { url, timestamp, status, digest, mime }
            }
        };
        let at_s = parse_date(&fields.timestamp?, Edge::First).ok()?;
        let url = CanonicalUrl::parse(&fields.url).ok()?;
        let status: Option<u16> = fields.status.and_then(|status| status.parse().ok());
        let is_revisit = fields.mime.as_deref() == Some("warc/revisit");
        let outcome = match status {
            _ if is_revisit => Outcome::Same,
            None | Some(200..=399) => Outcome::Changed,
            Some(404 | 410) => Outcome::Gone,
            Some(_) => Outcome::Failed,
        };
        // Without its label, so that one archive's digests are another's.
        let digest = fields.digest.filter(|_| outcome.is_seen() && outcome != Outcome::Gone);
        let digest = digest.as_deref().map(|digest| digest.rsplit(':').next().unwrap_or(digest));
        let mark = digest.filter(|digest| *digest != "-").map(mark_of);
        self.add(url, [Lesson { mark, ..Lesson::without_body(at_s, outcome) }]);
        Some(())
    }

    /// `page path source start end updates`.
    fn update(&mut self, line: &str) -> Option<()> {
        let mut fields = line.split('\t').skip(1);
        let path = fields.next()?;
        let time = |text: Option<&str>| text?.parse::<i64>().ok();
        let (start_s, end_s) = (time(fields.nth(1))?, time(fields.next())?);
        let updates = fields.next()?.split(',').filter(|update| !update.is_empty());
        let updates: Option<Vec<i64>> = updates.map(|update| time(Some(update))).collect();
        let url = CanonicalUrl::parse(path).or_else(|_| self.base.join(path)).ok()?;
        let changed = |at_s: i64| Lesson::without_body(at_s, Outcome::Changed);
        let mut visits: Vec<Lesson> = vec![changed(start_s)];
        visits.extend(updates?.into_iter().filter(|&at_s| at_s > start_s).map(changed));
        // At its end it was still as the last update left it.
        let last_s = visits.last().map_or(start_s, |visit| visit.at_s);
        let end = (end_s > last_s).then(|| Lesson::without_body(end_s, Outcome::Same));
        self.add(url, visits.into_iter().chain(end));
        Some(())
    }

    /// A page has not changed since the date that a sitemap names.
    fn sitemap(&mut self, bytes: &[u8]) {
        self.dates.format = "sitemap";
        for entry in sitemap(self.base, bytes).entries {
            let Some(modified_s) = entry.modified_s else { continue };
            let visits = [(modified_s, Outcome::Changed), (self.now_s, Outcome::Same)];
            let visits = visits.map(|(at_s, outcome)| Lesson::without_body(at_s, outcome));
            self.add(entry.url, visits);
        }
    }
}

fn mark_of(digest: &str) -> ContentMark {
    let mut mark = [0; 16];
    mark.copy_from_slice(&Digest::of(digest.as_bytes()).0[..16]);
    ContentMark(mark)
}
