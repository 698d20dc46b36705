//! Tables for researchers: visits, versions, text, pages and links as Parquet files in a folder, each
//! time with what is new.
//!
//! `visits`, `versions` and `text` only grow; their files are in a folder for each month. `pages` and
//! `links` say what is known now, in a folder for each site, and are written again when anything is new.
//! `tables.json` names what was written: other files are of a run that was cut short, and the next deletes
//! them. It is written after each portion, so a run that goes on begins behind the last complete one.

mod file;
mod schema;
mod text;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use nenrin_calendar::date_of;
use nenrin_state::{PageFilter, PageRecord, SiteId, VersionRow, VisitFilter};
use nenrin_urls::CanonicalUrl;
use serde::{Deserialize, Serialize};

use self::{
    file::{TableFile, Value, time},
    text::TextReader,
};
use crate::{Archive, ArchiveError, Progress, Result, counted, mark::Mark, noted};

const STATE: &str = "tables.json";
const FORMAT: u32 = 1;
const TABLES: [&str; 5] = ["visits", "versions", "text", "pages", "links"];
/// Versions, and visits, of one portion: as many are in memory.
const PORTION: usize = 50_000;
/// Pages that are read from the state at a time.
const PAGES_AT_ONCE: usize = 2_000;
/// Files that are open at a time: months of one portion.
const MAX_MONTHS: usize = 48;

/// How many rows were written, and what is in the folder now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct WrittenTables {
    /// Visits that are new.
    pub visits: u64,
    /// Versions that are new.
    pub versions: u64,
    /// Blocks of text that came or went with them.
    pub text_blocks: u64,
    /// Pages, as they are known now; 0 if nothing is new.
    pub pages: u64,
    /// Links between them.
    pub links: u64,
    /// Files that were written.
    pub files: u64,
}

impl WrittenTables {
    /// The report for a person.
    pub fn line(&self) -> String {
        if self.files == 0 {
            return "nothing is new".to_owned();
        }
        format!(
            "{}, {} and {} written; {} with {} as they are now",
            counted(self.visits, "new visit"),
            counted(self.versions, "new version"),
            counted(self.text_blocks, "text change"),
            counted(self.pages, "page"),
            counted(self.links, "link"),
        )
    }
}

/// What was written into a folder.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Written {
    nenrin_tables: u32,
    /// Ranges of version numbers that are in the files, both ends included, in order.
    versions: Vec<(u64, u64)>,
    /// Of which archive they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    of: Option<Mark>,
    /// The last visit of the log that is in them.
    last_visit: i64,
    /// Whether pages and links are as old as the rest.
    is_complete: bool,
    /// Numbers files.
    next_file: u64,
    files: BTreeSet<String>,
}

impl Written {
    fn has(&self, version: u64) -> bool {
        let place = self.versions.partition_point(|(_, last)| *last < version);
        self.versions.get(place).is_some_and(|(first, _)| *first <= version)
    }

    /// Adds versions that it does not have.
    fn add(&mut self, versions: impl Iterator<Item = u64>) {
        let known = std::mem::take(&mut self.versions);
        let mut all: Vec<(u64, u64)> = versions.map(|version| (version, version)).collect();
        all.extend(known);
        all.sort_unstable();
        for (first, last) in all {
            match self.versions.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => self.versions.push((first, last)),
            }
        }
    }
}

impl Archive {
    /// Writes tables into a folder: everything the first time, then what is new.
    pub fn export_tables(
        &self,
        folder: &Path,
        progress: &mut Progress<'_>,
    ) -> Result<WrittenTables> {
        fs::create_dir_all(folder).map_err(ArchiveError::io("create", folder))?;
        let written = read_state(folder)?;
        self.check_mark(folder, written.of.as_ref())?;
        let mut export = Export {
            archive: self,
            folder,
            written,
            report: WrittenTables::default(),
            files: BTreeMap::new(),
            text: TextReader::default(),
        };
        export.delete_unnamed()?;
        export.visits()?;
        export.versions(progress)?;
        export.snapshot()?;
        Ok(export.report)
    }
}

/// An export under way.
struct Export<'a> {
    archive: &'a Archive,
    folder: &'a Path,
    written: Written,
    report: WrittenTables,
    /// Files of this portion by their folders.
    files: BTreeMap<String, (String, TableFile)>,
    text: TextReader,
}

impl Export<'_> {
    fn visits(&mut self) -> Result<()> {
        let newest = self.archive.state().visits(VisitFilter { limit: 1, ..Default::default() })?;
        let until = newest.first().map_or(0, |visit| visit.id);
        if until < self.written.last_visit {
            // The log was made anew.
            self.written.last_visit = 0;
        }
        let mut before = Some(until.saturating_add(1));
        'all: loop {
            let filter = VisitFilter { before, limit: PORTION, ..VisitFilter::default() };
            let portion = self.archive.state().visits(filter)?;
            let Some(last) = portion.last() else { break };
            before = Some(last.id);
            for visit in portion {
                if visit.id <= self.written.last_visit {
                    break 'all;
                }
                let row = vec![
                    visit.id.into(),
                    time(visit.at_s),
                    i64::from(visit.site.0).into(),
                    visit.url.as_str().into(),
                    visit.outcome.to_string().as_str().into(),
                    i64::from(visit.status).into(),
                    i64::from(visit.elapsed_ms).into(),
                    (visit.received_bytes as i64).into(),
                ];
                self.push(&by_month("visits", visit.at_s), schema::VISITS, row)?;
                self.report.visits += 1;
            }
        }
        if self.report.visits > 0 {
            self.written.last_visit = until;
            self.written.is_complete = false;
        }
        self.end_portion()
    }

    fn versions(&mut self, progress: &mut Progress<'_>) -> Result<()> {
        loop {
            let (portion, left) = self.new_versions()?;
            let (done, all) = (self.report.versions, self.report.versions + left);
            if portion.is_empty() {
                return Ok(());
            }
            for (at, (url, row)) in portion.iter().enumerate() {
                progress(done + at as u64, all);
                self.version(url, row)?;
            }
            self.written.add(portion.iter().map(|(_, row)| row.version.0));
            self.written.is_complete = false;
            self.end_portion()?;
        }
    }

    /// Versions that are not in the files, as many as a portion has; and how many there are.
    fn new_versions(&self) -> Result<(Vec<(CanonicalUrl, VersionRow)>, u64)> {
        let mut portion = Vec::new();
        let mut left = 0;
        self.archive.state().each_version(&mut |url, row| {
            if self.written.has(row.version.0) {
                return;
            }
            left += 1;
            if portion.len() < PORTION {
                portion.push((url.clone(), row.clone()));
            }
        })?;
        Ok((portion, left))
    }

    fn version(&mut self, url: &CanonicalUrl, row: &VersionRow) -> Result<()> {
        let values = vec![
            (row.version.0 as i64).into(),
            time(row.at_s),
            url.as_str().into(),
            i64::from(row.status).into(),
            row.mime.as_str().into(),
            (row.bytes as i64).into(),
            Value::Int(row.changed_permille.map(i64::from)),
        ];
        self.push(&by_month("versions", row.at_s), schema::VERSIONS, values)?;
        self.report.versions += 1;
        let mut reader = std::mem::take(&mut self.text);
        let changes = reader.changes(self.archive, url, row)?;
        self.text = reader;
        for block in changes {
            let values = vec![
                (row.version.0 as i64).into(),
                time(row.at_s),
                url.as_str().into(),
                if block.is_added { "added" } else { "removed" }.into(),
                (block.position as i64).into(),
                block.kind.into(),
                Value::Text(Some(block.text)),
            ];
            self.push(&by_month("text", row.at_s), schema::TEXT, values)?;
            self.report.text_blocks += 1;
        }
        Ok(())
    }

    /// Pages and links as they are now, in place of those of the run before.
    fn snapshot(&mut self) -> Result<()> {
        if self.written.is_complete {
            return Ok(());
        }
        let of_now = |name: &String| name.starts_with("pages/") || name.starts_with("links/");
        let before: BTreeSet<String> =
            self.written.files.iter().filter(|name| of_now(name)).cloned().collect();
        for site in self.archive.state().sites()? {
            self.pages_of(site.id)?;
        }
        self.written.files.retain(|name| !before.contains(name));
        self.written.is_complete = true;
        self.end_portion()?;
        self.delete_unnamed()
    }

    fn pages_of(&mut self, site: SiteId) -> Result<()> {
        let mut after = None;
        loop {
            let filter = PageFilter { site: Some(site), after, limit: PAGES_AT_ONCE };
            let mut pages = self.archive.state().pages(filter)?;
            let Some(last) = pages.last() else { return Ok(()) };
            after = Some(last.id);
            // A page of several sites is with the one that keeps its schedule.
            pages.retain(|page| page.site == site);
            for page in &pages {
                self.push(&format!("pages/site={}", site.0), schema::PAGES, page_row(page))?;
                self.report.pages += 1;
            }
            let places: Vec<_> = pages.iter().map(|page| page.nth).collect();
            for links in self.archive.state().links(&places)? {
                for target in links.targets.unwrap_or_default() {
                    let row = vec![i64::from(links.nth.0).into(), i64::from(target.0).into()];
                    self.push(&format!("links/site={}", site.0), schema::LINKS, row)?;
                    self.report.links += 1;
                }
            }
        }
    }

    /// Adds a row to the file of this portion in a folder.
    fn push(&mut self, folder: &str, schema: &str, row: Vec<Value>) -> Result<()> {
        if !self.files.contains_key(folder) {
            if self.files.len() >= MAX_MONTHS
                && let Some((_, (name, file))) = self.files.pop_first()
            {
                file.finish()?;
                self.written.files.insert(name);
            }
            let name = format!("{folder}/{:06}.parquet", self.written.next_file);
            let file = TableFile::create(&self.folder.join(&name), schema)?;
            self.written.next_file += 1;
            self.report.files += 1;
            self.files.insert(folder.to_owned(), (name, file));
        }
        match self.files.get_mut(folder) {
            Some((_, file)) => file.push(row),
            None => Ok(()),
        }
    }

    /// Ends the files of a portion and names them.
    fn end_portion(&mut self) -> Result<()> {
        for (_, (name, file)) in std::mem::take(&mut self.files) {
            file.finish()?;
            self.written.files.insert(name);
        }
        if self.written.of.is_none() {
            self.written.of = self.archive.mark(&self.written.versions);
        }
        noted::write(self.folder, STATE, &self.written)
    }

    /// Deletes files that no portion has named.
    fn delete_unnamed(&self) -> Result<()> {
        for table in TABLES {
            let Ok(partitions) = fs::read_dir(self.folder.join(table)) else { continue };
            for partition in partitions.flatten() {
                let Ok(files) = fs::read_dir(partition.path()) else { continue };
                for file in files.flatten() {
                    let names = (partition.file_name(), file.file_name());
                    let name = format!(
                        "{table}/{}/{}",
                        names.0.to_string_lossy(),
                        names.1.to_string_lossy()
                    );
                    if name.ends_with(".parquet") && !self.written.files.contains(&name) {
                        let path = file.path();
                        fs::remove_file(&path).map_err(ArchiveError::writing(&path))?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn page_row(page: &PageRecord) -> Vec<Value> {
    let rate = page.estimate.map(|estimate| f64::from(estimate.rate_micros) / 1e6);
    let confidence = page.estimate.map(|estimate| f64::from(estimate.confidence_percent) / 100.0);
    vec![
        i64::from(page.nth.0).into(),
        page.url.as_str().into(),
        time(page.discovered_s),
        time(page.visited_s),
        time(page.due_s),
        Value::Text(page.outcome.map(|outcome| outcome.to_string())),
        i64::from(page.visits).into(),
        i64::from(page.changes).into(),
        i64::from(page.significant).into(),
        i64::from(page.failures).into(),
        (page.bytes as i64).into(),
        Value::Int(page.version.map(|version| version.0 as i64)),
        Value::Real(page.importance()),
        Value::Real(rate),
        Value::Real(confidence),
    ]
}

/// The folder of a table for the month of a time.
fn by_month(table: &str, at_s: i64) -> String {
    let (year, month, _) = date_of(at_s.div_euclid(86_400));
    format!("{table}/month={year:04}-{month:02}")
}

/// What an earlier run wrote. A folder with other files is refused.
fn read_state(folder: &Path) -> Result<Written> {
    let path = folder.join(STATE);
    let refuse = |what: &str| Err(ArchiveError::Input(format!("{}: {what}", path.display())));
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let entries = fs::read_dir(folder).map_err(ArchiveError::reading(folder))?;
            let is_own = |name: &str| TABLES.contains(&name) || name == format!("{STATE}.part");
            if entries.flatten().any(|entry| !is_own(&entry.file_name().to_string_lossy())) {
                let what = "has files that are not tables of an archive; name another folder";
                return Err(ArchiveError::Input(format!("{} {what}", folder.display())));
            }
            return Ok(Written { nenrin_tables: FORMAT, ..Written::default() });
        }
        Err(error) => return Err(ArchiveError::reading(&path)(error)),
    };
    match serde_json::from_slice::<Written>(&text) {
        Ok(written) if written.nenrin_tables == FORMAT => Ok(written),
        Ok(_) => refuse("it is of another version of this program; export into another folder"),
        Err(_) => refuse("it is damaged; put back a copy of it, or export into another folder"),
    }
}
