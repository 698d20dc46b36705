//! Captures become versions with their dates, whatever the order in which they come.

use std::{
    path::Path,
    sync::{OnceLock, mpsc},
};

use nenrin_state::{SiteConditions, SiteId, StateError};
use nenrin_urls::CanonicalUrl;

use super::{
    capture::RawCapture,
    commit::{Imported, Importer, url_hash},
    found::Found,
    large::store_large,
    limits::{BATCH, STORED_WAITING, STORERS_MAX, TOGETHER, TOGETHER_BYTES, WAITING},
    memory::MemoryBudget,
    reading::{Taking, read_all},
    revisits::resolve_revisits,
    source::Source,
    spawn,
    storer::{Stored, Storer},
};
use crate::{Archive, ArchiveError, Progress, Result, ingest::Contents, sites};

/// From so many bytes on files are taken in quickly, and `compact` makes them small.
const MUCH_BYTES: u64 = 256 << 20;

/// Files to import: WARC, ARC, or WACZ packages of them.
pub struct WarcFiles {
    sources: Vec<Source>,
    name: String,
}

impl WarcFiles {
    /// Looks at the files; fails where one cannot be read.
    pub fn open(paths: &[impl AsRef<Path>]) -> Result<Self> {
        let mut sources = Vec::new();
        for path in paths {
            sources.extend(Source::of(path.as_ref())?);
        }
        let name = paths.first().map(|path| name_of(path.as_ref())).unwrap_or_default();
        Ok(Self { sources, name })
    }

    /// A name after the first file: `crawl-2024` for `crawl-2024.warc.gz`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many WARC and ARC files there are, those inside packages counted one by one.
    pub fn count(&self) -> usize {
        self.sources.len()
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.sources.iter().map(|source| source.bytes).sum()
    }

    /// Whether this is so much that an archive should be opened with
    /// [`OpenOptions::writing_much`](crate::OpenOptions::writing_much), and compacted afterwards.
    pub fn is_much(&self) -> bool {
        self.bytes() >= MUCH_BYTES
    }
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.split(".warc").next().unwrap_or_default();
    let stem = stem.trim_end_matches(".gz").trim_end_matches(".arc").trim_end_matches(".wacz");
    let stem: String = stem.chars().take(100).collect();
    if stem.is_empty() { "imported".to_owned() } else { stem }
}

/// How WARC files are imported.
#[derive(Debug, Clone)]
pub struct WarcImportOptions {
    /// The site that the captures belong to, by name. It is registered where there is none, with
    /// the URL of the first capture as its top page.
    pub site: String,
    /// Digests in the files are believed, not checked.
    pub is_trusting: bool,
    /// How many links deep a newly registered site is collected.
    pub depth: u32,
    /// When the import is made, in seconds since the epoch.
    pub now_s: i64,
}

impl WarcImportOptions {
    /// Into the site of this name; digests are checked.
    pub fn new(site: impl Into<String>, now_s: i64) -> Self {
        let depth = SiteConditions::DEFAULT_DEPTH;
        Self { site: site.into(), is_trusting: false, depth, now_s }
    }
}

impl Archive {
    /// Imports WARC, ARC and WACZ files: captures become versions with their own dates, revisits
    /// become unchanged visits. What the archive has already is left out, so that the same files
    /// can be imported again. Progress is counted in bytes read.
    pub fn import_warc(
        &self,
        files: &WarcFiles,
        options: &WarcImportOptions,
        progress: &mut Progress<'_>,
    ) -> Result<Imported> {
        let all_bytes = files.bytes();
        if let Some(parts) = self.parts() {
            if let Err(error) = sites::named(&**self.state(), &options.site) {
                return Err(ArchiveError::Input(format!(
                    "{error}; register the site with `nenrin site add` first, and name it with --site"
                )));
            }
            // Each part takes the captures of its own servers.
            let (mut all, mut read_bytes) = (Imported::default(), 0);
            parts.each(false, &mut |part| {
                all.add(part.import_warc(files, options, &mut |read, _| {
                    progress(read_bytes + read, all_bytes * parts.count());
                })?);
                read_bytes += all_bytes;
                Ok(())
            })?;
            self.store().catch_up()?;
            return Ok(all);
        }
        let mut site = |first: &CanonicalUrl| {
            let state = &**self.state();
            match sites::named(state, &options.site) {
                Ok(site) => Ok(site.id),
                Err(ArchiveError::State(StateError::NoSuchSite { .. })) => {
                    let depth = options.depth;
                    let tops = vec![first.clone()];
                    let conditions = SiteConditions { depth, ..SiteConditions::new(tops) };
                    Ok(state.add_site(&options.site, &conditions, options.now_s)?.id)
                }
                Err(other) => Err(other),
            }
        };
        import(self, files, options.is_trusting, &mut site, &mut |read| progress(read, all_bytes))
    }
}

/// Imports all files. The site is requested when the first capture comes; `tell` is called with the
/// number of bytes read.
///
/// Some threads read and check, some compress and store, one makes stored content durable, and this
/// one commits. All captures of a URL go through the same thread, so that each finds the one before
/// it.
fn import(
    archive: &Archive,
    files: &WarcFiles,
    is_trusting: bool,
    site: &mut (dyn FnMut(&CanonicalUrl) -> Result<SiteId> + Send),
    tell: &mut dyn FnMut(u64),
) -> Result<Imported> {
    let sources = &files.sources[..];
    let memory = MemoryBudget::new(files.is_much());
    let the_site = OnceLock::new();
    let mut importer = Importer::new(archive)?;
    std::thread::scope(|scope| {
        let (sender, stored) = mpsc::sync_channel(STORED_WAITING);
        let (memory, the_site) = (&memory, &the_site);
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let mut storers = Vec::new();
        let threads = cores.min(STORERS_MAX);
        for _ in 0..threads {
            let (captures, waiting) = mpsc::sync_channel::<Vec<RawCapture>>(WAITING);
            storers.push(Hand { captures, held: Vec::new(), held_bytes: 0 });
            let stored = sender.clone();
            spawn(scope, "warc store", move || {
                let mut storer = Storer::new(archive);
                for captures in waiting {
                    let Some(&site) = the_site.get() else { return };
                    let outcomes = storer.captures(site, captures, memory, |capture| {
                        capture.open(sources, is_trusting)
                    });
                    if stored.send(outcomes).is_err() {
                        return;
                    }
                }
                let lessons = Stored::Lessons(Box::new(storer.lessons()));
                // If the receiver is gone, it has an error to report.
                let _unheard = stored.send(vec![Ok(lessons)]);
            });
        }
        spawn(scope, "warc deal", move || {
            let others = Vec::new();
            let mut dealing = Dealing { site, the_site, storers, others, stored: sender };
            let own = archive.state().partition();
            read_all(sources, memory, (threads, is_trusting), own, &mut dealing);
        });
        let (ahead, wanted) = mpsc::sync_channel(1);
        spawn(scope, "warc sync", move || make_durable_ahead(archive, wanted));
        importer.ahead = Some(ahead);
        let all_bytes = sources.iter().map(|source| source.bytes).sum();
        let taken = importer.take_all(stored, (memory, all_bytes), tell);
        importer.ahead = None;
        memory.close();
        taken
    })?;
    importer.batch_visits = BATCH;
    store_large(&mut importer, sources, &the_site, is_trusting)?;
    resolve_revisits(&mut importer, sources, &the_site)?;
    if let Some(&site) = the_site.get() {
        let lessons = std::mem::take(&mut importer.lessons);
        // Of a very large import the contents are not read a second time: links are read while
        // collecting.
        if files.is_much() {
            archive.learn(site, lessons, Contents::Unread)?;
        } else {
            archive.learn(site, lessons, Contents::Read)?;
            archive.settle_order()?;
        }
    }
    Ok(importer.imported)
}

/// Lets the disk write what is stored, whenever that is much.
fn make_durable_ahead(archive: &Archive, wanted: mpsc::Receiver<()>) {
    for () in wanted {
        if let Err(error) = archive.store().sync_ahead() {
            // The store takes nothing more, which ends the import.
            tracing::error!("cannot make durable what was stored: {error}");
            return;
        }
    }
}

/// Deals captures out among the storers, by URL.
struct Dealing<'a> {
    site: &'a mut (dyn FnMut(&CanonicalUrl) -> Result<SiteId> + Send),
    the_site: &'a OnceLock<SiteId>,
    storers: Vec<Hand>,
    /// What was found besides captures and not reported yet.
    others: Vec<Result<Stored>>,
    stored: mpsc::SyncSender<Vec<Result<Stored>>>,
}

/// What goes to one storer.
struct Hand {
    captures: mpsc::SyncSender<Vec<RawCapture>>,
    held: Vec<RawCapture>,
    held_bytes: u64,
}

impl Hand {
    fn add(&mut self, capture: RawCapture) -> Option<()> {
        self.held_bytes += capture.bytes();
        self.held.push(capture);
        match self.held.len() >= TOGETHER || self.held_bytes >= TOGETHER_BYTES {
            true => self.deal(),
            false => Some(()),
        }
    }

    fn deal(&mut self) -> Option<()> {
        self.held_bytes = 0;
        let held = std::mem::take(&mut self.held);
        if held.is_empty() { Some(()) } else { self.captures.send(held).ok() }
    }
}

impl Dealing<'_> {
    /// The site is requested when the first capture comes.
    fn know_site(&mut self, first: &CanonicalUrl) -> Option<()> {
        if self.the_site.get().is_some() {
            return Some(());
        }
        match (self.site)(first) {
            Ok(site) => self.the_site.set(site).ok(),
            Err(error) => {
                // Nothing can be taken in: the error ends the import.
                let _unheard = self.stored.send(vec![Err(error)]);
                None
            }
        }
    }

    fn send_others(&mut self) -> Option<()> {
        self.stored.send(std::mem::take(&mut self.others)).ok()
    }
}

impl Taking for Dealing<'_> {
    fn capture(&mut self, capture: RawCapture) -> Option<()> {
        self.know_site(&capture.url)?;
        let storer = url_hash(&capture.url) as usize % self.storers.len();
        self.storers[storer].add(capture)
    }

    fn other(&mut self, found: Found) -> Option<()> {
        if let Found::Large(large) = &found {
            self.know_site(&large.url)?;
        }
        self.others.push(Ok(Stored::Found(found)));
        if self.others.len() < TOGETHER {
            return Some(());
        }
        self.send_others()
    }

    fn hold_nothing(&mut self) -> Option<()> {
        self.storers.iter_mut().try_for_each(Hand::deal)?;
        if self.others.is_empty() { Some(()) } else { self.send_others() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_names() {
        for (file, name) in [
            ("/x/crawl-2024.warc.gz", "crawl-2024"),
            ("a.arc.gz", "a"),
            ("b.wacz", "b"),
            (".warc", "imported"),
        ] {
            assert_eq!(name_of(Path::new(file)), name);
        }
    }
}
