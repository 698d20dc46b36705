//! Histories from mirrored folders: one folder for each visit of a site.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use nenrin_extract::page_fragments;
use nenrin_urls::CanonicalUrl;
use sha2::{Digest as _, Sha256};

use crate::LabError;
use crate::structure::history::{PageVisit, RoundHistory, SiteHistory, SiteVisit};
use crate::structure::links::{SiteLink, site_links};

const PAGE_ENDINGS: [&str; 4] = [".html", ".htm", ".xhtml", ".shtml"];
/// Folders nested deeper than this are left out: no site has them, and links between folders may be
/// endless.
const FOLDER_DEPTH_MAX: usize = 40;

/// A site whose visits are in folders.
#[derive(Debug, Clone)]
pub struct MirrorSite {
    /// Its name.
    pub name: String,
    /// What sort of site it is.
    pub kind: String,
    /// Hosts under which its pages link to each other, the first its own.
    pub hosts: Vec<String>,
    /// The folder of each visit, in order of time.
    pub folders: Vec<PathBuf>,
}

impl MirrorSite {
    /// The sites in a folder: each a folder with its visits as folders `1`, `2` and so on. `hosts`
    /// names hosts as `SITE=HOST`.
    ///
    /// # Errors
    /// Where the folder cannot be read.
    pub fn all_in(folder: &Path, hosts: &[String]) -> std::io::Result<Vec<Self>> {
        let entries = std::fs::read_dir(folder)?.map(|entry| entry.map(|e| e.path()));
        let mut paths: Vec<PathBuf> = entries.collect::<Result<_, _>>()?;
        paths.sort();
        let site = |path: PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let folders = (1..).map(|visit: u32| path.join(visit.to_string()));
            let folders = folders.take_while(|folder| folder.is_dir()).collect();
            let hosts = hosts.iter().filter_map(|host| host.split_once('='));
            let hosts = hosts.filter(|(site, _)| *site == name).map(|(_, host)| host.to_owned());
            Self { hosts: hosts.collect(), kind: "mirror".to_owned(), name, folders }
        };
        Ok(paths.into_iter().map(site).collect())
    }
}

/// Reads the pages of mirrored sites, with file times as Last-Modified.
///
/// # Errors
/// When a folder or file cannot be read, or a host is not valid.
pub fn load_mirrors(sites: &[MirrorSite]) -> Result<RoundHistory, LabError> {
    Ok(RoundHistory { sites: sites.iter().map(load_site).collect::<Result<_, _>>()? })
}

fn load_site(site: &MirrorSite) -> Result<SiteHistory, LabError> {
    let host = site.hosts.first().map_or("site.invalid", String::as_str);
    let base = CanonicalUrl::parse(&format!("http://{host}/"))
        .map_err(|error| LabError::Input { what: format!("{}: {error}", site.name) })?;
    let mut reader = Reader { base, hosts: &site.hosts, links: BTreeMap::new() };
    let visits =
        site.folders.iter().map(|folder| reader.visit(folder)).collect::<Result<_, _>>()?;
    let (name, kind) = (site.name.clone(), site.kind.clone());
    Ok(SiteHistory { name, kind, top: "index.html".to_owned(), visits })
}

struct Reader<'a> {
    base: CanonicalUrl,
    hosts: &'a [String],
    /// Links already read: most pages are the same at the next visit.
    links: BTreeMap<(String, [u8; 32]), Vec<SiteLink>>,
}

impl Reader<'_> {
    fn visit(&mut self, folder: &Path) -> Result<SiteVisit, LabError> {
        let mut files = Vec::new();
        list_pages(folder, "", 0, &mut files)?;
        let mut visit = SiteVisit::default();
        for path in files {
            let file = folder.join(&path);
            let body = fs::read(&file).map_err(LabError::file("read", &file))?;
            let modified = fs::metadata(&file).and_then(|data| data.modified());
            let modified_s = modified.ok().and_then(|time| {
                let since = time.duration_since(std::time::UNIX_EPOCH).ok()?;
                i64::try_from(since.as_secs()).ok()
            });
            visit.at_s = visit.at_s.max(modified_s.unwrap_or(0));
            let page = self.page(&path, &body, modified_s);
            visit.pages.insert(path, page);
        }
        name_indexes(&mut visit);
        Ok(visit)
    }

    fn page(&mut self, path: &str, body: &[u8], last_modified_s: Option<i64>) -> PageVisit {
        let digest: [u8; 32] = Sha256::digest(body).into();
        let (base, hosts) = (&self.base, self.hosts);
        let links = self.links.entry((path.to_owned(), digest)).or_insert_with(|| {
            // A path that cannot be made a URL is read as if it were at the root.
            let url = base.join(&url_path(path)).unwrap_or_else(|_| base.clone());
            site_links(&url, hosts, body)
        });
        let frames = links.iter().filter(|link| link.frame).map(|link| link.path.clone()).collect();
        let links = links.iter().map(|link| link.path.clone()).collect();
        PageVisit { digest, links, frames, last_modified_s, blocks: page_fragments(body) }
    }
}

/// A link to a directory without its slash means the directory's index too, as servers redirect.
pub(crate) fn name_indexes(visit: &mut SiteVisit) {
    let indexes: BTreeSet<String> =
        visit.pages.keys().filter(|path| path.ends_with("/index.html")).cloned().collect();
    let files: BTreeSet<String> = visit.pages.keys().cloned().collect();
    for page in visit.pages.values_mut() {
        for link in page.links.iter_mut().chain(&mut page.frames) {
            let index = format!("{link}/index.html");
            if !files.contains(link) && indexes.contains(&index) {
                *link = index;
            }
        }
    }
}

/// The path as a reference: what would be read as a query or a fragment is escaped.
fn url_path(path: &str) -> String {
    format!("/{}", path.replace('%', "%25").replace('?', "%3F").replace('#', "%23"))
}

fn list_pages(
    root: &Path,
    inside: &str,
    depth: usize,
    pages: &mut Vec<String>,
) -> Result<(), LabError> {
    let folder = root.join(inside);
    if depth > FOLDER_DEPTH_MAX {
        return Ok(());
    }
    for entry in fs::read_dir(&folder).map_err(LabError::file("list", &folder))? {
        let entry = entry.map_err(LabError::file("list", &folder))?;
        let kind = entry.file_type().map_err(LabError::file("read", entry.path()))?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = format!("{inside}{name}");
        if kind.is_dir() {
            list_pages(root, &format!("{path}/"), depth + 1, pages)?;
        } else if kind.is_file() && is_page(&name) {
            pages.push(path);
        }
    }
    Ok(())
}

fn is_page(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    PAGE_ENDINGS.iter().any(|ending| name.ends_with(ending))
}
