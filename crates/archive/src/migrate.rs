//! Moving an archive: from a folder to one that workers share, and back.
//!
//! Site after site is written to WARC files in a temporary folder and imported. What the target has
//! already is left out, so that a move that was cut short goes on when it is made again. In the end
//! the versions of both are compared.

use std::path::Path;

use nenrin_state::{Removal, Site, Watch, WatchHit, WatchId};
use nenrin_store::Digest;

use crate::{
    Archive, ArchiveError, ExportOptions, OpenOptions, Progress, Result, SharedArchive, WarcFiles,
    WarcImportOptions, counted, sites,
};

/// What a move did.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Migrated {
    /// Sites of the source.
    pub sites: u64,
    /// Versions that both have now.
    pub versions: u64,
    /// Versions that were copied.
    pub copied: u64,
    /// Visits without new content that were copied.
    pub unchanged: u64,
    /// Versions and visits that were there already.
    pub known: u64,
    /// Watches that were copied.
    pub watches: u64,
    /// Sites that nobody may open: they are registered so there too, without their content.
    pub left_out: Vec<String>,
}

/// The versions of an archive, as numbers that do not depend on their order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sum {
    versions: u64,
    digests: u128,
}

impl Migrated {
    /// For people.
    pub fn lines(&self) -> Vec<String> {
        let (versions, copied) = (counted(self.versions, "version"), self.copied);
        let mut lines = vec![format!("both have the same {versions} now; {copied} were copied")];
        if self.watches > 0 {
            lines.push(format!("watches copied: {}", self.watches));
        }
        let left_out =
            |name: &String| format!("without its content, as nobody may open it: {name}");
        lines.extend(self.left_out.iter().map(left_out));
        lines
    }
}

impl SharedArchive {
    /// Copies the archive of the first folder into this one, or this one into that of the second.
    pub fn migrate(
        &self,
        (from, to): (Option<&Path>, Option<&Path>),
        now_s: i64,
        progress: &mut Progress<'_>,
    ) -> Result<Migrated> {
        let (shared, scratch) = (self.read()?, self.local().join("migrate"));
        if let Some(from) = from {
            let source = Archive::open(from, &OpenOptions::changing())?;
            return shared.migrate_from(&source, &scratch, now_s, progress);
        }
        let to = to.ok_or_else(|| ArchiveError::Input("name a folder with --to".to_owned()))?;
        let options = OpenOptions::writing().with_bucket_s(shared.state().bucket_s());
        Archive::open(to, &options)?.migrate_from(&shared, &scratch, now_s, progress)
    }
}

impl Archive {
    /// Copies all that can be opened in `source` into this archive, and compares both. `folder` is
    /// for temporary files. Progress is counted in pages of the source.
    ///
    /// # Errors
    /// [`ArchiveError::Input`] where the versions are not the same in the end.
    pub fn migrate_from(
        &self,
        source: &Archive,
        folder: &Path,
        now_s: i64,
        progress: &mut Progress<'_>,
    ) -> Result<Migrated> {
        let mut migrated = Migrated::default();
        let all = source.state().sites()?;
        let pages: u64 = all.iter().map(|site| site.counts.pages).sum();
        let mut done = 0;
        for site in &all {
            self.register_moved(site, now_s)?;
            if matches!(site.removed, Some(Removal::Deny | Removal::Delete)) {
                migrated.left_out.push(site.name.clone());
                continue;
            }
            self.move_site(source, site, (folder, now_s), &mut migrated)?;
            done += site.counts.pages;
            progress(done, pages);
            migrated.sites += 1;
        }
        migrated.watches = self.move_watches(source)?;
        let (before, after) = (source.sum()?, self.sum()?);
        if before != after {
            return Err(ArchiveError::Input(format!(
                "the archives differ: {} versions here, {} there; run this again, and \
                 `nenrin verify --deep` on both if it stays so",
                before.versions, after.versions
            )));
        }
        migrated.versions = after.versions;
        Ok(migrated)
    }

    /// Registers a site as it was registered elsewhere.
    fn register_moved(&self, site: &Site, now_s: i64) -> Result<()> {
        let state = &**self.state();
        let id = match sites::named(state, &site.name) {
            Ok(known) => {
                state.set_site(known.id, &site.conditions, now_s)?;
                known.id
            }
            Err(_) => state.add_site(&site.name, &site.conditions, site.created_s)?.id,
        };
        state.pause_site(id, site.paused)?;
        match site.removed {
            None => Ok(()),
            removed => Ok(state.remove_site(id, removed, "moved from another archive", now_s)?),
        }
    }

    /// Copies watches that are not here yet, with what they reported; returns how many.
    fn move_watches(&self, source: &Archive) -> Result<u64> {
        let (here, there) = (self.state().watches()?, source.state().watches()?);
        let hits = source.state().watch_hits()?;
        let mut copied = 0;
        for watch in there {
            let is_same = |known: &&Watch| {
                (&known.url, &known.part, known.on) == (&watch.url, &watch.part, watch.on)
            };
            if here.iter().any(|known| is_same(&known)) {
                continue;
            }
            let kept = self.state().keep_watch(&Watch { id: WatchId(0), ..watch.clone() })?;
            let mut own: Vec<WatchHit> =
                hits.iter().filter(|hit| hit.watch == watch.id).cloned().collect();
            own.sort_by_key(|hit| hit.id);
            own.iter_mut().for_each(|hit| (hit.id, hit.watch) = (0, kept.id));
            if !own.is_empty() {
                self.state().keep_watch_hits(&own)?;
            }
            copied += 1;
        }
        Ok(copied)
    }

    fn move_site(
        &self,
        source: &Archive,
        site: &Site,
        (folder, now_s): (&Path, i64),
        migrated: &mut Migrated,
    ) -> Result<()> {
        let folder = folder.join(format!("site-{}", site.id.0));
        std::fs::create_dir_all(&folder).map_err(ArchiveError::io("create", &folder))?;
        let options = ExportOptions { site: Some(site.id), ..ExportOptions::new(now_s) };
        let exported = source.export_warc(&folder.join("all.warc.gz"), &options, &mut |_, _| {})?;
        if exported.responses + exported.revisits > 0 {
            let files = WarcFiles::open(&exported.files)?;
            let options = WarcImportOptions::new(&site.name, now_s);
            let imported = self.import_warc(&files, &options, &mut |_, _| {})?;
            migrated.copied += imported.versions;
            migrated.unchanged += imported.unchanged;
            migrated.known += imported.known;
        }
        std::fs::remove_dir_all(&folder).map_err(ArchiveError::io("delete", &folder))
    }

    /// What every version that can be opened is: its URL, time, status and bytes.
    fn sum(&self) -> Result<Sum> {
        self.store().catch_up()?;
        let mut sum = Sum::default();
        let mut failed = None;
        self.state().each_version(&mut |url, row| match self.store().head(row.version) {
            Ok(head) => {
                let text = format!("{url} {} {} {:?}", row.at_s, row.status, head.digest);
                let mut first = [0; 16];
                first.copy_from_slice(&Digest::of(text.as_bytes()).0[..16]);
                sum.versions += 1;
                sum.digests = sum.digests.wrapping_add(u128::from_le_bytes(first));
            }
            Err(error) => failed = Some(error),
        })?;
        match failed {
            Some(error) => Err(error.into()),
            None => Ok(sum),
        }
    }
}
