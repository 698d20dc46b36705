//! Trouble with the archive itself: no space, another process, damage.

use std::{
    io::{Seek, SeekFrom, Write},
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::support::{Kept, Nenrin, Reply, Site, until};

/// A small file system that is unmounted at the end.
pub(crate) struct SmallDisk {
    folder: tempfile::TempDir,
}

impl SmallDisk {
    pub(crate) fn mount(bytes: u64) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={bytes}");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path());
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        mounted.then_some(Self { folder })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// With another option, such as `ro`.
    #[track_caller]
    pub(crate) fn remount(&self, option: &str) {
        let options = format!("remount,{option}");
        let remounted = Command::new("mount").args(["-o", &options]).arg(self.path()).status();
        assert!(remounted.unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.folder.path()).status();
    }
}

/// An archive on a disk that is smaller than what is left free by default.
fn small(disk: &SmallDisk) -> Nenrin {
    let config = "[disk]\nmin_free = \"0\"\n";
    Nenrin::with_archive(disk.path().join("archive")).with_config(config)
}

/// Bytes that do not compress, different for each seed.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

#[test]
fn a_full_disk_ends_collecting_and_harms_nothing() {
    let Some(disk) = SmallDisk::mount(12 << 20) else {
        eprintln!("SKIPPED: a full disk needs the right to mount a tmpfs");
        return;
    };
    let kept = Kept::within(small(&disk));
    let ballast = disk.path().join("ballast");
    std::fs::write(&ballast, noise(0, 8 << 20)).unwrap();
    let site = Site::serve(|request| match request.path.trim_start_matches('/').parse() {
        Ok(seed) => Reply::new("200 OK", "image/png", noise(seed, 512 << 10)),
        Err(_) if request.path == "/" => {
            Reply::html((1..=16).map(|n| format!("<a href='/{n}'>{n}</a>")).collect::<String>())
        }
        Err(_) => Reply::status("404 Not Found"),
    });
    for attempt in 0..2 {
        let ran = kept.nenrin.collect(&[&site.top()]);
        let ran = ran.expect_said(3, &["no space", kept.nenrin.archive().to_str().unwrap()]);
        assert!(!ran.stderr.contains("panicked"), "{attempt}: {}", ran.stderr);
        kept.assert_intact();
    }

    std::fs::remove_file(&ballast).unwrap();
    let report = kept.nenrin.collect(&[&site.top()]).expect(0).document();
    assert_eq!(report["rounds"][0]["counts"]["failed"], 0);
    for n in 1..=16 {
        assert!(kept.nenrin.cat(&site.url(&format!("/{n}"))) == noise(n, 512 << 10), "{n}");
    }
    kept.assert_intact();
}

/// A site whose page `/gate` is answered only when the gate is opened.
fn gated() -> (Site, Arc<AtomicBool>) {
    let gate = Arc::new(AtomicBool::new(false));
    let open = gate.clone();
    let site = Site::serve(move |request| match request.path.as_str() {
        "/" => Reply::html("<a href=/gate>gate</a>"),
        "/gate" if !open.load(Ordering::SeqCst) => Reply::silent(),
        "/gate" => Reply::html("open"),
        _ => Reply::status("404 Not Found"),
    });
    (site, gate)
}

fn asked_at_gate(site: &Site) -> bool {
    site.requests().iter().any(|request| request.path == "/gate")
}

#[test]
fn a_second_process_that_would_write_is_refused_and_readers_go_on() {
    let kept = Kept::new();
    let (site, _) = gated();
    let args = ["collect", &site.top(), "--allow-private", "--delay", "0s"];
    let first = kept.nenrin.start(&args);
    until("the first process to be at work", || asked_at_gate(&site));
    let pid = first.pid().to_string();
    for command in [&args[..], &["run"], &["site", "add", "http://example.com/"], &["reindex"]] {
        kept.nenrin.run(command).expect_said(2, &[&pid, "--archive"]);
    }
    kept.assert_intact();
    for command in ["stats", "log", "pages"] {
        kept.nenrin.run(&[command]).expect(0);
    }
    until("the first page to be committed", || {
        kept.nenrin.run(&["cat", &site.top()]).code == Some(0)
    });
    first.kill();
    kept.assert_intact();
}

#[test]
fn a_process_that_only_reads_keeps_nobody_from_writing() {
    let kept = Kept::new();
    let site = Site::of_pages(&[("/", Reply::html("new"))]);
    let reader = kept.nenrin.start(&[
        "serve",
        "--json",
        "--interface",
        "127.0.0.1:0",
        "--replay",
        "127.0.0.1:0",
    ]);
    let addresses = reader.first_line();
    kept.nenrin.collect(&[&site.top()]).expect(0);
    let replay = addresses["replay"].as_str().unwrap();
    let (status, _, body) = crate::support::get(&format!("{replay}web/2/{}", site.top()));
    assert!(status == 200 && body.contains("new"), "the reader sees what is new: {status} {body}");
    kept.assert_intact();
}

#[test]
fn a_killed_process_is_not_forgotten_by_looking_at_the_archive() {
    let nenrin = Nenrin::new();
    let (site, gate) = gated();
    let delay = Duration::from_millis(1500);
    let args = ["collect", &site.top(), "--allow-private", "--delay", "1500ms"];
    let first = nenrin.start(&args);
    until("the request that no commit tells of", || asked_at_gate(&site));
    first.kill();
    let killed = std::time::Instant::now();
    // Neither reading nor a change of conditions may let the next process think that all is well.
    nenrin.assert_sound();
    nenrin.run(&["site", "set", "1", "--depth", "9"]).expect(0);
    gate.store(true, Ordering::SeqCst);
    site.take_requests();
    nenrin.run(&args).expect(0);
    let requests = site.requests();
    assert_eq!(requests[0].path, "/gate");
    let pause = requests[0].began.duration_since(killed);
    assert!(pause >= delay, "asked again after {pause:?}");
}

/// Three pages in two rounds, in an archive that is then damaged.
fn two_rounds() -> (Kept, Site, Vec<(String, Vec<serde_json::Value>)>) {
    let second = Arc::new(AtomicBool::new(false));
    let switch = second.clone();
    let site = Site::serve(move |request| {
        let edition = if second.load(Ordering::SeqCst) { 2 } else { 1 };
        match request.path.as_str() {
            "/" => Reply::html("<a href=/a>a</a><a href=/old>old</a>"),
            "/a" => Reply::html(format!("edition {edition}")),
            "/old" => Reply::redirect("/a"),
            _ => Reply::status("404 Not Found"),
        }
    });
    let kept = Kept::new();
    kept.nenrin.collect(&[&site.top()]).expect(0);
    switch.store(true, Ordering::SeqCst);
    kept.nenrin.collect(&[&site.top()]).expect(0);
    let listed =
        ["/", "/a", "/old"].map(|path| (site.url(path), kept.nenrin.versions(&site.url(path))));
    assert_eq!(listed[1].1.len(), 2);
    (kept, site, listed.to_vec())
}

#[track_caller]
fn assert_restored(kept: &Kept, listed: &[(String, Vec<serde_json::Value>)]) {
    // How much changed is a judgement of the state, not a part of the packs.
    let without_judgement = |versions: &[serde_json::Value]| {
        let mut versions = versions.to_vec();
        for version in versions.iter_mut().filter_map(|version| version.as_object_mut()) {
            version.remove("changed_permille");
            version.remove("significant");
        }
        versions
    };
    for (url, versions) in listed {
        let found = without_judgement(&kept.nenrin.versions(url));
        assert_eq!(found, without_judgement(versions), "{url}");
    }
    kept.assert_intact();
}

#[test]
fn a_damaged_state_is_named_and_reindex_restores_every_version() {
    let (kept, site, listed) = two_rounds();
    let state = kept.nenrin.archive().join("state.sqlite");
    let mut file = std::fs::OpenOptions::new().write(true).open(&state).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.write_all(&[0xa5; 4096]).unwrap();
    drop(file);
    for command in [&["stats"][..], &["cat", &site.top()], &["collect", &site.top()]] {
        kept.nenrin.run(command).expect_said(4, &["state.sqlite", "reindex"]);
    }
    // The log of visits is lost, and that is said.
    kept.nenrin.run(&["reindex"]).expect_said(1, &["versions in the packs", "starts over"]);
    assert_restored(&kept, &listed);
    let aside = std::fs::read_dir(kept.nenrin.archive()).unwrap();
    let names: Vec<String> =
        aside.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.iter().any(|name| name.contains("damaged")), "put aside, not deleted: {names:?}");
    assert_eq!(kept.nenrin.cat(&site.url("/a")), b"edition 2");
}

#[test]
fn a_state_damaged_in_the_middle_is_found_by_verify() {
    let (kept, _, listed) = two_rounds();
    let state = kept.nenrin.archive().join("state.sqlite");
    let length = std::fs::metadata(&state).unwrap().len();
    let mut file = std::fs::OpenOptions::new().write(true).open(&state).unwrap();
    for page in 1..length / 4096 {
        file.seek(SeekFrom::Start(page * 4096)).unwrap();
        file.write_all(&[0xa5; 512]).unwrap();
    }
    drop(file);
    kept.nenrin.run(&["verify"]).expect_said(4, &["reindex"]);
    kept.nenrin.run(&["reindex"]).expect(1);
    assert_restored(&kept, &listed);
}

#[test]
fn a_deleted_state_is_named_and_reindex_restores_every_version() {
    let (kept, site, listed) = two_rounds();
    for file in ["state.sqlite", "state.sqlite-wal", "state.sqlite-shm"] {
        let _ = std::fs::remove_file(kept.nenrin.archive().join(file));
    }
    kept.nenrin.run(&["stats"]).expect_said(4, &["state.sqlite", "reindex"]);
    kept.nenrin.run(&["collect", &site.top()]).expect_said(4, &["state.sqlite", "reindex"]);
    kept.nenrin.run(&["reindex"]).expect(1);
    assert_restored(&kept, &listed);
    // Collecting goes on from there.
    kept.nenrin.collect(&[&site.top()]).expect(0);
    assert_eq!(kept.nenrin.cat(&site.url("/a")), b"edition 2");
    kept.assert_intact();
}

#[test]
fn a_deleted_index_comes_back_by_itself() {
    let (kept, _, listed) = two_rounds();
    for file in ["packs.index", "packs.index-wal", "packs.index-shm"] {
        let _ = std::fs::remove_file(kept.nenrin.archive().join(file));
    }
    assert_restored(&kept, &listed);
}

#[test]
fn damage_is_repaired_by_parity_or_named_and_the_rest_can_be_read() {
    let kept = Kept::new();
    let site = Site::serve(|request| match request.path.as_str() {
        "/" => Reply::new("200 OK", "image/png", noise(7, 100_000)),
        _ => Reply::status("404 Not Found"),
    });
    kept.nenrin.collect(&[&site.top()]).expect(0);
    let packs = std::fs::read_dir(kept.nenrin.archive().join("packs")).unwrap();
    let largest = packs
        .map(|entry| entry.unwrap().path())
        .max_by_key(|path| std::fs::metadata(path).unwrap().len())
        .unwrap();
    let bytes = std::fs::read(&largest).unwrap();
    let needle = &noise(7, 100_000)[50_000..50_016];
    let place = bytes.windows(16).position(|window| window == needle).unwrap();
    let overwrite = |with: &[u8]| {
        let mut file = std::fs::OpenOptions::new().write(true).open(&largest).unwrap();
        file.seek(SeekFrom::Start(place as u64)).unwrap();
        file.write_all(with).unwrap();
    };
    let lost = || {
        let report = kept.nenrin.run(&["verify", "--deep", "--json"]).expect(4).document();
        assert_eq!(report["sound"], false);
        let damage = report["damage"].as_array().unwrap();
        damage.iter().map(|place| place["versions_lost"].as_u64().unwrap()).sum::<u64>()
    };
    // One byte is restored by parity, at first only in memory.
    overwrite(b"!");
    assert_eq!(lost(), 0);
    assert!(kept.nenrin.cat(&site.top()) == noise(7, 100_000));
    let repaired = kept.nenrin.run(&["verify", "--repair", "--json"]).expect(0).document();
    assert_eq!((&repaired["repaired"], &repaired["sound"]), (&1.into(), &true.into()));
    assert!(std::fs::read(&largest).unwrap() == bytes);
    // More than parity restores.
    overwrite(&[b'!'; 5000]);
    assert_eq!(lost(), 1);
    kept.nenrin.run(&["cat", &site.top()]).expect_said(4, &["damaged"]);
    assert_eq!(kept.nenrin.cat(&kept.url()), b"kept from the beginning");
    // The loss is accepted, and the same picture comes back with the next visit.
    let accepted = [
        "1 version lost and accepted",
        "1 damaged location whose loss was accepted",
        "no damage found",
    ];
    kept.nenrin.run(&["verify", "--accept-loss"]).expect_said(0, &accepted);
    kept.nenrin.run(&["verify", "--deep"]).expect(0);
    kept.nenrin.run(&["site", "removals"]).expect_said(0, &["the loss was accepted"]);
    kept.nenrin.collect(&[&site.top()]).expect(0);
    assert!(kept.nenrin.cat(&site.top()) == noise(7, 100_000));
    kept.nenrin.run(&["verify", "--deep"]).expect(0);
}

#[test]
fn packs_that_are_gone_are_named_and_reindex_does_not_call_that_done() {
    let (kept, _, _) = two_rounds();
    for entry in std::fs::read_dir(kept.nenrin.archive().join("packs")).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    kept.nenrin.run(&["verify"]).expect_said(4, &["pack is missing", "--accept-loss"]);
    kept.nenrin.run(&["reindex"]).expect_said(4, &["lost: ", "are in no pack"]);
    kept.nenrin.run(&["verify", "--accept-loss"]).expect(0);
    kept.nenrin.run(&["reindex"]).expect(0);
}
