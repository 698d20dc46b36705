//! Archives of every released format stay readable for ever; damaged ones are named after their
//! damage. `cargo test -p nenrin-store --test store -- fixtures:: --ignored` writes those of the present
//! format again, which is right only before a release has written it.

use crate::common;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{Kept, assert_sound, html, open, options};
use nenrin_store::{
    CompactOptions, ContentBackend, Deflated, MemoryBackend, Packing, Store, StoreOptions,
    VersionId,
};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// What every fixture holds: pages at several visits, a gzipped page, a PNG and a GIF.
fn content() -> Vec<Kept> {
    let mut kept: Vec<Kept> = (0..4)
        .flat_map(|visit| (0..6).map(move |number| Kept::page(number, visit, html(number, visit))))
        .collect();
    for (at, body) in [gzip(&html(1, 5)), png(), gif()].into_iter().enumerate() {
        kept.push(Kept::page(100 + at as u64, 5, body));
    }
    kept[25].response_head = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n".to_vec();
    kept[26].response_head = b"HTTP/1.1 200 OK\r\nContent-Type: image/gif\r\n\r\n".to_vec();
    kept
}

/// Compressed by the encoder with which the fixtures were made: another's bytes would differ.
fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut member = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    member.extend(miniz_oxide::deflate::compress_to_vec(plain, 6));
    member.extend_from_slice(&crc(plain).to_le_bytes());
    member.extend_from_slice(&(plain.len() as u32).to_le_bytes());
    member
}

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// Sixty-four rows of a pattern, as a PNG that need not make sense to a viewer.
fn png() -> Vec<u8> {
    let rows: Vec<u8> = (0..64 * 65u32).map(|n| ((n % 65) * (n / 65) / 40) as u8).collect();
    png_of(vec![0; 13], &rows)
}

fn png_of(head: Vec<u8>, rows: &[u8]) -> Vec<u8> {
    let packed = miniz_oxide::deflate::compress_to_vec_zlib(rows, 9);
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, data) in [(b"IHDR", head), (b"IDAT", packed), (b"IEND", vec![])] {
        png.extend_from_slice(&(data.len() as u32).to_be_bytes());
        let mut checked = kind.to_vec();
        checked.extend_from_slice(&data);
        png.extend_from_slice(&checked);
        png.extend_from_slice(&crc(&checked).to_be_bytes());
    }
    png
}

/// Pictures of which as a whole the readers would wait too long: a JPEG and a PNG whose fronts are
/// recoded, and a PNG whose pixels are compressed by zstd.
fn slow_pictures() -> Vec<Kept> {
    let bodies = [large_jpeg(), large_png(), dense_png()];
    let picture = |(at, body)| Kept {
        response_head: b"HTTP/1.1 200 OK\r\nContent-Type: image/x\r\n\r\n".to_vec(),
        ..Kept::page(at, 1, body)
    };
    (0..).zip(bodies).map(picture).collect()
}

/// A grey JPEG of 1024 by 1024 pixels, each block the same bits.
fn large_jpeg() -> Vec<u8> {
    let mut jpeg = vec![0xff, 0xd8];
    let mut segment = |marker: u8, data: &[&[u8]]| {
        let data = data.concat();
        jpeg.extend_from_slice(&[0xff, marker]);
        jpeg.extend_from_slice(&(data.len() as u16 + 2).to_be_bytes());
        jpeg.extend_from_slice(&data);
    };
    let lengths = [0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    segment(0xdb, &[&[0], &[8; 64]]);
    segment(0xc0, &[&[8, 4, 0, 4, 0, 1, 1, 0x11, 0]]);
    segment(0xc4, &[&[0x00], &lengths, &[0, 1, 2, 3]]);
    segment(0xc4, &[&[0x10], &lengths, &[0x00, 0x01, 0x02, 0x11]]);
    segment(0xda, &[&[1, 1, 0, 0, 63, 0]]);
    // A step up, a wave up and the end of the block, then the same down, in 22 bits: so
    // eight of the 16,384 blocks are eleven bytes.
    let blocks = 0b00_1100_1100_0001_0001_0000_u128;
    let eight = (0..4).fold(0u128, |bits, _| bits << 22 | blocks);
    (0..2048).for_each(|_| jpeg.extend_from_slice(&eight.to_be_bytes()[5..]));
    jpeg.extend_from_slice(&[0xff, 0xd9]);
    jpeg
}

/// One and a half megabytes of rows, each as the one before but for four pixels.
fn large_png() -> Vec<u8> {
    let mut next = noise();
    let mut row = [0u8; 256].map(|_| next());
    let mut rows = Vec::new();
    for _ in 0..6000 {
        (0..4).for_each(|_| row[usize::from(next())] = next());
        rows.push(0);
        rows.extend_from_slice(&row);
    }
    png_of(vec![0, 0, 1, 0, 0, 0, 0x17, 0x70, 8, 0, 0, 0, 0], &rows)
}

/// The same rows twice, farther apart than deflate sees.
fn dense_png() -> Vec<u8> {
    let mut next = noise();
    let rows: Vec<u8> = (0..160)
        .flat_map(|_| [0].into_iter().chain([0; 256].map(|_| next() & 127)).collect::<Vec<_>>())
        .collect();
    png_of(vec![0, 0, 1, 0, 0, 0, 1, 0x40, 8, 0, 0, 0, 0], &rows.repeat(2))
}

fn noise() -> impl FnMut() -> u8 {
    let mut state = 1u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as u8
    }
}

/// A GIF of one colour: codes grow by one pixel each, so its LZW data can be written by hand.
fn gif() -> Vec<u8> {
    let mut gif = b"GIF89a\x10\0\x10\0\0\0\0,\0\0\0\0\x10\0\x10\0\0".to_vec();
    let (mut bits, mut filled, mut data) = (0u32, 0, Vec::new());
    let mut put = |code: u32, width: u32, data: &mut Vec<u8>| {
        bits |= code << filled;
        filled += width;
        while filled >= 8 {
            data.push(bits as u8);
            bits >>= 8;
            filled -= 8;
        }
    };
    put(256, 9, &mut data);
    put(0, 9, &mut data);
    (258..398).for_each(|code| put(code, 9, &mut data));
    put(257, 9, &mut data);
    put(0, 7, &mut data);
    gif.push(8);
    gif.push(data.len() as u8);
    gif.extend_from_slice(&data);
    gif.extend_from_slice(b"\0;");
    gif
}

/// Puts all of it, the first versions as an import gives them: deflated behind other bytes.
fn fill(store: &Store) -> Vec<(VersionId, Kept)> {
    let mut kept: Vec<(VersionId, Kept)> = Vec::new();
    for page in content() {
        let previous = kept.iter().rev().find(|(_, k)| k.url == page.url).map(|(id, _)| *id);
        let record = [&b"the head of a record\r\n\r\n"[..], &page.body, b"\r\n\r\n"].concat();
        let data = &miniz_oxide::deflate::compress_to_vec(&record, 6)[..];
        let packing = Packing::Deflated(Deflated { data, front_bytes: 24, behind_bytes: 4 });
        kept.push((page.put_packed(store, previous, packing).unwrap().id, page));
        if kept.len().is_multiple_of(6) {
            store.sync().unwrap();
        }
    }
    store.sync().unwrap();
    kept
}

fn load(name: &str) -> Arc<MemoryBackend> {
    let backend = Arc::new(MemoryBackend::default());
    for entry in std::fs::read_dir(fixture(name)).unwrap() {
        let entry = entry.unwrap();
        let bytes = std::fs::read(entry.path()).unwrap();
        backend.plant(entry.file_name().to_str().unwrap(), bytes);
    }
    backend
}

fn save(name: &str, backend: &MemoryBackend) {
    let folder = fixture(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    for (object, length) in backend.list().unwrap() {
        let bytes = backend.read(&object, 0, length as usize).unwrap();
        std::fs::write(folder.join(object), bytes).unwrap();
    }
}

#[test]
#[ignore = "writes the fixtures of the present format"]
fn write_fixtures() {
    let collected = Arc::new(MemoryBackend::default());
    fill(&open_hasty(&collected));
    save("format-1/imported", &collected);
    let packs = collected.list().unwrap();
    let (first, length) = packs[0].clone();
    let damage = |name: &str, change: &dyn Fn(&MemoryBackend)| {
        let backend = load("format-1/imported");
        change(&backend);
        save(&format!("damaged/{name}"), &backend);
    };
    damage("bit-flipped", &|backend| {
        backend.tamper(&first, |bytes| bytes[length as usize / 2] ^= 4);
    });
    damage("bits-flipped-in-two-places", &|backend| {
        backend.tamper(&first, |bytes| bytes[length as usize / 2] ^= 4);
        backend.tamper(&first, |bytes| bytes[length as usize / 2 - 900] ^= 4);
    });
    damage("directory-overwritten", &|backend| {
        backend.tamper(&first, |bytes| bytes[length as usize - 40..].fill(0xaa));
    });
    damage("cut-short", &|backend| {
        backend.tamper(&first, |bytes| bytes.truncate(length as usize / 2));
    });
    damage("pack-missing", &|backend| backend.delete(&first).unwrap());
    damage("pack-duplicated", &|backend| {
        let bytes = backend.read(&first, 0, length as usize).unwrap();
        backend.plant("pack-0000000077", bytes);
    });
    damage("pack-head-overwritten", &|backend| {
        backend.tamper(&first, |bytes| bytes[..30].fill(0xaa));
    });
    let store = open(&collected);
    store.compact(&small(), &mut |_, _| {}).unwrap();
    save("format-1/compacted", &collected);
    let fronts = Arc::new(MemoryBackend::default());
    let store = open(&fronts);
    slow_pictures().iter().for_each(|picture| {
        picture.put(&store, None).unwrap();
    });
    store.sync().unwrap();
    store.compact(&small(), &mut |_, _| {}).unwrap();
    save("format-1/fronts", &fronts);
}

fn open_hasty(backend: &Arc<MemoryBackend>) -> Store {
    Store::open(backend.clone(), StoreOptions { keeps_packed: true, ..options() }).unwrap()
}

fn small() -> CompactOptions {
    CompactOptions { frame_bytes: 16 << 10, prefix_bytes: 2 << 10, ..CompactOptions::default() }
}

#[test]
fn archives_of_every_format_are_read_exactly() {
    for name in ["format-1/imported", "format-1/compacted"] {
        let store = open(&load(name));
        for (at, page) in content().iter().enumerate() {
            page.check(&store, VersionId(at as u64 + 1));
        }
        assert_sound(&store);
        assert_eq!(store.stats().unwrap().versions, 27, "{name}");
    }
}

#[test]
fn pictures_that_would_be_slow_are_recoded_in_part_and_come_back() {
    let written = Arc::new(MemoryBackend::default());
    let store = open(&written);
    let ids: Vec<VersionId> =
        slow_pictures().iter().map(|picture| picture.put(&store, None).unwrap().id).collect();
    store.sync().unwrap();
    let report = store.compact(&small(), &mut |_, _| {}).unwrap();
    // One of them may be slow, however few versions there are.
    assert_eq!((report.recoded, report.slow), (3, 1), "{report:?}");
    for store in [store, open(&load("format-1/fronts"))] {
        ids.iter().zip(slow_pictures()).for_each(|(id, picture)| picture.check(&store, *id));
        assert_sound(&store);
    }
}

#[test]
fn what_comes_deflated_is_kept_so_only_by_a_hasty_store() {
    let body_in = |store: &Store, page: &Kept, packing| {
        let put = page.put_packed(store, None, packing).unwrap();
        page.check(store, put.id);
        put.new_bytes
    };
    let page = Kept::page(1, 1, html(1, 1).repeat(4));
    let data = &miniz_oxide::deflate::compress_to_vec(&page.body, 0)[..];
    assert!(data.len() > page.body.len());
    let packed = &miniz_oxide::deflate::compress_to_vec(&page.body, 1)[..];
    let deflated = |data| Packing::Deflated(Deflated { data, front_bytes: 0, behind_bytes: 0 });
    let fresh = || open(&Arc::new(MemoryBackend::default()));
    let hasty = || open_hasty(&Arc::new(MemoryBackend::default()));
    let usual = page.put(&fresh(), None).unwrap().new_bytes;
    assert_eq!(body_in(&fresh(), &page, deflated(packed)), usual);
    assert_eq!(body_in(&hasty(), &page, deflated(data)), usual, "deflating made it longer");
    let kept = body_in(&hasty(), &page, deflated(packed));
    assert!(kept > usual && kept as usize > packed.len(), "{kept} {usual}");
    assert!(body_in(&hasty(), &page, Packing::Dense) as usize > page.body.len());
    assert_eq!(body_in(&fresh(), &page, Packing::Dense), usual);
}

#[test]
fn pictures_and_gzipped_pages_are_recoded_and_come_back() {
    let filled = |recode_gifs: bool| {
        let backend = Arc::new(MemoryBackend::default());
        let options = StoreOptions { recode_gifs, ..options() };
        let store = Store::open(backend, options).unwrap();
        let kept = fill(&store);
        (store, kept)
    };
    let ((store, kept), (later, _)) = (filled(true), filled(false));
    let bytes = |store: &Store| store.stats().unwrap().stored_bytes;
    assert!(bytes(&store) < bytes(&later), "a GIF is coded again when it is put");
    kept.iter().for_each(|(id, page)| page.check(&store, *id));
    // The gzipped page was taken apart when it was put; of the two pictures the PNG is too small
    // to gain.
    for (store, recoded) in [(&store, 0), (&later, 1)] {
        let report = store.compact(&small(), &mut |_, _| {}).unwrap();
        assert_eq!(report.recoded, recoded, "{report:?}");
        kept.iter().for_each(|(id, page)| page.check(store, *id));
    }
    assert_eq!(bytes(&store), bytes(&later), "compacted, both are the same");
    let blocks = store.blocks(kept[24].0).unwrap();
    let plain: Vec<u8> = blocks.into_iter().flat_map(|block| block.bytes).collect();
    assert!(plain == html(1, 5), "blocks of a gzipped page are those of the page");
}

#[test]
fn every_damage_is_seen_costs_little_and_gives_no_wrong_bytes() {
    // At most so many of the 27 versions may be lost to each.
    for (name, limit) in [
        ("bit-flipped", 0),
        ("bits-flipped-in-two-places", 7),
        ("directory-overwritten", 0),
        ("cut-short", 27),
        ("pack-missing", 27),
        ("pack-duplicated", 0),
        ("pack-head-overwritten", 7),
    ] {
        let backend = load(&format!("damaged/{name}"));
        let store = Store::open(backend.clone(), StoreOptions::default()).unwrap();
        let lost = |(at, page): (usize, &Kept)| match store.read(VersionId(at as u64 + 1)) {
            Ok(version) => {
                assert!(version.body == page.body, "{name}: wrong bytes");
                false
            }
            Err(_) => true,
        };
        let lost = content().iter().enumerate().filter(|item| lost(*item)).count();
        assert!(lost <= limit, "{name} costs {lost} versions");
        let sound = store.verify(true, &mut |_, _| {}).unwrap().is_sound();
        // Without an index nobody knows of a pack that is gone or was longer, and a directory is made
        // again.
        let is_unseen = ["cut-short", "pack-missing", "directory-overwritten"].contains(&name);
        assert_eq!(sound, is_unseen && lost_nothing_known(&store), "{name}");
        drop(Store::open(backend, options()).unwrap());
    }
}

/// Whether every version that the index knows can be read.
fn lost_nothing_known(store: &Store) -> bool {
    let mut all = true;
    store
        .scan(&mut |head| {
            all &= store.read(head.id).is_ok();
            Ok(())
        })
        .unwrap();
    all
}
