//! A copy of an archive that is an archive itself, made while others go on writing.
//!
//! First the state as it is at one moment, then the packs: whatever the state names was in the packs
//! before. Packs never change once they have ended, so an earlier copy needs only those that are new,
//! and the one that was still growing. The state is put in place last. So the copy can be opened
//! whenever it is cut short, and the next run goes on.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use nenrin_store::Digest;
use serde::{Deserialize, Serialize};

use crate::{
    Archive, ArchiveError, OpenOptions, Progress, Result,
    archive::{INDEX, PACKS, STATE},
    lock::Lock,
    noted,
    spans::rfc3339,
};

/// The file that says of which archive a folder is a copy.
pub(crate) const NOTE: &str = "backup.json";
pub(crate) const FORMAT: u32 = 1;
/// If versions are removed or packs replaced meanwhile, it is begun again, so often.
const TRIES: usize = 5;
/// Files of the archive's folder that are not part of a copy: they are made again.
const LEFT_OUT: [&str; 3] = [STATE, INDEX, "nenrin.lock"];

/// The result of a backup.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BackedUp {
    /// Packs of the archive.
    pub packs: u64,
    /// Bytes of packs that were copied now.
    pub copied_bytes: u64,
    /// Bytes of packs that an earlier backup had copied already.
    pub known_bytes: u64,
    /// Bytes of the state, which is copied as a whole each time.
    pub state_bytes: u64,
    /// Packs of the copy that the archive has replaced, and that were deleted.
    pub deleted: u64,
    /// Versions that can be read from the copy.
    pub versions: u64,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Note {
    nenrin_backup: u32,
    /// The archive that it is a copy of.
    of: PathBuf,
    /// When the last copy was complete; none while the first is made.
    date: Option<String>,
}

impl Archive {
    /// Copies the archive into a folder that is new, empty or an earlier copy, and checks what was
    /// copied. Others may write to the archive meanwhile. Progress is counted in bytes of packs.
    pub fn back_up(
        &self,
        target: &Path,
        now_s: i64,
        progress: &mut Progress<'_>,
    ) -> Result<BackedUp> {
        let of = fs::canonicalize(self.folder()).map_err(ArchiveError::reading(self.folder()))?;
        let mut note = begin(target, of)?;
        let lock = Lock::hold(target)?;
        let copy = Copy { from: self.folder(), to: target };
        let mut done = BackedUp::default();
        let part = target.join(format!("{STATE}.part"));
        self.copy_at_one_moment(&part, &mut || {
            each_pack(self.folder(), &mut done, progress, &mut |name, bytes, is_last| {
                copy.pack(name, bytes, is_last)
            })
        })?;
        copy.other_files()?;
        copy.put_state()?;
        done.deleted = copy.delete_others()?;
        done.state_bytes = length(&target.join(STATE))?;
        drop(lock);
        done.versions = check(target)?;
        note.date = Some(rfc3339(now_s));
        noted::write(target, NOTE, &note)?;
        Ok(done)
    }

    /// Copies a backup to where an archive is to be; there must be none yet.
    pub fn restore(
        backup: &Path,
        target: &Path,
        now_s: i64,
        progress: &mut Progress<'_>,
    ) -> Result<BackedUp> {
        if read_note(backup)?.is_none_or(|note| note.date.is_none()) {
            let what = "is not a complete backup";
            return Err(ArchiveError::Input(format!("{} {what}", backup.display())));
        }
        let archive = Self::open(backup, &OpenOptions::reading())?;
        let done = archive.back_up(target, now_s, progress)?;
        // From here on it is an archive like any other.
        delete(&target.join(NOTE))?;
        Ok(done)
    }

    /// Copies the state to a file as it is at one moment, and then has the packs copied; both again if
    /// versions were removed or packs replaced meanwhile.
    pub(crate) fn copy_at_one_moment(
        &self,
        state: &Path,
        packs: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        let folder = self.folder().join(PACKS);
        for _ in 0..TRIES {
            let (removed, before) = (self.removed()?, list(&folder)?);
            delete(state)?;
            self.state().copy_to(state)?;
            packs()?;
            // What was removed meanwhile is still named by the state that was copied.
            let after = list(&folder)?;
            if before.keys().all(|name| after.contains_key(name)) && removed == self.removed()? {
                return Ok(());
            }
        }
        let what = "the archive is being compacted or pruned all the time";
        Err(ArchiveError::Input(format!("{what}; try again when that is done")))
    }

    /// What changes when versions are removed.
    fn removed(&self) -> Result<(usize, usize)> {
        Ok((self.state().removals()?.len(), self.state().prunes()?.len()))
    }
}

/// Refuses a folder that is something else than an earlier copy of this archive.
pub(crate) fn begin(target: &Path, of: PathBuf) -> Result<Note> {
    fs::create_dir_all(target.join(PACKS)).map_err(ArchiveError::io("create", target))?;
    let is_inside = fs::canonicalize(target).is_ok_and(|target| target.starts_with(&of));
    if is_inside {
        let what = "is inside the archive; name a folder on another disk";
        return Err(ArchiveError::Input(format!("{} {what}", target.display())));
    }
    match read_note(target)? {
        Some(note) if note.of == of => return Ok(note),
        Some(note) => {
            return Err(ArchiveError::Input(format!(
                "{} is a backup of {}; name another folder or, if the archive was moved, write its \
                 new folder into {NOTE}",
                target.display(),
                note.of.display()
            )));
        }
        None => {}
    }
    let has_files = |folder: &Path| {
        let entries = fs::read_dir(folder).map_err(ArchiveError::reading(folder))?;
        Ok::<_, ArchiveError>(entries.flatten().any(|entry| entry.file_name() != PACKS))
    };
    if has_files(target)? || has_files(&target.join(PACKS))? {
        let what = "has files that are not a backup; name another folder";
        return Err(ArchiveError::Input(format!("{} {what}", target.display())));
    }
    let note = Note { nenrin_backup: FORMAT, of, date: None };
    noted::write(target, NOTE, &note)?;
    Ok(note)
}

fn read_note(folder: &Path) -> Result<Option<Note>> {
    let path = folder.join(NOTE);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ArchiveError::reading(&path)(error)),
    };
    match serde_json::from_slice::<Note>(&text) {
        Ok(note) if note.nenrin_backup == FORMAT => Ok(Some(note)),
        _ => Err(ArchiveError::Input(format!("{} cannot be read", path.display()))),
    }
}

/// Makes the index of the copy, and counts what can be found by it.
pub(crate) fn check(target: &Path) -> Result<u64> {
    let archive = Archive::open(target, &OpenOptions::changing())?;
    let wrong = archive.state().check()?;
    if let Some(what) = wrong.first() {
        let what = format!("the state of the backup {} is damaged: {what}", target.display());
        return Err(ArchiveError::Input(what));
    }
    let (mut versions, mut missing) = (0, 0);
    archive.state().each_version(&mut |_, row| {
        match archive.store().has(row.version) {
            Ok(true) => versions += 1,
            _ => missing += 1,
        };
    })?;
    match missing {
        0 => Ok(versions),
        _ => Err(ArchiveError::Input(format!(
            "{missing} of {} versions cannot be found in the backup {}; `nenrin verify` says whether \
             the archive is sound",
            versions + missing,
            target.display()
        ))),
    }
}

struct Copy<'a> {
    from: &'a Path,
    to: &'a Path,
}

impl Copy<'_> {
    /// Names and lengths of the packs of the archive.
    fn packs(&self) -> Result<BTreeMap<String, u64>> {
        list(&self.from.join(PACKS))
    }

    /// Copies a pack, unless the copy has it, and reads it again; returns the bytes that were copied. One that was still growing is copied as
    /// a whole: the copy may have cut off a part of it since.
    fn pack(&self, name: &str, bytes: u64, is_last: bool) -> Result<u64> {
        let (from, to) = (self.from.join(PACKS).join(name), self.to.join(PACKS).join(name));
        let known = fs::metadata(&to).map(|found| found.len()).ok();
        if known == Some(bytes) && (!is_last || hash(&from, bytes)? == hash(&to, bytes)?) {
            return Ok(0);
        }
        let part = self.to.join("pack.part");
        let written = || ArchiveError::writing(&part);
        let mut source = File::open(&from).map_err(ArchiveError::reading(&from))?;
        let mut target = File::create(&part).map_err(written())?;
        io::copy(&mut Read::by_ref(&mut source).take(bytes), &mut target).map_err(written())?;
        target.sync_all().map_err(written())?;
        if hash(&from, bytes)? != hash(&part, bytes)? {
            let what = format!("{} does not have what was written to it", part.display());
            return Err(ArchiveError::Input(format!("{what}; its disk may be failing")));
        }
        if known.is_some() {
            self.delete_index()?;
        }
        fs::rename(&part, &to).map_err(ArchiveError::writing(&to))?;
        Ok(bytes)
    }

    /// The index is made again from the packs.
    fn delete_index(&self) -> Result<()> {
        let mut ends = ["", "-wal", "-shm", "-journal"].iter();
        ends.try_for_each(|end| delete(&self.to.join(format!("{INDEX}{end}"))))
    }

    /// Small files of the archive's folder: what was lost and accepted, and the like.
    fn other_files(&self) -> Result<()> {
        for name in other_files(self.from)? {
            let (from, to) = (self.from.join(&name), self.to.join(&name));
            fs::copy(&from, &to).map_err(ArchiveError::writing(&to))?;
        }
        Ok(())
    }

    /// Puts the copied state in the place of an earlier one.
    fn put_state(&self) -> Result<()> {
        let (state, part) = (self.to.join(STATE), self.to.join(format!("{STATE}.part")));
        let put = || {
            File::open(&part)?.sync_all()?;
            for log in ["-wal", "-shm"] {
                match fs::remove_file(self.to.join(format!("{STATE}{log}"))) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
            fs::rename(&part, &state)?;
            File::open(self.to.join(PACKS))?.sync_all()?;
            File::open(self.to)?.sync_all()
        };
        put().map_err(ArchiveError::writing(&state))
    }

    /// Deletes packs that the archive has replaced.
    fn delete_others(&self) -> Result<u64> {
        let (packs, mut deleted) = (self.packs()?, 0);
        for (name, _) in list(&self.to.join(PACKS))? {
            if !packs.contains_key(&name) {
                delete(&self.to.join(PACKS).join(name))?;
                deleted += 1;
            }
        }
        if deleted > 0 {
            self.delete_index()?;
        }
        Ok(deleted)
    }
}

/// Hands every pack of an archive to `copy`, with its length and whether it is the last, until no other has
/// come meanwhile. `copy` returns how many bytes it copied: all or, of a pack that is there already, none.
pub(crate) fn each_pack(
    archive: &Path,
    done: &mut BackedUp,
    progress: &mut Progress<'_>,
    copy: &mut dyn FnMut(&str, u64, bool) -> Result<u64>,
) -> Result<()> {
    let folder = archive.join(PACKS);
    loop {
        let packs = list(&folder)?;
        let (mut sum, all, mut is_complete) = (0, packs.values().sum(), true);
        (done.packs, done.known_bytes) = (packs.len() as u64, 0);
        for (name, bytes) in &packs {
            let is_last = packs.last_key_value().is_some_and(|(last, _)| last == name);
            match copy(name, *bytes, is_last) {
                Ok(0) => done.known_bytes += bytes,
                Ok(copied) => done.copied_bytes += copied,
                // It was replaced by another one meanwhile.
                Err(ArchiveError::Io { source, .. })
                    if source.kind() == io::ErrorKind::NotFound =>
                {
                    is_complete = false;
                }
                Err(other) => return Err(other),
            }
            sum += bytes;
            progress(sum, all);
        }
        if is_complete && list(&folder)?.keys().all(|name| packs.contains_key(name)) {
            return Ok(());
        }
    }
}

/// Files of the archive's folder that are copied beside state and packs.
pub(crate) fn other_files(folder: &Path) -> Result<Vec<String>> {
    let is_left_out = |name: &String| {
        LEFT_OUT.iter().any(|left_out| name.starts_with(left_out))
            || name == NOTE
            || name.ends_with(".part")
    };
    Ok(list(folder)?.into_keys().filter(|name| !is_left_out(name)).collect())
}

/// The digest of the front of a file.
pub(crate) fn hash(path: &Path, bytes: u64) -> Result<Digest> {
    let file = File::open(path).map_err(ArchiveError::reading(path))?;
    let read = Digest::of_read(&mut file.take(bytes));
    read.map(|(digest, _)| digest).map_err(ArchiveError::reading(path))
}

/// The files in a folder, without folders, and what a compaction notes.
pub(crate) fn list(folder: &Path) -> Result<BTreeMap<String, u64>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(ArchiveError::reading(folder))? {
        let entry = entry.map_err(ArchiveError::reading(folder))?;
        // A file may go while the folder is read.
        let Ok(metadata) = entry.metadata() else { continue };
        let name = entry.file_name().to_string_lossy().into_owned();
        if metadata.is_file() && name != "compacting" {
            found.insert(name, metadata.len());
        }
    }
    Ok(found)
}

fn length(path: &Path) -> Result<u64> {
    Ok(fs::metadata(path).map_err(ArchiveError::reading(path))?.len())
}

pub(crate) fn delete(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(ArchiveError::writing(path)(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use nenrin_state::{SiteConditions, SiteId};
    use nenrin_urls::CanonicalUrl;

    use super::*;
    use crate::Capture;

    pub(crate) struct World {
        pub(crate) folder: tempfile::TempDir,
        pub(crate) archive: Archive,
    }

    impl World {
        pub(crate) fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let archive = Archive::open(&folder.path().join("a"), &OpenOptions::writing()).unwrap();
            let top = CanonicalUrl::parse("http://e.com/").unwrap();
            archive.state().add_site("e", &SiteConditions::new(vec![top]), 0).unwrap();
            Self { folder, archive }
        }

        pub(crate) fn visit(&self, at_s: i64, pages: std::ops::Range<u32>) {
            let mut ingest = self.archive.ingest(SiteId(1)).unwrap();
            for page in pages {
                let url = CanonicalUrl::parse(&format!("http://e.com/{page}")).unwrap();
                let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
                let body = format!("<p>{page} at {at_s}</p>").repeat(20);
                ingest.take(&Capture::new(&url, at_s, 200, head, body.as_bytes())).unwrap();
            }
            ingest.finish().unwrap();
        }

        fn to(&self) -> PathBuf {
            self.folder.path().join("b")
        }

        fn back_up(&self) -> BackedUp {
            self.archive.back_up(&self.to(), 1, &mut |_, _| {}).unwrap()
        }
    }

    fn contents(archive: &Archive) -> BTreeMap<(String, i64), Vec<u8>> {
        let mut found = BTreeMap::new();
        archive
            .state()
            .each_version(&mut |url, row| {
                let body = archive.store().read(row.version).unwrap().body;
                found.insert((url.to_string(), row.at_s), body);
            })
            .unwrap();
        found
    }

    fn assert_same(world: &World) {
        let copy = Archive::open(&world.to(), &OpenOptions::reading()).unwrap();
        assert_eq!(contents(&copy), contents(&world.archive));
        assert!(copy.verify(true, &mut |_, _| {}).unwrap().is_sound());
    }

    #[test]
    fn a_copy_is_an_archive_and_only_what_is_new_is_copied() {
        let world = World::new();
        world.visit(100, 0..40);
        let first = world.back_up();
        assert_eq!((first.versions, first.known_bytes), (40, 0));
        assert!(first.copied_bytes > 0);
        assert_same(&world);
        let again = world.back_up();
        assert_eq!(again.copied_bytes, 0);
        world.visit(200, 30..60);
        let more = world.back_up();
        assert!(more.copied_bytes > first.copied_bytes, "the open pack as a whole: {more:?}");
        assert_same(&world);
        // Compacting replaces all packs.
        world.archive.compact(&mut |_, _| {}).unwrap();
        let compacted = world.back_up();
        assert!(compacted.deleted > 0 && compacted.versions == 70, "{compacted:?}");
        assert_same(&world);
    }

    #[test]
    fn a_backup_comes_back_and_one_that_is_not_complete_is_refused() {
        let world = World::new();
        world.visit(100, 0..20);
        world.back_up();
        let back = world.folder.path().join("back");
        Archive::restore(&world.to(), &back, 2, &mut |_, _| {}).unwrap();
        let archive = Archive::open(&back, &OpenOptions::changing()).unwrap();
        assert_eq!(contents(&archive), contents(&world.archive));
        assert!(!back.join(NOTE).exists());
        drop(archive);
        let refused = Archive::restore(&back, &world.folder.path().join("c"), 2, &mut |_, _| {});
        assert!(refused.unwrap_err().to_string().contains("not a complete backup"));
        let refused = Archive::restore(&world.to(), &back, 2, &mut |_, _| {});
        assert!(refused.unwrap_err().to_string().contains("not a backup"));
    }

    #[test]
    fn other_folders_are_refused() {
        let world = World::new();
        world.visit(100, 0..2);
        let inside = world.folder.path().join("a/copy");
        let refused = world.archive.back_up(&inside, 1, &mut |_, _| {}).unwrap_err();
        assert!(refused.to_string().contains("inside the archive"), "{refused}");
        let other = World::new();
        other.visit(100, 0..2);
        world.back_up();
        let refused = other.archive.back_up(&world.to(), 1, &mut |_, _| {}).unwrap_err();
        assert!(refused.to_string().contains("is a backup of"), "{refused}");
    }

    #[test]
    fn a_copy_that_was_cut_short_is_completed() {
        for part in 1..=4 {
            let world = World::new();
            world.visit(100, 0..40);
            world.back_up();
            world.visit(200, 0..40);
            let pack = |folder: &Path| {
                let packs = list(&folder.join(PACKS)).unwrap();
                folder.join(PACKS).join(packs.keys().next_back().unwrap())
            };
            let whole = fs::read(pack(world.archive.folder())).unwrap();
            let before = fs::metadata(pack(&world.to())).unwrap().len() as usize;
            let cut = before + (whole.len() - before) * part / 4;
            fs::write(pack(&world.to()), &whole[..cut]).unwrap();
            // Whoever opens it cuts off what is torn; the versions that it had are there.
            let copy = Archive::open(&world.to(), &OpenOptions::changing()).unwrap();
            assert_eq!(contents(&copy).len(), 40, "{cut}");
            drop(copy);
            assert_eq!(world.back_up().versions, 80, "{cut}");
            assert_same(&world);
        }
    }
}
