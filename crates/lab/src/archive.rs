//! A real archive as input of the experiments: rounds, a link graph, an update log.
//!
//! Nothing is fetched and nothing is written. Changes that the archive missed between two visits
//! are unknown to the experiments, too: an update is where a visit found it.

use std::collections::BTreeMap;

use nenrin_extract::{
    ContentKind, ExtractLimits, LinkKind, decode_content, page_fragments, page_links,
};
use nenrin_fetch::{header_fields, http_date};
use nenrin_state::{PageFilter, PageId, Site, State, VersionRow};
use nenrin_store::{Store, Version, VersionId};
use nenrin_urls::CanonicalUrl;

use crate::LabError;
use crate::order::Graph;
use crate::structure::{PageVisit, RoundHistory, SiteHistory, SiteLink, SiteVisit, name_indexes};
use crate::structure::{site_links, site_path};
use crate::updates::{RawPage, UpdateLog, Window};

/// Rows read at once.
const PORTION: usize = 10_000;
/// A page that decodes to more counts as one without links.
const DECODED_MAX_BYTES: usize = 64 << 20;

/// An archive to experiment on.
pub struct ArchiveSource<'a> {
    /// Its index.
    pub state: &'a dyn State,
    /// Its content.
    pub store: &'a Store,
    /// The sites that take part.
    pub sites: &'a [Site],
}

impl ArchiveSource<'_> {
    /// Every finished round of every site, with the HTML pages as they were at its end.
    ///
    /// # Errors
    /// When the archive cannot be read.
    pub fn rounds(&self) -> Result<RoundHistory, LabError> {
        let sites = self.sites.iter().map(|site| self.site_rounds(site));
        Ok(RoundHistory { sites: sites.collect::<Result<_, _>>()? })
    }

    fn site_rounds(&self, site: &Site) -> Result<SiteHistory, LabError> {
        let tops = &site.conditions.tops;
        let mut reader = PageReader {
            store: self.store,
            host: tops.first().map_or("", |top| top.host()),
            hosts: tops.iter().map(|top| top.host().to_owned()).collect(),
            pages: BTreeMap::new(),
        };
        let mut rounds = self.state.rounds(Some(site.id), usize::MAX)?;
        rounds.reverse();
        let mut visits = Vec::new();
        for ended_s in rounds.iter().filter_map(|round| round.ended_s) {
            visits.push(self.visit(site, ended_s, &mut reader)?);
        }
        Ok(SiteHistory {
            name: site.name.clone(),
            kind: "site".to_owned(),
            top: tops.first().map_or_else(String::new, site_path),
            visits,
        })
    }

    fn visit(
        &self,
        site: &Site,
        at_s: i64,
        reader: &mut PageReader<'_>,
    ) -> Result<SiteVisit, LabError> {
        let mut visit = SiteVisit { at_s, pages: BTreeMap::new() };
        let mut after = None;
        loop {
            let portion = self.state.site_as_of(site.id, at_s, after, PORTION)?;
            let Some((last, ..)) = portion.last() else { break };
            after = Some(*last);
            for (_, url, row) in portion.iter().filter(|(_, _, row)| is_page(row)) {
                let page = reader.page(url, row)?;
                visit.pages.insert(reader.path(url), page);
            }
        }
        name_indexes(&mut visit);
        Ok(visit)
    }

    /// The links between the pages of the archive, each as last seen. Page 0 links to all top
    /// pages.
    ///
    /// # Errors
    /// When the archive cannot be read or has no page.
    pub fn graph(&self) -> Result<Graph, LabError> {
        let newest = self.newest_versions()?;
        if newest.is_empty() {
            let what = "the archive has no pages; collect or import a site first".to_owned();
            return Err(LabError::Input { what });
        }
        let numbers: BTreeMap<&CanonicalUrl, u32> = newest.keys().zip(1..).collect();
        let numbered = |urls: &[CanonicalUrl]| {
            let mut seen = Vec::new();
            for number in urls.iter().filter_map(|url| number_of(&numbers, url)) {
                if !seen.contains(&number) {
                    seen.push(number);
                }
            }
            seen
        };
        let tops: Vec<CanonicalUrl> =
            self.sites.iter().flat_map(|site| site.conditions.tops.iter().cloned()).collect();
        let mut links = vec![numbered(&tops)];
        for (url, row) in &newest {
            let version = self.store.read(row.version)?;
            links.push(numbered(&targets(url, row, &version)));
        }
        let mut host_numbers = BTreeMap::new();
        let mut hosts = vec![0];
        for url in newest.keys() {
            let next = host_numbers.len() as u32;
            hosts.push(*host_numbers.entry(url.server()).or_insert(next));
        }
        Ok(Graph::from_links(links).with_hosts(hosts))
    }

    /// The newest version of every page that links can reach; what pages only embed is left out.
    fn newest_versions(&self) -> Result<BTreeMap<CanonicalUrl, VersionRow>, LabError> {
        let mut newest = BTreeMap::new();
        for site in self.sites {
            let mut after = None;
            loop {
                let portion = self.state.site_as_of(site.id, i64::MAX, after, PORTION)?;
                let Some((last, ..)) = portion.last() else { break };
                after = Some(*last);
                let pages = portion.into_iter().filter(|(_, _, row)| is_page(row) || leads_on(row));
                newest.extend(pages.map(|(_, url, row)| (url, row)));
            }
        }
        Ok(newest)
    }

    /// When pages changed, as far as visits saw it: from a page's first version to its last visit.
    ///
    /// # Errors
    /// When the archive cannot be read, or no page was seen changing often enough.
    pub fn updates(&self, window: Window) -> Result<UpdateLog, LabError> {
        let mut changes_s: BTreeMap<CanonicalUrl, Vec<i64>> = BTreeMap::new();
        self.state.each_version(&mut |url, row| {
            changes_s.entry(url.clone()).or_default().push(row.at_s);
        })?;
        let mut pages = Vec::new();
        for site in self.sites {
            let mut after: Option<PageId> = None;
            loop {
                let filter = PageFilter { site: Some(site.id), after, limit: PORTION };
                let portion = self.state.pages(filter)?;
                let Some(last) = portion.last() else { break };
                after = Some(last.id);
                for page in portion {
                    // A page of two sites counts once.
                    let Some(at_s) = changes_s.remove(&page.url) else { continue };
                    let (Some(&first_s), Some(last_s)) = (at_s.first(), page.visited_s) else {
                        continue;
                    };
                    pages.push(RawPage {
                        id: page.id.0.unsigned_abs(),
                        path: page.url.path().to_owned(),
                        source: page.id.server().0,
                        start_s: first_s,
                        // The last visit itself is inside the window.
                        end_s: last_s + window.resolution_s,
                        updates_s: at_s[1..].to_vec(),
                        is_static: false,
                    });
                }
            }
        }
        let log = UpdateLog::cut(pages, window)?;
        if log.pages.is_empty() {
            let what = format!(
                "no page of the archive was seen changing on {} days within {} days: collect \
                 longer, or give --log",
                window.min_updates, window.days
            );
            return Err(LabError::Input { what });
        }
        Ok(log)
    }
}

/// In a mirror a directory's page has the name of its file.
fn number_of(numbers: &BTreeMap<&CanonicalUrl, u32>, url: &CanonicalUrl) -> Option<u32> {
    let found = numbers.get(url).copied();
    found.or_else(|| numbers.get(&url.index_file()?).copied())
}

fn is_page(row: &VersionRow) -> bool {
    row.status == 200 && matches!(row.mime.as_str(), "text/html" | "application/xhtml+xml")
}

fn leads_on(row: &VersionRow) -> bool {
    (300..400).contains(&row.status)
}

/// The targets of a page's links, in order; a redirect leads to its target.
fn targets(url: &CanonicalUrl, row: &VersionRow, version: &Version) -> Vec<CanonicalUrl> {
    let head = &version.head.response_head;
    if leads_on(row) {
        let target = header(head, "location").and_then(|target| url.join(&target).ok());
        return target.into_iter().collect();
    }
    let content_type = header(head, "content-type");
    let (kind, limits) = (ContentKind::Html, ExtractLimits::default());
    let found = page_links(url, kind, content_type.as_deref(), &decoded(version), &limits);
    let links = found.links.into_iter().filter(|link| link.kind != LinkKind::Embed);
    links.map(|link| link.url).collect()
}

fn decoded(version: &Version) -> Vec<u8> {
    let coding = header(&version.head.response_head, "content-encoding");
    let body = decode_content(coding.as_deref(), &version.body, DECODED_MAX_BYTES);
    body.map(std::borrow::Cow::into_owned).unwrap_or_default()
}

fn header(head: &[u8], name: &str) -> Option<String> {
    let (_, value) =
        header_fields(head).find(|(found, _)| found.eq_ignore_ascii_case(name.as_bytes()))?;
    Some(String::from_utf8_lossy(&value).into_owned())
}

/// Reads the pages of one site; most are the same at the next round.
struct PageReader<'a> {
    store: &'a Store,
    host: &'a str,
    hosts: Vec<String>,
    pages: BTreeMap<VersionId, PageVisit>,
}

impl PageReader<'_> {
    fn page(&mut self, url: &CanonicalUrl, row: &VersionRow) -> Result<PageVisit, LabError> {
        if let Some(page) = self.pages.get(&row.version) {
            return Ok(page.clone());
        }
        let version = self.store.read(row.version)?;
        let body = decoded(&version);
        let links: Vec<SiteLink> = site_links(url, &self.hosts, &body);
        let frames = links.iter().filter(|link| link.frame).map(|link| link.path.clone());
        let modified = header(&version.head.response_head, "last-modified");
        let page = PageVisit {
            digest: version.head.digest.0,
            frames: frames.collect(),
            links: links.into_iter().map(|link| link.path).collect(),
            last_modified_s: modified.and_then(|date| http_date::parse(&date)),
            blocks: page_fragments(&body),
        };
        self.pages.insert(row.version, page.clone());
        Ok(page)
    }

    /// The path of a page on the site; pages of other hosts are below a folder of their own.
    fn path(&self, url: &CanonicalUrl) -> String {
        let path = site_path(url);
        if url.host() == self.host || self.hosts.iter().any(|host| host == url.host()) {
            return path;
        }
        format!("{}/{path}", url.host())
    }
}
