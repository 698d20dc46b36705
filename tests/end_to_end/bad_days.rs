//! Bad days of the machine: media that can only be read, no permission, no space at all, no file
//! descriptors. Each has its own message, and what is archived can be read.

use std::{
    io::Write,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::Command,
};

use crate::{
    support::{Kept, Nenrin, Ran, Reply, Running, Site, deserted, get, until},
    trouble::SmallDisk,
};

/// An account without any rights.
const NOBODY: u32 = 65_534;

/// Every command that only reads, with what it needs; `out` is a folder that can be written to.
fn reading(url: &str, out: &Path) -> Vec<Vec<String>> {
    let file = |name: &str| out.join(name).display().to_string();
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    vec![
        words(&["versions", url]),
        words(&["cat", url]),
        words(&["diff", url]),
        words(&["log", "--visits"]),
        words(&["pages"]),
        words(&["stats"]),
        words(&["changes"]),
        words(&["blame", url]),
        words(&["search", "a"]),
        words(&["site", "list"]),
        words(&["verify"]),
        words(&["verify", "--deep"]),
        words(&["export", "warc", "--output", &file("a.warc.gz")]),
        words(&["export", "wacz", "--output", &file("a.wacz")]),
        words(&["export", "mirror", "--at", "2099-01-01", "--output", &file("mirror")]),
    ]
}

/// Runs them all.
#[track_caller]
fn assert_readable(nenrin: &Nenrin, url: &str, run: impl Fn(Command) -> Ran) {
    let out = tempfile::tempdir().unwrap();
    std::fs::set_permissions(out.path(), PermissionsExt::from_mode(0o777)).unwrap();
    for args in reading(url, out.path()) {
        let words: Vec<&str> = args.iter().map(String::as_str).collect();
        let ran = run(nenrin.command(&words));
        assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.said());
    }
    let exported = std::fs::read_dir(out.path()).unwrap().count();
    assert_eq!(exported, 4, "the mirror has a list beside it");
}

fn run(mut command: Command) -> Ran {
    let done = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
    Ran { code: done.status.code(), stdout: done.stdout, stderr }
}

#[track_caller]
fn assert_served(nenrin: &Nenrin, url: &str) {
    let anywhere = ["serve", "--json", "--interface", "127.0.0.1:0", "--replay", "127.0.0.1:0"];
    let serving = nenrin.start(&anywhere);
    let addresses = serving.first_line();
    let replay = addresses["replay"].as_str().unwrap();
    let (status, _, body) = get(&format!("{replay}web/2/{url}"));
    assert!(status == 200 && body.contains("kept from the beginning"), "{status} {body}");
    assert_eq!(get(addresses["interface"].as_str().unwrap()).0, 200);
}

#[test]
fn every_reading_command_works_on_read_only_media() {
    let Some(disk) = SmallDisk::mount(64 << 20) else {
        eprintln!("SKIPPED: read-only media need the right to mount a tmpfs");
        return;
    };
    let nenrin = Nenrin::with_archive(disk.path().join("archive"));
    let kept = Kept::within(nenrin.with_config("[disk]\nmin_free = \"0\"\n"));
    kept.nenrin.run(&["reindex", "--search"]).expect(0);
    disk.remount("ro");
    assert_readable(&kept.nenrin, &kept.url(), run);
    assert_served(&kept.nenrin, &kept.url());
    let written = kept.nenrin.collect(&[&kept.url()]);
    assert_eq!(written.code, Some(1), "{}", written.said());
    assert!(written.said().contains("the disk is read-only"), "{}", written.said());
    disk.remount("rw");
    kept.nenrin.collect(&[&kept.url()]).expect(0);
    kept.assert_intact();
}

/// Gives a folder and all in it to readers, or to nobody.
fn permit(path: &Path, folders: u32, files: u32) {
    for entry in std::fs::read_dir(path).unwrap() {
        let entry = entry.unwrap().path();
        match entry.is_dir() {
            true => permit(&entry, folders, files),
            false => {
                std::fs::set_permissions(&entry, PermissionsExt::from_mode(files)).unwrap();
            }
        }
    }
    std::fs::set_permissions(path, PermissionsExt::from_mode(folders)).unwrap();
}

#[test]
fn a_reader_who_may_not_write_reads_everything() {
    if !is_root() {
        eprintln!("SKIPPED: another account can be used by root alone");
        return;
    }
    let kept = Kept::new();
    let parent = kept.nenrin.archive().parent().unwrap();
    std::fs::set_permissions(parent, PermissionsExt::from_mode(0o755)).unwrap();
    kept.nenrin.run(&["reindex", "--search"]).expect(0);
    permit(kept.nenrin.archive(), 0o755, 0o644);
    let as_nobody = |mut command: Command| {
        command.uid(NOBODY).gid(NOBODY).current_dir("/");
        run(command)
    };
    assert_readable(&kept.nenrin, &kept.url(), as_nobody);
    // A user without permission to read gets a message that says so, and what to do.
    permit(kept.nenrin.archive(), 0o700, 0o600);
    for args in [&["stats"][..], &["cat", &kept.url()]] {
        let ran = as_nobody(kept.nenrin.command(args));
        assert_eq!(ran.code, Some(1), "{}", ran.said());
        let said = ran.said();
        assert!(said.contains("Permission denied") && said.contains("account"), "{said}");
    }
    std::fs::set_permissions(kept.nenrin.archive(), PermissionsExt::from_mode(0o755)).unwrap();
    let ran = as_nobody(kept.nenrin.command(&["stats"]));
    let said = ran.said();
    assert!(ran.code == Some(1) && said.contains("state.sqlite"), "{said}");
    assert!(said.contains("Permission denied"), "{said}");
    kept.assert_intact();
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    id.stdout.trim_ascii() == b"0"
}

/// Takes the very last byte.
fn fill(disk: &SmallDisk) -> std::path::PathBuf {
    let ballast = disk.path().join("ballast");
    let mut file = std::fs::File::create(&ballast).unwrap();
    for part in [1 << 20, 4096, 1] {
        while file.write_all(&vec![1; part]).is_ok() {}
    }
    ballast
}

#[test]
fn reading_needs_no_space_and_run_waits_for_it() {
    let Some(disk) = SmallDisk::mount(24 << 20) else {
        eprintln!("SKIPPED: a full disk needs the right to mount a tmpfs");
        return;
    };
    let config = "[disk]\nmin_free = \"0\"\n[state]\nbucket = \"1s\"\n";
    let nenrin = Nenrin::with_archive(disk.path().join("archive")).with_config(config);
    let kept = Kept::within(nenrin);
    let site = Site::of_pages(&[("/", Reply::html("new"))]);
    let add = ["site", "add", &site.top(), "--allow-private", "--delay", "0s"];
    kept.nenrin.run(&add).expect(0);
    kept.nenrin.run(&["reindex", "--search"]).expect(0);
    let ballast = fill(&disk);
    assert_readable(&kept.nenrin, &kept.url(), run);
    assert_served(&kept.nenrin, &kept.url());
    kept.nenrin.collect(&[&kept.url()]).expect_said(3, &["no space", "free some space"]);

    let (interface, replay) = (deserted(), deserted());
    let running =
        kept.nenrin.start(&["run", "--json", "--interface", &interface, "--replay", &replay]);
    let addresses = running.first_line();
    assert_eq!(get(addresses["interface"].as_str().unwrap()).0, 200);
    let page = format!("http://{replay}/web/2/{}", kept.url());
    assert!(get(&page).2.contains("kept from the beginning"));
    assert!(site.requests().is_empty(), "nothing is asked that cannot be stored");
    std::fs::remove_file(&ballast).unwrap();
    until("the site to be collected", || site.asked().contains_key("/"));
    until("interface and replay to answer", || {
        std::net::TcpStream::connect(&interface).is_ok()
            && std::net::TcpStream::connect(&replay).is_ok()
    });
    assert!(get(&page).2.contains("kept from the beginning"));
    until("the page to be committed", || kept.nenrin.run(&["cat", &site.top()]).code == Some(0));
    // The disk is filled while it runs.
    let ballast = fill(&disk);
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert!(get(&page).2.contains("kept from the beginning"));
    std::fs::remove_file(&ballast).unwrap();
    running.signal("TERM");
    running.finish().expect(0);
    kept.assert_intact();
}

#[test]
fn a_process_without_descriptors_says_so() {
    let kept = Kept::new();
    let limited = |descriptors: u32, args: &[&str]| {
        let program = env!("CARGO_BIN_EXE_nenrin");
        let mut command = Command::new("sh");
        let script = format!("ulimit -n {descriptors}; exec \"$0\" \"$@\"");
        command.args(["-c", &script, program]).args(args);
        command.env("NENRIN_ARCHIVE", kept.nenrin.archive()).env("NO_COLOR", "1");
        run(command)
    };
    for descriptors in 4..=7 {
        let ran = limited(descriptors, &["stats"]);
        assert_ne!(ran.code, Some(101), "{descriptors}: {}", ran.said());
        if ran.code != Some(0) {
            let said = ran.said();
            assert!(said.contains("ulimit -n"), "{descriptors}: {said}");
        }
    }
    assert_eq!(limited(64, &["stats"]).code, Some(0));
    kept.assert_intact();
}

/// A clock that shows another time than the system's: the seconds in a file are added to it.
const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, at);
    if (result == 0 && id == CLOCK_REALTIME) {
        long ahead = 0;
        FILE *file = fopen(getenv("CLOCK_AHEAD"), "r");
        if (file) {
            if (fscanf(file, "%ld", &ahead) == 1) at->tv_sec += ahead;
            fclose(file);
        }
    }
    return result;
}
"#;

#[test]
fn a_clock_that_jumps_twenty_years_and_back_does_not_end_the_collecting() {
    let nenrin = Nenrin::new();
    let (source, library) = (nenrin.file("clock.c", CLOCK), nenrin.file("clock.so", ""));
    let made = ["-shared", "-fPIC", "-o", &library, &source, "-ldl"];
    assert!(Command::new("cc").args(made).status().unwrap().success());
    let ahead = nenrin.file("ahead", "0");
    let site = Site::of_pages(&[("/", Reply::html("open"))]);
    let add = ["site", "add", &site.top(), "--allow-private", "--delay", "0s", "--period", "1s"];
    nenrin.run(&add).expect(0);
    let serve = ["run", "--json", "--interface", "127.0.0.1:0", "--replay", "127.0.0.1:0"];
    let mut command = nenrin.command(&serve);
    command.env("LD_PRELOAD", &library).env("CLOCK_AHEAD", &ahead);
    let running = Running::of(command);
    let visits = || site.asked().get("/").copied().unwrap_or(0);
    let more = |why: &str| {
        let before = visits();
        until(why, || visits() >= before + 2);
    };
    more("the first visits");
    std::fs::write(&ahead, (20 * 365 * 86_400).to_string()).unwrap();
    more("visits in the future");
    std::fs::write(&ahead, "0").unwrap();
    more("visits after the clock was set back");
    assert!(running.stderr().contains("the clock was set back"), "{}", running.stderr());
    assert!(running.stderr().contains("are due now"), "{}", running.stderr());
    // A clock that falls behind by days is believed as well.
    std::fs::write(&ahead, (-3 * 86_400).to_string()).unwrap();
    more("visits in the past");
    std::fs::write(&ahead, "0").unwrap();
    more("visits at the right time again");
    running.signal("TERM");
    running.finish().expect(0);
    nenrin.assert_sound();
    // A clock that begins in 1970 is not.
    std::fs::write(&ahead, (-56 * 365 * 86_400_i64).to_string()).unwrap();
    let mut command = nenrin.command(&["collect", "--allow-private", &site.top()]);
    command.env("LD_PRELOAD", &library).env("CLOCK_AHEAD", &ahead);
    Running::of(command).finish().expect_said(1, &["the clock of this computer is wrong"]);
}
