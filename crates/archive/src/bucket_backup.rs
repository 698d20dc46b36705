//! A copy of an archive as objects in a bucket, made while others go on writing.
//!
//! The name of an object ends with the digest of its bytes, so no object ever changes: what is new is
//! uploaded beside what is there. `backup.json` names the objects that make up the copy. It is written
//! last, in one request, so the bucket has a whole copy at any time, and a run that was cut short finds
//! what it uploaded.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use nenrin_store::{BackendError, Digest, ObjectPlace, StoreError};
use serde::{Deserialize, Serialize};

use crate::{
    Archive, ArchiveError, BackedUp, Progress, Result,
    archive::{PACKS, STATE},
    backup::{FORMAT, NOTE, begin, check, delete, each_pack, hash, list, other_files},
    lock::Lock,
    spans::rfc3339,
};

/// What the bucket has of an archive.
#[derive(Serialize, Deserialize)]
struct Contents {
    nenrin_backup: u32,
    /// The archive that it is a copy of.
    of: PathBuf,
    /// When the copy was complete; none while the first is made.
    date: Option<String>,
    /// The files of the archive, by their path in its folder.
    files: BTreeMap<String, Stored>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Stored {
    bytes: u64,
    digest: String,
}

impl Stored {
    fn object(&self, path: &str) -> String {
        format!("{path}-{}", self.digest)
    }
}

impl Archive {
    /// Copies the archive into a bucket that has nothing below the prefix, or an earlier copy, and reads
    /// what was copied again. Others may write to the archive meanwhile. Progress is counted in bytes of
    /// packs.
    pub fn back_up_to(
        &self,
        place: &ObjectPlace,
        now_s: i64,
        progress: &mut Progress<'_>,
    ) -> Result<BackedUp> {
        let of = fs::canonicalize(self.folder()).map_err(ArchiveError::reading(self.folder()))?;
        let before = begin_contents(place, of)?;
        let there = place.list("").map_err(StoreError::from)?.into_iter().collect();
        let mut upload = Upload { folder: self.folder(), place, there, files: BTreeMap::new() };
        let mut done = BackedUp::default();
        let part = self.folder().join(format!("{STATE}.part"));
        self.copy_at_one_moment(&part, &mut || upload.packs(&before.files, &mut done, progress))?;
        for name in other_files(self.folder())? {
            upload.file(&name, &self.folder().join(&name), None)?;
        }
        done.state_bytes = upload.file(STATE, &part, None)?;
        delete(&part)?;
        let files = upload.files;
        let contents = Contents { date: Some(rfc3339(now_s)), files, ..before };
        write_contents(place, &contents)?;
        let named: BTreeMap<String, u64> = contents
            .files
            .iter()
            .map(|(path, stored)| (stored.object(path), stored.bytes))
            .collect();
        let found = place.list("").map_err(StoreError::from)?;
        for (name, _) in found.iter().filter(|(name, _)| name != NOTE && !named.contains_key(name))
        {
            place.delete(name).map_err(StoreError::from)?;
            done.deleted += 1;
        }
        let found: BTreeMap<String, u64> = found.into_iter().collect();
        if let Some((name, _)) = named.iter().find(|(name, bytes)| found.get(*name) != Some(*bytes))
        {
            let what = "does not have what was written to it";
            return Err(ArchiveError::Input(format!("{} {what}: {name}", place.shown())));
        }
        self.state().each_version(&mut |_, _| done.versions += 1)?;
        Ok(done)
    }

    /// Copies a backup from a bucket to where an archive is to be; there must be none yet. Cut short, it
    /// goes on when it is run again.
    pub fn restore_from(
        place: &ObjectPlace,
        target: &Path,
        progress: &mut Progress<'_>,
    ) -> Result<BackedUp> {
        let contents = read_contents(place)?.filter(|contents| contents.date.is_some());
        let Some(contents) = contents else {
            let what = "does not have a complete backup";
            return Err(ArchiveError::Input(format!("{} {what}", place.shown())));
        };
        begin(target, PathBuf::from(place.shown()))?;
        let lock = Lock::hold(target)?;
        let mut done = BackedUp::default();
        let (mut sum, all) = (0, contents.files.values().map(|stored| stored.bytes).sum());
        // The state is put in place last.
        let (state, others): (Vec<_>, Vec<_>) =
            contents.files.iter().partition(|(path, _)| *path == STATE);
        for (path, stored) in others.into_iter().chain(state) {
            match download(place, path, stored, target)? {
                _ if path == STATE => done.state_bytes = stored.bytes,
                true => done.copied_bytes += stored.bytes,
                false => done.known_bytes += stored.bytes,
            }
            done.packs += u64::from(path.starts_with(PACKS));
            sum += stored.bytes;
            progress(sum, all);
        }
        drop(lock);
        done.versions = check(target)?;
        delete(&target.join(NOTE))?;
        Ok(done)
    }
}

fn read_contents(place: &ObjectPlace) -> Result<Option<Contents>> {
    let text = match place.get_whole(NOTE) {
        Ok(text) => text,
        Err(BackendError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(StoreError::from(error).into()),
    };
    match serde_json::from_slice::<Contents>(&text) {
        Ok(contents) if contents.nenrin_backup == FORMAT => Ok(Some(contents)),
        _ => Err(ArchiveError::Input(format!("{NOTE} in {} cannot be read", place.shown()))),
    }
}

fn write_contents(place: &ObjectPlace, contents: &Contents) -> Result<()> {
    let text = serde_json::to_vec_pretty(contents).map_err(|e| {
        ArchiveError::Input(format!("{NOTE} for {} cannot be written: {e}", place.shown()))
    })?;
    Ok(place.put(NOTE, text).map_err(StoreError::from)?)
}

/// Refuses a prefix with something else than an earlier copy of this archive.
fn begin_contents(place: &ObjectPlace, of: PathBuf) -> Result<Contents> {
    place.check().map_err(StoreError::from)?;
    let shown = place.shown();
    match read_contents(place)? {
        Some(contents) if contents.of == of => return Ok(contents),
        Some(contents) => {
            return Err(ArchiveError::Input(format!(
                "{shown} has a backup of {}; name another prefix or, if the archive was moved, write \
                 its new folder into {NOTE} there",
                contents.of.display()
            )));
        }
        None => {}
    }
    if !place.list("").map_err(StoreError::from)?.is_empty() {
        let what = "has objects that are not a backup; name another prefix";
        return Err(ArchiveError::Input(format!("{shown} {what}")));
    }
    let contents = Contents { nenrin_backup: FORMAT, of, date: None, files: BTreeMap::new() };
    write_contents(place, &contents)?;
    Ok(contents)
}

struct Upload<'a> {
    folder: &'a Path,
    place: &'a ObjectPlace,
    /// The objects that are there, with their lengths.
    there: BTreeMap<String, u64>,
    files: BTreeMap<String, Stored>,
}

impl Upload<'_> {
    /// Uploads until the bucket has all packs that there are.
    fn packs(
        &mut self,
        before: &BTreeMap<String, Stored>,
        done: &mut BackedUp,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        each_pack(self.folder, done, progress, &mut |name, bytes, is_last| {
            let path = format!("{PACKS}/{name}");
            // The last one may grow again after it was cut off: its bytes decide.
            let known = before.get(&path).filter(|stored| !is_last && stored.bytes == bytes);
            self.pack(&path, bytes, known)
        })?;
        let packs = list(&self.folder.join(PACKS))?;
        let is_there = |path: &str| path.rsplit('/').next().is_some_and(|n| packs.contains_key(n));
        self.files.retain(|path, _| is_there(path));
        Ok(())
    }

    /// Uploads a pack, unless the bucket has it; returns how many bytes were uploaded.
    fn pack(&mut self, path: &str, bytes: u64, known: Option<&Stored>) -> Result<u64> {
        let is_there = |stored: &&Stored| self.there.get(&stored.object(path)) == Some(&bytes);
        if let Some(stored) = known.filter(is_there) {
            self.files.insert(path.to_owned(), stored.clone());
            return Ok(0);
        }
        let before = self.there.len();
        self.file(path, &self.folder.join(path), Some(bytes))?;
        Ok(if self.there.len() > before { bytes } else { 0 })
    }

    /// Uploads the front of a file, or all of it, and reads it again; returns its bytes.
    fn file(&mut self, path: &str, from: &Path, bytes: Option<u64>) -> Result<u64> {
        let reading = || ArchiveError::reading(from);
        let length = match bytes {
            Some(bytes) => bytes,
            None => fs::metadata(from).map_err(reading())?.len(),
        };
        let stored = Stored { bytes: length, digest: hash(from, length)?.to_string() };
        let object = stored.object(path);
        if self.there.get(&object) != Some(&length) {
            let file = File::open(from).map_err(reading())?;
            self.place
                .put_from(&object, length, Box::new(file.take(length)))
                .map_err(StoreError::from)?;
            let read = Digest::of_read(&mut self.place.read(&object, length));
            let (digest, _) = read.map_err(ArchiveError::reading(Path::new(&object)))?;
            if digest.to_string() != stored.digest {
                let what = "does not have what was written to it";
                return Err(ArchiveError::Input(format!(
                    "{} {what}: {object}",
                    self.place.shown()
                )));
            }
            self.there.insert(object, length);
        }
        self.files.insert(path.to_owned(), stored);
        Ok(length)
    }
}

/// Downloads a file to its path below a folder, unless it is there; returns whether it was downloaded.
fn download(place: &ObjectPlace, path: &str, stored: &Stored, target: &Path) -> Result<bool> {
    let is_plain = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.contains('\\');
    let name = path.strip_prefix(PACKS).and_then(|rest| rest.strip_prefix('/')).unwrap_or(path);
    if !is_plain(name) || name.contains('/') {
        let what = "names a file that no archive has";
        return Err(ArchiveError::Input(format!("{NOTE} in {} {what}: {path}", place.shown())));
    }
    let to = target.join(path);
    let is_known = fs::metadata(&to).is_ok_and(|found| found.len() == stored.bytes);
    if is_known && hash(&to, stored.bytes)?.to_string() == stored.digest {
        return Ok(false);
    }
    let part = target.join("object.part");
    let writing = || ArchiveError::writing(&part);
    let mut file = File::create(&part).map_err(writing())?;
    let object = stored.object(path);
    io::copy(&mut place.read(&object, stored.bytes), &mut file).map_err(writing())?;
    file.sync_all().map_err(writing())?;
    if hash(&part, stored.bytes)?.to_string() != stored.digest {
        let what = "is damaged: it does not have the bytes that were written to it";
        return Err(ArchiveError::Input(format!("{object} in {} {what}", place.shown())));
    }
    fs::rename(&part, &to).map_err(ArchiveError::writing(&to))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OpenOptions, backup::tests::World};

    struct Bucket(World);

    impl Bucket {
        fn with(pages: std::ops::Range<u32>) -> Self {
            let world = World::new();
            world.visit(100, pages);
            Self(world)
        }

        fn place(&self) -> ObjectPlace {
            let address = format!("file://{}", self.0.folder.path().join("o").display());
            ObjectPlace::open(&address).unwrap()
        }

        fn back_up(&self) -> BackedUp {
            self.0.archive.back_up_to(&self.place(), 1, &mut |_, _| {}).unwrap()
        }

        fn restore(&self, name: &str) -> Result<Archive> {
            let target = self.0.folder.path().join(name);
            Archive::restore_from(&self.place(), &target, &mut |_, _| {})?;
            Archive::open(&target, &OpenOptions::reading())
        }

        fn refused(&self, name: &str) -> String {
            self.restore(name).map(drop).unwrap_err().to_string()
        }

        /// The first object whose name begins like this.
        fn object(&self, begins: &str) -> PathBuf {
            let found = self.place().list("").unwrap();
            let name = found.into_iter().map(|(name, _)| name).find(|n| n.starts_with(begins));
            self.0.folder.path().join("o").join(name.unwrap())
        }
    }

    fn versions(archive: &Archive) -> usize {
        assert!(archive.verify(true, &mut |_, _| {}).unwrap().is_sound());
        let mut count = 0;
        archive.state().each_version(&mut |_, _| count += 1).unwrap();
        count
    }

    #[test]
    fn a_bucket_gets_what_is_new_and_gives_the_archive_back() {
        let bucket = Bucket::with(0..40);
        let first = bucket.back_up();
        assert_eq!((first.versions, first.known_bytes), (40, 0));
        assert!(first.copied_bytes > 0);
        let again = bucket.back_up();
        assert_eq!((again.copied_bytes, again.known_bytes), (0, first.copied_bytes));
        bucket.0.visit(200, 30..60);
        assert_eq!(bucket.back_up().versions, 70);
        assert_eq!(versions(&bucket.restore("r1").unwrap()), 70);
        // Compacting replaces all packs.
        bucket.0.archive.compact(&mut |_, _| {}).unwrap();
        assert!(bucket.back_up().deleted > 0);
        assert_eq!(versions(&bucket.restore("r2").unwrap()), 70);
        assert!(!bucket.0.folder.path().join("r2").join(NOTE).exists());
        assert!(bucket.restore("r2").is_err(), "there is an archive already");
    }

    #[test]
    fn a_restore_that_was_cut_short_goes_on_and_damage_is_found() {
        let bucket = Bucket::with(0..40);
        bucket.back_up();
        let object = bucket.object("packs/");
        let whole = fs::read(&object).unwrap();
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 1;
        fs::write(&object, &flipped).unwrap();
        let error = bucket.refused("r");
        assert!(error.contains("damaged"), "{error}");
        fs::write(&object, &whole).unwrap();
        assert_eq!(versions(&bucket.restore("r").unwrap()), 40);
    }

    #[test]
    fn a_backup_that_was_cut_short_goes_on() {
        let bucket = Bucket::with(0..40);
        // The bucket has only the beginning, and a pack that no list names.
        let of = fs::canonicalize(bucket.0.archive.folder()).unwrap();
        begin_contents(&bucket.place(), of).unwrap();
        assert!(bucket.refused("r").contains("complete"));
        bucket.place().put("packs/pack-0000000009-left", b"over".to_vec()).unwrap();
        let done = bucket.back_up();
        assert_eq!((done.versions, done.deleted), (40, 1));
        assert_eq!(versions(&bucket.restore("r").unwrap()), 40);
    }

    #[test]
    fn other_prefixes_and_paths_that_lead_out_are_refused() {
        let bucket = Bucket::with(0..2);
        bucket.place().put("letter", b"of somebody else".to_vec()).unwrap();
        let refused = bucket.0.archive.back_up_to(&bucket.place(), 1, &mut |_, _| {}).unwrap_err();
        assert!(refused.to_string().contains("not a backup"), "{refused}");
        bucket.place().delete("letter").unwrap();
        bucket.back_up();
        let other = Bucket::with(0..2);
        let refused = other.0.archive.back_up_to(&bucket.place(), 1, &mut |_, _| {}).unwrap_err();
        assert!(refused.to_string().contains("has a backup of"), "{refused}");
        let mut contents = read_contents(&bucket.place()).unwrap().unwrap();
        let stored = contents.files[STATE].clone();
        for path in ["../out", "packs/../../out", "/out", ".hidden", "packs/"] {
            contents.files = BTreeMap::from([(path.to_owned(), stored.clone())]);
            write_contents(&bucket.place(), &contents).unwrap();
            let refused = bucket.refused("r");
            assert!(refused.contains("no archive has"), "{path}: {refused}");
        }
    }
}
