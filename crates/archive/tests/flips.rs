//! Damage to any file of an archive: found or harmless, mended by the commands that are named, and
//! never at the cost of many versions.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nenrin_archive::{Archive, Capture, OpenOptions, Result};
use nenrin_state::SiteConditions;
use nenrin_urls::CanonicalUrl;

/// Bits that are flipped one after the other, each in a fresh copy. `NENRIN_FLIPS=1000` for the bar of
/// `docs/reliability.md`.
const FLIPS: u64 = 60;
/// What one flipped bit may cost.
const VERSIONS_MAX: usize = 8;
const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";

/// Page, time and body of every version.
type Versions = BTreeMap<(String, i64), Vec<u8>>;

fn page(site: u64, number: u64, visit: u64) -> Vec<u8> {
    let mut text = format!("<html><title>{site} {number}</title>");
    for line in 0..20 {
        let salt = if line % 5 == visit % 5 { visit } else { 0 };
        let word = (site * 977 + number * 31 + line * 17 + salt * 1009).wrapping_mul(0x9e37_79b9);
        text.push_str(&format!("<p>line {line} says {word:x}</p>"));
    }
    text.into_bytes()
}

fn collect(archive: &Archive, site: u64, visits: std::ops::Range<u64>, kept: &mut Versions) {
    let url = |number: u64| {
        CanonicalUrl::parse(&format!("https://site-{site}.example/page-{number}")).unwrap()
    };
    let name = format!("site-{site}");
    let sites = archive.state().sites().unwrap();
    let id = match sites.iter().find(|site| site.name == name) {
        Some(site) => site.id,
        None => {
            let conditions = SiteConditions::new(vec![url(0)]);
            archive.state().add_site(&name, &conditions, 0).unwrap().id
        }
    };
    let mut ingest = archive.ingest(id).unwrap();
    for visit in visits {
        for number in 0..25 {
            let (url, body) = (url(number), page(site, number, visit));
            let at_s = 1_700_000_000 + visit as i64 * 86_400;
            ingest.take(&Capture::new(&url, at_s, 200, HEAD, &body)).unwrap();
            kept.insert((url.to_string(), at_s), body);
        }
    }
    ingest.finish().unwrap();
}

/// Two sites, a part compacted and a part not.
fn archive(folder: &Path) -> Versions {
    let mut kept = Versions::new();
    let archive = Archive::open(folder, &OpenOptions::writing()).unwrap();
    collect(&archive, 1, 0..3, &mut kept);
    collect(&archive, 2, 0..2, &mut kept);
    archive.compact(&mut |_, _| {}).unwrap();
    collect(&archive, 1, 3..5, &mut kept);
    kept
}

fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => {
                found.insert(path.clone(), std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn put_back(folder: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) {
    std::fs::remove_dir_all(folder).unwrap();
    for (path, bytes) in files {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

/// Whether a check says that all is well.
fn is_sound(folder: &Path) -> bool {
    let check = || -> Result<bool> {
        let archive = Archive::open(folder, &OpenOptions::checking())?;
        Ok(archive.verify(false, &mut |_, _| {})?.is_sound())
    };
    check().unwrap_or(false)
}

/// How many versions are not found by page and date as they were.
fn lost(folder: &Path, kept: &Versions) -> usize {
    let Ok(archive) = Archive::open(folder, &OpenOptions::reading()) else { return kept.len() };
    let is_lost = |((url, at_s), body): &(&(String, i64), &Vec<u8>)| {
        let found = archive.as_of(url, *at_s);
        !found.is_ok_and(|found| {
            found.is_some_and(|found| found.at_s() == *at_s && found.body() == &body[..])
        })
    };
    kept.iter().filter(is_lost).count()
}

/// What `verify --repair`, `reindex` and `verify --accept-loss` do.
fn mend(folder: &Path) {
    if let Ok(archive) = Archive::open(folder, &OpenOptions::writing()) {
        let _ = archive.repair(&mut |_, _| {});
    }
    if is_sound(folder) {
        return;
    }
    let archive = Archive::open(folder, &OpenOptions::rebuilding()).unwrap();
    archive.reindex(3, 0, &mut |_, _| {}).unwrap();
    drop(archive);
    if is_sound(folder) {
        return;
    }
    let archive = Archive::open(folder, &OpenOptions::writing()).unwrap();
    let verified = archive.verify(true, &mut |_, _| {}).unwrap();
    archive.accept_loss(&verified, 0).unwrap();
}

#[test]
fn a_flipped_bit_in_any_file_is_found_or_harmless_and_costs_few_versions() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("archive");
    let kept = archive(&folder);
    let pristine = files(&folder);
    assert!(is_sound(&folder));
    assert_eq!(lost(&folder, &kept), 0);
    let total: u64 = pristine.values().map(|bytes| bytes.len() as u64).sum();
    let flips = std::env::var("NENRIN_FLIPS").map_or(FLIPS, |count| count.parse().unwrap());
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let (mut found, mut harmless, mut worst) = (0, 0, 0);
    for flip in 0..flips {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let mut at = random % (total * 8);
        put_back(&folder, &pristine);
        let (path, bytes) = pristine
            .iter()
            .find(|(_, bytes)| {
                let is_in = at < bytes.len() as u64 * 8;
                at -= if is_in { 0 } else { bytes.len() as u64 * 8 };
                is_in
            })
            .unwrap();
        let mut bytes = bytes.clone();
        bytes[(at / 8) as usize] ^= 1 << (at % 8);
        std::fs::write(path, bytes).unwrap();
        let place = format!("flip {flip}: bit {at} of {}", path.display());
        if is_sound(&folder) {
            harmless += 1;
            assert_eq!(lost(&folder, &kept), 0, "not found, and not harmless: {place}");
            continue;
        }
        found += 1;
        mend(&folder);
        assert!(is_sound(&folder), "not mended: {place}");
        let lost = lost(&folder, &kept);
        assert!(lost <= VERSIONS_MAX, "{lost} versions lost: {place}");
        worst = worst.max(lost);
    }
    assert!(found > 0 && harmless > 0);
    eprintln!("{flips} flips: {found} found, {harmless} harmless, at most {worst} versions lost");
}

#[test]
fn an_index_of_any_shape_is_made_again_from_the_packs() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("archive");
    let kept = archive(&folder);
    let pristine = files(&folder);
    let index = folder.join("packs.index");
    let whole = &pristine[&index];
    let zeroed = |page: usize| {
        let mut bytes = whole.clone();
        bytes[page * 4096..(page + 1) * 4096].fill(0);
        bytes
    };
    let mut shapes: Vec<Vec<u8>> = (0..whole.len() / 4096).map(zeroed).collect();
    shapes.extend([Vec::new(), whole[..5000].to_vec(), b"not an index".repeat(900)]);
    for (number, shape) in shapes.iter().enumerate() {
        put_back(&folder, &pristine);
        std::fs::write(&index, shape).unwrap();
        let archive = Archive::open(&folder, &OpenOptions::rebuilding()).unwrap();
        let found = archive.reindex(3, 0, &mut |_, _| {}).unwrap();
        assert_eq!(found.versions, kept.len() as u64, "shape {number}");
        assert!(!found.has_lost() && found.aside.is_none(), "shape {number}: {found:?}");
        drop(archive);
        assert!(is_sound(&folder), "shape {number}");
        assert_eq!(lost(&folder, &kept), 0, "shape {number}");
    }
    put_back(&folder, &pristine);
    std::fs::remove_file(&index).unwrap();
    let archive = Archive::open(&folder, &OpenOptions::rebuilding()).unwrap();
    assert!(!archive.reindex(3, 0, &mut |_, _| {}).unwrap().has_lost());
}

#[test]
fn what_is_lost_is_named_and_can_be_accepted() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("archive");
    let kept = archive(&folder);
    let largest = files(&folder.join("packs")).into_iter().max_by_key(|(_, bytes)| bytes.len());
    std::fs::remove_file(largest.unwrap().0).unwrap();
    let archive = Archive::open(&folder, &OpenOptions::rebuilding()).unwrap();
    let found = archive.reindex(3, 0, &mut |_, _| {}).unwrap();
    assert!(found.has_lost() && found.lost > 10, "{found:?}");
    assert!(found.text().iter().any(|line| line.starts_with("lost: ")), "{found:?}");
    drop(archive);
    assert!(!is_sound(&folder));
    let archive = Archive::open(&folder, &OpenOptions::writing()).unwrap();
    let verified = archive.verify(false, &mut |_, _| {}).unwrap();
    assert_eq!(verified.missing.len() as u64, found.lost);
    assert_eq!(archive.accept_loss(&verified, 7).unwrap(), found.lost);
    let logged: u64 = archive.state().prunes().unwrap().iter().map(|row| row.versions).sum();
    assert_eq!(logged, found.lost);
    drop(archive);
    assert!(is_sound(&folder));
    assert_eq!(lost(&folder, &kept) as u64, found.lost);
    let again = Archive::open(&folder, &OpenOptions::rebuilding()).unwrap();
    assert!(!again.reindex(3, 0, &mut |_, _| {}).unwrap().has_lost());
}

#[test]
fn a_state_that_was_emptied_is_found() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("archive");
    let kept = archive(&folder);
    std::fs::write(folder.join("state.sqlite"), b"").unwrap();
    for options in [OpenOptions::checking(), OpenOptions::reading(), OpenOptions::writing()] {
        let error = Archive::open(&folder, &options).err().unwrap().to_string();
        assert!(error.contains("it is empty") && error.contains("reindex"), "{error}");
    }
    mend(&folder);
    assert_eq!(lost(&folder, &kept), 0);
}

#[test]
fn sites_of_a_damaged_state_keep_their_names_and_conditions() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("archive");
    let kept = archive(&folder);
    {
        let archive = Archive::open(&folder, &OpenOptions::writing()).unwrap();
        let site = &archive.state().sites().unwrap()[1];
        let removal = Some(nenrin_state::Removal::Deny);
        archive.state().remove_site(site.id, removal, "asked to", 5).unwrap();
    }
    let path = folder.join("state.sqlite");
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute("UPDATE versions SET mime = 999 WHERE version = 7", []).unwrap();
    drop(connection);
    assert!(!is_sound(&folder));
    let archive = Archive::open(&folder, &OpenOptions::rebuilding()).unwrap();
    let found = archive.reindex(3, 0, &mut |_, _| {}).unwrap();
    assert_eq!(found.aside.map(|(_, sites)| sites), Some(2));
    let sites = archive.state().sites().unwrap();
    let names: Vec<&str> = sites.iter().map(|site| site.name.as_str()).collect();
    assert_eq!(names, ["site-1", "site-2"]);
    assert_eq!(sites[1].removed, Some(nenrin_state::Removal::Deny));
    let of_first = |((url, _), _): &(&(String, i64), &Vec<u8>)| url.contains("site-1");
    let shown: Versions =
        kept.iter().filter(of_first).map(|(a, b)| (a.clone(), b.clone())).collect();
    drop(archive);
    assert_eq!(lost(&folder, &shown), 0);
    assert_eq!(lost(&folder, &kept), kept.len() - shown.len(), "what was denied stays denied");
}

/// The engine finds nothing wrong with a row whose bytes make no sense: it must be read to see it.
#[test]
fn rows_that_make_no_sense_are_found_and_reindex_makes_them_again() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("archive");
    let kept = archive(&folder);
    let pristine = files(&folder);
    for (file, sql) in [
        ("packs.index", "UPDATE versions SET places = x'ff'"),
        ("state.sqlite", "UPDATE visits SET visits = x'ff'"),
    ] {
        put_back(&folder, &pristine);
        let database = rusqlite::Connection::open(folder.join(file)).unwrap();
        assert!(database.execute(sql, []).unwrap() > 0, "{file}");
        drop(database);
        let checked = Archive::open(&folder, &OpenOptions::checking()).unwrap();
        let found = checked.verify(false, &mut |_, _| {}).unwrap();
        let advice = found.text(false).pop().unwrap_or_default();
        assert!(advice.starts_with("damaged: ") && advice.contains("`nenrin reindex`"), "{advice}");
        assert!(!advice.contains("--repair"), "parity does not restore it: {advice}");
        drop(checked);
        let archive = Archive::open(&folder, &OpenOptions::rebuilding()).unwrap();
        archive.reindex(3, 0, &mut |_, _| {}).unwrap();
        drop(archive);
        assert!(is_sound(&folder), "{file}");
        assert_eq!(lost(&folder, &kept), 0, "{file}");
    }
}
