//! The second pass of an import: what revisit records stand for.

use nenrin_state::{Outcome, PageRecord, PageUpdate, SiteId, VersionQuery, VersionRow, VisitRow};
use nenrin_store::{NewVersion, Packing, VersionId};
use nenrin_urls::CanonicalUrl;
use nenrin_warc::{Record, RevisitProfile, digest_matches, parse_date, split_message, status};

use super::{
    import::Importer,
    source::Source,
    storer::{Pending, kept},
    unchanged::revisits,
};

/// Versions of a page that are looked at for the original of a revisit without a date.
const ORIGINALS_MAX: usize = 64;

impl Importer<'_> {
    /// The second pass: every capture is in, so a revisit finds its original wherever it lay.
    pub(super) fn revisits(&mut self, sources: &[Source]) -> anyhow::Result<()> {
        let revisits = std::mem::take(&mut self.revisits);
        let mut open: Option<(u32, _)> = None;
        for (source, offset) in revisits {
            if open.as_ref().is_none_or(|(number, _)| *number != source) {
                open = Some((source, sources[source as usize].reader()?));
            }
            let Some((_, reader)) = &mut open else { continue };
            reader.seek(offset)?;
            let Some(record) = reader.next_record()? else { continue };
            if let Err(reason) = self.revisit(&record)? {
                let name = sources[source as usize].name();
                self.trouble(format!("{name}: the revisit at byte {offset}: {reason}"));
            }
        }
        self.commit()
    }

    fn revisit(&mut self, record: &Record) -> anyhow::Result<Result<(), String>> {
        let url = record.target_uri().and_then(|uri| CanonicalUrl::parse(uri).ok());
        let (Some(url), Some(at_s)) = (url, record.date_s()) else {
            return Ok(Err("it has no URL or date that can be read".to_owned()));
        };
        let profile = record.fields.get("WARC-Profile").and_then(RevisitProfile::of);
        let Some(original) = self.original(record, &url, at_s)? else {
            return Ok(Err(format!(
                "what {url} is said to repeat is neither in the files nor in the archive"
            )));
        };
        if self.site.is_none() {
            self.site = Some(SiteId(original.group));
        }
        let page = self.archive.state.page(&url)?;
        let (outcome, usual) = match profile {
            Some(RevisitProfile::NotModified) => (Outcome::NotModified, 304),
            _ => (Outcome::Same, 200),
        };
        let current = self.as_of(&url, at_s)?;
        let is_unchanged = match &current {
            Some(row) => self.archive.store.head(VersionId(row.version))?.digest == original.digest,
            None => false,
        };
        if let Some(unchanged) = current.filter(|_| is_unchanged) {
            let is_known = self.unchanged.contains(&(url.clone(), at_s))
                || !self.unchanged_at(&url, at_s)?.is_empty();
            if is_known {
                self.imported.known += 1;
                return Ok(Ok(()));
            }
            self.imported.unchanged += 1;
            self.unchanged.insert((url.clone(), at_s));
            let mark = page.as_ref().and_then(|page| page.mark);
            let pending = Pending {
                at_s,
                status: status(&record.block).unwrap_or(usual),
                outcome,
                body_bytes: 0,
                update: PageUpdate { bytes: unchanged.bytes, ..kept(page.as_ref(), mark) },
                version: None,
                url,
            };
            return self.remember(pending).map(Ok);
        }
        self.repeated(record, &url, at_s, page, original).map(Ok)
    }

    /// A revisit whose page had other content just before, or none: a version of its own with the
    /// content of the original, which is stored already.
    fn repeated(
        &mut self,
        record: &Record,
        url: &CanonicalUrl,
        at_s: i64,
        page: Option<PageRecord>,
        original: nenrin_store::VersionHead,
    ) -> anyhow::Result<()> {
        let digest = original.digest;
        let own_status = status(&record.block).filter(|status| *status != 304);
        let code = own_status.unwrap_or(original.status);
        if self.storer.is_known(page.as_ref(), url, at_s, code, digest)? {
            self.imported.known += 1;
            return Ok(());
        }
        let body = self.archive.store.read(original.id)?.body;
        let head = match own_status {
            Some(_) => split_message(&record.block).0,
            None => &original.response_head,
        };
        let previous = self.storer.previous(url, page.as_ref());
        let group = self.site.map_or(original.group, |site| site.0);
        let version = NewVersion {
            url,
            group,
            visited_at_s: at_s,
            status: code,
            protocol: &original.protocol,
            tls: original.tls.as_deref(),
            server_address: record.fields.get("WARC-IP-Address").and_then(|a| a.parse().ok()),
            request_head: b"",
            response_head: head,
            body: &body,
            truncated: original.truncated.as_deref(),
            previous,
        };
        let pending = self.storer.put(&version, digest, Packing::Unknown, page)?;
        self.remember(pending)
    }

    /// The version that a revisit refers to: by URL and date, else the newest before it that has
    /// the digest.
    fn original(
        &self,
        record: &Record,
        url: &CanonicalUrl,
        at_s: i64,
    ) -> anyhow::Result<Option<nenrin_store::VersionHead>> {
        let field = |name: &str| record.fields.get(name);
        let target = field("WARC-Refers-To-Target-URI")
            .and_then(|uri| CanonicalUrl::parse(uri.trim_matches(['<', '>'])).ok())
            .unwrap_or_else(|| url.clone());
        let digest = field("WARC-Payload-Digest");
        let mut rows = Vec::new();
        if let Some(date_s) = field("WARC-Refers-To-Date").and_then(parse_date) {
            let then = VersionQuery { from_s: date_s, to_s: date_s, limit: ORIGINALS_MAX };
            rows = self.archive.state.versions(&target.key(), then)?;
            rows.retain(|(found, _)| *found == target);
            if let [(_, row)] = &rows[..] {
                return Ok(Some(self.archive.store.head(VersionId(row.version))?));
            }
        }
        if rows.is_empty() {
            let before = (at_s.saturating_add(1), 0);
            rows = self.archive.state.newest_versions(&target.key(), before, ORIGINALS_MAX)?;
            rows.retain(|(found, _)| *found == target);
        }
        for (_, row) in rows {
            let id = VersionId(row.version);
            let is_it = match digest {
                None => true,
                Some(digest) => {
                    let body = self.archive.store.read(id)?.body;
                    digest_matches(digest, &body).unwrap_or(true)
                }
            };
            if is_it {
                return Ok(Some(self.archive.store.head(id)?));
            }
        }
        Ok(None)
    }

    /// The visits of exactly this second that found nothing new.
    fn unchanged_at(
        &self,
        url: &CanonicalUrl,
        at_s: i64,
    ) -> anyhow::Result<Vec<(VisitRow, RevisitProfile)>> {
        let then = VersionQuery { from_s: at_s, to_s: at_s, limit: usize::MAX };
        let versions = self.archive.state.versions(&url.key(), then)?;
        let own = versions.into_iter().filter(|(found, _)| found == url);
        let versions: Vec<VersionRow> = own.map(|(_, row)| row).collect();
        Ok(revisits(self.archive.state.visits_of(url, at_s, at_s)?, &versions))
    }

    /// The newest version of exactly this URL at or before a time.
    fn as_of(&self, url: &CanonicalUrl, at_s: i64) -> anyhow::Result<Option<VersionRow>> {
        let before = (at_s.saturating_add(1), 0);
        let rows = self.archive.state.newest_versions(&url.key(), before, ORIGINALS_MAX)?;
        Ok(rows.into_iter().find(|(found, _)| found == url).map(|(_, row)| row))
    }
}
